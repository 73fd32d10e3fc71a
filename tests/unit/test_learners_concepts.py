"""PrivateLearner, GenericLearner, SemiPrivateLearner: costs, exactness and covers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Floats
from cumae.concepts import (
    ConceptClass,
    FiniteClass,
    Halfspaces,
    Intervals,
    Points,
    Projections,
    Rectangles,
    Stumps,
    Threshold,
    Thresholds,
    Trees,
    UnionOfIntervals,
)
from cumae.errors import InvalidData, InvalidParameter
from cumae.learners import GenericLearner, PrivateLearner, SemiPrivateLearner
from cumae.learners.base import Learner
from cumae.learners.exponential import excess_errors
from cumae.privacy import BoundedRange, Cost, Pure, parallel
from cumae.sanitizers import Quantiles, Sanitizer, StableThresholds
from tests.statistics import binomial_rejects

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

RNG = np.random.default_rng(3)
X = RNG.random((240, 2))
Y = ((X[:, 0] > 0.4) ^ (RNG.random(240) < 0.1)).astype(int)
SOME = np.where(np.arange(240) < 120, Y, -1)
UNIT = [(0, 1), (0, 1)]
EPSILONS = [0.0, 0.05, 1.0, 3.0, 50.0, math.inf]
DELTAS = [0.0, 1e-6]


class Fixed(Sanitizer):
    """Publishes points that were fixed beforehand, at no cost."""

    claims = ("NONE",)

    def __init__(self, points: ArrayLike) -> None:
        self.points = np.asarray(points, dtype=float)
        super().__init__(None)

    @property
    def cost(self) -> Cost:
        return Pure(0.0)

    def sanitize(self, X: ArrayLike) -> Floats:
        return self.points


# Costs


@pytest.mark.claim("KLNRS", "SSPP")
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_pure_learners_cost_epsilon(epsilon: float) -> None:
    learners: list[Learner] = [
        PrivateLearner(Stumps(), epsilon, columns=UNIT).fit(X, Y),
        PrivateLearner(Stumps(), epsilon).fit(X, Y, X),
        SemiPrivateLearner(Stumps(), epsilon).fit(X, Y, X),
        SemiPrivateLearner(Stumps(), epsilon, label_privacy=True).fit(X, Y),
        GenericLearner(Stumps(), epsilon).fit(X, SOME, X),
    ]
    for learner in learners:
        guarantee = learner.guarantee_
        assert (guarantee.epsilon, guarantee.delta) == (epsilon, 0.0)
        assert guarantee.rho == (None if epsilon == math.inf else epsilon**2 / 8)
        assert not guarantee.void
        assert "CHOOSE" in guarantee.claims
        assert "RAND" in guarantee.claims


@pytest.mark.claim("GENERIC")
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS[1:])
def test_a_generic_learner_costs_the_larger_of_its_parts(epsilon: float, delta: float) -> None:
    for kind in ("quantiles", "stable") if delta else ("quantiles",):
        learner = GenericLearner(Stumps(), epsilon, delta, kind, columns=UNIT, n_points=3)
        guarantee = learner.fit(X, SOME).guarantee_
        assert (guarantee.epsilon, guarantee.delta) == (epsilon, delta) or (
            # With a delta, bounded ranges are cheaper than their pure epsilon.
            guarantee.epsilon < epsilon and 0 < delta == guarantee.delta
        )
        part: Sanitizer = Quantiles(epsilon, UNIT, 3)
        if kind == "stable":
            part = StableThresholds(epsilon, delta, 3)
        expected = parallel(BoundedRange(epsilon), part.cost).epsilon(delta)
        assert guarantee.epsilon == pytest.approx(expected, rel=1e-9)
        assert guarantee.epsilon >= BoundedRange(epsilon).epsilon(delta) * (1 - 1e-9)
        assert "which rows are labelled is public" in guarantee.relation
        assert {"GENERIC", "PAR", "CHOOSE"} <= set(guarantee.claims)


@pytest.mark.claim("GENERIC")
def test_a_sanitizer_of_its_own_cost() -> None:
    cheap = GenericLearner(Stumps(), 1.0, 0.0, Quantiles(0.25, n_points=3)).fit(X, SOME)
    assert cheap.guarantee_.epsilon == 1.0
    with pytest.raises(InvalidParameter, match=r"costs more than epsilon=1.0, delta=0.0; give it"):
        GenericLearner(Stumps(), 1.0, 0.0, Quantiles(1.5)).fit(X, SOME)
    with pytest.raises(InvalidParameter, match="costs more"):
        GenericLearner(Stumps(), 1.0, 0.0, StableThresholds(1.0, 1e-6)).fit(X, SOME)
    seeded = GenericLearner(Stumps(), 1.0, 0.0, Quantiles(1.0, random_state=1)).fit(X, SOME)
    assert seeded.guarantee_.void
    with pytest.raises(InvalidParameter, match="sanitizer"):
        GenericLearner(Stumps(), sanitizer="unknown").fit(X, SOME)


def test_auto_sanitizers_go_by_declarations() -> None:
    claims = [
        GenericLearner(Stumps(), 1.0, delta, columns=columns).fit(X, SOME).guarantee_.claims
        for delta, columns in ((0.0, None), (1e-6, None), (1e-6, UNIT))
    ]
    assert ["STABLE" in names for names in claims] == [False, True, False]


# As epsilon grows: the best of the same candidates


def all_candidates(learner: Any, *data: Any) -> list[Any]:
    """Return every candidate: at epsilon 0 all are equally likely."""
    learner.set_params(epsilon=0.0).fit(*data)
    count = learner.n_candidates_
    assert count <= 60, count
    drawn = {}
    for _ in range(30 * count):  # one is missed with chance 60 exp(-30) at most
        hypothesis = learner.fit(*data).hypothesis_
        drawn[str(hypothesis)] = hypothesis
    assert len(drawn) <= count  # some have the same text
    return list(drawn.values())


SINGLE = [Thresholds(), Thresholds("above"), Points(), Intervals()]


@pytest.mark.claim("KLNRS", "GENERIC", "SSPP")
@pytest.mark.parametrize("concept", [*SINGLE, Stumps()], ids=repr)
def test_without_noise_the_best_candidate_wins(concept: ConceptClass) -> None:
    rows = X[:80] if isinstance(concept, Stumps) else X[:80, :1]
    y, some = Y[:80], np.where(np.arange(80) < 40, Y[:80], -1)
    width = rows.shape[1]
    points = np.linspace(0.05, 0.95, 5).repeat(width).reshape(5, width)
    cases: list[tuple[Any, tuple[Any, ...], Any]] = [
        (PrivateLearner(concept, columns=UNIT[:width], n_points=4), (rows, y), slice(None)),
        (SemiPrivateLearner(concept), (rows, y, points), slice(None)),
        (GenericLearner(concept, sanitizer=Fixed(points)), (rows, some), slice(0, 40)),
    ]
    for learner, data, labelled in cases:
        seen, labels = rows[labelled], y[labelled]
        scores = [
            np.count_nonzero(h.predict(seen) == labels) for h in all_candidates(learner, *data)
        ]
        best = learner.set_params(epsilon=math.inf).fit(*data)
        assert np.count_nonzero(best.predict(seen) == labels) == max(scores)


MANY: list[ConceptClass] = [
    *SINGLE,
    UnionOfIntervals(2),
    Stumps(),
    Trees(1),
    Rectangles(),
    Halfspaces(),
    Projections([[1.0, 0.0], [1.0, 1.0]]),
]


@pytest.mark.claim("KLNRS", "GENERIC", "SSPP")
@pytest.mark.parametrize("concept", MANY, ids=repr)
def test_without_noise_and_with_all_rows_public_it_is_the_exact_minimiser(
    concept: ConceptClass,
) -> None:
    rows = X[:50, :1] if isinstance(concept, (*map(type, SINGLE), UnionOfIntervals)) else X[:50]
    y = Y[:50]
    best = np.count_nonzero(concept.erm(rows, y).predict(rows) == y)
    if isinstance(concept, Trees):  # candidates are cut at quantiles: here, at all gaps
        learners: list[Learner] = [
            PrivateLearner(concept, math.inf, n_points=60).fit(rows, y, rows),
            SemiPrivateLearner(concept, math.inf, n_points=60).fit(rows, y, rows),
        ]
    else:
        learners = [
            PrivateLearner(concept, math.inf).fit(rows, y, rows),
            SemiPrivateLearner(concept, math.inf).fit(rows, y, rows),
            SemiPrivateLearner(concept, math.inf, label_privacy=True).fit(rows, y),
            GenericLearner(concept, math.inf).fit(rows, y, rows),
        ]
    if rows.shape[1] == 1:  # else sanitized columns are combined, which are many more points
        both, some = np.vstack([rows, rows]), np.append(y, np.full(50, -1))
        learners.append(GenericLearner(concept, math.inf, sanitizer=Fixed(rows)).fit(both, some))
    for learner in learners:
        assert np.count_nonzero(learner.predict(rows) == y) == best


def test_a_finite_class_needs_no_bounds() -> None:
    rules = FiniteClass([Stumps().erm(X, Y), Stumps().erm(X, 1 - Y)])
    learner = PrivateLearner(rules, math.inf).fit(X, Y)
    assert learner.score(X, Y) == np.mean(rules.erm(X, Y).predict(X) == Y)


@pytest.mark.claim("KLNRS")
@pytest.mark.statistical
def test_excess_errors_hold() -> None:
    """Errors beyond the best candidate's exceed the bound with chance beta at most."""
    learner = PrivateLearner(Thresholds(), 0.2, columns=[(0, 1)], n_points=15)
    rows, beta = X[:, :1], 0.05
    best = PrivateLearner(Thresholds(), math.inf, columns=[(0, 1)], n_points=15).fit(rows, Y)
    least = np.count_nonzero(best.predict(rows) != Y)
    excess = []
    for _ in range(200):
        errors = np.count_nonzero(learner.fit(rows, Y).predict(rows) != Y)
        excess.append(errors - least)
    bound = learner.excess_errors(beta)
    assert bound == excess_errors(learner.n_candidates_, 0.2, beta)
    assert bound == pytest.approx(10 * math.log(learner.n_candidates_ / beta))
    assert max(excess) > 0
    assert not binomial_rejects(int(np.sum(np.array(excess) > bound)), 200, beta)
    assert binomial_rejects(int(np.sum(np.array(excess) > bound / 20)), 200, beta, checks=0)


