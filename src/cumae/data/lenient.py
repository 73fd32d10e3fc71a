"""Lenient reading: a row that cannot be read is unusable, which is no error.

Predictors read private rows and protected queries in this way. What one row holds changes neither
how another one is read nor whether anything is raised.

One function raises all the same: ``as_numbers``, which prepares rows for an estimator. Private rows
reach it as the rows of one shard, and its caller catches the error, so that it changes nothing but
the model of that shard.

``bad_rows`` tells the owner of the rows which of them are unusable. It is here because it has to
judge every row as the other functions do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.data.cells import ordinary_cells, unpacked
from cumae.data.columns import Columns, Declared
from cumae.data.containers import (
    PIECE,
    RowSource,
    bare_columns,
    frame_of,
    length_of,
    names_of,
    width_of,
)
from cumae.data.declared import Column
from cumae.data.kinds import NOUNS, TO_FILL_IN, undeclared_kinds
from cumae.data.labels import FEWEST_FITTING, fits_too_few, label_codes, refuse_unfit
from cumae.data.parquet import ParquetRows
from cumae.data.readings import missing_cells, numbers, read_cells
from cumae.data.rows import row_source
from cumae.data.texts import Written
from cumae.errors import InvalidData, InvalidParameter
from cumae.quiet import HiddenFailures, warnings_raise

EXACT = 2**53  # up to here every whole number has an exact float
FLOAT = np.dtype(np.float64)
NOTHING = (type(None), float, np.floating, str, np.datetime64, type(pd.NA), type(pd.NaT))  # missing
TYPED = {"numbers": "bf", "booleans": "b", "dates": "M"}  # numpy's types that need no reading


def as_numbers(rows: Any, columns: Columns | None) -> Any:
    """Return rows in the form in which an estimator gets them.

    Parameters
    ----------
    rows : array or DataFrame
        The rows.
    columns : Columns or None
        What was declared; None if nothing was.

    Returns
    -------
    array of floats or DataFrame
        Numbers. A DataFrame without declared columns stays as it is.

    Raises
    ------
    InvalidData
        If a cell is no number. A missing number raises only if columns are declared: without
        them the estimator gets NaN, because some estimators can learn from such rows.
    """
    if columns is not None:
        return columns.encode(rows)
    if hasattr(rows, "columns"):
        return rows
    table = numbers(rows)
    unread = np.isnan(table)
    if unread.any() and np.any(unread & ~np.asarray(pd.isna(rows))):
        raise InvalidData("X holds something that is no number; declare columns of text.")
    return table


def read_table(rows: Any, columns: Columns | None) -> Floats:
    """Return rows as numbers, each cell read by itself; NaN for what is missing or no number."""
    if columns is None:
        columns = Columns(None, names_of(rows), width_of(rows))
    return columns.read(rows)


def usable_rows(rows: Any, columns: Columns | None) -> NDArray[np.bool_]:
    """Tell which rows have no missing cell, and finite numbers where numbers belong.

    Parameters
    ----------
    rows : array or DataFrame
        The rows.
    columns : Columns or None
        What was declared. Without it, the type of each column of a DataFrame tells whether it
        holds numbers or text; all columns of an array hold numbers.
    """
    if hasattr(rows, "columns") and columns is None:
        kinds = [kind.kind in "biuf" for kind in rows.dtypes]
        return usable_frame(rows, np.flatnonzero(kinds).tolist())
    return np.asarray(np.isfinite(read_table(rows, columns)).all(axis=1))


@claim("EVER")
def typed_frame(
    frame: Any,
    numeric: Sequence[int],
    replaced: NDArray[np.bool_] | None = None,
    stand_in: Any = None,
) -> Any:
    """Return a frame with floats in its numeric columns and objects in all others.

    The types are those of fit, and never inferred from cells: one cell could change what a pipeline
    makes of all others.

    Parameters
    ----------
    frame : DataFrame
        The rows.
    numeric : sequence of int
        Places of the columns that hold numbers.
    replaced : array of bool, or None
        Which rows are unusable; ``stand_in`` takes their place. None for no row.
    stand_in : DataFrame of one row, or None
        A made-up row.
    """
    columns = []
    for place in range(frame.shape[1]):
        if place in numeric:
            cells: NDArray[Any] = numbers(frame.iloc[:, place].to_numpy())
        else:
            cells = ordinary_cells(frame.iloc[:, place].to_numpy(dtype=object))
        if replaced is not None and replaced.any():
            cells = cells.copy()
            cells[replaced] = stand_in.iloc[0, place]
        columns.append(cells)
    return frame_of(names_of(frame) or [], columns)


@claim("BBL", "EVER")
def plain_floats(X: Any, width: int) -> Floats | None:
    """Return queries that are plain numbers as a table of their own; None for all others.

    It is what ``read_one_by_one`` and ``Columns.read`` make of them in columns that hold plain
    numbers, but for single queries it takes less time.

    Parameters
    ----------
    X : object
        The queries: an array of floats, or a list of lists of Python's own numbers.
    width : int
        Number of columns at fit.
    """
    if type(X) is np.ndarray:
        plain = X.dtype is FLOAT and X.ndim == 2 and X.shape[1] == width and len(X) > 0
        return X.copy() if plain else None
    if type(X) is not list or not X:
        return None
    for query in X:
        if type(query) is not list or len(query) != width:
            return None
        for cell in query:
            if type(cell) is not float and (type(cell) is not int or abs(cell) > EXACT):
                return None
    return np.array(X, dtype=np.float64)


@claim("BBL", "EVER")
def read_one_by_one(X: Any, width: int) -> Any:
    """Return queries as one table, in which each query is read without looking at the others.

    In a list of queries, one that is no row of this width becomes a row of missing cells. If all
    are rows of one other width, the table has that width, as an array would have. In a masked
    array, each masked cell becomes a missing one. Arrays of complex or structured type become
    arrays of objects, whose cells nobody can read as numbers. Other inputs are returned unchanged.

    Parameters
    ----------
    X : list, tuple, array or DataFrame
        The queries.
    width : int
        Number of columns at fit.
    """
    if isinstance(X, np.ma.MaskedArray):
        return np.where(np.ma.getmaskarray(X), np.nan, X.data)
    if isinstance(X, np.ndarray) and X.dtype.kind in "cV":
        return X.astype(object)
    listed = isinstance(X, np.ndarray) and X.dtype.kind == "O" and X.ndim == 1
    if not listed and not isinstance(X, list | tuple):
        return X
    with warnings_raise():  # a query that warns when it is read is unusable, and not heard
        found = _common_width(X)
        if found is not None and found != width:
            return np.full((len(X), found), np.nan, dtype=object)
        table = np.full((len(X), width), np.nan, dtype=object)
        for place, query in enumerate(X):
            for column, cell in enumerate(_cells_of(query, width)):
                table[place, column] = cell
    return table


@claim("BBL", "EVER")
def _common_width(X: Sequence[Any]) -> int | None:
    """Return the number of cells that all queries have; None if they differ, or one is no row."""
    found: int | None = None
    for query in X:
        width: int | None = None
        with HiddenFailures():  # a query may be anything, and raise anything
            width = len(query) if _is_row(query) else None
        if width is None or found not in (None, width):
            return None
        found = width
    return found


def _is_row(query: Any) -> bool:
    return isinstance(query, list | tuple | pd.Series) or np.ndim(query) == 1


def _cells_of(query: Any, width: int) -> Sequence[Any]:
    """Return the cells of one query; none if it is no row of this width."""
    with HiddenFailures():  # a query may be anything, and raise anything
        if _is_row(query):
            cells = list(query)
            return cells if len(cells) == width else ()
        if width == 1:
            return (query[()] if isinstance(query, np.ndarray) else query,)
    return ()


def usable_frame(frame: Any, numeric: Sequence[int]) -> NDArray[np.bool_]:
    """Tell which rows of a frame have no missing cell, and finite numbers in numeric columns."""
    usable = np.asarray(~frame.isna().to_numpy().any(axis=1))
    for place in numeric:
        usable &= np.isfinite(numbers(frame.iloc[:, place].to_numpy()))
    return usable


@claim("BBL", "QUERY", "PRIOR")
def clean_table(
    rows: RowSource, labels: Integers, columns: Columns | None
) -> tuple[Floats, Integers]:
    """Return all rows of a source as numbers, and their labels.

    A row that is unusable, or has none of the declared labels, is replaced by zeros with the first
    label: refusing it would tell about it, and dropping it would change the number of rows.

    Parameters
    ----------
    rows : RowSource
        The rows.
    labels : array of int
        Places in the declared classes; -1 for none of them.
    columns : Columns or None
        What was declared; None if nothing was.
    """
    places, labels = np.arange(rows.n_rows), labels.copy()
    table = read_table(rows.take(places), None) if columns is None else rows.read(places, columns)
    wrong = ~np.isfinite(table).all(axis=1) | (labels < 0)
    table[wrong] = 0.0
    labels[wrong] = 0
    return table, labels


# What cannot be used, for the eyes of the owner of the rows alone


@claim("SHARDS")
def need_contents(rows: Any, columns: Columns, places: Sequence[int] | None = None) -> None:
    """Refuse columns of which (nearly) nothing is left once they are read, before any payment.

    That is a column of which less than one cell in a hundred fits what was declared: can be read,
    is a declared category, or lies within the declared range; or one whose numbers differ, but all
    become the same float. Missing cells do not count, and a column whose cells are all missing is
    taken, unless all columns are like that. Reading stops as soon as enough cells fit.

    Parameters
    ----------
    rows : table
        All rows.
    columns : Columns
        The columns, as far as they are known.
    places : sequence of int, or None
        Places of the columns that are read; None for all.

    Raises
    ------
    InvalidData
        Names the first such column, or says that all cells are missing.
    """
    read = range(len(columns.columns)) if places is None else places
    enough = max(1, math.ceil(FEWEST_FITTING * length_of(rows)))
    left = {place: _Contents(columns.columns[place], enough) for place in read}
    for table in rows.pieces() if isinstance(rows, ParquetRows) else [rows]:
        found = bare_columns(table)
        for start in range(0, len(found[0]), PIECE):
            some = slice(start, start + PIECE)
            left = {place: seen for place, seen in left.items() if seen.lacks(found[place][some])}
            if not left:
                return
    if len(left) == len(read) and not any(seen.there for seen in left.values()):
        raise InvalidData("all cells of X are missing, so that there is nothing to learn from.")
    for seen in left.values():
        seen.refuse(columns.key(seen.column.name))


def contents(rows: Any, columns: Columns) -> Integers:
    """Return counts of cells of each column: those that are there, can be read, and fit.

    Counts of several tables may be added.

    Parameters
    ----------
    rows : table
        Some rows.
    columns : Columns
        The columns, as far as they are known.
    """
    seen = [_Contents(column, length_of(rows) + 1) for column in columns.columns]
    for one, cells in zip(seen, bare_columns(rows), strict=True):
        one.lacks(cells)
    return np.array([[one.there, one.count, one.readable, one.fitting] for one in seen], np.int64)


def refuse_without_contents(counts: Integers, columns: Columns) -> None:
    """Refuse columns of which (nearly) nothing is left, by what ``contents`` counted in all rows.

    Parameters
    ----------
    counts : array of int
        The sum of what ``contents`` returned.
    columns : Columns
        The columns, as far as they are known.

    Raises
    ------
    InvalidData
        Names the first such column, or says that all cells are missing.
    """
    if not counts[:, 0].any():
        raise InvalidData("all cells of X are missing, so that there is nothing to learn from.")
    for column, found in zip(columns.columns, counts.tolist(), strict=True):
        seen = _Contents(column, 1)
        seen.there, seen.count, seen.readable, seen.fitting = found
        seen.refuse(columns.key(column.name))


@claim("KEYS")
def need_keys(rows: Any, columns: Columns) -> None:
    """Refuse rows of ordered values without a key, before anything is paid.

    A missing cell is no such value: its row is not used, as in other columns. The error is for the
    owner of the rows, who declared what is in them and how long it is.

    Parameters
    ----------
    rows : table
        All rows.
    columns : Columns
        What was declared.

    Raises
    ------
    InvalidData
        Names the first such row of a column.
    """
    first = 0
    for table in rows.pieces() if isinstance(rows, ParquetRows) else [rows]:
        found = bare_columns(table)
        for place in columns.ordered:
            column = columns.columns[place]
            for start in range(0, len(found[place]), PIECE):
                cells = unpacked(found[place][start : start + PIECE])
                wrong = np.isnan(column.read(cells)[:, 0]) & ~missing_cells(cells, text=True)
                if wrong.any():
                    row = first + start + int(np.argmax(wrong))
                    raise InvalidData(
                        f"column {column.name} holds something that is no {NOUNS['ordered']}, "
                        f"first in row {row}; mend it, or declare larger max_bytes.",
                        columns=[column.name],
                        rows=[row],
                    )
        first += len(found[0])


class _Contents:
    """Contents of a column, as far as they were read.

    Parameters
    ----------
    column : Column
        What was declared about it.
    enough : int
        How many cells must fit.
    """

    def __init__(self, column: Column, enough: int) -> None:
        self.column, self.enough = column, enough
        self.first: Any = None  # the first cell that is a number, and the float that it became
        self.number: float | None = None
        self.there = self.differ = False  # whether a cell is not missing; whether numbers differ
        self.same = True  # whether all numbers so far became the same float
        self.count = self.readable = self.fitting = 0  # cells that are not missing, and of these

    def lacks(self, bare_cells: Any) -> bool:
        """Look at some more cells; tell whether too little is left of the column so far."""
        cells = unpacked(bare_cells)
        if self.column.order is not None:
            gone = missing_cells(cells, text=True)
            self.there = self.there or not gone.all()
            return bool(np.isnan(self.column.read(cells)[:, 0]).all())
        if cells.dtype.kind in TYPED.get(self.column.kind, ""):
            if self.column.bounds is None:
                self.there, self.count, self.readable, self.fitting = True, 1, 1, 1
                return False  # they stand for themselves
            self.same, present = False, ~missing_cells(cells)
            self.there = self.there or bool(present.any())
            self._count(self.column.read(cells)[:, 0], present)
            return self.fitting < self.enough
        plain = ordinary_cells(cells)
        present = ~missing_cells(plain, text=self.column.declared)
        odd = not all(isinstance(cell, NOTHING) for cell in cells[~present])
        self.there = self.there or odd or bool(present.any())
        cells, plain = cells[present], plain[present]
        if self.column.categories is not None:
            self.count += len(plain)
            self.fitting += int(np.count_nonzero(_known(plain, self.column)))
            return self.fitting < self.enough
        found = self.column.read(plain)[:, 0]
        readable = ~np.isnan(found)
        self._count(found, np.ones(len(found), dtype=bool))
        cells, found = cells[readable], found[readable]
        if len(found):
            self._compare(cells, found)
        return self.same or self.fitting < self.enough

    def _count(self, found: Floats, present: NDArray[np.bool_]) -> None:
        """Count cells that are there, those of them that can be read, and those within bounds."""
        self.count += int(np.count_nonzero(present))
        self.readable += int(np.count_nonzero(present & ~np.isnan(found)))
        low, high = (-np.inf, np.inf) if self.column.bounds is None else self.column.bounds[:2]
        self.fitting += int(np.count_nonzero(present & (found >= low) & (found <= high)))

    def _compare(self, cells: NDArray[Any], found: Floats) -> None:
        """Compare numbers with the first one."""
        if self.number is None:
            self.number, self.first = found[0], cells[0]
        self.same = self.same and bool(np.all(found == self.number))
        if self.same and self.column.kind == "numbers" and not self.differ:
            apart = cells != self.first if cells.dtype.kind in "iu" else map(self._apart, cells)
            self.differ = any(apart)

    def _apart(self, cell: Any) -> bool:
        """Tell whether an exact number differs from the first; texts and floats are left out."""
        with HiddenFailures():  # a cell may be anything, and raise anything
            alike = type(cell) is type(self.first) and not isinstance(cell, str | float)
            return alike and bool(cell != self.first)
        return False

    def refuse(self, key: str) -> None:
        """Raise what is wrong with the column, if anything is."""
        name, present = self.column.name, max(self.count, int(self.there))
        if self.column.categories is not None:
            refuse_unfit(name, self.fitting, present, "that is one of its declared categories")
        elif fits_too_few(self.readable, present):
            some = "hardly a cell" if self.readable else "no cell"
            raise InvalidData(
                f"column {name} has {some} that can be read as a {NOUNS[self.column.kind]}; if it "
                f"is text, declare what can occur: columns={{{key}: {TO_FILL_IN}}}; of dates, "
                "declare a day to count from; for a class that only compares, such as Thresholds, "
                'declare {"ordered": "text"} or "dates"; or leave it out.',
                columns=[name],
            )
        refuse_unfit(name, self.fitting, present, "within its declared range")
        if self.same and self.differ:
            raise InvalidData(
                f"column {self.column.name} holds numbers that differ, but that all become the "
                "same float; subtract a constant from them, or leave the column out.",
                columns=[self.column.name],
            )


def _known(cells: NDArray[Any], column: Column) -> NDArray[np.bool_]:
    """Tell which cells are one of the declared categories."""
    # Of two categories, the first one has no mark of its own; here all have one.
    how = column.encoding._replace(marked=tuple(range(len(column.categories or ()))))
    return np.asarray(read_cells(cells, how).any(axis=1))


# Which rows cannot be used, for the eyes of their owner alone

MOST_LINES = 20  # that bad_rows returns
BLOCK_ROWS = 65_536  # that bad_rows looks at together


def bad_rows(X: Any, y: Any, classes: Sequence[Any], columns: Declared = None) -> list[str]:
    """Return the rows that cannot be used, for their owner alone; fitting itself stays silent.

    What it returns is **not private**: show it to nobody else, and log it nowhere.

    Parameters
    ----------
    X, y, classes : table, labels and sequence
        As they are given to ``fit``.
    columns : dict, list or None
        What is declared about the columns, as for ``cumae.Columns``. In a column that is not
        declared, a cell is bad if it is missing or infinite, or if it is no number and most other
        cells are numbers.

    Returns
    -------
    list of str
        What is wrong with types of columns, the first 20 bad cells and labels, and the number of
        all bad labels. They name rows, counted from 0, and columns, but never a value.

    Examples
    --------
    >>> from cumae.predictors import bad_rows
    >>> bad_rows([[31, 1.5], [52, None], [47, 0.5]], [0, 1, 7], classes=(0, 1))
    ['row 1, column 1: missing value', 'row 2: label is none of the declared classes', '1 of 3 ...']
    """
    rows = row_source(X)
    unlabelled = label_codes(rows, y, classes) < 0
    if isinstance(rows, ParquetRows) and isinstance(y, str):
        rows = rows.without(y)
    declared = Columns(columns, rows.names, rows.n_features).columns
    lines = _types_that_do_not_fit(rows, columns)
    for start in range(0, rows.n_rows, BLOCK_ROWS):
        places = np.arange(start, min(start + BLOCK_ROWS, rows.n_rows))
        taken = rows.take(places)
        bad = np.flatnonzero(unlabelled[places])[:MOST_LINES]
        found = [(int(row), -1, "label is none of the declared classes") for row in bad]
        for place, column in enumerate(declared):
            cells = taken.iloc[:, place].to_numpy() if rows.is_frame else taken[:, place]
            found += [(row, place, fault) for row, fault in faults_of(cells, column)]
        for row, place, fault in sorted(found):
            where = "" if place < 0 else f", column {declared[place].name}"
            lines.append(f"row {start + row}{where}: {fault}")
        if len(lines) > MOST_LINES:
            break
    count = int(np.count_nonzero(unlabelled))
    summary = [f"{count} of {rows.n_rows} labels: none of the declared classes"] if count else []
    if len(lines) > MOST_LINES:
        summary.insert(0, f"only the first {MOST_LINES} are listed: mend them, and look again")
    return lines[:MOST_LINES] + summary


def _types_that_do_not_fit(rows: RowSource, columns: Declared) -> list[str]:
    """Return what a fit would refuse about the types of columns."""
    kinds = undeclared_kinds(rows.kinds) if columns is None else rows.kinds
    try:
        Columns(columns, rows.names, rows.n_features, kinds)
    except InvalidParameter as error:
        return [str(error)]
    return []


def unread(column: Column) -> str:
    """Return what is wrong with a cell that cannot be read, in a few words."""
    if column.truth is not None:
        return "none of the codes that were declared"
    if column.kind == "booleans":
        return "neither yes nor no (true, false, 1, 0)"
    if column.written.format is not None:
        return f"no date of the form {column.written.format}"
    if column.written.decimal == "," or column.written.thousands:
        return f"no number of the form {_example(column.written)}"
    return f"no {NOUNS[column.kind]}"


def _example(written: Written) -> str:
    return f"1{written.thousands}234{written.decimal}5"


def faults_of(
    cells: NDArray[Any], column: Column, most: int | None = MOST_LINES
) -> list[tuple[int, str]]:
    """Return the places of the first bad cells of a column, and what is wrong with them.

    It is for the eyes of the owner of the rows alone, as ``bad_rows`` is.

    Parameters
    ----------
    cells : array
        Cells of the column.
    column : Column
        What was declared about it.
    most : int or None
        How many cells to return of each fault; None for all.
    """
    return [
        (int(row), fault)
        for fault, mark in fault_marks(cells, column).items()
        for row in np.flatnonzero(mark)[:most]
    ]


UNKNOWN, OUTSIDE = "none of the declared categories", "outside its declared bounds"


def fault_marks(cells: NDArray[Any], column: Column) -> dict[str, NDArray[np.bool_]]:
    """Return which cells have which fault, for the eyes of the owner of the rows alone.

    Parameters
    ----------
    cells : array
        Cells of the column.
    column : Column
        What was declared about it.
    """
    missing = missing_cells(cells, text=column.declared)
    marks = {} if column.missing else {"missing value": missing}
    if column.categories is not None:
        marks[UNKNOWN] = ~missing & ~_known(cells, column)
    else:
        found = column.read(cells)[:, 0]
        good = ~np.isnan(found)
        if column.declared or 2 * good.sum() > (~missing).sum():
            marks[unread(column)] = ~missing & ~good
        marks["infinite value"] = np.isinf(found)
        if column.bounds is not None:
            outside = (found < column.bounds[0]) | (found > column.bounds[1])
            marks[OUTSIDE] = np.isfinite(found) & outside
    return marks
