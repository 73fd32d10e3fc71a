"""Names for the arrays that are used everywhere, and what is quick for few numbers as well."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]  # 64 bits each

FEW = 64  # numbers up to which Python's own are quicker than a call of NumPy


def all_finite(numbers: Floats) -> bool:
    """Tell whether all of these numbers are finite.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.arrays import all_finite
    >>> all_finite(np.array([[1.0, 2.0]])), all_finite(np.array([[1.0, np.nan]]))
    (True, False)
    """
    if numbers.size <= FEW:
        return all(map(math.isfinite, numbers.ravel().tolist()))
    return bool(np.isfinite(numbers).all())
