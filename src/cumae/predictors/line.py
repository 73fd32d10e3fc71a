"""Calls of several threads that are answered as one batch: the first one answers for all.

A thread that asks while another one is being answered stands in a line. Whoever is first in it
answers for all that stand there by then, and wakes them. So many threads that ask for one answer
each share the votes, the noise and the commit of a batch.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from cumae.claims import claim
from cumae.errors import CumaeError, InvalidData
from cumae.live import check_process, one_at_a_time
from cumae.predictors.state import Request

MOST = 1_024  # queries of a batch that is joined; the memory of a larger one could run out for all


class Call:
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
class Line:
    """Lets the first of several calls do the work of all that wait, one group after the other."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: list[Call] = []
        self._leader: int | None = None  # the thread that answers now

    def join(self, call: Call, answer: Callable[[list[Call]], None]) -> Any:
        """Wait until a call was answered, or answer it with all that wait; return its answers.

        Parameters
        ----------
        call : Call
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

    def _wait(self, call: Call) -> None:
        try:
            call.gate.acquire()
        except BaseException:  # this thread was interrupted, and must not hold up the others
            with self._mutex:
                if call in self._waiting:
                    self._waiting.remove(call)
                if self._leader == call.thread:
                    self._hand_over()
            raise

    def _lead(self, own: Call, answer: Callable[[list[Call]], None]) -> None:
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
        line: Line = self.__dict__.get("_line") or self.__dict__.setdefault("_line", Line())
        return line.join(Call(X, ids, request_id), lambda calls: _answer(self, method, calls))

    return answer


def _answer(predictor: Any, method: Callable[..., Any], calls: list[Call]) -> None:
    """Answer calls, and return when nothing of that can be lost."""
    ticket = _answer_all(predictor, method, calls)
    predictor._journal_.commit(ticket)


@one_at_a_time
def _answer_all(predictor: Any, method: Callable[..., Any], calls: list[Call]) -> int:
    """Answer calls in their order, several at once where they fit; return the last ticket."""
    journal, ticket = predictor._journal_, 0
    group: list[Call] = []
    with journal.turn():
        for call in calls:
            if group and not _fits(predictor, group, call):
                ticket = max(ticket, _answer_group(predictor, method, group))
                group = []
            try:
                found = journal.known(call.request)
            except CumaeError as error:
                call.error = error
                continue
            if found is None:
                group.append(call)
            else:
                call.answers, ticket = found[0], max(ticket, found[1])
        if group:
            ticket = max(ticket, _answer_group(predictor, method, group))
    return ticket


def _fits(predictor: Any, group: list[Call], call: Call) -> bool:
    """Tell whether a call may join others in one batch: by counts, ids and kinds of tables."""
    count = sum(one.count for one in group) + call.count
    name = call.request.id
    if name is not None and any(one.request.id == name for one in group):
        return False  # a retry, which must see the first one's answers
    return count <= MOST and bool(predictor._joins(count))


@claim("STORE")
def _answer_group(predictor: Any, method: Callable[..., Any], group: list[Call]) -> int:
    """Answer calls as one batch, and record that as one change; return its ticket."""

    def make() -> list[Any]:
        if len(group) == 1:
            return [method(predictor, group[0].X, **group[0].ids)]
        found: list[Any] = predictor._predict_joined([call.X for call in group])
        return found

    try:
        answers, ticket = predictor._journal_.recorded(make, [call.request for call in group])
    except InvalidData as error:  # raised when queries are read, before anything is drawn
        if len(group) > 1:
            return max(_answer_group(predictor, method, [call]) for call in group)
        group[0].error = error
        return 0
    except Exception as error:  # noqa: BLE001 - whoever asked raises it
        for call in group:
            call.error = error
        return 0
    for call, own in zip(group, answers, strict=True):
        call.answers = own
    return int(ticket)
