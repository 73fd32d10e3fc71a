"""Where private rows come from: a few are read at a time, and each as if it were the only one.

A cell is read by its column's declared type or, where there is none (objects, lists), by itself.
If it depended on another row, that row could change what all shards see.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.data.cells import bare, columns_at, kind_of, plain_cells
from cumae.data.containers import array_of, frame_of, names_of, need_columns
from cumae.errors import InvalidData, InvalidParameter

if TYPE_CHECKING:
    from cumae.data.columns import Columns


class RowSource(ABC):
    """Rows that stay where they are; whoever asks gets only the rows asked for.

    Attributes
    ----------
    n_rows, n_features : int
        Number of rows and columns.
    names : list of str or None
        Names of the columns, or None where they have none.
    is_frame : bool
        Whether ``take`` returns a pandas DataFrame.
    """

    n_rows: int
    n_features: int
    names: list[str] | None
    is_frame: bool

    @abstractmethod
    def take(self, places: Integers) -> Any:
        """Return a copy of the rows at these places, in that order."""

    @abstractmethod
    def is_text(self, place: int) -> bool:
        """Tell whether a column holds text, by its type alone."""

    def read(self, places: Integers, columns: Columns) -> Floats:
        """Return the rows at these places as numbers, by what is declared about the columns.

        NaN stands for what is missing or is no number.
        """
        return columns.read(self.take(places))


class ArrayRows(RowSource):
    """Rows of a numpy array or a memory map; ``take`` returns a 2-D array of the same type."""

    is_frame = False

    def __init__(self, table: NDArray[Any]) -> None:
        if isinstance(table, np.ma.MaskedArray):
            raise InvalidData("X is a masked array; fill what is masked: X.filled(...).")
        if table.ndim not in (1, 2):
            raise InvalidData(f"X has {table.ndim} dimensions; give rows and columns.")
        if table.dtype.kind in "cV":
            raise InvalidData(
                "Complex data not supported, nor structured ones: give a table of real numbers or "
                "text."
            )
        self._table = table if table.ndim == 2 else table.reshape(-1, 1)
        self.n_rows, self.n_features = map(int, self._table.shape)
        self.names = None
        need_cells(self)

    def take(self, places: Integers) -> NDArray[Any]:
        table = np.asarray(self._table[check_places(places, self.n_rows)])
        return plain_cells(table) if table.dtype.kind == "O" else table

    def is_text(self, place: int) -> bool:  # noqa: ARG002  all columns have one type
        return kind_of(self._table.dtype) == "text"


class FrameRows(RowSource):
    """Rows of a pandas DataFrame; ``take`` returns a DataFrame with plain columns.

    Categories become plain values, because the list of categories may have been read from all rows.
    So do pandas' own types, with NaN for what is missing.
    """

    is_frame = True

    def __init__(self, frame: pd.DataFrame) -> None:
        self.n_rows, self.n_features = map(int, frame.shape)
        self.names: list[str] = check_names(names_of(frame) or [])
        self._types = list(frame.dtypes)
        # Columns without pandas around them: asking a frame for them is slow.
        self._columns = [bare(frame.iloc[:, place]) for place in range(self.n_features)]
        need_cells(self)

    def take(self, places: Integers) -> pd.DataFrame:
        places = check_places(places, self.n_rows)
        return frame_of(self.names, columns_at(self._columns, places))

    def read(self, places: Integers, columns: Columns) -> Floats:
        places = check_places(places, self.n_rows)
        return columns.read_columns(self._columns, places, plain=True)

    def is_text(self, place: int) -> bool:
        # Before pandas 3, objects are how it stores text.
        return self._types[place] == np.dtype(object) or kind_of(self._types[place]) == "text"


def row_source(X: Any) -> RowSource:
    """Return where to take the rows of ``X`` from.

    Parameters
    ----------
    X : array, list, DataFrame or RowSource
        A numpy array or memory map, a list of rows, a pandas DataFrame, or a RowSource, which is
        returned as it is. A flat array or list is one column. Nothing is copied but lists.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.data.rows import row_source
    >>> rows = row_source([[31, "baker"], [52, None], [47, "nurse"]])
    >>> rows.n_rows, rows.n_features
    (3, 2)
    >>> rows.take(np.array([2, 1])).tolist()
    [[47, 'nurse'], [52, nan]]
    """
    if isinstance(X, RowSource):
        return X
    if isinstance(X, pd.DataFrame):
        return FrameRows(X)
    if isinstance(X, np.ndarray):
        return ArrayRows(X)
    if isinstance(X, list | tuple) or (hasattr(X, "__array__") and not isinstance(X, pd.Series)):
        return ArrayRows(array_of(X))
    raise InvalidData(
        f"X is a {type(X).__name__}; give a numpy array, a memory map, a list of rows, a pandas "
        'DataFrame or ParquetRows("folder"). A sparse matrix is made dense by X.toarray().'
    )


def need_cells(rows: RowSource) -> None:
    """Refuse a table without rows or columns."""
    if rows.n_rows == 0:
        raise InvalidData("X has 0 rows; give rows to learn from.")
    need_columns(rows.n_features, rows.n_rows)


def check_names(names: list[str]) -> list[str]:
    """Return the names of the columns, if no two of them are the same."""
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise InvalidData(f"X has several columns of the same name: {twice!r}; rename them.")
    return names


def check_places(given: Any, n_rows: int) -> Integers:
    """Return places of rows, if all of them are there."""
    places: Integers = np.asarray(given, dtype=np.int64)
    if places.ndim != 1 or (len(places) and not 0 <= places.min() <= places.max() < n_rows):
        raise InvalidParameter(f"places must be a flat array of numbers from 0 to {n_rows - 1}.")
    return places


class SomeRows(RowSource):
    """Some rows of another source, by their places."""

    def __init__(self, rows: RowSource, places: Integers) -> None:
        self._source, self._places = rows, places
        self.n_rows, self.n_features = len(places), rows.n_features
        self.names, self.is_frame = rows.names, rows.is_frame

    def take(self, places: Integers) -> Any:
        return self._source.take(self._places[places])

    def read(self, places: Integers, columns: Columns) -> Floats:
        return self._source.read(self._places[places], columns)

    def is_text(self, place: int) -> bool:
        return self._source.is_text(place)


class EncodedRows(RowSource):
    """Rows of another source as numbers, by what is declared about its columns.

    Parameters
    ----------
    rows : RowSource
        The rows as they came.
    columns : Columns
        What is declared about them.
    """

    is_frame = False

    def __init__(self, rows: RowSource, columns: Columns) -> None:
        self._source, self._declared = rows, columns
        self.n_rows, self.n_features = rows.n_rows, len(columns)
        self.names = None

    def take(self, places: Integers) -> Floats:
        return self._source.read(places, self._declared)

    def is_text(self, place: int) -> bool:  # noqa: ARG002  numbers in all columns
        return False
