"""Tables of any kind: their names, their width, their length, and their cells column by column.

A table is a list of rows, a numpy array, a pandas DataFrame or a ``RowSource``. A flat list or
array is one column. Nothing here chooses a type by looking at several cells: each cell of a list
stays as it is.
"""

from __future__ import annotations

import contextlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.codec import Part, add_form, register
from cumae.data.cells import bare, unpacked
from cumae.errors import InvalidData

PIECE = 8_192  # rows that are read at a time where all of them are wanted


class ColumnReader(Protocol):
    """A maker of numbers from cells, by what is declared about the columns: ``Columns``, above."""

    def __len__(self) -> int:
        """Return the number of columns after encoding."""

    def encode(self, X: Any, first: int = 0) -> Floats:
        """Return rows as numbers; an error counts them from ``first``."""

    def read(self, X: Any) -> Floats:
        """Return rows as numbers, with NaN for what is missing or is no number."""

    def read_columns(
        self, columns: Sequence[Any], places: Any = slice(None), *, ordinary: bool = False
    ) -> Floats:
        """As ``read``, for some rows of bare columns."""


class RowSource(ABC):
    """Rows that stay where they are; whoever asks gets only the rows asked for.

    Attributes
    ----------
    n_rows, n_features : int
        Number of rows and columns.
    names : list of str or None
        Names of the columns, or None where they have none.
    kinds : list of str
        What each column can hold by its type, as in ``cumae.data.kinds``.
    whole : sequence of bool
        Whether the type of each column holds whole numbers only, and was fixed before rows were
        read; empty if nothing is known.
    is_frame : bool
        Whether ``take`` returns a pandas DataFrame.
    is_of_floats : bool
        Whether ``take`` returns floats of 64 bits, by the type of the table; they need no reading.
    """

    n_rows: int
    n_features: int
    names: list[str] | None
    kinds: list[str]
    whole: Sequence[bool] = ()
    is_frame: bool
    is_of_floats: bool = False

    @abstractmethod
    def take(self, places: Integers) -> Any:
        """Return a copy of the rows at these places, in that order.

        Parameters
        ----------
        places : array of int
            Numbers of rows, from 0.
        """

    @abstractmethod
    def select(self, names: list[str]) -> RowSource:
        """Return the same rows with these columns, in that order.

        Parameters
        ----------
        names : list of str
            Names of columns.
        """

    def pieces(self) -> Iterator[Any]:
        """Return all rows, some thousands at a time."""
        for start in range(0, self.n_rows, PIECE):
            yield self.take(np.arange(start, min(start + PIECE, self.n_rows)))

    def all_columns(self) -> list[Any]:
        """Return all columns, each as an array with a type of its own."""
        rows = self.take(np.arange(self.n_rows))
        return bare_columns(rows)

    def is_text(self, place: int) -> bool:
        """Tell whether a column holds text, by its type alone.

        Before pandas 3, objects are how it stores text.

        Parameters
        ----------
        place : int
            Number of the column, from 0.
        """
        return self.kinds[place] in ("text", "objects")

    def read(self, places: Integers, columns: ColumnReader) -> Floats:
        """Return the rows at these places as numbers, by what is declared about the columns.

        NaN stands for what is missing or is no number.

        Parameters
        ----------
        places : array of int
            Numbers of rows, from 0.
        columns : Columns
            What is declared about the columns.
        """
        return columns.read(self.take(places))


def names_of(X: Any) -> list[str] | None:
    """Return the names of a data frame's columns; None for what has no names."""
    if isinstance(X, RowSource):
        return X.names
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def width_of(X: Any) -> int:
    """Return the number of columns; a flat list is one column."""
    _refuse_sparse(X, "X")
    if isinstance(X, RowSource):
        return X.n_features
    shape = getattr(X, "shape", None)
    if shape is None:
        shape = array_of(X).shape
    if len(shape) not in (1, 2):
        raise InvalidData(f"X has {len(shape)} dimensions; give rows and columns.")
    width = int(shape[1]) if len(shape) == 2 else 1
    need_columns(width, int(shape[0]))
    return width


def need_columns(width: int, rows: int) -> None:
    """Refuse a table without columns."""
    if width == 0:
        raise InvalidData(
            f"X has 0 feature(s) (shape=({rows}, 0)) while a minimum of 1 is required."
        )


def length_of(X: Any, name: str = "X") -> int:
    """Return the number of rows, before anything else is checked."""
    _refuse_sparse(X, name)
    if isinstance(X, RowSource):
        return X.n_rows
    rows = np.asarray(X) if hasattr(X, "__array__") and not hasattr(X, "__len__") else X
    with contextlib.suppress(TypeError):
        return len(rows)
    raise InvalidData(
        f"{name} of type {type(X).__name__} has no rows; give a list, an array or a data frame."
    )


