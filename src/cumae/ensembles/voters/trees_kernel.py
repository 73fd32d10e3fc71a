"""Compiled evaluation of many trees.

Rows are ranks among all cuts of a column, which fit 16 bits, and a complete tree is evaluated from
its leaves to its root for a block of rows, choosing at each node between what its two sides found.
That takes more comparisons than a walk from the root, but the processor does many of them at once
and never has to guess.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.ensembles.voters.ranks import count_below

Short = NDArray[np.int16]

BLOCK = 512  # rows whose ranks stay in the first cache
MOST_TREES = 30_000  # whose votes 16 bits can count


@numba.njit(cache=True, nogil=True)
def _rank(rows: Floats, used: Integers, starts: Integers, cuts: Floats, ranks: Short) -> None:
    """Write for each row and used column how many cuts are smaller."""
    for column in range(len(used)):
        mine = cuts[starts[column] : starts[column + 1]]
        for row in range(len(rows)):
            ranks[column, row] = count_below(mine, rows[row, used[column]])


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
    """Add the votes of complete trees."""
    n_classes, size = votes.shape[1], len(columns)
    all_ranks = np.zeros((len(used), BLOCK), dtype=np.int16)
    all_found = np.zeros((2, 1 << (depth - 2), BLOCK), dtype=np.int16)
    counts = np.zeros((n_classes, BLOCK), dtype=np.int16)
    for start in range(0, len(rows), BLOCK):
        count = min(BLOCK, len(rows) - start)
        _rank(rows[start : start + count], used, starts, cuts, all_ranks)
        for first in range(0, size, MOST_TREES):
            counts[:] = 0
            last = min(size, first + MOST_TREES)
            for tree in range(first, last):
                nodes = (columns[tree], places[tree], labels[tree])
                found = _evaluate(all_ranks, count, nodes, depth, all_found)
                for k in range(1, n_classes):
                    mine = counts[k, :count]
                    for row in range(count):
                        mine[row] += np.int16(found[row] == k)
            for row in range(count):
                others = 0
                for k in range(1, n_classes):
                    votes[start + row, k] += counts[k, row]
                    others += counts[k, row]
                votes[start + row, 0] += last - first - others


@numba.njit(cache=True, nogil=True)
def _evaluate(
    ranks: Short, count: int, nodes: tuple[Any, Short, Short], depth: int, found: Short
) -> Short:
    """Evaluate one tree for a block of rows, two levels at a time, from the leaves to the root."""
    columns, places, labels = nodes
    for k in range(1 << (depth - 2)):
        root = (1 << (depth - 2)) - 1 + k
        t0, t1, t2 = places[root], places[2 * root + 1], places[2 * root + 2]
        x0 = ranks[columns[root], :count]
        x1, x2 = ranks[columns[2 * root + 1], :count], ranks[columns[2 * root + 2], :count]
        a, b, c, d = labels[4 * k], labels[4 * k + 1], labels[4 * k + 2], labels[4 * k + 3]
        out = found[0, k, :count]
        for row in range(count):
            below = b if x1[row] > t1 else a
            above = d if x2[row] > t2 else c
            out[row] = above if x0[row] > t0 else below
    level, now = depth - 4, 0
    while level >= 0:
        for k in range(1 << level):
            root = (1 << level) - 1 + k
            t0, t1, t2 = places[root], places[2 * root + 1], places[2 * root + 2]
            x0 = ranks[columns[root], :count]
            x1, x2 = ranks[columns[2 * root + 1], :count], ranks[columns[2 * root + 2], :count]
            fa, fb = found[now, 4 * k, :count], found[now, 4 * k + 1, :count]
            fc, fd = found[now, 4 * k + 2, :count], found[now, 4 * k + 3, :count]
            out = found[1 - now, k, :count]
            for row in range(count):
                va, vb, vc, vd = fa[row], fb[row], fc[row], fd[row]
                below = vb if x1[row] > t1 else va
                above = vd if x2[row] > t2 else vc
                out[row] = above if x0[row] > t0 else below
        level -= 2
        now = 1 - now
    return found[now, 0, :count]


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
