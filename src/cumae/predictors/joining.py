"""Calls of several threads that are answered as one batch: the first one answers for all.

A thread that asks while another one is being answered stands in a queue. Whoever is first in it
answers for those behind it whose queries fit into one batch, and wakes them. So many threads that
ask for one answer each share the votes, the noise and the commit of a batch.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import numpy as np

from cumae.claims import claim
from cumae.errors import CumaeError, warn
from cumae.live import locked, one_call
from cumae.predictors.base import check_fitted
from cumae.predictors.state import Journal, Request

Answers = TypeVar("Answers")

MOST_JOINED = 1_024  # queries of a joined batch: few, so that nobody waits long for others
MOST_WAIT = 0.005  # seconds; about a commit on a slow disk, while a training may take minutes
POLL_SECONDS = 2e-5  # between two looks at who has come: a thread asks again after about this long
CHECK_SECONDS = 1.0  # after which a waiting thread looks whether anybody answers; seldom needed


@claim("STORE")
class QueuedCall:
    """One call that waits for its answers.

    Parameters
    ----------
    X : table
        The queries, as they were given.
    ids : dict from str to object
        Who asks, and the like, as they were given.
    request_id : str, int or tuple, or None
        What names the call, for retries.
    """

    def __init__(self, X: Any, ids: dict[str, Any], request_id: Any) -> None:
        self.X, self.ids = X, ids
        self.request = Request(request_id, [X, ids])
        self.answers: Any = None
        self.error: BaseException | None = None
        self.committed = False  # whether the answers are on the disk, and may leave
        self.done = False  # whether there is no more to wait for
        self.left = False  # whether its thread has gone on
        self._gate = threading.Lock()  # open when it is done, or the first in the queue
        self._gate.acquire()

    @property
    def count(self) -> int:
        """Number of queries; ``MOST_JOINED + 1`` for a call that is answered alone.

        That is one with ids, or whose queries are neither a list nor an array.
        """
        if self.ids or not (type(self.X) is list or (type(self.X) is np.ndarray and self.X.ndim)):
            return MOST_JOINED + 1
        return len(self.X)

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
                if call.done:
                    call.wake()

    def _gather(self) -> None:
        """Let those ask again that were answered a moment ago: a larger group takes hardly longer.

        Whoever leads waits for half of the time that the last group took, at most, and never longer
        than a few milliseconds.
        """
        if len(self._waiting) >= self._together:
            return
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


class Answerer(NamedTuple):
    """How a predictor answers calls.

    Parameters
    ----------
    alone : callable
        Answers the queries of one call.
    joined : callable
        Answers the queries of several calls as one batch. It returns a list of answers, with an
        error in the place of those that cannot be read.
    room : callable
        Returns how many queries of several calls can be one batch now.
    """

    alone: Callable[..., Any]
    joined: Callable[[list[Any]], list[Any]]
    room: Callable[[], int]


class _Told(threading.local):
    """What a thread is going to warn of when its answers are recorded."""

    def __init__(self) -> None:
        self.warnings: list[str] = []


TOLD = _Told()


@claim("STORE")
def warn_later(told: str) -> None:
    """Warn once the answers of this call are recorded: a warning may tell what was drawn."""
    TOLD.warnings.append(told)


@claim("STORE")
def answering(method: Callable[..., Answers]) -> Callable[..., Answers]:
    """Let a method that answers record all that it changes as one, before the answers leave.

    The method gets a parameter more, ``request_id``: a durable oracle gives the same answers to the
    same request, for free, as long as its phase lasts. While one thread waits for the disk, another
    one can be answered.
    """

    @one_call
    @functools.wraps(method)
    def answer(self: Any, X: Any, *, request_id: Any = None, **ids: Any) -> Answers:
        check_fitted(self)
        call = QueuedCall(X, ids, request_id)
        answerer = Answerer(functools.partial(method, self), list, int)  # no call is joined
        TOLD.warnings.clear()
        _answer(self, answerer, [call])
        found: Answers = call.result()
        while TOLD.warnings:
            warn(TOLD.warnings.pop(0))
        return found

    return answer


@claim("STORE", "EVER")
def answering_together(method: Callable[..., Answers]) -> Callable[..., Answers]:
    """Let a method that answers private queries record all that it changes before answers leave.

    As ``answering``, but calls of other threads that wait by then are answered as one batch, by
    ``_predict_joined``, as long as there is room for them (``_room``). A query has the same answer
    in any batch, so nobody can tell.
    """

    @one_call  # before the queue is touched: a forked process has a broken one
    @functools.wraps(method)
    def answer(self: Any, X: Any, *, request_id: Any = None, **ids: Any) -> Answers:
        check_fitted(self)
        call = QueuedCall(X, ids, request_id)

        def lead(calls: list[QueuedCall]) -> None:
            answerer = Answerer(functools.partial(method, self), self._predict_joined, self._room)
            _answer(self, answerer, calls)

        self._queue.join(call, lead)
        found: Answers = call.result()
        return found

    return answer


@claim("STORE")
def _answer(self: Any, answerer: Answerer, calls: list[QueuedCall]) -> None:
    """Answer the first calls, and mark them as done when nothing of that can be lost."""
    taken = [calls[0]]  # whatever happens, the first call is answered or refused here
    try:
        journal, ticket = _answer_first(self, answerer, calls, taken)
        journal.commit(ticket)
        for call in taken:
            call.committed = True
    except BaseException as error:
        for call in taken:
            call.refuse(error, alone=len(calls) == 1)
        with suppress(Exception):  # nothing that was answered must wait to be committed
            self._journal_.settled()
        if not isinstance(error, Exception):
            raise
    finally:
        for call in taken:
            call.done = True


@locked
def _answer_first(
    self: Any, answerer: Answerer, calls: list[QueuedCall], taken: list[QueuedCall]
) -> tuple[Journal, int]:
    """Answer the first calls, as many as are one batch; return the journal and their ticket.

    Calls that are known or refused are taken, too, on the way to the first one that does not fit.
    """
    journal: Journal = self._journal_
    ticket, group = 0, Group(answerer)
    with journal.turn():
        for call in calls:
            try:
                found = journal.known(call.request)
            except Exception as error:  # noqa: BLE001 - whoever asked raises it
                call.refuse(error, alone=len(calls) == 1)
            else:
                if found is not None:
                    call.answers, ticket = found[0], max(ticket, found[1])
                elif not group.takes(call):
                    break
            if call is not calls[0]:
                taken.append(call)
        if group.calls:
            ticket = max(ticket, group.answer(journal))
    return journal, ticket


@claim("STORE")
class Group:
    """Calls that are answered as one batch.

    Parameters
    ----------
    answerer : Answerer
        How the predictor answers.
    """

    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer
        self.calls: list[QueuedCall] = []
        self._count, self._room = 0, 0  # queries so far, and how many can be one batch

    def takes(self, call: QueuedCall) -> bool:
        """Take a call if it fits, by counts, ids and kinds of tables; the first one always does."""
        if not self.calls:
            self.calls, self._count = [call], call.count
            return True
        known = call.request.id_bytes
        if known and any(one.request.id_bytes == known for one in self.calls):
            return False  # a retry, which must see the first one's answers
        if len(self.calls) == 1:
            self._room = min(MOST_JOINED, self._answerer.room())
        if self._count + call.count > self._room:
            return False
        self.calls.append(call)
        self._count += call.count
        return True

    def answer(self, journal: Journal) -> int:
        """Answer all calls, and record that as one change; return its ticket."""
        answers, ticket = journal.recorded(self._make, [call.request for call in self.calls])
        for call, own in zip(self.calls, answers, strict=True):
            if isinstance(own, Exception):
                call.refuse(own, alone=False)
            else:
                call.answers = own
        return ticket

    def _make(self) -> list[Any]:
        if len(self.calls) == 1:
            return [self._answerer.alone(self.calls[0].X, **self.calls[0].ids)]
        return self._answerer.joined([call.X for call in self.calls])
