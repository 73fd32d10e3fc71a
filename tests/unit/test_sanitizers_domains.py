"""Sanitizers for a finite domain: exact laws on tiny inputs, accuracy against the stated bounds."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from cumae.concepts import (
    ConceptClass,
    FiniteClass,
    Halfspaces,
    Intervals,
    Points,
    Rectangles,
    Stumps,
    Threshold,
    Thresholds,
    Trees,
)
from cumae.errors import InvalidParameter
from cumae.mechanisms.sparse import upper_tail
from cumae.privacy import BoundedRange, Pure, compose
from cumae.sanitizers import MultiplicativeWeights, SmallDatabase
from cumae.sanitizers import base as common
from tests.divergence import assert_covers, databases, pairs_of
from tests.sanitizers import Floats, Rows, table_of
from tests.statistics import binomial_rejects, chi_square_rejects

# Small databases


@pytest.mark.claim("SMALLDB", "MW")
@pytest.mark.parametrize(
    "concept_class",
    [
        Thresholds(),
        Thresholds("above"),
        Points(),
        Intervals(),
        FiniteClass([Threshold(1), Threshold(3)]),
    ],
)
def test_all_labellings_of_a_column_are_found(concept_class: ConceptClass) -> None:
    domain = np.arange(5.0).reshape(-1, 1)
    found = common.dichotomies(concept_class, domain)
    assert len(found) == concept_class.n_dichotomies(domain)
    queries = common.differences(found)
    brute = {tuple(a ^ b) for a in found for b in found}
    covered = {tuple(q) for q in queries} | {tuple(1 - q) for q in queries}
    assert brute - {(0,) * 5, (1,) * 5} <= covered
    assert covered <= brute | {tuple(1 - np.array(q)) for q in brute}


@pytest.mark.claim("SMALLDB", "MW")
@pytest.mark.parametrize("concept_class", [Stumps(), Rectangles(), Halfspaces(), Trees(1)])
def test_all_labellings_of_a_table_are_found(concept_class: ConceptClass) -> None:
    domain = np.array(list(itertools.product(range(3), range(2))), dtype=float)
    assert len(common.dichotomies(concept_class, domain)) == concept_class.n_dichotomies(domain)


def database_law(sanitizer: SmallDatabase, rows: Rows) -> Floats:
    """The law by its definition: fractions, all pairs of concepts, one database after the other."""
    table = sanitizer.domain.points
    concepts = common.dichotomies(sanitizer.concept_class, table)
    data = np.array([np.mean([x[0] == r for r in rows]) for x in table])
    weights = []
    for database in itertools.combinations_with_replacement(range(len(table)), sanitizer.size):
        held = np.bincount(database, minlength=len(table)) / sanitizer.size
        gap = held - data
        worst = max(abs(float((a != b) @ gap)) for a in concepts for b in concepts)
        weights.append(math.exp(-sanitizer.epsilon * len(rows) * worst / 2))
    return np.array(weights) / sum(weights)


def drawn_law(sanitizer: SmallDatabase, rows: Rows) -> Floats:
    scores = sanitizer._scores(sanitizer.domain.histogram(table_of(rows)))
    weights = np.exp(sanitizer.epsilon / (2 * sanitizer.size) * (scores - scores.max()))
    return np.asarray(weights / weights.sum())


@pytest.mark.claim("SMALLDB")
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.4, 2.0])
def test_the_exact_law_of_small_databases_is_within_the_cost(size: int, epsilon: float) -> None:
    sanitizer = SmallDatabase(Thresholds(), epsilon, [0, 1, 2], size)
    for rows in databases(range(3), 3):
        assert np.allclose(drawn_law(sanitizer, rows), database_law(sanitizer, rows))
    pairs = pairs_of(lambda rows: drawn_law(sanitizer, rows), range(3), 3)
    assert_covers(sanitizer.cost, pairs)
    worst = max(float(np.abs(np.log(p / q)).max()) for p, q in pairs)
    assert 0.3 * epsilon <= worst <= epsilon * (1 + 1e-12)
    assert sanitizer.cost == BoundedRange(epsilon)


@pytest.mark.claim("SMALLDB")
@pytest.mark.statistical
def test_small_databases_are_drawn_from_the_law() -> None:
    sanitizer = SmallDatabase(Thresholds(), 2.0, [0, 1, 2], 2)
    rows = (0, 0, 1, 2, 2, 2)
    drawn = Counter(tuple(sanitizer.sanitize(rows).ravel().astype(int)) for _ in range(3000))
    outcomes = list(itertools.combinations_with_replacement(range(3), 2))
    counts = [drawn[outcome] for outcome in outcomes]
    assert not chi_square_rejects(counts, database_law(sanitizer, rows))
    planted = SmallDatabase(Thresholds(), 4.0, [0, 1, 2], 2)
    assert chi_square_rejects(counts, database_law(planted, rows), checks=0)


@pytest.mark.claim("SMALLDB")
def test_small_databases_are_as_accurate_as_stated() -> None:
    generator = np.random.default_rng(5)
    for concept_class, domain, size in [
        (Thresholds(), np.arange(6.0).reshape(-1, 1), 6),
        (Rectangles(), np.array(list(itertools.product(range(2), range(2))), dtype=float), 8),
    ]:
        sanitizer = SmallDatabase(concept_class, 1.0, domain, size)
        X = domain[np.minimum(generator.geometric(0.4, 2_000) - 1, len(domain) - 1)]
        released = sanitizer.sanitize(X)
        assert released.shape == (size, domain.shape[1])
        mean = [sanitizer.domain.histogram(rows) / len(rows) for rows in (X, released)]
        worst = float(np.abs(sanitizer.domain.queries @ (mean[0] - mean[1])).max())
        bound = sanitizer.accuracy(len(X), beta=1e-9)
        assert worst <= bound < 0.5
        assert bound / 30 < max(worst, 1 / (4 * size))


@pytest.mark.claim("SMALLDB")
def test_alpha_chooses_the_size() -> None:
    sanitizer = SmallDatabase(Thresholds(), 1.0, [0, 1, 2, 3], alpha=0.4)
    assert sanitizer.size == 5  # 4 points: 4 / (4 * 5) is half of alpha
    assert sanitizer.accuracy(10**9) == pytest.approx(0.2, abs=1e-4)
    with pytest.raises(InvalidParameter, match="databases of size 250"):
        SmallDatabase(Thresholds(), 1.0, range(10), alpha=0.02)


def test_rows_outside_of_the_domain_go_to_a_point_nearby() -> None:
    domain = common.Domain(Stumps(), np.array([[0, 0], [1, 0], [0, 1e300], [1, 1e300]]))
    X = [[-5, -np.inf], [0.9, 1e299], [7, np.inf], [np.inf, 0.6e300]]
    assert domain.histogram(X).tolist() == [1, 0, 1, 2]


# Multiplicative weights


@pytest.mark.claim("MW")
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 7.3])
@pytest.mark.parametrize("rounds", [1, 3, 10])
def test_cost_of_multiplicative_weights(epsilon: float, rounds: int) -> None:
    sanitizer = MultiplicativeWeights(Thresholds(), epsilon, range(4), rounds)
    assert epsilon * (1 - 1e-12) <= sanitizer.cost.epsilon(0) <= epsilon
    share = common.share_of(epsilon, Fraction(1, 2 * rounds))
    assert sanitizer.cost == compose([(BoundedRange(share), rounds), (Pure(share), rounds)])
    assert MultiplicativeWeights(Thresholds(), epsilon, range(4)).cost == Pure(epsilon)


def round_law(counts: Sequence[int], epsilon: float, reach: int = 60) -> Floats:
    """Law of (query, measurement) in a single round that starts from uniform weights."""
    domain = common.Domain(Thresholds(), range(len(counts)))
    rows = sum(counts)
    answers = domain.queries @ np.array(counts)
    guesses = np.rint(rows * domain.queries.sum(axis=1) / len(counts))
    weights = np.exp(epsilon / 2 / 2 * np.abs(answers - guesses))
    noise = np.exp(-epsilon / 2 * np.abs(np.arange(-reach, reach + 1)[None, :] - answers[:, None]))
    return np.asarray((weights / weights.sum())[:, None] * noise / noise.sum(axis=1)[:, None])


@pytest.mark.claim("MW")
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_one_round_of_multiplicative_weights_is_pure(epsilon: float) -> None:
    worst = 0.0
    for rows in databases(range(3), 3):
        one = round_law(np.bincount(rows, minlength=3).tolist(), epsilon)
        for new in range(3):
            other = round_law(np.bincount([*rows[:2], new], minlength=3).tolist(), epsilon)
            worst = max(worst, float(np.abs(np.log(one / other)).max()))
    assert 0.5 * epsilon <= worst <= epsilon * (1 + 1e-9)


@pytest.mark.claim("MW")
@pytest.mark.statistical
def test_multiplicative_weights_run_that_round() -> None:
    """With one query the released point tells the sign of a noisy count, whose law is known."""
    one_query = FiniteClass([Threshold(None), Threshold(1)])
    sanitizer = MultiplicativeWeights(one_query, 1.0, [0, 1], rounds=2, n_points=1)
    # The mean of the two rounds prefers point 1 if the first measurement is above 3 of 6.
    drawn = [sanitizer.sanitize([0, 0, 0, 0, 1, 1])[0, 0] == 1 for _ in range(1500)]
    chance = float(upper_tail(0.25, 4 - 2.0))
    assert not binomial_rejects(sum(drawn), 1500, chance)
    assert binomial_rejects(sum(drawn), 1500, float(upper_tail(0.5, 4 - 2.0)), checks=0)


@pytest.mark.claim("MW")
def test_multiplicative_weights_are_as_accurate_as_stated() -> None:
    generator = np.random.default_rng(6)
    for concept_class, domain in [
        (Thresholds(), np.arange(16.0).reshape(-1, 1)),
        (Stumps(), np.array(list(itertools.product(range(3), range(4))), dtype=float)),
    ]:
        X = domain[np.minimum(generator.geometric(0.3, 20_000) - 1, len(domain) - 1)]
        sanitizer = MultiplicativeWeights(concept_class, 1.0, domain, n_points=200)
        released = sanitizer.sanitize(X)
        assert released.shape == (200, domain.shape[1])
        mean = [sanitizer.domain.histogram(rows) / len(rows) for rows in (X, released)]
        worst = float(np.abs(sanitizer.domain.queries @ (mean[0] - mean[1])).max())
        bound = sanitizer.accuracy(len(X), beta=1e-9)
        assert worst <= bound < 1
        uniform = np.full(len(domain), 1 / len(domain))
        assert worst < np.abs(sanitizer.domain.queries @ (mean[0] - uniform)).max()  # it learns


@pytest.mark.claim("MW")
def test_rounding_changes_no_set_by_more_than_a_quarter_of_the_points() -> None:
    generator = np.random.default_rng(7)
    for _ in range(50):
        weights = generator.dirichlet(np.ones(7))
        whole = common.largest_remainder(weights, 20)
        assert whole.sum() == 20
        gain = whole - 20 * weights
        assert gain[gain > 0].sum() <= 7 / 4 + 1e-9
