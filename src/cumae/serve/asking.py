"""The way to the models: one writer thread for each oracle, and published models directly.

Calls wait in a queue. Those who were just answered may ask again for a moment; then the writer
hands everything to ``predict_calls`` at once. Requests of many rows are cut into parts, and one
request or part of many rows goes with the others of a group, so that nobody waits long for somebody
else.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

import numpy as np

from cumae.claims import claim
from cumae.errors import CumaeError, StoreFailed
from cumae.predictors import Call
from cumae.predictors.stateful import counter_of
from cumae.serve.errors import busy
from cumae.serve.protocol.forms import RowsAsked
from cumae.serve.quiet_log import log_internal
from cumae.store.sealed import canonical

PART_ROWS = 1_024  # of a large request, which go together
SMALL_ROWS = 64  # of a request that goes with any number of others
LEAST_WAIT, MOST_WAIT = 0.002, 0.005  # seconds; a group waits for those who were just answered
MOST_QUEUED = 200_000  # rows that wait for one oracle
GO, STOP = 1, 0  # what the thread is to do
INLINE_ROWS = 256  # of a published model, which take less time than a thread


class Engine(Protocol):
    """Asks one model.

    Attributes
    ----------
    remaining : float
        Answers that are left, as known after the last group: to ask the oracle itself may take as
        long as a group does.
    """

    remaining: float

    async def ask(self, question: RowsAsked, **whose: Any) -> Any:
        """Return the answers, or raise an error of cumae."""

    async def change(self, work: Callable[[], Any]) -> Any:
        """Run something that changes the model, when nobody else uses it."""

    def close(self) -> None:
        """End it, when all that waits is answered."""


class Inline:
    """A published model, which may be asked by several threads at once.

    Parameters
    ----------
    model : Learner or PrivateClassifier
        The model.
    """

    remaining = math.inf

    def __init__(self, model: Any) -> None:
        self._model = model
        self._room = asyncio.Semaphore(2)

    async def ask(self, question: RowsAsked, **_: Any) -> Any:
        """Return the answers; ids mean nothing here."""
        if question.n_rows <= INLINE_ROWS:
            return self._model.predict(question.X)
        async with self._room:
            return await asyncio.to_thread(self._model.predict, question.X)

    async def change(self, work: Callable[[], Any]) -> Any:
        """Run something."""
        return await asyncio.to_thread(work)

    def close(self) -> None:
        """End nothing: there is no thread."""


class Waiting:
    """One request that waits for its answers.

    Parameters
    ----------
    calls : list of Call
        Its parts.
    n_rows : int
        How many rows they have.
    future : Future
        Gets the answers, in the event loop.
    work : callable, or None
        What else is to be done, instead of calls.
    """

    __slots__ = ("answers", "calls", "future", "n_rows", "work")

    def __init__(
        self,
        calls: list[Call],
        n_rows: int,
        future: asyncio.Future[Any],
        work: Callable[[], Any] | None = None,
    ) -> None:
        self.calls, self.n_rows, self.future, self.work = calls, n_rows, future, work
        self.answers: list[Any] = []

    def take(self, found: Any) -> bool:
        """Take the answers to the next part; tell whether that is all."""
        self.answers.append(found)
        return isinstance(found, BaseException) or len(self.answers) == len(self.calls)

    def result(self) -> Any:
        """Return all answers, or the error of the last part."""
        last = self.answers[-1]
        if isinstance(last, BaseException) or len(self.answers) == 1:
            return last
        return np.concatenate(self.answers)

    def tell(self, found: Any) -> None:
        """Give the result to those who wait, if they still do."""
        if self.future.done():
            return
        if isinstance(found, Exception):
            self.future.set_exception(found)
        elif isinstance(found, BaseException):
            self.future.set_exception(RuntimeError("the call was broken off"))
        else:
            self.future.set_result(found)


class OracleThread:
    """Asks one oracle from a thread of its own.

    The event loop puts requests into two queues, and alone decides when the thread shall take a
    group of them: so each group wakes the thread once, and the thread wakes the loop once.

    Parameters
    ----------
    oracle : StatefulPredictor
        The oracle, open.
    tick : float
        Seconds between two times at which answers are given; 0 for as soon as they are there.
    """

    def __init__(self, oracle: Any, tick: float = 0.0) -> None:
        self._oracle, self._tick = oracle, tick
        self.remaining: float = oracle.remaining_
        self._loop = asyncio.get_running_loop()
        # The event loop adds to these, and the thread alone takes from them.
        self._small: deque[Waiting] = deque()
        self._large: deque[Waiting] = deque()
        # Only the event loop uses these.
        self._waiting = 0  # rows
        self._busy = self._stopping = False
        self._wanted = 1  # requests that make a group
        self._timer: asyncio.TimerHandle | None = None
        self._bell: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._seconds = 0.0  # that the last group took
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    async def ask(self, question: RowsAsked, **whose: Any) -> Any:
        """Return the answers to a question.

        Parameters
        ----------
        question : RowsAsked
            The rows.
        **whose : object
            Fields of a :class:`cumae.Call`; ``request_id`` is a tuple of ids.
        """
        request_id = whose.pop("request_id", None)
        calls = self._cut(question, request_id, whose)
        if len(calls) > 1 and request_id is not None:
            calls[0] = await self._bound(calls[0], question, whose)
            for call in calls[1:]:  # one after the other, so that others are answered meanwhile
                compared = partial(counter_of(self._oracle).compare, self._oracle, [call])
                await self.change(compared)
        return await self._put(calls, question.n_rows)

    @claim("SERVE")
    def _cut(
        self, question: RowsAsked, request_id: tuple[Any, ...] | None, whose: dict[str, Any]
    ) -> list[Call]:
        """Return the parts of a request; those of a finite budget are not cut."""
        n_rows = question.n_rows
        if n_rows <= PART_ROWS or not math.isinf(self.remaining):
            named = None if request_id is None else (*request_id, 0)
            return [Call(question.X, request_id=named, **whose)]
        calls = []
        for part, start in enumerate(range(0, n_rows, PART_ROWS)):
            here = slice(start, start + PART_ROWS)
            own: dict[str, Any] = {name: ids[here] for name, ids in whose.items()}
            named = None if request_id is None else (*request_id, part)
            calls.append(Call(question.X[here], request_id=named, **own))
        return calls

    @claim("SERVE")
    async def _bound(self, first: Call, question: RowsAsked, whose: dict[str, Any]) -> Call:
        """Return the first part bound to the whole request, so that its id decides for all parts.

        Later parts are bound to their own rows alone: they may be remembered in a later phase,
        where nothing may be left of the rows of this one.
        """

        def digest() -> bytes:
            return hashlib.sha256(canonical([question.X, whose])).digest()

        return first._replace(whole=await asyncio.to_thread(digest))

    async def change(self, work: Callable[[], Any]) -> Any:
        """Run something in the thread of the oracle, between two groups."""
        return await self._put([], 1, work)

    def _put(
        self, calls: list[Call], n_rows: int, work: Callable[[], Any] | None = None
    ) -> asyncio.Future[Any]:
        """Let a request wait. Who hangs up does not end it: the answer is kept for a retry."""
        if self._stopping or (self._waiting and self._waiting + n_rows > MOST_QUEUED):
            raise busy()
        one = Waiting(calls, n_rows, self._loop.create_future(), work)
        self._waiting += n_rows
        (self._large if n_rows > SMALL_ROWS else self._small).append(one)
        if not self._busy:
            self._begin_if_due()
        return one.future

    def _begin_if_due(self) -> None:
        """Let the thread begin, or wait a little for those who were just answered."""
        if self._tick or self._large or len(self._small) >= self._wanted:
            self._begin()
        elif self._timer is None:
            wait = min(MOST_WAIT, max(LEAST_WAIT, self._seconds))
            self._timer = self._loop.call_later(wait, self._begin)

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._busy = True
        self._bell.put(GO)

    def _end(self, done: list[tuple[Waiting, Any]], seconds: float) -> None:
        """Hand out the results of a group, and begin the next one."""
        for one, found in done:
            self._waiting -= one.n_rows
            one.tell(found)
        self._busy, self._seconds = False, seconds
        self._wanted = len(done) + len(self._small)  # all who may ask soon
        if self._small or self._large:
            self._begin_if_due()

    # In the thread

    def _run(self) -> None:
        taken: list[Waiting] = []
        try:
            while self._bell.get() == GO:
                self._answer_group(taken)
            while self._small or self._large:  # and no more comes
                self._answer_group(taken)
        except BaseException as error:  # noqa: BLE001 - nobody may wait for ever
            log_internal(error)
            self._refuse_all(taken)

    def _answer_group(self, taken: list[Waiting]) -> None:
        """Take all that waits, answer it, and let the event loop hand it out.

        Parameters
        ----------
        taken : list of Waiting
            Gets what is taken.
        """
        if self._tick:
            self._wait_for_tick()
        began = time.monotonic()
        self._take(taken)
        done = self._answer(taken)
        with suppress(CumaeError):  # of which the next calls are told
            self.remaining = self._oracle.remaining_
        seconds = time.monotonic() - began
        if self._tick:
            self._wait_for_tick()
        self._hand_out(done, seconds)

    def _take(self, taken: list[Waiting]) -> None:
        taken[:] = [self._small.popleft() for _ in range(len(self._small))]

    def _wait_for_tick(self) -> None:
        """Wait for the next of the times at which calls are taken and answers given."""
        time.sleep(self._tick - time.monotonic() % self._tick)

    def _refuse_all(self, waiting: list[Waiting]) -> None:
        """Refuse all that waits and all that comes, until the end: the oracle is unwell."""
        order = GO
        while True:
            for queued in (self._small, self._large):
                while queued:
                    waiting.append(queued.popleft())
            self._hand_out([(one, StoreFailed("its thread broke off")) for one in waiting], 0.0)
            if order == STOP:
                return
            order, waiting = self._bell.get(), []

    @claim("SERVE")
    def _answer(self, taken: list[Waiting]) -> list[tuple[Waiting, Any]]:
        """Answer a group, with one large request or part of it; return those that are done."""
        done: list[tuple[Waiting, Any]] = []
        asking = [one for one in taken if one.work is None]
        calls = [one.calls[0] for one in asking]
        if self._large:
            large = self._large.popleft()
            asking.append(large)
            calls.append(large.calls[len(large.answers)])
        if calls:
            for one, found in zip(asking, self._found(calls), strict=True):
                if one.take(found):
                    done.append((one, one.result()))
                else:
                    self._large.append(one)
        done += [(one, _outcome(one.work)) for one in taken if one.work is not None]
        return done

    def _found(self, calls: list[Call]) -> list[Any]:
        try:
            found: list[Any] = self._oracle.predict_calls(calls)
        except BaseException as error:  # noqa: BLE001 - those who asked are told
            return [error] * len(calls)
        return found

    def _hand_out(self, done: list[tuple[Waiting, Any]], seconds: float) -> None:
        """Give the results of a group to the event loop, all at once."""
        try:
            self._loop.call_soon_threadsafe(self._end, done, seconds)
        except RuntimeError:  # the loop has ended, and with it all who waited
            return

    def close(self) -> None:
        """Answer what waits, and end the thread; then close the oracle."""
        if not self._stopping:
            self._stopping = True
            self._bell.put(STOP)
            self._thread.join()
            self._oracle.close()


def _outcome(work: Callable[[], Any] | None) -> Any:
    try:
        return None if work is None else work()
    except CumaeError as error:
        return error
    except BaseException as error:  # noqa: BLE001 - those who asked are told
        return error.with_traceback(None)
