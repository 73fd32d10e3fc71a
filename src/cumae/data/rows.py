"""Where private rows come from: a few are read at a time, and each as if it were the only one.

How a cell is read never depends on another row: by its column's declared type, or, where there is
none (objects, lists), by itself. Else one row could change what all shards see.
"""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cumae.data.cells import (
    arrow_kind,
    bare,
    cells_at,
    kind_of,
    plain,
    plain_cells,
    plain_type,
    table_of,
)
from cumae.errors import InvalidData, InvalidParameter, shown

Integers: TypeAlias = NDArray[np.int64]
Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class RowSource(ABC):
    """Rows that stay where they are; whoever asks gets only the rows asked for.

    Attributes
    ----------
    n_rows, n_features
        Number of rows and columns.
    names
        Names of the columns, or None where they have none.
    is_frame
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
        _need_cells(self)

    def take(self, places: Integers) -> NDArray[Any]:
        return plain_cells(np.asarray(self._table[_within(places, self.n_rows)]))

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
        self.names: list[str] = _unique([str(name) for name in frame.columns])
        self._types = list(frame.dtypes)
        # Columns without pandas around them: asking a frame for them is slow.
        self._columns = [bare(frame.iloc[:, place]) for place in range(self.n_features)]
        _need_cells(self)

    def take(self, places: Integers) -> pd.DataFrame:
        places = _within(places, self.n_rows)
        return frame_of(self.names, [cells_at(column, places) for column in self._columns])

    def is_text(self, place: int) -> bool:
        # Before pandas 3, objects are how it stores text.
        return self._types[place] == np.dtype(object) or kind_of(self._types[place]) == "text"


class ParquetRows(RowSource):
    """Rows of Parquet files, which may be larger than memory.

    Only row groups that hold a wanted row are read, one at a time. Rows that lie scattered touch
    many row groups: take those of many shards in one call.

    Parameters
    ----------
    paths
        A file, a list of files, or a folder whose ``*.parquet`` files are taken by name. All must
        have the same columns of the same types.
    features
        Names of the columns to use. Default: all.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> from cumae.data.rows import ParquetRows
    >>> table = pd.DataFrame({"age": [31.0, 52.0, 47.0], "ill": [0, 1, 0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table.to_parquet(f"{folder}/part.parquet")
    ...     rows = ParquetRows(folder).without("ill")
    ...     rows.n_rows, rows.names, rows.take(np.array([2, 0])).to_numpy().tolist()
    (3, ['age'], [[47.0], [31.0]])
    """

    is_frame = True

    def __init__(self, paths: Paths, features: Sequence[str] | None = None) -> None:
        self._paths = _files(paths)
        self._groups: list[tuple[Path, int, int]] = []  # file, row group of it, rows of that
        for place, path in enumerate(self._paths):
            with _opened(path) as file:
                if not place:
                    self._schema = file.schema_arrow
                elif not self._schema.equals(file.schema_arrow):
                    raise InvalidData(
                        f"{path.name} has other columns, or columns of other types, than "
                        f"{self._paths[0].name}; write all files with one schema."
                    )
                sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
                self._groups += [(path, i, size) for i, size in enumerate(sizes)]
        self._starts = np.cumsum([0, *(size for _, _, size in self._groups)])
        self.n_rows = int(self._starts[-1])
        self._choose(_unique(list(self._schema.names)) if features is None else list(features))

    def _choose(self, features: list[str]) -> None:
        for name in _unique(features):
            kind = self._field(name).type
            if pa.types.is_nested(kind):
                raise InvalidData(f"column {name} holds nested values; leave it out of features.")
        self.names: list[str] = features
        self.n_features = len(features)
        _need_cells(self)

    def _field(self, name: str) -> Any:
        if self._schema.names.count(name) != 1:
            raise InvalidData(
                f"the Parquet files have no single column {shown(name)}; they have "
                f"{self._schema.names!r}."
            )
        return self._schema.field(name)

    def without(self, label: str) -> ParquetRows:
        """Return the same rows without the column of the labels."""
        self._field(label)
        rest = object.__new__(ParquetRows)
        rest.__dict__.update(self.__dict__)
        rest._choose([name for name in self.names if name != label])
        return rest

    def take(self, places: Integers) -> pd.DataFrame:
        places = _within(places, self.n_rows)
        fields = [self._field(name) for name in self.names]
        columns = [np.empty(len(places), dtype=plain_type(field)) for field in fields]
        group_of = np.searchsorted(self._starts, places, side="right") - 1
        order = np.argsort(group_of, kind="stable")
        groups, begins = np.unique(group_of[order], return_index=True)
        for group, where in zip(groups, np.split(order, begins[1:]), strict=False):
            self._copy(int(group), places[where] - self._starts[group], columns, where)
        return frame_of(self.names, columns)

    def _copy(
        self, group: int, inside: Integers, columns: list[NDArray[Any]], where: Integers
    ) -> None:
        # A function of its own, so that one row group is gone before the next one is read.
        table = self._read(group, self.names)
        for name, column in zip(self.names, columns, strict=True):
            column[where] = plain(table.column(name).take(pa.array(inside)), self._field(name))

    def _read(self, group: int, names: list[str]) -> Any:
        path, place, size = self._groups[group]
        with _opened(path) as file:
            if (
                place >= file.num_row_groups
                or file.metadata.row_group(place).num_rows != size
                or not self._schema.equals(file.schema_arrow)
            ):
                raise InvalidData(f"{path.name} was written anew meanwhile; open it again.")
            # Without threads, which would still hold this row group while the next one is read.
            return file.read_row_group(place, columns=names, use_threads=False)

    def parts(self, name: str) -> Iterator[NDArray[Any]]:
        """Return one column in pieces, from the first row to the last."""
        field = self._field(name)
        for group in range(len(self._groups)):
            yield plain(self._read(group, [name]).column(name), field)

    def column(self, name: str) -> NDArray[Any]:
        """Return one column of all rows, such as the labels."""
        return np.concatenate(list(self.parts(name)))

    def is_text(self, place: int) -> bool:
        return self.kind_of(self.names[place]) == "text"

    def kind_of(self, name: str) -> str:
        """Return what a column can hold by its type: text, numbers, or "" if neither."""
        return arrow_kind(self._field(name).type)


def row_source(X: Any) -> RowSource:
    """Return where to take the rows of ``X`` from.

    Parameters
    ----------
    X
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
    if isinstance(X, list | tuple):
        return ArrayRows(table_of(X))
    if hasattr(X, "__array__") and not isinstance(X, pd.Series):
        return ArrayRows(np.asarray(X))
    raise InvalidData(
        f"X is a {type(X).__name__}; give a numpy array, a memory map, a list of rows, a pandas "
        'DataFrame or ParquetRows("folder"). A sparse matrix is made dense by X.toarray().'
    )


def _need_cells(rows: RowSource) -> None:
    if rows.n_rows == 0:
        raise InvalidData("X has 0 rows; give rows to learn from.")
    if rows.n_features == 0:
        raise InvalidData(
            f"X has 0 feature(s) (shape=({rows.n_rows}, 0)) while a minimum of 1 is required."
        )


def _unique(names: list[str]) -> list[str]:
    twice = sorted({str(name) for name in names if names.count(name) > 1})
    if twice:
        raise InvalidData(f"X has several columns of the same name: {twice!r}; rename them.")
    return names


def _within(given: Any, n_rows: int) -> Integers:
    places: Integers = np.asarray(given, dtype=np.int64)
    if places.ndim != 1 or (len(places) and not 0 <= places.min() <= places.max() < n_rows):
        raise InvalidParameter(f"places must be a flat array of numbers from 0 to {n_rows - 1}.")
    return places


def frame_of(names: list[str], columns: list[NDArray[Any]]) -> pd.DataFrame:
    """Return a frame of columns that keep the types of their arrays.

    The type is written out: pandas would look at all cells of an object column to choose one.
    """
    series = [pd.Series(column, dtype=column.dtype, copy=False) for column in columns]
    return pd.DataFrame(dict(zip(names, series, strict=True)), copy=False)


def _files(paths: Paths) -> list[Path]:
    if isinstance(paths, str | os.PathLike):
        folder = Path(paths)
        files = sorted(folder.glob("*.parquet")) if folder.is_dir() else [folder]
    else:
        files = [Path(path) for path in paths]
    if not files:
        raise InvalidData("the folder has no *.parquet file, or the list of files is empty.")
    return files


def _opened(path: Path) -> Any:
    with contextlib.suppress(OSError, pa.ArrowInvalid):
        return pq.ParquetFile(path, pre_buffer=False)
    raise InvalidData(f"{shown(str(path))} is missing, unreadable or no Parquet file.")
