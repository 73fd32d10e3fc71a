"""QueryRelease: answers to up to m queries."""

from __future__ import annotations

import math
import os
import threading
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from cumae import Budget, BudgetExhausted, InvalidData, InvalidParameter, QueryRelease, TooFewRows
from cumae.checks import PREDICTOR_LAWS, Neighbours
from cumae.concepts import Intervals, Rectangles, Stumps, Thresholds
from cumae.errors import LiveState
from cumae.mechanisms import BetweenThresholds, GaussianNoise, NoisyMajority, StabilityTest
from cumae.predictors import query_release
from cumae.predictors.answers import Demand, plan_answers, unstable_answers
from cumae.predictors.paper_sizes import subsamp_sizes
from cumae.privacy import Gaussian
from cumae.randomness import SeededSource

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(1)
X = RNG.random((4000, 2))
Y = (X[:, 0] > 0.4).astype(int)
QUERIES = RNG.random((50, 2))
ONLINE = ["stability", "between", "gaussian", "laplace"]


def plain_majority(release: QueryRelease, queries: Any) -> Any:
    return np.argmax(release._ensemble_.votes(np.asarray(queries, dtype=float)), axis=1)


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
    plan = plan_answers("auto", Demand(math.inf, 1e-6, 1000, 155))
    plan.start(40, source)
    from cumae.predictors.shards import Split, shard_seeds

    split = Split.draw(len(X), 40, source)
    seeds = shard_seeds(40, source)
    votes = np.zeros(len(QUERIES), dtype=int)
    for shard in range(40):
        tree = DecisionTreeClassifier(max_depth=4, random_state=int(seeds[shard]))
        places = split.places(shard)
        votes += tree.fit(X[places], Y[places]).predict(QUERIES)
    assert release._ensemble_.votes(QUERIES)[:, 1].tolist() == votes.tolist()


# The guarantee is that of what runs


@pytest.mark.claim("QUERY")
def test_the_gaussian_guarantee_matches_its_formula() -> None:
    release = QueryRelease(Thresholds(), 1.0, 1e-6, 200, n_shards=300).fit(X[:, :1], Y)
    noise = release._answers_.noise
    assert isinstance(noise, GaussianNoise)
    closed = Gaussian(noise.scale, math.sqrt(200)).epsilon(1e-6)
    assert release.guarantee_.epsilon == pytest.approx(closed, abs=2e-3)
    assert release.guarantee_.rho == pytest.approx(200 / (2 * noise.scale**2))
    assert release.guarantee_.within(1.0, 1e-6)
    assert {"QUERY", "SHARDS", "MULTI", "NOISE", "RAND"} <= set(release.guarantee_.claims)
    assert "queries are public" in str(release.guarantee_)


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
    noise = release._answers_.noise
    assert noise.moves == 2
    closed = Gaussian(noise.scale, math.sqrt(20)).epsilon(1e-6)
    assert release.guarantee_.epsilon == pytest.approx(closed, abs=2e-3)


@pytest.mark.claim("QUERY")
def test_single_query_prediction_costs_one_release() -> None:
    release = QueryRelease(Thresholds(), epsilon=1.0, delta=0.0, max_queries=1).fit(X[:, :1], Y)
    assert release.mechanism_ == "laplace"
    assert release._answers_.noise.epsilon == pytest.approx(1.0, rel=1e-4)
    assert (release.guarantee_.epsilon, release.guarantee_.delta) == (
        pytest.approx(1.0, rel=1e-4),
        0,
    )
    assert release.predict([[0.9]]).tolist() == [1]
    with pytest.raises(BudgetExhausted, match="0 of 1 answers remain"):
        release.predict([[0.9]])


@pytest.mark.claim("QUERY")
def test_the_noise_drawn_is_that_of_the_guarantee(monkeypatch: pytest.MonkeyPatch) -> None:
    scales: list[tuple[float, int]] = []
    draw = GaussianNoise.release

    def spy(self: GaussianNoise, counts: Any) -> Any:
        scales.append((self.scale, np.size(counts)))
        return draw(self, counts)

    monkeypatch.setattr(GaussianNoise, "release", spy)
    release = QueryRelease(Thresholds(), 1.0, 1e-6, 60, mechanism="gaussian").fit(X[:, :1], Y)
    release.predict(QUERIES[:, :1])
    release.noisy_votes(QUERIES[:10, :1])
    assert sum(size for _, size in scales) == 60  # one count for each answer
    (scale,) = {scale for scale, _ in scales}
    assert Gaussian(scale, math.sqrt(60)).epsilon(1e-6) == pytest.approx(1.0, abs=2e-3)


