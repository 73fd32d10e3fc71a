"""Tables in files: what was read, and where in the file a row stands.

Cells of CSV are text, and each is read by itself, by what the schema declares about its column.
They are kept in numpy's arrays of text, so that CSV files need no pyarrow. The types of Parquet
columns are those that the file declares.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.cli.files.csv_text import MISSING_TEXTS, CsvForm, CsvText
from cumae.cli.files.source import STANDARD, is_parquet, opened_file, title
from cumae.data import Column, ParquetRows, RowSource, frame_of, need_cells, table_of
from cumae.data.readings import numbers_in_text
from cumae.data.rows import check_places
from cumae.errors import InvalidData
from cumae.extras import pa, pq
from cumae.progress import Progress

CHUNK_ROWS = 20_000
TEXT = np.dtypes.StringDType()  # 16 bytes for a cell of up to 15; Python's own texts take 60


class TextRows(RowSource):
    """Rows of CSV in memory: columns of text and, among features, of numbers.

    Parameters
    ----------
    names : list of str
        Names of the columns.
    columns : list of arrays
        Their cells, of type ``TEXT`` or floats.
    """

    is_frame = True

    def __init__(self, names: list[str], columns: Sequence[NDArray[Any]]) -> None:
        self.names: list[str] = names
        self.columns = columns
        self.n_rows, self.n_features = len(columns[0]) if columns else 0, len(columns)
        self.kinds = ["text" if column.dtype == TEXT else "numbers" for column in columns]
        need_cells(self)

    def take(self, places: Integers) -> pd.DataFrame:
        places = check_places(places, self.n_rows)
        return frame_of(self.names, [_unpacked(column[places]) for column in self.columns])

    def select(self, names: list[str]) -> TextRows:
        return TextRows(names, [self.columns[self.names.index(name)] for name in names])

    def all_columns(self) -> list[NDArray[Any]]:
        return [_unpacked(column) for column in self.columns]


def _unpacked(cells: NDArray[Any]) -> NDArray[Any]:
    return cells.astype(object) if cells.dtype == TEXT else cells


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
        The same as it was read, if it is in memory and was Parquet.
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
        cells = np.asarray(self.rows.select([name]).all_columns()[0])
        if not self.is_text:
            return cells
        return np.fromiter(map(str.strip, cells), dtype=object, count=len(cells))

    @claim("FILES")
    def features(self, columns: Sequence[Column]) -> RowSource:
        """Return some columns as they are given to ``fit`` and ``predict``.

        In CSV files spaces around a cell do not count, and what stands for a missing cell becomes
        an empty one, each cell by itself. A text that is a declared category stays what it is.
        """
        names = [column.name for column in columns]
        chosen = self.rows.select(names)
        if not isinstance(chosen, TextRows):
            return chosen
        return TextRows(
            names, [_clean(*pair) for pair in zip(chosen.columns, columns, strict=True)]
        )

    def copied(self) -> Any:
        """Return all columns to write them again: TextRows of CSV, else a table of Arrow."""
        if isinstance(self.rows, TextRows):
            return self.rows
        return self.rows.table() if isinstance(self.rows, ParquetRows) else self.memory


@claim("FILES")
def _clean(cells: NDArray[Any], column: Column) -> NDArray[Any]:
    kept = {category for category in column.categories or () if isinstance(category, str)}
    gone = set(MISSING_TEXTS) - kept
    # The model was fitted to a column with a type of numbers, and takes no text.
    as_numbers = not column.declared and column.kind == "numbers"
    parts = []
    for start in range(0, len(cells), CHUNK_ROWS):
        trimmed = [text.strip() for text in cells[start : start + CHUNK_ROWS].tolist()]
        clean = np.array(["" if text in gone else text for text in trimmed], TEXT)
        parts.append(numbers_in_text(_unpacked(clean)) if as_numbers else clean)
    return np.concatenate(parts)


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
    return TableFile(title(path), table_of(table), table)


def _read_csv(stream: io.BufferedReader, path: str, form: CsvForm, *, lenient: bool) -> TableFile:
    name = title(path)
    lines: list[int] = []
    damaged: list[bool] = []
    chunks: list[list[NDArray[Any]]] = []
    waiting: list[list[str]] = []

    def flush() -> None:
        chunks.append([np.array(cells, TEXT) for cells in zip(*waiting, strict=True)])
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
    rows = TextRows(found.names, [np.concatenate(parts) for parts in zip(*chunks, strict=True)])
    marks = np.array(damaged, dtype=bool)
    return TableFile(name, rows, is_text=True, lines=np.array(lines), damaged=marks)
