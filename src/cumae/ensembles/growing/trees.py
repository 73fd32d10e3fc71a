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
    with np.errstate(all="ignore"):  # whatever a cell holds, nobody hears of it
        single = np.ascontiguousarray(rows, dtype=np.float32)
    depth = sys.maxsize if model.max_depth is None else int(model.max_depth)
    kinds, sizes, depths, columns, cuts, left, right, labels = _grow_all(
        single, weights, starts, seeds, depth, balanced
    )

    def first(shard: int) -> int:
        return _room(int(starts[shard]), shard)

    def learnt(shard: int) -> Nodes:
        part = slice(first(shard), first(shard) + int(sizes[shard]))
        arrays = (columns[part], cuts[part], left[part], right[part], labels[part])
        return Nodes(*arrays, int(depths[shard]), rows.shape[1], single=True)

    return models_of(kinds, lambda shard: int(labels[first(shard)]), learnt)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _room(start: int, shard: int) -> int:
    """Return where the nodes of a shard start: a tree of n rows has up to 2 n - 1, or one."""
    return 2 * start + shard


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _grow_all(
    rows: Single,
    weights: Integers,
    starts: Integers,
    seeds: Integers,
    max_depth: int,
    balanced: bool,
) -> tuple[Integers, Integers, Integers, Integers, Floats, Integers, Integers, Integers]:
    """Return what came of each shard, the size and depth of its tree, and the nodes of all."""
    count = len(starts) - 1
    kinds = np.empty(count, dtype=np.int64)
    sizes, depths = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    room = _room(starts[count], count)
    columns, cuts = np.full(room, LEAF), np.zeros(room)
    left, right = np.full(room, LEAF), np.full(room, LEAF)
    labels = np.zeros(room, dtype=np.int64)
    for shard in range(count):
        first, last = starts[shard], starts[shard + 1]
        sums = weights[first:last].sum(axis=0)
        present = (sums > 0).sum()
        at = _room(first, shard)
        if present == 0:
            kinds[shard] = NO_ROWS
        elif not np.isfinite(rows[first:last]).all():
            kinds[shard] = FAILED
        elif present == 1:
            kinds[shard], labels[at] = ONE_CLASS, np.argmax(sums)
        else:
            kinds[shard] = LEARNT
            shares = weights[first:last].astype(np.float64)
            if balanced:
                for k in range(len(sums)):
                    if sums[k] > 0:
                        shares[:, k] /= sums[k]
            end = _room(last, shard + 1)
            sizes[shard], depths[shard] = _grow(
                rows[first:last],
                shares,
                seeds[shard],
                max_depth,
                columns[at:end],
                cuts[at:end],
                left[at:end],
                right[at:end],
                labels[at:end],
            )
    return kinds, sizes, depths, columns, cuts, left, right, labels


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _grow(
    rows: Single,
    shares: Floats,
    seed: int,
    max_depth: int,
    columns: Integers,
    cuts: Floats,
    left: Integers,
    right: Integers,
    labels: Integers,
) -> tuple[int, int]:
    """Grow one tree into the arrays, left branches first; return its nodes and its depth."""
    order = np.flatnonzero(shares.sum(axis=1) > 0)  # rows without a weight are not there
    # Nodes that wait: the first and the last of their rows, their depth, and where they hang.
    waiting = [(0, len(order), 0, LEAF, False)]
    size, deepest = 0, 0
    state = np.array([seed], dtype=np.uint64)
    while len(waiting) > 0:
        first, last, depth, parent, is_right = waiting.pop()
        node, size = size, size + 1
        if parent != LEAF:
            (right if is_right else left)[parent] = node
        deepest = max(deepest, depth)
        here = order[first:last]
        sums = shares[here].sum(axis=0)
        labels[node] = np.argmax(sums)
        if depth >= max_depth or len(here) < 2 or _impurity(sums) <= PURE:
            continue
        column, cut = _best_cut(rows, shares, here, sums, state)
        if column == LEAF:
            continue
        columns[node], cuts[node] = column, cut
        above = rows[here, column] > cut
        kept, moved = here[~above], here[above]
        middle = first + len(kept)
        order[first:middle], order[middle:last] = kept, moved
        waiting.append((middle, last, depth + 1, node, True))
        waiting.append((first, middle, depth + 1, node, False))
    return size, deepest


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _best_cut(
    rows: Single, shares: Floats, here: Integers, sums: Floats, state: NDArray[np.uint64]
) -> tuple[int, float]:
    """Return the column and the cut with the purest sides; of equally good ones any column's."""
    found, cut, best = LEAF, 0.0, -np.inf
    for column in _shuffled(rows.shape[1], state):
        values = rows[here, column]
        ranked = np.argsort(values)
        values = values[ranked]
        if values[-1] <= values[0] + ALIKE:
            continue
        below = np.zeros(len(sums))
        for place in range(1, len(values)):
            below += shares[here[ranked[place - 1]]]
            if values[place] <= values[place - 1] + ALIKE:
                continue
            above = sums - below
            gain = -below.sum() * _impurity(below) - above.sum() * _impurity(above)
            if gain > best:
                middle = values[place - 1] / 2.0 + values[place] / 2.0
                if middle == values[place] or not np.isfinite(middle):
                    middle = np.float64(values[place - 1])
                found, cut, best = column, middle, gain
    return found, cut


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _shuffled(count: int, state: NDArray[np.uint64]) -> Integers:
    """Return the numbers below ``count`` in an order that the shard's seed decides (splitmix64).

    It only spreads ties over the columns; nobody's privacy rests on it.
    """
    found = np.arange(count)
    for place in range(count - 1, 0, -1):
        state[0] += np.uint64(0x9E3779B97F4A7C15)
        mixed = state[0]
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        other = np.int64((mixed ^ (mixed >> np.uint64(31))) % np.uint64(place + 1))
        found[place], found[other] = found[other], found[place]
    return found


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _impurity(sums: Floats) -> float:
    """Return Gini's impurity."""
    total = sums.sum()
    return float(1.0 - (sums * sums).sum() / (total * total))
