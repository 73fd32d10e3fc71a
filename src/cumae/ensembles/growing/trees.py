"""Decision trees of many small shards at once.

scikit-learn takes some milliseconds to check the rows of a small shard and microseconds to grow a
tree from them: with 10,000 shards, nearly all of half a minute went into checks. Here the same
trees are grown in one loop. They are the same where one cut is best; of cuts that are equally good,
both take one at random, by the shard's own seed. A shard whose rows it cannot handle is left to
scikit-learn, so that what is learnt from a shard depends on its own rows and seed alone.
"""

from __future__ import annotations

import sys
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.data import Columns, read_table
from cumae.ensembles.growing.outcomes import FAILED, LEARNT, NO_ROWS, ONE_CLASS, models_of
from cumae.ensembles.voters.trees import Nodes

Single = NDArray[np.float32]

FREE = ("max_depth",)  # parameters that may have any value; this loop knows the usual ones only
ALIKE = np.float32(1e-7)  # values this close are not cut apart, as in scikit-learn
PURE = float(np.finfo(np.float64).eps)  # impurity of a leaf, as in scikit-learn
LEAF = -1


@claim("SHARDS", "EVER")
def can_grow(model: Any) -> bool:
    """Tell from the estimator alone whether ``many_trees`` applies: only a depth is set."""
    if type(model) is not DecisionTreeClassifier:
        return False
    usual = DecisionTreeClassifier().get_params(deep=False)
    given = model.get_params(deep=False)
    depth = given["max_depth"]
    return (depth is None or isinstance(depth, int)) and all(
        given[name] is usual[name] or given[name] == usual[name]
        for name in usual
        if name not in FREE
    )


@claim("SHARDS", "EVER")
def grown(
    model: Any,
    columns: Columns | None,
    rows: Any,
    weights: Integers,
    starts: Integers,
    seeds: Integers,
    *,
    balanced: bool,
) -> tuple[list[Any], Integers] | None:
    """As ``many_trees``, for rows as shards get them; None if it does not apply.

    That follows from the estimator and from whether the rows are an array or a frame.
    """
    if (columns is None and not isinstance(rows, np.ndarray)) or not can_grow(model):
        return None
    numbers_only = columns is None or columns.numbers_only
    read = numbers_only and isinstance(rows, np.ndarray) and rows.dtype == np.float64
    table = rows if read else read_table(rows, columns)
    return many_trees(model, table, weights, starts, seeds, balanced=balanced)


@claim("SHARDS", "EVER")
def many_trees(
    model: DecisionTreeClassifier,
    rows: Floats,
    weights: Integers,
    starts: Integers,
    seeds: Integers,
    *,
    balanced: bool,
) -> tuple[list[Any], Integers]:
    """Return a tree for each shard, a slice of the rows, and the shards left to scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from cumae.ensembles.growing.trees import many_trees
    >>> rows, weights = np.array([[1.0], [3.0], [2.0]]), np.array([[1, 0], [0, 1], [0, 5]])
    >>> models, left = many_trees(
    ...     DecisionTreeClassifier(),
    ...     rows,
    ...     weights,
    ...     np.array([0, 2, 3]),
    ...     np.arange(2),
    ...     balanced=True,
    ... )
    >>> models[0].cuts.tolist(), models[0].labels.tolist(), models[1], left.tolist()
    ([2.0, 0.0, 0.0], [0, 0, 1], 1, [])
    """
    with np.errstate(all="ignore"):  # no cell may cause a warning
        single = np.ascontiguousarray(rows, dtype=np.float32)
    sums = _by_shard(weights, starts)
    present = (sums > 0).sum(axis=1)
    unusable = _by_shard(np.asarray(~np.isfinite(single).all(axis=1)), starts) > 0
    kinds = np.select([present == 0, unusable, present == 1], [NO_ROWS, FAILED, ONE_CLASS], LEARNT)
    shard_of = np.repeat(np.arange(len(kinds)), np.diff(starts))
    # Rows without a weight are not there.
    kept = np.flatnonzero((kinds[shard_of] == LEARNT) & (weights.sum(axis=1) > 0))
    totals = np.maximum(sums, 1) if balanced else np.ones_like(sums)
    shares = weights[kept] / totals[shard_of[kept]]
    ends = np.searchsorted(shard_of[kept], np.arange(len(kinds) + 1))
    depth = sys.maxsize if model.max_depth is None else int(model.max_depth)
    nodes, cuts, sizes = _grown(single[kept], shares, ends, seeds, depth)

    def learnt(shard: int) -> Nodes:
        size, deepest = sizes[:, shard].tolist()
        part = slice(2 * int(ends[shard]), 2 * int(ends[shard]) + size)
        columns, left, right, labels = nodes[:, part]
        return Nodes(columns, cuts[part], left, right, labels, deepest, rows.shape[1], single=True)

    return models_of(kinds, lambda shard: int(np.argmax(sums[shard])), learnt)


