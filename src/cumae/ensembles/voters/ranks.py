"""Ranks: how many cuts of a column are smaller than a cell, which is all that small trees need."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers

Short = NDArray[np.int16]

BLOCK = 512  # rows whose ranks stay in the first cache


@numba.njit(cache=True, nogil=True)
def rank(values: Floats, starts: Integers, cuts: Floats, low: Integers, ranks: Short) -> None:
    """Write how many cuts are smaller than each value.

    All rows take a step of the search together, so that the processor does several at once. Indices
    are unsigned: for signed ones numba adds a check for negative numbers.

    Parameters
    ----------
    values : array of float
        Cells, column by column.
    starts, cuts : array
        Where the cuts of each column begin, and the cuts.
    low : array of int
        Room for the place of each row among the cuts.
    ranks : array of int
        Room for what is found.
    """
    for column in range(len(values)):
        left = starts[column + 1] - starts[column]
        for row in range(len(low)):
            low[row] = starts[column]
        while left > 0:
            step = left >> 1 if left > 1 else left
            for row in range(len(low)):
                at = low[row]
                smaller = cuts[np.uint64(at + step - 1)] < values[column, row]
                low[row] = at + step if smaller else at
            left -= step
        for row in range(len(low)):
            ranks[column, row] = low[row] - starts[column]
