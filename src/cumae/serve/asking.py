"""The way to the models: one writer thread for each oracle, and published models directly.

Calls wait in a queue. The writer takes all that wait, lets those who were just answered ask again,
and hands everything to ``predict_calls`` at once. Requests of many rows are cut into parts, one of
which goes with the single rows of a group, so that nobody waits long for somebody else.
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
from functools import partial
from typing import Any, Protocol

import numpy as np

from cumae.errors import CumaeError, StoreFailed
from cumae.predictors import Call
from cumae.predictors.stateful import counter_of
from cumae.serve.errors import busy
from cumae.serve.protocol.forms import RowsAsked
from cumae.serve.quiet_log import log_internal
from cumae.store.sealed import canonical

PART_ROWS = 1_024  # of a large request, which go together
MOST_WAIT = 0.005  # seconds for which a group waits for those who were just answered
MOST_QUEUED = 200_000  # rows that wait for one oracle
INLINE_ROWS = 256  # of a published model, which take less time than a thread
STOP = None


class Engine(Protocol):
    """Asks one model."""

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
    work : callable, or None
        What else is to be done, in the place of calls.
    """

    def __init__(
        self, calls: list[Call], n_rows: int, work: Callable[[], Any] | None = None
    ) -> None:
        self.calls, self.n_rows, self.work = calls, n_rows, work
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
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


class OracleThread:
    """Asks one oracle from a thread of its own.

    Parameters
    ----------
    oracle : StatefulPredictor
        The oracle, open.
    tick : float
        Seconds between two times at which answers are given; 0 for as soon as they are there.
    """

    def __init__(self, oracle: Any, tick: float = 0.0) -> None:
        self._oracle, self._tick = oracle, tick
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        self._waiting = 0  # rows; only the event loop changes it
        self._loop = asyncio.get_running_loop()
        self._small: list[Waiting] = []
        self._large: deque[Waiting] = deque()
        self._together, self._seconds = 1, 0.0
        self._stopping = False
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
        calls = self._cut(question, whose)
        if len(calls) > 1 and calls[0].request_id is not None:
            calls[0] = await self._bound(calls[0], question, whose)
            for call in calls[1:]:  # one after the other, so that others are answered meanwhile
                compared = partial(counter_of(self._oracle).compare, self._oracle, [call])
                await self.change(compared)
        return await self._put(calls, question.n_rows)

    def _cut(self, question: RowsAsked, whose: dict[str, Any]) -> list[Call]:
        """Return the parts of a request; those of a finite budget are not cut."""
        request_id = whose.pop("request_id", None)
        n_rows = question.n_rows
        step = n_rows
        if n_rows > PART_ROWS and math.isinf(self._oracle.remaining_):
            step = PART_ROWS
        calls = []
        for part, start in enumerate(range(0, n_rows, step)):
            here = slice(start, start + step)
            own: dict[str, Any] = {name: ids[here] for name, ids in whose.items()}
            named = None if request_id is None else (*request_id, part)
            X = question.X if step == n_rows else question.X[here]
            calls.append(Call(X, request_id=named, **own))
        return calls

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

    async def _put(
        self, calls: list[Call], n_rows: int, work: Callable[[], Any] | None = None
    ) -> Any:
        if self._stopping or (self._waiting and self._waiting + n_rows > MOST_QUEUED):
            raise busy()
        one = Waiting(calls, n_rows, work)
        self._waiting += n_rows
        self._queue.put(one)
        try:
            # Who hangs up does not end what was begun: the answer is kept for a retry.
            return await asyncio.shield(one.future)
        finally:
            if one.future.done():
                self._waiting -= n_rows
            else:
                one.future.add_done_callback(lambda _: self._left(n_rows))

    def _left(self, n_rows: int) -> None:
        self._waiting -= n_rows

    # In the thread

    def _run(self) -> None:
        taken: list[Waiting] = []
        try:
            while self._gather():
                if self._tick:
                    self._wait_for_tick()
                    self._drain()
                taken, self._small = self._small, []
                began = time.monotonic()
                done = self._answer(taken)
                self._seconds = time.monotonic() - began
                if self._tick:
                    self._wait_for_tick()
                self._hand_out(done)
        except BaseException as error:  # noqa: BLE001 - nobody may wait for ever
            log_internal(error)
            self._refuse_all([*taken, *self._small, *self._large])

    def _refuse_all(self, waiting: list[Waiting]) -> None:
        """Refuse all that waits and all that comes, until the end: the oracle is unwell."""
        while True:
            self._hand_out([(one, StoreFailed("its thread broke off")) for one in waiting])
            following = self._queue.get()
            if following is STOP:
                return
            waiting = [following]

    def _wait_for_tick(self) -> None:
        """Wait for the next of the times at which calls are taken and answers given."""
        time.sleep(self._tick - time.monotonic() % self._tick)

    def _gather(self) -> bool:
        """Wait until somebody asks, and a little for others; tell whether to go on."""
        if not (self._small or self._large) and not self._sort(self._queue.get()):
            return False
        if not self._drain():
            return bool(self._small or self._large)
        if not self._tick and not self._large and len(self._small) < self._together:
            until = time.monotonic() + min(MOST_WAIT, self._seconds / 2)
            while len(self._small) < self._together:
                try:
                    left = until - time.monotonic()
                    if left <= 0 or not self._sort(self._queue.get(timeout=left)):
                        break
                except queue.Empty:
                    break
        return True

    def _drain(self) -> bool:
        """Take all that waits; tell whether more may come."""
        while True:
            try:
                if not self._sort(self._queue.get_nowait()):
                    return False
            except queue.Empty:
                return True

    def _sort(self, one: Waiting | None) -> bool:
        """Put a request where it belongs; tell whether more may come."""
        if one is STOP:
            self._queue.put(STOP)  # for the next look
            return False
        (self._large if len(one.calls) > 1 else self._small).append(one)
        return True

    def _answer(self, taken: list[Waiting]) -> list[tuple[Waiting, Any]]:
        """Answer a group, with one part of a large request; return those that are done."""
        done: list[tuple[Waiting, Any]] = []
        asking = [one for one in taken if one.work is None]
        calls = [one.calls[0] for one in asking]
        if self._large:
            large = self._large.popleft()
            asking.append(large)
            calls.append(large.calls[len(large.answers)])
        self._together = len(asking)
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

    def _hand_out(self, done: list[tuple[Waiting, Any]]) -> None:
        """Give results to the event loop, all of a group at once."""
        if done:
            try:
                self._loop.call_soon_threadsafe(_set, done)
            except RuntimeError:  # the loop has ended, and with it all who waited
                return

    def close(self) -> None:
        """Answer what waits, and end the thread; then close the oracle."""
        if not self._stopping:
            self._stopping = True
            self._queue.put(STOP)
            self._thread.join()
            self._oracle.close()


def _outcome(work: Callable[[], Any] | None) -> Any:
    try:
        return None if work is None else work()
    except CumaeError as error:
        return error
    except BaseException as error:  # noqa: BLE001 - those who asked are told
        return error.with_traceback(None)


def _set(done: list[tuple[Waiting, Any]]) -> None:
    for one, found in done:
        if one.future.done():
            continue
        if isinstance(found, Exception):
            one.future.set_exception(found)
        elif isinstance(found, BaseException):
            one.future.set_exception(RuntimeError("the call was broken off"))
        else:
            one.future.set_result(found)
