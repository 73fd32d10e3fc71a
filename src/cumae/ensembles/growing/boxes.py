"""Boxes of many shards in one loop, in one or two columns.

For a few rows the plain way is the fastest: for each pair of values of the first column that may be
the sides of a best box, add up the gains between them, and walk along the other column once. The
result is the box that ``Rectangles.erm`` and ``represent`` find, by the same rule among
equally good ones.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts import Rectangle

MOST_ROWS = 200  # of a shard: time grows with the third power of them
MOST_COLUMNS = 2


@claim("EVER")
def many_boxes(
    table: Floats, signed: Integers, starts: Integers, coins: list[bool]
) -> list[Rectangle]:
    """Return what ``represent`` gives for the best box of each shard, all at once.

    Each shard's result is a function of its own slice of the rows, as if it were trained alone.

    Parameters
    ----------
    table : array of float of shape (n_rows, 1) or (n_rows, 2)
        Rows of all shards, one shard after the other, without cells that are not finite.
    signed : array of int
        What label 1 gains over label 0 for each row.
    starts : array of int
        Where each shard starts in the rows, and at last the number of rows.
    coins : list of bool
        The coin of each shard.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.ensembles.growing.boxes import many_boxes
    >>> rows, weights = np.array([[1.0], [2.0], [4.0], [7.0]]), np.array([-3, 1, 2, -3])
    >>> for box in many_boxes(
    ...     np.tile(rows, (2, 1)), np.tile(weights, 2), np.array([0, 4, 8]), [True, False]
    ... ):
    ...     print(box.predict([[1.0], [1.5], [2.0], [4.0], [6.9], [7.0]]))
    [0 1 1 1 1 0]
    [0 0 1 1 0 0]
    """
    width = table.shape[1]
    # A column that is the same in all rows takes the place of the first one if there is one only.
    first = table[:, 0] if width == MOST_COLUMNS else np.zeros(len(table))
    columns = np.ascontiguousarray(np.stack([first, table[:, -1]]))
    lows, highs, some = _boxes(columns, signed, starts, np.array(coins))
    return [
        Rectangle(tuple(map(_bound, low[-width:])), tuple(map(_bound, high[-width:])))
        if found
        else Rectangle((), ())
        for low, high, found in zip(lows.tolist(), highs.tolist(), some.tolist(), strict=True)
    ]


def _bound(value: float) -> float | None:
    return value if math.isfinite(value) else None


@numba.njit(cache=True, nogil=True)
def _boxes(
    columns: Floats, signed: Integers, starts: Integers, coins: NDArray[np.bool_]
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return sides of the box of each shard, infinite where there is none, and whether one gains.

    Parameters
    ----------
    columns : array of float of shape (2, n_rows)
        The rows, column by column.
    signed, starts, coins : arrays
        As in ``many_boxes``.
    """
    count = len(starts) - 1
    lows, highs = np.full((count, 2), -np.inf), np.full((count, 2), np.inf)
    some = np.zeros(count, dtype=np.bool_)
    for shard in range(count):
        here = columns[:, starts[shard] : starts[shard + 1]]
        places, sizes = _places(here)
        gains = np.zeros((sizes[0], sizes[1]), dtype=np.int64)
        for row in range(here.shape[1]):
            gains[places[0, row], places[1, row]] += signed[starts[shard] + row]
        box = _best_box(gains)
        if box[1, 0] < 0:
            continue
        some[shard] = True
        for column in range(2):
            own, other = box[:, column], box[:, 1 - column]
            lows[shard, column], highs[shard, column] = _sides(
                here[column], places[column], places[1 - column], own, other, coins[shard]
            )
    return lows, highs, some


@numba.njit(cache=True, nogil=True)
def _places(here: Floats) -> tuple[Integers, Integers]:
    """Return the place of each cell among the distinct values of its column, and their numbers."""
    places = np.empty(here.shape, dtype=np.int64)
    sizes = np.zeros(2, dtype=np.int64)
    for column in range(2):
        values = here[column]
        order = np.argsort(values)
        place = -1
        for at in range(len(order)):
            if at == 0 or values[order[at]] != values[order[at - 1]]:
                place += 1
            places[column, order[at]] = place
        sizes[column] = place + 1
    return places, sizes


@numba.njit(cache=True, nogil=True)
def _best_box(gains: Integers) -> Integers:
    """Return first and last place of the best box in both columns; -1 as last ones if none gains.

    The rule among several best ones is that of ``Rectangles.erm``: outer values of the first column
    are values of cells that gain, and the smallest first one, then the smallest last one is taken,
    then likewise in the second column. The box is then the smallest around its gaining cells.
    """
    left, right = _best_columns(gains)
    box = np.full((2, 2), -1, dtype=np.int64)  # first and last places, of both columns
    if right < 0:
        return box
    _, first, last = _best_range(gains[left : right + 1].sum(axis=0))
    box[0] = gains.shape
    for x in range(left, right + 1):
        for y in range(first, last + 1):
            if gains[x, y] > 0:
                box[0, 0], box[1, 0] = min(box[0, 0], x), max(box[1, 0], x)
                box[0, 1], box[1, 1] = min(box[0, 1], y), max(box[1, 1], y)
    return box


@numba.njit(cache=True, nogil=True)
def _best_columns(gains: Integers) -> tuple[int, int]:
    """Return the first and last place of the best box in the first column; -1 if none gains."""
    size, high = gains.shape
    may_end = np.zeros(size, dtype=np.bool_)
    for x in range(size):
        may_end[x] = np.any(gains[x] > 0)
    best, first, last = 0, 0, -1
    for left in range(size):
        if not may_end[left]:
            continue
        profile = np.zeros(high, dtype=np.int64)
        for right in range(left, size):
            profile += gains[right]
            if may_end[right]:
                gain, _, _ = _best_range(profile)
                if gain > best:
                    best, first, last = gain, left, right
    return first, last


@numba.njit(cache=True, nogil=True)
def _best_range(profile: Integers) -> tuple[int, int, int]:
    """Return the largest gain of a range of places, 0 at least, and the first such range."""
    best, first, last = 0, 0, -1
    gone, least, start = 0, 0, 0
    for place in range(len(profile)):
        if gone < least:  # what loses so far begins no best range
            least, start = gone, place
        gone += profile[place]
        if gone - least > best:
            best, first, last = gone - least, start, place
    return best, first, last


@numba.njit(cache=True, nogil=True)
def _sides(
    values: Floats, places: Integers, others: Integers, own: Integers, other: Integers, coin: bool
) -> tuple[float, float]:
    """Return [low, high) in one column: just around the box, or up to the next rows beside it.

    Parameters
    ----------
    values, places, others : arrays
        Cells of the column, their places, and the places of the other column's cells.
    own, other : array of int
        First and last place of the box in this column and in the other one.
    coin : bool
        Whether the sides go on up to the next rows.
    """
    least, most = np.inf, -np.inf
    below, above = -np.inf, np.inf
    for row in range(len(values)):
        if own[0] <= places[row] <= own[1]:
            least, most = min(least, values[row]), max(most, values[row])
        elif other[0] <= others[row] <= other[1]:
            if places[row] < own[0]:
                below = max(below, values[row])
            else:
                above = min(above, values[row])
    if not coin:
        return least, np.nextafter(most, np.inf)
    low = np.nextafter(below, np.inf) if below > -np.inf else below
    return low, above
