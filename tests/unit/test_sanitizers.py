"""Sanitizers: exact laws on tiny inputs, accuracy against the stated bounds, edge cases."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

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
    cuts_of,
)
from cumae.errors import CumaeError, InvalidData, InvalidParameter
from cumae.mechanisms.sparse import upper_tail
from cumae.privacy import Approximate, BoundedRange, Cost, Pure, compose
from cumae.sanitizers import (
    MultiplicativeWeights,
    Quantiles,
    Sanitizer,
    SmallDatabase,
    StableThresholds,
)
from cumae.sanitizers import base as common
from cumae.sanitizers import quantiles as quant
from cumae.sanitizers import stable as stab
from tests.divergence import assert_covers, databases, divergence, pairs_of
from tests.statistics import binomial_rejects, chi_square_rejects, two_sample_rejects

Floats = NDArray[np.float64]
Rows = tuple[Any, ...]


def table_of(rows: Rows, columns: int = 1) -> Floats:
    return np.array(rows, dtype=float).reshape(len(rows), columns)


# Quantiles: the law


def cut_law(
    places: Sequence[int], size: int, shares: Sequence[float], n_points: int, order: Sequence[int]
) -> dict[tuple[int, ...], float]:
    """Probability of each tuple of cuts: the draws of the proof, one after the other."""
    slots = len(places)
    rows = np.sort(np.array(places) * slots + np.array(order))
    ranges = quant.level_ranges(n_points)
    laws: dict[tuple[tuple[int, int], ...], float] = {((0, 0), (n_points + 1, size * slots)): 1.0}
    for node in quant.plan(n_points):
        longer = {}
        for known, chance in laws.items():
            cuts = dict(known)
            low, high = cuts[node.low], cuts[node.high]
            inside = rows[(rows >= low) & (rows < high)]
            candidates = np.arange(low, high + 1)
            below = (inside[None, :] < candidates[:, None]).sum(axis=1)
            far = np.abs(below - float(node.share) * len(inside))
            weights = np.exp(-shares[node.level] / float(ranges[node.level]) * far)
            for cut, weight in zip(candidates, weights / weights.sum(), strict=True):
                longer[(*known, (node.place, int(cut)))] = chance * float(weight)
        laws = longer
    found = {}
    for known, chance in laws.items():
        cuts = dict(known)
        found[tuple(cuts[place] for place in range(1, n_points + 1))] = chance
    return found


def law_vector(
    rows: Rows, size: int, shares: Sequence[float], n_points: int, order: Sequence[int]
) -> Floats:
    law = cut_law(rows, size, shares, n_points, order)
    keys = itertools.combinations_with_replacement(range(size * len(rows) + 1), n_points)
    return np.array([law[key] for key in keys])


@pytest.mark.claim("QUANT")
@pytest.mark.parametrize(
    ("size", "rows", "n_points"), [(3, 3, 1), (3, 3, 2), (3, 3, 3), (2, 3, 4), (2, 2, 5), (2, 2, 7)]
)
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_the_exact_law_of_quantiles_is_within_the_cost(
    size: int, rows: int, n_points: int, epsilon: float
) -> None:
    """All neighbours, every order of rows in the same place: pure epsilon and the whole curve."""
    sanitizer = Quantiles(epsilon, (0, size - 1, 1), n_points)
    shares = quant.level_shares(epsilon, n_points)
    worst = 0.0
    for order in itertools.permutations(range(rows)):
        pairs = pairs_of(lambda r: law_vector(r, size, shares, n_points, order), range(size), rows)  # noqa: B023
        assert_covers(sanitizer.cost, pairs)
        worst = max(worst, *(float(np.abs(np.log(p / q)).max()) for p, q in pairs))
    assert worst <= epsilon * (1 + 1e-12)
    assert rows < 3 or worst >= 0.3 * epsilon  # two rows cannot touch every level


@pytest.mark.claim("QUANT")
def test_the_law_shows_a_budget_that_forgets_the_second_branch() -> None:
    """Planted: twice the share on the second level, as if a row touched one branch only."""
    shares = quant.level_shares(1.0, 3)
    planted = (shares[0], 2 * shares[1])
    order = range(4)
    losses: dict[tuple[float, ...], float] = {}
    for spent in (shares, planted):
        for rest in itertools.combinations_with_replacement(range(3), 3):
            p, q = (law_vector((row, *rest), 3, spent, 3, order) for row in (0, 2))
            worst = float(np.abs(np.log(p / q)).max())
            losses[spent] = max(losses.get(spent, 0.0), worst)
    assert 0.6 < losses[shares] <= 1.0
    assert losses[planted] > 1.03


@pytest.mark.claim("QUANT")
@pytest.mark.statistical
def test_quantiles_draw_from_the_law() -> None:
    rows, size, n_points, epsilon = (0, 2, 2), 3, 3, 4.0
    shares = quant.level_shares(epsilon, n_points)
    law: Counter[tuple[int, ...]] = Counter()
    for order in itertools.permutations(range(3)):
        for cuts, chance in cut_law(rows, size, shares, n_points, order).items():
            law[tuple(min(cut // 3, size - 1) for cut in cuts)] += chance / 6  # type: ignore[assignment]
    sanitizer = Quantiles(epsilon, (0, 2, 1), n_points)
    drawn = Counter(
        tuple(sanitizer.sanitize(table_of(rows)).ravel().astype(int)) for _ in range(2000)
    )
    outcomes = sorted(law)
    counts = [drawn[outcome] for outcome in outcomes]
    assert sum(counts) == 2000
    assert not chi_square_rejects(counts, [law[outcome] for outcome in outcomes])
    other = [law[outcome] for outcome in outcomes[::-1]]  # planted: the domain upside down
    assert chi_square_rejects(counts, other, checks=0)


@pytest.mark.claim("QUANT")
def test_cells_agree_with_each_cut_on_its_own() -> None:
    rows = np.array([3, 4, 9, 20])
    starts, counts, scores = quant.cells_of_cuts(rows, 4, 20, Fraction(1, 3))
    listed = np.repeat(scores, counts)
    assert starts.tolist() == [4, 5, 10]
    inside = [row for row in rows if 4 <= row < 20]
    expected = [-abs(3 * sum(r < cut for r in inside) - len(inside)) for cut in range(4, 21)]
    assert listed.tolist() == expected


# Quantiles: the cost


@pytest.mark.claim("QUANT")
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3, 1.0, 7.3, math.inf])
@pytest.mark.parametrize("n_points", [1, 2, 5, 15, 20])
def test_cost_of_quantiles(epsilon: float, n_points: int) -> None:
    general = Quantiles(epsilon, None, n_points)
    assert epsilon * (1 - 1e-12) <= general.cost.epsilon(0) <= epsilon or epsilon == math.inf
    levels = n_points.bit_length()
    assert len(quant.level_shares(epsilon, n_points)) == levels
    for columns in (1, 3, 20):
        exact = general.cost_of(columns)
        assert exact.epsilon(0) <= epsilon
        assert Quantiles(epsilon, [(0, 1)] * columns, n_points).cost == exact
        if 0 < epsilon < math.inf and n_points == 15:
            assert exact.epsilon(1e-6) <= general.cost.epsilon(1e-6) * (1 + 1e-6)


@pytest.mark.claim("QUANT")
def test_full_trees_cost_two_a_level() -> None:
    assert [float(part) for part in quant.level_ranges(15)] == [2, 2, 2, 2]
    assert [float(part) for part in quant.level_ranges(2)] == [2, 2]
    assert quant.level_ranges(5)[1] == Fraction(8, 3)
    assert quant.carried_errors(15) == 2.875
    assert Quantiles(1.0).cost == BoundedRange(0.25) * 4
    text = str(Quantiles(1.0).guarantee("one patient"))
    assert "epsilon = 1, delta = 0" in text
    assert "QUANT" in text


# How far quantiles are off


def rank_distance(column: Floats, points: Floats) -> float:
    """Return the largest distance of a target from the ranks that its point covers."""
    ordered = np.sort(column)
    below = np.searchsorted(ordered, points, side="left")
    upto = np.searchsorted(ordered, points, side="right")
    target = np.arange(1, len(points) + 1) * len(column) / (len(points) + 1)
    return float(np.maximum(below - target, target - upto).max())


def interval_distance(column: Floats, points: Floats) -> float:
    """Return the largest difference of shares of rows and of points between two cuts."""
    cuts = np.unique(np.concatenate([column, points, np.nextafter(points, np.inf)]))
    rows = np.searchsorted(np.sort(column), cuts) / len(column)
    held = np.searchsorted(np.sort(points), cuts) / len(points)
    gap = np.append(rows - held, 0.0)
    return float(gap.max() - gap.min())


def columns_to_try() -> dict[str, tuple[Floats, Any]]:
    generator = np.random.default_rng(1)
    n = 20_000
    return {
        "normal": (np.round(generator.normal(size=n), 3), (-8, 8, 0.001)),
        "answers": (generator.integers(1, 14, n).astype(float), (1, 13, 1)),
        "coin": ((generator.random(n) < 0.7).astype(float), (0, 1, 1)),
        "constant": (np.full(n, 5.0), (0, 10, 1)),
        "clumps": (
            np.where(generator.random(n) < 0.5, 3.0, generator.integers(0, 9, n)),
            (0, 9, 1),
        ),
        "far": (np.where(generator.random(n) < 0.5, 1e-200, 1e200), None),
    }


@pytest.mark.claim("QUANT")
@pytest.mark.parametrize("name", columns_to_try())
@pytest.mark.parametrize("bounded", [True, False])
def test_rank_errors_stay_below_the_bound(name: str, bounded: bool) -> None:
    """At beta = 1e-9 a false alarm is out of the question."""
    column, bounds = columns_to_try()[name]
    sanitizer = Quantiles(1.0, bounds if bounded else None)
    points = sanitizer.sanitize(column)
    assert points.shape == (15, 1)
    assert np.all(np.diff(points[:, 0]) >= 0)
    if not bounded or bounds is None:  # rows are taken to 9 digits; so are the points
        digits = quant.AllFloats()
        column = digits.values(digits.places(column), len(column))
    assert rank_distance(column, points[:, 0]) <= sanitizer.rank_error(len(column), beta=1e-9)
    error = sanitizer.interval_error(len(column), beta=1e-9)
    assert interval_distance(column, points[:, 0]) <= error < 1


@pytest.mark.claim("QUANT")
def test_the_rank_bound_is_not_absurdly_loose() -> None:
    """All rows in one of 2^20 places: too few of them are not found, as the price ln 2^20 says."""
    sanitizer = Quantiles(1.0, (0, 1))
    column = np.full(200, 0.3)
    errors = [rank_distance(column, sanitizer.sanitize(column)[:, 0]) for _ in range(20)]
    assert float(np.median(errors)) > sanitizer.rank_error(len(column)) / 30


@pytest.mark.claim("QUANT")
def test_several_columns_share_the_budget() -> None:
    tried = [columns_to_try()[name] for name in ("normal", "answers", "coin")]
    X = np.column_stack([column for column, _ in tried])
    sanitizer = Quantiles(1.0, [bounds for _, bounds in tried])
    points = sanitizer.sanitize(X)
    bound = sanitizer.rank_error(len(X), 3, beta=1e-9)
    assert bound > 2.9 * Quantiles(1.0, (-8, 8, 0.001)).rank_error(len(X), beta=1e-9)
    for number in range(3):
        assert rank_distance(X[:, number], points[:, number]) <= bound


@pytest.mark.parametrize("bounds", [(0, 1, 1), (0, 1), None, [None]])
def test_a_coin_gets_a_cut_between_its_sides(bounds: Any) -> None:
    column = np.repeat([0.0, 1.0], [3_000, 7_000])
    points = Quantiles(1.0, bounds).sanitize(column)
    cuts = [cut for _, cut in cuts_of(points)]
    assert any(0 < cut <= 1 for cut in cuts)
    if bounds == (0, 1, 1):
        assert cuts == [0.5]
        assert 2 <= (points == 0).sum() <= 7


def test_whole_numbers_stay_whole() -> None:
    answers = np.random.default_rng(2).integers(1, 14, 5_000)
    points = Quantiles(1.0, (1, 13, 1)).sanitize(answers)
    assert set(points.ravel()) <= set(range(1, 14))
    assert len(cuts_of(points)) >= 8


def test_infinite_epsilon_gives_the_plain_quantiles() -> None:
    points = Quantiles(math.inf, (0, 100, 1), 3).sanitize(np.arange(100))
    assert np.abs(points.ravel() - [25, 50, 75]).max() <= 1
    assert Quantiles(math.inf).cost.infinite


@pytest.mark.claim("QUANT")
def test_keys_keep_the_order_of_floats() -> None:
    generator = np.random.default_rng(3)
    bits = generator.integers(0, 2**64, 5_000, dtype=np.uint64).view(np.float64)
    values = np.sort(np.concatenate([bits[np.isfinite(bits)], [0.0, 5e-324, -5e-324, 1.0, -1.0]]))
    for dropped in (0, 2, 12, 33):
        keys = quant.signed_keys(values, dropped)
        assert np.all(np.diff(keys) >= 0)
        back = quant.floats_of(keys, dropped)
        assert np.all(np.abs(back) <= np.abs(values))
        assert np.array_equal(quant.signed_keys(back, dropped), keys)
    assert np.array_equal(quant.floats_of(quant.signed_keys(values, 0), 0), values)
    domain = quant.AllFloats()
    for rows in (1, 1000, 2**30):
        assert domain.size(rows) * rows < 2**62


def test_a_grid_takes_each_row_to_the_next_value_above() -> None:
    for low, step, steps in [(0.0, 0.1, 1000), (-3.7, 0.001, 9999), (1e9, 0.5, 4000)]:
        grid = quant.Grid(low, step, steps)
        values = grid.values(np.arange(steps + 1), 1)
        assert np.array_equal(grid.places(values), np.arange(steps + 1))
        between = values[:-1] + np.random.default_rng(4).random(steps) * step
        assert np.array_equal(grid.places(between), np.searchsorted(values, between))
        assert grid.places(np.array([-np.inf, np.inf])).tolist() == [0, steps]


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


# Stable thresholds


@pytest.mark.claim("STABLE")
@pytest.mark.parametrize("rate", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("chance", [1e-3, 1e-9])
def test_a_single_row_passes_with_at_most_that_chance(rate: float, chance: float) -> None:
    least = stab.least_count(rate, chance)
    assert upper_tail(rate, least - 1.0) <= chance
    assert least == 2 or upper_tail(rate, least - 2.0) > chance * (1 - 1e-8)


@pytest.mark.claim("STABLE")
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("columns", [1, 5])
def test_the_split_of_stable_thresholds_adds_up(epsilon: float, columns: int) -> None:
    sanitizer = StableThresholds(epsilon, 1e-6)
    assert sanitizer.cost == Approximate(epsilon, 1e-6)
    split = sanitizer._split(columns)
    named = 2 * len(stab.DEPTHS) * columns * Fraction(split.rate)
    drawn = columns * sum(Fraction(share) for share in split.shares)
    assert Fraction(epsilon) * (1 - Fraction(1, 10**12)) <= named + drawn <= epsilon
    single = float(upper_tail(float(split.rate), split.least - 1.0))
    assert 2 * len(stab.DEPTHS) * columns * single <= 1e-6
    assert sanitizer.threshold(columns) == split.least


def named_law(counts: Sequence[int], rate: float, least: int) -> Floats:
    """Law of which bins are named, each by itself; empty bins never are."""
    law = np.ones(1)
    for count in counts:
        chance = float(upper_tail(rate, float(least - count))) if count else 0.0
        law = np.multiply.outer(law, np.array([1 - chance, chance])).ravel()
    return law


@pytest.mark.claim("STABLE")
@pytest.mark.parametrize("rate", [0.2, 1.0])
def test_naming_bins_leaks_at_most_delta(rate: float) -> None:
    """One depth: all counts of five rows in three bins, one row moved; a low threshold leaks."""
    least = stab.least_count(rate, 0.01)
    pairs, low = [], []
    for counts in itertools.product(range(6), repeat=3):
        for a, b in itertools.permutations(range(3), 2):
            if sum(counts) == 5 and counts[a]:
                other = [c - (i == a) + (i == b) for i, c in enumerate(counts)]
                pairs.append((named_law(counts, rate, least), named_law(other, rate, least)))
                low.append((named_law(counts, rate, 2), named_law(other, rate, 2)))
    assert divergence(pairs, 2 * rate) <= 2 * 0.01 + 1e-12
    assert divergence(low, 2 * rate) > 2 * 0.01


@pytest.mark.claim("STABLE")
@pytest.mark.statistical
def test_a_bin_is_named_as_often_as_it_should_be() -> None:
    rate, least = 0.5, 6
    keys = np.full(4, 2**51 + 2**39, dtype=np.int64)
    lonely = np.append(keys, 2**51 + 2**45)
    source = Quantiles(1.0).source
    # Inner edges that only the widest bins have tell whether these were named.
    inner = np.array([2**51, 2**51 + 2**45]) + 5 * 2**32
    named = np.zeros(2, dtype=int)
    for _ in range(3000):
        named += np.isin(inner, stab.name_bins(lonely, rate, least, source))
    often, rare = named.tolist()
    assert not binomial_rejects(often, 3000, float(upper_tail(rate, 2.0)))
    assert not binomial_rejects(rare, 3000, float(upper_tail(rate, 5.0)))
    assert binomial_rejects(often, 3000, float(upper_tail(rate, 3.0)), checks=0)


@pytest.mark.claim("STABLE")
def test_empty_places_are_never_named() -> None:
    keys = np.array([2**51 + 12345], dtype=np.int64)
    source = Quantiles(1.0).source
    always = set((np.arange(2**12, dtype=np.int64) << 40).tolist())
    for _ in range(20):  # a threshold far below zero names every bin that is not empty
        found = set(stab.name_bins(keys, 1.0, -(10**6), source).tolist()) - always
        for edge in found:
            assert any(abs(edge - 2**51 - 12345) <= 2 ** (52 - depth) for depth in stab.DEPTHS)
        assert 2**51 + 12346 in found


@pytest.mark.claim("STABLE")
@pytest.mark.parametrize("name", columns_to_try())
def test_stable_thresholds_are_as_accurate_as_stated(name: str) -> None:
    column, _ = columns_to_try()[name]
    sanitizer = StableThresholds(2.0, 1e-6)
    points = sanitizer.sanitize(column)
    assert points.shape == (15, 1)
    bound = sanitizer.rank_error(len(column), beta=1e-9)
    digits = quant.floats_of(quant.signed_keys(column, stab.DROPPED), stab.DROPPED)
    distance = rank_distance(digits, points[:, 0])
    assert distance <= bound < len(column) / 8
    error = sanitizer.interval_error(len(column), beta=1e-9)
    assert interval_distance(digits, points[:, 0]) <= error < 1


@pytest.mark.claim("STABLE")
def test_values_that_many_rows_share_are_found_exactly() -> None:
    column = np.repeat([-7.25, 0.0, 2.0**-100, 1996.0], [2_000, 3_000, 2_000, 3_000])
    points = StableThresholds(4.0, 1e-6).sanitize(column)
    assert set(points.ravel()) >= {-7.25, 0.0, 2.0**-100, 1996.0}


# What all of them promise


def everyone(random_state: int | None = None) -> list[tuple[Sanitizer, int]]:
    """Return sanitizers with the number of points that they release."""
    grid = np.array(list(itertools.product(range(2), range(2))), dtype=float)
    return [
        (Quantiles(1.0, random_state=random_state), 15),
        (Quantiles(1.0, (0, 1), 5, random_state=random_state), 5),
        (Quantiles(1.0, [(0, 1, 1), None], 3, random_state=random_state), 3),
        (SmallDatabase(Stumps(), 1.0, grid, 4, random_state=random_state), 4),
        (MultiplicativeWeights(Stumps(), 1.0, grid, n_points=9, random_state=random_state), 9),
        (StableThresholds(1.0, 1e-6, 7, random_state=random_state), 7),
    ]


EDGES: list[Any] = [
    np.empty((0, 2)),
    np.zeros((1, 2)),
    np.ones((30, 2)),
    np.array([[np.inf, -np.inf]] * 3),
    np.array([[1e308, -1e308], [5e-324, -0.0], [7.0, -7.0]]),
    np.arange(40).reshape(20, 2) % 2 == 0,
]


@pytest.mark.parametrize("X", EDGES)
def test_no_table_of_numbers_is_refused(X: Any) -> None:
    for sanitizer, count in everyone():
        points = sanitizer.sanitize(X)
        assert points.shape == (count, 2)
        assert points.dtype == np.float64
        assert np.all(np.isfinite(points))


@pytest.mark.parametrize("dropped", [0, 12, 30])
def test_keys_beyond_all_floats_mean_the_last_one(dropped: int) -> None:
    """Bins of the float order reach beyond the largest float, where a noisy draw may end."""
    last = np.array([2 ** (63 - dropped) - 1, -(2 ** (63 - dropped) - 1)])
    values = quant.floats_of(last, dropped)
    assert np.all(np.isfinite(values))
    assert values[0] == -values[1] > 1e308


def test_seeded_runs_repeat_and_are_void() -> None:
    X = np.random.default_rng(8).random((50, 2))
    for (one, _), (same, _), (other, _) in zip(everyone(3), everyone(3), everyone(4), strict=True):
        assert np.array_equal(one.sanitize(X), same.sanitize(X))
        del other
        assert one.guarantee("one row", delta=1e-6).void
    assert not np.array_equal(everyone(3)[0][0].sanitize(X), everyone(4)[0][0].sanitize(X))


def test_same_coins_neighbouring_rows() -> None:
    """Errors, warnings and shapes are the same whatever one row holds."""
    X = np.random.default_rng(9).random((30, 2))
    for row in ([0, 0], [np.inf, -np.inf], [1e308, 5e-324], X[3]):
        other = X.copy()
        other[7] = row
        for (one, _), (two, _) in zip(everyone(5), everyone(5), strict=True):
            assert one.sanitize(X).shape == two.sanitize(other).shape


class Leaky(Quantiles):
    """Planted bug: copies the first row into the output."""

    def sanitize(self, X: Any) -> Floats:
        points = super().sanitize(X)
        points[0] = np.asarray(X, dtype=float)[0]
        return points


@pytest.mark.claim("QUANT")
@pytest.mark.statistical
def test_a_copied_row_is_noticed() -> None:
    """Lowest points on two neighbours at a small epsilon: no honest difference is visible."""
    X = np.random.default_rng(10).integers(0, 4, (40, 1)).astype(float)
    other = X.copy()
    X[0], other[0] = 0.0, 3.0

    def lowest(make: Callable[..., Quantiles], rows: Floats) -> list[int]:
        sanitizer = make(0.001, (0, 3, 1), 3)
        drawn = Counter(int(sanitizer.sanitize(rows)[0, 0]) for _ in range(1000))
        return [drawn[value] for value in range(4)]

    assert not two_sample_rejects(lowest(Quantiles, X), lowest(Quantiles, other))
    assert two_sample_rejects(lowest(Leaky, X), lowest(Leaky, other), checks=0)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: Quantiles(-1.0), "epsilon=-1.0"),
        (lambda: Quantiles(1.0, (1, 0)), "low first"),
        (lambda: Quantiles(1.0, (0, 1, 0)), "larger step"),
        (lambda: Quantiles(1.0, (0, 1, 1e-12)), "larger step"),
        (lambda: Quantiles(1.0, (-1.7e308, 1.7e308)), "None for all floats"),
        (lambda: Quantiles(1.0, (0, math.inf)), "finite"),
        (lambda: Quantiles(1.0, [(0, 1), 5]), "bounds"),
        (lambda: Quantiles(1.0, []), "bounds"),
        (lambda: Quantiles(1.0, "ab"), "no numbers"),
        (lambda: Quantiles(1.0, n_points=0), "n_points=0"),
        (lambda: Quantiles(1.0, n_points=5000), "at most 4096"),
        (lambda: Quantiles(1.0, [(0, 1)] * 2).sanitize([[1.0]]), "bounds for 2 columns"),
        (lambda: Quantiles(1.0).rank_error(10, beta=0.0), "beta=0.0"),
        (lambda: SmallDatabase(Thresholds(), 1.0, range(3)), "either a size or an alpha"),
        (lambda: SmallDatabase(Thresholds(), 1.0, range(3), 2**21), "at most"),
        (lambda: SmallDatabase(Thresholds(), 1.0, range(3), alpha=1.5), "alpha=1.5"),
        (lambda: SmallDatabase(Thresholds(), 1.0, [], 2), "domain is empty"),
        (lambda: SmallDatabase("x", 1.0, [1], 2), "no concept class"),  # type: ignore[arg-type]
        (lambda: SmallDatabase(Intervals(), 1.0, range(80), 2), "smaller domain"),
        (lambda: MultiplicativeWeights(Points(), 1.0, range(3), rounds="all"), "rounds='all'"),
        (lambda: MultiplicativeWeights(Points(), 1.0, range(3), rounds=10**4), "at most 1000"),
        (lambda: MultiplicativeWeights(Points(), 1e-9, range(3)), "too small"),
        (lambda: StableThresholds(1.0, 0.0), "delta above 0"),
        (lambda: StableThresholds(0.0, 1e-6), "use Quantiles"),
    ],
)
def test_refusals_say_what_to_do(call: Callable[[], object], text: str) -> None:
    with pytest.raises(InvalidParameter, match=text):
        call()


def test_unusable_cells_are_refused_without_a_value() -> None:
    for sanitizer, _ in everyone():
        for X in ([[1.0, math.nan]], [["31077", "x"]], [[[1]]]):
            with pytest.raises(InvalidData) as caught:
                sanitizer.sanitize(X)
            assert "31077" not in str(caught.value)


def test_no_epsilon_and_no_queries() -> None:
    assert Quantiles(0.0, (0, 9, 1), 3).sanitize([1, 2, 3]).shape == (3, 1)
    assert Quantiles(0.0).rank_error(100) == math.inf
    assert SmallDatabase(Thresholds(), 0.0, range(3), 2).accuracy(100) == 1.0
    assert MultiplicativeWeights(Thresholds(), 0.0, range(3)).accuracy(100) == 1.0
    assert MultiplicativeWeights(Points(), 0.0, range(3), n_points=6).sanitize([1]).sum() == 6
    alone = MultiplicativeWeights(Thresholds(), 1.0, [4.0], n_points=2)
    assert alone.sanitize([1, 2]).tolist() == [[4.0], [4.0]]
    assert alone.accuracy(10) == 0.0
    assert SmallDatabase(Thresholds(), 1.0, [4.0], 2).sanitize([1]).tolist() == [[4.0], [4.0]]


def test_costs_are_known_before_any_row_is_seen() -> None:
    for sanitizer, _ in everyone():
        cost: Cost = sanitizer.cost
        assert cost.epsilon(1e-6) <= 1.0
        assert issubclass(type(sanitizer), Sanitizer)
    assert issubclass(InvalidParameter, CumaeError)
