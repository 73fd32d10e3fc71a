"""Calls of several threads that are answered as one batch."""

from __future__ import annotations

import json
import linecache
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import cumae
from cumae import store
from cumae.checks.failures import FAILURES, FailingOnMarks
from cumae.concepts import Thresholds
from cumae.errors import (
    BudgetExhausted,
    CumaeError,
    InvalidData,
    InvalidParameter,
    LiveState,
    RequestIdReused,
    StoreFailed,
)
from cumae.predictors.answering import counter
from cumae.predictors.answering import queue as queues
from cumae.predictors.answering.calls import Call
from cumae.predictors.answering.queue import CallBatch, CallQueue, Party, QueuedCall
from tests.forks import answer_in_a_fork
from tests.oracles import ROWS, SHARED, everlasting, oracle

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
        journal = predictor._counter_.journal
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
        return len(self.predictor._counter_._queue._waiting)

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
    entries = [json.loads(text) for _, text, _ in stored._counter_.journal.writer.home.entries()]
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
    queries: Any = [[[0.31]], [[0.29], [float("nan")]], [["x"]], [[0.3], [0.31], [0.3]]]
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
    other._counter_._lead(other, calls, 1)
    assert all(call.batch.committed for call in calls)
    assert len({call.batch for call in calls}) == 1
    assert [call.answers.tolist() for call in calls] == single
    assert other.answered_ == one.answered_ == 7
    for name in ("rows", "weights"):
        mine, its = (getattr(made._state_.kept, name) for made in (one, other))
        assert mine.tolist() == its.tolist()
    memos = [one._state_.phase.memo, other._state_.phase.memo]  # each under a key of its own
    assert len(memos[0]) == len(memos[1])


def call_of(X: Any, request_id: Any = None) -> QueuedCall:
    return QueuedCall(Call(X, request_id=request_id))


