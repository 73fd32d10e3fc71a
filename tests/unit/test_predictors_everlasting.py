"""Everlasting prediction: what the proof says, and what would break it."""

from __future__ import annotations

import copy
import gc
import math
import os
import pickle
import threading
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from cumae import Budget, BudgetExhausted, EverlastingPredictor, InvalidData, InvalidParameter
from cumae.concepts import Stumps, Thresholds
from cumae.errors import LiveState, TooFewRows
from cumae.learners import PrivateBooster, PrivateLogisticRegression, SemiPrivateLearner
from cumae.mechanisms import GaussianNoise, NoisyMajority
from cumae.predictors import everlasting, phases, shards
from cumae.predictors.margins import MarginTrainer, weight_parameter, weights_of_votes
from cumae.predictors.representatives import represent
from cumae.predictors.retained import SomeRows
from cumae.predictors.shards import Ensemble, Split, shard_seeds
from cumae.privacy import Gaussian
from cumae.randomness import SeededSource, permutation

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(0)
N = 400
X = RNG.random((N, 1))
Y = (X[:, 0] > 0.4).astype(int)
ABOVE = Thresholds("above")


def oracle(**changes: Any) -> EverlastingPredictor:
    given: dict[str, Any] = {"epsilon": 5.0, "shard_size": 10, "random_state": 3, **changes}
    return EverlastingPredictor(given.pop("estimator", ABOVE), **given)


