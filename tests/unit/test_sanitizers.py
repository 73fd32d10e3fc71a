"""Sanitizers: what all of them promise, and what they refuse."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cumae.concepts import Intervals, Points, Stumps, Thresholds
from cumae.errors import CumaeError, InvalidData, InvalidParameter
from cumae.privacy import Cost
from cumae.sanitizers import (
    MultiplicativeWeights,
    Quantiles,
    Sanitizer,
    SmallDatabase,
    StableThresholds,
)


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