def test_a_seed_voids_the_guarantee() -> None:
    release = QueryRelease(Thresholds(), random_state=1, max_queries=5).fit(X[:, :1], Y)
    assert release.guarantee_.void


# Answers are counted


def test_answers_are_counted_and_batches_refused_whole() -> None:
    release = QueryRelease(Thresholds(), max_queries=60).fit(X[:, :1], Y)
    assert len(release.predict(QUERIES[:, :1])) == 50
    assert release.remaining_ == 10
    with pytest.raises(BudgetExhausted, match="50 queries were asked, but 10 of 60"):
        release.predict(QUERIES[:, :1])
    assert release.remaining_ == 10
    assert len(release.predict(QUERIES[:10, :1])) == 10
    assert release.remaining_ == 0
    with pytest.raises(BudgetExhausted, match="0 of 60"):
        release.predict([[0.5]])
    assert len(release.predict(np.zeros((0, 1)))) == 0


@pytest.mark.parametrize("mechanism", ["stability", "between"])
def test_when_the_unclear_answers_end_so_does_the_rest(mechanism: str) -> None:
    # Labels are coins, so that hardly any majority is clear.
    coins = np.random.default_rng(0).integers(0, 2, len(X))
    release = QueryRelease(
        Thresholds(),
        mechanism=mechanism,
        max_unstable=3,
        max_queries=100,
        n_shards=400,
        abstain=True,
    ).fit(X[:, :1], coins)
    with pytest.warns(UserWarning, match="were not looked at"):
        labels = release.predict(QUERIES[:, :1])
    assert len(labels) == 50
    assert np.count_nonzero(labels == -1) >= 3
    assert release.remaining_ == 0
    with pytest.raises(BudgetExhausted, match="0 of 100"):
        release.predict([[0.5]])


@pytest.mark.parametrize("mechanism", ["stability", "between"])
def test_clear_answers_cost_nothing(mechanism: str) -> None:
    release = QueryRelease(
        Thresholds(), 2.0, mechanism=mechanism, max_unstable=1, max_queries=400, n_shards=400
    ).fit(X[:, :1], Y)
    clear = np.tile([[0.05], [0.9]], (100, 1))
    assert release.predict(clear).tolist() == [0, 1] * 100
    assert release.remaining_ == 200


def test_unclear_queries_get_random_labels_or_none() -> None:
    coins = np.random.default_rng(0).integers(0, 2, len(X))
    options = {"mechanism": "stability", "max_unstable": 60, "max_queries": 60, "n_shards": 400}
    random_labels = QueryRelease(Thresholds(), **options).fit(X[:, :1], coins)
    assert set(random_labels.predict(QUERIES[:, :1]).tolist()) == {0, 1}
    names = np.array(["no", "yes"])[coins]
    none = QueryRelease(Thresholds(), abstain=True, classes=("no", "yes"), **options)
    answers = none.fit(X[:, :1], names).predict(QUERIES[:, :1])
    assert answers.dtype == object
    assert set(answers.tolist()) <= {-1, "no", "yes"}
    assert -1 in answers.tolist()


def test_threads_get_as_many_answers_as_there_are() -> None:
    release = QueryRelease(Thresholds(), max_queries=100).fit(X[:, :1], Y)
    given: list[int] = []

    def ask() -> None:
        for _ in range(30):
            try:
                given.append(len(release.predict(QUERIES[:5, :1])))
            except BudgetExhausted:
                return

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(given) == 100
    assert release.remaining_ == 0


# All queries at once


@pytest.mark.claim("QUERY")
def test_offline_draws_one_hypothesis_over_the_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    choose = Intervals.choose

    def spy(self: Any, points: Any, rows: Any, y: Any, epsilon: float, **others: Any) -> Any:
        drawn.append((np.array(points), len(rows), epsilon))
        return choose(self, points, rows, y, epsilon, **others)

    monkeypatch.setattr(Intervals, "choose", spy)
    release = QueryRelease(Intervals(), 1.0, 0.0, 50, mechanism="offline").fit(X[:, :1], Y)
    assert release.remaining_ == 50
    with pytest.raises(AttributeError, match="offline"):
        _ = release.hypothesis_
    with pytest.raises(BudgetExhausted, match="51 queries"):
        release.predict(np.zeros((51, 1)))
    labels = release.predict(QUERIES[:, :1])
    assert np.mean(labels == (QUERIES[:, 0] > 0.4)) > 0.9
    ((points, rows, epsilon),) = drawn
    assert np.array_equal(points, QUERIES[:, :1])
    assert (rows, epsilon) == (len(X), 1.0)
    assert release.remaining_ == 0
    assert release._offline_.rows is None
    with pytest.raises(BudgetExhausted, match="hypothesis_"):
        release.predict(QUERIES[:5, :1])
    assert np.array_equal(release.hypothesis_.predict(QUERIES[:, :1]), labels)
    assert (release.guarantee_.epsilon, release.guarantee_.delta) == (1.0, 0.0)


