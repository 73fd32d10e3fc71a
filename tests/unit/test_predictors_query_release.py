"""QueryRelease: the majority, its guarantee, and the choice of mechanism and sizes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from cumae import BudgetExhausted, InvalidData, InvalidParameter, QueryRelease, TooFewRows
from cumae.checks import PREDICTOR_LAWS, Neighbours
from cumae.concepts import Rectangles, Stumps, Thresholds
from cumae.estimators import own_clone
from cumae.mechanisms import (
    BetweenThresholds,
    Coins,
    GaussianNoise,
    NoisyMajority,
    StabilityTest,
)
from cumae.mechanisms.sparse import unstable_answers
from cumae.predictors.release import query as query_release
from cumae.predictors.release.answers import Demand, plan_answers
from cumae.privacy import Gaussian
from cumae.randomness import SeededSource
from cumae.theorems.query_release import subsamp_sizes
from tests.query_release import QUERIES, X, Y

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(2)
ONLINE = ["stability", "between", "gaussian", "laplace"]


def plain_majority(release: QueryRelease, queries: Any) -> Any:
    return np.argmax(
        release._state_.need_voting().ensemble.votes(np.asarray(queries, dtype=float)), axis=1
    )


# Without privacy it is the plain majority


@pytest.mark.claim("QUERY")
@pytest.mark.parametrize("mechanism", ["auto", *ONLINE])
@pytest.mark.parametrize(
    "model", [DecisionTreeClassifier(max_depth=2), LogisticRegression(), GaussianNB(), Stumps()]
)
def test_at_infinite_epsilon_answers_are_the_majority(model: Any, mechanism: str) -> None:
    for n_shards in (20, 21):
        release = QueryRelease(model, epsilon=math.inf, mechanism=mechanism, n_shards=n_shards)
        release.fit(X, Y)
        assert release.predict(QUERIES).tolist() == plain_majority(release, QUERIES).tolist()
        assert release.guarantee_.epsilon == math.inf


def test_at_infinite_epsilon_several_classes() -> None:
    three = np.digitize(X[:, 1], [0.3, 0.6])
    names = np.array(["low", "middle", "high"])
    release = QueryRelease(epsilon=math.inf, classes=tuple(names), n_shards=30).fit(X, names[three])
    assert release.predict(QUERIES).tolist() == names[plain_majority(release, QUERIES)].tolist()
    assert np.mean(release.predict(X[:500]) == names[three[:500]]) > 0.9


def test_the_votes_are_those_of_the_shards() -> None:
    release = QueryRelease(epsilon=math.inf, n_shards=40, random_state=3).fit(X, Y)
    source = SeededSource(3)
    from cumae.ensembles.split import Split, shard_seeds

    split = Split.draw(len(X), 40, source)
    seeds = shard_seeds(40, source)
    votes = np.zeros(len(QUERIES), dtype=int)
    for shard in range(40):
        tree = DecisionTreeClassifier(max_depth=4, random_state=int(seeds[shard]))
        places = split.places(shard)
        votes += tree.fit(X[places], Y[places]).predict(QUERIES)
    assert release._state_.need_voting().ensemble.votes(QUERIES)[:, 1].tolist() == votes.tolist()


# The guarantee is that of what runs


@pytest.mark.claim("QUERY")
def test_the_gaussian_guarantee_matches_its_formula() -> None:
    release = QueryRelease(Thresholds(), 1.0, 1e-6, 200, n_shards=300).fit(X[:, :1], Y)
    answers: Any = release._state_.need_voting().rule
    noise = answers.noise
    assert isinstance(noise, GaussianNoise)
    closed = Gaussian(noise.scale, math.sqrt(200)).epsilon(1e-6)
    assert release.guarantee_.epsilon == pytest.approx(closed, abs=2e-3)
    assert release.guarantee_.rho == pytest.approx(200 / (2 * noise.scale**2))
    assert release.guarantee_.within(1.0, 1e-6)
    assert {"QUERY", "SHARDS", "MULTI", "NOISE", "RAND"} <= set(release.guarantee_.claims)
    assert "queries are public" in release.guarantee_.full()


@pytest.mark.claim("QUERY")
def test_the_other_guarantees_are_those_of_their_mechanisms() -> None:
    wanted = {
        "stability": StabilityTest.calibrated(2.0, 1e-5, 100, 7).cost,
        "between": BetweenThresholds.calibrated(400, 2.0, 1e-5, 7).cost,
        "laplace": NoisyMajority.calibrated(2.0, 1e-5, 100, kind="laplace").cost,
    }
    for mechanism, cost in wanted.items():
        release = QueryRelease(
            Thresholds(), 2.0, 1e-5, 100, mechanism=mechanism, max_unstable=7, n_shards=400
        ).fit(X[:, :1], Y)
        assert release.guarantee_.epsilon == pytest.approx(min(2.0, cost.epsilon(1e-5)))
        assert release.mechanism_ == mechanism
        assert cost.delta(2.0) <= 1e-5


@pytest.mark.claim("QUERY")
def test_several_classes_pay_for_two_counts() -> None:
    three = np.digitize(X[:, 1], [0.3, 0.6])
    release = QueryRelease(max_queries=10, classes=(0, 1, 2), mechanism="gaussian").fit(X, three)
    answers: Any = release._state_.need_voting().rule
    noise = answers.noise
    assert noise.moves == 2
    closed = Gaussian(noise.scale, math.sqrt(20)).epsilon(1e-6)
    assert release.guarantee_.epsilon == pytest.approx(closed, abs=2e-3)


@pytest.mark.claim("QUERY")
def test_single_query_prediction_costs_one_release() -> None:
    release = QueryRelease(Thresholds(), epsilon=1.0, delta=0.0, max_queries=1).fit(X[:, :1], Y)
    assert release.mechanism_ == "laplace"
    answers: Any = release._state_.need_voting().rule
    assert answers.noise.epsilon == pytest.approx(1.0, rel=1e-4)
    assert release.guarantee_.epsilon == pytest.approx(1.0, rel=1e-4)
    assert release.guarantee_.delta == 0
    assert release.predict([[0.9]]).tolist() == [1]
    with pytest.raises(BudgetExhausted, match="0 of 1 answers remain"):
        release.predict([[0.9]])


@pytest.mark.claim("QUERY")
def test_the_noise_drawn_is_that_of_the_guarantee(monkeypatch: pytest.MonkeyPatch) -> None:
    scales: list[float] = []
    used: list[int] = []
    draw, take = GaussianNoise.draw, Coins.take

    def spy(self: GaussianNoise, *given: Any) -> Any:
        scales.append(self.scale)
        return draw(self, *given)

    def taken(self: Coins, name: str, law: object, make: Any, count: int) -> Any:
        if name == "votes":
            used.append(count)
        return take(self, name, law, make, count)

    monkeypatch.setattr(GaussianNoise, "draw", spy)
    monkeypatch.setattr(Coins, "take", taken)
    release = QueryRelease(Thresholds(), 1.0, 1e-6, 60, mechanism="gaussian").fit(X[:, :1], Y)
    release.predict(QUERIES[:, :1])
    release.noisy_votes(QUERIES[:10, :1])
    assert sum(used) == 60  # one count for each answer
    (scale,) = set(scales)
    assert Gaussian(scale, math.sqrt(60)).epsilon(1e-6) == pytest.approx(1.0, abs=2e-3)


def test_a_seed_voids_the_guarantee() -> None:
    release = QueryRelease(Thresholds(), random_state=1, max_queries=5).fit(X[:, :1], Y)
    assert release.guarantee_.void


@pytest.mark.claim("QUERY")
@pytest.mark.usefixtures("trials_shared")
@pytest.mark.parametrize("law", PREDICTOR_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("mechanism", ["stability", "gaussian"])
def test_laws_of_predictors(law: Any, mechanism: str) -> None:
    for row, label in (([np.nan, 0.0], 1), ([1e300, 0.5], 9)):
        pair = Neighbours.replacing(X[:1500], Y[:1500], 7, row, label, queries=QUERIES[:20])
        release = QueryRelease(epsilon=5.0, max_queries=30, mechanism=mechanism, max_unstable=3)
        law(release, pair)


# The choice is made from public numbers


def test_auto_takes_the_least_noise_and_says_why() -> None:
    few = plan_answers("auto", Demand(1.0, 1e-6, 1, 1))
    some = plan_answers("auto", Demand(1.0, 1e-6, 1000, 155))
    many = plan_answers("auto", Demand(1.0, 1e-6, 10**6, 5))
    assert (few.mechanism, some.mechanism, many.mechanism) == ("laplace", "gaussian", "between")
    assert plan_answers("auto", Demand(1.0, 1e-6, 10**6, 5, 3)).mechanism == "stability"
    assert plan_answers("auto", Demand(1.0, 0.0, 1000, 155)).mechanism == "laplace"
    assert "gaussian needs the smallest lead, 219.8 votes" in some.why
    for other in ("stability", "between"):
        assert other in some.why


@pytest.mark.statistical
def test_the_lead_is_what_a_class_needs_to_win() -> None:
    # At the predicted lead a class wins with a chance of about 95 %, at none of it with half.
    for name in ONLINE:
        demand = Demand(1.0, 1e-6, 40, 40)
        plan = plan_answers(name, demand)
        shards = 2 * int(plan.lead + 1000)
        wins = 0
        for _ in range(25):
            lead = np.full(40, shards // 2 + math.ceil(plan.lead))
            source, rule = SeededSource(int(RNG.integers(2**31))), plan.rule(shards)
            votes = np.column_stack([shards - lead, lead])
            answers, _ = rule.ask(votes, rule.start(source), Coins(source))
            wins += int(np.count_nonzero(answers == 1))
        assert 0.90 < wins / 1000 < 0.995  # 1,000 seeded trials: the same each time


def test_unstable_answers_follow_from_alpha() -> None:
    assert unstable_answers(1000, 0.05, 0.05) == math.ceil(50 + math.sqrt(150 * math.log(20)))
    assert unstable_answers(10, 0.9, 0.01) == 10
    assert unstable_answers(10, 1e-9, 0.5) == 1


def test_shards_follow_from_rows_and_noise_alone() -> None:
    release = QueryRelease(max_queries=100, epsilon=3.0)
    sizes = set()
    for seed in range(3):
        labels = np.random.default_rng(seed).integers(0, 2, len(X))
        sizes.add(own_clone(release).fit(X, labels).n_shards_)
    assert len(sizes) == 1
    scale = plan_answers("gaussian", Demand(3.0, 1e-6, 100, 1)).lead / 1.645
    assert sizes == {int(len(X) / max(10, math.sqrt(len(X) / scale)))}


def test_too_few_rows_are_said_beforehand() -> None:
    with pytest.warns(TooFewRows, match="hardly better than chance; about [0-9,]+ rows would do"):
        QueryRelease(max_queries=1000).fit(X[:500], Y[:500])


@pytest.mark.claim("QUERY")
def test_paper_constants_refuse_with_the_rows_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    release = QueryRelease(Thresholds(), 1.0, 1e-6, 1000, alpha=0.1, beta=0.1, constants="paper")
    # By hand: 77 unclear queries; k = 34 sqrt(2) lambda ln(4 m T / delta); shards for errors of
    # alpha/6 each, two cuts of a threshold.
    scale = math.sqrt(32 * 77 * math.log(2e6))
    shards = math.ceil(34 * math.sqrt(2) * scale * math.log(4 * 1000 * 77 / 1e-6))
    rows = math.ceil(480 * (2 * math.log(960) + math.log(4 * shards / 0.1)))
    with pytest.raises(
        InvalidData, match=f"4,000 rows are too few .* for {shards * rows:,} labelled rows"
    ):
        release.fit(X[:, :1], Y)
    # Were there as many, they would be split as printed, and run under the usual guarantee.
    few = subsamp_sizes(1000, 0.1, 0.1, 1.0, 1e-6, 2)
    small = replace(few, n_shards=300, shard_rows=10)
    monkeypatch.setattr(query_release, "subsamp_sizes", lambda *_: small)
    release.fit(X[:, :1], Y)
    assert (release.n_shards_, release.mechanism_) == (300, "stability")
    answers: Any = release._state_.need_voting().rule
    assert answers.max_unstable == few.max_unstable
    assert release.guarantee_.within(1.0, 1e-6)
    for changes in (
        {"estimator": GaussianNB()},
        {"n_shards": 5},
        {"mechanism": "gaussian"},
        {"constants": "mine"},
    ):
        with pytest.raises(InvalidParameter):
            own_clone(release).set_params(**changes).fit(X[:, :1], Y)


def test_accuracy_with_signal() -> None:
    # A corner of two columns; without privacy nearly all answers are right.
    rng = np.random.default_rng(2)
    table = rng.random((40_000, 2))
    labels = ((table[:, 0] > 0.3) & (table[:, 1] > 0.3)).astype(int)
    release = QueryRelease(Rectangles(), max_queries=200).fit(table, labels)
    queries = rng.random((200, 2))
    right = (queries[:, 0] > 0.3) & (queries[:, 1] > 0.3)
    assert np.mean(release.predict(queries) == right) > 0.85
    assert release.noise_per_vote_ < 0.15