@pytest.mark.claim("STORE")
def test_what_does_not_fit_is_answered_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither calls over the end of a phase nor large ones are joined with others."""
    _, stored = oracle(tmp_path)
    stored.predict(ROWS[:390])
    groups: list[int] = []
    answer = stored._counter_._answer_group

    def watched(desk: Any, calls: list[QueuedCall]) -> None:
        groups.append(len(calls))
        answer(desk, calls)

    stored._counter_._answer_group = watched
    crowd = Crowd(stored)
    for count in (1, 4, 4, 4, 1):  # 9 are left after the first one: 4 and 4, then a new phase
        crowd.ask(*ROWS[:count].tolist())
    crowd.end()
    assert not crowd.failed
    assert (stored.phase_, stored.answered_) == (2, 404)
    assert groups == [1, 2, 1, 1]
    groups.clear()
    monkeypatch.setattr(counter, "MOST_JOINED", 5)
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
    crowd.ask([0.2], [0.9, 0.9])  # among others, a row of another width is an unusable query
    crowd.ask_table(np.ones((2, 3)))  # a table of another width is refused
    crowd.ask([0.2, 0.3], [0.9, 0.9])  # and so is a list
    crowd.end()
    assert {number: type(error) for number, error in crowd.failed.items()} == {
        2: RequestIdReused,
        3: InvalidParameter,
        4: InvalidData,
        6: InvalidData,
        7: InvalidData,
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
def test_ids_that_are_stored_alike_are_the_same(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path, epsilon=0.05)
    crowd = Crowd(stored)
    crowd.ask([0.1])
    crowd.ask(*ROWS[:30].tolist(), request_id="a")
    crowd.ask(*ROWS[:30].tolist(), request_id=("a",))
    crowd.ask([0.5], request_id=("a",))
    crowd.end()
    assert crowd.found[1] == crowd.found[2]
    assert isinstance(crowd.failed[3], InvalidParameter)
    assert used(path) == 31


def test_whole_numbers_of_any_kind_are_the_same_id(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path, epsilon=0.05)
    first = stored.predict(ROWS[:30], request_id=("anna", 9)).tolist()
    assert stored.predict(ROWS[:30], request_id=("anna", np.int64(9))).tolist() == first
    assert used(path) == 30


ODD_IDS = [np.array([1, 2]), pd.NA, 10**5_000, (), np.nan]


@pytest.mark.claim("STORE", "EVER")
@pytest.mark.parametrize("place", range(len(ODD_IDS)))
def test_an_odd_id_fails_alone(tmp_path: Path, place: int) -> None:
    path, stored = oracle(tmp_path)
    crowd = Crowd(stored)
    crowd.ask([0.1])
    crowd.ask([0.9], request_id="one")
    crowd.ask([0.9], request_id=ODD_IDS[place])
    crowd.ask([0.2])
    crowd.end()
    assert list(crowd.failed) == [2]
    assert isinstance(crowd.failed[2], CumaeError)
    assert crowd.found == {0: [0], 1: [1], 3: [0]}
    assert used(path) == 3
    writer = stored._counter_.journal.writer
    assert writer.asked == writer.done


class Shy:
    """Something that does not show itself."""

    def __repr__(self) -> str:
        raise ValueError("0.123")


def nested(depth: int) -> Any:
    found: Any = 0.5
    for _ in range(depth):
        found = [found]
    return found


class Grim(Shy):
    """Something that ends whatever looks at it."""

    def __repr__(self) -> str:
        raise SystemExit

    def __float__(self) -> float:
        raise SystemExit


ODD_CELLS = [10**5_000, nested(5_000), {1: 2, "a": 3}, Shy(), Grim()]


@pytest.mark.claim("STORE", "EVER")
@pytest.mark.parametrize("place", range(len(ODD_CELLS)))
def test_what_a_query_holds_fails_nobody_else(tmp_path: Path, place: int) -> None:
    """A request that cannot be compared is refused before anything is drawn."""
    path, stored = oracle(tmp_path)
    crowd = Crowd(stored)
    crowd.ask([0.1])
    crowd.ask([0.9])
    crowd.ask([ODD_CELLS[place]], request_id="odd")
    crowd.ask([ODD_CELLS[place]])
    crowd.ask([0.2], request_id="even")
    crowd.end()
    assert crowd.found == {0: [0], 1: [1], 3: [-1], 4: [0]}
    assert [type(error) for error in crowd.failed.values()] == [InvalidData]
    assert used(path) == stored.answered_ == 4
    stored.close()
    assert cumae.open(path).answered_ == stored.answered_


@pytest.mark.claim("STORE", "EVER")
def test_a_query_on_which_models_fail_in_any_way_fails_nobody_else() -> None:
    """Some failures are no ``Exception``, and an interrupt in a thread comes from a model."""
    model = FailingOnMarks(DecisionTreeClassifier(max_depth=1))
    given = {**SHARED, "shard_size": 20, "estimator": model}
    one = cumae.EverlastingPredictor(**given).fit(ROWS, (ROWS[:, 0] > 0.3).astype(int))
    crowd = Crowd(one)
    crowd.ask([0.1])
    for mark in FAILURES:
        crowd.ask([0.9])
        crowd.ask([mark])
    crowd.ask([Grim()])
    crowd.ask([0.1])
    crowd.end()
    assert not crowd.failed
    usual = {2 * place + 1: [1] for place in range(len(FAILURES))}
    marked = {2 * place + 2: [0] for place in range(len(FAILURES))}  # the first class
    last = 2 * len(FAILURES)
    assert crowd.found == {0: [0], **usual, **marked, last + 1: [-1], last + 2: [0]}
    assert one.answered_ == last + 3


@pytest.mark.claim("STORE")
def test_what_fails_after_the_draw_is_recorded_all_the_same(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)

    def broken(*_: Any) -> None:
        raise MemoryError

    stored._counter_.journal.remember = broken
    with pytest.raises(MemoryError):
        stored.predict([[0.5]], request_id="a")
    assert used(path) == 1
    stored.close()
    assert cumae.open(path).answered_ == 1


@pytest.mark.claim("STORE")
def test_closing_waits_for_answers_that_are_being_given(tmp_path: Path) -> None:
    """Whoever was answered gets the answer, and all others are told that it is closed."""
    path, stored = oracle(tmp_path)
    crowd = Crowd(stored)
    crowd.ask([0.1])
    closing = threading.Thread(target=stored.close, daemon=True)
    closing.start()
    closing.join(PATIENCE)
    crowd.ask([0.9])
    crowd.end()
    assert crowd.found == {0: [0]}
    assert isinstance(crowd.failed[1], LiveState)
    assert used(path) == cumae.open(path).answered_ == 1


@pytest.mark.claim("USER")
@pytest.mark.parametrize("more", [{"user_ids": True}, {"client_cap": 0.5}], ids=str)
def test_who_must_be_named_is_named_also_in_company(more: dict[str, Any]) -> None:
    one = everlasting(**more)
    name = "users" if "user_ids" in more else "clients"
    crowd = Crowd(one)
    crowd.ask([0.1], **{name: ["anna"]})
    for _ in range(3):
        crowd.ask([0.2])
    crowd.ask([0.9], **{name: ["bert"]})
    crowd.end()
    assert {type(crowd.failed[number]) for number in (1, 2, 3)} == {InvalidData}
    assert crowd.found == {0: [0], 4: [1]}
    assert one._state_.n_kept == 2


@pytest.mark.claim("EVER")
def test_nobody_gets_an_array_with_the_answers_of_others() -> None:
    one = everlasting()
    calls = [call_of(X) for X in ([[0.1], [0.9]], np.ones((1, 3)), [[0.8]])]
    one._counter_._lead(one, calls, 1)
    first, refused, last = calls
    assert [first.result().tolist(), last.result().tolist()] == [[0, 1], [1]]
    with pytest.raises(InvalidData):
        refused.result()
    assert all(call.answers.base is None for call in (first, last))


@pytest.mark.claim("EVER")
def test_a_list_that_grows_while_it_is_counted_is_answered_alone() -> None:
    """What was read decides whether a call fits."""

    class Growing(list):  # type: ignore[type-arg]
        def __len__(self) -> int:
            before = super().__len__()
            if before == 1:
                self.extend(ROWS.tolist())  # more than the phase has answers
            return before

    one = everlasting()
    calls = [call_of([[0.5]]), call_of(Growing([[0.5]])), call_of([[0.1]])]
    one._counter_._lead(one, calls, 1)
    assert [call.batch.done for call in calls] == [True, False, False]
    assert one.answered_ == 1
    one._counter_._lead(one, calls[1:], 1)
    assert len(calls[1].result()) == 401
    assert (one.answered_, one.phase_) == (402, 2)


def test_small_calls_do_not_wait_for_a_large_one(tmp_path: Path) -> None:
    """Those before it are answered and released before its phases are trained."""
    _, stored = oracle(tmp_path)
    done: list[int] = []
    answer = stored._counter_._answer_group

    def watched(desk: Any, calls: list[QueuedCall]) -> None:
        if len(calls[0].call.X) == 900:
            wait_until(lambda: {0, 1, 2} <= set(crowd.found))
            done.append(1)
        answer(desk, calls)

    stored._counter_._answer_group = watched
    crowd = Crowd(stored)
    for count in (1, 1, 1, 900, 1):
        crowd.ask(*np.tile(ROWS, (3, 1))[:count].tolist())
    crowd.end()
    assert done == [1]
    assert not crowd.failed
    stored.close()


@pytest.mark.claim("STORE")
def test_a_commit_that_fails_fails_for_all(tmp_path: Path) -> None:
    path, stored = oracle(tmp_path)
    crowd = Crowd(stored)
    for cell in (0.1, 0.9, 0.2):
        crowd.ask([cell])

    commit = stored._counter_.journal.writer.home.commit

    def broken(change: Any) -> None:
        if change.entries[-1].facts["count"] > 1:
            raise OSError("no space left on device")
        commit(change)

    stored._counter_.journal.writer.home.commit = broken
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


def settle(calls: list[QueuedCall], own: int = 1) -> None:
    """Answer calls by their ids."""
    del own
    batch = CallBatch()
    for call in calls:
        call.answers, call.batch = call.call.request_id, batch
    batch.committed = True
    batch.done = True


def party_of(*names: Any) -> Party:
    return Party([Call(None, request_id=name) for name in names])


class AskingThreads:
    """Threads that stand in a line, of which the first one waits until all do.

    Parameters
    ----------
    answer : callable
        Answers calls, once all others stand in the line; None settles them all.
    count : int
        Number of threads.
    """

    def __init__(self, answer: Any, count: int) -> None:
        self.queue, self.found, self.groups = CallQueue(), {}, []  # type: ignore[var-annotated]
        here, go_on = threading.Event(), threading.Event()

        def lead(calls: list[QueuedCall], own: int) -> None:
            assert own == 1
            self.groups.append([call.call.request_id for call in calls])
            if len(self.groups) == 1:
                here.set()
                assert go_on.wait(PATIENCE)
                settle(calls[:1])
            else:
                answer(calls)

        self._lead, self.threads = lead, []
        for name in range(count):
            self.threads.append(threading.Thread(target=self.ask, args=(name,), daemon=True))
            self.threads[-1].start()
            if name == 0:
                assert here.wait(PATIENCE)
            else:
                wait_until(lambda name=name: len(self.queue._waiting) == name + 1)
        go_on.set()
        for thread in self.threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()

    def ask(self, name: int) -> None:
        try:
            party = party_of(name)
            self.queue.join(party, self._lead)
            self.found[name] = party.calls[0].result()
        except BaseException as error:  # noqa: BLE001 - compared below
            self.found[name] = type(error)


def test_who_is_interrupted_holds_up_nobody() -> None:
    """The second one is interrupted while it answers for itself and another."""

    def interrupted(calls: list[QueuedCall]) -> None:
        if calls[0].call.request_id == 1:
            batch = CallBatch()
            for call in calls[:2]:
                call.batch = batch
            batch.done = True
            raise KeyboardInterrupt
        settle(calls)

    asking = AskingThreads(interrupted, 5)
    assert asking.groups == [[0], [1, 2, 3, 4], [3, 4]]
    assert asking.found == {0: 0, 1: KeyboardInterrupt, 2: CumaeError, 3: 3, 4: 4}
    asking.ask(5)
    assert asking.found[5] == 5
    assert (asking.queue._leader, asking.queue._waiting) == (None, [])


def test_an_interrupt_at_any_line_hangs_nobody() -> None:
    """One thread is interrupted at each line of the line's code in turn; all others get answers."""
    hit, fired = 1, 0
    while hit:
        asking = AskingThreads(settle, 1)
        here, go_on = threading.Event(), threading.Event()
        threads = []

        def slow(calls: Any, own: int, here: Any = here, go_on: Any = go_on) -> None:
            assert own == 1
            here.set()
            assert go_on.wait(PATIENCE)
            settle(calls[:1])

        asking._lead = slow
        threads.append(threading.Thread(target=asking.ask, args=("first",), daemon=True))
        threads[-1].start()
        assert here.wait(PATIENCE)
        asking._lead = settle
        shot = Shot(hit)
        threads.append(threading.Thread(target=shot.run, args=(asking, "shot"), daemon=True))
        threads.append(threading.Thread(target=asking.ask, args=("last",), daemon=True))
        for thread in threads[1:]:
            thread.start()
        wait_until(lambda shot=shot, queue=asking.queue: shot.ended or len(queue._waiting) > 1)
        go_on.set()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), f"stuck after an interrupt at event {hit}"
        assert (asking.found["first"], asking.found["last"]) == ("first", "last")
        assert asking.found["shot"] in ("shot", KeyboardInterrupt)
        fired += shot.fired
        hit = hit + 1 if shot.fired else 0
    assert fired > 15


