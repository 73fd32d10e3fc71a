"""The best tree with a given cut at its root."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.concepts.kernels import trees as kernel
from cumae.concepts.trees.cuts import BinnedRows


def gains_of_cuts(rows: BinnedRows, gain: NDArray[Any], depth: int) -> NDArray[Any]:
    """Return for each cut the gain of the best tree with it at the root; -1 if it is not best.

    Gains of more than 62 bits are first rounded down to what 64 bits can add. That takes less than
    one unit a row from every tree, so only cuts within that of the top need the full numbers.

    Parameters
    ----------
    rows : BinnedRows
        The rows.
    gain : array of whole numbers
        What label 1 gains over label 0 for each row.
    depth : int of 1 or more
        Depth of the tree.
    """
    codes, starts = rows.codes, rows.cuts.starts
    if gain.dtype != object:
        return np.asarray(kernel.best_gains(codes, starts, gain.astype(np.int64), depth))
    shift = max(0, int(sum(abs(gain))).bit_length() - 60)
    rough = kernel.best_gains(codes, starts, (gain >> shift).astype(np.int64), depth)
    found = np.full(len(rough), -1, dtype=object)
    for cut in np.flatnonzero(rough >= rough.max() - len(gain)):
        above = rows.above(int(cut))
        found[cut] = sum(
            _best_gain(rows.take(side), gain[side], depth - 1) for side in (above, ~above)
        )
    return found


def _best_gain(rows: BinnedRows, gain: NDArray[Any], depth: int) -> int:
    if depth == 0 or len(gain) == 0:
        return int(max(0, sum(gain.tolist())))
    return int(gains_of_cuts(rows, gain, depth).max())
