"""The engines of one machine: this process, and processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from joblib import delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError
from numpy.typing import NDArray

from cumae.data import PIECE, Columns, ParquetRows
from cumae.engines.engine import Found, RowEngine, Work, each_once
from cumae.engines.pieces import Beside, Pieces, RawBlock, Reading, Step
from cumae.errors import WorkersLost
from cumae.workers import each, parallel

TRIES = 4  # rounds of work on pieces whose workers died


class Here(RowEngine):
    """The process that runs this code: its threads work on pieces.

    Where ``joblib.parallel_config`` chose another backend, that one works on them.
    """

    name: ClassVar[str] = "this process"
    is_here: ClassVar[bool] = True
    has_rows: ClassVar[bool] = True

    def hold(self, pieces: Sequence[Any]) -> Any:
        return pieces

    def run(self, work: Work, table: Any) -> Found:
        return each(partial(_numbered, work), enumerate(table))

    def keep(self, work: Work, table: Any) -> tuple[Any, tuple[int, ...]]:
        # Cut into small pieces, so that all threads have work.
        made = dict(each_once(self.run(work, table), len(table), self.name))
        parts = [part for number in sorted(made) for part in cut_arrays(made.pop(number))]
        return parts, tuple(len(part[0]) for part in parts)


class Processes(RowEngine):
    """Processes of this machine, by joblib; pieces go to them through pipes.

    Parameters
    ----------
    n_jobs : int
        How many processes there are; -1 for one for each core.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.engines import Processes, cut
    >>> table = np.arange(30_000).reshape(-1, 2)
    >>> int(cut(table, engine=Processes(2)).sum(np.sum))
    449985000
    """

    name: ClassVar[str] = "processes"
    has_rows: ClassVar[bool] = True

    def __init__(self, n_jobs: int = -1) -> None:
        self.n_jobs = n_jobs

    def hold(self, pieces: Sequence[Any]) -> Any:
        return pieces

    def run(self, work: Work, table: Any) -> Found:
        left = dict(enumerate(table))
        for _ in range(TRIES):
            pool = parallel(
                n_jobs=self.n_jobs, backend="loky", return_as="generator_unordered", batch_size=1
            )
            try:
                for number, result in pool(
                    delayed(_numbered)(work, number, piece) for number, piece in list(left.items())
                ):
                    del left[number]
                    yield number, result
                return
            except TerminatedWorkerError:  # its pieces are worked on again
                continue
        raise WorkersLost(
            f"workers died {TRIES} times, and {len(left)} pieces were not worked on; look for "
            "what kills them, such as too little memory, and fit again."
        )

    def keep(self, work: Work, table: Any) -> tuple[Any, tuple[int, ...]]:
        made = dict(each_once(self.run(work, table), len(table), self.name))
        parts = [made[number] for number in range(len(table))]
        return parts, tuple(len(part[0]) for part in parts)


def _numbered(work: Work, number: int, piece: Any) -> tuple[int, Any]:
    return number, work(piece)


def cut_arrays(arrays: tuple[NDArray[Any], ...], rows: int = PIECE) -> Iterator[tuple[Any, ...]]:
    """Cut arrays into pieces of so many rows; no rows are one piece, too."""
    for start in range(0, max(len(arrays[0]), 1), rows):
        yield tuple(array[start : start + rows] for array in arrays)


def cut(*arrays: Any, engine: RowEngine | None = None, rows: int = PIECE) -> Pieces:
    """Return arrays of this process as a table in pieces; pieces stay as they are.

    Parameters
    ----------
    *arrays : array, or Pieces
        They have one entry, or one row, for each row.
    engine : RowEngine, or None
        Whoever works on them; None is this process.
    rows : int
        The number of rows of a piece.
    """
    head = arrays[0]
    if isinstance(head, Pieces):
        return head if len(arrays) == 1 else beside(head, arrays[1:])
    parts = list(cut_arrays(arrays, rows))
    engine = engine or Here()
    return Pieces(engine, engine.hold(parts), tuple(len(part[0]) for part in parts))


def beside(table: Pieces, arrays: tuple[NDArray[Any], ...]) -> Pieces:
    """Return a table of this process with arrays beside it."""
    parts, start = [], 0
    for piece, size in zip(table.table, table.sizes, strict=True):
        parts.append(Beside(piece, tuple(array[start : start + size] for array in arrays)))
        start += size
    return Pieces(table.engine, parts, table.sizes, table.steps)


@dataclass(frozen=True)
class FilePiece:
    """Rows of a row group of a Parquet file, which are read when they are needed.

    Parameters
    ----------
    rows : ParquetRows
        All files.
    group, first : int
        The number of the row group, and of its first row.
    """

    rows: ParquetRows
    group: int
    first: int

    def blocks(self) -> Iterator[tuple[RawBlock]]:
        """Return the rows as they came, some thousands at a time."""
        first = self.first
        for frame in self.rows.frames(self.group):
            yield (RawBlock(frame, first),)
            first += len(frame)


def files_in_pieces(rows: ParquetRows, columns: Columns, engine: RowEngine | None = None) -> Pieces:
    """Return the rows of Parquet files as a table of numbers, a piece for each row group.

    Parameters
    ----------
    rows : ParquetRows
        The files.
    columns : Columns
        How rows are read.
    engine : RowEngine, or None
        Whoever reads them; None is this process.
    """
    return raw_pieces(rows, engine=engine).then(Reading(columns))


def raw_pieces(
    rows: ParquetRows | Pieces, *arrays: NDArray[Any], engine: RowEngine | None = None
) -> Pieces:
    """Return rows as they came as a table in pieces, with arrays beside them.

    Parameters
    ----------
    rows : ParquetRows, or Pieces
        The files, of which each row group is a piece; or rows in pieces.
    *arrays : array
        They have one entry for each row.
    engine : RowEngine, or None
        Whoever reads files; None is this process.
    """
    if isinstance(rows, ParquetRows):
        parts, sizes = parquet_pieces(rows)
        engine = engine or Here()
        rows = Pieces(engine, engine.hold(parts), sizes)
    return beside(rows, arrays) if arrays else rows


def parquet_pieces(rows: ParquetRows) -> tuple[list[FilePiece], tuple[int, ...]]:
    """Return a piece for each row group that has rows, and how many it has.

    Parameters
    ----------
    rows : ParquetRows
        The files.
    """
    starts = np.cumsum([0, *rows.group_sizes]).tolist()
    filled = [group for group, size in enumerate(rows.group_sizes) if size]
    parts = [FilePiece(rows, group, starts[group]) for group in filled]
    return parts, tuple(rows.group_sizes[group] for group in filled)


def summed(total: Step, parts: Pieces | Iterable[tuple[Any, ...]]) -> Any:
    """Return the sum of whole numbers over a table in pieces, or over parts of one.

    Parameters
    ----------
    total : callable
        Returns the sum over some rows.
    parts : Pieces, or iterable of tuple
        The rows: what ``total`` is given.
    """
    if isinstance(parts, Pieces):
        return parts.sum(total)
    return sum(each(total, parts))