@pytest.mark.claim("QUERY")
def test_offline_is_silent_about_unusable_rows() -> None:
    table, labels = X[:, :1].copy(), Y.copy()
    table[3], table[4], labels[5] = np.nan, np.inf, 9
    QueryRelease(Thresholds(), mechanism="offline").fit(table, labels).predict(QUERIES[:, :1])
    mixed: Any = [[value] for value in X[:200, 0]]
    mixed[7] = ["text"]
    QueryRelease(Thresholds(), mechanism="offline").fit(mixed, Y[:200]).predict([[0.5]])


def test_offline_takes_concept_classes_only() -> None:
    with pytest.raises(InvalidParameter, match="takes a concept class"):
        QueryRelease(LogisticRegression(), mechanism="offline").fit(X, Y)


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
            asked = plan.start(shards, SeededSource(int(RNG.integers(2**31))))
            wins += int(np.count_nonzero(asked.ask(np.column_stack([shards - lead, lead])) == 1))
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
        sizes.add(clone(release).fit(X, labels).n_shards_)
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
    with pytest.raises(InvalidData, match=f"4,000 rows are too few .* for {shards * rows:,};"):
        release.fit(X[:, :1], Y)
    # Were there as many, they would be split as printed, and run under the usual guarantee.
    few = subsamp_sizes(1000, 0.1, 0.1, 1.0, 1e-6, 2)
    small = replace(few, n_shards=300, shard_rows=10)
    monkeypatch.setattr(query_release, "subsamp_sizes", lambda *_: small)
    release.fit(X[:, :1], Y)
    assert (release.n_shards_, release.mechanism_) == (300, "stability")
    assert release._answers_.max_unstable == few.max_unstable
    assert release.guarantee_.within(1.0, 1e-6)
    for changes in (
        {"estimator": GaussianNB()},
        {"n_shards": 5},
        {"mechanism": "gaussian"},
        {"constants": "mine"},
    ):
        with pytest.raises(InvalidParameter):
            clone(release).set_params(**changes).fit(X[:, :1], Y)


# What is refused, clearly and for nothing


@pytest.mark.parametrize(
    ("changes", "error", "what"),
    [
        ({"n_shards": 2000}, InvalidParameter, "shards of 2 rows; 2 classes need 4 rows at least"),
        ({"n_shards": 0}, InvalidParameter, "n_shards"),
        ({"n_shards": "many"}, InvalidParameter, "n_shards"),
        ({"max_queries": 0}, InvalidParameter, "max_queries"),
        ({"epsilon": -1.0}, InvalidParameter, "epsilon"),
        ({"delta": 2.0}, InvalidParameter, "delta"),
        ({"delta": 0.0, "mechanism": "gaussian"}, InvalidParameter, "delta"),
        ({"mechanism": "magic"}, InvalidParameter, "mechanism"),
        ({"alpha": 0.0}, InvalidParameter, "alpha"),
        ({"max_unstable": 0}, InvalidParameter, "max_unstable"),
        ({"classes": (0,)}, InvalidParameter, "class"),
        ({"concept_class": Thresholds()}, InvalidParameter, "both given"),
        ({"estimator": Stumps(), "classes": (0, 1, 2)}, InvalidParameter, "two"),
        ({"mechanism": "between", "classes": (0, 1, 2)}, InvalidParameter, "takes two"),
        ({"columns": {"age": (0, 1)}}, InvalidParameter, "age"),
    ],
)
def test_bad_parameters_cost_nothing(changes: dict[str, Any], error: Any, what: str) -> None:
    budget = Budget(1.0, 1e-6)
    release = QueryRelease(DecisionTreeClassifier(), budget=budget).set_params(**changes)
    with pytest.raises(error, match=what):
        release.fit(X, Y)
    assert budget.remaining == (1.0, 1e-6)
    with pytest.raises(NotFittedError):
        release.predict(X)


@pytest.mark.parametrize(
    ("queries", "what"),
    [
        (np.zeros((3, 5)), "X has 5 features, but"),
        (np.zeros(3), "1 features"),
        ([[0.5, np.nan]], "missing value"),
        ([[0.5, None]], "missing value|no number"),
        ([[0.5, "a"]], "no number"),
        ([[0.5, np.inf]], "infinite in row 0, column 1"),
    ],
)
def test_bad_queries_cost_nothing(queries: Any, what: str) -> None:
    release = QueryRelease(max_queries=10).fit(X, Y)
    with pytest.raises(InvalidData, match=what):
        release.predict(queries)
    assert release.remaining_ == 10


