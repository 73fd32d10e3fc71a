"""Data frames of Dask, Ray and Spark, and Parquet files, as rows that stay on an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from cumae.data import (
    PIECE,
    Columns,
    ParquetRows,
    class_places,
    labelled_table,
    row_source,
)
from cumae.data.arrow import arrow_kind
from cumae.data.kinds import frame_kinds
from cumae.data.rows import arrow_frame, refuse_nested
from cumae.engines.engine import Quieted, RowEngine, each_once
from cumae.engines.here import files_in_pieces, parquet_pieces
from cumae.engines.on_dask import Dask
from cumae.engines.on_ray import Ray
from cumae.engines.on_spark import Spark
from cumae.engines.pieces import Pieces, RawBlock, row_count
from cumae.engines.rows import Answers, EngineRows, Label, Reader
from cumae.errors import InvalidData
from cumae.extras import dask, pa, ray


def rows_on(engine: RowEngine, X: Any) -> EngineRows:
    """Return rows of files, or of a data frame of this process, which an engine works on.

    Parameters
    ----------
    engine : RowEngine
        Whoever works on them. Its workers read files themselves, by the same paths.
    X : ParquetRows or data frame
        The rows, with the column of the labels.

    Examples
    --------
    >>> import pandas as pd
    >>> from cumae.engines import Here, rows_on
    >>> rows_on(Here(), pd.DataFrame({"age": [31, 52], "ill": [0, 1]})).without("ill").names
    ['age']
    """
    if isinstance(X, ParquetRows):
        parts, sizes = parquet_pieces(X)
        return EngineRows(engine, engine.hold(parts), sizes, X.names, X.kinds, X.whole)
    source = row_source(X)
    if source.names is None:
        raise InvalidData("X has no names of columns; give a data frame or ParquetRows.")
    starts = range(0, source.n_rows, PIECE)
    places = [np.arange(start, min(start + PIECE, source.n_rows)) for start in starts]
    frames = [X.iloc[at] if isinstance(X, pd.DataFrame) else source.take(at) for at in places]
    pieces = [FramePiece(frame, int(at[0])) for frame, at in zip(frames, places, strict=True)]
    held = engine.hold(pieces)
    sizes = tuple(map(len, places))
    return EngineRows(engine, held, sizes, source.names, source.kinds, source.whole)


def placed_rows(X: Any, y: Any, *, stay: bool = True) -> tuple[Any, Any]:
    """Return rows and labels; those of a cluster stay there, and ``y`` names a column of them.

    Parameters
    ----------
    X : table
        Rows. A data frame of Dask or Spark, or a data set of Ray, becomes ``EngineRows``.
    y : array-like or str
        The labels, or the name of their column.
    stay : bool
        Whether rows may stay on a cluster; if not, they are refused.
    """
    given = X if isinstance(X, EngineRows) else engine_rows(X)
    if given is None:
        return labelled_table(X, y)
    if not stay:
        given.take(np.zeros(0, dtype=np.int64))
    if not isinstance(y, str):
        raise InvalidData(
            f"X stays on {given.engine.name}, so that y must be the name of a column of it."
        )
    return given.without(y), ColumnThere(given, y)


@dataclass(frozen=True)
class ColumnThere:
    """A column of rows that stay on an engine.

    Parameters
    ----------
    rows : EngineRows
        The rows, with this column.
    name : str
        Its name.
    """

    rows: EngineRows
    name: str

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.rows.n_rows

    def read(self, reader: Answers) -> Pieces:
        """Return the cells as numbers, where they are.

        Parameters
        ----------
        reader : callable
            Returns numbers for cells, given them and the number of the first row.
        """
        return self.rows.raw.then(Label(self.name, reader))


def read_labels(y: Any, classes: list[Any], *, unlabelled: bool) -> Any:
    """Return the place of each label in the classes, here or where the labels are.

    Parameters
    ----------
    y : array-like, or ColumnThere
        The labels.
    classes : list
        The classes.
    unlabelled : bool
        Whether -1 marks a row without a label, which labels elsewhere never do.
    """
    if isinstance(y, ColumnThere):
        return y.read(partial(class_places, classes=classes, unlabelled=False))
    return class_places(y, classes, unlabelled=unlabelled)


def checked_rows(X: Any, columns: Columns, answers: Any) -> Pieces | None:
    """Return rows that stay on an engine or in files as numbers; each was read once.

    Parameters
    ----------
    X : table
        The rows; None is returned for all but ``EngineRows`` and ``ParquetRows``.
    columns : Columns
        How they are read.
    answers : array, or Pieces
        What ``ColumnThere.read`` returned for their column of answers, which then stand beside
        them; or answers in this process.
    """
    if isinstance(answers, Pieces):
        rows = columns.arrange(X)
        (label,) = answers.steps
        found: Pieces = rows.raw.then(Reader(columns, tuple(rows.names), label))
    elif isinstance(X, ParquetRows):
        found = files_in_pieces(columns.arrange(X), columns)
    else:
        return None
    found.sum(row_count)  # each piece is read, and raises what is wrong with it
    return found


def engine_rows(X: Any) -> EngineRows | None:
    """Return the rows of a data frame of a cluster, which stay there; None for other tables.

    Parameters
    ----------
    X : object
        What somebody gave as rows.
    """
    home = type(X).__module__.partition(".")[0]
    if home == "dask" and hasattr(X, "to_delayed") and hasattr(X, "dtypes"):
        return _of_dask(Dask(), X)
    if home == "ray" and hasattr(X, "to_arrow_refs"):
        return _of_ray(Ray(), X)
    if home == "pyspark" and hasattr(X, "mapInArrow"):
        return _of_spark(Spark(X.sparkSession), X)
    return None


@dataclass(frozen=True)
class FramePiece:
    """A partition of a data frame.

    Parameters
    ----------
    frame : data frame of pandas
        The rows.
    first : int
        The number of the first of them.
    kinds : tuple of str, or None
        What its columns must be able to hold by their types; None if nothing is known.
    """

    frame: pd.DataFrame
    first: int
    kinds: tuple[str, ...] | None = None

    def blocks(self) -> Iterator[tuple[RawBlock]]:
        """Return the rows as they came, some thousands at a time."""
        if self.kinds is not None:
            _need_kinds(list(map(str, self.frame)), frame_kinds(self.frame.dtypes), self.kinds)
        for start in range(0, max(len(self.frame), 1), PIECE):  # no rows are one block, too
            yield (RawBlock(self.frame.iloc[start : start + PIECE], self.first + start),)


@dataclass(frozen=True)
class ArrowPiece:
    """Rows of tables of Arrow.

    Parameters
    ----------
    tables : callable
        Returns the tables, one after the other.
    first : int
        The number of the first row.
    schema : pyarrow.Schema
        Names and types of the columns, which each of the tables must have.
    """

    tables: Callable[[], Iterable[Any]]
    first: int
    schema: Any

    def blocks(self) -> Iterator[tuple[RawBlock]]:
        """Return the rows as they came, some thousands at a time."""
        first, names = self.first, self.schema.names
        for table in self.tables():
            kinds = [arrow_kind(field.type) for field in table.schema]
            _need_kinds(names, kinds, [arrow_kind(field.type) for field in self.schema])
            for start in range(0, table.num_rows, PIECE):
                frame = arrow_frame(table.slice(start, PIECE), names)
                yield (RawBlock(frame, first),)
                first += len(frame)
        if first == self.first:  # no rows are one block, too
            yield (RawBlock(arrow_frame(self.schema.empty_table(), names), first),)


def _need_kinds(names: Sequence[str], kinds: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a partition whose columns have other types than are known; by types alone."""
    pairs = zip(kinds, known, strict=True)
    # A column without any cell has no type of its own.
    odd = [name for name, (kind, one) in zip(names, pairs, strict=True) if kind not in (one, "")]
    if odd:
        raise InvalidData(
            f"columns {', '.join(odd)} have other types in some partitions than in others; cast "
            "them to the types that are declared.",
            columns=odd,
        )


