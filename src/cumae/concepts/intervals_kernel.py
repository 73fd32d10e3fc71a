"""Sums over all intervals, and over all unions of k intervals, in one pass.

``table`` holds powers q^-d; a distance beyond it is read at its last entry. A sum q^best rest that
has no terms has rest 0, and ``NEVER`` as its best score.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from cumae.concepts.sums import BLOCK
from cumae.concepts.validation import Floats, Integers

NEVER = -(1 << 30)


@numba.njit(cache=True, nogil=True, inline="always")
def add(best: int, rest: float, more: int, weight: float, table: Floats) -> tuple[int, float]:
    """Return q^best rest + q^more weight in the same form."""
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
    """Weights of each right end of a block, going on from the state before it."""
    first, last = block * BLOCK, min(len(gain), (block + 1) * BLOCK)
    best, rest = np.empty(last - first, np.int64), np.empty(last - first)
    for j in range(first, last):
        lowest, left = add(lowest, left, -before, 1.0, table)
        before += gain[j]
        best[j - first], rest[j - first] = before + lowest, left
    return best, rest


@numba.njit(cache=True, nogil=True)
def left_ends(gain: Integers, last: int, table: Floats) -> tuple[Any, ...]:
    """Sum, for each block of left ends up to ``last``, of q^-(gains before it)."""
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


@numba.njit(cache=True, nogil=True)
def forward(gain: Integers, states: int, table: Floats) -> tuple[Any, ...]:
    """Sum over all labellings of the first j cells with s changes of label, for all j and s.

    Cell j has label s mod 2 after s changes. Column j of the result belongs to the first j cells.
    """
    best = np.empty((states, len(gain) + 1), np.int32)  # half the memory is half the page faults
    rest = np.empty((states, len(gain) + 1))
    top, total = np.full(states, NEVER), np.zeros(states)
    top[0], total[0] = 0, 1.0
    best[:, 0], rest[:, 0] = top, total
    for j in range(len(gain)):
        for s in range(states - 1, 0, -1):
            score, weight = add(top[s], total[s], top[s - 1], total[s - 1], table)
            top[s], total[s] = score + (s & 1) * gain[j], weight
            best[s, j + 1], rest[s, j + 1] = top[s], weight
        best[0, j + 1], rest[0, j + 1] = top[0], total[0]
    return best, rest


@numba.njit(cache=True, nogil=True)
def switches(
    best: NDArray[np.int32], rest: Floats, gain: Integers, label: int, last: int, table: Floats
) -> tuple[Any, ...]:
    """Sum, for each block of cells i <= last, of the ways to enter a state at cell i and stay.

    ``best`` and ``rest`` are those of the state before it; ``label`` is that of the state entered.
    """
    blocks = last // BLOCK + 1
    block_best, block_rest = np.empty(blocks, np.int64), np.empty(blocks)
    start = np.empty(blocks, np.int64)
    before = 0
    for block in range(blocks):
        start[block] = before
        top, total = NEVER, 0.0
        for i in range(block * BLOCK, min(last + 1, (block + 1) * BLOCK)):
            top, total = add(top, total, best[i] - before, rest[i], table)
            before += label * gain[i]
        block_best[block], block_rest[block] = top, total
    return block_best, block_rest, start


@numba.njit(cache=True, nogil=True)
def best_runs(gain: Integers, states: int) -> Integers:
    """Best score of the first j cells with at most s changes, for all j and s."""
    score = np.zeros((len(gain) + 1, states), np.int64)
    for j in range(len(gain)):
        score[j + 1, 0] = score[j, 0]
        for s in range(1, states):
            score[j + 1, s] = max(score[j, s], score[j, s - 1]) + (s & 1) * gain[j]
    return score
