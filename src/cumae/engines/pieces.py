"""Tables in numbered pieces, and what is made of their rows block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data import PIECE, Columns
from cumae.engines.engine import Quieted, RowEngine, add_once, each_once
from cumae.errors import InvalidData
from cumae.progress import Progress
from cumae.quiet import is_quiet

Step = Callable[..., Any]  # from the parts of a block to those of another one
FEW = 8  # pieces, below which no progress is shown


@dataclass(frozen=True)
class RawBlock:
    """Some rows of a table as they came.

    Parameters
    ----------
    rows : data frame
        The rows.
    first : int
        The number of the first of them in the whole table.
    """

    rows: Any
    first: int


def blocks(piece: Any) -> Iterator[tuple[Any, ...]]:
    """Return the rows of a piece, some thousands at a time.

    Parameters
    ----------
    piece : tuple of arrays, or an object with a method ``blocks``
        A piece of a table.
    """
    if not isinstance(piece, tuple):
        yield from piece.blocks()
        return
    for start in range(0, max(len(piece[0]), 1), PIECE):  # no rows are one block, too
        yield tuple(part[start : start + PIECE] for part in piece)


@dataclass(frozen=True)
class Beside:
    """A piece of a table, with arrays beside it that have one entry for each of its rows."""

    piece: Any
    arrays: tuple[NDArray[Any], ...]

    def blocks(self) -> Iterator[tuple[Any, ...]]:
        """Return the rows, some thousands at a time."""
        start = 0
        for block in blocks(self.piece):
            head = block[0]
            stop = start + len(head.rows if isinstance(head, RawBlock) else head)
            yield (*block, *(array[start:stop] for array in self.arrays))
            start = stop


@dataclass(frozen=True)
class Summing:
    """The sum over the blocks of a piece of what a function makes of each.

    Parameters
    ----------
    steps : tuple of callable
        What is done to a block first.
    total : callable
        Returns whole numbers for the parts of a block.
    """

    steps: tuple[Step, ...]
    total: Step

    @claim("PIECES")
    def __call__(self, piece: Any) -> Any:
        found: Any = 0
        for block in blocks(piece):
            found = found + self.total(*through(self.steps, block))
        return found


@dataclass(frozen=True)
class Making:
    """A new piece: what steps make of all blocks of one, joined in their order."""

    steps: tuple[Step, ...]

    def __call__(self, piece: Any) -> tuple[NDArray[Any], ...]:
        parts = zip(*(through(self.steps, block) for block in blocks(piece)), strict=True)
        return tuple(part[0] if len(part) == 1 else np.concatenate(part) for part in parts)


def through(steps: tuple[Step, ...], block: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what steps make of a block, one after the other."""
    for step in steps:
        block = step(*block)
    return block


@dataclass(frozen=True, eq=False, repr=False)  # a message must not show rows
class Pieces:
    """A table in numbered pieces on an engine; whoever asks gets sums over its rows.

    Parameters
    ----------
    engine : RowEngine
        Whoever computes.
    table : object
        The pieces, in the engine's own form.
    sizes : tuple of int
        The number of rows of each piece, which is public.
    steps : tuple of callable
        What is made of each block before anything else, whenever it is asked for.
    """

    engine: RowEngine
    table: Any
    sizes: tuple[int, ...]
    steps: tuple[Step, ...] = ()

    def __len__(self) -> int:
        """Return the number of rows."""
        return sum(self.sizes)

    def then(self, step: Step) -> Pieces:
        """Return the pieces of which a step makes each block another one.

        Parameters
        ----------
        step : callable
            Takes the parts of a block and returns those of another one, row by row.
        """
        return replace(self, steps=(*self.steps, step))

    def only(self, place: int) -> Pieces:
        """Return pieces with one of their parts.

        Parameters
        ----------
        place : int
            Its number, from 0.
        """
        return self.then(Only(place))

    def kept(self) -> Pieces:
        """Compute all steps now, once; the new pieces stay with the engine."""
        work = Quieted(Making(self.steps), all_errors=not self.engine.is_here)
        table, sizes = self.engine.keep(work, self.table)
        return Pieces(self.engine, table, sizes)

    @claim("PIECES")
    def sum(self, total: Step) -> Any:
        """Return the sum of whole numbers over all rows.

        It is the same for any pieces, workers, retries and any order, if what a row adds is.

        Parameters
        ----------
        total : callable
            Returns the sum over the rows of a block, given its parts.
        """
        work = Quieted(Summing(self.steps, total), all_errors=not self.engine.is_here)
        count = len(self.sizes)
        shown = None if count >= FEW and not self.engine.is_here and not is_quiet() else False
        with Progress("pieces", count, shown) as bar:

            def counted() -> Iterator[tuple[int, Any]]:
                for found in self.engine.run(work, self.table):
                    bar.advance()
                    yield found

            return add_once(counted(), count, self.engine.name)

    def results(self, work: Callable[[Any], Any]) -> Iterator[tuple[int, Any]]:
        """Return what a function makes of the blocks of each piece, once for each piece.

        Parameters
        ----------
        work : callable
            Takes an iterator of the blocks of a piece, after all steps.
        """
        guarded = Quieted(Reducing(self.steps, work), all_errors=not self.engine.is_here)
        found = self.engine.run(guarded, self.table)
        return each_once(found, len(self.sizes), self.engine.name)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Return the blocks of a table of this process, in their order."""
        if not self.engine.has_rows:
            raise InvalidData(f"these rows stay on {self.engine.name}; ask for sums over them.")
        for piece in self.table:
            for block in blocks(piece):
                yield through(self.steps, block)

    def __getitem__(self, places: Any) -> NDArray[Any]:
        """Return rows of the first part at some places, of a table of this process."""
        wanted = np.arange(len(self))[places]
        order = np.argsort(wanted, kind="stable")
        found, first, place = [], 0, 0
        for block in self:
            inside = np.searchsorted(wanted[order], first + len(block[0]), side="left")
            found.append(block[0][wanted[order[place:inside]] - first])
            first, place = first + len(block[0]), int(inside)
        joined = np.concatenate(found)
        sorted_back = np.empty_like(joined)
        sorted_back[order] = joined
        return sorted_back


@dataclass(frozen=True)
class Reducing:
    """The result of a function on all blocks of a piece together."""

    steps: tuple[Step, ...]
    work: Callable[[Any], Any]

    def __call__(self, piece: Any) -> Any:
        return self.work(through(self.steps, block) for block in blocks(piece))


@dataclass(frozen=True)
class Only:
    """A step that leaves one part of each block."""

    place: int

    def __call__(self, *parts: Any) -> tuple[Any, ...]:
        return (parts[self.place],)


@dataclass(frozen=True)
class Reading:
    """A step that makes numbers of the rows of a block; what stands beside them stays.

    Parameters
    ----------
    columns : Columns
        How rows are read; an error names a row and a column.
    """

    columns: Columns

    def __call__(self, block: RawBlock, *rest: Any) -> tuple[Any, ...]:
        return (self.columns.encode(block.rows, block.first), *rest)


@dataclass(frozen=True)
class Filling:
    """A step that puts the middle of a range where a number is missing.

    Parameters
    ----------
    columns : Columns
        The columns, with ranges that were found since rows were read.
    """

    columns: Columns

    def __call__(self, table: NDArray[Any], *rest: Any) -> tuple[Any, ...]:
        filled = table.copy()
        self.columns.fill(filled)
        return (filled, *rest)


def row_count(*parts: Any) -> Integers:
    """Return the number of rows of a block."""
    return np.array([len(parts[0])], dtype=np.int64)
