"""A call of an oracle that is broken off, at any line: nothing is lost, and nothing is free."""

from __future__ import annotations

import itertools
import linecache
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import cumae
from cumae import CumaeError, GenericBBL, QueryRelease, StoreFailed, UniversalQueryRelease, store
from cumae.checks.differences import difference
from cumae.concepts import Thresholds
from cumae.predictors import waiting
from cumae.predictors.answering import counter, events, queue
from cumae.predictors.answering.events import EVENTS, Charged, Entered, Whole
from cumae.predictors.state import restore
from cumae.store import journal, pieces, writer
from cumae.store.journal import DurableJournal
from cumae.store.writer import Change
from tests.oracles import ROWS, everlasting, oracle
from tests.states import rows_of
from tests.tracing import Traced

pytestmark = [pytest.mark.claim("STORE"), pytest.mark.filterwarnings("ignore::UserWarning")]

CORE = (counter, queue, events, waiting, journal, writer, pieces)
FILES = {module.__file__ for module in CORE}
# Python never interrupts between the last line of a with block and its end, and not at words that
# do nothing by themselves.
IDLE = ("with ", "try:", "finally:", "else:", "CALLS.objects = outside")
# The way to an answer is the same for all kinds of events.
SAME = {"answer", "_lead", "_taken", "_answer_group", "join", "_look", "__init__"}
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - syncs are free there
LABELS = (ROWS[:, 0] > 0.3).astype(int)


class Interrupt(Traced):
    """Raises ``KeyboardInterrupt`` at the n-th line of counter, events, journal or writer, once.

    Parameters
    ----------
    place : int
        Which of the lines.
    start : str
        What lines that count begin with.
    passed : set of str
        Functions whose lines do not count.
    """

    def __init__(self, place: int, start: str = "", passed: Iterable[str] = ()) -> None:
        self.left, self.start, self.passed, self.fired = place, start, passed, ""
        self._seen: set[tuple[str, int]] = set()

    def trace(self, frame: Any, event: str, _: Any) -> Any:
        file, line = frame.f_code.co_filename, frame.f_lineno
        if file not in FILES or frame.f_code.co_name in self.passed:
            return None
        text = linecache.getline(file, line).strip()
        if event != "line" or text.startswith(IDLE) or not text.startswith(self.start):
            return self.trace
        if not self.fired and (file, line) not in self._seen:  # a line counts once
            self._seen.add((file, line))
            self.left -= 1
            if self.left == 0:
                self.fired = f"{frame.f_code.co_qualname}: {text}"
                raise KeyboardInterrupt
        return self.trace


# --- every kind of event


class Scenario(NamedTuple):
    """A call that is broken off.

    Parameters
    ----------
    make : callable
        Returns a predictor that is ready for the call.
    call : callable
        Gets the oracle that the predictor became.
    records : set of str
        What the call records.
    """

    make: Callable[[], Any]
    call: Callable[[Any], Any]
    records: set[str]


def asked(one: Any, left: int = 2, **ids: Any) -> Any:
    """Ask a predictor until so many answers are left in its phase."""
    count = one._state_.left - left
    one.predict(rows_of(ROWS, 0, count), **{name: given(count) for name, given in ids.items()})
    return one


def bbl(**more: Any) -> Any:
    given: dict[str, Any] = {"shard_size": 10, "phase_length": 20, "query_share": 0.5, **more}
    return GenericBBL(Thresholds(), epsilon=60.0, label_share=0.1, **given).fit(ROWS, LABELS)


def fresh(**more: Any) -> Any:
    """Return an oracle whose next answer but one ends its phase."""
    one = everlasting(fresh=True, growth=1.5, **more).add_unlabelled(np.tile(ROWS, (3, 1)))
    one.predict(rows_of(ROWS, 0, one._state_.next_phase_rows.until_next(one._state_) - 2))
    return one


def bbl_fresh() -> Any:
    one = bbl(fresh=True).add_unlabelled(np.tile(ROWS, (1, 1)))
    one.predict(ROWS[:18])
    return one


def named(one: Any) -> Any:
    one.predict(ROWS[:3], query_ids=["a", "b", "c"])
    return one