def _counted(engine: RowEngine, count: Callable[[Any], int], table: Any, pieces: int) -> list[int]:
    """Return the number of rows of each piece."""
    found = dict(each_once(engine.run(Quieted(count), table), pieces, engine.name))
    return [found[number] for number in range(pieces)]


def _starts(sizes: list[int]) -> list[int]:
    return [0, *np.cumsum(sizes).tolist()][: len(sizes)]


def _of_dask(engine: Dask, frame: Any) -> EngineRows:
    """Return the rows of a data frame of Dask; partitions are its pieces."""
    parts = list(frame.to_delayed())
    sizes = _counted(engine, len, parts, len(parts))
    kinds = tuple(frame_kinds(frame.dtypes))
    piece = dask.delayed(FramePiece, pure=False)
    pieces = [piece(part, start, kinds) for part, start in zip(parts, _starts(sizes), strict=True)]
    return EngineRows(engine, pieces, sizes, list(map(str, frame.columns)), list(kinds))


def _of_ray(engine: Ray, dataset: Any) -> EngineRows:
    """Return the rows of a data set of Ray, which is computed now; blocks are its pieces."""
    blocks = dataset.materialize().to_arrow_refs()
    found = dict(each_once(engine.run(Quieted(_shape), blocks), len(blocks), engine.name))
    sizes = [found[number][0] for number in range(len(blocks))]
    schema = next((found[number][1] for number, size in enumerate(sizes) if size), None)
    if schema is None:
        raise InvalidData("X has 0 rows; give rows to learn from.")
    pieces = [
        ArrowPiece(partial(_fetched, [block]), start, schema)
        for block, start in zip(blocks, _starts(sizes), strict=True)
    ]
    return _of_arrow(engine, engine.hold(pieces), sizes, schema)