class Shot:
    """Interrupts its thread at the n-th line that it runs in the module of the queue, once."""

    def __init__(self, place: int) -> None:
        self.left, self.fired, self.ended = place, False, False

    def run(self, asking: AskingThreads, name: str) -> None:
        sys.settrace(self._trace)
        try:
            asking.ask(name)  # type: ignore[arg-type]
        finally:
            sys.settrace(None)
            self.ended = True

    def _trace(self, frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != queues.__file__:
            return None
        text = linecache.getline(queues.__file__, frame.f_lineno).strip()
        # Python never interrupts between the last line of a with block and its end.
        if event == "line" and not self.fired and not text.startswith("with "):
            self.left -= 1
            if self.left == 0:
                self.fired = True
                raise KeyboardInterrupt
        return self._trace


def test_a_leader_that_vanished_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "CHECK_SECONDS", 0.01)
    asking = AskingThreads(settle, 1)
    gone = party_of(7)
    gone.left = True
    asking.queue._leader = gone
    asking.ask(8)
    assert asking.found[8] == 8


def test_answers_that_were_never_settled_do_not_leave() -> None:
    call = call_of(None)
    call.answers, call.batch = [1], CallBatch()
    call.batch.done = True
    with pytest.raises(CumaeError, match="may be charged"):
        call.result()


