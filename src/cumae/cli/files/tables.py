"""Tables in files: what was read, and where in the file a row stands.

Cells of CSV are text, and each is read by itself, by what the schema declares about its column.
They are kept in numpy's arrays of text, so that CSV files need no pyarrow. The types of Parquet
columns are those that the file declares.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

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
FIRST_ROWS = 1_000  # of the first chunk, which is looked at before others are read
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
class TableHead:
    """The facts about a table that are known before a row is read.

    Parameters
    ----------
    name : str
        The file, for messages.
    names, held : list of str
        The names of its columns, and what they can hold by the types that the file declares.
    """

    name: str
    names: list[str]
    held: list[str]

    def kinds(self, names: Sequence[str]) -> list[str]:
        """Return what some columns can hold by the types that the file declares."""
        known = dict(zip(self.names, self.held, strict=True))
        return [known[name] for name in names]

    def need(self, names: Sequence[str], what: str) -> None:
        """Refuse a file that lacks columns; ``what`` says why they are needed."""
        lacking = [name for name in names if name not in self.names]
        if lacking:
            raise InvalidData(
                f"{self.name} has no column {', '.join(lacking)}, {what}; it has "
                f"{', '.join(self.names)}."
            )


@dataclass(frozen=True)
class FileBlock:
    """Some rows of a file, one after the other.

    Parameters
    ----------
    name : str
        The file, for messages.
    first : int
        The number of the first row, counted from 0.
    columns : dict from str to array
        The cells of each column.
    lines : sequence of int, or None
        The last line of each row in the file, if it is CSV.
    """

    name: str
    first: int
    columns: dict[str, NDArray[Any]]
    lines: Sequence[int] | Integers | None = None

    def where(self, row: int) -> str:
        """Return how messages name one of these rows: rows of files are counted from 1."""
        return _where(self.name, self.first + row, None if self.lines is None else self.lines[row])

    def cells(self, name: str) -> NDArray[Any]:
        """Return the cells of one column; of CSV, text without spaces around it."""
        return _trimmed(self.columns[name])

    def feature(self, column: Column) -> NDArray[Any]:
        """Return the cells of one column as they are given to ``fit`` and ``predict``."""
        cells = self.columns[column.name]
        return _clean(cells, column) if cells.dtype == TEXT else cells


BlockCheck: TypeAlias = Callable[[FileBlock], None]  # what is done with each block as it is read
BlockCheckMaker: TypeAlias = Callable[[TableHead], BlockCheck]  # what the head decides about that


def _where(name: str, row: int, line: Any) -> str:
    place = "" if line is None else f" (line {line})"
    return f"{name}, row {row + 1}{place}"


def _trimmed(cells: NDArray[Any]) -> NDArray[Any]:
    if cells.dtype != TEXT:
        return cells
    return np.fromiter(map(str.strip, _unpacked(cells)), dtype=object, count=len(cells))


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

    @property
    def head(self) -> TableHead:
        """The facts that were known before a row was read."""
        return TableHead(self.name, self.names, self.rows.kinds)

    def where(self, row: int) -> str:
        """Return how messages name a row, counted from 0: rows of files are counted from 1."""
        return _where(self.name, row, None if self.lines is None else self.lines[row])

    def need(self, names: Sequence[str], what: str) -> None:
        """Refuse a file that lacks columns; ``what`` says why they are needed."""
        self.head.need(names, what)

    def cells(self, name: str) -> NDArray[Any]:
        """Return the cells of one column; of CSV, text without spaces around it."""
        chosen = self.rows.select([name])
        if isinstance(chosen, TextRows):
            return _trimmed(chosen.columns[0])
        return np.asarray(chosen.all_columns()[0])

    def blocks(self, names: Sequence[str]) -> Iterator[FileBlock]:
        """Yield some columns of all rows, some thousands of rows at a time."""
        chosen = self.rows.select(list(names))
        first = 0
        if isinstance(chosen, TextRows):
            for first in range(0, chosen.n_rows, CHUNK_ROWS):
                some = slice(first, first + CHUNK_ROWS)
                parts = {n: c[some] for n, c in zip(names, chosen.columns, strict=True)}
                yield FileBlock(
                    self.name, first, parts, None if self.lines is None else self.lines[some]
                )
            return
        for frame in chosen.pieces():
            parts = {name: frame.iloc[:, i].to_numpy() for i, name in enumerate(names)}
            yield FileBlock(self.name, first, parts)
            first += len(frame)

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


def read_table_file(
    path: str, form: CsvForm, *, lenient: bool = False, watch: BlockCheckMaker | None = None
) -> TableFile:
    """Read a table: CSV or Parquet, packed by gzip or not, from a file or standard input.

    Parameters
    ----------
    path : str
        A file, a folder of Parquet files, or ``-`` for standard input.
    form : CsvForm
        How CSV is written.
    lenient : bool
        Whether a damaged row of CSV is marked in place of an error.
    watch : callable, or None
        Gets the head of the table before any row is read, and returns what gets each block of rows
        as soon as it is read. What it raises ends the reading.

    Raises
    ------
    InvalidData
        If it cannot be read; the message names the row and the column, never a value.
    """
    if path != STANDARD and ("://" in path or Path(path).is_dir()):
        return _looked_at(TableFile(path, ParquetRows(path)), watch)
    with opened_file(path) as stream:
        if is_parquet(stream):
            return _looked_at(parquet_in(stream, path), watch)
        return _read_csv(stream, path, form, lenient=lenient, watch=watch)


def _looked_at(table: TableFile, watch: BlockCheckMaker | None) -> TableFile:
    """Return a table whose rows need no reading, once all of its blocks were looked at."""
    if watch is not None:
        look = watch(table.head)
        for block in table.blocks(table.names):
            look(block)
    return table


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


def _read_csv(
    stream: io.BufferedReader,
    path: str,
    form: CsvForm,
    *,
    lenient: bool,
    watch: BlockCheckMaker | None,
) -> TableFile:
    name = title(path)
    lines: list[int] = []
    damaged: list[bool] = []
    chunks: list[list[NDArray[Any]]] = []
    waiting: list[list[str]] = []
    with (
        contextlib.closing(CsvText(stream, name, form, lenient=lenient)) as found,
        contextlib.ExitStack() as stack,
    ):
        head = TableHead(name, found.names, ["text"] * len(found.names))
        look = None if watch is None else watch(head)

        def flush() -> None:
            cells = [np.array(column, TEXT) for column in zip(*waiting, strict=True)]
            if look is not None:
                first = len(lines) - len(waiting)
                parts = dict(zip(found.names, cells, strict=True))
                look(FileBlock(name, first, parts, lines[first:]))
            chunks.append(cells)
            waiting.clear()

        bar = None
        for cells, line, bad in found.rows():
            waiting.append(cells)
            lines.append(line)
            damaged.append(bad)
            if len(waiting) == (CHUNK_ROWS if chunks else min(FIRST_ROWS, CHUNK_ROWS)):
                flush()
                if len(lines) < CHUNK_ROWS:
                    continue
                if bar is None:  # small files are there at once
                    bar = stack.enter_context(Progress(f"reading {name}: rows", None))
                    bar.advance(len(lines) - CHUNK_ROWS)
                bar.advance(CHUNK_ROWS)
        if waiting:
            flush()
    if not chunks:
        raise InvalidData(f"{name} has a header, but no rows.")
    rows = TextRows(found.names, joined(chunks))
    marks = np.array(damaged, dtype=bool)
    return TableFile(name, rows, is_text=True, lines=np.array(lines), damaged=marks)


def joined(chunks: list[list[NDArray[Any]]]) -> list[NDArray[Any]]:
    """Return whole columns of chunks of them, which are let go of one column at a time."""
    return [np.concatenate([chunk.pop(0) for chunk in chunks]) for _ in range(len(chunks[0]))]
