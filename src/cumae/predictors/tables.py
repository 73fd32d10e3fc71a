"""Private rows as one table of numbers, when all of them are needed at once."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.errors import CumaeError
from cumae.learners.columns import Columns
from cumae.predictors.rows import RowSource
from cumae.predictors.shards import Integers, as_numbers

Table = NDArray[np.float64]


def clean_table(
    rows: RowSource, labels: Integers, columns: Columns | None
) -> tuple[Table, Integers]:
    """Return all rows and labels, each row read for itself.

    A row that is unusable, or has none of the declared labels, is replaced by zeros with the first
    label: refusing it would tell about it, and dropping it would change the number of rows.
    """
    loaded = rows.take(np.arange(rows.n_rows))
    width = rows.n_features if columns is None else len(columns)
    table = _numbers(loaded, columns)
    if table is None:
        table = np.full((rows.n_rows, width), np.nan)
        for place in range(rows.n_rows):
            row = _numbers(loaded[place : place + 1], columns)
            if row is not None:
                table[place] = row[0]
    wrong = ~np.isfinite(table).all(axis=1) | (labels < 0)
    table, labels = table.copy(), labels.copy()
    table[wrong] = 0.0
    labels[wrong] = 0
    return table, labels


def _numbers(rows: Any, columns: Columns | None) -> Table | None:
    with contextlib.suppress(CumaeError, TypeError, ValueError, OverflowError):
        return np.asarray(as_numbers(rows, columns), dtype=np.float64)
    return None
