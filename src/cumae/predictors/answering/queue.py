"""The queue in which calls of several threads wait for answers.

A thread that asks while another one is being answered stands in a queue. Whoever is first in it
answers for those behind it whose queries fit into one batch, and wakes them. So many threads that
ask for one answer each share the votes, the noise and the commit of a batch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from numpy.typing import NDArray

from cumae.claims import claim
from cumae.errors import CumaeError, warn
from cumae.predictors.answering.calls import Asked, Call

MOST_WAIT = 0.005  # seconds; about a commit on a slow disk, while a training may take minutes
POLL_SECONDS = 2e-5  # between two looks at who has come: a thread asks again after about this long
CHECK_SECONDS = 1.0  # after which a waiting thread looks whether anybody answers; seldom needed


@claim("STORE")
class CallBatch:
    """The state of calls that were taken from the queue together.

    The calls share this object. One assignment changes all of them, so that no interrupt can come
    between two calls.
    """

    alone = False  # whether no other call waited, so that an error may show what was asked
    committed = False  # whether the answers are on the disk, and may leave
    done = False  # whether there is no more to wait for


@claim("STORE")
class QueuedCall:
    """One call that waits for its answers.

    Parameters
    ----------
    call : Call
        What is asked.

    Attributes
    ----------
    batch : CallBatch
        The batch that it was taken into; before that ``NOT_TAKEN``, which is never done.
    id_bytes, body_bytes : bytes
        What stands for the name and for the body of a call that has a name, once ``Journal.known``
        has looked at them.
    asked : Asked, or None
        Its queries, once they were read.
    error : Exception, or None
        Why it was refused.
    """

    def __init__(self, call: Call) -> None:
        self.call, self.batch, self._thread = call, NOT_TAKEN, threading.get_ident()
        self.id_bytes = self.body_bytes = b""
        self.asked: Asked | None = None
        self.answers: Any = None
        self.warnings: list[str] = []
        self.error: Exception | None = None

    @property
    def is_own(self) -> bool:
        """True if this thread asked."""
        return self._thread == threading.get_ident()

    def refuse(self, error: BaseException) -> None:
        """Set the error that the call raises, unless it has an error already.

        The error must not show queries of other calls, so that it loses its traceback. Other
        threads get errors of cumae alone: a signal handler's error belongs to its own thread.
        """
        if self.error is not None:
            return
        if self.batch.alone and isinstance(error, Exception):
            self.error = error
        elif self.is_own or isinstance(error, CumaeError):
            self.error = _without_trace(error)
        else:
            self.error = _lost()

    @property
    def may_leave(self) -> bool:
        """True if the answers, and all that tells of them, may be seen."""
        return self.error is None and self.batch.committed

    def warn(self) -> None:
        """Tell what there is to tell of the answers; a warning that is an error refuses them."""
        for text in self.warnings if self.may_leave else ():
            try:
                warn(text)
            except Exception as error:  # noqa: BLE001 - those who asked raise it
                self.refuse(error)

    def outcome(self) -> Any:
        """Return the answers, or the error that takes their place."""
        if self.may_leave:
            return self.answers
        return _lost() if self.error is None else self.error

    def result(self) -> NDArray[Any]:
        """Return the answers, or raise what went wrong."""
        if self.error is None and self.batch.committed:  # as ``may_leave``, without a call
            found: NDArray[Any] = self.answers
            return found
        raise self.outcome()


NOT_TAKEN = CallBatch()


def _without_trace(error: BaseException) -> Exception:
    """Return the same error without its traceback, whose frames hold the queries of others."""
    if isinstance(error, Exception):
        with suppress(Exception):
            made = type(error)(*error.args)
            made.__suppress_context__ = True
            return made
    return _lost()


def _lost() -> CumaeError:
    return CumaeError(
        "this call was answered together with others, and that failed or was interrupted. The "
        "answers are lost, and may be charged; ask again."
    )


@claim("STORE")
class Party:
    """The calls that one thread waits for.

    Parameters
    ----------
    calls : sequence of Call
        What is asked: one call at least. They are answered in their order, so that all are done
        when the last one is.
    """

    def __init__(self, calls: Sequence[Call]) -> None:
        self.calls = [QueuedCall(call) for call in calls]
        self.left = False  # whether its thread has gone on
        self._gate = threading.Lock()  # open when all are done, or the first in the queue
        self._gate.acquire()

    def wake(self) -> None:
        """Let its thread look again; it may look more often than it must."""
        try:  # each answer comes by here, and ``suppress`` takes three calls
            self._gate.release()
        except RuntimeError:  # the gate is open already
            return

    def wait(self) -> bool:
        """Wait until it is woken, for some time at most; tell whether it was."""
        return self._gate.acquire(timeout=CHECK_SECONDS)


@claim("STORE")
class CallQueue:
    """Lets the first of several threads do the work of those behind it, group after group.

    An interrupt may end any thread anywhere. A party that has left is passed over by whoever comes
    upon it, and calls that are done are never answered again.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: list[Party] = []
        self._leader: Party | None = None  # the first one, whose thread answers
        # Parties that stood here when the last group was answered, and the seconds that it took.
        self._together, self._seconds = 1, 0.0

    def join(self, party: Party, answer: Callable[[list[QueuedCall], int], None]) -> None:
        """Wait until calls were answered, or answer them with those behind them.

        Parameters
        ----------
        party : Party
            What this thread asks.
        answer : callable
            Gets all that wait, those of this thread first, and how many these are. It answers some
            of the first ones, one at least, and marks them as done.
        """
        last = party.calls[-1]
        try:
            with self._mutex:
                self._waiting.append(party)
                if self._leader is None or self._leader.left:
                    self._leader = party
            while not last.batch.done:
                if self._leader is party:
                    self._lead(party, answer)
                elif not party.wait():
                    self._look()
        finally:
            party.left = True  # first, and no call: nothing can come before it
            leader = self._leader  # which may change between two looks at it
            if leader is None or leader.left:  # else many would wait for the mutex
                self._look()

    def _lead(self, party: Party, answer: Callable[[list[QueuedCall], int], None]) -> None:
        """Answer for the first ones in the queue, and wake them."""
        if len(self._waiting) < self._together:
            self._gather()
        began = time.monotonic()
        with self._mutex:
            others = [one for one in self._waiting if one is not party and not one.left]
        own = calls = [call for call in party.calls if not call.batch.done]
        if others:
            calls = own + [call for one in others for call in one.calls if not call.batch.done]
        try:
            answer(calls, len(own))
        finally:
            ended = {one for one in [party, *others] if one.calls[-1].batch.done}
            with self._mutex:
                self._together = len(self._waiting)
                self._waiting = [one for one in self._waiting if one not in ended]
            self._seconds = time.monotonic() - began
            for one in ended:
                if one is not party:  # whose thread is here
                    one.wake()

    def _gather(self) -> None:
        """Let those ask again that were answered a moment ago: a larger group takes hardly longer.

        Whoever leads waits for half of the time that the last group took, at most, and never longer
        than a few milliseconds.
        """
        until = time.monotonic() + min(self._seconds / 2, MOST_WAIT)
        while len(self._waiting) < self._together and time.monotonic() < until:
            time.sleep(POLL_SECONDS)

    def _look(self) -> None:
        """Let the first one answer if nobody does: whoever did has left, or was interrupted."""
        with self._mutex:
            if self._leader is None or self._leader.left:
                self._waiting = [one for one in self._waiting if not one.left]
                self._leader = self._waiting[0] if self._waiting else None
                if self._leader is not None:
                    self._leader.wake()
