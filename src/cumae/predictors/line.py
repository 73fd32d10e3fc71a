"""Calls of several threads that are answered as one batch: the first one answers for all.

A thread that asks while another one is being answered stands in a line. Whoever is first in it
answers for all that stand there by then, and wakes them. So many threads that ask for one answer
each share the votes, the noise and the commit of a batch.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cumae.claims import claim
from cumae.errors import CumaeError, InvalidData
from cumae.live import check_process, one_at_a_time
from cumae.predictors.state import Journal, Request

MOST = 1_024  # queries of a batch that is joined; the memory of a larger one could run out for all


class WaitingCall:
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
        self.done = False
        self.thread = threading.get_ident()
        self.gate = threading.Lock()  # opened when the call is done, or is the first in the line
        self.gate.acquire()

    @property
    def count(self) -> int:
        """Number of queries, if it can be joined with others: if they are a list or an array.

        It is more than ``MOST`` for all others, and where somebody is named.
        """
        if self.ids or not (type(self.X) is list or (type(self.X) is np.ndarray and self.X.ndim)):
            return MOST + 1
        return len(self.X)

    def result(self) -> Any:
        """Return the answers, or raise what went wrong."""
        if self.error is not None:
            raise self.error
        return self.answers


@claim("STORE")
class WaitingLine:
    """Lets the first of several calls do the work of all that wait, one group after the other."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: list[WaitingCall] = []
        self._leader: int | None = None  # the thread that answers now

    def join(self, call: WaitingCall, answer: Callable[[list[WaitingCall]], None]) -> Any:
        """Wait until a call was answered, or answer it with all that wait; return its answers.

        Parameters
        ----------
        call : WaitingCall
            What this thread asks.
        answer : callable
            Answers calls: sets ``answers`` or ``error`` of each, or raises for all of them.
        """
        with self._mutex:
            nested, leads = self._leader == call.thread, self._leader is None
            if leads:
                self._leader = call.thread
            if not nested:
                self._waiting.append(call)
        if nested:  # something that runs within an answer asks, too
            answer([call])
            return call.result()
        if not leads:
            self._wait(call)
        if not call.done:
            self._lead(call, answer)
        return call.result()

    def _wait(self, call: WaitingCall) -> None:
        try:
            call.gate.acquire()
        except BaseException:  # this thread was interrupted, and must not hold up the others
            with self._mutex:
                if call in self._waiting:
                    self._waiting.remove(call)
                if self._leader == call.thread:
                    self._hand_over()
            raise

    def _lead(self, own: WaitingCall, answer: Callable[[list[WaitingCall]], None]) -> None:
        with self._mutex:
            calls, self._waiting = self._waiting, []
        try:
            answer(calls)
        except Exception as error:  # noqa: BLE001 - each of them raises it
            for call in calls:
                call.error = call.error or error
        except BaseException as error:  # noqa: BLE001 - this thread raises it
            for call in calls:
                call.error = call.error or CumaeError(
                    "the thread that answered for several was interrupted. The answers are lost, "
                    "and may be charged; ask again."
                )
            own.error = error
        finally:
            with self._mutex:
                self._hand_over()
            for call in calls:
                call.done = True
                if call is not own:
                    call.gate.release()

    def _hand_over(self) -> None:
        """Let the first one in the line answer; the caller holds the mutex."""
        if not self._waiting:
            self._leader = None
            return
        self._leader = self._waiting[0].thread
        self._waiting[0].gate.release()


class Way(NamedTuple):
    """How a predictor answers calls.

    Parameters
    ----------
    journal : Journal
        What records.
    alone : callable
        Answers the queries of one call.
    joined : callable
        Answers the queries of several calls as one batch; returns a list of answers.
    fits : callable
        Tells whether so many queries can be one batch.
    """

    journal: Journal
    alone: Callable[..., Any]
    joined: Callable[[list[Any]], list[Any]]
    fits: Callable[[int], bool]


@claim("STORE", "EVER")
def answering_together(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a method that answers private queries record all that it changes before answers leave.

    As ``answering``, but calls of other threads that wait by then are answered as one batch, by
    ``_predict_joined``, if ``_joins`` says that so many queries fit. A query has the same answer in
    any batch, so nobody can tell.
    """

    @functools.wraps(method)
    def answer(self: Any, X: Any, *, request_id: Any = None, **ids: Any) -> Any:
        if "guarantee_" not in vars(self):  # the check itself takes a tenth of a millisecond
            check_is_fitted(self, "guarantee_")
        check_process(self)  # before the line is touched: a forked process has a broken one

        def lead(calls: list[WaitingCall]) -> None:
            journal = self._journal_
            way = Way(journal, functools.partial(method, self), self._predict_joined, self._joins)
            journal.commit(_answer_all(self, way, calls))

        return self._line.join(WaitingCall(X, ids, request_id), lead)

    return answer


@one_at_a_time
def _answer_all(_: Any, way: Way, calls: list[WaitingCall]) -> int:
    """Answer calls in their order, several at once where they fit; return the last ticket."""
    ticket = 0
    group: list[WaitingCall] = []
    with way.journal.turn():
        for call in calls:
            if group and not _fits(way, group, call):
                ticket = max(ticket, _answer_group(way, group))
                group = []
            try:
                found = way.journal.known(call.request)
            except CumaeError as error:
                call.error = error
                continue
            if found is None:
                group.append(call)
            else:
                call.answers, ticket = found[0], max(ticket, found[1])
        if group:
            ticket = max(ticket, _answer_group(way, group))
    return ticket


def _fits(way: Way, group: list[WaitingCall], call: WaitingCall) -> bool:
    """Tell whether a call may join others in one batch: by counts, ids and kinds of tables."""
    name = call.request.id
    if name is not None and any(one.request.id == name for one in group):
        return False  # a retry, which must see the first one's answers
    count = sum(one.count for one in group) + call.count
    return count <= MOST and way.fits(count)


@claim("STORE")
def _answer_group(way: Way, group: list[WaitingCall]) -> int:
    """Answer calls as one batch, and record that as one change; return its ticket."""

    def make() -> list[Any]:
        if len(group) == 1:
            return [way.alone(group[0].X, **group[0].ids)]
        return way.joined([call.X for call in group])

    try:
        answers, ticket = way.journal.recorded(make, [call.request for call in group])
    except InvalidData as error:  # raised when queries are read, before anything is drawn
        if len(group) > 1:
            return max(_answer_group(way, [call]) for call in group)
        group[0].error = error
        return 0
    except Exception as error:  # noqa: BLE001 - whoever asked raises it
        for call in group:
            call.error = error
        return 0
    for call, own in zip(group, answers, strict=True):
        call.answers = own
    return ticket