def test_excess_errors_of_extreme_figures() -> None:
    assert excess_errors(10, 0.0, 0.5) == math.inf
    assert excess_errors(10, math.inf, 0.5) == 0
    huge = excess_errors(2**5000, 2.0, 0.5)
    assert huge == pytest.approx(5001 * math.log(2))
    with pytest.raises(InvalidParameter, match="beta"):
        excess_errors(10, 1.0, 0.0)


# Covers: Lemma 3.3 of paper 4


def points_of_the_lemma(dimension: int, alpha: float, beta: float) -> int:
    """Return the least n with 2 (2 e n / d)^(2 d) exp(-alpha n / 4) <= beta."""
    n = 1
    while math.log(2) + 2 * dimension * math.log(
        2 * math.e * n / dimension
    ) - alpha * n / 4 > math.log(beta):
        n += 1
    return n


GRID = np.linspace(0, 1, 400).reshape(-1, 1)  # stands for the uniform distribution


def radius(concept: ConceptClass, public: NDArray[Any]) -> float:
    """Return how far, at worst, the concepts that part the widest gaps are from a candidate."""
    ends = np.sort(np.concatenate([[0.0], public[:, 0], [1.0]]))
    widest = np.argsort(np.diff(ends))[-2:]
    (a, b), (c, d) = sorted((ends[gap] + 1e-9, ends[gap + 1] - 1e-9) for gap in widest)
    targets = [GRID[:, 0] >= a, GRID[:, 0] >= b]
    if isinstance(concept, Intervals):
        targets += [
            (low <= GRID[:, 0]) & (GRID[:, 0] <= high)
            for low, high in ((a, b), (c, d), (a, d), (b, c))
        ]
    learner = SemiPrivateLearner(concept, math.inf)
    return max(float(np.mean(learner.fit(GRID, t, public).predict(GRID) != t)) for t in targets)


