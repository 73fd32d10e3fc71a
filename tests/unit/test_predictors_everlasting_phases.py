"""Phases of everlasting prediction: batches, counts, what is kept, and late queries."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

import cumae
from cumae import InvalidData, InvalidParameter, exact
from cumae.data import SomeRows
from cumae.ensembles import trainer as shards
from cumae.ensembles.ensemble import Ensemble
from cumae.errors import LiveState
from cumae.predictors import recipes, waiting
from cumae.predictors.answering import events
from cumae.predictors.everlasting import keeping, phases, renewal
from cumae.predictors.everlasting import state as states
from cumae.predictors.everlasting.rules import EverlastingRules
from cumae.predictors.waiting import FreshRows, KeptRows, joined
from tests.everlasting import N, X, Y, oracle, rows_of_phases
from tests.forks import answer_in_a_fork

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(1)
MOST_AT_ONCE = 12  # tables of calls that somebody who asks may join


# Batches and counts


def test_a_batch_may_cross_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = RNG.random((5 * N + 17, 1))
    whole = oracle().fit(X, Y)
    parts = oracle().fit(X, Y)
    together = whole.predict(queries)
    alone = np.concatenate([parts.predict(part) for part in np.array_split(queries, 37)])
    assert np.array_equal(together, alone)
    assert (whole.phase_, whole.answered_) == (parts.phase_, parts.answered_) == (6, len(queries))
    assert whole.predict(np.zeros((0, 1))).tolist() == []


class Counting(RuleBasedStateMachine):
    """Whatever is asked in whatever order: counts hold, rows are used once, phases follow."""

    @initialize(growth=st.sampled_from([1.0, 1.3]), late=st.sampled_from([0.0, 0.25]))
    def begin(self, growth: float, late: float) -> None:
        self.one = oracle(growth=growth, late=late, random_state=None).fit(X[:60], Y[:60])
        self.growth, self.late, self.asked = growth, late, 0
        self.sizes = [60]
        self.trained: list[int] = []

    @rule(count=st.integers(0, 150))
    def ask(self, count: int) -> None:
        before = self.one.phase_
        answers = self.one.predict(RNG.random((count, 1)))
        self.asked += count
        assert len(answers) == count
        assert set(answers.tolist()) <= {0, 1}
        assert self.one.phase_ >= before

    @rule(cell=st.sampled_from([math.nan, math.inf]))
    def ask_nonsense(self, cell: float) -> None:
        assert self.one.predict([[0.5], [cell]]).tolist()[1] == -1
        self.asked += 2

    @rule()
    def ask_another_width(self) -> None:
        with pytest.raises(InvalidData, match="features"):
            self.one.predict(np.array([[0.5, 0.5]]))

    @rule(odd=st.sampled_from([[0.5, 0.5], [], "text", None, [[0.5]]]))
    def ask_what_is_no_row(self, odd: Any) -> None:
        assert self.one.predict([odd, [0.5]]).tolist()[0] == -1
        self.asked += 2

    @precondition(lambda self: self.asked > 200)
    @rule()
    def fit_again(self) -> None:
        self.one.fit(X[:60], Y[:60])
        self.asked = 0
        assert self.one.phase_ == 1

    @invariant()
    def counts_hold(self) -> None:
        if not hasattr(self, "one"):
            return
        one = self.one
        assert one.answered_ == self.asked
        assert one.remaining_ == math.inf
        # Releases of all phases so far, from sizes alone.
        sizes, tail, released = [60], 0, 0
        while len(sizes) < one.phase_:
            releases = math.ceil(self.growth * sizes[-1])
            late = min(releases - 1, int(self.late * releases))
            released += releases
            sizes.append(tail + releases - late)
            tail = late
        assert one._state_.phase.n_rows == sizes[-1]
        assert released + math.ceil(self.growth * sizes[-1]) - one._state_.left == self.asked
        waiting = one._state_.n_kept + (
            one._state_.following.n_rows if one._state_.following else 0
        )
        assert waiting == tail + self.asked - released


Counting.TestCase.settings = settings(max_examples=15, stateful_step_count=12, deadline=None)
TestCounting = Counting.TestCase


def test_threads_share_one_count() -> None:
    one = oracle(random_state=None).fit(X, Y)
    threads = [
        threading.Thread(target=lambda: [one.predict(X[:7]) for _ in range(40)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one.answered_ == 4 * 40 * 7
    assert one.phase_ == math.ceil(one.answered_ / N)


def test_declared_categories_are_learnt_in_every_phase() -> None:
    # Rows of later phases are encoded already, and must not be encoded a second time.
    rows = pd.DataFrame({"size": RNG.random(N), "job": RNG.choice(["baker", "nurse", "poet"], N)})
    labels = (rows["job"] == "nurse").astype(int)
    columns = {"size": (0, 1), "job": ["baker", "nurse", "poet"]}
    for model in (None, GaussianNB()):
        one = oracle(model, epsilon=math.inf, prior=False, shard_size=40, columns=columns)
        one.fit(rows, labels)
        for _ in range(3):
            assert np.mean(one.predict(rows) == labels) > 0.95
        one.predict(rows)
        assert one.phase_ == 4


# What is kept


@pytest.mark.claim("EVER")
def test_rows_are_dropped_when_they_were_used() -> None:
    one = oracle().fit(X, Y)
    gc.collect()
    assert not [thing for thing in gc.get_objects() if isinstance(thing, SomeRows)]
    first = one._state_.phase
    one.predict(RNG.random((N + 1, 1)))
    assert one.phase_ == 2
    assert one._state_.n_kept == 1
    assert one._state_.following is None
    del first
    gc.collect()
    alive = [thing for thing in gc.get_objects() if isinstance(thing, phases.OpenPhase)]
    assert sum(phase is one._state_.phase for phase in alive) == 1
    held = gc.get_referents(vars(one._state_))
    mine = [thing for thing in held if isinstance(thing, phases.OpenPhase)]
    assert len(mine) == 1


def test_there_is_only_one_of_it() -> None:
    one = oracle(random_state=None).fit(X, Y)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LiveState):
            duplicate(one)
    with pytest.raises(NotFittedError):
        clone(one).predict(X)
    assert answer_in_a_fork(one, [[0.5]]) == "refused"


# Late queries


@pytest.mark.claim("LATE")
def test_late_queries_wait_for_the_phase_after_next(monkeypatch: pytest.MonkeyPatch) -> None:
    trained = rows_of_phases(monkeypatch)
    one = oracle(late=0.25).fit(X, Y)
    queries = RNG.random((3 * N, 1))
    one.predict(queries[: N - 100])
    assert len(trained) == 2  # phase 2 has its rows, and phase 1 goes on
    assert one.phase_ == 1
    one.predict(queries[N - 100 : N])
    assert one.phase_ == 1
    one.predict(queries[N : N + 1])
    assert one.phase_ == 2
    one.predict(queries[N + 1 :])
    asked = queries.ravel().tolist()
    assert trained[1][0] == asked[: N - 100]
    # Phase 2 has 300 rows and so 300 answers, of which the last 75 are late.
    assert trained[2][0] == asked[N - 100 : N + 225]
    used = [value for rows, _, _ in trained[1:] for value in rows]
    assert len(set(used)) == len(used)


Seen = list[tuple[str, int]]  # what ran, and in which thread

# What takes a time that grows with rows: of all kinds of oracles, of some, and of those in files.
SPIED: list[tuple[Any, str]] = [
    (phases.PhaseSetup, "train"),
    (phases.NextRows, "table"),
    (phases.NextRows, "drawn"),
    (recipes.Recipe, "kept_for"),
    (EverlastingRules, "majority"),
    (phases.OpenPhase, "packed"),
    (Ensemble, "to_facts"),
    (KeptRows, "rows"),
    (KeptRows, "weights"),
]
SPIED_OF: dict[str, list[tuple[Any, str]]] = {
    "queries": [(exact, "gaussian_bounds")],
    "fresh": [(phases.ToLabel, "labelled"), (FreshRows, "all")],
    "named": [(exact, "gaussian_bounds"), (KeptRows, "at")],
}
SPIED_IN_FILES = [(keeping, "sorted_rows"), (keeping, "first_of"), (states, "first_of")]


def spy(monkeypatch: pytest.MonkeyPatch, spied: list[tuple[Any, str]]) -> Seen:
    """Return the list of what will have run, and whenever many tables were joined."""
    seen: Seen = []
    for owner, name in spied:
        own = vars(owner)[name]

        def called(*given: Any, own: Any = own, name: str = name) -> Any:
            seen.append((name, threading.get_ident()))
            made: Any = own.fget if isinstance(own, property) else own
            return made(*given)

        monkeypatch.setattr(owner, name, property(called) if isinstance(own, property) else called)

    def joining(parts: Any) -> Any:
        if len(parts) > MOST_AT_ONCE:
            seen.append(("joined", threading.get_ident()))
        return joined(parts)

    for module in (phases, renewal, waiting, events):
        monkeypatch.setattr(module, "joined", joining)
    return seen


def ask_until_the_phase_changes(one: Any, *, named: bool) -> None:
    for start in range(0, 2 * N, 10):
        ids, who = range(N + start, N + start + 10), {}
        if named:
            who = {"users": ids, "clients": [start % 70] * 10, "query_ids": ids}
        one.predict(RNG.random((10, 1)), **who)
        if one.phase_ > 1:
            return
        if named:
            with suppress(InvalidParameter):  # they have become rows of the next phase
                one.add_labels(ids[:5], [1] * 5)


@pytest.mark.claim("LATE", "FRESH", "STORE", "LABELLED", "USER")
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("kind", SPIED_OF)
def test_what_grows_with_rows_runs_in_the_thread_of_the_training(
    kind: str, stored: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks joins and labels no rows, draws no split, trains nothing and calibrates no noise.

    Nor does it compute the table from which noise of a new scale is drawn, or make bytes of models,
    of rows that wait, or of ids.
    """
    monkeypatch.setattr(states, "AHEAD", 10)
    spied = SPIED + SPIED_OF[kind] + SPIED_IN_FILES * stored
    seen = spy(monkeypatch, spied)
    # Phases that grow have noise of another scale each; no other test has the same ones.
    own: dict[str, dict[str, Any]] = {
        "queries": {"growth": 1.7, "epsilon": 3.0 + 0.01 * stored},
        "fresh": {"fresh": True, "growth": 2.0, "epsilon": 3.0},
        "named": {
            "growth": 1.7,
            "epsilon": 3.02 + 0.01 * stored,
            "user_ids": True,
            "client_cap": 0.5,
            "columns": [(0, 1)],
        },
    }
    who = {"users": range(N)} if kind == "named" else {}
    one = oracle(late=0.25, background=True, **own[kind]).fit(X, Y, **who)
    if kind == "fresh":
        one.add_unlabelled(RNG.random((2 * N, 1)))
    if stored:
        one.save_to(tmp_path / "oracle.db")
        one = cumae.open(tmp_path / "oracle.db")
    seen.clear()
    ask_until_the_phase_changes(one, named=kind == "named")
    assert one.phase_ == 2
    joins = set() if kind == "fresh" else {"joined"}  # rows that were supplied came at once
    assert {name for name, _ in seen} == {name for _, name in spied} | joins
    assert threading.get_ident() not in {thread for _, thread in seen}
    one.close()


