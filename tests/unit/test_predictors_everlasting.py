"""Everlasting prediction: what the proof says, and what would break it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from cumae import BudgetExhausted, EverlastingPredictor
from cumae.concepts import Stumps
from cumae.ensembles.ensemble import Ensemble
from cumae.ensembles.growing.representatives import represent
from cumae.ensembles.split import Split, shard_seeds
from cumae.ensembles.trainer import weight_parameter
from cumae.mechanisms import GaussianNoise
from cumae.predictors.everlasting import phases
from cumae.predictors.everlasting.margins import MarginTrainer, weights_of_votes
from cumae.privacy import Gaussian
from cumae.randomness import SeededSource, permutation
from tests.everlasting import ABOVE, N, Spy, X, Y, oracle

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(1)


# Without privacy it is plain self-training


@pytest.mark.claim("EVER")
def test_at_infinite_epsilon_it_is_plain_self_training() -> None:
    one = oracle(epsilon=math.inf).fit(X, Y)
    source = SeededSource(3)
    order = permutation(N, source)
    rows, weights, unit = X[order], np.where(Y[order] == 1, 1, -1), 1
    queries = RNG.random((3 * N, 1))
    for phase in range(3):
        own = source.child() if phase else source  # later phases draw in a thread of their own
        split = Split.draw(N, 40, own)
        models = []
        for shard, seed in enumerate(shard_seeds(40, own).tolist()):
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
    table = RNG.random((1000, 2))
    labels = (table[:, 0] > 0.4).astype(int)
    one = oracle(estimator=model, epsilon=math.inf, shard_size=25, prior=False).fit(table, labels)
    for _ in range(3):
        asked = RNG.random((1000, 2))
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
    MarginTrainer(Listening(), 2, full_weight=100).train_or_raise(rows, weights, 1)
    assert seen["X"].ravel().tolist() == [0, 1, 3]
    assert seen["y"].tolist() == [0, 1, 0]
    # Both classes weigh the same, and rows one on average.
    assert seen["weight"].tolist() == pytest.approx([9 / 7, 3 / 2, 3 / 14])
    MarginTrainer(Listening(), 2, full_weight=100, balanced=False).train_or_raise(rows, weights, 1)
    assert seen["weight"].tolist() == pytest.approx([2.0, 2 / 3, 1 / 3])


def test_estimators_without_weights_get_labels_by_their_share_of_votes() -> None:
    seen: list[float] = []

    class Listening(KNeighborsClassifier):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Any:
            seen.append(float(np.mean(y)))
            return super().fit(X, y)

    # 60 of 100 votes for the second class: margin 20.
    weights = np.tile([0, 20], (20_000, 1))
    MarginTrainer(Listening(1), 2, full_weight=100).train_or_raise(
        np.zeros((20_000, 1)), weights, 5
    )
    assert seen == [pytest.approx(0.6, abs=0.02)]  # seeded


def test_weights_are_leads_over_the_weakest_class() -> None:
    noisy = np.array([[70, 20, 10], [-50, 130, 20]])
    assert weights_of_votes(noisy, 100).tolist() == [[60, 10, 0], [0, 100, 20]]


# The guarantee is that of what runs


@pytest.mark.claim("EVER")
def test_the_guarantee_follows_from_the_releases_of_a_phase() -> None:
    one = EverlastingPredictor(ABOVE, 1.0, 1e-6, shard_size=10, growth=1.5).fit(X, Y)
    noise = one._state_.phase.majority.noise
    assert isinstance(noise, GaussianNoise)
    assert one._state_.left == 600
    assert Gaussian(noise.scale, math.sqrt(600)).epsilon(1e-6) == pytest.approx(1.0, abs=2e-3)
    assert one.guarantee_.rho == pytest.approx(600 / (2 * noise.scale**2))
    assert one.guarantee_.within(1.0, 1e-6)
    assert one.guarantee_.protects == "one training row or one query"
    assert "seen by the one who asked" in one.guarantee_.full()
    assert one.remaining_ == math.inf


@pytest.mark.claim("EVER")
def test_every_phase_has_its_own_noise_for_its_own_releases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spy = Spy(monkeypatch)
    one = oracle(growth=1.5, random_state=None).fit(X, Y)
    sizes: list[int] = []
    for number in range(1, 4):
        phase = one._state_.phase if number == 1 else None
        left = one._state_.left if number == 1 else math.ceil(1.5 * sizes[-1])
        one.predict(RNG.random((left, 1)))
        phase = one._state_.phase
        sizes.append(left)
        assert (phase.number, one._state_.left) == (number, 0)
        assert phase.ensemble.n_shards == phase.n_rows // 10
        noise = phase.majority.noise
        assert isinstance(noise, GaussianNoise)
        assert Gaussian(noise.scale, math.sqrt(left)).epsilon(1e-6) == pytest.approx(5.0, abs=0.02)
        votes, noisy = spy.take()
        assert len(votes) == left
        assert np.std((noisy - votes)[:, 1]) == pytest.approx(noise.scale, rel=0.2)
        with pytest.raises(BudgetExhausted):
            one._state_.reserve(1)
    assert sizes == [600, 900, 1350]


@pytest.mark.claim("EVER")
def test_several_classes_pay_for_two_counts() -> None:
    table = RNG.random((900, 2))
    labels = np.digitize(table[:, 0], [0.3, 0.6])
    names = np.array(["low", "middle", "high"])
    tree = DecisionTreeClassifier(max_depth=3)
    one = EverlastingPredictor(tree, 8.0, shard_size=30, classes=list(names), prior=False)
    one.set_params(growth=1.0).fit(table, names[labels])
    noise = one._state_.phase.majority.noise
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


@pytest.mark.claim("EVER")
def test_rho_and_epsilon_hold_for_every_phase() -> None:
    one = EverlastingPredictor(ABOVE, 3.0, late=0.3, shard_size=10, prior=False).fit(X, Y)
    stated = one.guarantee_
    for _ in range(4):
        cost = one._state_.phase.majority.cost
        assert cost.zcdp is not None
        assert cost.zcdp[0] <= (stated.rho or 0) * (1 + 1e-12)
        assert cost.delta(stated.epsilon) <= 1e-6
        one.predict(RNG.random((one._state_.left + 1, 1)))


# With the same coins, one change does only what the proof allows


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
    train = phases.PhaseSetup.train
    kept: list[Ensemble] = []

    def leaking(self: phases.PhaseSetup, recipe: Any) -> Ensemble:
        ensemble = train(self, recipe)
        kept.append(ensemble)
        total: Any = lambda *asked: sum(Ensemble.votes(old, *asked) for old in kept)  # noqa: E731
        ensemble.votes = total  # type: ignore[method-assign]
        return ensemble

    monkeypatch.setattr(phases.PhaseSetup, "train", leaking)
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
