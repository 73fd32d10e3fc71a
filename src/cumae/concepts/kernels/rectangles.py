"""Compiled sums over boxes in a grid of cells; ``rectangles.py`` holds the same, uncompiled.

The grid has three axes, called layers, columns and rows; a table with fewer columns leaves the
first axes with a single place. A box is a range of places on each axis. It is a candidate if each
of its sides holds a point of the box. Sums of q^gain over boxes are kept as ``(E, f)``, which means
q^E * f, with E the largest gain in the sum and so f >= 1: nothing overflows or cancels, and what
underflows is too small to matter next to f. ``power[d]`` is q^-d, and its last entry
stands for all larger d.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers

EMPTY = -(1 << 40)  # the E of a sum without terms: far below every gain
LIMB = 60  # gains of the best box are high * 2^60 + low, so that they may have 120 bits
ONE = np.uint64(1)  # numba reads negative places from the end: unsigned ones save that test
MASK = (1 << LIMB) - 1


class Board(NamedTuple):
    """Cells that hold a point or a gain, sorted by column, then by row."""

    layer: Integers
    row: Integers
    gain: Integers
    holds: NDArray[np.bool_]  # whether the cell holds a point
    start: Integers  # the cells of column x are those from start[x] to start[x + 1]
    sizes: tuple[int, int, int]


class Work(NamedTuple):
    """Room for a sweep: the tree, lists of rows, and the parts of the last right column, twice."""

    exact: Integers
    factor: Floats
    rows: Integers
    ranges: Integers
    e: Integers
    f: Floats
    scratch_e: Integers
    scratch_f: Floats


@numba.njit(cache=True, nogil=True)
def _work(board: Board) -> Work:
    size = 1
    while size < board.sizes[2]:
        size *= 2
    most = len(board.row) + 1
    return Work(
        np.empty((2 * size, 3), np.int64),
        np.empty((2 * size, 2)),
        np.empty((4, most), np.int64),
        np.empty((most, 3), np.int64),
        np.empty(most, np.int64),
        np.empty(most),
        np.empty(most, np.int64),
        np.empty(most),
    )


# A binary tree over the rows, for the columns between left and right. Node 1 is the root, the
# children of node k are 2k and 2k + 1. ``exact`` holds for each node the gain of its rows, E of
# ``low`` and E of ``high``; ``factor`` holds f of both. ``low`` sums q^gain over all ranges from an
# occupied row (one with a point) to the node's last row, ``high`` over those from the node's first
# row to an occupied row.


@numba.njit(cache=True, nogil=True)
def _add(e1: int, f1: float, e2: int, f2: float, power: Floats) -> tuple[int, float]:
    # Which of the two is larger is a coin's throw: selecting is faster here than branching.
    gap = e1 - e2
    step = power[np.uint64(min(abs(gap), len(power) - 1))]
    large, small = (f1, f2) if gap >= 0 else (f2, f1)
    return max(e1, e2), large + small * step


@numba.njit(cache=True, nogil=True)
def add_up(e: Integers, f: Floats, count: int, power: Floats) -> tuple[int, float]:
    """Add the first sums in pairs of pairs, which keeps errors small; overwrites them.

    Parameters
    ----------
    e, f : array of int and array of float
        Sums (E, f); they are overwritten.
    count : int
        How many of them are added.
    power : array of float
        Powers q^-d.
    """
    if count == 0:
        return EMPTY, 0.0
    while count > 1:
        half = (count + 1) // 2
        for k in range(count - half):
            e[k], f[k] = _add(e[k], f[k], e[half + k], f[half + k], power)
        count = half
    return e[0], f[0]


@numba.njit(cache=True, nogil=True, inline="always")
def _insert(
    exact: Integers, factor: Floats, row: int, gain: int, holds: bool, power: Floats
) -> None:
    """Add a cell to its row, and mend the sums above it.

    Parameters
    ----------
    exact, factor : array of int and array of float
        The tree over the rows.
    row : int
        The row of the cell.
    gain : int
        What label 1 gains over label 0 in the cell.
    holds : bool
        Whether the cell holds a point.
    power : array of float
        Powers q^-d.
    """
    node = np.uint64(row + len(exact) // 2)
    gain += exact[node, 0]
    low_e = high_e = EMPTY
    low_f = high_f = 0.0
    if holds or factor[node, 0] > 0:
        low_e = high_e = gain
        low_f = high_f = 1.0
    while True:
        exact[node, 0], exact[node, 1], exact[node, 2] = gain, low_e, high_e
        factor[node, 0], factor[node, 1] = low_f, high_f
        if node == ONE:
            return
        other = node ^ ONE
        # A range that goes on into the sibling collects its gain, and the other way round.
        beside = exact[other, 0]
        above, below = (0, beside) if node & ONE else (beside, 0)
        own_above, own_below = (gain, 0) if node & ONE else (0, gain)
        low_e, low_f = _add(
            low_e + above, low_f, exact[other, 1] + own_above, factor[other, 0], power
        )
        high_e, high_f = _add(
            high_e + below, high_f, exact[other, 2] + own_below, factor[other, 1], power
        )
        gain += beside
        node >>= ONE


@numba.njit(cache=True, nogil=True, inline="always")
def _lows(
    exact: Integers, factor: Floats, first: int, last: int, power: Floats
) -> tuple[int, float, int]:
    """Sum over lower sides from ``first`` to ``last``, gains up to there; return their gain too.

    Parameters
    ----------
    exact, factor : array of int and array of float
        The tree over the rows.
    first, last : int
        The rows of the lower sides.
    power : array of float
        Powers q^-d.
    """
    size = len(exact) // 2
    a, b = first + size, last + 1 + size
    below_e, below_f, below = EMPTY, 0.0, 0
    above_e, above_f, above = EMPTY, 0.0, 0
    while a < b:
        if a & 1:
            below_e, below_f = _add(
                below_e + exact[a, 0], below_f, exact[a, 1], factor[a, 0], power
            )
            below += exact[a, 0]
            a += 1
        if b & 1:
            b -= 1
            above_e, above_f = _add(above_e, above_f, exact[b, 1] + above, factor[b, 0], power)
            above += exact[b, 0]
        a >>= 1
        b >>= 1
    e, f = _add(below_e + above, below_f, above_e, above_f, power)
    return e, f, below + above


@numba.njit(cache=True, nogil=True, inline="always")
def _highs(exact: Integers, factor: Floats, first: int, power: Floats) -> tuple[int, float, int]:
    """Sum over upper sides from ``first`` on, gains from there on; return the gain of all too."""
    a, b = first + len(exact) // 2, len(exact)
    e, f, gain = EMPTY, 0.0, 0
    while a < b:
        if a & 1:
            e, f = _add(e, f, exact[a, 2] + gain, factor[a, 1], power)
            gain += exact[a, 0]
            a += 1
        a >>= 1
        b >>= 1
    return e, f, gain


@numba.njit(cache=True, nogil=True, inline="always")
def _next_range(rows: Integers, count: Integers, at: Integers, sides: int) -> tuple[int, int]:
    """Return the next lower sides that share their least upper side: their last, and that side.

    ``rows`` lists, in order, the rows of points that a box may hold on its left, right, near and
    far side. A box from row y up holds a point on each of them if it reaches the next row at or
    above y of every list. -1 if a list has ended.
    """
    high = -1
    for k in range(sides):
        if at[k] == count[k]:
            return -1, -1
        high = max(high, rows[k, at[k]])
    low = high
    for k in range(sides):
        while at[k] < count[k] and rows[k, at[k]] <= high:
            at[k] += 1
        low = min(low, rows[k, at[k] - 1])
    for k in range(sides):
        while at[k] > 0 and rows[k, at[k] - 1] > low:
            at[k] -= 1
    return low, high


@numba.njit(cache=True, nogil=True, inline="always")
def _split(
    exact: Integers, factor: Floats, rows: Integers, count: Integers, at: Integers, sides: int,
    ranges: Integers, e: Integers, f: Floats, power: Floats,
) -> int:  # fmt: skip
    """Split the candidates of the present columns by lower sides; return the number of parts.

    A part is a range of lower sides with their least upper side, and the sum over its candidates.

    Parameters
    ----------
    exact, factor : array of int and array of float
        The tree over the rows.
    rows, count : arrays of int
        For each side of the box, the rows of points on it, in order, and their number.
    at : array of int
        Room for a place in each of these lists.
    sides : {2, 4}
        How many sides have lists: left and right, or near and far as well.
    ranges : array of int
        Room for the parts: first and last lower side, and least upper side.
    e, f : array of int and array of float
        Room for the sum of each part.
    power : array of float
        Powers q^-d.
    """
    for k in range(sides):
        at[k] = 0
    parts, first, before = 0, 0, 0
    while True:
        low, high = _next_range(rows, count, at, sides)
        if low < 0:
            return parts
        low_e, low_f, gain = _lows(exact, factor, first, low, power)
        before += gain
        if high > low:
            high_e, high_f, after = _highs(exact, factor, high, power)
            between = exact[1, 0] - before - after
        else:  # the box may end in the row where its lower sides end
            high_e, high_f, after = _highs(exact, factor, low + 1, power)
            high_e, high_f = _add(high_e, high_f, 0, 1.0, power)
            between = 0
        ranges[parts, 0], ranges[parts, 1], ranges[parts, 2] = first, low, high
        e[parts], f[parts] = low_e + between + high_e, low_f * high_f
        parts += 1
        first = low + 1


@numba.njit(cache=True, nogil=True, inline="always")
def _enlist(rows: Integers, count: Integers, side: int, row: int) -> None:
    """Put a row into the sorted list of a side."""
    k = count[side]
    while k > 0 and rows[side, k - 1] > row:
        rows[side, k] = rows[side, k - 1]
        k -= 1
    rows[side, k] = row
    count[side] += 1


@numba.njit(cache=True, nogil=True)
def _sweep(
    board: Board, near: int, far: int, left: int, last: int, work: Work, power: Floats,
    e: Integers, f: Floats,
) -> int:  # fmt: skip
    """Fill ``e, f`` for each right column up to ``last``; return the parts of the last one.

    ``near`` and ``far`` are the outer layers of the board. Where there is a single layer, any point
    lies on these sides, and they need no lists.

    Parameters
    ----------
    board : Board
        The cells.
    near, far : int
        First and last layer of the boxes.
    left : int
        Their first column.
    last : int
        The last right column that is looked at.
    work : Work
        Working memory, which holds the parts of the last right column in the end.
    power : array of float
        Powers q^-d.
    e, f : array of int and array of float
        Room for the sum of each right column.
    """
    layer, row, gain, holds, start, sizes = board
    exact, factor, rows, ranges, part_e, part_f, scratch_e, scratch_f = work
    sides = 4 if sizes[0] > 1 else 2
    for node in range(len(exact)):
        exact[node, 0], exact[node, 1], exact[node, 2] = 0, EMPTY, EMPTY
        factor[node, 0], factor[node, 1] = 0.0, 0.0
    count, at = np.zeros(4, np.int64), np.zeros(4, np.int64)
    parts = 0
    for right in range(left, last + 1):
        count[1] = 0
        for c in range(start[right], start[right + 1]):
            _insert(exact, factor, row[c], gain[c], holds[c], power)
            if holds[c]:
                if right == left:
                    _enlist(rows, count, 0, row[c])
                _enlist(rows, count, 1, row[c])
                if sides == 4 and layer[c] == near:
                    _enlist(rows, count, 2, row[c])
                if sides == 4 and layer[c] == far:
                    _enlist(rows, count, 3, row[c])
        parts = _split(exact, factor, rows, count, at, sides, ranges, part_e, part_f, power)
        for k in range(parts):
            scratch_e[k], scratch_f[k] = part_e[k], part_f[k]
        e[right], f[right] = add_up(scratch_e, scratch_f, parts, power)
    return parts


@numba.njit(cache=True, nogil=True)
def _last_left(board: Board, near: int, far: int) -> int:
    """Return the last column from which points of both layers can still be reached."""
    columns = board.sizes[1]
    if board.sizes[0] == 1:
        return columns - 1
    last_near = last_far = -1
    for x in range(columns):
        for c in range(board.start[x], board.start[x + 1]):
            if board.holds[c] and board.layer[c] == near:
                last_near = x
            if board.holds[c] and board.layer[c] == far:
                last_far = x
    return min(last_near, last_far)


@numba.njit(cache=True, nogil=True)
def left_totals(board: Board, near: int, far: int, power: Floats) -> tuple[Integers, Floats]:
    """Sum over the candidates with each left column, between two layers.

    Parameters
    ----------
    board : Board
        The cells.
    near, far : int
        First and last layer of the boxes.
    power : array of float
        Powers q^-d.
    """
    work = _work(board)
    columns = board.sizes[1]
    total_e, total_f = np.full(columns, EMPTY), np.zeros(columns)
    e, f = np.empty(columns, np.int64), np.empty(columns)
    for left in range(_last_left(board, near, far) + 1):
        if board.start[left] < board.start[left + 1]:  # else no point lies on that side
            _sweep(board, near, far, left, columns - 1, work, power, e, f)
            total_e[left], total_f[left] = add_up(e[left:], f[left:], columns - left, power)
    return total_e, total_f


@numba.njit(cache=True, nogil=True)
def right_totals(
    board: Board, near: int, far: int, left: int, last: int, power: Floats
) -> tuple[Integers, Floats, Integers, Integers, Floats]:
    """Sum over the candidates with each right column from ``left`` to ``last``.

    Also return the parts of the last one: ranges of lower sides, each with its least upper side.

    Parameters
    ----------
    board : Board
        The cells.
    near, far : int
        First and last layer of the boxes.
    left : int
        Their first column.
    last : int
        The last right column that is looked at.
    power : array of float
        Powers q^-d.
    """
    work = _work(board)
    e, f = np.empty(last + 1, np.int64), np.empty(last + 1)
    parts = _sweep(board, near, far, left, last, work, power, e, f)
    return e[left:], f[left:], work.ranges[:parts], work.e[:parts], work.f[:parts]


# The best box. A node of the tree over rows holds the gains of all its rows, of its best first
# rows, of its best last rows and of its best range, each as two limbs and, but for the first, at
# least 0.


@numba.njit(cache=True, nogil=True, inline="always")
def _plus(a: int, b: int, c: int, d: int) -> tuple[int, int]:
    low = b + d
    return a + c + (low >> LIMB), low & MASK


@numba.njit(cache=True, nogil=True, inline="always")
def _larger(a: int, b: int, c: int, d: int) -> tuple[int, int]:
    if a > c or (a == c and b >= d):
        return a, b
    return c, d


@numba.njit(cache=True, nogil=True)
def _insert_gain(tree: Integers, row: int, high: int, low: int) -> None:
    node = row + len(tree) // 2
    high, low = _plus(tree[node, 0], tree[node, 1], high, low)
    tree[node, 0], tree[node, 1] = high, low
    high, low = _larger(high, low, 0, 0)
    for k in range(2, 8, 2):
        tree[node, k], tree[node, k + 1] = high, low
    node >>= 1
    while node:
        a, b, t = tree[2 * node], tree[2 * node + 1], tree[node]
        t[0], t[1] = _plus(a[0], a[1], b[0], b[1])
        high, low = _plus(a[0], a[1], b[2], b[3])
        t[2], t[3] = _larger(a[2], a[3], high, low)
        high, low = _plus(b[0], b[1], a[4], a[5])
        t[4], t[5] = _larger(b[4], b[5], high, low)
        high, low = _plus(a[4], a[5], b[2], b[3])
        high, low = _larger(a[6], a[7], high, low)
        t[6], t[7] = _larger(high, low, b[6], b[7])
        node >>= 1


@numba.njit(cache=True, nogil=True)
def best_columns(
    board: Board, low: Integers, layers: NDArray[np.bool_], columns: NDArray[np.bool_]
) -> tuple[int, int, int, int]:
    """Return layers and columns (near, far, left, right) of the first best box; -1 if none gains.

    Parameters
    ----------
    board : Board
        The cells, with the high limbs of the gains.
    low : array of int
        The low limbs of the gains.
    layers, columns : arrays of bool
        Which layers and columns have a cell that gains: only these may be outer ones of a
        best box.
    """
    size = 1
    while size < board.sizes[2]:
        size *= 2
    tree = np.empty((2 * size, 8), np.int64)
    best = (-1, -1, -1, -1)
    top, rest = 0, 0
    for near in range(board.sizes[0]):
        for far in range(near, board.sizes[0]):
            for left in range(board.sizes[1]):
                if not (layers[near] and layers[far] and columns[left]):
                    continue
                tree[:] = 0
                for right in range(left, board.sizes[1]):
                    for c in range(board.start[right], board.start[right + 1]):
                        if near <= board.layer[c] <= far:
                            _insert_gain(tree, board.row[c], board.gain[c], low[c])
                    t = tree[1]
                    if columns[right] and (t[6] > top or (t[6] == top and t[7] > rest)):
                        top, rest = t[6], t[7]
                        best = (near, far, left, right)
    return best
