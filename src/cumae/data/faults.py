"""Which rows cannot be used, for the eyes of their owner alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.data.cells import codes_of, missing_cells
from cumae.data.columns import Columns, Declared
from cumae.data.declared import Column
from cumae.data.kinds import NOUNS
from cumae.data.labels import label_codes
from cumae.data.parquet import ParquetRows
from cumae.data.rows import row_source

MOST_LINES = 20  # that bad_rows returns
BLOCK_ROWS = 65_536  # that bad_rows looks at together


def bad_rows(X: Any, y: Any, classes: Sequence[Any], columns: Declared = None) -> list[str]:
    """Tell the owner of the rows which of them cannot be used; fitting itself stays silent.

    What it returns is **not private**: show it to nobody else, and log it nowhere.

    Parameters
    ----------
    X, y, classes : table, labels and sequence
        As they are given to ``fit``.
    columns : dict, list or None
        What is declared about the columns, as for ``cumae.Columns``. Undeclared, a cell is
        bad if it is missing or infinite, or no number where most of its column are numbers.

    Returns
    -------
    list of str
        The first 20 findings. They name rows, counted from 0, and columns, but never a value.

    Examples
    --------
    >>> from cumae.predictors import bad_rows
    >>> bad_rows([[31, 1.5], [52, None], [47, 0.5]], [0, 1, 7], classes=(0, 1))
    ['row 1, column 1: missing value', 'row 2: label is none of the declared classes']
    """
    rows = row_source(X)
    unlabelled = label_codes(rows, y, classes) < 0
    if isinstance(rows, ParquetRows) and isinstance(y, str):
        rows = rows.without(y)
    declared = Columns(columns, rows.names, rows.n_features).columns
    lines: list[str] = []
    for start in range(0, rows.n_rows, BLOCK_ROWS):
        places = np.arange(start, min(start + BLOCK_ROWS, rows.n_rows))
        taken = rows.take(places)
        bad = np.flatnonzero(unlabelled[places])[:MOST_LINES]
        found = [(int(row), -1, "label is none of the declared classes") for row in bad]
        for place, column in enumerate(declared):
            cells = taken.iloc[:, place].to_numpy() if rows.is_frame else taken[:, place]
            found += [(row, place, fault) for row, fault in _faults(cells, column)]
        for row, place, fault in sorted(found):
            where = "" if place < 0 else f", column {declared[place].name}"
            lines.append(f"row {start + row}{where}: {fault}")
        if len(lines) >= MOST_LINES:
            break
    return lines[:MOST_LINES]


def _faults(cells: NDArray[Any], column: Column) -> list[tuple[int, str]]:
    """Return the places of the first bad cells of a column, and what is wrong with them."""
    missing = missing_cells(cells, text=column.declared)
    marks = {} if column.missing else {"missing value": missing}
    if column.categories is not None:
        unknown = ~missing & (column.read(cells).sum(axis=1) == 0)
        first = codes_of(cells, {column.categories[0]: 0}) == 0  # of two, it has no indicator
        marks["none of the declared categories"] = unknown & ~first
    else:
        found = column.read(cells)[:, 0]
        good = ~np.isnan(found)
        if column.declared or 2 * good.sum() > (~missing).sum():
            marks[f"no {NOUNS[column.kind]}"] = ~missing & ~good
        marks["infinite value"] = np.isinf(found)
        if column.bounds is not None:
            outside = (found < column.bounds[0]) | (found > column.bounds[1])
            marks["outside its declared bounds"] = np.isfinite(found) & outside
    return [
        (int(row), fault)
        for fault, mark in marks.items()
        for row in np.flatnonzero(mark)[:MOST_LINES]
    ]