def _of_spark(engine: Spark, frame: Any) -> EngineRows:
    """Return the rows of a data frame of Spark; partitions are its pieces."""
    schema = frame.limit(0).toArrow().schema
    packed = frame.mapInArrow(packed_batches, "part binary").rdd
    count = packed.getNumPartitions()
    unnumbered = packed.mapPartitionsWithIndex(Partitions(schema, (0,) * count))
    sizes = _counted(engine, _rows_in, unnumbered, count)
    table = packed.mapPartitionsWithIndex(Partitions(schema, tuple(_starts(sizes))))
    return _of_arrow(engine, table, sizes, schema)


def _of_arrow(engine: RowEngine, table: Any, sizes: list[int], schema: Any) -> EngineRows:
    for field in schema:
        refuse_nested(field)
    kinds = [arrow_kind(field.type) for field in schema]
    return EngineRows(engine, table, sizes, list(schema.names), kinds)


def _shape(table: Any) -> tuple[int, Any]:
    """Return the number of rows of a table of Arrow, and its schema."""
    return table.num_rows, table.schema


def _rows_in(piece: ArrowPiece) -> int:
    return sum(table.num_rows for table in piece.tables())


def _fetched(block: list[Any]) -> list[Any]:
    # In a list, so that Ray does not fetch it where the piece is only passed on.
    return list(map(ray.get, block))


def packed_batches(batches: Iterator[Any]) -> Iterator[Any]:
    """Return batches of Arrow as cells of bytes, which Spark passes on as they are.

    Parameters
    ----------
    batches : iterator of pyarrow.RecordBatch
        The rows of a partition.
    """
    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        cell = pa.array([sink.getvalue().to_pybytes()], pa.binary())
        yield pa.RecordBatch.from_arrays([cell], ["part"])


@dataclass(frozen=True)
class Partitions:
    """A piece of each partition of Spark.

    Parameters
    ----------
    schema : pyarrow.Schema
        Names and types of the columns.
    starts : tuple of int
        The number of the first row of each partition.
    """

    schema: Any
    starts: tuple[int, ...]

    def __call__(self, number: int, rows: Iterator[Any]) -> Iterator[tuple[int, ArrowPiece]]:
        yield number, ArrowPiece(partial(_unpacked, rows), self.starts[number], self.schema)


def _unpacked(rows: Iterator[Any]) -> Iterator[Any]:
    for row in rows:
        yield pa.ipc.open_stream(bytes(row[0])).read_all()
