"""Rows that wait for the next phase, in the order in which they came."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from cumae.claims import claim


@claim("FRESH", "BBL")
class FreshRows:
    """Unlabelled rows that were supplied to take the place of queries, in the order they came.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.predictors.waiting import FreshRows
    >>> waiting = FreshRows()
    >>> waiting.append(np.array([[1.0], [2.0]]))
    >>> waiting.append(np.array([[3.0], [4.0]]))
    >>> waiting.first(3).tolist(), len(waiting)
    ([[1.0], [2.0], [3.0]], 4)
    >>> waiting.take(3).tolist(), len(waiting)
    ([[1.0], [2.0], [3.0]], 1)
    """

    def __init__(self) -> None:
        self._parts: deque[Any] = deque()

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def append(self, rows: Any) -> None:
        """Add rows at the end."""
        self._parts.append(rows)

    def first(self, count: int) -> Any:
        """Return the rows that came first, and keep them; so many must be there."""
        parts = []
        for part in self._parts:
            parts.append(part[:count])
            count -= len(parts[-1])
            if not count:
                break
        return joined(parts)

    def take(self, count: int) -> Any:
        """Return the rows that came first, and keep none of them; so many must be there."""
        parts = []
        while count:
            part = self._parts.popleft()
            parts.append(part[:count])
            if len(part) > count:
                self._parts.appendleft(part[count:].copy())  # a view would keep what was taken
            count -= len(parts[-1])
        return joined(parts)

    def all(self) -> Any:
        """Return all rows, and keep them; None if there are none."""
        return joined(self._parts)


def joined(parts: Sequence[Any]) -> Any:
    """Return tables of one kind as one table; None if there are none."""
    if not parts:
        return None
    if isinstance(parts[0], pd.DataFrame):
        return pd.concat(parts, ignore_index=True)
    return np.concatenate(parts)
