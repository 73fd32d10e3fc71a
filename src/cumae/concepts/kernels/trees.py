"""Kernels of the trees: counting rows in cells, adding up trees, and searching the best one.

Cuts are numbered 0 to K - 1, column by column and upwards within a column; those of column c are
``starts[c]`` to ``starts[c + 1] - 1``. A cut holds for a row whose value is at least the cut.
The code of a row in a column is the number of cuts that hold, which are the lowest ones.

A sum of weights q^score is stored as q^best * rest with ``best`` the exact largest score in it and
``rest`` >= 1; ``decay[d]`` is q^-d. Only positive numbers are ever added.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers, Words

Codes: TypeAlias = NDArray[np.int32]

BLOCK = 2**14  # rows that are compared with all cuts of a column at once
FEW_CUTS = 64
TABLE = 2**16  # cells of a table of cuts by cuts that is added up in one go


def _count_ones(typing_context: Any, word: Any) -> Any:  # noqa: ARG001 - numba's convention
    """Return the number of ones in a 64-bit word: one machine instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


_popcount: Any = intrinsic(_count_ones)


def codes_of(table: Floats, starts: Integers, values: Floats) -> Codes:
    """Return the code of each row in each column, columns first.

    Parameters
    ----------
    table : array of float
        The rows.
    starts : array of int
        Where the cuts of each column begin, and the number of all cuts at the end.
    values : array of float
        The cuts.
    """
    codes = np.zeros((table.shape[1], len(table)), dtype=np.int32)
    for column in range(len(codes)):
        cuts = values[starts[column] : starts[column + 1]]
        if len(cuts) > FEW_CUTS:
            codes[column] = np.searchsorted(cuts, table[:, column], side="right")
            continue
        for block in range(0, len(table), BLOCK):
            cells = np.ascontiguousarray(table[block : block + BLOCK, column])
            held = np.zeros(len(cells), dtype=np.uint8)
            for cut in cuts:  # a search would be slower: its branches cannot be foreseen
                held += cells >= cut
            codes[column, block : block + BLOCK] = held
    return codes


