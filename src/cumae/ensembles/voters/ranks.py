"""Searching a value among sorted cuts."""

from __future__ import annotations

import numba

from cumae.arrays import Floats


@numba.njit(cache=True, nogil=True, inline="always")
def count_below(cuts: Floats, value: float) -> int:
    """Return how many of the cuts, which are in order, are smaller than the value."""
    low, left = 0, len(cuts)
    while left > 1:  # no branch depends on the value, so the processor never guesses wrong
        half = left >> 1
        low = low + half if cuts[low + half - 1] < value else low
        left -= half
    low += 1 if left == 1 and cuts[low] < value else 0
    return low
