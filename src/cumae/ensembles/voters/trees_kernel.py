"""Compiled evaluation of many trees.

Rows are ranks among all cuts of a column, which fit 16 bits, and a complete tree is evaluated from
its leaves to its root for a block of rows, choosing at each node between what its two sides found.
That takes more comparisons than a walk from the root, but the processor does many of them at once
and never has to guess.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers

Short = NDArray[np.int16]

BLOCK = 512  # rows whose ranks stay in the first cache
MOST_TREES = 30_000  # whose votes 16 bits can count


@numba.njit(cache=True, nogil=True)
def complete(
    rows: Floats,
    used: Integers,
    starts: Integers,
    cuts: Floats,
    columns: NDArray[np.int32],
    places: Short,
    labels: Short,
    depth: int,
    votes: Integers,
) -> None:
    """Add the votes of complete trees.

    Parameters
    ----------
    rows : array of float
        The rows, all of them finite.
    used, starts, cuts, columns, places, labels : array
        As in ``TreeVoters``.
    depth : int
        Depth of the trees.
    votes : array of int
        The votes so far, by row and class.
    """
    n_classes, size = votes.shape[1], len(columns)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        ranks = np.empty((len(used), len(block)), dtype=np.int16)
        _rank(block, used, starts, cuts, ranks)
        found = np.empty((2 << (depth - 2), len(block)), dtype=np.int16)
        for first in range(0, size, MOST_TREES):
            last = min(size, first + MOST_TREES)
            counts = np.zeros((n_classes, len(block)), dtype=np.int16)
            some = (columns[first:last], places[first:last], labels[first:last])
            _add(ranks, some[0], some[1], some[2], depth, found, counts)
            for row in range(len(block)):
                votes[start + row, 0] += last - first
                for k in range(1, n_classes):
                    votes[start + row, k] += counts[k, row]
                    votes[start + row, 0] -= counts[k, row]


@numba.njit(cache=True, nogil=True)
def _rank(rows: Floats, used: Integers, starts: Integers, cuts: Floats, ranks: Short) -> None:
    """Write for each used column and row how many cuts are smaller."""
    for column in range(len(used)):
        first, size = starts[column], starts[column + 1] - starts[column]
        for row in range(len(rows)):
            value, low, left = rows[row, used[column]], first, size
            while left > 1:  # no branch depends on the value, so the processor never guesses wrong
                low = low + (left >> 1) if cuts[low + (left >> 1) - 1] < value else low
                left -= left >> 1
            ranks[column, row] = low - first + (left == 1 and cuts[low] < value)


@numba.njit(cache=True, nogil=True)
def _add(
    ranks: Short,
    columns: NDArray[np.int32],
    places: Short,
    labels: Short,
    depth: int,
    found: Short,
    counts: Short,
) -> None:
    """Add the votes for all classes but the first, two levels at a time, from the leaves up."""
    half, count = 1 << (depth - 2), ranks.shape[1]
    for tree in range(len(columns)):
        for k in range(half):
            root = half - 1 + k
            left, right = 2 * root + 1, 2 * root + 2
            t0, t1, t2 = places[tree, root], places[tree, left], places[tree, right]
            x0, x1 = ranks[columns[tree, root]], ranks[columns[tree, left]]
            x2, out = ranks[columns[tree, right]], found[k]
            a, b = labels[tree, 4 * k], labels[tree, 4 * k + 1]
            c, d = labels[tree, 4 * k + 2], labels[tree, 4 * k + 3]
            for row in range(count):
                below, above = (b if x1[row] > t1 else a), (d if x2[row] > t2 else c)
                out[row] = above if x0[row] > t0 else below
        level, now = half // 4, half
        while level > 0:
            for k in range(level):
                root, other = level - 1 + k, half - now + 4 * k
                left, right = 2 * root + 1, 2 * root + 2
                t0, t1, t2 = places[tree, root], places[tree, left], places[tree, right]
                x0, x1 = ranks[columns[tree, root]], ranks[columns[tree, left]]
                x2, out = ranks[columns[tree, right]], found[now + k]
                fa, fb, fc, fd = found[other], found[other + 1], found[other + 2], found[other + 3]
                for row in range(count):
                    va, vb, vc, vd = fa[row], fb[row], fc[row], fd[row]
                    below, above = (vb if x1[row] > t1 else va), (vd if x2[row] > t2 else vc)
                    out[row] = above if x0[row] > t0 else below
            level //= 4
            now = half - now
        answer = found[half - now]
        for k in range(1, len(counts)):
            mine = counts[k]
            for row in range(len(mine)):
                mine[row] += np.int16(answer[row] == k)


@numba.njit(cache=True, nogil=True)
def walk(
    rows: Floats,
    roots: Integers,
    columns: Integers,
    cuts: Floats,
    left: Integers,
    right: Integers,
    labels: Integers,
    votes: Integers,
) -> None:
    """Add the votes of trees of any shape."""
    for start in range(0, len(rows), BLOCK):
        stop = min(len(rows), start + BLOCK)
        for tree in range(len(roots) - 1):
            for row in range(start, stop):
                node = roots[tree]
                while columns[node] >= 0:
                    above = rows[row, columns[node]] > cuts[node]
                    node = right[node] if above else left[node]
                votes[row, labels[node]] += 1
