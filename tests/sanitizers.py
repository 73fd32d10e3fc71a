"""Columns for tests of sanitizers, and how far released points are off."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = tuple[Any, ...]


def table_of(rows: Rows, columns: int = 1) -> Floats:
    return np.array(rows, dtype=float).reshape(len(rows), columns)


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
