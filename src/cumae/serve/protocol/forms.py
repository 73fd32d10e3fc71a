"""Rows of a request in the one form in which a model is asked, for all protocols.

Faults of the envelope, which all rows of a request share, raise: the width, the names of columns,
the kind of a whole column. What a single cell holds never raises. A cell that cannot be used
becomes a missing one, and the oracle answers its row with -1 and counts it.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.serve.errors import bad

NUMBERS, CELLS, FRAME = "numbers", "cells", "frame"
COUNTED = (float, int, bool)  # types of JSON that are numbers
PLAIN = {*COUNTED, type(None)}


@claim("SERVE")
@dataclass(frozen=True)
class RowFormat:
    """The form in which a model takes its rows, and the names of its columns.

    Parameters
    ----------
    width : int
        Number of columns.
    names : list of str, or None
        Their names, where they have any.
    kind : str
        ``NUMBERS`` for a table of floats, ``CELLS`` for lists of cells, ``FRAME`` for a data frame.
    numeric : list of bool
        Which columns hold numbers; the others may hold texts as well.
    """

    width: int
    names: list[str] | None
    kind: str
    numeric: list[bool]

    @property
    def titles(self) -> list[str]:
        """A name for each column, also where there are none."""
        return self.names or [f"x{place}" for place in range(self.width)]

    def from_table(self, table: Floats) -> Any:
        """Return rows that came as one table of numbers, in the order of the columns."""
        if table.shape[1] != self.width:
            raise bad(f"a row has {self.width} columns here")
        if self.kind == NUMBERS:
            is_read = table.dtype == np.float64
            return table if is_read else floats(table.ravel()).reshape(table.shape)
        return self._from_columns([column.tolist() for column in table.T], len(table))

    def from_columns(self, columns: Mapping[str, Any]) -> Any:
        """Return rows that came as columns with names: lists of cells, or arrays of floats."""
        titles = self.titles
        lacking = [name for name in titles if name not in columns]
        strange = len(columns) - (len(titles) - len(lacking))
        if lacking or strange:
            raise bad(_other_columns(titles, lacking, strange))
        ordered = [columns[name] for name in titles]
        count = len(ordered[0])
        if any(len(column) != count for column in ordered):
            raise bad("all columns must have one length")
        if self.kind == NUMBERS:
            return np.column_stack([floats(column) for column in ordered])
        return self._from_columns(ordered, count)

    def from_rows(self, rows: Sequence[Any]) -> Any:
        """Return rows that came as lists of cells.

        If all have one wrong width, they are refused. A row of another width than others, and
        what is no row at all, is unusable.
        """
        if self.kind == NUMBERS and set(map(type, rows)) == {list}:
            table = plain_floats(list(chain.from_iterable(rows)))
            if table is not None and set(map(len, rows)) == {self.width}:
                return table.reshape(-1, self.width)
        widths = {len(row) if isinstance(row, list) else -1 for row in rows}
        if widths == {-1} and self.width == 1:  # a flat list is one column
            return self.from_rows([[cell] for cell in rows])
        if len(widths) == 1 and self.width not in widths:
            raise bad(f"a row has {self.width} columns here")
        nothing = [None] * self.width
        fitting = [
            row if isinstance(row, list) and len(row) == self.width else nothing for row in rows
        ]
        columns = [[row[place] for row in fitting] for place in range(self.width)]
        if self.kind == NUMBERS:
            return np.column_stack([floats(column) for column in columns])
        return self._from_columns(columns, len(rows))

    def from_records(self, records: Sequence[Any]) -> Any:
        """Return rows that came as objects with a cell for each column."""
        titles = self.titles
        known = set(titles)
        strange = 0
        for record in records:
            if isinstance(record, dict) and not known.issuperset(record):
                strange = max(strange, len(record.keys() - known))
        if strange:
            raise bad(_other_columns(titles, [], strange))
        fitting = [record if isinstance(record, dict) else {} for record in records]
        return self.from_columns({name: [row.get(name) for row in fitting] for name in titles})

    def _from_columns(self, columns: list[Any], count: int) -> Any:
        """Return lists of cells, or a data frame whose cells are read one by one."""
        read = [
            _as_floats(cells(column)) if numeric else cells(column)
            for column, numeric in zip(columns, self.numeric, strict=True)
        ]
        if self.kind == FRAME:
            made = {place: pd.Series(column, dtype=object) for place, column in enumerate(read)}
            frame = pd.DataFrame(made, index=range(count))
            frame.columns = pd.Index(self.titles)
            return frame
        return [list(row) for row in zip(*read, strict=True)]


class RowsAsked(NamedTuple):
    """The question of a request.

    Parameters
    ----------
    X : array, list of lists or DataFrame
        The rows, in the form of the model.
    n_rows : int
        How many there are.
    query_ids, user_ids : list, or None
        One for each row, where the request gives them.
    """

    X: Any
    n_rows: int
    query_ids: list[Any] | None = None
    user_ids: list[Any] | None = None

    def __repr__(self) -> str:
        return "<a question>"  # nothing of it belongs into a message


def asked(X: Any, query_ids: Any = None, user_ids: Any = None) -> RowsAsked:
    """Return a question; refuse one without rows, and ids that are not one for each row."""
    count = len(X)
    if not count:
        raise bad("there is no row in this request")
    for name, ids in (("query_ids", query_ids), ("user_ids", user_ids)):
        if ids is not None:
            check_ids(ids, count, name)
    return RowsAsked(X, count, query_ids, user_ids)


def check_ids(ids: Any, count: int, name: str) -> None:
    """Refuse ids that are not a list of short texts and whole numbers, one for each row."""
    if not isinstance(ids, list) or len(ids) != count:
        raise bad(f"{name} must be a list with one id for each row")
    for one in ids:
        good = isinstance(one, str) and 0 < len(one) <= 256
        if not good and (type(one) is not int or abs(one) >= 2**63):
            raise bad(f"{name} must be texts of 1 to 256 characters, or whole numbers of 64 bits")


def floats(column: Any) -> Floats:
    """Return a column of cells as floats; what is no number is missing."""
    if isinstance(column, np.ndarray) and column.dtype != object:
        return column.astype(np.float64, copy=False)
    plain = plain_floats(column)
    if plain is not None:
        return plain
    return np.array([number(cell) for cell in column], dtype=np.float64)


def number(cell: Any) -> float:
    """Return a cell as a float, and NaN if it is no number."""
    if not isinstance(cell, COUNTED):
        return math.nan
    try:
        return float(cell)
    except OverflowError:
        return math.nan


def cells(column: Any) -> list[Any]:
    """Return a column as single values: floats, whole numbers, texts, true and false, or None."""
    plain = column.tolist() if isinstance(column, np.ndarray) else column
    return [_cell(one) for one in plain]


def _as_floats(column: list[Any]) -> list[Any]:
    """Return cells with whole numbers as floats: a request is the same in any protocol."""
    return [float(one) if type(one) is int else one for one in column]


def _cell(one: Any) -> Any:
    if isinstance(one, float):
        return one if one == one else None  # noqa: PLR0124 - NaN is not equal to itself
    if isinstance(one, int) and not isinstance(one, bool):
        return one if abs(one) < 2**63 else None
    return one if isinstance(one, str | bool) else None


def plain_floats(flat: list[Any]) -> Floats | None:
    """Return a flat list as floats if it holds nothing but numbers and missing cells; else None.

    numpy would read texts as numbers, or allocate a table whose cells are as long as the longest.
    """
    try:
        return np.frombuffer(array("d", flat))  # which takes no text, and nothing that is missing
    except (TypeError, OverflowError):
        pass
    if not PLAIN.issuperset(map(type, flat)):
        return None
    try:
        return np.array(flat, dtype=np.float64)
    except OverflowError:
        return None


def _other_columns(titles: list[str], lacking: list[str], strange: int) -> str:
    """Return a sentence about columns; names of a request are not repeated."""
    text = "the columns are not those of the model:"
    if lacking:
        text += f" {len(lacking)} of {len(titles)} are missing (such as {lacking[0]})"
    if strange:
        text += f"{' and' if lacking else ''} {strange} are unknown"
    return f"{text}; ask for the model's metadata to see them"