@pytest.mark.claim("STORE")
def test_a_retry_does_not_fail_with_the_call_behind_it(tmp_path: Path) -> None:
    """Whoever leads for others has its stored answers, whatever becomes of the others."""
    path, stored = oracle(tmp_path)
    first = stored.predict([[0.2]], request_id="known").tolist()
    crowd = Crowd(stored)
    crowd.ask([0.1])
    crowd.ask([0.2], request_id="known")
    crowd.ask_table(np.ones((2, 3)))
    crowd.end()
    assert crowd.found[1] == first
    assert isinstance(crowd.failed[2], InvalidData)
    assert used(path) == 2


@pytest.mark.claim("STORE")
def test_an_error_of_a_signal_handler_is_for_its_own_thread_alone(tmp_path: Path) -> None:
    """A handler may raise anything, wherever its thread is, as when it answers for others."""
    _, stored = oracle(tmp_path)
    mine, other = call_of([[0.1]]), call_of([[0.2]])
    other._thread = 0

    def handled(*_: Any) -> None:
        raise TimeoutError("of a handler")

    stored._counter_.journal.commit = handled
    stored._counter_._lead(stored, [mine, other], 1)
    assert [type(call.outcome()) for call in (mine, other)] == [TimeoutError, CumaeError]
    stored.close()


