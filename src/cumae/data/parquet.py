"""Rows of Parquet files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.data.arrow import arrow_kind, from_arrow, is_whole, type_from_arrow
from cumae.data.containers import PIECE, ColumnReader, RowSource, frame_of
from cumae.data.rows import (
    arrow_cells,
    arrow_frame,
    check_names,
    check_places,
    need_cells,
    refuse_nested,
)
from cumae.errors import InvalidData, shown
from cumae.extras import pa, pq
from cumae.filesystems import FileAddress, Paths, places_of_files


class ParquetRows(RowSource):
    """Rows of Parquet files, which may be larger than memory.

    Only row groups that hold a wanted row are read, one at a time. Rows that lie scattered touch
    many row groups: take those of many shards in one call.

    Parameters
    ----------
    paths : str, path or list of them
        A file, a list of files, or a folder whose ``*.parquet`` files are taken by name. All must
        have the same columns of the same types. They may be addresses of other file systems, such
        as ``s3://bucket/folder``, which fsspec reads.
    features : list of str or None
        Names of the columns to use. Default: all.
    storage_options : mapping, or None
        Options of fsspec for the file system, such as keys to it.

    Raises
    ------
    MissingPackage
        If pyarrow is not there.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> from cumae.data.parquet import ParquetRows
    >>> table = pd.DataFrame({"age": [31.0, 52.0, 47.0], "ill": [0, 1, 0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table.to_parquet(f"{folder}/part.parquet")
    ...     rows = ParquetRows(folder).without("ill")
    ...     rows.n_rows, rows.names, rows.take(np.array([2, 0])).to_numpy().tolist()
    (3, ['age'], [[47.0], [31.0]])
    """

    is_frame = True

    def __init__(
        self,
        paths: Paths,
        features: Sequence[str] | None = None,
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._paths = places_of_files(paths, storage_options or {})
        self._groups: list[tuple[FileAddress, int, int]] = []  # file, row group of it, rows of that
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
        self._choose(check_names(list(self._schema.names)) if features is None else list(features))

    def _choose(self, features: list[str]) -> None:
        for name in check_names(features):
            refuse_nested(self._field(name))
        self.names: list[str] = features
        self.kinds = [self.kind_of(name) for name in features]
        self.whole = [is_whole(self._field(name).type) for name in features]
        self.n_features = len(features)
        need_cells(self)

    def _field(self, name: str) -> Any:
        if self._schema.names.count(name) != 1:
            raise InvalidData(
                f"the Parquet files have no single column {shown(name)}; they have "
                f"{self._schema.names!r}.",
                columns=[name],
            )
        return self._schema.field(name)

    def without(self, label: str) -> ParquetRows:
        """Return the same rows without the column of the labels.

        Parameters
        ----------
        label : str
            Name of the column.
        """
        self._field(label)
        return self._with([name for name in self.names if name != label])

    def _with(self, features: list[str]) -> ParquetRows:
        rest = object.__new__(ParquetRows)
        rest.__dict__.update(self.__dict__)
        rest._choose(features)
        return rest

    def take(self, places: Integers) -> pd.DataFrame:
        return frame_of(self.names, self._taken(places, exact=False))

    def read(self, places: Integers, columns: ColumnReader) -> Floats:
        return columns.read_columns(self._taken(places, exact=True), ordinary=True)

    def _taken(self, places: Integers, *, exact: bool) -> list[NDArray[Any]]:
        places = check_places(places, self.n_rows)
        fields = [self._field(name) for name in self.names]
        columns = [np.empty(len(places), dtype=type_from_arrow(field)) for field in fields]
        group_of = np.searchsorted(self._starts, places, side="right") - 1
        order = np.argsort(group_of, kind="stable")
        groups, begins = np.unique(group_of[order], return_index=True)
        for group, where in zip(groups, np.split(order, begins[1:]), strict=False):
            inside = places[where] - self._starts[group]
            self._copy(int(group), inside, columns, where, exact=exact)
        return columns

    def _copy(
        self,
        group: int,
        inside: Integers,
        columns: list[NDArray[Any]],
        where: Integers,
        *,
        exact: bool,
    ) -> None:
        # A function of its own, so that one row group is gone before the next one is read.
        table = self._read(group, self.names)
        for name, column in zip(self.names, columns, strict=True):
            taken = table.column(name).take(pa.array(inside))
            column[where] = arrow_cells(taken, self._field(name), exact=exact)

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
        """Return one column in pieces, from the first row to the last.

        Parameters
        ----------
        name : str
            Name of the column.
        """
        field = self._field(name)
        for group in range(len(self._groups)):
            yield from_arrow(self._read(group, [name]).column(name), field)

    def pieces(self) -> Iterator[pd.DataFrame]:
        """Return all rows, some thousands at a time; each row group is read once."""
        for group in range(len(self._groups)):
            yield from self.frames(group)

    @property
    def group_sizes(self) -> list[int]:
        """The number of rows of each row group."""
        return [size for _, _, size in self._groups]

    def frames(self, group: int) -> Iterator[pd.DataFrame]:
        """Return the rows of a row group, some thousands at a time.

        Parameters
        ----------
        group : int
            Its number, from 0.
        """
        table = self._read(group, self.names)
        for start in range(0, table.num_rows, PIECE):
            yield arrow_frame(table.slice(start, PIECE), self.names)

    def table(self) -> Any:
        """Return all rows as a table of Arrow, in the order of ``take``."""
        schema = pa.schema([self._field(name) for name in self.names])
        groups = [self._read(group, self.names) for group in range(len(self._groups))]
        return pa.concat_tables(groups).select(self.names) if groups else schema.empty_table()

    def column(self, name: str) -> NDArray[Any]:
        """Return one column of all rows, such as the labels.

        Parameters
        ----------
        name : str
            Name of the column.
        """
        return np.concatenate(list(self.parts(name)))

    def select(self, names: list[str]) -> ParquetRows:
        return self._with(names)

    def kind_of(self, name: str) -> str:
        """Return what a column can hold by its type, as in ``cumae.data.kinds``.

        Parameters
        ----------
        name : str
            Name of the column.
        """
        return arrow_kind(self._field(name).type)


@contextlib.contextmanager
def _opened(place: FileAddress) -> Iterator[Any]:
    with place.opened() as source:
        found = None
        with contextlib.suppress(OSError, pa.ArrowInvalid):
            found = pq.ParquetFile(source, pre_buffer=False)
        if found is None:
            raise InvalidData(f"{shown(place.path)} is missing, unreadable or no Parquet file.")
        with found:
            yield found