def release(mechanism: str, **more: Any) -> Any:
    given: dict[str, Any] = {"max_queries": 20, "mechanism": mechanism, **more}
    return QueryRelease(Thresholds(), 60.0, 1e-5, **given).fit(ROWS, LABELS)


def universal(**more: Any) -> Any:
    made = UniversalQueryRelease(Thresholds(), 60.0, n_first=10, **more).fit(ROWS, LABELS)
    made.predict(ROWS[:8])
    return made


SCENARIOS: dict[str, Scenario] = {
    "answers": Scenario(
        everlasting, lambda one: one.predict([[0.5]], query_ids=["first"]), {"Answered"}
    ),
    "users": Scenario(
        lambda: everlasting(user_ids=True),
        lambda one: one.predict(ROWS[:3], users=["a", "a", 7]),
        {"Answered"},
    ),
    "clients": Scenario(
        lambda: everlasting(client_cap=0.5),
        lambda one: one.predict(ROWS[:3], clients=["a", "a", "b"]),
        {"Answered"},
    ),
    "memo": Scenario(
        lambda: everlasting(memoize=True), lambda one: one.predict(ROWS[[1, 1, 2]]), {"Answered"}
    ),
    "a request": Scenario(
        everlasting, lambda one: one.predict(ROWS[:3], request_id="one"), {"Answered"}
    ),
    "labels": Scenario(
        lambda: named(everlasting()),
        lambda one: one.add_labels(["a", "c"], [1, 0]),
        {"LabelsArrived"},
    ),
    "labelled rows": Scenario(
        lambda: everlasting(user_ids=True),
        lambda one: one.add_labelled(ROWS[:3], LABELS[:3], users=[7, "a", "b"]),
        {"Labelled"},
    ),
    "supplied rows": Scenario(
        lambda: everlasting(fresh=True, growth=1.5),
        lambda one: one.add_unlabelled(ROWS[:3]),
        {"Supplied"},
    ),
    "a phase": Scenario(
        lambda: asked(everlasting()),
        lambda one: one.predict(ROWS[:5]),
        {"Answered", "PhasePrepared", "Entered"},
    ),
    "a late phase": Scenario(
        lambda: asked(everlasting(late=0.4), left=162),
        lambda one: one.predict(ROWS[:5]),
        {"Answered", "PhasePrepared"},
    ),
    "a phase that is written ahead": Scenario(
        lambda: asked(everlasting(late=0.4, background=True), left=82),
        lambda one: one.predict(ROWS[:85]),
        {"Answered", "Entered"},
    ),
    "a phase of labelled rows": Scenario(
        fresh,
        lambda one: one.predict(ROWS[:5]),
        {"Answered", "PhasePrepared", "Entered"},
    ),
    "a late phase of labelled rows": Scenario(
        lambda: fresh(late=0.4),
        lambda one: one.predict(ROWS[:5]),
        {"Answered", "PhasePrepared"},
    ),
    "bbl": Scenario(
        lambda: asked(bbl()),
        lambda one: one.predict(ROWS[:5]),
        {"Answered", "Used", "LabelsDrawn", "Entered"},
    ),
    "bbl, supplied rows": Scenario(
        bbl_fresh,
        lambda one: one.predict(ROWS[:5]),
        {"Answered", "Used", "LabelsDrawn", "Entered"},
    ),
    "a release": Scenario(
        lambda: release("gaussian"), lambda one: one.noisy_votes(ROWS[:3]), {"Answered"}
    ),
    "stability": Scenario(
        lambda: release("stability", max_unstable=3),
        lambda one: one.predict(np.full((9, 1), 0.3)),
        {"Answered"},
    ),
    "offline": Scenario(lambda: release("offline"), lambda one: one.predict(ROWS[:5]), {"Entered"}),
    "a hypothesis": Scenario(
        universal, lambda one: one.predict(ROWS[:5]), {"Answered", "Used", "Entered"}
    ),
    "a student": Scenario(
        lambda: universal(student=LogisticRegression()),
        lambda one: one.predict(ROWS[:5]),
        {"Answered", "Whole", "Entered"},
    ),
    "a new key": Scenario(everlasting, lambda one: one.rotate_key(), {"Whole"}),
    "a request over phases": Scenario(
        universal,
        lambda one: one.predict(ROWS[:5], request_id=1),
        {"Answered", "Used", "Entered", "Remembered"},
    ),
}