def pack(codes: Codes, starts: Integers, y: Integers) -> tuple[Words, int]:
    """Return a bit for each cut and row, and where the words of label 1 begin.

    Rows with label 0 come first and each label starts a new word, so that counts by label are
    counts of ones in a range of words.

    Parameters
    ----------
    codes : array of int
        The code of each row in each column, columns first.
    starts : array of int
        Where the cuts of each column begin, and the number of all cuts at the end.
    y : array of int
        The labels, 0 or 1.
    """
    zeros = len(y) - int(y.sum())
    split = -(-zeros // 64)
    words = np.zeros((int(starts[-1]), split + -(-(len(y) - zeros) // 64)), dtype=np.uint64)
    order = np.argsort(y, kind="stable")
    for column in range(len(starts) - 1):
        cuts = words[starts[column] : starts[column + 1]].view(np.uint8)
        # Codes of one byte are compared many at once.
        kind = np.uint8 if len(cuts) < 256 else np.int32
        mine = codes[column].astype(kind)[order]
        for cut in range(len(cuts)):
            bits = mine > cut
            for held, first in ((bits[:zeros], 0), (bits[zeros:], 8 * split)):
                packed = np.packbits(held)  # in which order does not matter for counts
                cuts[cut, first : first + len(packed)] = packed
    return words, split


# Kernels are loops over arrays that numpy made before: numba takes half a second to compile each
# expression on whole arrays. What trees of depth 2 need is plain numpy as far as that is quick
# enough. Helpers have ``inline="always"``, because numba would compile a called function twice.


@numba.njit(cache=True, nogil=True)
def _common(a: Words, b: Words, first: int, last: int) -> np.int64:
    found = np.uint64(0)
    for word in range(first, last):
        found += _popcount(a[word] & b[word])
    return np.int64(found)


def single_counts(words: Words, split: int) -> Integers:
    """Return for each label how many rows each cut holds for."""
    ones = np.bitwise_count(words)
    parts = [part.sum(axis=1, dtype=np.int64) for part in (ones[:, :split], ones[:, split:])]
    return np.stack(parts)


def pair_counts(words: Words, split: int) -> Integers:
    """Return for each label how many rows each two cuts hold for."""
    counts = np.empty((2, len(words), len(words)), dtype=np.int64)
    _count_pairs(words, split, counts)
    return counts


@numba.njit(cache=True, nogil=True)
def _count_pairs(words: Words, split: int, counts: Integers) -> None:
    for i in range(len(words)):
        for j in range(i, len(words)):
            first, last = 0, split
            for label in range(2):
                found = np.uint64(0)
                for word in range(first, last):
                    found += _popcount(words[i, word] & words[j, word])
                counts[label, i, j] = counts[label, j, i] = found
                first, last = split, words.shape[1]


@numba.njit(cache=True, nogil=True, inline="always")
def _triple(i: int, j: int, k: int) -> int:
    """Return the place of i <= j <= k among all such triples."""
    return k * (k + 1) * (k + 2) // 6 + j * (j + 1) // 2 + i


@numba.njit(cache=True, nogil=True)
def triple_counts(words: Words, split: int, column: Integers, pairs: Integers) -> Integers:
    """Return for each label how many rows each three cuts i <= j <= k hold for.

    Parameters
    ----------
    words, split : array of words, and int
        What ``pack`` returned.
    column : array of int
        The column of each cut.
    pairs : array of int
        What ``pair_counts`` returned.
    """
    cuts = len(words)
    counts = np.empty((2, cuts * (cuts + 1) * (cuts + 2) // 6), dtype=np.int64)
    both = np.empty(words.shape[1], dtype=np.uint64)
    for i in range(cuts):
        for j in range(i, cuts):
            same = column[i] == column[j]  # then the upper cut implies the lower one
            if not same:
                for word in range(len(both)):
                    both[word] = words[i, word] & words[j, word]
            for k in range(j, cuts):
                place = _triple(i, j, k)
                if same:
                    counts[0, place], counts[1, place] = pairs[0, j, k], pairs[1, j, k]
                elif column[j] == column[k]:
                    counts[0, place], counts[1, place] = pairs[0, i, k], pairs[1, i, k]
                else:
                    counts[0, place] = _common(both, words[k], 0, split)
                    counts[1, place] = _common(both, words[k], split, len(both))
    return counts


def in_one(
    size: Integers, singles: Integers, pairs: Integers, i: int, side: int
) -> tuple[Integers, Integers]:
    """Return by label the rows on one side of cut i, and those of them that each cut holds for.

    Parameters
    ----------
    size : array of two int
        How many rows have each label.
    singles, pairs : arrays of int
        What ``single_counts`` and ``pair_counts`` returned.
    i : int
        The cut.
    side : {0, 1}
        1 for the rows that it holds for, 0 for the others.
    """
    if side:
        return singles[:, i], pairs[:, i]
    return size - singles[:, i], singles - pairs[:, i]


@numba.njit(cache=True, nogil=True)
def in_two(
    size: Integers,
    singles: Integers,
    pairs: Integers,
    triples: Integers,
    i: int,
    side: int,
    j: int,
    other: int,
) -> tuple[Integers, Integers]:
    """As ``in_one``, for rows on one side of cut i and on one of cut j.

    Parameters
    ----------
    size : array of two int
        How many rows have each label.
    singles, pairs, triples : arrays of int
        What ``single_counts``, ``pair_counts`` and ``triple_counts`` returned.
    i, j : int
        The two cuts.
    side, other : {0, 1}
        The sides of cut i and of cut j: 1 for the rows that it holds for, 0 for the others.
    """
    inside = np.empty(2, dtype=np.int64)
    held = np.empty(singles.shape, dtype=np.int64)
    low, high = min(i, j), max(i, j)
    for label in range(2):
        one, two, both = singles[label], pairs[label], pairs[label, i, j]
        if side:
            inside[label] = both if other else one[i] - both
        else:
            inside[label] = one[j] - both if other else size[label] - one[i] - one[j] + both
        for k in range(len(one)):
            if k >= high:
                place = _triple(low, high, k)
            else:
                place = _triple(low, k, high) if k >= low else _triple(k, low, high)
            three = triples[label, place]
            if side:
                held[label, k] = three if other else two[i, k] - three
            else:
                neither = one[k] - two[i, k] - two[j, k] + three
                held[label, k] = two[j, k] - three if other else neither
    return inside, held


def last_weights(inside: Integers, held: Integers, decay: Floats) -> tuple[Integers, Floats]:
    """Return the weights of the cuts for a node whose children are leaves.

    A leaf with a rows of label 0 and b of label 1 weighs q^a + q^b.

    Parameters
    ----------
    inside : array of int
        The rows of the node by label, in the shape of ``held``, with one cell for all cuts.
    held : array of int
        Those of them that each cut holds for, by label; cuts come last.
    decay : array of float
        Powers q^-d.
    """
    (a, b), (c, d) = held, inside - held
    best = np.maximum(a, b) + np.maximum(c, d)
    return best, (1.0 + decay[np.abs(a - b)]) * (1.0 + decay[np.abs(c - d)])


@numba.njit(cache=True, nogil=True)
def _sum_last(
    zeros: int, ones: int, held: Integers, decay: Floats, best: Integers, rest: Floats
) -> tuple[int, float]:
    """Add up the weights of ``last_weights``.

    Parameters
    ----------
    zeros, ones : int
        The rows of the node with label 0, and those with label 1.
    held, decay : array
        As in ``last_weights``.
    best, rest : array of int and array of float
        Room for the weights, one for each cut.
    """
    for cut in range(held.shape[1]):
        a, b = held[0, cut], held[1, cut]
        c, d = zeros - a, ones - b
        best[cut] = max(a, b) + max(c, d)
        rest[cut] = (1.0 + decay[abs(a - b)]) * (1.0 + decay[abs(c - d)])
    return total(best, rest, decay)


@numba.njit(cache=True, nogil=True)
def total(best: Integers, rest: Floats, decay: Floats) -> tuple[int, float]:
    """Add up weights.

    Parameters
    ----------
    best, rest : array of int and array of float
        The weights.
    decay : array of float
        Powers q^-d.
    """
    top = best[0]
    for i in range(len(best)):
        top = max(top, best[i])
    found = 0.0
    for i in range(len(best)):
        found += rest[i] * decay[top - best[i]]
    return top, found


def sums_of_stumps(
    size: Integers, singles: Integers, pairs: Integers, decay: Floats
) -> tuple[Integers, Floats]:
    """Add up the trees of depth 1 on either side of each cut.

    Parameters
    ----------
    size : array of two int
        How many rows have each label.
    singles, pairs : arrays of int
        What ``single_counts`` and ``pair_counts`` returned.
    decay : array of float
        Powers q^-d.
    """
    cuts = singles.shape[1]
    bests, rests = np.empty((cuts, 2), dtype=np.int64), np.empty((cuts, 2))
    for first in range(0, cuts, max(1, TABLE // cuts)):
        some = slice(first, first + max(1, TABLE // cuts))
        above, inside = pairs[:, some], singles[:, some]
        below, outside = singles[:, None] - above, size[:, None] - inside
        for side, held, rows in ((0, below, outside), (1, above, inside)):  # as in ``in_one``
            best, rest = last_weights(rows[:, :, None], held, decay)
            bests[some, side] = top = best.max(axis=1)
            # Added one after the other, as ``total`` does.
            terms = rest * decay[top[:, None] - best]
            rests[some, side] = np.add.accumulate(terms, axis=1)[:, -1]
    return bests, rests


@numba.njit(cache=True, nogil=True)
def sums_in_two(
    size: Integers, singles: Integers, pairs: Integers, triples: Integers, decay: Floats
) -> tuple[Integers, Floats]:
    """Add up the trees of depth 1 in the four cells of each two cuts.

    The cell (i, side), (j, other) is also (j, other), (i, side): only i <= j has to be summed.

    Parameters
    ----------
    size : array of two int
        How many rows have each label.
    singles, pairs, triples : arrays of int
        What ``single_counts``, ``pair_counts`` and ``triple_counts`` returned.
    decay : array of float
        Powers q^-d.
    """
    cuts = singles.shape[1]
    bests, rests = np.empty((cuts, cuts, 2, 2), dtype=np.int64), np.empty((cuts, cuts, 2, 2))
    best, rest = np.empty(cuts, dtype=np.int64), np.empty(cuts)
    for i in range(cuts):
        for j in range(i, cuts):
            for side in range(2):
                for other in range(2):
                    inside, held = in_two(size, singles, pairs, triples, i, side, j, other)
                    top, found = _sum_last(inside[0], inside[1], held, decay, best, rest)
                    bests[i, j, side, other] = bests[j, i, other, side] = top
                    rests[i, j, side, other] = rests[j, i, other, side] = found
    return bests, rests


@numba.njit(cache=True, nogil=True)
def sums_of_pairs(bests: Integers, rests: Floats, decay: Floats) -> tuple[Integers, Floats]:
    """Add up the trees of depth 2 on either side of each cut, from what ``sums_in_two`` found.

    Parameters
    ----------
    bests, rests : array of int and array of float
        What ``sums_in_two`` returned.
    decay : array of float
        Powers q^-d.
    """
    cuts = len(bests)
    tops, founds = np.empty((cuts, 2), dtype=np.int64), np.empty((cuts, 2))
    for i in range(cuts):
        for side in range(2):
            best = bests[i, :, side, 0] + bests[i, :, side, 1]
            rest = rests[i, :, side, 0] * rests[i, :, side, 1]
            tops[i, side], founds[i, side] = total(best, rest, decay)
    return tops, founds


# The search for the best tree. A node sees its rows once for each column, ordered by their codes:
# ``order[column]`` lists row numbers. ``gain`` is what label 1 instead of 0 would add for each row.


@numba.njit(cache=True, nogil=True)
def _divide(order: Integers, column: int, low: int, marked: NDArray[np.bool_]) -> Any:
    """Divide a node: its first ``low`` rows by that column, and the others; orders are kept."""
    columns, rows = order.shape
    below = np.empty((columns, low), dtype=np.int64)
    above = np.empty((columns, rows - low), dtype=np.int64)
    for place in range(rows):
        marked[order[column, place]] = place < low
    for other in range(columns):
        i = j = 0
        for place in range(rows):
            row = order[other, place]
            if marked[row]:
                below[other, i] = row
                i += 1
            else:
                above[other, j] = row
                j += 1
    return below, above


@numba.njit(cache=True, nogil=True)
def _best_leaf(order: Integers, gain: Integers) -> int:
    found = 0
    for row in order[0]:
        found += gain[row]
    return max(found, 0)


@numba.njit(cache=True, nogil=True)
def _best_stump(order: Integers, codes: Codes, gain: Integers) -> int:
    """Return the gain of the best tree of depth 1; a cut that divides nothing adds nothing."""
    whole = 0
    for row in order[0]:
        whole += gain[row]
    best = max(whole, 0)
    for column in range(len(order)):
        below = 0
        for place in range(order.shape[1] - 1):
            row = order[column, place]
            below += gain[row]
            if codes[column, row] != codes[column, order[column, place + 1]]:
                best = max(best, max(below, 0) + max(whole - below, 0))
    return best


@numba.njit(cache=True, nogil=True)
def _best_pair(order: Integers, codes: Codes, gain: Integers, marked: NDArray[np.bool_]) -> int:
    """Return the gain of the best tree of depth 2."""
    best = _best_stump(order, codes, gain)
    for column in range(len(order)):
        for low in range(1, order.shape[1]):
            if codes[column, order[column, low - 1]] != codes[column, order[column, low]]:
                below, above = _divide(order, column, low, marked)
                found = _best_stump(below, codes, gain) + _best_stump(above, codes, gain)
                best = max(best, found)
    return best


@numba.njit(cache=True, nogil=True)
def _best_gain(
    order: Integers, codes: Codes, gain: Integers, marked: NDArray[np.bool_], depth: int
) -> int:
    if order.shape[1] == 0:
        return 0
    if depth == 0:
        return _best_leaf(order, gain)
    if depth == 1:
        return _best_stump(order, codes, gain)
    return _best_pair(order, codes, gain, marked)


@numba.njit(cache=True, nogil=True)
def best_gains(codes: Codes, starts: Integers, gain: Integers, depth: int) -> Integers:
    """Return for each cut the gain of the best tree of that depth that has it at the root.

    Parameters
    ----------
    codes : array of int
        The code of each row in each column, columns first.
    starts : array of int
        Where the cuts of each column begin, and the number of all cuts at the end.
    gain : array of int
        What label 1 gains over label 0 for each row.
    depth : {1, 2, 3}
        Depth of the trees.
    """
    columns, rows = codes.shape
    order = np.empty((columns, rows), dtype=np.int64)
    for column in range(columns):
        order[column] = np.argsort(codes[column], kind="mergesort")
    marked = np.empty(rows, dtype=np.bool_)
    found = np.empty(starts[-1], dtype=np.int64)
    undivided = _best_gain(order, codes, gain, marked, depth - 1)
    for column in range(columns):
        low = 0
        last = undivided
        for cut in range(starts[column], starts[column + 1]):
            before = low
            while low < rows and codes[column, order[column, low]] <= cut - starts[column]:
                low += 1
            if low == rows:
                last = undivided
            elif low != before:
                below, above = _divide(order, column, low, marked)
                last = _best_gain(below, codes, gain, marked, depth - 1) + _best_gain(
                    above, codes, gain, marked, depth - 1
                )
            found[cut] = last
    return found
