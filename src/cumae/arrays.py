"""Names for the arrays that are used everywhere, and two questions about small ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]  # 64 bits each

FEW = 16  # cells of an array that Python's own numbers look at faster


def all_finite(table: Floats) -> bool:
    """Tell whether all cells are finite.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.arrays import all_finite
    >>> all_finite(np.ones((2, 1))), all_finite(np.array([[np.nan]]))
    (True, False)
    """
    if table.size <= FEW:
        return all(map(math.isfinite, table.ravel().tolist()))
    return bool(np.isfinite(table).all())


def all_true(flags: NDArray[Any]) -> bool:
    """Tell whether all entries are true."""
    return all(flags.ravel().tolist()) if flags.size <= FEW else bool(flags.all())
