"""Rows in tables of one fixed shape, so that what is computed for a row depends on it alone.

In floating point, what a model computes for a row depends on the shape of the table that it is
given and on the row's place there: a matrix product adds in another order for another shape. So
every table that a model gets has the same number of rows. A row's place follows from its running
number, and empty places hold a stand-in, a made-up row. The last place always does: a model that
fails on a row only because of the stand-ins around it must fail in a full table, too.

Such a table is called a block here. In learners, blocks are disjoint parts of the training rows; in
concept classes, they are runs of candidates that are drawn from together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.data import frame_of
from cumae.quiet import HiddenFailures, warnings_raise
from cumae.threads import one_thread
from cumae.workers import in_memory

BLOCK_ROWS = 4096  # with fewer, calls take most of the time; with more, a single row is slow
FEW_BLOCK_ROWS = 64  # where one model is asked: a call takes no longer than a few rows
BLOCK_CELLS = 2**20  # cells that a block has at most: 8 MB

# Returns one result for each row of a table; None if the model raised or warned.
Ask: TypeAlias = Callable[[Any], NDArray[Any] | None]


def block_rows(width: int, most: int | None = None) -> int:
    """Return how many rows a block of so many columns has, the last one being a stand-in.

    Parameters
    ----------
    width : int
        Number of columns.
    most : int, or None
        Rows of a block whose cells are not too many; None for ``BLOCK_ROWS``.
    """
    return max(2, min(most or BLOCK_ROWS, BLOCK_CELLS // max(1, width)))


@claim("SHARDS")
def blank_block(stand_in: Any, most: int | None = None) -> Any:
    """Return a block with the stand-in in every place.

    Parameters
    ----------
    stand_in : array or DataFrame of one row
        A made-up row.
    most : int, or None
        As in ``block_rows``.
    """
    everywhere = np.zeros(block_rows(stand_in.shape[1], most), dtype=np.int64)
    if not hasattr(stand_in, "iloc"):
        return stand_in[everywhere]
    # With an index of its own, as any frame has: the same label for all rows would be odd.
    columns = [stand_in.iloc[:, place].to_numpy()[everywhere] for place in range(stand_in.shape[1])]
    return frame_of([str(name) for name in stand_in.columns], columns)


@claim("SHARDS", "EVER")
@dataclass(frozen=True)
class Block:
    """Some rows of a batch at their places in a table of the fixed shape.

    Parameters
    ----------
    table : array or DataFrame
        The rows at their places, and stand-ins everywhere else.
    rows : array of int
        Which rows of the batch these are.
    places : array of int
        Where they stand in the table.
    blank : array or DataFrame
        The same table with stand-ins only.
    """

    table: Any
    rows: Integers
    places: Integers
    blank: Any

    def answers(self, ask: Ask, otherwise: Any) -> NDArray[Any]:
        """Return a result for each row; ``otherwise`` for a row on which the model fails.

        Where the model fails on the table, it is asked again with stand-ins instead of one
        half of the rows and then of the other, until a row has been answered or has failed alone.
        The shape and the places stay the same.
        """
        found = ask(self.table)
        if found is not None:
            return found[self.places]
        if len(self.places) == 1:
            return np.array([otherwise])
        middle = len(self.places) // 2
        halves = (self._only(slice(middle)), self._only(slice(middle, None)))
        return np.concatenate([half.answers(ask, otherwise) for half in halves])

    def _only(self, part: slice) -> Block:
        rows, places = self.rows[part], self.places[part]
        return Block(_placed(self.blank, places, self.table, places), rows, places, self.blank)


@claim("SHARDS", "EVER")
def blocks(X: Any, numbers: Integers, blank: Any) -> Iterator[Block]:
    """Put the rows of a batch into blocks.

    A row's place is its running number modulo the size of a block less one: the last place stays
    with the stand-in. Rows that share a place go to different blocks.

    Parameters
    ----------
    X : array or DataFrame
        A table of floats, or a data frame whose columns have the types of the stand-in's.
    numbers : array of int
        A number for each row, from 0. It must not depend on the other rows. Rows with the same
        number must be identical: the first of them stands for all (``first_with``).
    blank : array or DataFrame
        What ``blank_block`` returned: a table of the fixed shape, full of stand-ins.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.ensembles.blocks import blank_block, blocks
    >>> X = np.array([[5.0], [6.0], [7.0]])
    >>> found = list(blocks(X, np.array([0, 1, 63]), blank_block(np.zeros((1, 1)), 64)))
    >>> [block.places.tolist() for block in found], found[0].table[:3].tolist()
    ([[0, 1], [0]], [[5.0], [6.0], [0.0]])
    """
    asked = np.flatnonzero(first_with(numbers) == np.arange(len(numbers)))
    places = np.asarray(numbers % (len(blank) - 1), dtype=np.int64)
    turns = _turns(places[asked])
    for turn in range(int(turns.max(initial=-1)) + 1):
        rows = asked[turns == turn]
        yield Block(_placed(blank, places[rows], X, rows), rows, places[rows], blank)


@claim("SHARDS", "EVER", "PRIOR")
@dataclass(frozen=True)
class AskedInBlocks:
    """A model that is asked about the rows of a batch in blocks of one shape.

    Parameters
    ----------
    ask : callable from a table to an array with one result for each row
        The model. It may raise or warn.
    stand_in : array of one row
        What holds the empty places.
    otherwise : array
        The result for a row on which the model fails.
    """

    ask: Callable[[Any], Any]
    stand_in: Floats
    otherwise: Floats

    def __call__(self, table: Floats, numbers: Integers) -> Floats:
        """Return a result for each row; the running number of a row decides its place."""
        found = np.zeros((len(table), *self.otherwise.shape))
        with one_thread(), in_memory():
            for block in blocks(table, numbers, self._blank):
                found[block.rows] = block.answers(self._asked, self.otherwise)
        found = found[first_with(numbers)]
        finite = np.isfinite(found).all(axis=tuple(range(1, found.ndim)))
        found[~finite] = self.otherwise
        return found

    @property
    def fails(self) -> bool:
        """True if the model fails on stand-ins alone, so that it could not answer anything."""
        return self._asked(self._blank) is None

    @functools.cached_property
    def _blank(self) -> Floats:
        found: Floats = blank_block(self.stand_in, FEW_BLOCK_ROWS)
        return found

    def _asked(self, table: Any) -> Floats | None:
        with HiddenFailures(), warnings_raise():
            # A copy: if it fails after it has written there, the rows are asked about again.
            found = np.asarray(self.ask(table.copy()), dtype=np.float64)
            return found if found.shape == (len(table), *self.otherwise.shape) else None
        return None


@claim("SHARDS", "MEMO")
def first_with(numbers: Integers) -> Integers:
    """Return for each row the first row that has its number.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.ensembles.blocks import first_with
    >>> first_with(np.array([7, 3, 7])).tolist()
    [0, 1, 0]
    """
    _, first, back = np.unique(numbers, return_index=True, return_inverse=True)
    return np.asarray(first[back], dtype=np.int64)


@claim("SHARDS")
def _turns(places: Integers) -> Integers:
    """Return for each row how many rows before it have its place."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.searchsorted(ordered, ordered)  # where the run of equal places begins
    turns = np.empty(len(places), dtype=np.int64)
    turns[order] = np.arange(len(places)) - starts
    return turns


@claim("SHARDS")
def _placed(blank: Any, places: Integers, X: Any, rows: Integers) -> Any:
    """Return a copy of a block with some rows of ``X`` at these places."""
    if not hasattr(blank, "iloc"):
        table = blank.copy()
        table[places] = X[rows]
        return table
    columns = []
    for place in range(blank.shape[1]):
        cells = blank.iloc[:, place].to_numpy().copy()
        cells[places] = X.iloc[:, place].to_numpy()[rows]
        columns.append(cells)
    return frame_of([str(name) for name in blank.columns], columns)
