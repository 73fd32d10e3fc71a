"""Calls of several threads that are answered as one batch."""

from __future__ import annotations

import json
import os
import threading
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cumae
from cumae import store
from cumae.concepts import Thresholds
from cumae.errors import BudgetExhausted, CumaeError, InvalidData, InvalidParameter, StoreFailed
from cumae.predictors import line
from cumae.predictors.line import WaitingCall, WaitingLine
from tests.forks import answer_in_a_fork
from tests.oracles import ROWS, everlasting, oracle

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

PATIENCE = 30.0  # seconds until a thread that waits counts as stuck


class Crowd:
    """Threads that ask one after the other, while the first of them is held up.

    Parameters
    ----------
    predictor : EverlastingPredictor
        What they ask.
    held : str
        The method of its journal at which the first thread waits until all others have asked.
    """

    def __init__(self, predictor: Any, held: str = "commit") -> None:
        self.predictor = predictor
        self.found: dict[int, list[int]] = {}
        self.failed: dict[int, BaseException] = {}
        self.threads: list[threading.Thread] = []
        self._here, self._go_on = threading.Event(), threading.Event()
        journal = predictor._journal_
        real = getattr(journal, held)

        def wait(*args: Any, **more: Any) -> Any:
            if not self._here.is_set():
                self._here.set()
                assert self._go_on.wait(PATIENCE)
            return real(*args, **more)

        setattr(journal, held, wait)

    def ask(self, *queries: Any, **more: Any) -> None:
        """Ask in a thread of its own; return when it stands in the line."""
        self.ask_table(list(queries), **more)

    def ask_table(self, X: Any, **more: Any) -> None:
        number, before = len(self.threads), self.standing

        def run() -> None:
            try:
                self.found[number] = self.predictor.predict(X, **more).tolist()
            except BaseException as error:  # noqa: BLE001 - what is wrong is compared
                self.failed[number] = error

        self.threads.append(threading.Thread(target=run, daemon=True))
        self.threads[-1].start()
        if number == 0:
            assert self._here.wait(PATIENCE)
        else:
            wait_until(lambda: self.standing > before or number in self.failed)

    @property
    def standing(self) -> int:
        return len(self.predictor._line._waiting) if "_line" in vars(self.predictor) else 0

    def end(self) -> None:
        """Let the first one go on, and wait for all."""
        self._go_on.set()
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()


def wait_until(happened: Any) -> None:
    for _ in range(int(PATIENCE * 1_000)):
        if happened():
            return
        threading.Event().wait(0.001)
    raise AssertionError("it never happened")


def used(path: Path) -> int:
    return store.status(path).totals.used


def answered(stored: Any) -> list[int]:
    """Return how many answers each entry of the ledger has."""
    entries = [json.loads(text) for _, text, _ in stored._journal_.writer.home.entries()]
    return [facts["count"] for facts in entries if facts["event"] == "answered"]


