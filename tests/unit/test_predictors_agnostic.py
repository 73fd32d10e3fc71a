"""AgnosticQueryRelease: relabel, then answer; and the sizes that the paper asks for."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, norm
from sklearn.tree import DecisionTreeClassifier

from cumae.checks import PREDICTOR_LAWS, Neighbours
from cumae.concepts import Halfspaces, Intervals, Rectangles, Stumps, Thresholds, Trees
from cumae.ensembles.trainer import Trainer
from cumae.errors import BudgetExhausted, InvalidData, InvalidParameter, TooFewRows
from cumae.estimators import own_clone
from cumae.mechanisms import noise
from cumae.predictors.relabelling import Relabelling, agnostic_costs
from cumae.predictors.release import agnostic
from cumae.predictors.release.agnostic import AgnosticQueryRelease
from cumae.privacy import Approximate, Budget
from cumae.randomness import discrete_gaussian
from cumae.theorems.query_release import (
    AgnosticSizes,
    SubSampSizes,
    agnostic_sizes,
    first_queries,
    shards_for,
    subsamp_sizes,
    unstable_queries,
)
from cumae.theorems.vc import consistent_rows

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(5)
X = RNG.random((6000, 1))
CLEAN = X[:, 0] > 0.4
Y = (CLEAN ^ (RNG.random(6000) < 0.1)).astype(int)
QUERIES = RNG.random((60, 1))


class Recorder:
    """Records draws, what shards are trained on, and the scales of noise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.draws: list[tuple[float, Any, Any, Any, Any]] = []
        self.shards: list[tuple[Any, Any]] = []
        self.scales: list[float] = []
        choose, train = Thresholds.choose, Trainer.train

        def chosen(concept: Any, points: Any, X: Any, y: Any, epsilon: float, **more: Any) -> Any:
            drawn = choose(concept, points, X, y, epsilon, **more)
            self.draws.append((epsilon, np.array(points), np.array(X), np.array(y), drawn))
            return drawn

        def trained(trainer: Any, rows: Any, labels: Any, seed: int) -> Any:
            self.shards.append((np.array(rows), np.array(labels)))
            return train(trainer, rows, labels, seed)

        def noisy(scale: float, size: int, source: Any) -> Any:
            self.scales.append(scale)
            return discrete_gaussian(scale, size, source)

        monkeypatch.setattr(Thresholds, "choose", chosen)
        monkeypatch.setattr(Trainer, "train", trained)
        monkeypatch.setattr(noise, "discrete_gaussian", noisy)

    @property
    def trained_on(self) -> tuple[Any, Any]:
        rows, labels = zip(*self.shards, strict=True)
        return np.concatenate(rows)[:, 0], np.concatenate(labels)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Epsilon of real Gaussian noise, from the two normal tails."""

    def gap(e: float) -> float:
        return float(norm.cdf(mu / 2 - e / mu) - math.exp(e) * norm.cdf(-mu / 2 - e / mu) - delta)

    return float(brentq(gap, 0.0, 50.0))


def resampling(epsilon: float, n: int) -> tuple[float, float]:
    """Return ln R and C of the proof BOOT, term by term."""
    p = np.asarray(binom.pmf(np.arange(80), n, 1 / n))
    x = math.exp(epsilon)

    def ratio(cut: int) -> float:
        top = sum(p[:cut]) + sum(p[i] * x**i for i in range(cut, 80))
        return float(top / (sum(p[i] * x**-i for i in range(cut)) + sum(p[cut:])))

    cut = max(range(20), key=ratio)
    chain = [sum(x**j for j in range(i)) for i in range(80)]
    low = sum(p[i] * x**-i * chain[i] for i in range(cut))
    return math.log(ratio(cut)), ratio(cut) * low + sum(p[i] * chain[i] for i in range(cut, 80))


# Guarantees


@pytest.mark.claim("AGPRIV")
@pytest.mark.parametrize("resample", [False, True])
@pytest.mark.parametrize(("epsilon", "boost", "answers"), [(1.0, 0.8, 1.1), (0.5, 1.0, 0.6)])
def test_costs_from_the_inside_out(
    epsilon: float, boost: float, answers: float, resample: bool
) -> None:
    steps = Relabelling(9000, 700, boost, resample)
    costs = dict(agnostic_costs(Approximate(answers, 1e-5), steps, Thresholds()))
    inner, factor = resampling(answers, 700) if resample else (answers, 1.0)
    relabelled = inner + 2 * math.log(1 + math.exp(boost / 2))
    assert costs["relabelled"].eps == pytest.approx(relabelled, rel=1e-6)
    total = math.log(1 + 700 / 9000 * (math.exp(relabelled) - 1))
    assert total * (1 - 1e-9) <= costs["sampled"].eps <= total * (1 + 1e-6)
    delta = 700 / 9000 * factor * 1e-5
    assert delta * (1 - 1e-9) <= costs["sampled"].failure <= delta * (1 + 1e-6)


@pytest.mark.claim("AGPRIV")
@pytest.mark.parametrize("resample", [False, True])
def test_the_guarantee_is_that_of_what_runs(
    resample: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Recorder(monkeypatch)
    release = AgnosticQueryRelease(
        Thresholds(), 1.5, 1e-5, 200, mechanism="gaussian", resample=resample
    )
    release.fit(X, Y).predict(QUERIES)
    watch.shards = watch.shards[-release.n_shards_ :]  # the others were made-up rows
    ((drawn, points, rows, labels, hypothesis),) = watch.draws
    n = release.n_sampled_
    assert drawn == release.epsilon_boost_
    assert len(points) == n == len(set(points[:, 0].tolist()))
    assert np.array_equal(points, rows)  # all points define candidates, and all are scored
    places = {value: place for place, value in enumerate(X[:, 0].tolist())}
    order = [places[value] for value in points[:, 0].tolist()]
    assert np.array_equal(labels, Y[order])
    assert order != sorted(order)  # in random order
    seen, found = watch.trained_on
    assert len(seen) == n
    assert np.array_equal(found, hypothesis.predict(seen.reshape(-1, 1)))
    if resample:
        assert set(seen.tolist()) < set(points[:, 0].tolist())
    else:
        assert sorted(seen.tolist()) == sorted(points[:, 0].tolist())
    (scale,) = set(watch.scales)
    delta = release.stages_[0]["delta"]
    answers = gaussian_epsilon(math.sqrt(200) / scale, delta)
    assert release.epsilon_answers_ == pytest.approx(answers, rel=2e-3)
    inner, factor = resampling(answers, n) if resample else (answers, 1.0)
    inner += 2 * math.log(1 + math.exp(drawn / 2))
    total = math.log(1 + n / len(X) * (math.exp(inner) - 1))
    assert release.guarantee_.epsilon == pytest.approx(total, rel=5e-3)
    assert release.guarantee_.epsilon <= 1.5
    assert n / len(X) * factor * delta <= 1e-5 * (1 + 1e-9)
    # Read off the curve of the pair, which rounds up by a hair.
    assert release.stages_[-1]["epsilon"] <= release.guarantee_.epsilon
    assert release.stages_[-1]["epsilon"] == pytest.approx(release.guarantee_.epsilon, rel=1e-8)
    assert release.stages_[-1]["rows"] == len(X)
    claims = release.guarantee_.claims
    assert {"AGPRIV", "LB", "SUB"} < set(claims)
    assert ("BOOT" in claims) == resample


@pytest.mark.claim("AGPRIV")
@pytest.mark.parametrize("epsilon", [0.2, 4.0, 30.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("resample", [False, True])
def test_never_more_than_was_asked(epsilon: float, delta: float, resample: bool) -> None:
    for concept in (Thresholds(), Intervals()):
        release = AgnosticQueryRelease(concept, epsilon, delta, 20, resample=resample, n_shards=5)
        release.set_params(mechanism="gaussian" if delta else "auto").fit(X, Y)
        assert release.guarantee_.epsilon <= epsilon
        assert release.guarantee_.delta == delta
        assert release.stages_[-1]["delta"] <= delta
        assert release.mechanism_ == "laplace" if delta == 0 else True


@pytest.mark.claim("AGPRIV")
def test_many_answers_with_laplace_noise_are_read_at_their_delta() -> None:
    release = AgnosticQueryRelease(Thresholds(), 1.0, 1e-3, 400, mechanism="laplace", n_shards=5)
    release.fit(X, Y)
    assert release._state_.need_voting().rule.cost.pure > release.epsilon_answers_
    assert release.stages_[0]["delta"] > 0
    assert release.guarantee_.epsilon <= 1.0


def test_as_many_rows_as_privacy_allows() -> None:
    x, y = np.tile(X, (10, 1)), np.tile(Y, 10)
    plain = AgnosticQueryRelease(Thresholds(), 1.0, mechanism="gaussian", n_shards=5)
    one = own_clone(plain).set_params(epsilon_boost=1.0, epsilon_answers=1.0).fit(x, y)
    rate = math.expm1(1.0) / math.expm1(1.0 + 2 * math.log(1 + math.exp(0.5)))
    assert abs(one.n_sampled_ - rate * len(x)) <= 1
    best = own_clone(plain).fit(x, y)
    assert best.n_sampled_ * best.epsilon_answers_ > one.n_sampled_ * one.epsilon_answers_
    # A smaller error asks for a better draw.
    close = own_clone(plain).set_params(alpha=0.02).fit(x, y)
    assert close.epsilon_boost_ > best.epsilon_boost_


# Answers


@pytest.mark.claim("AGPRIV")
@pytest.mark.parametrize("mechanism", ["auto", "stability", "between"])
def test_without_privacy_it_is_the_majority_of_relabelled_shards(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Recorder(monkeypatch)
    release = AgnosticQueryRelease(Thresholds(), math.inf, mechanism=mechanism, n_shards=21)
    release.fit(X, Y)
    assert release.n_sampled_ == len(X)
    hypothesis = watch.draws[0][-1]
    assert np.mean(hypothesis.predict(X) == Y) >= np.mean(Thresholds().erm(X, Y).predict(X) == Y)
    votes = np.zeros(len(QUERIES), dtype=int)
    for rows, labels in watch.shards[-21:]:
        assert np.array_equal(labels, hypothesis.predict(rows))
        votes += Thresholds().erm(rows, labels).predict(QUERIES)
    assert release.predict(QUERIES).tolist() == (votes > 10).astype(int).tolist()
    assert release.guarantee_.epsilon == math.inf


def test_accuracy_with_noisy_labels() -> None:
    rng = np.random.default_rng(8)
    x = rng.random((60_000, 1))
    y = (x[:, 0] > 0.3) ^ (rng.random(60_000) < 0.1)
    release = AgnosticQueryRelease(Thresholds(), 1.0, 1e-6, 300, random_state=4).fit(x, y)
    queries = rng.random((300, 1))
    assert np.mean(release.predict(queries) == (queries[:, 0] > 0.3)) > 0.9
    assert release.remaining_ == 0
    with pytest.raises(BudgetExhausted):
        release.predict(queries[:1])


@pytest.mark.parametrize("concept", [Rectangles(), Stumps(), Halfspaces(), Intervals()])
def test_other_classes(concept: Any) -> None:
    width = 1 if isinstance(concept, Intervals) else 2
    rng = np.random.default_rng(9)
    x = rng.random((1500, width))
    y = (x[:, -1] > 0.4) ^ (rng.random(1500) < 0.1)
    release = AgnosticQueryRelease(concept, 30.0, 1e-6, 200, random_state=3, n_shards=15)
    right = release.fit(x, y).predict(x[:200]) == (x[:200, -1] > 0.4)
    assert np.mean(right) > 0.85


# What cannot be seen, and what is refused


@pytest.mark.claim("AGPRIV")
@pytest.mark.usefixtures("trials_shared")
@pytest.mark.parametrize("law", PREDICTOR_LAWS, ids=lambda law: law.__name__)
def test_laws_of_predictors(law: Any) -> None:
    for row, label in (([np.nan], 1), ([1.7e308], 9)):
        pair = Neighbours.replacing(X, Y, 7, row, label, queries=QUERIES[:20])
        release = AgnosticQueryRelease(Thresholds(), 5.0, max_queries=30, n_shards=9)
        law(release.set_params(mechanism="gaussian"), pair)


@pytest.mark.claim("AGPRIV")
def test_one_row_of_objects_cannot_be_seen() -> None:
    table = X[:800].astype(object)
    seeds: dict[str, Any] = {"n_shards": 5, "random_state": 2}
    facts = []
    for cell in (0.5, "text", None, 10**400, [1]):
        one = table.copy()
        one[3, 0] = cell
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", TooFewRows)
            release = AgnosticQueryRelease(Thresholds(), 9.0, 0.0, 10, **seeds).fit(one, Y[:800])
            release.predict(QUERIES[:5])
        facts.append((str(release.guarantee_), release.stages_, release.n_sampled_))
    assert all(fact == facts[0] for fact in facts)


def test_refusals_before_anything_is_paid() -> None:
    budget = Budget(1.0, 1e-5)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"concept_class": Trees(2)}, "cannot boost labels"),
        ({"concept_class": DecisionTreeClassifier()}, "give one of cumae.concepts"),
        ({"concept_class": None}, "give one of cumae.concepts"),
        ({"mechanism": "offline"}, "mechanism"),
        ({"constants": "own"}, "constants"),
        ({"epsilon_boost": 0.0}, "epsilon_boost"),
        ({"epsilon_answers": -1.0}, "epsilon_answers"),
        ({"n_shards": 10**6}, "n_shards"),
        ({"classes": (0, 1, 2)}, "two"),
        ({"alpha": 1.0}, "alpha"),
        ({"max_queries": 0}, "max_queries"),
        ({"delta": 0.0, "mechanism": "gaussian"}, "delta"),
    ]
    for parameters, message in wrong:
        release = AgnosticQueryRelease(Thresholds(), budget=budget).set_params(**parameters)
        with pytest.raises((InvalidParameter, InvalidData), match=message):
            release.fit(X, Y)
    with pytest.raises(InvalidData, match="none to be sampled"):
        AgnosticQueryRelease(Thresholds(), 0.001, budget=budget).fit(X[:200], Y[:200])
    with pytest.raises(InvalidParameter, match="column"):
        AgnosticQueryRelease(Thresholds(), budget=budget).fit(np.tile(X, 2), Y)
    with pytest.raises(InvalidData, match="text"):
        AgnosticQueryRelease(Thresholds()).fit(pd.DataFrame({"a": ["x", "y"] * 50}), Y[:100])
    assert not budget.entries
    with pytest.raises(BudgetExhausted):
        AgnosticQueryRelease(Thresholds(), 1.5, budget=budget, n_shards=5).fit(X, Y)
    assert not budget.entries
    release = AgnosticQueryRelease(Thresholds(), 1.0, budget=budget, n_shards=5).fit(X, Y)
    assert len(budget.entries) == 1
    assert own_clone(release).get_params()["n_shards"] == 5


def test_frames_and_declared_columns() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"job": rng.choice(["baker", "nurse"], 3000), "age": rng.random(3000)})
    y = np.where((frame["job"] == "nurse") ^ (rng.random(3000) < 0.1), "yes", "no")
    release = AgnosticQueryRelease(
        Stumps(),
        20.0,
        1e-6,
        50,
        n_shards=15,
        columns={"job": ["baker", "nurse"], "age": (0, 1)},
        classes=("no", "yes"),
        random_state=1,
    ).fit(frame, y)
    assert (
        release.predict(frame[:20]).tolist()
        == np.where(frame["job"][:20] == "nurse", "yes", "no").tolist()
    )
    plain = AgnosticQueryRelease(Thresholds(), 20.0, 1e-6, 5, n_shards=5)
    plain.fit(frame[["age"]], frame["age"] > 0.5)
    assert plain.predict(pd.DataFrame({"age": [0.01, 0.99]})).tolist() == [0, 1]


# The paper's sizes


def test_sizes_by_hand() -> None:
    assert consistent_rows(0.5, 0.5, 1) == 78  # 16 (ln 32 + ln 4) = 77.63
    assert consistent_rows(0.5, 0.5, 3) == 189  # 16 (3 ln 32 + ln 4) = 188.54
    assert unstable_queries(1000, 0.01, 0.1) == 51  # 3 (10 + sqrt(5 ln 10000)) = 50.36
    assert unstable_queries(1, 1e-9, 0.5) == 1
    # ln(2/delta) = 8, lambda = sqrt(512), sqrt(2) lambda = 32, 34 * 32 * 13.991465 = 15222.7
    assert shards_for(100, 2, 1.0, 2 * math.exp(-8), 0.9) == 15_223
    assert first_queries(0.1, 0.1, 1) == 1474  # 320 ln 100 = 1473.65
    assert first_queries(0.1, 0.1, 1, constant=4.0) == 185  # 40 ln 100 = 184.2


def test_subsamp_by_hand() -> None:
    sizes = subsamp_sizes(600, 0.06, 0.2, 2.0, 2 * math.exp(-8), 2)
    # 3 (6 + sqrt(3 ln 3000)) = 32.70; sqrt(32 * 33 * 8)/2 = 45.956; ln(79200/delta) = 18.58661
    assert sizes.max_unstable == 33
    assert sizes.n_shards == pytest.approx(34 * math.sqrt(2) * 45.956 * 18.58661, rel=1e-4)
    # 800 (2 ln 1600 + ln(4 k/0.2))
    rows = 800 * (2 * 7.377759 + math.log(20 * sizes.n_shards))
    assert sizes.shard_rows == pytest.approx(rows, rel=1e-4)
    assert sizes.n_rows == sizes.n_shards * sizes.shard_rows


def test_agnostic_sizes_by_hand() -> None:
    alpha = beta = math.exp(-1)
    sizes = agnostic_sizes(100, alpha, beta, 0.5, 2 * math.exp(-8), 1)
    answers = sizes.answers
    assert answers.epsilon == pytest.approx(1 / 8)
    assert answers.delta == pytest.approx(math.exp(-8) / (8 * math.e))
    assert answers.max_unstable == 18  # 3 (3.0657 + sqrt(3.0657 * 5.60517/2)) = 17.99
    # lambda = 8 sqrt(32 * 18 * 11.772589) = 658.775; the logarithm is 8.881836 + 11.079442
    assert answers.n_shards == pytest.approx(34 * math.sqrt(2) * 658.775 * 19.961278, rel=1e-5)
    # (8 * 24 e) (ln(384 e) + ln(32 k e)) rows for each shard
    rows = 8 * 24 * math.e * (2 + math.log(384) + math.log(32 * answers.n_shards))
    assert sizes.n_sampled == pytest.approx(rows * answers.n_shards, rel=1e-4)
    assert sizes.n_rows == pytest.approx(112 * sizes.n_sampled, rel=1e-9)
    # With hardly any shards it is the printed 8000 or 7200 that counts; both are below here.
    printed = 8000 * (1 + 5.60517) * 8**1.5 * math.log(100 / math.e / (2 * math.exp(-8)))
    printed *= math.e**2 * max(1, 10 * math.exp(-1.5))
    assert sizes.n_sampled > printed


def test_the_paper_refuses_with_the_rows_it_needs() -> None:
    needed = agnostic_sizes(1000, 0.1, 0.05, 0.9, 1e-6, 2).n_rows
    release = AgnosticQueryRelease(Thresholds(), 0.9, constants="paper")
    with pytest.raises(InvalidData, match=f"6,000 rows are too few .* asks for {needed:,}"):
        release.fit(X, Y)
    with pytest.raises(InvalidParameter, match="queries or more"):
        release.set_params(max_queries=10).fit(X, Y)
    for name, value in (("n_shards", 9), ("mechanism", "gaussian"), ("epsilon_boost", 1.0)):
        wrong = AgnosticQueryRelease(Thresholds(), 0.9, constants="paper")
        with pytest.raises(InvalidParameter, match=name):
            wrong.set_params(**{name: value}).fit(X, Y)
    with pytest.raises(InvalidParameter, match="epsilon"):
        AgnosticQueryRelease(Thresholds(), 2.0, constants="paper").fit(X, Y)


@pytest.mark.claim("AGPRIV")
def test_the_paper_runs_with_its_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    # The true sizes need more rows than there are anywhere; smaller ones take the same path.
    sizes = AgnosticSizes(6000, 90, SubSampSizes(12, 7, 4, 0.5, 1e-4))
    monkeypatch.setattr(agnostic, "agnostic_sizes", lambda *_: sizes)
    watch = Recorder(monkeypatch)
    release = AgnosticQueryRelease(Thresholds(), 0.9, 1e-3, 500, constants="paper").fit(X, Y)
    assert release.n_sampled_ == len(watch.draws[0][1]) == math.floor(0.9 / 56 * 6000)
    assert release.epsilon_boost_ == watch.draws[0][0] == 1.0
    assert (release.mechanism_, release.n_shards_) == ("stability", 12)
    assert release._state_.need_voting().rule.max_unstable == 4
    names = [stage["name"] for stage in release.stages_]
    assert names == ["answers", "resampled", "relabelled", "sampled"]
    inner = resampling(release.stages_[0]["epsilon"], 96)[0] + 2 * math.log(1 + math.exp(0.5))
    total = math.log(1 + 96 / 6000 * (math.exp(inner) - 1))
    assert release.guarantee_.epsilon <= total * (1 + 1e-6) < 0.9
