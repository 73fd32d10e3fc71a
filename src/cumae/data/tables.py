"""Rows as tables of numbers, each row read for itself."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.data.cells import floats, plain_cells
from cumae.data.columns import Columns
from cumae.data.rows import RowSource, frame_of
from cumae.quiet import warnings_raise

Table = NDArray[np.float64]


def as_numbers(rows: Any, columns: Columns | None) -> Any:
    """Return rows as an estimator gets them: encoded if declared, else frames as they are."""
    if columns is not None:
        return columns.encode(rows)
    return rows if hasattr(rows, "columns") else np.asarray(rows, dtype=np.float64)


def usable_rows(rows: Any, columns: Columns | None) -> NDArray[np.bool_]:
    """Tell which rows have a value in every cell that is finite or, in columns of text, there."""
    if hasattr(rows, "columns") and columns is None:
        kinds = [kind.kind in "biuf" for kind in rows.dtypes]
        return usable_frame(rows, np.flatnonzero(kinds).tolist())
    return np.asarray(np.isfinite(read_table(rows, columns)).all(axis=1))


def typed_frame(
    frame: Any,
    numeric: Sequence[int],
    replaced: NDArray[np.bool_] | None = None,
    stand_in: Any = None,
) -> Any:
    """Return a frame with floats in its numeric columns and objects in all others.

    The types are those of fit, and never inferred from cells: one cell could change what a pipeline
    makes of all others. Where ``replaced`` is true, the row of ``stand_in`` takes the place.
    """
    columns = []
    for place in range(frame.shape[1]):
        if place in numeric:
            cells: NDArray[Any] = floats(frame.iloc[:, [place]], 0, len(frame))[:, 0]
        else:
            cells = plain_cells(frame.iloc[:, place].to_numpy(dtype=object))
        if replaced is not None and replaced.any():
            cells = cells.copy()
            cells[replaced] = stand_in.iloc[0, place]
        columns.append(cells)
    return frame_of([str(name) for name in frame.columns], columns)


def read_one_by_one(X: Any, width: int) -> Any:
    """Return queries of which each is read for itself, whatever the others are.

    A list is a list of queries. One of them that is no row of this width becomes a row of missing
    cells. So do masked cells, and cells of arrays of complex or structured type.
    """
    if isinstance(X, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(X), np.nan, X.data)
    if isinstance(X, np.ndarray) and X.dtype.kind in "cV":
        return X.astype(object)
    listed = isinstance(X, np.ndarray) and X.dtype.kind == "O" and X.ndim == 1
    if not listed and not isinstance(X, list | tuple):
        return X
    table = np.full((len(X), width), np.nan, dtype=object)
    with warnings_raise():  # a query that warns when it is read is unusable, and not heard
        for place, query in enumerate(X):
            for column, cell in enumerate(_cells_of(query, width)):
                table[place, column] = cell
    return table


def _cells_of(query: Any, width: int) -> Sequence[Any]:
    """Return the cells of one query; none if it is no row of this width."""
    with contextlib.suppress(Exception):  # a query may be anything, and raise anything
        if isinstance(query, list | tuple | pd.Series) or np.ndim(query) == 1:
            cells = list(query)
            return cells if len(cells) == width else ()
        if width == 1:
            return (query[()] if isinstance(query, np.ndarray) else query,)
    return ()


def usable_frame(frame: Any, numeric: Sequence[int]) -> NDArray[np.bool_]:
    """Tell which rows of a frame have no missing cell, and finite numbers where it needs them."""
    usable = np.asarray(~frame.isna().to_numpy().any(axis=1))
    for place in numeric:
        usable &= np.isfinite(floats(frame.iloc[:, [place]], 0, len(frame))[:, 0])
    return usable


def clean_table(
    rows: RowSource, labels: Integers, columns: Columns | None
) -> tuple[Table, Integers]:
    """Return all rows and labels of a source.

    A row that is unusable, or has none of the declared labels, is replaced by zeros with the first
    label: refusing it would tell about it, and dropping it would change the number of rows.
    """
    table = read_table(rows.take(np.arange(rows.n_rows)), columns)
    wrong = ~np.isfinite(table).all(axis=1) | (labels < 0)
    table, labels = table.copy(), labels.copy()
    table[wrong] = 0.0
    labels[wrong] = 0
    return table, labels


def read_table(rows: Any, columns: Columns | None) -> Table:
    """Return rows as numbers; those that cannot be read are not a number in any cell."""
    plain = columns is None or all(column.categories is None for column in columns.columns)
    if plain and getattr(rows, "dtype", np.dtype(object)).kind in "biuf":
        with np.errstate(all="ignore"):
            return np.array(rows, dtype=np.float64)  # nothing can fail, and so no time is lost
    table = np.full((len(rows), rows.shape[1] if columns is None else len(columns)), np.nan)
    waiting = [(0, len(rows))]
    while waiting:  # in halves, so that a single bad row does not make all others slow
        first, last = waiting.pop()
        part = _numbers(rows[first:last], columns)
        if part is not None:
            table[first:last] = part
        elif last - first > 1:
            middle = (first + last) // 2
            waiting += [(first, middle), (middle, last)]
    return table


def _numbers(rows: Any, columns: Columns | None) -> Table | None:
    with contextlib.suppress(Exception), warnings_raise():  # of any kind: one row may be why
        return np.asarray(as_numbers(rows, columns), dtype=np.float64)
    return None
