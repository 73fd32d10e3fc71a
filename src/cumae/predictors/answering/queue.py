"""The queue in which calls of several threads wait for answers.

A thread that asks while another one is being answered stands in a queue. Whoever is first in it
answers for those behind it whose queries fit into one batch, and wakes them. So many threads that
ask for one answer each share the votes, the noise and the commit of a batch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from cumae.claims import claim
from cumae.errors import CumaeError
from cumae.predictors.answering.calls import Call

MOST_WAIT = 0.005  # seconds; about a commit on a slow disk, while a training may take minutes
POLL_SECONDS = 2e-5  # between two looks at who has come: a thread asks again after about this long
CHECK_SECONDS = 1.0  # after which a waiting thread looks whether anybody answers; seldom needed


@claim("STORE")
class QueuedCall:
    """One call that waits for its answers.

    Parameters
    ----------
    call : Call
        What is asked.

    Attributes
    ----------
    id_bytes, body_bytes : bytes
        What stands for the name and for the body of a call that has a name, once ``Journal.known``
        has looked at them.
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        self.id_bytes = self.body_bytes = b""
        self.answers: Any = None
        self.warnings: list[str] = []
        self.error: BaseException | None = None
        self.committed = False  # whether the answers are on the disk, and may leave
        self.done = False  # whether there is no more to wait for
        self.left = False  # whether its thread has gone on
        self._gate = threading.Lock()  # open when it is done, or the first in the queue
        self._gate.acquire()

    def wake(self) -> None:
        """Let its thread look again; it may look more often than it must."""
        with suppress(RuntimeError):  # the gate is open already
            self._gate.release()

    def wait(self) -> bool:
        """Wait until it is woken, for some time at most; tell whether it was."""
        return self._gate.acquire(timeout=CHECK_SECONDS)

    def refuse(self, error: BaseException, *, alone: bool) -> None:
        """Let it raise an error; one that others raise as well must not show what they asked."""
        if self.error is None and not self.committed:
            self.error = error if alone else _without_trace(error)

    def result(self) -> Any:
        """Return the answers, or raise what went wrong."""
        if self.error is not None:
            raise self.error
        if not self.committed:
            raise _lost()
        return self.answers


def _without_trace(error: BaseException) -> BaseException:
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
class CallQueue:
    """Lets the first of several calls do the work of those behind it, one group after the other."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: list[QueuedCall] = []
        self._leader: QueuedCall | None = None  # the first one, whose thread answers
        # Calls that stood here when the last group was answered, and the seconds that it took.
        self._together, self._seconds = 1, 0.0

    def join(self, call: QueuedCall, answer: Callable[[list[QueuedCall]], None]) -> None:
        """Wait until a call was answered, or answer it with those behind it.

        Parameters
        ----------
        call : QueuedCall
            What this thread asks.
        answer : callable
            Gets all that wait, this call first. It answers some of the first ones, this one at
            least, and marks them as done.
        """
        try:
            with self._mutex:
                self._waiting.append(call)
                self._leader = self._leader or call
            while not call.done:
                if self._leader is call:
                    self._lead(answer)
                elif not call.wait():
                    self._look()
        finally:
            try:
                self._leave(call)
            except BaseException:  # interrupted right here: others must not wait for ever
                self._leave(call)
                raise

    def _lead(self, answer: Callable[[list[QueuedCall]], None]) -> None:
        """Answer for the first ones in the queue, and wake them."""
        if len(self._waiting) < self._together:
            self._gather()
        began = time.monotonic()
        with self._mutex:
            calls = list(self._waiting)
        try:
            answer(calls)
        finally:
            with self._mutex:
                self._together = len(self._waiting)
                self._waiting = [call for call in self._waiting if not call.done]
            self._seconds = time.monotonic() - began
            for call in calls:
                if call.done and call is not self._leader:  # whose thread is here
                    call.wake()

    def _gather(self) -> None:
        """Let those ask again that were answered a moment ago: a larger group takes hardly longer.

        Whoever leads waits for half of the time that the last group took, at most, and never longer
        than a few milliseconds.
        """
        until = time.monotonic() + min(self._seconds / 2, MOST_WAIT)
        while len(self._waiting) < self._together and time.monotonic() < until:
            time.sleep(POLL_SECONDS)

    def _leave(self, call: QueuedCall) -> None:
        """Let a call leave the queue, and the next one lead if this one did."""
        call.left = True
        if call.done and self._leader is not call:
            return  # whoever answered has taken it out of the queue
        with self._mutex:
            self._waiting = [one for one in self._waiting if one is not call]
            if self._leader is call:
                self._leader = None
                if self._waiting:
                    self._choose_leader()

    def _look(self) -> None:
        """Let somebody answer if nobody does, because a thread was interrupted on its way out."""
        with self._mutex:
            if self._leader is None or self._leader.left:
                self._choose_leader()

    def _choose_leader(self) -> None:
        """Let the first one in the queue answer; the caller holds the mutex."""
        self._leader = self._waiting[0] if self._waiting else None
        if self._leader is not None:
            self._leader.wake()
