"""A table with columns of all kinds: numbers, categories and booleans of which cells are missing.

Tests of everything that takes ``columns=`` share it. The last column has no missing cells, and
decides the labels: laws put cells there that cannot be used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.checks import PublicNeighbours

KINDS: list[Any] = [
    (0.0, 1.0, "missing"),
    [0, 1, 2, None],
    {"boolean": True, "missing": True},
    (0.0, 1.0),
]
# The same without ranges, which are found privately then.
OPEN: list[Any] = [{"missing": True}, *KINDS[1:3], float]
# Boxes and halfspaces take three encoded columns: a number, the mark of a missing one, a number.
FEW, FEW_PLACES = [KINDS[0], KINDS[3]], (0, 3)
NAMED: dict[str, Any] = {
    "size": KINDS[0],
    "word": ["ja", "nein", "vielleicht", None],
    "truth": KINDS[2],
    "score": KINDS[3],
}

Table = NDArray[np.float64]


def as_array(count: int, seed: int = 7) -> Table:
    """Return rows as numbers: NaN is a missing cell, and the first row lacks three of its four."""
    coins = np.random.default_rng(seed)
    rows = (coins.random((count, 4)) * 10).round() / 10
    rows[:, 1], rows[:, 2] = coins.integers(0, 3, count), coins.integers(0, 2, count)
    rows[::5, 0], rows[::7, 1], rows[::3, 2] = np.nan, np.nan, np.nan
    return rows


def as_frame(count: int, seed: int = 7) -> pd.DataFrame:
    """Return the same rows as a data frame with names, text and true and false."""
    rows = as_array(count, seed).T
    words = np.array([*NAMED["word"][:3], None], dtype=object)
    truths = np.array([False, True, None], dtype=object)
    return pd.DataFrame(
        {
            "size": rows[0],
            "word": pd.Series(words[np.nan_to_num(rows[1], nan=3).astype(int)], dtype=object),
            "truth": pd.Series(truths[np.nan_to_num(rows[2], nan=2).astype(int)], dtype=object),
            "score": rows[3],
        }
    )


def labels_of(rows: Any) -> NDArray[np.int64]:
    """Return labels that the last column decides."""
    last = rows.iloc[:, -1] if hasattr(rows, "iloc") else rows[:, -1]
    return np.asarray(last > 0.5).astype(np.int64)


def neighbours(
    count: int = 120, *, few: bool = False, unlabelled: bool = False, public: bool = False
) -> PublicNeighbours:
    """Neighbours that differ in a label, and in which cells of a row are missing.

    Parameters
    ----------
    count : int above 75
        Number of rows.
    few : bool
        Whether the columns are those of ``FEW``.
    unlabelled : bool
        Whether every second row has no label.
    public : bool
        Whether there are public rows.
    """
    places = FEW_PLACES if few else (0, 1, 2, 3)
    rows, shown = (as_array(size, seed)[:, places] for size, seed in ((count, 7), (70, 8)))
    labels = labels_of(rows)
    row, new = 75, np.array([0.5, np.nan, 0.0, 1.0])[[*places]]  # it lacks number and truth
    label = 1 - labels[row]
    if unlabelled:
        labels = np.where(np.arange(count) % 2, labels, -1)
    found = PublicNeighbours.replacing(
        rows, labels, row, new, label, queries=rows[:20], X_public=shown if public else None
    )
    assert isinstance(found, PublicNeighbours)
    return found