@pytest.mark.claim("LATE")
def test_the_switch_waits_for_training_and_never_comes_early(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, begun = threading.Event(), threading.Event()
    train = shards.train_shards
    calls: list[int] = []

    def slow(*args: Any, **others: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            begun.set()
            gate.wait(10)
        return train(*args, **others)

    monkeypatch.setattr(recipes, "train_shards", slow)
    one = oracle(late=0.25, background=True).fit(X, Y)
    one.predict(RNG.random((N - 100, 1)))
    one.predict(RNG.random((99, 1)))  # answered while the next phase trains
    assert begun.wait(10)
    assert (one.phase_, len(calls)) == (1, 2)
    done: list[int] = []
    asking = threading.Thread(target=lambda: done.append(len(one.predict(RNG.random((2, 1))))))
    asking.start()
    asking.join(0.3)
    assert not done  # the second query belongs to phase 2, and waits for it
    gate.set()
    asking.join(10)
    assert done == [2]
    assert one.phase_ == 2
    # Training that is done early does not switch early.
    one.predict(RNG.random((230, 1)))
    following: Any = one._state_.following
    following._thread.join(10)
    one.predict(RNG.random((60, 1)))
    assert one.phase_ == 2


@pytest.mark.claim("LATE")
def test_a_training_stops_when_the_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else Python ends it within compiled code, and some libraries abort the process then."""
    monkeypatch.setattr(shards, "TASK_SHARDS", 1)
    one = oracle(late=0.25, background=True).fit(X, Y)
    train, begun, gate, trained = shards._train_task, threading.Event(), threading.Event(), []

    def slow(*given: Any) -> Any:
        trained.append(threading.get_ident())
        begun.set()
        assert gate.wait(10)
        return train(*given)

    monkeypatch.setattr(shards, "_train_task", slow)
    one.predict(RNG.random((N - 100, 1)))
    thread = one._state_.following._thread
    assert begun.wait(10)
    ending = threading.Thread(target=phases.end_trainings)
    ending.start()
    assert shards.PROCESS_ENDS.wait(10)
    gate.set()
    ending.join(10)
    shards.PROCESS_ENDS.clear()
    assert not thread.is_alive()
    assert len(trained) == 1  # of many shards
    one.predict(RNG.random((101, 1)))  # whoever asks all the same gets a training of its own
    assert one.phase_ == 2


@pytest.mark.claim("LATE")
def test_lateness_and_users_do_not_wait_for_ever() -> None:
    one = oracle(user_ids=True, late=0.5).fit(X, Y, users=np.arange(N))
    one.predict(RNG.random((N - 1, 1)), users=[f"u{i}" for i in range(N - 1)])
    assert one.phase_ == 1
    assert one._state_.following is not None
    half = oracle(late=0.5).fit(X, Y)
    half.predict(RNG.random((5 * N, 1)))
    assert half.answered_ == 5 * N


@pytest.mark.claim("LATE")
@pytest.mark.parametrize("background", [False, True])
def test_phases_grow_though_the_next_one_trains_early(background: bool) -> None:
    one = oracle(late=0.25, background=background, growth="auto").fit(X, Y)
    sizes = [one._state_.phase.n_rows]
    while one.phase_ < 4:
        one.predict(RNG.random((50, 1)))
        if one.phase_ > len(sizes):
            sizes.append(one._state_.phase.n_rows)
    assert sizes == sorted(sizes)
    # Of 1.6 answers for each row, the last quarter is kept for the phase after next.
    assert 1.1 < sizes[1] / sizes[0] < 1.6
    assert 1.4 < sizes[3] / sizes[2] < 1.7