@pytest.mark.claim("SSPP")
@pytest.mark.statistical
@pytest.mark.parametrize("concept", [Thresholds(), Intervals()], ids=repr)
def test_public_points_cover_the_class(concept: ConceptClass) -> None:
    alpha, beta, trials = 0.2, 0.05, 100
    enough = points_of_the_lemma(concept.vc_dimension(1), alpha, beta)

    def failures(count: int) -> int:
        tables = (RNG.random((count, 1)) for _ in range(trials))
        return sum(radius(concept, table) > alpha for table in tables)

    assert not binomial_rejects(failures(enough), trials, beta, checks=2)
    assert binomial_rejects(failures(1), trials, beta, checks=0)


# Public rows


@pytest.mark.claim("SSPP")
def test_known_public_labels_add_to_the_score_for_free() -> None:
    rows, public = np.array([[0.2], [0.8]]), np.linspace(0, 1, 11).reshape(-1, 1)
    known = np.where(np.arange(11) >= 8, 1, 0)
    known[3] = -1
    learner = SemiPrivateLearner(Thresholds("above"), 1000.0)
    learner.fit(rows, [0, 1], public, known)
    assert learner.predict(public).tolist() == [0] * 8 + [1] * 3
    assert learner.guarantee_.epsilon == 1000.0
    # At epsilon 1 two private rows say little; ten thousand public ones decide.
    many, truth = np.tile(public, (1000, 1)), np.tile((np.arange(11) >= 8).astype(int), 1000)
    sure = SemiPrivateLearner(Thresholds("above"), 1.0).fit(rows, [0, 1], many, truth)
    assert sure.predict(public).tolist() == [0] * 8 + [1] * 3
    assert (sure.guarantee_.epsilon, sure.guarantee_.delta) == (1.0, 0.0)
    with pytest.raises(InvalidParameter, match="y_public was given without X_public"):
        learner.fit(rows, [0, 1], y_public=known)
    with pytest.raises(InvalidData, match="X has 11 rows but y has 10"):
        learner.fit(rows, [0, 1], public, known[1:])
    with pytest.raises(InvalidParameter, match="-1 marks"):
        SemiPrivateLearner(classes=(-1, 1)).fit(X, 2 * Y - 1, X, 2 * Y - 1)
    SemiPrivateLearner(classes=(-1, 1)).fit(X, 2 * Y - 1, X)