def _refuse_sparse(X: Any, name: str) -> None:
    sparse = sys.modules.get("scipy.sparse")  # if it is not loaded, nothing has its types
    if sparse is not None and sparse.issparse(X):
        raise InvalidData(f"{name} is sparse; give a dense table, such as X.toarray().")


def array_of(X: Any, name: str = "X") -> NDArray[Any]:
    """Return a list or an array as a numpy array of one or more dimensions."""
    if isinstance(X, np.ndarray):
        return X
    if isinstance(X, list | tuple):
        return _cells_of_list(X, name)
    array = None
    with contextlib.suppress(TypeError, ValueError, OverflowError):  # texts may carry values
        array = np.asarray(X, dtype=None if hasattr(X, "__array__") else object)
    if array is None or array.ndim == 0:
        raise _irregular(X, name)
    return array


def _irregular(X: Any, name: str) -> InvalidData:
    return InvalidData(
        f"{name} of type {type(X).__name__} is no regular table; give rows of the same length."
    )


def _cells_of_list(X: Sequence[Any], name: str) -> NDArray[Any]:
    """Return the cells of a list as they are, in one dimension or, for a list of rows, in two.

    Numpy would choose one type for all of them, and so one cell could change the others.
    """
    rows = [
        isinstance(row, list | tuple | pd.Series) or (isinstance(row, np.ndarray) and row.ndim == 1)
        for row in X
    ]
    if not any(rows):
        cells = np.fromiter(X, dtype=object, count=len(X))
    else:
        widths = {len(row) for row in X} if all(rows) else set()
        if len(widths) != 1:
            raise _irregular(X, name)
        (width,) = widths
        flat = np.fromiter(chain.from_iterable(X), dtype=object, count=len(X) * width)
        cells = flat.reshape(len(X), width)
    if cells.size and all(
        isinstance(cell, list | tuple | dict | np.ndarray) for cell in cells.flat
    ):
        raise InvalidData(f"the rows of {name} hold no single values; give a list of flat rows.")
    return cells


def bare_columns(X: Any) -> list[Any]:
    """Return the columns one by one, not copied, so that each keeps a type of its own."""
    if isinstance(X, RowSource):
        return X.all_columns()
    if getattr(X, "columns", None) is not None:
        frame: Any = X
        return [bare(frame.iloc[:, place]) for place in range(frame.shape[1])]
    table = array_of(X)
    return list(table.reshape(len(table), width_of(table)).T)


def cells_of_columns(X: Any) -> list[NDArray[Any]]:
    """Return the columns one by one as numpy arrays, with NaN for what is missing in a frame."""
    if getattr(X, "columns", None) is None and not isinstance(X, RowSource):
        return bare_columns(X)
    columns = [unpacked(column) for column in bare_columns(X)]
    return [
        np.where(pd.isna(cells), np.nan, cells) if cells.dtype.kind == "O" else cells
        for cells in columns
    ]


def select(X: Any, names: list[str]) -> Any:
    """Return a data frame, or rows that have names, with these columns in that order."""
    if isinstance(X, RowSource):
        return X.select(names)
    known = names_of(X) or []
    return X.iloc[:, [known.index(name) for name in names]]


def concatenated(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Return the cells of both; where types differ each cell keeps its own."""
    if first.dtype != second.dtype:
        first, second = first.astype(object), second.astype(object)
    return np.concatenate([first, second])


def frame_of(names: Sequence[str], columns: Sequence[NDArray[Any]]) -> pd.DataFrame:
    """Return a frame of columns that keep the types of their arrays.

    The type is written out: pandas would look at all cells of an object column to choose one.
    """
    series = [pd.Series(column, dtype=column.dtype, copy=False) for column in columns]
    return pd.DataFrame(dict(zip(names, series, strict=True)), copy=False)


def _written_frame(frame: pd.DataFrame, name: str, part: Part) -> dict[str, Any]:
    """Write a frame by its columns, each with the type of its own array."""
    del name
    columns = [frame.iloc[:, place].to_numpy() for place in range(frame.shape[1])]
    return {"names": names_of(frame), "columns": part(columns)}


def _read_frame(plain: dict[str, Any], part: Part) -> pd.DataFrame:
    return frame_of(plain["names"], part(plain["columns"]))


add_form("frame", pd.DataFrame, _written_frame, _read_frame, asked=True)
register("frame", {"frame": pd.DataFrame})