@pytest.mark.claim("STORE", "EVER")
def test_what_cannot_be_read_is_read_by_its_own_thread() -> None:
    """Its error may be anything, and is for nobody else."""

    class Strange:
        def __len__(self) -> int:
            return 1

        def __array__(self, *_: Any, **__: Any) -> Any:
            raise ZeroDivisionError("0.123")

    one = everlasting()
    crowd = Crowd(one)
    crowd.ask([0.1])
    crowd.ask([0.9])
    crowd.ask_table(Strange())
    crowd.ask([0.2])
    crowd.end()
    assert list(crowd.failed) == [2]
    assert crowd.found == {0: [0], 1: [1], 3: [0]}
    assert one.answered_ == 3


@pytest.mark.claim("STORE")
def test_who_left_while_the_leader_was_interrupted_leads_nobody() -> None:
    """Its call is done and stands in the queue still; it is not answered again."""
    queue = CallQueue()
    first, second = party_of(1), party_of(2)

    def interrupted(calls: list[QueuedCall], own: int) -> None:
        queue._waiting.append(second)
        settle([*calls, *second.calls], own)
        second.left = True  # its thread sees that it is done, and goes on
        queue._look()
        raise KeyboardInterrupt

    lead = queue._lead
    # As if the interrupt came before the queue is tidied up.
    queue._lead = lambda party, answer: answer(party.calls, 1)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        queue.join(first, interrupted)
    queue._lead = lead  # type: ignore[method-assign]
    third, groups = party_of(3), []

    def answer(calls: list[QueuedCall], own: int) -> None:
        groups.append([call.call.request_id for call in calls])
        settle(calls, own)

    asking = threading.Thread(target=queue.join, args=(third, answer), daemon=True)
    asking.start()
    asking.join(PATIENCE)
    assert not asking.is_alive()
    assert groups == [[3]]
    assert second.calls[0].result() == 2