def test_public_rows_are_needed_but_no_public_labels() -> None:
    with pytest.raises(InvalidData, match="X_public is missing; give public rows, or use Generic"):
        SemiPrivateLearner().fit(X, Y)
    assert SemiPrivateLearner().fit(X, Y, X[:30]).guarantee_.protects == "one private row"


@pytest.mark.claim("SSPP")
def test_label_privacy_says_what_it_protects() -> None:
    learner = SemiPrivateLearner(Stumps(), 1.0, label_privacy=True).fit(X, Y)
    guarantee = learner.guarantee_
    assert guarantee.protects == "one private label (the rows themselves are public)"
    assert guarantee.relation == "one label is replaced by any other; all rows are public"
    assert guarantee.assumptions
    # Candidates come from the rows, whatever their labels are.
    other = SemiPrivateLearner(Stumps(), 1.0, label_privacy=True).fit(X, 1 - Y)
    assert learner.n_candidates_ == other.n_candidates_
    both = SemiPrivateLearner(Stumps(), 1.0, label_privacy=True).fit(X, Y, X + 0.001)
    assert both.n_candidates_ > learner.n_candidates_


def test_unlabelled_rows_are_needed_unless_rows_are_public() -> None:
    with pytest.raises(InvalidData, match="no row has the label -1"):
        GenericLearner(columns=UNIT).fit(X, Y)
    guarantee = GenericLearner().fit(X, SOME, X[:20]).guarantee_
    assert guarantee.protects == "one labelled training row"
    nothing = GenericLearner(Stumps(), columns=UNIT).fit(X, np.full(240, -1))
    assert len(nothing.predict(X)) == 240


def test_unlabelled_rows_are_not_looked_at_if_rows_are_public() -> None:
    other = X.copy()
    other[200] = 1e9
    one, two = (
        GenericLearner(random_state=1).fit(rows, SOME, X[:20]).to_dict() for rows in (X, other)
    )
    assert one == two


# Parameters


def test_bad_parameters() -> None:
    with pytest.raises(InvalidParameter, match=r"concept_class is a str; give one of cumae.conc"):
        PrivateLearner("trees", columns=UNIT).fit(X, Y)  # type: ignore[arg-type]
    for count in (0, -3, 2.5, "many"):
        with pytest.raises(InvalidParameter, match="n_points"):
            PrivateLearner(n_points=count, columns=UNIT).fit(X, Y)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match=r"Write columns=\{0: \(low, high\)\}"):
        PrivateLearner().fit(X, Y)
    with pytest.raises(InvalidParameter, match=r"Write columns=\{1: \(low, high\)\}"):
        PrivateLearner(columns={0: (0, 1)}).fit(X, Y)


def test_more_points_give_more_candidates() -> None:
    counts = [
        PrivateLearner(Thresholds("above"), columns=[(0, 1)], n_points=n).fit(X[:, :1], Y)
        for n in (3, 10, 40)
    ]
    assert [learner.n_candidates_ for learner in counts] == [5, 12, 42]


def test_text_shows_the_rule() -> None:
    learner = PrivateLearner(Thresholds("above"), math.inf, columns=[(0, 1)])
    assert str(learner) == repr(learner)
    learner.fit(X[:, :1], Y)
    assert str(learner).startswith("1 from 0.")


@pytest.mark.claim("KLNRS", "CHOOSE")
def test_a_private_learner_draws_among_all_rules_of_a_list() -> None:
    """A wrong rule has 300 errors more, so that it comes with chance below exp(-1,000)."""
    x = np.linspace(0, 1, 1001)[:, None]
    rules = FiniteClass([Threshold(0.2), Threshold(0.5), Threshold(0.8)])
    learner = PrivateLearner(rules, epsilon=20.0).fit(x, x[:, 0] >= 0.5)
    assert learner.n_candidates_ == 3
    assert learner.hypothesis_ == Threshold(0.5)