@pytest.mark.claim("STORE")
def test_those_who_wait_are_answered_as_one(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    crowd = Crowd(stored)
    crowd.ask([0.1])
    for cell in (0.9, 0.2, 0.8):
        crowd.ask([cell], [0.05])
    crowd.end()
    assert crowd.found == {0: [0], 1: [1, 0], 2: [0, 0], 3: [1, 0]}
    assert answered(stored) == [1, 6]
    assert (stored.answered_, used(path)) == (7, 7)
    stored.close()
    assert cumae.open(path).answered_ == 7


@pytest.mark.claim("EVER")
@pytest.mark.parametrize("more", [{}, {"memoize": True}, {"prior": True}], ids=str)
def test_joined_calls_have_the_answers_of_single_ones(more: dict[str, Any]) -> None:
    """With the same coins, and with unusable queries among them."""
    queries = [[[0.31]], [[0.29], [float("nan")]], [["x"]], [[0.3], [0.31], [0.3]]]
    columns = {"columns": [(0.0, 1.0)]} if more.get("prior") else {}
    one, other = (
        cumae.EverlastingPredictor(
            Thresholds(),
            **{"epsilon": 3.0, "shard_size": 10, "prior": False, "random_state": 3}
            | more
            | columns,
        ).fit(np.tile(ROWS, (10, 1)), np.tile(ROWS[:, 0] > 0.3, 10).astype(int))
        for _ in range(2)
    )
    single = [one.predict(part).tolist() for part in queries]
    calls = [call_of(part) for part in queries]
    alone: Any = type(other).predict
    way = line.Way(
        other._journal_, partial(alone.__wrapped__, other), other._predict_joined, other._joins
    )
    line._answer_all(other, way, calls)
    assert [call.answers.tolist() for call in calls] == single
    assert other.answered_ == one.answered_ == 7
    for mine, its in zip(
        *(np.concatenate([w for _, w in made._state_.kept]) for made in (one, other)), strict=True
    ):
        assert mine.tolist() == its.tolist()


def call_of(X: Any, request_id: Any = None) -> WaitingCall:
    return WaitingCall(X, {}, request_id)


@pytest.mark.claim("STORE")
def test_what_does_not_fit_is_answered_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither calls over the end of a phase nor large ones are joined with others."""
    _, stored = oracle(tmp_path)
    stored.predict(ROWS[:390])
    groups: list[int] = []
    recorded = stored._journal_.recorded

    def watched(make: Any, requests: Any) -> Any:
        groups.append(len(requests))
        return recorded(make, requests)

    stored._journal_.recorded = watched
    crowd = Crowd(stored)
    for count in (1, 4, 4, 4, 1):  # 9 are left after the first one: 4 and 4, then a new phase
        crowd.ask(*ROWS[:count].tolist())
    crowd.end()
    assert not crowd.failed
    assert (stored.phase_, stored.answered_) == (2, 404)
    assert groups == [1, 2, 1, 1]
    groups.clear()
    monkeypatch.setattr(line, "MOST", 5)
    crowd = Crowd(stored)
    for count in (1, 3, 2, 1, 7):
        crowd.ask(*ROWS[:count].tolist())
    crowd.end()
    assert groups == [1, 2, 1, 1]
    stored.close()


@pytest.mark.claim("STORE")
def test_a_refusal_is_for_one_call_alone(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    first = stored.predict([[0.2]], request_id="known").tolist()
    crowd = Crowd(stored)
    crowd.ask([0.1])
    crowd.ask([0.9])
    crowd.ask([0.8], request_id="known")  # another body
    crowd.ask([0.2], request_id=[1])  # no id
    crowd.ask([0.2], users=["anna"])  # asked for at fit
    crowd.ask([0.2], [0.9, 0.9])  # a row of another width is an unusable query, and no refusal
    crowd.ask_table(np.ones((2, 3)))  # a table of another width is refused
    crowd.end()
    assert {number: type(error) for number, error in crowd.failed.items()} == {
        2: InvalidParameter,
        3: InvalidParameter,
        4: InvalidData,
        6: InvalidData,
    }
    assert crowd.found == {0: [0], 1: [1], 5: [0, -1]}
    assert used(path) == 5
    assert stored.predict([[0.2]], request_id="known").tolist() == first


@pytest.mark.claim("STORE")
def test_a_retry_in_the_same_group_gets_the_same_answers(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path, epsilon=0.05)  # so much noise that answers are coins
    crowd = Crowd(stored)
    crowd.ask([0.1])
    for _ in range(3):
        crowd.ask(*ROWS[:40].tolist(), request_id=("anna", 1))
    crowd.ask([0.4], request_id=("anna", 2))
    crowd.end()
    assert crowd.found[1] == crowd.found[2] == crowd.found[3]
    assert used(path) == 1 + 40 + 1
    stored.close()
    again = cumae.open(path)
    assert again.predict(ROWS[:40].tolist(), request_id=("anna", 1)).tolist() == crowd.found[1]
    assert again.predict([[0.4]], request_id=("anna", 2)).tolist() == crowd.found[4]


@pytest.mark.claim("STORE")
def test_a_commit_that_fails_fails_for_all(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    crowd = Crowd(stored)
    for cell in (0.1, 0.9, 0.2):
        crowd.ask([cell])

    commit = stored._journal_.writer.home.commit

    def broken(change: Any) -> None:
        if change.entries[-1].facts["count"] > 1:
            raise OSError("no space left on device")
        commit(change)

    stored._journal_.writer.home.commit = broken
    crowd.end()
    assert crowd.found == {0: [0]}
    assert {type(error) for error in crowd.failed.values()} == {StoreFailed}
    with pytest.raises(CumaeError, match="charged"):
        stored.predict([[0.5]])
    stored.close()
    assert used(path) == 1
    cumae.open(path).close()
    assert used(path) >= 3  # the mark was raised before


def test_too_few_answers_refuse_those_who_ask_for_more() -> None:
    """Ids do not decide it here: a phase that nobody fills ends."""
    one = everlasting(user_ids=True)
    one.predict(ROWS[:395], users=["anna"] * 395)
    crowd = Crowd(one)
    crowd.ask([0.1], users=["anna"])
    crowd.ask(*ROWS[:3].tolist(), users=["anna"] * 3)
    crowd.ask(*ROWS[:3].tolist(), users=["anna"] * 3)
    crowd.end()
    assert list(crowd.failed) == [2]
    assert isinstance(crowd.failed[2], BudgetExhausted)
    assert one.answered_ == 399


def test_who_is_interrupted_holds_up_nobody() -> None:
    """The first one is interrupted while it answers for others, and they are told."""
    together = WaitingLine()
    asked: list[list[int]] = []
    here, go_on = threading.Event(), threading.Event()

    def answer(calls: list[WaitingCall]) -> None:
        asked.append([call.request.id for call in calls])
        if len(asked) == 1:
            here.set()
            assert go_on.wait(PATIENCE)
        if len(asked) == 2:
            raise KeyboardInterrupt
        for call in calls:
            call.answers = call.request.id

    found: dict[int, Any] = {}

    def ask(name: int) -> None:
        try:
            found[name] = together.join(call_of(None, name), answer)
        except BaseException as error:  # noqa: BLE001 - compared below
            found[name] = type(error)

    threads = []
    for name in range(4):
        threads.append(threading.Thread(target=ask, args=(name,), daemon=True))
        threads[-1].start()
        if name == 0:
            assert here.wait(PATIENCE)
        else:
            wait_until(lambda name=name: len(together._waiting) == name)
    go_on.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert asked == [[0], [1, 2, 3]]
    assert found == {0: 0, 1: KeyboardInterrupt, 2: CumaeError, 3: CumaeError}
    ask(4)
    assert found[4] == 4
    assert together._leader is None


def test_who_is_interrupted_in_the_line_leaves_it() -> None:
    together = WaitingLine()
    first, second, third = (call_of(None, name) for name in "abc")
    first.thread, second.thread, third.thread = 1, 2, 3
    together._leader, together._waiting = 1, [second, third]

    class Interrupted:
        def acquire(self) -> None:
            raise KeyboardInterrupt

        def release(self) -> None:
            """Nobody waits here any more."""

    second.gate = Interrupted()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        together._wait(second)
    assert (together._leader, together._waiting) == (1, [third])
    together._leader, together._waiting = 2, [second, third]  # it was just made the first
    with pytest.raises(KeyboardInterrupt):
        together._wait(second)
    assert (together._leader, together._waiting) == (3, [third])
    assert third.gate.acquire(blocking=False)  # and so goes on


def test_a_call_within_an_answer_is_answered_at_once() -> None:
    together = WaitingLine()

    def answer(calls: list[WaitingCall]) -> None:
        for one in calls:
            more = one.request.id - 1
            one.answers = [one.request.id] + (
                together.join(call_of(None, more), answer) if more else []
            )

    assert together.join(call_of(None, 3), answer) == [3, 2, 1]


def test_a_forked_process_is_refused_while_the_line_is_busy() -> None:
    one = everlasting()
    crowd = Crowd(one)
    crowd.ask([0.1])
    one._line._mutex.acquire()  # as if another thread stood at the line when the process forks
    try:
        assert answer_in_a_fork(one, [[0.5]]) == "refused"
    finally:
        one._line._mutex.release()
        crowd.end()
    assert os.getpid() == one._process
