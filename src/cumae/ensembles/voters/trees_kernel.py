"""Compiled evaluation of many trees.

Rows are ranks among all cuts of a column, which fit 16 bits, and a complete tree is evaluated from
its leaves to its root for a block of rows, choosing at each node between what its two sides found.
That takes more comparisons than a walk from the root, but the processor does many of them at once
and never has to guess. For a few rows the walk is quicker. Both compare the same whole numbers.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.ensembles.voters.ranks import BLOCK, Short

MOST_TREES = 30_000  # whose votes 16 bits can count
FEW_ROWS = 4  # for which it is quicker to walk from the root


def complete(
    ranks: Short,
    columns: NDArray[np.int32],
    places: Short,
    labels: Short,
    depth: int,
    votes: Integers,
) -> None:
    """Add the votes of complete trees.

    Parameters
    ----------
    ranks : array of int
        What ``rank`` found for some rows: how many cuts of each used column are smaller.
    columns, places, labels : array
        As in ``TreeVoters``.
    depth : int
        Depth of the trees.
    votes : array of int
        The votes so far, by row and class.
    """
    if len(votes) <= FEW_ROWS:
        _descend(ranks, columns, places, labels, depth, votes)
        return
    votes[:, 0] += len(columns)
    found = np.empty((2 << (depth - 2), len(votes)), dtype=np.int16)
    for first in range(0, len(columns), MOST_TREES):
        some = slice(first, first + MOST_TREES)
        counts = np.zeros(votes.shape[::-1], dtype=np.int16)
        _add(ranks, columns[some], places[some], labels[some], depth, found, counts)
        votes += counts.T
        votes[:, 0] -= counts.sum(axis=0)


# Python calls each compiled loop by itself, because numba would compile a called function twice.


@numba.njit(cache=True, nogil=True)
def _descend(
    ranks: Short,
    columns: NDArray[np.int32],
    places: Short,
    labels: Short,
    depth: int,
    votes: Integers,
) -> None:
    """Add the votes for a few rows, from the root of each tree to a leaf."""
    inner = columns.shape[1]
    for row in range(len(votes)):
        for tree in range(len(columns)):
            node = 0
            for _ in range(depth):
                right = ranks[columns[tree, node], row] > places[tree, node]
                node = 2 * node + 1 + int(right)
            votes[row, labels[tree, node - inner]] += 1


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
                fa, fb = found[other], found[other + 1]
                fc, fd = found[other + 2], found[other + 3]
                for row in range(count):
                    # Read before they are compared, so that the processor chooses without a branch.
                    va, vb = fa[row], fb[row]
                    vc, vd = fc[row], fd[row]
                    below, above = (vb if x1[row] > t1 else va), (vd if x2[row] > t2 else vc)
                    out[row] = above if x0[row] > t0 else below
            level //= 4
            now = half - now
        answer = found[half - now]
        for k in range(1, len(counts)):
            mine = counts[k]
            for row in range(count):
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