DURABLE = {"a new key", "a request", "a request over phases", "a phase that is written ahead"}


def broken_off(path: Path, scenario: Scenario, place: int, passed: Iterable[str]) -> str:
    """Break a call off, and compare memory and file; return where it was broken off."""
    opened = cumae.open(path)
    answered = False
    with Interrupt(place, passed=passed) as shot, suppress(KeyboardInterrupt, StoreFailed):
        scenario.call(opened)
        answered = True
    assert answered != bool(shot.fired), shot.fired
    try:
        opened._settled_state()
    except StoreFailed:  # it refuses
        opened.close()
        known = None
    else:  # it goes on, and the file holds all that memory does
        known = opened._state_.to_facts()
        opened.close()
    again = cumae.open(path)
    state, totals = again._state_, again._counter_.journal.writer.totals
    if known is not None:
        found = state.to_facts()
        if state.rule is None:  # what was published answers for free, and nobody counts that
            del known["answered"], found["answered"]
        assert not difference(known, found), shot.fired
    assert (totals.used, totals.phase) == (state.used, state.phase_number), shot.fired
    assert totals.answers == state.answered, shot.fired
    with suppress(CumaeError):
        scenario.call(again)
    again.close()
    return shot.fired


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as name:
        yield Path(name)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_call_is_broken_off_at_every_line(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = SCENARIOS[name]
    scenario.make().save_to(folder / "oracle.db")
    assert recorded(scenario, copied(folder, 0), monkeypatch) == scenario.records
    passed = SAME if name != "answers" else ()
    for place in itertools.count(1):
        path = copied(folder, place)
        if not broken_off(path, scenario, place, passed):
            break
        shutil.rmtree(path.parent)
    assert place > 50


def copied(folder: Path, number: int) -> Path:
    """Return a copy of the oracle in a folder, with its keys."""
    here = folder / str(number)
    here.mkdir()
    shutil.copy(folder / "oracle.db", here)
    shutil.copytree(folder / "oracle.db.keys", here / "oracle.db.keys")
    return here / "oracle.db"


def recorded(scenario: Scenario, path: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the kinds of events that a call records."""
    found, real = set(), DurableJournal.record

    def record(self: Any, event: Any, *said: Any) -> None:
        found.add(type(event).__name__)
        real(self, event, *said)

    with monkeypatch.context() as patch:
        patch.setattr(DurableJournal, "record", record)
        opened = cumae.open(path)
        scenario.call(opened)
        opened.close()
    return found


def test_every_kind_of_event_is_broken_off() -> None:
    events: list[type] = [*EVENTS.values(), Whole, Entered]
    kinds = {kind.__name__ for kind in events}
    seen = set().union(*(scenario.records for scenario in SCENARIOS.values()))
    assert seen | {Charged.__name__} == kinds  # what was broken off is charged


# --- in memory


@pytest.mark.parametrize("name", SCENARIOS)
def test_in_memory_an_event_is_applied_whole_or_not_at_all(name: str) -> None:
    """What is counted is there, once; what was reserved stays spent."""
    scenario = SCENARIOS[name]
    if name in DURABLE:
        return  # of durable oracles alone
    arrays = scenario.make().to_arrays()
    for place in itertools.count(1):
        one = restore(arrays)
        before = one._state_.answered
        with Interrupt(place, passed=SAME) as shot, suppress(KeyboardInterrupt):
            scenario.call(one)
        state = one._state_
        tables = [getattr(state, part, None) for part in ("kept", "labelled")]
        for table in [each for each in tables if isinstance(each, waiting.KeptRows)]:
            counts = {len(table.weights), len(table.rows)} if table.n_rows else {0}
            assert counts == {table.n_rows}, shot.fired
        supplied = getattr(state, "waiting", None)
        if isinstance(supplied, waiting.FreshRows):
            assert len(supplied) == (0 if supplied.all() is None else len(supplied.all()))
        assert not difference(state.to_facts(), restore(state.to_arrays())._state_.to_facts())
        assert state.answered - before <= 9
        with suppress(CumaeError):
            scenario.call(one)
        if not shot.fired:
            break
    assert place > 20


# --- what else breaks a call off


def test_who_waits_for_a_commit_that_was_broken_off_gets_no_answer(tmp_path: Path) -> None:
    _, opened = oracle(tmp_path)
    held = opened._counter_.journal.writer
    first, second = (held.add(Change([{"event": "rows", "count": 0}])) for _ in range(2))
    with Interrupt(1, "if changes:"), pytest.raises(KeyboardInterrupt):
        held.commit(first)  # it has taken both changes out of the queue
    with pytest.raises(StoreFailed):
        held.commit(second)
    opened.close()


@pytest.mark.parametrize("mechanism", ["stability", "between"])
def test_a_warning_that_is_an_error_comes_after_the_debit(tmp_path: Path, mechanism: str) -> None:
    """It says where the unclear answers ran out, which is private."""
    path = tmp_path / "oracle.db"
    labels = np.random.default_rng(0).integers(0, 2, 3_000)
    rows = np.random.default_rng(1).random((3_000, 1))
    made = QueryRelease(
        Thresholds(), 20.0, 1e-5, max_queries=60, mechanism=mechanism, max_unstable=3
    )
    made.fit(rows, labels).save_to(path)
    opened = cumae.open(path)
    assert opened.remaining_ == 60
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="not looked at"):
            opened.predict(rows[:50])
    opened.close()
    opened = cumae.open(path)
    assert opened.remaining_ == 0
    opened.close()
    assert store.status(path).totals.answers == 50


@pytest.mark.claim("STORE", "QUERY")
@pytest.mark.parametrize("mechanism", ["stability", "between"])
def test_nothing_is_told_of_answers_that_did_not_leave(tmp_path: Path, mechanism: str) -> None:
    """A warning says where the unclear answers ran out; without a commit nobody has paid for it."""
    path = tmp_path / "oracle.db"
    labels = np.random.default_rng(0).integers(0, 2, 3_000)
    rows = np.random.default_rng(1).random((3_000, 1))
    made = QueryRelease(
        Thresholds(), 20.0, 1e-5, max_queries=60, mechanism=mechanism, max_unstable=3
    )
    made.fit(rows, labels).save_to(path)
    opened = cumae.open(path)

    def broken(_: Any) -> None:
        raise OSError("no space left on device")

    opened._counter_.journal.writer.home.commit = broken
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(StoreFailed):
            opened.predict(rows[:50])
    assert [str(one.message) for one in told if "not looked at" in str(one.message)] == []


def test_what_was_drawn_for_a_call_that_failed_is_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, opened = oracle(tmp_path)

    def broken(*_: Any) -> None:
        raise MemoryError

    # After the draw, and before anything was recorded.
    monkeypatch.setattr("cumae.predictors.everlasting.predictor.weights_of_votes", broken)
    with pytest.raises(MemoryError):
        opened.predict(ROWS[:7])
    monkeypatch.undo()
    opened.predict(ROWS[:2])
    opened.close()
    totals = store.status(path).totals
    assert (totals.used, totals.answers, totals.charged) == (9, 2, 7)
    opened = cumae.open(path)
    assert opened._state_.spent.asked == 9
    assert opened._state_.n_kept == 2
    opened.close()


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, ZeroDivisionError])
def test_what_breaks_a_phase_change_off_is_what_is_raised(
    error: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal handler may raise while the whole state is gathered, which may take seconds."""
    path, opened = oracle(tmp_path)
    opened.predict(rows_of(ROWS, 0, opened._state_.left - 3))

    def handled(*_: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(journal.DurableJournal, "_begin_epoch", handled)
        with pytest.raises(error):
            opened.predict(ROWS[:10])
    with pytest.raises(StoreFailed):  # memory may know more than the disk
        opened.predict(ROWS[:1])
    opened.close()
    cumae.open(path).close()
