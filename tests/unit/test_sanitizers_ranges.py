"""Ranges of columns of which nothing is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cumae.errors import InvalidParameter
from cumae.sanitizers import Quantiles, Ranges
from cumae.sanitizers.ranges import LARGEST, STEP, off_scale, on_scale

pytestmark = pytest.mark.claim("RANGES")
COINS = np.random.default_rng(0)


@pytest.mark.parametrize("number", [0.0, 1e-12, 0.1, 1.0, 7.0, 1e9, LARGEST])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_numbers_come_back_from_the_scale(number: float, sign: float) -> None:
    (place,) = on_scale(np.array([sign * number])).tolist()
    assert math.isclose(off_scale(place), sign * number, rel_tol=1e-12)


def test_the_scale_keeps_the_order_and_each_number_is_read_by_itself() -> None:
    numbers = np.sort(np.concatenate([COINS.normal(0, 1, 50) * 10.0 ** COINS.uniform(-20, 30, 50)]))
    numbers = np.concatenate([[-math.inf], numbers, [0.0, 5e-324, math.inf]])
    places = on_scale(numbers)
    assert np.all(np.diff(on_scale(np.sort(numbers))) >= 0)
    assert np.all(np.abs(places) <= 97)
    assert places.tolist() == [on_scale(np.array([one]))[0] for one in numbers]


@pytest.mark.parametrize("count", [1, 7])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, math.inf])
def test_they_cost_what_three_quartiles_cost(epsilon: float, count: int) -> None:
    cost = Ranges(epsilon, count).cost
    assert cost.epsilon(0) == Quantiles(epsilon, (0, 1), 3).cost_of(count).epsilon(0)
    if 0 < epsilon < math.inf:
        assert cost.zcdp is not None
        assert math.isclose(cost.zcdp[0], epsilon**2 / (16 * count), rel_tol=1e-9)


COLUMNS = {
    "years": (COINS.integers(1950, 2020, 20_000).astype(float), 1955, 2015),
    "fractions": (COINS.random(20_000) / 1000, 1e-5, 9e-4),
    "amounts": (COINS.lognormal(8, 2, 20_000), 300, 20_000),
    "both signs": (COINS.normal(0, 50, 20_000), -60, 60),
    "far off": (COINS.normal(-1e12, 1e9, 20_000), -1.001e12, -0.999e12),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_range_holds_the_middle_of_a_column(name: str) -> None:
    rows, low, high = COLUMNS[name]
    ((first, last),) = Ranges(1.0, 1).find(rows)
    assert first < low < high < last
    inside = np.mean((rows > first) & (rows < last))
    assert inside > 0.85
    assert last - first < 20 * (np.quantile(rows, 0.9) - np.quantile(rows, 0.1)) + 0.8 * abs(high)


@pytest.mark.parametrize("value", [0.0, 5e-324, -1e-300])
def test_a_column_of_nothing_has_a_fixed_range(value: float) -> None:
    assert Ranges(5.0, 1).find(np.full(2_000, value)) == [(-1.0, 1.0)]


@pytest.mark.parametrize("value", [1e-9, -3.0, 1e300, math.inf, -math.inf])
@pytest.mark.parametrize("epsilon", [0.0, 5.0, math.inf])
def test_ranges_are_finite_and_not_empty_whatever_rows_hold(value: float, epsilon: float) -> None:
    for low, high in Ranges(epsilon, 2).find(np.full((50, 2), value)):
        assert -1e21 < low < high < 1e21


def test_the_error_bound_goes_by_public_numbers_and_is_usually_kept() -> None:
    rows = COINS.normal(100, 10, 4_000)
    ranges = Ranges(0.2, 1)
    assert ranges.rank_error(10) == ranges.rank_error(10**6)
    assert Ranges(0.0, 1).rank_error(5) == math.inf
    places = np.ceil(on_scale(rows) / STEP) * STEP  # as rows are moved onto the grid
    kept = 0
    for _ in range(20):
        first = ranges._quartiles.sanitize(on_scale(rows.reshape(-1, 1)))[0, 0]
        below, up_to = np.sum(places < first), np.sum(places <= first)
        error = ranges.rank_error(len(rows))
        kept += bool(below - error <= len(rows) / 4 <= up_to + error)
    assert kept > 15


def test_wrong_parameters() -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        Ranges(-1.0, 1)