class Spy:
    """Records the vote counts and the noisy counts of every release, phase by phase."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.votes: list[NDArray[Any]] = []
        self.noisy: list[NDArray[Any]] = []
        release = NoisyMajority.release

        def spied(majority: NoisyMajority, votes: Any) -> Any:
            noisy = release(majority, votes)
            self.votes.append(np.array(votes))
            self.noisy.append(noisy)
            return noisy

        monkeypatch.setattr(NoisyMajority, "release", spied)

    def take(self) -> tuple[NDArray[Any], NDArray[Any]]:
        found = np.concatenate(self.votes), np.concatenate(self.noisy)
        self.votes, self.noisy = [], []
        return found


# Without privacy it is plain self-training


@pytest.mark.claim("EVER")
def test_at_infinite_epsilon_it_is_plain_self_training() -> None:
    one = oracle(epsilon=math.inf).fit(X, Y)
    source = SeededSource(3)
    order = permutation(N, source)
    rows, weights, unit = X[order], np.where(Y[order] == 1, 1, -1), 1
    queries = RNG.random((3 * N, 1))
    for phase in range(3):
        split = Split.draw(N, 40, source)
        models = []
        for shard, seed in enumerate(shard_seeds(40, source).tolist()):
            part, signed = rows[split.places(shard)], weights[split.places(shard)]
            best = ABOVE.erm(part, np.ones(len(part), dtype=int), sample_weight=signed)
            models.append(represent(ABOVE, best, part, signed, None, coin=bool(seed & 1)))
        asked = queries[phase * N : (phase + 1) * N]
        votes = np.sum([model.predict(asked) for model in models], axis=0)
        assert one.phase_ == max(1, phase)  # the next phase starts with its first query
        assert one.predict(asked).tolist() == (votes > 20).astype(int).tolist()
        assert one.phase_ == phase + 1
        rows, weights, unit = asked, 2 * votes - 40, 40
    assert unit == 40


@pytest.mark.claim("EVER")
@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(max_depth=2),
        LogisticRegression(C=100),
        make_pipeline(StandardScaler(), LogisticRegression()),
        KNeighborsClassifier(3),
        Stumps(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_estimators_learn_from_margins(model: Any) -> None:
    table = RNG.random((2000, 2))
    labels = (table[:, 0] > 0.4).astype(int)
    one = oracle(estimator=model, epsilon=math.inf, shard_size=25, prior=False).fit(table, labels)
    for _ in range(3):
        asked = RNG.random((2000, 2))
        assert np.mean(one.predict(asked) == (asked[:, 0] > 0.4)) > 0.9
    assert one.phase_ == 3


def test_weights_reach_estimators_that_take_them() -> None:
    assert weight_parameter(DecisionTreeClassifier()) == "sample_weight"
    assert weight_parameter(KNeighborsClassifier()) is None
    piped = make_pipeline(StandardScaler(), GaussianNB())
    assert weight_parameter(piped) == "gaussiannb__sample_weight"
    seen: dict[str, Any] = {}

    class Listening(DecisionTreeClassifier):  # type: ignore[misc]
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            seen.update(X=X, y=y, weight=sample_weight)
            return super().fit(X, y, sample_weight)

    weights = np.array([[30, 0], [0, 10], [0, 0], [5, 0]])
    rows = np.arange(4.0).reshape(-1, 1)
    MarginTrainer(Listening(), 2, unit=100).train_or_raise(rows, weights, 1)
    assert seen["X"].ravel().tolist() == [0, 1, 3]
    assert seen["y"].tolist() == [0, 1, 0]
    # Both classes weigh the same, and rows one on average.
    assert seen["weight"].tolist() == pytest.approx([9 / 7, 3 / 2, 3 / 14])
    MarginTrainer(Listening(), 2, unit=100, balanced=False).train_or_raise(rows, weights, 1)
    assert seen["weight"].tolist() == pytest.approx([2.0, 2 / 3, 1 / 3])


def test_estimators_without_weights_get_labels_by_their_share_of_votes() -> None:
    seen: list[float] = []

    class Listening(KNeighborsClassifier):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Any:
            seen.append(float(np.mean(y)))
            return super().fit(X, y)

    # 60 of 100 votes for the second class: margin 20.
    weights = np.tile([0, 20], (20_000, 1))
    MarginTrainer(Listening(1), 2, unit=100).train_or_raise(np.zeros((20_000, 1)), weights, 5)
    assert seen == [pytest.approx(0.6, abs=0.02)]  # seeded


# The guarantee is that of what runs


@pytest.mark.claim("EVER")
def test_the_guarantee_follows_from_the_releases_of_a_phase() -> None:
    one = EverlastingPredictor(ABOVE, 1.0, 1e-6, shard_size=10, growth=1.5).fit(X, Y)
    noise = one._phase_.majority.noise
    assert isinstance(noise, GaussianNoise)
    assert one._phase_.left == 600
    assert Gaussian(noise.scale, math.sqrt(600)).epsilon(1e-6) == pytest.approx(1.0, abs=2e-3)
    assert one.guarantee_.rho == pytest.approx(600 / (2 * noise.scale**2))
    assert one.guarantee_.within(1.0, 1e-6)
    assert one.guarantee_.protects == "one training row or one query"
    assert "seen by the one who asked" in str(one.guarantee_)
    assert one.remaining_ == math.inf


@pytest.mark.claim("EVER")
def test_every_phase_has_its_own_noise_for_its_own_releases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spy = Spy(monkeypatch)
    one = oracle(growth=1.5, random_state=None).fit(X, Y)
    sizes: list[int] = []
    for number in range(1, 4):
        phase = one._phase_ if number == 1 else None
        left = one._phase_.left if number == 1 else math.ceil(1.5 * sizes[-1])
        one.predict(RNG.random((left, 1)))
        phase = one._phase_
        sizes.append(left)
        assert (phase.number, phase.left) == (number, 0)
        assert phase.ensemble.n_shards == phase.n_rows // 10
        scale = phase.majority.noise.scale
        assert Gaussian(scale, math.sqrt(left)).epsilon(1e-6) == pytest.approx(5.0, abs=0.02)
        votes, noisy = spy.take()
        assert len(votes) == left
        assert np.std((noisy - votes)[:, 1]) == pytest.approx(scale, rel=0.2)
        with pytest.raises(BudgetExhausted):
            phase.majority.release(votes[:1])
    assert sizes == [600, 900, 1350]


@pytest.mark.claim("EVER")
def test_several_classes_pay_for_two_counts() -> None:
    table = RNG.random((900, 2))
    labels = np.digitize(table[:, 0], [0.3, 0.6])
    names = np.array(["low", "middle", "high"])
    tree = DecisionTreeClassifier(max_depth=3)
    one = EverlastingPredictor(tree, 8.0, shard_size=30, classes=list(names), prior=False)
    one.fit(table, names[labels])
    noise = one._phase_.majority.noise
    assert isinstance(noise, GaussianNoise)
    assert noise.moves == 2
    assert Gaussian(noise.scale, math.sqrt(1800)).epsilon(1e-6) == pytest.approx(8.0, abs=0.02)
    answers = one.predict(RNG.random((1000, 2)))
    assert set(answers.tolist()) <= set(names.tolist())
    assert one.phase_ == 2
    plain = clone(one).set_params(epsilon=math.inf).fit(table, names[labels])
    for _ in range(3):
        asked = RNG.random((900, 2))
        right = names[np.digitize(asked[:, 0], [0.3, 0.6])]
        assert np.mean(plain.predict(asked) == right) > 0.85


# With the same coins, one change does only what the proof allows


BAD = [[0.01], [np.nan], [np.inf], [1e300]]


@pytest.mark.claim("EVER")
@pytest.mark.parametrize("model", [ABOVE, DecisionTreeClassifier(max_depth=2)], ids=["cut", "tree"])
@pytest.mark.parametrize(("new", "label"), [(0.99, 0), (np.nan, 1), (np.inf, 1), (0.2, 7)])
def test_a_training_row_moves_one_vote_of_the_first_phase(
    monkeypatch: pytest.MonkeyPatch, model: Any, new: float, label: int
) -> None:
    spy = Spy(monkeypatch)
    changed, labels = X.copy(), Y.copy()
    changed[7], labels[7] = new, label
    queries = RNG.random((N, 1))
    found = []
    for rows, y in ((X, Y), (changed, labels)):
        one = oracle(estimator=model, prior=False).fit(rows, y)
        one.predict(queries)
        found.append(spy.take())
    (votes, noisy), (others, noisy_others) = found
    assert np.abs(votes - others).max() <= 1
    assert (votes.sum(axis=1) == 40).all()
    assert np.array_equal(noisy - votes, noisy_others - others)  # the same coins


@pytest.mark.claim("EVER")
@pytest.mark.parametrize("model", [ABOVE, DecisionTreeClassifier(max_depth=2)], ids=["cut", "tree"])
@pytest.mark.parametrize("phase", [1, 2])
@pytest.mark.parametrize("new", [0.99, 1e300, np.nan])
def test_a_query_is_not_seen_in_its_phase_and_moves_one_vote_in_the_next(
    monkeypatch: pytest.MonkeyPatch, model: Any, phase: int, new: float
) -> None:
    spy = Spy(monkeypatch)
    rounds = np.random.default_rng(5).random((4, N, 1))
    place = 123
    found = []
    for bit in (0, 1):
        queries = rounds
        one = oracle(estimator=model, prior=False).fit(X, Y)
        seen: list[Any] = []
        for batch in queries:
            # An adaptive adversary: what it asks depends on the answers it saw.
            shift = 0.0 if not seen else float(np.sum(np.delete(seen[-1], place)) % 7) / 1000
            asked = np.clip(batch + shift, 0, 1)
            if bit and len(seen) == phase - 1:
                asked[place] = new
            seen.append(one.predict(asked))
        found.append((seen, *spy.take()))
    (seen, votes, noisy), (seen_others, others, noisy_others) = found
    here = slice((phase - 1) * N, phase * N)
    # Its own phase: only its own answer may differ.
    same = np.arange(N) != place
    assert np.array_equal(votes[: here.start], others[: here.start])
    assert np.array_equal(votes[here][same], others[here][same])
    assert np.array_equal(noisy[here][same], noisy_others[here][same])
    assert np.array_equal(np.array(seen)[:phase][:, same], np.array(seen_others)[:phase][:, same])
    # The next phase: one vote.
    after = slice(phase * N, (phase + 1) * N)
    assert np.abs(votes[after] - others[after]).max() <= 1
    assert np.array_equal(noisy[after] - votes[after], noisy_others[after] - others[after])


@pytest.mark.claim("EVER")
def test_a_planted_memory_across_phases_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    # The test above has teeth: old models that go on voting move more than one vote.
    finish = phases.NextPhase.finish
    kept: list[Ensemble] = []

    def leaking(self: phases.NextPhase, more: int = 0) -> phases.Phase:
        phase = finish(self, more)
        votes = phase.ensemble.votes
        kept.append(phase.ensemble)
        total: Any = lambda table: sum(Ensemble.votes(old, table) for old in kept)  # noqa: E731
        del votes
        phase.ensemble.votes = total  # type: ignore[method-assign]
        return phase

    monkeypatch.setattr(phases.NextPhase, "finish", leaking)
    spy = Spy(monkeypatch)
    changed = X.copy()
    changed[:1] = 0.99
    found = []
    for rows in (X, changed):
        kept.clear()
        one = oracle(shard_size=200).fit(rows, Y)
        one.predict(np.random.default_rng(1).random((2 * N, 1)))
        found.append(spy.take()[0])
    assert found[0].sum(axis=1).max() > 2  # more votes than shards: EVER's premise is gone


# Batches, counts, phases


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
            self.one.predict([[0.5, 0.5]])

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
        assert one._phase_.n_rows == sizes[-1]
        assert released + math.ceil(self.growth * sizes[-1]) - one._phase_.left == self.asked
        waiting = len(one._keeper_) + (one._next_.n_rows if one._next_ else 0)
        assert waiting == tail + self.asked - released


Counting.TestCase.settings = settings(max_examples=15, stateful_step_count=12, deadline=None)
TestCounting = Counting.TestCase


@pytest.mark.claim("EVER")
def test_unusable_queries_count_and_keep_their_place() -> None:
    one = oracle().fit(X, Y)
    answers = one.predict([[0.95], [np.nan], ["text"], [None], [np.inf], [0.05]])
    assert answers.tolist() == [1, -1, -1, -1, -1, 0]
    assert one.answered_ == 6
    assert one._phase_.left == N - 6
    rows, weights = copy.copy(one._keeper_).take()
    assert rows.n_rows == 6
    assert weights.any(axis=1).tolist() == [True, False, False, False, False, True]
    frame = pd.DataFrame({"size": X[:, 0]})
    framed = oracle(estimator=DecisionTreeClassifier(max_depth=2), prior=False).fit(frame, Y)
    assert framed.predict(pd.DataFrame({"size": [np.nan, 0.95]}))[0] == -1
    assert framed.predict(pd.DataFrame({"size": ["text", 0.95]}))[0] == -1
    assert framed.answered_ == 4
    framed.predict(pd.DataFrame({"size": RNG.random(N)}))
    assert framed.phase_ == 2


@pytest.mark.claim("EVER")
def test_rows_are_dropped_when_they_were_used() -> None:
    one = oracle().fit(X, Y)
    gc.collect()
    assert not [thing for thing in gc.get_objects() if isinstance(thing, SomeRows)]
    first = one._phase_
    one.predict(RNG.random((N + 1, 1)))
    assert one.phase_ == 2
    assert len(one._keeper_) == 1
    assert one._next_ is None
    del first
    gc.collect()
    alive = [thing for thing in gc.get_objects() if isinstance(thing, phases.Phase)]
    assert sum(phase is one._phase_ for phase in alive) == 1
    mine = [thing for thing in gc.get_referents(vars(one)) if isinstance(thing, phases.Phase)]
    assert len(mine) == 1


def test_there_is_only_one_of_it() -> None:
    one = oracle(random_state=None).fit(X, Y)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LiveState):
            duplicate(one)
    with pytest.raises(NotFittedError):
        clone(one).predict(X)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            one.predict([[0.5]])
            os.write(writing, b"answered")
        except LiveState:
            os.write(writing, b"refused")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 20) == b"refused"


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


# Options


@pytest.mark.claim("USER")
def test_one_row_of_each_user_is_kept() -> None:
    users = np.arange(N) % 300  # the last hundred rows belong to known users
    one = oracle(user_ids=True).fit(X, Y, users=users)
    assert one._phase_.n_rows == 300
    assert one.guarantee_.protects == "one user"
    one.predict(X[:10], users=[0, 1, 2, "new", "new", 1000, 1001, 1000, 5, 6])
    assert len(one._keeper_) == 3
    assert one._phase_.left == 290  # all of them count
    one.predict(RNG.random((280, 1)), users=[f"u{i}" for i in range(280)])
    assert len(one._keeper_) == 283
    one.predict(RNG.random((20, 1)), users=["u1"] * 20)
    assert (one.phase_, one._phase_.n_rows) == (2, 283)
    with pytest.raises(InvalidData, match="users: none for 1 rows"):
        one.predict([[0.5]])
    with pytest.raises(InvalidData, match="user_ids=True"):
        oracle().fit(X, Y, users=users)


@pytest.mark.claim("USER")
def test_without_new_users_it_stops_at_the_end_of_the_phase() -> None:
    one = oracle(user_ids=True).fit(X, Y, users=np.arange(N))
    assert one.remaining_ == math.inf
    one.predict(RNG.random((N - 100, 1)), users=[0] * (N - 100))
    assert one.remaining_ == 100  # not even a hundred new users would be half of the rows
    with pytest.raises(BudgetExhausted, match=r"101 queries .* 100 answers .* 200 rows of new"):
        one.predict(RNG.random((101, 1)), users=list(range(1000, 1101)))
    assert one.answered_ == N - 100
    one.predict(RNG.random((100, 1)), users=[0] * 100)
    assert one.remaining_ == 0
    with pytest.raises(BudgetExhausted):
        one.predict([[0.5]], users=["x"])
    other = oracle(user_ids=True).fit(X, Y, users=np.arange(N))
    told = []
    for user in ("same", 0):  # a stranger, and one whose row is in the training set
        with pytest.raises(BudgetExhausted, match="needs 200 rows of new users") as refusal:
            other.predict(RNG.random((N + 1, 1)), users=[user] * (N + 1))
        told.append(str(refusal.value))
    assert told[0] == told[1]
    assert other.answered_ == 0


@pytest.mark.claim("USER")
def test_a_client_supplies_no_more_than_its_share() -> None:
    one = oracle(client_cap=0.25).fit(X, Y)
    one.predict(RNG.random((200, 1)), clients=["loud"] * 200)
    assert len(one._keeper_) == 100
    one.predict(RNG.random((200, 1)), clients=np.arange(200))
    assert one._next_ is not None
    assert one._next_.n_rows == 300
    one.predict(RNG.random((50, 1)), clients=["loud"] * 50)
    assert (one.phase_, one._phase_.n_rows, len(one._keeper_)) == (2, 300, 50)


@pytest.mark.claim("FRESH")
def test_fresh_rows_take_the_place_of_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(monkeypatch)
    one = oracle(fresh=True, growth=2.0).fit(X, Y)
    assert one.remaining_ == N
    one.predict(np.full((N, 1), 0.99))
    assert one.remaining_ == 0
    with pytest.raises(BudgetExhausted, match="400 rows by add_unlabelled"):
        one.predict([[0.5]])
    spy.take()
    one.add_unlabelled(RNG.random((N // 2, 1)))
    assert one.remaining_ == 0
    one.add_unlabelled(RNG.random((N, 1)))
    assert one.remaining_ == N
    assert len(spy.take()[0]) == N  # labelling them is a release each: 2 N in all
    assert one._phase_.left == 0
    asked = RNG.random((N, 1))
    assert len(set(one.predict(asked).tolist())) == 2
    assert (one.phase_, one._phase_.n_rows, one.answered_) == (2, N, 2 * N)
    assert len(one._keeper_) == 0
    with pytest.raises(InvalidParameter, match="fresh=True"):
        oracle().fit(X, Y).add_unlabelled(X)
    with pytest.raises(InvalidParameter, match=r"growth=1\.0 with fresh=True"):
        oracle(fresh=True).fit(X, Y)


@pytest.mark.claim("FRESH")
def test_with_fresh_rows_queries_leave_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(monkeypatch)
    fresh = np.random.default_rng(3).random((N, 1))
    later = np.random.default_rng(4).random((N, 1))
    found = []
    for asked in (np.full((N, 1), 0.1), np.full((N, 1), 0.9)):
        one = oracle(fresh=True, growth=2.0).fit(X, Y)
        one.predict(asked)
        one.add_unlabelled(fresh)
        one.predict(later)
        found.append(spy.take())
    assert np.array_equal(found[0][0][N:], found[1][0][N:])
    assert np.array_equal(found[0][1][N:], found[1][1][N:])


@pytest.mark.claim("MEMO")
def test_the_same_question_gets_the_same_answer_within_a_phase(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spy = Spy(monkeypatch)
    one = oracle(memoize=True, epsilon=0.5, random_state=None).fit(X, Y)
    boundary = np.full((150, 1), 0.4)
    first = one.predict(boundary[:1])
    assert set(one.predict(boundary[1:]).tolist()) == set(first.tolist())
    assert len(spy.take()[0]) == 150  # hits do the same work as misses, and count
    assert one._phase_.left == N - 150
    _, weights = copy.copy(one._keeper_).take()
    assert len(np.unique(weights, axis=0)) == 1
    phase = one._phase_
    one.predict(RNG.random((N - 150, 1)))
    one.predict(boundary[:1])
    assert one.phase_ == 2
    assert one._phase_.memo is not phase.memo
    assert len(one._phase_.memo) == 1
    forgetful = oracle(epsilon=0.5, random_state=None).fit(X, Y)
    assert set(forgetful.predict(boundary).tolist()) == {0, 1}


@pytest.mark.claim("LATE")
def test_late_queries_wait_for_the_phase_after_next(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[list[float]] = []
    init = phases.NextPhase.__init__

    def spied(self: Any, settings: Any, number: int, rows: Any, *others: Any) -> None:
        trained.append(rows.take(np.arange(rows.n_rows)).ravel().tolist())
        init(self, settings, number, rows, *others)

    monkeypatch.setattr(phases.NextPhase, "__init__", spied)
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
    assert trained[1] == asked[: N - 100]
    # Phase 2 has 300 rows and so 300 answers, of which the last 75 are late.
    assert trained[2] == asked[N - 100 : N + 225]
    used = [value for rows in trained[1:] for value in rows]
    assert len(set(used)) == len(used)


@pytest.mark.claim("LATE")
def test_the_switch_waits_for_training_and_never_comes_early(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = threading.Event()
    train = shards.train_shards
    calls: list[int] = []

    def slow(*args: Any, **others: Any) -> Any:
        calls.append(1)
        if len(calls) > 1:
            gate.wait(10)
        return train(*args, **others)

    monkeypatch.setattr(phases, "train_shards", slow)
    one = oracle(late=0.25, background=True).fit(X, Y)
    one.predict(RNG.random((N - 100, 1)))
    one.predict(RNG.random((99, 1)))  # answered while the next phase trains
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
    one._next_._thread.join(10)
    one.predict(RNG.random((60, 1)))
    assert one.phase_ == 2


# Prior


@pytest.mark.claim("PRIOR")
def test_the_prior_has_rows_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    numbered = np.arange(2000.0).reshape(-1, 1)
    labels = (numbered[:, 0] > 800).astype(int)
    seen: dict[str, set[float]] = {}
    fit, init = PrivateBooster.fit, phases.NextPhase.__init__

    def spied_fit(self: Any, table: Any, y: Any, *others: Any) -> Any:
        seen["prior"] = set(table.ravel().tolist())
        assert (self.epsilon, self.delta) == (3.0, 1e-6)
        return fit(self, table, y, *others)

    def spied_init(self: Any, settings: Any, number: int, rows: Any, *others: Any) -> None:
        seen.setdefault("shards", set(rows.take(np.arange(rows.n_rows)).ravel().tolist()))
        init(self, settings, number, rows, *others)

    monkeypatch.setattr(PrivateBooster, "fit", spied_fit)
    monkeypatch.setattr(phases.NextPhase, "__init__", spied_init)
    one = EverlastingPredictor(
        DecisionTreeClassifier(max_depth=2), 3.0, 1e-6, columns=[(0, 2000)], prior_share=0.25
    ).fit(numbered, labels)
    assert len(seen["prior"]) == 500
    assert len(seen["shards"]) == 1400  # a twentieth chose the trust
    assert one._phase_.left == 1400
    assert one._phase_.majority.max_queries == 1500
    assert not seen["prior"] & seen["shards"]
    assert isinstance(one.prior_, PrivateBooster)
    assert {"PRIOR", "PAR"} <= set(one.guarantee_.claims)
    assert one.guarantee_.within(3.0, 1e-6)


@pytest.mark.claim("PRIOR")
def test_unusable_rows_do_not_stop_the_prior() -> None:
    table = RNG.random((1000, 2))
    labels = (table[:, 0] > 0.5).astype(int)
    table[5], table[6], labels[7] = np.nan, np.inf, 9
    one = EverlastingPredictor(None, 5.0, columns=[(0, 1), (0, 1)]).fit(table, labels)
    assert np.mean(one.predict([[0.1, 0.5], [0.9, 0.5]] * 20) == [0, 1] * 20) > 0.8


@pytest.mark.claim("PRIOR")
def test_votes_see_what_the_prior_cannot() -> None:
    # Two opposite corners: no linear model can tell; trees can.
    rng = np.random.default_rng(1)
    table = rng.random((20_000, 2))

    def truth(rows: Any) -> Any:
        return ((rows[:, 0] > 0.5) ^ (rows[:, 1] > 0.5)).astype(int)

    prior = PrivateLogisticRegression(columns=[(0, 1), (0, 1)])
    one = EverlastingPredictor(
        DecisionTreeClassifier(max_depth=4), 3.0, prior=prior, shard_size=20
    ).fit(table, truth(table))
    asked = rng.random((4000, 2))
    assert one.prior_ is not None
    alone = np.mean(one.prior_.predict(asked) == truth(asked))
    assert alone < 0.7
    assert np.mean(one.predict(asked) == truth(asked)) > alone + 0.1


# What is refused


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"growth": 0.5}, "growth"),
        ({"growth": math.inf}, "growth"),
        ({"late": 0.6}, "late"),
        ({"client_cap": 0.0}, "client_cap"),
        ({"fresh": True, "growth": 2.0, "late": 0.1}, "no meaning"),
        ({"shard_size": 1000}, "shard_size|n_shards"),
        ({"shard_size": 0}, "shard_size"),
        ({"prior": "booster"}, "prior"),
        ({"prior": True}, "prior"),
        ({"delta": 0.0}, "delta"),
        ({"prior": PrivateBooster(), "prior_share": 1.0}, "prior_share"),
    ],
)
def test_bad_parameters_cost_nothing(changes: dict[str, Any], what: str) -> None:
    budget = Budget(9.0, 1e-5)
    with pytest.raises(InvalidParameter, match=what):
        oracle(budget=budget).set_params(**changes).fit(X, Y)
    assert budget.remaining == (9.0, 1e-5)


def test_the_budget_is_paid_once_for_ever() -> None:
    budget = Budget(6.0, 1e-5)
    one = oracle(budget=budget).fit(X, Y)
    left = budget.remaining
    one.predict(RNG.random((3 * N, 1)))
    assert budget.remaining == left
    assert left[0] == pytest.approx(1.0, abs=0.01)


def test_auto_sizes_follow_from_public_numbers() -> None:
    big = RNG.random((20_000, 1))
    sizes = set()
    for cut in (0.2, 0.7):
        one = EverlastingPredictor(ABOVE, 3.0).fit(big, (big[:, 0] > cut).astype(int))
        sizes.add(one._settings_.size)
        assert one.noise_per_vote_ < 0.13
    assert len(sizes) == 1


def test_too_few_rows_are_said_beforehand() -> None:
    with pytest.warns(TooFewRows, match="about [0-9,]+ rows would do"):
        EverlastingPredictor(ABOVE, 0.5).fit(X, Y)


def test_weights_are_leads_over_the_weakest_class() -> None:
    noisy = np.array([[70, 20, 10], [-50, 130, 20]])
    assert weights_of_votes(noisy, 100).tolist() == [[60, 10, 0], [0, 100, 20]]


# What a reviewer found


def mixed() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "size": X[:, 0],
            "count": (10 * X[:, 0]).astype(int),
            "job": np.where(X[:, 0] > 0.7, "baker", "nurse"),
        }
    )


def piped() -> Any:
    numbers = ("numbers", "passthrough", make_column_selector(dtype_include="number"))
    return make_pipeline(ColumnTransformer([numbers]), DecisionTreeClassifier(max_depth=2))


@pytest.mark.claim("EVER")
@pytest.mark.parametrize(
    "odd", [{"size": "text"}, {"size": np.nan}, {"count": np.nan}, {"count": None}, {"job": None}]
)
def test_a_query_cannot_change_the_type_of_a_column(
    monkeypatch: pytest.MonkeyPatch, odd: dict[str, Any]
) -> None:
    spy = Spy(monkeypatch)
    usual = mixed()[:50]
    spoilt = usual.astype(dict.fromkeys(odd, object))
    for name, cell in odd.items():
        spoilt.at[3, name] = cell
    later = mixed().sample(N, random_state=1).reset_index(drop=True)
    found = []
    for batch in (usual, spoilt):
        one = oracle(estimator=piped(), prior=False).fit(mixed(), Y)
        first = one.predict(batch)
        one.predict(later[: N - 50])
        one.predict(later)
        found.append((np.delete(first, 3).tolist(), *spy.take()))
    same = np.arange(N) != 3
    assert found[0][0] == found[1][0]
    assert np.array_equal(found[0][1][:N][same], found[1][1][:N][same])
    assert np.abs(found[0][1][N:] - found[1][1][N:]).max() <= 1


@pytest.mark.claim("EVER")
@pytest.mark.parametrize("classes", [("no", "yes"), (False, True), (0.5, 1.5), (0, 1)])
def test_the_type_of_answers_does_not_depend_on_them(classes: Any) -> None:
    labels = np.array(classes)[Y]
    one = oracle(classes=classes).fit(X, labels)
    usual, spoilt = one.predict([[0.05], [0.95]]), one.predict([[0.05], [np.nan]])
    assert usual.dtype == spoilt.dtype
    assert type(usual[0]) is type(spoilt[0])


@pytest.mark.claim("EVER")
def test_no_form_of_a_query_goes_uncounted() -> None:
    one = oracle().fit(X, Y)
    for asked in ([[[1, 2]], [0.5]], [[{}], [0.5]], [[0.95], None], [[0.95], [1, 2]]):
        assert -1 in one.predict(asked).tolist()
    assert one.predict(np.array([[1j], [0.5]])).tolist() == [-1, -1]
    assert one.predict(np.ma.masked_array([[0.95], [0.5]], [[False], [True]])).tolist() == [1, -1]
    assert one.predict(np.array([["1e4000"]], dtype=np.longdouble)).tolist() == [-1]
    assert one.answered_ == 13


@pytest.mark.claim("MEMO")
def test_the_memo_tells_types_apart() -> None:
    memo: dict[Any, Any] = {}
    table = pd.DataFrame({"a": pd.Series([True, 1, "1"], dtype=object)})
    noisy = np.arange(6).reshape(3, 2)
    assert everlasting._remembered(memo, table, noisy).tolist() == noisy.tolist()
    assert len(memo) == 3


@pytest.mark.claim("USER")
def test_ids_must_be_ids() -> None:
    for ids in ([math.nan] * N, [None] * N, [[1]] * N):
        with pytest.raises(InvalidData, match="no id"):
            oracle(user_ids=True).fit(X, Y, users=ids)


@pytest.mark.claim("PRIOR")
def test_the_prior_reads_any_query() -> None:
    table = pd.DataFrame({"a": pd.Series(X[:, 0].tolist(), dtype=object)})
    table.iloc[:20, 0] = "abc"
    prior = PrivateLogisticRegression(columns=[(0, 1)])
    encoder = make_pipeline(
        FunctionTransformer(
            lambda frame: pd.to_numeric(frame.iloc[:, 0], errors="coerce").to_frame()
        ),
        DecisionTreeClassifier(max_depth=2),
    )
    one = oracle(estimator=encoder, prior=prior, shard_size=10).fit(table, Y)
    asked = pd.DataFrame({"a": pd.Series(["abc", "0.5", 0.9, True], dtype=object)})
    assert len(one.predict(asked)) == 4


@pytest.mark.claim("PRIOR")
def test_the_promise_of_the_prior_is_part_of_the_whole() -> None:
    table, columns = RNG.random((800, 1)), [(0, 1)]
    labels = (table[:, 0] > 0.5).astype(int)
    tree = DecisionTreeClassifier(max_depth=1)
    narrow = SemiPrivateLearner(Stumps(), label_privacy=True)
    with pytest.raises(InvalidParameter, match="give one that protects whole rows"):
        EverlastingPredictor(tree, 3.0, prior=narrow, columns=columns).fit(table, labels)
    booster = EverlastingPredictor(tree, 3.0, columns=columns).fit(table, labels)
    assert "BOOST" in booster.guarantee_.claims or "LOGREG" in booster.guarantee_.claims


def test_options_are_those_of_the_fit() -> None:
    one = oracle(user_ids=True).fit(X, Y, users=np.arange(N))
    one.set_params(user_ids=False, memoize=True, late=0.3)
    with pytest.raises(InvalidData, match="users: none"):
        one.predict([[0.5]])


@pytest.mark.claim("LATE")
def test_lateness_and_users_do_not_wait_for_ever() -> None:
    one = oracle(user_ids=True, late=0.5).fit(X, Y, users=np.arange(N))
    one.predict(RNG.random((N - 1, 1)), users=[f"u{i}" for i in range(N - 1)])
    assert one.phase_ == 1
    assert one._next_ is not None
    half = oracle(late=0.5).fit(X, Y)
    half.predict(RNG.random((5 * N, 1)))
    assert half.answered_ == 5 * N


@pytest.mark.claim("EVER")
def test_rho_and_epsilon_hold_for_every_phase() -> None:
    one = EverlastingPredictor(ABOVE, 3.0, late=0.3, shard_size=10).fit(X, Y)
    stated = one.guarantee_
    for _ in range(4):
        cost = one._phase_.majority.cost
        assert cost.zcdp is not None
        assert cost.zcdp[0] <= (stated.rho or 0) * (1 + 1e-12)
        assert cost.delta(stated.epsilon) <= 1e-6
        one.predict(RNG.random((one._phase_.left + 1, 1)))