def _by_shard(numbers: NDArray[Any], starts: Integers) -> Integers:
    """Return sums over the rows of each shard; whole numbers, so that no other shard matters."""
    before = np.zeros((len(numbers) + 1, *numbers.shape[1:]), dtype=np.int64)
    np.cumsum(numbers, axis=0, out=before[1:])
    return before[starts[1:]] - before[starts[:-1]]


def _grown(
    rows: Single, shares: Floats, starts: Integers, seeds: Integers, max_depth: int
) -> tuple[Integers, Floats, Integers]:
    """Return all nodes, the cuts in them, and the size and depth of each shard's tree.

    A tree of n rows has less than 2 n nodes, and they start at twice the place of its first row.
    """
    n_rows, largest = len(rows), int(np.diff(starts).max(initial=0))
    nodes, cuts = np.full((4, 2 * n_rows), LEAF), np.zeros(2 * n_rows)
    sizes = np.zeros((2, len(starts) - 1), dtype=np.int64)
    _grow_all(
        rows,
        shares,
        np.arange(n_rows),
        starts,
        seeds,
        max_depth,
        nodes,
        cuts,
        sizes,
        np.empty((largest + 1, 4), dtype=np.int64),
        np.empty(largest, dtype=np.int64),
        np.empty(largest, dtype=np.float32),
        np.empty(rows.shape[1], dtype=np.int64),
        np.empty((2, shares.shape[1])),
    )
    return nodes, cuts, sizes


# What follows is compiled at its first use. It consists of loops over arrays that numpy made
# before, because numba takes half a second for each expression on whole arrays. Helpers have
# ``inline="always"``, because numba would compile a called function twice.


@numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _shuffle(found: Integers, state: np.uint64) -> np.uint64:
    """Write the columns in an order that the shard's seed decides (splitmix64); return its state.

    It only spreads ties over the columns; nobody's privacy rests on it.
    """
    for place in range(len(found)):
        found[place] = place
    for place in range(len(found) - 1, 0, -1):
        state += np.uint64(0x9E3779B97F4A7C15)
        mixed = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        other = np.int64((mixed ^ (mixed >> np.uint64(31))) % np.uint64(place + 1))
        found[place], found[other] = found[other], found[place]
    return state


@numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _sum_up(
    shares: Floats, order: Integers, first: int, last: int, sums: Floats
) -> tuple[int, float]:
    """Put the sums of a node's shares into ``sums[0]``; return its label and Gini's impurity."""
    label, total, squares = 0, 0.0, 0.0
    for k in range(sums.shape[1]):
        share = 0.0
        for place in range(first, last):
            share += shares[order[place], k]
        sums[0, k] = share
        total += share
        squares += share * share
        if share > sums[0, label]:
            label = k
    return label, 1.0 - squares / (total * total)


@numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _best_cut(  # noqa: C901 - a helper of its own for sorting would be compiled twice
    rows: Single,
    shares: Floats,
    order: Integers,
    first: int,
    last: int,
    sums: Floats,
    tried: Integers,
    values: Single,
    ranked: Integers,
) -> tuple[int, float]:
    """Return the column and the cut with the purest sides; of equally good ones any column's."""
    found, cut, best = LEAF, 0.0, -np.inf
    count = last - first
    for column in tried:
        for place in range(count):
            ranked[place] = order[first + place]
            values[place] = rows[ranked[place], column]
        gap = 1  # Shell's method sorts the values, and the rows alike
        while gap < count:
            gap = 3 * gap + 1
        while gap > 1:
            gap //= 3
            for i in range(gap, count):
                value, row, to = values[i], ranked[i], i
                while to >= gap and values[to - gap] > value:
                    values[to] = values[to - gap]
                    ranked[to] = ranked[to - gap]
                    to -= gap
                values[to] = value
                ranked[to] = row
        for k in range(sums.shape[1]):
            sums[1, k] = 0.0
        for place in range(1, count):
            below, above = 0.0, 0.0
            squares_below, squares_above = 0.0, 0.0
            for k in range(sums.shape[1]):
                under = sums[1, k] + shares[ranked[place - 1], k]
                sums[1, k] = under
                over = sums[0, k] - under
                below += under
                above += over
                squares_below += under * under
                squares_above += over * over
            if values[place] <= values[place - 1] + ALIKE:
                continue
            impure = below * (1.0 - squares_below / (below * below))
            gain = -impure - above * (1.0 - squares_above / (above * above))
            if gain > best:
                middle = values[place - 1] / 2.0 + values[place] / 2.0
                if middle == values[place] or not abs(middle) < np.inf:
                    middle = float(values[place - 1])
                found, cut, best = column, middle, gain
    return found, cut


@numba.njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _divide(
    rows: Single,
    order: Integers,
    first: int,
    last: int,
    column: int,
    cut: float,
    moved: Integers,
) -> int:
    """Put the rows at or below the cut before the others; return where these begin."""
    middle, above = first, 0
    for place in range(first, last):
        row = order[place]
        if rows[row, column] > cut:
            moved[above] = row
            above += 1
        else:
            order[middle] = row
            middle += 1
    for place in range(above):
        order[middle + place] = moved[place]
    return middle


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _grow_all(
    rows: Single,
    shares: Floats,
    order: Integers,
    starts: Integers,
    seeds: Integers,
    max_depth: int,
    nodes: Integers,
    cuts: Floats,
    sizes: Integers,
    waiting: Integers,
    moved: Integers,
    values: Single,
    tried: Integers,
    sums: Floats,
) -> None:
    """Grow a tree for each shard, left branches first.

    Parameters
    ----------
    rows, shares : array of float
        The rows, and how much each counts for each class.
    order, starts, seeds : array of int
        The numbers of the rows, where each shard begins among them, and its seed.
    max_depth : int
        Depth of the trees.
    nodes, cuts, sizes : array
        Room for the columns, left and right sides and labels of the nodes, for their cuts, and for
        the size and depth of each tree.
    waiting : array of int
        Room for right sides that wait: their first and last row, depth and parent.
    moved, values, tried, sums : array
        Room for rows that move, their values, the columns in an order, and sums of shares.
    """
    for shard in range(len(starts) - 1):
        state = np.uint64(seeds[shard])
        root = node = 2 * starts[shard]
        first, last, depth = starts[shard], starts[shard + 1], 0
        wait = 0 if first < last else -1  # right sides that wait; -1 ends the tree
        while wait >= 0:
            sizes[1, shard] = max(sizes[1, shard], depth)
            label, impurity = _sum_up(shares, order, first, last, sums)
            nodes[3, node] = label
            column, cut = LEAF, 0.0
            if depth < max_depth and last - first > 1 and impurity > PURE:
                state = _shuffle(tried, state)
                column, cut = _best_cut(
                    rows, shares, order, first, last, sums, tried, values, moved
                )
            if column != LEAF:
                nodes[0, node], cuts[node] = column, cut
                middle = _divide(rows, order, first, last, column, cut, moved)
                depth += 1
                waiting[wait, 0], waiting[wait, 1] = middle, last
                waiting[wait, 2], waiting[wait, 3] = depth, node
                wait += 1
                last = middle  # the left side is next
                nodes[1, node] = node + 1 - root
            else:
                wait -= 1
                if wait >= 0:
                    first, last, depth = waiting[wait, 0], waiting[wait, 1], waiting[wait, 2]
                    nodes[2, waiting[wait, 3]] = node + 1 - root
            node += 1
        sizes[0, shard] = node - root
