"""Sums over all intervals, and over all unions of k intervals, in one pass.

``table`` holds powers q^-d; a distance beyond it is read at its last entry. A sum q^best rest that
has no terms has rest 0, and ``NEVER`` as its best score.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from cumae.arrays import Floats, Integers
from cumae.concepts.kernels.sums import BLOCK

NEVER = -(1 << 30)


@numba.njit(cache=True, nogil=True, inline="always")
def add(best: int, rest: float, more: int, weight: float, table: Floats) -> tuple[int, float]:
    """Return q^best rest + q^more weight in the same form.

    Parameters
    ----------
    best, rest : int and float
        A sum.
    more, weight : int and float
        What is added to it.
    table : array of float
        Powers q^-d.
    """
    distance = best - more
    end = len(table) - 1
    if distance >= 0:
        return best, rest + weight * table[min(distance, end)]
    return more, weight + rest * table[min(-distance, end)]


@numba.njit(cache=True, nogil=True)
def right_ends(gain: Integers, table: Floats) -> tuple[Any, ...]:
    """Sum, for each block of right ends, over all intervals that end there.

    Also returns the state before each block, from which ``ends_in_block`` goes on.
    """
    blocks = (len(gain) + BLOCK - 1) // BLOCK
    best, rest = np.empty(blocks, np.int64), np.empty(blocks)
    starts, lefts = np.empty((blocks, 2), np.int64), np.empty(blocks)
    before, lowest, left = 0, NEVER, 0.0  # sum of gains; q^lowest left sums q^-before
    for block in range(blocks):
        starts[block, 0], starts[block, 1], lefts[block] = before, lowest, left
        top, total = NEVER, 0.0
        for j in range(block * BLOCK, min(len(gain), (block + 1) * BLOCK)):
            lowest, left = add(lowest, left, -before, 1.0, table)
            before += gain[j]
            top, total = add(top, total, before + lowest, left, table)
        best[block], rest[block] = top, total
    return best, rest, starts, lefts


@numba.njit(cache=True, nogil=True)
def ends_in_block(
    gain: Integers, block: int, before: int, lowest: int, left: float, table: Floats
) -> tuple[Any, ...]:
    """Weights of each right end of a block, going on from the state before it.

    Parameters
    ----------
    gain : array of int
        What label 1 gains over label 0 in each cell.
    block : int
        Which block of right ends.
    before : int
        Sum of the gains before the block.
    lowest, left : int and float
        The sum, over all left ends before the block, of q^-(gains before it).
    table : array of float
        Powers q^-d.
    """
    first, last = block * BLOCK, min(len(gain), (block + 1) * BLOCK)
    best, rest = np.empty(last - first, np.int64), np.empty(last - first)
    for j in range(first, last):
        lowest, left = add(lowest, left, -before, 1.0, table)
        before += gain[j]
        best[j - first], rest[j - first] = before + lowest, left
    return best, rest


@numba.njit(cache=True, nogil=True)
def left_ends(gain: Integers, last: int, table: Floats) -> tuple[Any, ...]:
    """Sum, for each block of left ends up to ``last``, of q^-(gains before it).

    Parameters
    ----------
    gain : array of int
        What label 1 gains over label 0 in each cell.
    last : int
        The last left end, which is the right end that was drawn.
    table : array of float
        Powers q^-d.
    """
    blocks = last // BLOCK + 1
    best, rest = np.empty(blocks, np.int64), np.empty(blocks)
    start = np.empty(blocks, np.int64)
    before = 0
    for block in range(blocks):
        start[block] = before
        top, total = NEVER, 0.0
        for i in range(block * BLOCK, min(last + 1, (block + 1) * BLOCK)):
            top, total = add(top, total, -before, 1.0, table)
            before += gain[i]
        best[block], rest[block] = top, total
    return best, rest, start


@numba.njit(cache=True, nogil=True, inline="always")
def step(top: Integers, total: Floats, gain: int, table: Floats) -> None:
    """Bring the sums over all labellings of the first cells, by changes of label, one cell on.

    A cell has label s mod 2 after s changes.

    Parameters
    ----------
    top, total : array of int and array of float
        For each number of changes, the sum over the first cells; they are overwritten.
    gain : int
        What label 1 gains over label 0 in the next cell.
    table : array of float
        Powers q^-d.
    """
    for s in range(len(top) - 1, 0, -1):
        score, weight = add(top[s], total[s], top[s - 1], total[s - 1], table)
        top[s], total[s] = score + (s & 1) * gain, weight


@numba.njit(cache=True, nogil=True)
def forward(gain: Integers, states: int, table: Floats) -> tuple[Any, ...]:
    """Sum over all labellings with s changes of label, for all s, at the start of each block.

    Also returns the same after the last cell (as a last block), and for each state and block the
    sum of the ways to enter the state there and stay, up to the gains since the block's start;
    and these gains before each block. Only blocks are kept: to keep cells would cost more time,
    for memory, than to compute the few blocks again that a draw needs.

    Parameters
    ----------
    gain : array of int
        What label 1 gains over label 0 in each cell.
    states : int
        Number of changes of label that are kept apart, none included.
    table : array of float
        Powers q^-d.
    """
    blocks = (len(gain) + BLOCK - 1) // BLOCK
    tops, totals = np.empty((blocks + 1, states), np.int64), np.empty((blocks + 1, states))
    best, rest = np.empty((blocks, states), np.int64), np.empty((blocks, states))
    before = np.zeros(blocks + 1, np.int64)
    top, total = np.full(states, NEVER), np.zeros(states)
    top[0], total[0] = 0, 1.0
    for block in range(blocks):
        tops[block], totals[block] = top, total
        entry, weight, gone = np.full(states, NEVER), np.zeros(states), 0
        for j in range(block * BLOCK, min(len(gain), (block + 1) * BLOCK)):
            for s in range(1, states):
                more = top[s - 1] - (s & 1) * gone
                entry[s], weight[s] = add(entry[s], weight[s], more, total[s - 1], table)
            step(top, total, gain[j], table)
            gone += gain[j]
        best[block], rest[block] = entry, weight
        before[block + 1] = before[block] + gone
    tops[blocks], totals[blocks] = top, total
    return tops, totals, best, rest, before


@numba.njit(cache=True, nogil=True)
def entries(
    gain: Integers, top: Integers, total: Floats, state: int, table: Floats
) -> tuple[Any, ...]:
    """Weigh each cell of a block as the place where ``state`` was entered and kept.

    Also returns the sum of these weights.

    Parameters
    ----------
    gain : array of int
        What label 1 gains over label 0 in each cell of the block.
    top, total : array of int and array of float
        For each number of changes, the sum at the block's start.
    state : int
        The number of changes at the end.
    table : array of float
        Powers q^-d.
    """
    top, total = top[:state].copy(), total[:state].copy()  # later states play no part
    best, rest = np.empty(len(gain), np.int64), np.empty(len(gain))
    most, whole = NEVER, 0.0
    gone = 0
    for i in range(len(gain)):
        best[i], rest[i] = top[-1] - (state & 1) * gone, total[-1]
        most, whole = add(most, whole, best[i], rest[i], table)
        step(top, total, gain[i], table)
        gone += gain[i]
    return best, rest, most, whole


@numba.njit(cache=True, nogil=True)
def best_runs(gain: Integers, states: int) -> Integers:
    """Best score of the first j cells with at most s changes, for all j and s."""
    score = np.zeros((len(gain) + 1, states), np.int64)
    for j in range(len(gain)):
        score[j + 1, 0] = score[j, 0]
        for s in range(1, states):
            score[j + 1, s] = max(score[j, s], score[j, s - 1]) + (s & 1) * gain[j]
    return score
