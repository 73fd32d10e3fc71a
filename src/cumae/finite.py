"""A compiled check that all cells of a table are finite: asked for each single query."""

from __future__ import annotations

import numba
import numpy as np

from cumae.arrays import Floats


@numba.njit(cache=True, nogil=True)
def all_finite(table: Floats) -> bool:
    """Tell whether all cells are finite.

    For a few cells NumPy takes six times as long, and for 100,000 of them half as long.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.finite import all_finite
    >>> all_finite(np.array([[1.0, 2.0]])), all_finite(np.array([[1.0, np.nan]]))
    (True, False)
    """
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            if not np.isfinite(table[row, column]):
                return False
    return True
