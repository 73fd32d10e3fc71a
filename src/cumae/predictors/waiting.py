"""Rows that wait for the next phase, in the order they came."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data import RowSource, row_source


class RowKeeper(Protocol):
    """Where answered queries wait, with their weights, until they are trained on.

    The durable oracle keeps them on disk; what was taken must not be there any more.
    """

    def append(self, rows: Any, weights: Integers) -> None:
        """Add rows in the order in which they were asked."""

    def take(self) -> tuple[RowSource, Integers]:
        """Return all rows and weights, and keep none of them."""

    def __len__(self) -> int:
        """Return how many rows wait."""


class MemoryRows:
    """Keeps rows in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.predictors.waiting import MemoryRows
    >>> keeper = MemoryRows()
    >>> keeper.append(np.zeros((2, 3)), np.ones((2, 2), dtype=np.int64))
    >>> rows, weights = keeper.take()
    >>> rows.n_rows, len(keeper)
    (2, 0)
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Any, Integers]] = []

    def __len__(self) -> int:
        return sum(len(weights) for _, weights in self._parts)

    def append(self, rows: Any, weights: Integers) -> None:
        self._parts.append((rows.copy(), weights.copy()))  # both or none

    def take(self) -> tuple[RowSource, Integers]:
        parts, self._parts = self._parts, []
        rows, weights = zip(*parts, strict=True)
        return row_source(_joined(rows)), np.concatenate(weights)


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

    def take(self, count: int) -> Any:
        """Return the rows that came first, and keep none of them; so many must be there."""
        parts = []
        while count:
            part = self._parts.popleft()
            parts.append(part[:count])
            if len(part) > count:
                self._parts.appendleft(part[count:].copy())  # a view would keep what was taken
            count -= len(parts[-1])
        return _joined(parts)


def _joined(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], pd.DataFrame):
        return pd.concat(parts, ignore_index=True)
    return np.concatenate(parts)