def test_a_budget_is_paid_once_and_before() -> None:
    budget = Budget(1.5, 1e-5)
    release = QueryRelease(epsilon=1.0, max_queries=10, budget=budget)
    release.fit(X, Y).predict(QUERIES[:10])
    assert budget.remaining[0] == pytest.approx(0.5, abs=1e-3)
    with pytest.raises(BudgetExhausted):
        release.fit(X, Y)
    assert release.remaining_ == 0  # the earlier fit is still there, and still used up


def test_a_broken_fit_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    release = QueryRelease(max_queries=10).fit(X, Y)

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cumae.predictors.base.train_shards", stop)
    with pytest.raises(KeyboardInterrupt):
        release.fit(X, Y)
    with pytest.raises(NotFittedError):
        release.predict(QUERIES)
    assert not [name for name in vars(release) if name in ("_ensemble_", "_answers_", "guarantee_")]


def test_a_forked_process_gets_no_answers() -> None:
    release = QueryRelease(Thresholds(), max_queries=10).fit(X[:, :1], Y)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            release.predict([[0.5]])
            os.write(writing, b"answered")
        except LiveState:
            os.write(writing, b"refused")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 20) == b"refused"


# Tables of all kinds


def test_frames_reach_pipelines_as_frames() -> None:
    frame = pd.DataFrame({"size": X[:, 0], "job": np.where(X[:, 1] > 0.5, "baker", "nurse")})
    model = make_pipeline(
        OneHotEncoder(handle_unknown="ignore"), DecisionTreeClassifier(max_depth=3)
    )
    labels = (X[:, 1] > 0.5).astype(int)
    release = QueryRelease(model, epsilon=3.0, max_queries=100).fit(frame[["job"]], labels)
    assert release.predict(pd.DataFrame({"job": ["baker", "nurse"]})).tolist() == [1, 0]
    with pytest.raises(InvalidData, match="columns"):
        release.predict([["baker"]])
    with pytest.raises(InvalidData, match=r"missing value .* row 0, column job"):
        release.predict(pd.DataFrame({"job": [None]}))
    declared = QueryRelease(
        epsilon=3.0, max_queries=100, columns={"size": (0, 1), "job": ["baker", "nurse"]}
    ).fit(frame, labels)
    assert declared.predict([[0.5, "baker"], [0.5, "nurse"]]).tolist() == [1, 0]
    assert declared.feature_names_in_.tolist() == ["size", "job"]


def test_concept_classes_take_frames_of_numbers() -> None:
    frame = pd.DataFrame({"size": X[:, 0]})
    for mechanism in ("auto", "offline"):
        release = QueryRelease(Thresholds(), 3.0, max_queries=20, mechanism=mechanism)
        asked = pd.DataFrame({"size": [0.05, 0.95]})
        assert release.fit(frame, Y).predict(asked).tolist() == [0, 1]


def test_a_row_of_text_in_a_list_is_not_seen() -> None:
    mixed: Any = X.tolist()
    mixed[5] = ["what", None]
    release = QueryRelease(epsilon=3.0, max_queries=100).fit(mixed, Y.tolist())
    assert release.predict([[0.05, 0.5], [0.95, 0.5]]).tolist() == [0, 1]


def test_estimators_without_a_stacked_form() -> None:
    model = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5)
    release = QueryRelease(model, epsilon=5.0, max_queries=20, n_shards=40).fit(X, Y)
    assert np.mean(release.predict([[0.05, 0.5], [0.95, 0.5]] * 5) == [0, 1] * 5) > 0.8


@pytest.mark.claim("QUERY")
@pytest.mark.parametrize("law", PREDICTOR_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("mechanism", ["stability", "gaussian"])
def test_laws_of_predictors(law: Any, mechanism: str) -> None:
    for row, label in (([np.nan, 0.0], 1), ([1e300, 0.5], 9)):
        pair = Neighbours.replacing(X[:1500], Y[:1500], 7, row, label, queries=QUERIES[:20])
        release = QueryRelease(epsilon=5.0, max_queries=30, mechanism=mechanism, max_unstable=3)
        law(release, pair)


def test_a_million_queries_take_little_memory() -> None:
    release = QueryRelease(Thresholds(), 9.0, max_queries=10**6).fit(X[:, :1], Y)
    queries = np.random.default_rng(0).random((10**6, 1))
    release.predict(queries[:1])
    tracemalloc.start()
    answers = release.predict(queries[1:])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(answers) == 10**6 - 1
    assert peak < 200 * 2**20


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
