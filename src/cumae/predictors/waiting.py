"""Rows that wait for the next phase, in the order in which they came."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from cumae.arrays import Integers
from cumae.claims import claim


@claim("EVER", "LABELLED", "UNV")
class KeptRows:
    """Rows with their weights, in the order they came.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.predictors.waiting import KeptRows
    >>> kept = KeptRows()
    >>> kept.put(0, np.array([[1.0], [2.0]]), np.array([5, 6]))
    >>> kept.put(0, np.array([[1.0], [2.0]]), np.array([5, 6]))  # they are here already
    >>> kept.n_rows, kept.weights.tolist()
    (2, [5, 6])
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Any, Any]] = []
        self.n_rows = 0
        self.told: set[int] = set()  # places of rows that got a label later

    def put(self, at: int, rows: Any, weights: Any) -> None:
        """Add rows whose first one has the place ``at``, unless they are here already."""
        if at + len(rows) <= self.n_rows:
            return
        if at != self.n_rows:
            raise AssertionError("rows come in order")
        self._parts.append((rows, weights))
        self.n_rows = at + len(rows)

    @claim("LABELLED")
    def tell(self, places: Integers, weights: Integers) -> None:
        """Put weights of labels in the place of those of noisy answers, or of earlier labels.

        A row that was unusable, which has the place ``~place`` here, has no weight, and gets none;
        but it counts like any other.
        """
        starts = np.cumsum([0, *(len(own) for _, own in self._parts)])
        for place, weight in zip(places.tolist(), weights, strict=True):
            if place >= 0:
                part = int(np.searchsorted(starts, place, side="right")) - 1
                rows, own = self._parts[part]
                own = own.copy()  # an event that is not written yet holds the same array
                own[place - starts[part]] = weight
                self._parts[part] = (rows, own)
            self.told.add(place if place >= 0 else ~place)

    @property
    def parts(self) -> list[tuple[Any, Any]]:
        """Tables of rows with their weights, one for each call."""
        return list(self._parts)

    @property
    def rows(self) -> Any:
        """All rows as one table; None if there are none."""
        return joined([rows for rows, _ in self._parts])

    @property
    def weights(self) -> Any:
        """The weights of all rows; None if there are none."""
        return joined([weights for _, weights in self._parts])

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing."""
        told = np.array(sorted(self.told), dtype=np.int64)
        return {"rows": self.rows, "weights": self.weights, "told": told}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> KeptRows:
        """Rebuild what ``to_facts`` returned."""
        found = cls()
        if facts["rows"] is not None:
            found.put(0, facts["rows"], facts["weights"])
        found.told = set(facts["told"].tolist())
        return found


@claim("FRESH", "BBL")
class FreshRows:
    """Unlabelled rows that were supplied to take the place of queries, in the order they came.

    Parameters
    ----------
    first : int
        How many were supplied before these, and are used by now.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.predictors.waiting import FreshRows
    >>> waiting = FreshRows()
    >>> waiting.put(0, np.array([[1.0], [2.0]]))
    >>> waiting.put(2, np.array([[3.0], [4.0]]))
    >>> waiting.first_rows(3).tolist(), len(waiting)
    ([[1.0], [2.0], [3.0]], 4)
    >>> waiting.without(3).first_rows(1).tolist()
    [[4.0]]
    """

    def __init__(self, first: int = 0) -> None:
        self.first = self.end = first
        self._parts: list[Any] = []

    def __len__(self) -> int:
        return self.end - self.first

    def put(self, at: int, rows: Any) -> None:
        """Add rows before which ``at`` were supplied, unless they are here already."""
        if at + len(rows) <= self.end:
            return
        if at != self.end:
            raise AssertionError("rows come in order")
        self._parts.append(rows)
        self.end = at + len(rows)

    def first_rows(self, count: int) -> Any:
        """Return the rows that came first; so many must be there."""
        return self.all()[:count]

    def without(self, count: int) -> FreshRows:
        """Return the rows but for those that came first."""
        found = FreshRows(self.first + count)
        if len(self) > count:
            found.put(found.first, self.all()[count:].copy())  # a view would keep what was taken
        return found

    def all(self) -> Any:
        """Return all rows; None if there are none."""
        if len(self._parts) > 1:
            self._parts = [joined(self._parts)]
        return joined(self._parts)

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing."""
        return {"first": self.first, "rows": self.all()}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> FreshRows:
        """Rebuild what ``to_facts`` returned."""
        found = cls(facts["first"])
        if facts["rows"] is not None:
            found.put(found.first, facts["rows"])
        return found


def joined(parts: Sequence[Any]) -> Any:
    """Return tables of one kind as one table; None if there are none."""
    if not parts:
        return None
    if isinstance(parts[0], pd.DataFrame):
        return pd.concat(parts, ignore_index=True)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