@pytest.mark.claim("STORE")
def test_a_thread_that_leaves_with_the_last_leader_is_not_disturbed() -> None:
    """The leader may be gone between two looks at who it is."""

    class Racing(CallQueue):
        """A queue whose leader ends as soon as somebody who has left looks at it."""

        _now: Party | None = None

        @property
        def _leader(self) -> Party | None:
            found, here = self._now, party
            if here.left:
                self._now = None
            return found

        @_leader.setter
        def _leader(self, leader: Party | None) -> None:
            self._now = leader

    party = party_of(1)
    queue = Racing()
    queue.join(party, settle)
    assert party.calls[0].result() == 1


def test_an_error_of_several_shows_nobody_what_others_asked(tmp_path: Path) -> None:
    """Each has an error of its own, whose frames hold no other query."""
    _, stored = oracle(tmp_path)
    crowd = Crowd(stored)
    cells = (0.11, 0.22, 0.33)
    for cell in cells:
        crowd.ask([cell])

    def broken(_: Any) -> None:
        raise OSError("no space left on device")

    stored._counter_.journal.writer.home.commit = broken
    crowd.end()
    errors = list(crowd.failed.values())
    assert len({id(error) for error in errors}) == 3
    for number in (1, 2):
        trace, seen = crowd.failed[number].__traceback__, []
        while trace is not None:
            for one in trace.tb_frame.f_locals.values():
                calls = one if isinstance(one, list) else [one]
                seen += [part.call.X for part in calls if isinstance(part, QueuedCall)]
                seen += [part.X for part in calls if isinstance(part, Call)]
            trace = trace.tb_next
        assert seen
        assert all(one == [[cells[number]]] for one in seen)


def test_a_call_within_a_call_is_refused_and_nobody_waits_for_it() -> None:
    """Also while another thread is the first in the queue, and waits for the predictor."""
    one = everlasting()
    other = threading.Thread(target=one.predict, args=([[0.1]],), daemon=True)

    class Asks(list):  # type: ignore[type-arg]
        found: Any = None

        def __len__(self) -> int:
            if self.found is None:
                self.found = []
                other.start()
                wait_until(lambda: one._counter_._queue._leader is not None)
                with pytest.raises(LiveState, match="within a call"):
                    one.predict([[0.9]])
                self.found = "refused"
            return super().__len__()

    rows = Asks([[0.2]])
    labelled = threading.Thread(target=one.add_labelled, args=(rows, [0]), daemon=True)
    labelled.start()
    for thread in (labelled, other):
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert rows.found == "refused"
    assert one.answered_ == 1


def test_nobody_waits_for_those_who_do_not_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last group took a minute, and was large; still the next one begins at once."""
    slept: list[float] = []
    monkeypatch.setattr("cumae.predictors.answering.queue.time.sleep", slept.append)
    now = iter(range(1_000))
    monkeypatch.setattr(
        "cumae.predictors.answering.queue.time.monotonic", lambda: next(now) / 1_000
    )
    queue = CallQueue()
    queue._together, queue._seconds = 16, 60.0
    queue.join(party_of(1), settle)
    assert 0 < len(slept) <= 1_000 * queues.MOST_WAIT
    slept.clear()
    queue.join(party_of(2), settle)
    assert slept == []


def test_those_who_come_again_are_one_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever leads waits until all are there that stood here before."""
    monkeypatch.setattr(queues, "MOST_WAIT", PATIENCE)
    queue = CallQueue()
    queue._together, queue._seconds = 3, 2 * PATIENCE
    groups: list[list[Any]] = []

    def answer(calls: list[QueuedCall], own: int) -> None:
        assert own == 1
        groups.append([call.call.request_id for call in calls])
        settle(calls)

    threads = [
        threading.Thread(target=queue.join, args=(party_of(name), answer), daemon=True)
        for name in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert [sorted(group) for group in groups] == [[0, 1, 2]]


def test_a_forked_process_is_refused_while_the_line_is_busy() -> None:
    one = everlasting()
    crowd = Crowd(one)
    crowd.ask([0.1])
    with (
        one._counter_._queue._mutex
    ):  # as if another thread stood at the line when the process forks
        assert answer_in_a_fork(one, [[0.5]]) == "refused"
    crowd.end()
