"""Where private rows come from: a few are read at a time, and each as if it were the only one.

A cell is read by the type that the table gives its column or, where there is none (objects, lists),
by itself. If it depended on another row, that row could change what all shards see.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.data.arrow import arrow_kind, from_arrow, is_whole, to_arrow, type_from_arrow
from cumae.data.cells import bare, columns_at, ordinary_cells
from cumae.data.containers import (
    ColumnReader,
    RowSource,
    array_of,
    frame_of,
    names_of,
    need_columns,
    select,
)
from cumae.data.kinds import column_kind, frame_kinds
from cumae.errors import InvalidData, InvalidParameter
from cumae.extras import pa


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
        self.kinds = [column_kind(table.dtype)] * self.n_features
        self.whole = [table.dtype.kind in "iu"] * self.n_features
        self.is_of_floats = table.dtype == np.float64
        need_cells(self)

    def select(self, names: list[str]) -> ArrayRows:
        raise InvalidData(f"X has no names, so that {names!r} cannot be chosen.")

    def all_columns(self) -> list[Any]:
        return list(self._table.T)

    def take(self, places: Integers) -> NDArray[Any]:
        table = np.asarray(self._table[check_places(places, self.n_rows)])
        return ordinary_cells(table) if table.dtype.kind == "O" else table

    def read(self, places: Integers, columns: ColumnReader) -> Floats:
        places = check_places(places, self.n_rows)
        if self._table.dtype.kind != "O":
            return columns.read(self.take(places))
        return columns.read_columns(list(self._table.T), places, ordinary=True)


class FrameRows(RowSource):
    """Rows of a pandas DataFrame; ``take`` returns a DataFrame whose columns have types of numpy.

    Categories become ordinary values, because the list of categories may have been read from all
    rows.
    So do pandas' own types, with NaN for what is missing.
    """

    is_frame = True

    def __init__(self, frame: pd.DataFrame) -> None:
        self.n_rows, self.n_features = map(int, frame.shape)
        self.names: list[str] = check_names(names_of(frame) or [])
        self.kinds = frame_kinds(frame.dtypes)
        self._frame = frame
        # Columns without pandas around them: asking a frame for them is slow.
        self._columns = [bare(frame.iloc[:, place]) for place in range(self.n_features)]
        need_cells(self)

    def take(self, places: Integers) -> pd.DataFrame:
        places = check_places(places, self.n_rows)
        return frame_of(self.names, columns_at(self._columns, places))

    def read(self, places: Integers, columns: ColumnReader) -> Floats:
        places = check_places(places, self.n_rows)
        return columns.read_columns(self._columns, places, ordinary=True)

    def select(self, names: list[str]) -> FrameRows:
        return FrameRows(select(self._frame, names))

    def all_columns(self) -> list[Any]:
        return self._columns


class ArrowRows(RowSource):
    """Rows of a table of Arrow in memory, which data frames of other libraries become.

    Parameters
    ----------
    table : pyarrow.Table
        The rows.
    fixed : bool
        Whether the types of its columns were fixed before rows were read.
    """

    is_frame = True

    def __init__(self, table: Any, *, fixed: bool = False) -> None:
        self._table, self._fixed = table, fixed
        self.n_rows, self.n_features = int(table.num_rows), int(table.num_columns)
        self.names: list[str] = check_names([str(name) for name in table.schema.names])
        self.kinds = [arrow_kind(field.type) for field in table.schema]
        self.whole = [fixed and is_whole(field.type) for field in table.schema]
        for field in table.schema:
            refuse_nested(field)
            self._need_reading(field)
        need_cells(self)

    def _need_reading(self, field: Any) -> None:
        """Refuse a type from which pyarrow cannot take rows, before anybody pays."""
        try:
            type_from_arrow(field)
            pa.chunked_array([], type=field.type).take(pa.array([], pa.int64()))
        except pa.ArrowNotImplementedError:
            raise InvalidData(
                f"column {field.name} is of type {field.type}, from which pyarrow cannot take "
                "rows; cast it, or leave it out.",
                columns=[field.name],
            ) from None

    def select(self, names: list[str]) -> ArrowRows:
        places = [self.names.index(name) for name in names]
        return ArrowRows(self._table.select(places), fixed=self._fixed)

    def all_columns(self) -> list[NDArray[Any]]:
        return self._arrays(self._table, exact=True)

    def take(self, places: Integers) -> pd.DataFrame:
        return frame_of(self.names, self._arrays(self._some(places), exact=False))

    def read(self, places: Integers, columns: ColumnReader) -> Floats:
        arrays = self._arrays(self._some(places), exact=True)
        return columns.read_columns(arrays, ordinary=True)

    def _some(self, places: Integers) -> Any:
        return self._table.take(pa.array(check_places(places, self.n_rows)))

    def _arrays(self, table: Any, *, exact: bool) -> list[NDArray[Any]]:
        return [
            arrow_cells(column, field, exact=exact)
            for column, field in zip(table.columns, table.schema, strict=True)
        ]


def table_of(X: Any) -> Any:
    """Return a data frame as rows of Arrow, if a library made it that narwhals reads.

    Such are polars and pyarrow. Other inputs are returned unchanged. Types follow from the types of
    the columns, never from cells.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from cumae.data import table_of
    >>> rows = table_of(pa.table({"age": [31, None], "job": ["baker", "nurse"]}))
    >>> rows.n_rows, rows.names, rows.kinds
    (2, ['age', 'job'], ['numbers', 'text'])
    """
    if isinstance(X, list | tuple | np.ndarray | pd.DataFrame | pd.Series | RowSource):
        return X
    frame = nw.from_native(X, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise InvalidData(
            f"X is a {type(X).__name__}, which is not read yet; give X.collect(), or "
            "ParquetRows(...) for files that are larger than memory."
        )
    if not isinstance(frame, nw.DataFrame):
        return X
    if frame.implementation.is_pandas_like():  # whose way to Arrow chooses types by cells
        return frame.to_pandas()
    # Frames of other libraries may have chosen their types by cells, as those of pandas.
    return ArrowRows(to_arrow(frame), fixed=frame.implementation.is_pyarrow())


def labelled_table(X: Any, y: Any) -> tuple[Any, Any]:
    """Return rows and labels; of rows in files, ``y`` may name the column of the labels."""
    if isinstance(y, str) and hasattr(X, "without"):
        return X.without(y), X.column(y)
    return table_of(X), y


def row_source(X: Any) -> RowSource:
    """Return where to take the rows of ``X`` from.

    Parameters
    ----------
    X : array, list, data frame or RowSource
        A numpy array or memory map, a list of rows, a data frame of pandas, polars, pyarrow or
        another library that narwhals reads, or a RowSource, which is returned as it is. A flat
        array or list is one column. Nothing is copied but lists.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.data import row_source
    >>> rows = row_source([[31, "baker"], [52, None], [47, "nurse"]])
    >>> rows.n_rows, rows.n_features
    (3, 2)
    >>> rows.take(np.array([2, 1])).tolist()
    [[47, 'nurse'], [52, nan]]
    """
    X = table_of(X)
    if isinstance(X, RowSource):
        return X
    if isinstance(X, pd.DataFrame):
        return FrameRows(X)
    if isinstance(X, np.ndarray):
        return ArrayRows(X)
    if isinstance(X, list | tuple) or (hasattr(X, "__array__") and not isinstance(X, pd.Series)):
        return ArrayRows(array_of(X))
    raise InvalidData(
        f"X is a {type(X).__name__}; give a numpy array, a memory map, a list of rows, a data "
        'frame or ParquetRows("folder"). A sparse matrix is made dense by X.toarray().'
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
        text = f"X has several columns of the same name: {twice!r}; rename them."
        raise InvalidData(text, columns=twice)
    return names


def arrow_cells(column: Any, field: Any, *, exact: bool = False) -> NDArray[Any]:
    """Return a column of Arrow as ordinary cells, as those of pandas are.

    Parameters
    ----------
    column, field : chunked array and field of Arrow
        The column, and its type.
    exact : bool
        Whether decimals stay what they are, and do not become floats.
    """
    cells = from_arrow(column, field)
    as_they_are = arrow_kind(field.type) or (exact and pa.types.is_decimal(field.type))
    return cells if as_they_are else ordinary_cells(cells)


def arrow_frame(table: Any, names: list[str]) -> pd.DataFrame:
    """Return columns of a table of Arrow as a frame, in types that follow from those of Arrow.

    Parameters
    ----------
    table : pyarrow.Table
        Some rows.
    names : list of str
        Names of the columns that are wanted.
    """
    fields = [table.schema.field(name) for name in names]
    cells = [
        np.asarray(arrow_cells(table.column(field.name), field, exact=True), type_from_arrow(field))
        for field in fields
    ]
    return frame_of(names, cells)


def refuse_nested(field: Any) -> None:
    """Refuse a column of Arrow whose cells are no single values, by its type alone."""
    if pa.types.is_nested(field.type):
        text = f"column {field.name} holds nested values; leave it out."
        raise InvalidData(text, columns=[field.name])


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
        self.names, self.is_frame, self.kinds = rows.names, rows.is_frame, rows.kinds
        self.whole = rows.whole
        self.is_of_floats = rows.is_of_floats

    def select(self, names: list[str]) -> SomeRows:
        return SomeRows(self._source.select(names), self._places)

    def take(self, places: Integers) -> Any:
        return self._source.take(self._places[places])

    def read(self, places: Integers, columns: ColumnReader) -> Floats:
        return self._source.read(self._places[places], columns)


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

    def __init__(self, rows: RowSource, columns: ColumnReader) -> None:
        self._source, self._declared = rows, columns
        self.n_rows, self.n_features = rows.n_rows, len(columns)
        self.names, self.kinds = None, ["numbers"] * len(columns)

    def select(self, names: list[str]) -> EncodedRows:
        raise InvalidData(f"X has no names, so that {names!r} cannot be chosen.")

    def take(self, places: Integers) -> Floats:
        return self._source.read(places, self._declared)

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, places: Any) -> Floats:
        """Return the rows at some places, or where a mask is true, as an array."""
        return self.take(np.arange(self.n_rows)[places])
