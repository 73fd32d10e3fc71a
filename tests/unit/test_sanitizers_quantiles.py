"""Quantiles: exact laws on tiny inputs, costs, and ranks against the stated bounds."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cumae.concepts import cuts_of
from cumae.privacy import BoundedRange
from cumae.sanitizers import Quantiles, ordered
from cumae.sanitizers import quantiles as quant
from tests.divergence import assert_covers, pairs_of
from tests.sanitizers import (
    Floats,
    Rows,
    columns_to_try,
    interval_distance,
    rank_distance,
    table_of,
)
from tests.statistics import chi_square_rejects, two_sample_rejects

# The law


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


# The cost


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
    text = Quantiles(1.0).guarantee("one patient").full()
    assert "epsilon = 1, delta = 0" in text
    assert "QUANT" in text


# How far quantiles are off


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
        digits = ordered.AllFloats(len(column))
        column = digits.values(digits.places(column))
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


# Floats and grids


@pytest.mark.claim("QUANT")
def test_keys_keep_the_order_of_floats() -> None:
    generator = np.random.default_rng(3)
    bits = generator.integers(0, 2**64, 5_000, dtype=np.uint64).view(np.float64)
    values = np.sort(np.concatenate([bits[np.isfinite(bits)], [0.0, 5e-324, -5e-324, 1.0, -1.0]]))
    for dropped in (0, 2, 12, 33):
        keys = ordered.signed_keys(values, dropped)
        assert np.all(np.diff(keys) >= 0)
        back = ordered.floats_of(keys, dropped)
        assert np.all(np.abs(back) <= np.abs(values))
        assert np.array_equal(ordered.signed_keys(back, dropped), keys)
    assert np.array_equal(ordered.floats_of(ordered.signed_keys(values, 0), 0), values)
    for rows in (1, 1000, 2**30):
        assert ordered.AllFloats(rows).size * rows < 2**62


@pytest.mark.parametrize("dropped", [0, 12, 30])
def test_keys_beyond_all_floats_mean_the_last_one(dropped: int) -> None:
    """Bins of the float order reach beyond the largest float, where a noisy draw may end."""
    last = np.array([2 ** (63 - dropped) - 1, -(2 ** (63 - dropped) - 1)])
    values = ordered.floats_of(last, dropped)
    assert np.all(np.isfinite(values))
    assert values[0] == -values[1] > 1e308


def test_a_grid_takes_each_row_to_the_next_value_above() -> None:
    for low, step, steps in [(0.0, 0.1, 1000), (-3.7, 0.001, 9999), (1e9, 0.5, 4000)]:
        grid = ordered.EvenSteps(low, step, steps)
        values = grid.values(np.arange(steps + 1))
        assert np.array_equal(grid.places(values), np.arange(steps + 1))
        between = values[:-1] + np.random.default_rng(4).random(steps) * step
        assert np.array_equal(grid.places(between), np.searchsorted(values, between))
        assert grid.places(np.array([-np.inf, np.inf])).tolist() == [0, steps]
