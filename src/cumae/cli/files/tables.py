"""Tables in files: what was read, and where in the file a row stands.

Cells of CSV are text, and each is read by itself, by what the schema declares about its column. The
types of Parquet columns are those that the file declares.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.cli.files.csv_text import MISSING_TEXTS, CsvForm, CsvText
from cumae.cli.files.source import STANDARD, is_parquet, opened_file, title
from cumae.data import Column, ParquetRows, RowSource, table_of
from cumae.data.readings import numbers_in_text
from cumae.errors import InvalidData
from cumae.progress import Progress

CHUNK_ROWS = 20_000


@dataclass(frozen=True)
class TableFile:
    """A table that was read from a file or from standard input.

    Parameters
    ----------
    name : str
        The file, for messages.
    rows : RowSource
        Its rows, with all columns as the file has them.
    memory : pyarrow.Table, or None
        The same as it was read, if it is in memory.
    is_text : bool
        Whether all cells are text, because it was CSV.
    lines : array of int, or None
        The last line of each row in the file, if it was CSV.
    damaged : array of bool
        Which rows could not be read at all; only where damage is no error.
    """

    name: str
    rows: RowSource
    memory: Any = None
    is_text: bool = False
    lines: Integers | None = None
    damaged: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return self.rows.names or []

    def where(self, row: int) -> str:
        """Return how messages name a row, counted from 0: rows of files are counted from 1."""
        line = "" if self.lines is None else f" (line {self.lines[row]})"
        return f"{self.name}, row {row + 1}{line}"

    def kinds(self, names: Sequence[str]) -> list[str]:
        """Return what columns can hold by the types that the file declares."""
        known = dict(zip(self.names, self.rows.kinds, strict=True))
        return [known[name] for name in names]

    def need(self, names: Sequence[str], what: str) -> None:
        """Refuse a file that lacks columns; ``what`` says why they are needed."""
        lacking = [name for name in names if name not in self.names]
        if lacking:
            raise InvalidData(
                f"{self.name} has no column {', '.join(lacking)}, {what}; it has "
                f"{', '.join(self.names)}."
            )

    def cells(self, name: str) -> NDArray[Any]:
        """Return the cells of one column; of CSV, text without spaces around it."""
        if self.is_text:
            trimmed = pc.utf8_trim_whitespace(self.memory.column(name))
            return np.array(trimmed.to_pylist(), dtype=object)
        return np.asarray(self.rows.select([name]).all_columns()[0])

    @claim("FILES")
    def features(self, columns: Sequence[Column]) -> RowSource:
        """Return some columns as they are given to ``fit`` and ``predict``.

        In CSV files spaces around a cell do not count, and what stands for a missing cell becomes
        an empty one, each cell by itself. A text that is a declared category stays what it is.
        """
        names = [column.name for column in columns]
        if not self.is_text:
            return self.rows.select(names)
        return _source(pa.table([_clean(self.memory.column(c.name), c) for c in columns], names))

    def copied(self) -> Any:
        """Return all columns as a table of Arrow, to write them again."""
        return self.rows.table() if isinstance(self.rows, ParquetRows) else self.memory


def _source(table: Any) -> RowSource:
    found: RowSource = table_of(table)
    return found


@claim("FILES")
def _clean(cells: Any, column: Column) -> Any:
    trimmed = pc.utf8_trim_whitespace(cells)
    kept = {category for category in column.categories or () if isinstance(category, str)}
    gone = pa.array([text for text in MISSING_TEXTS if text not in kept], pa.string())
    clean = pc.if_else(pc.is_in(trimmed, value_set=gone), "", trimmed)
    if column.declared or column.kind != "numbers":
        return clean
    # The model was fitted to a column with a type of numbers, and takes no text.
    return pa.array(numbers_in_text(np.array(clean.to_pylist(), dtype=object)))


def read_table_file(path: str, form: CsvForm, *, lenient: bool = False) -> TableFile:
    """Read a table: CSV or Parquet, packed by gzip or not, from a file or standard input.

    Parameters
    ----------
    path : str
        A file, a folder of Parquet files, or ``-`` for standard input.
    form : CsvForm
        How CSV is written.
    lenient : bool
        Whether a damaged row of CSV is marked in place of an error.

    Raises
    ------
    InvalidData
        If it cannot be read; the message names the row and the column, never a value.
    """
    if path != STANDARD and Path(path).is_dir():
        return TableFile(path, ParquetRows(path))
    with opened_file(path) as stream:
        if is_parquet(stream):
            return parquet_in(stream, path)
        return _read_csv(stream, path, form, lenient=lenient)


def parquet_in(stream: io.BufferedReader, path: str) -> TableFile:
    """Return the table of a Parquet file; unless it has to be unpacked, its rows stay there."""
    if path != STANDARD:
        with Path(path).open("rb") as raw:
            if is_parquet(raw):
                return TableFile(path, ParquetRows(path))
    try:
        table = pq.read_table(io.BytesIO(stream.read()))
    except (OSError, pa.ArrowInvalid):
        raise InvalidData(f"{title(path)} is no Parquet file, or is cut off.") from None
    if not table.num_rows:
        raise InvalidData(f"{title(path)} has no rows.")
    return TableFile(title(path), _source(table), table)


def _read_csv(stream: io.BufferedReader, path: str, form: CsvForm, *, lenient: bool) -> TableFile:
    name = title(path)
    lines: list[int] = []
    damaged: list[bool] = []
    chunks: list[Any] = []
    waiting: list[list[str]] = []

    def flush() -> None:
        columns = [pa.array(cells, pa.string()) for cells in zip(*waiting, strict=True)]
        chunks.append(pa.table(columns, found.names))
        waiting.clear()

    with (
        contextlib.closing(CsvText(stream, name, form, lenient=lenient)) as found,
        contextlib.ExitStack() as stack,
    ):
        bar = None
        for cells, line, bad in found.rows():
            waiting.append(cells)
            lines.append(line)
            damaged.append(bad)
            if len(waiting) == CHUNK_ROWS:
                flush()
                if bar is None:  # small files are there at once
                    bar = stack.enter_context(Progress(f"reading {name}: rows", None))
                bar.advance(CHUNK_ROWS)
        if waiting:
            flush()
    if not chunks:
        raise InvalidData(f"{name} has a header, but no rows.")
    table = pa.concat_tables(chunks)
    marks = np.array(damaged, dtype=bool)
    return TableFile(
        name, _source(table), table, is_text=True, lines=np.array(lines), damaged=marks
    )
