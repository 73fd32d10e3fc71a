"""A call within a call of the same thread is refused, wherever the outer one is."""

from __future__ import annotations

import functools
import linecache
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import cumae
from cumae import Budget, GenericBBL, LiveState, QueryRelease, UniversalQueryRelease, live, store
from cumae.concepts import Thresholds
from cumae.mechanisms import Coins, GaussianNoise, NoisyMajority
from cumae.predictors.answering import counter
from cumae.predictors.answering.counter import Counter
from cumae.privacy import Pure
from cumae.store.homes.sqlite import SqliteFile
from tests.oracles import ROWS, everlasting, oracle
from tests.tracing import Traced

pytestmark = [
    pytest.mark.claim("STORE", "EVER", "QUERY", "BBL"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

SOURCE = str(Path(cumae.__file__).parent)
LABELS = (ROWS[:, 0] > 0.3).astype(int)
# What refuses within a call. One count of queries, answered_, is left out: it is public.
READERS = ("guarantee_", "remaining_", "phase_", "prior_", "trust_", "n_shards_", "noise_per_vote_")
PUBLISHED = ("hypothesis_", "student_", "first_answers_", "stage_", "rules_")
CALLS: dict[str, Callable[[Any], Any]] = {
    "predict": lambda one: one.predict([[0.5]]),
    "fit": lambda one: one.fit(ROWS, LABELS),
    "save_to": lambda one: one.save_to("/nowhere/oracle.db"),
    "to_arrays": lambda one: one.to_arrays(),
    "rotate_key": lambda one: one.rotate_key(),
    "close": lambda one: one.close(),
    "add_labelled": lambda one: one.add_labelled([[0.5]], [1]),
    "add_labels": lambda one: one.add_labels(["a"], [1]),
    "add_unlabelled": lambda one: one.add_unlabelled([[0.5]]),
    "noisy_votes": lambda one: one.noisy_votes([[0.5]]),
    **{
        name: functools.partial(lambda name, one: getattr(one, name), name)
        for name in (*READERS, *PUBLISHED)
    },
}


def within(one: Any) -> list[str]:
    """Return what a call within a call is not refused."""
    passed = []
    for name, call in CALLS.items():
        if not hasattr(type(one), name):
            continue
        try:
            call(one)
        except LiveState as refused:
            if "within a call" in str(refused):
                continue
        except Exception:  # noqa: BLE001, S110 - it went further than it may
            pass
        passed.append(name)
    return passed


def in_a_call(frame: FrameType | None) -> bool:
    """Tell whether a line runs between the beginning and the end of a call.

    Calls for answers begin in the counter, with the line that says so; all others in ``live``.
    """
    while frame is not None and frame.f_code.co_filename != live.__file__:
        if frame.f_code is Counter.answer.__code__:
            line = linecache.getline(counter.__file__, frame.f_lineno).strip()
            return not line.startswith(("outside =", "try:", "CALLS.objects = (*"))
        frame = frame.f_back
    return frame is not None


class AtEveryLine(Traced):
    """Tries everything within a call, at each line of cumae that runs in it.

    Parameters
    ----------
    one : StatefulPredictor
        What is called.
    """

    def __init__(self, one: Any) -> None:
        self.one, self.seen = one, set[tuple[str, int]]()

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(SOURCE) or file == live.__file__:
            return None
        place = (file, frame.f_lineno)
        if event == "line" and place not in self.seen and in_a_call(frame):
            self.seen.add(place)
            passed = within(self.one)
            if passed:
                raise AssertionError(f"{passed} within a call, at {place}")
        return self.trace


def in_memory(_: Path) -> Any:
    return everlasting()


def in_a_file(folder: Path) -> Any:
    return oracle(folder)[1]


def release(folder: Path, mechanism: str = "auto") -> Any:
    path = folder / f"{mechanism}.db"
    made = QueryRelease(Thresholds(), 5.0, 1e-6, max_queries=450, mechanism=mechanism)
    made.fit(ROWS, LABELS).save_to(path)
    return cumae.open(path)


def offline(folder: Path) -> Any:
    return release(folder, "offline")


def universal(_: Path) -> Any:
    return UniversalQueryRelease(Thresholds(), 5.0, 1e-6, n_first=10).fit(ROWS, LABELS)


def bbl(_: Path) -> Any:
    return GenericBBL(Thresholds(), 60.0).fit(np.tile(ROWS, (8, 1)), np.tile(LABELS, 8))


KINDS = [in_memory, in_a_file, release, offline, universal, bbl]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_a_predictor_can_be_used_within_a_call(
    kind: Callable[[Path], Any], tmp_path: Path
) -> None:
    one = kind(tmp_path)
    with AtEveryLine(one) as watched:
        answers = one.predict(np.tile(ROWS, (2, 1))[:420])  # over the end of a phase
    assert len(answers) == 420
    assert one.answered_ == 420 if hasattr(one, "answered_") else one.remaining_ != 450
    assert len(watched.seen) > 100
    for name, call in CALLS.items():  # none of them is left behind as running
        if name in READERS and hasattr(type(one), name):
            call(one)
    one.close()


OUTER: dict[str, Callable[[Any, Path], Any]] = {
    "add_labelled": lambda one, _: one.add_labelled(ROWS[:3], LABELS[:3]),
    "prior_": lambda one, _: one.prior_,
    "to_arrays": lambda one, _: one.to_arrays(),
    "save_to": lambda one, path: one.save_to(path),
    "fit": lambda one, _: one.fit(ROWS, LABELS),
    "close": lambda one, _: one.close(),
}


@pytest.mark.parametrize("name", OUTER)
def test_other_calls_are_no_place_for_calls_either(name: str, tmp_path: Path) -> None:
    one = everlasting()
    with AtEveryLine(one) as watched:
        OUTER[name](one, tmp_path / "oracle.db")
    assert watched.seen


class Planted:
    """Code of a user that runs within a call: it tries everything once, and remembers."""

    def __init__(self) -> None:
        self.one: Any = None
        self.passed: list[str] | None = None

    def __call__(self, *_: Any) -> None:
        if self.one is not None and self.passed is None:
            self.passed = within(self.one)


PLANTED = Planted()


class AskingTree(DecisionTreeClassifier):  # type: ignore[misc]
    """A model that asks its own oracle."""

    def predict(self, X: Any, check_input: bool = True) -> Any:
        PLANTED()
        return super().predict(X, check_input)


def asking() -> Any:
    """Return a predictor of models that are trained and asked one by one."""
    made = cumae.EverlastingPredictor(AskingTree(max_depth=2), 60.0, shard_size=40, prior=False)
    return made.fit(ROWS, LABELS)


class AskingAtItsEnd:
    def __del__(self) -> None:
        PLANTED()


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Planted]:
    monkeypatch.setattr(f"{__name__}.PLANTED", Planted())
    yield PLANTED
    assert PLANTED.passed == []


def before_noise(monkeypatch: pytest.MonkeyPatch, run: Callable[[], object]) -> None:
    """Let something run in the middle of each draw of noise."""
    take = Coins.take

    def taking(self: Coins, *what: Any) -> Any:
        run()
        return take(self, *what)

    monkeypatch.setattr(Coins, "take", taking)


def test_a_signal_handler_is_refused(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.one = everlasting()
    before = signal.signal(signal.SIGUSR1, planted)
    try:
        before_noise(monkeypatch, functools.partial(signal.raise_signal, signal.SIGUSR1))
        assert len(planted.one.predict(ROWS[:3])) == 3
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_finaliser_is_refused(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.one = everlasting()
    before_noise(monkeypatch, AskingAtItsEnd)
    assert len(planted.one.predict(ROWS[:3])) == 3


def test_a_model_is_refused(planted: Planted) -> None:
    planted.one = asking()
    assert len(planted.one.predict(ROWS[:3])) == 3


def test_who_shows_progress_is_refused(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    one = asking()
    monkeypatch.setattr("cumae.progress.Progress.advance", planted)
    planted.one = one
    assert len(one.predict(np.tile(ROWS, (2, 1))[:420])) == 420


def test_who_shows_a_warning_is_refused(planted: Planted) -> None:
    labels = np.random.default_rng(0).integers(0, 2, 3_000)
    rows = np.random.default_rng(1).random((3_000, 1))
    made = QueryRelease(
        Thresholds(), 20.0, 1e-5, max_queries=60, mechanism="stability", max_unstable=3
    )
    planted.one = made.fit(rows, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = planted  # type: ignore[assignment]
        assert len(planted.one.predict(rows[:50])) == 50


# In a file


def in_commit(monkeypatch: pytest.MonkeyPatch, run: Callable[[], object]) -> None:
    """Let something run once, right after a commit and within it."""
    commit = SqliteFile.commit

    def committing(self: SqliteFile, change: Any) -> None:
        commit(self, change)
        monkeypatch.undo()
        run()

    monkeypatch.setattr(SqliteFile, "commit", committing)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, ZeroDivisionError])
def test_an_interrupt_that_comes_in_a_commit_ends_the_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    path, opened = oracle(tmp_path)

    def interrupt() -> None:
        raise error

    in_commit(monkeypatch, interrupt)
    with pytest.raises(error):
        opened.predict(ROWS[:5])
    assert len(opened.predict(ROWS[:2])) == 2  # all was committed, so it goes on
    opened.close()
    assert store.status(path).totals.used == 7


def test_a_handler_that_closes_during_a_commit_does_not_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, opened = oracle(tmp_path)
    before = signal.signal(signal.SIGTERM, lambda *_: opened.close())
    try:
        in_commit(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(LiveState, match="within a call"):
            opened.predict(ROWS[:5])
    finally:
        signal.signal(signal.SIGTERM, before)
    opened.close()
    assert store.status(path).totals.used == 5


def test_what_other_threads_read_of_rows_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many unclear answers are left depends on rows, so ``remaining_`` waits for the debit."""
    one = release(tmp_path, "stability")
    found: list[int] = []
    reader = threading.Thread(target=lambda: found.append(one.remaining_), daemon=True)
    commit, early = SqliteFile.commit, []

    def committing(self: SqliteFile, change: Any) -> None:
        reader.start()
        reader.join(0.2)  # it must not end before the commit, however long that takes
        early.extend(found)
        monkeypatch.undo()
        commit(self, change)

    monkeypatch.setattr(SqliteFile, "commit", committing)
    one.predict(ROWS[:5])
    reader.join()
    assert early == []
    assert found == [one.remaining_]
    one.close()


# Mechanisms and accounts


@pytest.mark.claim("NOISE")
def test_a_mechanism_is_refused_within_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    votes = NoisyMajority(GaussianNoise(5.0, moves=1), 2, 10)
    refused: list[str] = []

    def ask() -> None:
        try:
            votes.release([[3, 4]])
        except LiveState as error:
            refused.append(str(error))

    before_noise(monkeypatch, ask)
    votes.release([[3, 4]])
    assert len(refused) == 1
    assert votes.asked == 1


@pytest.mark.claim("BUDGET")
@pytest.mark.parametrize("where", ["memory", "json", "ledger"])
def test_a_payment_within_a_payment_is_refused(tmp_path: Path, where: str) -> None:
    """At every line of a payment, once it has begun."""
    budget, paid, begun = Budget(epsilon=10.0), [0], [False]
    if where == "json":
        budget.save(tmp_path / "account.json")
    elif where == "ledger":
        budget.save_to(tmp_path / "account.db")
    refused = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal refused
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        begun[0] |= frame.f_code.co_name == "_with"  # which the lock is held for
        if event == "line" and begun[0] and frame.f_code.co_name != "spend":
            for call in (budget.check, budget.spend):
                try:
                    call(Pure(0.25))
                    paid[0] += call == budget.spend
                except LiveState:
                    refused += 1
        return trace

    sys.settrace(trace)
    try:
        budget.spend(Pure(1.0))
    finally:
        sys.settrace(None)
    assert refused
    assert budget.spent[0] == 1.0 + 0.25 * paid[0]
    assert len(budget.entries) == 1 + paid[0]
