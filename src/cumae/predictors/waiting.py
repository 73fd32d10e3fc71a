"""Rows that wait for the next phase, in the order in which they came."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, islice
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from cumae.arrays import Integers
from cumae.claims import claim

PART = 1_024  # rows that are kept as one table at most, where tables are cut; tables joined at once

Later: TypeAlias = Callable[[], dict[str, Any]]  # returns facts, in whichever thread


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
        # Tables, each with the number of rows up to its end: no interrupt comes between the two.
        self._parts: list[tuple[int, Any, Any]] = []
        # Places of rows that got a label later, in the order in which they did.
        self.labelled_places: dict[int, None] = {}

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._parts[-1][0] if self._parts else 0

    def put(self, at: int, rows: Any, weights: Any) -> None:
        """Add rows whose first one has the place ``at``, unless they are here already."""
        end, before = at + len(rows), self._parts[-1][0] if self._parts else 0
        if end <= before:
            return
        if at != before:
            raise AssertionError("rows come in order")
        self._parts.append((end, rows, weights))

    @claim("LABELLED")
    def tell(self, places: Integers, weights: Integers) -> None:
        """Replace weights of noisy answers, or of earlier labels, by those of labels.

        A row that was unusable, which has the place ``~place`` here, has no weight, and gets none;
        but it counts like any other.
        """
        ends = [end for end, _, _ in self._parts]
        changed: dict[int, Any] = {}
        for place, weight in zip(places.tolist(), weights, strict=True):
            if place >= 0:
                part = bisect_right(ends, place)
                if part not in changed:  # an event that is not written yet holds the same array
                    changed[part] = self._parts[part][2].copy()
                changed[part][place - ends[part]] = weight
        for part, own in changed.items():
            self._parts[part] = (*self._parts[part][:2], own)
        self.labelled_places.update(dict.fromkeys(np.where(places >= 0, places, ~places).tolist()))

    def at(self, places: Sequence[int]) -> tuple[Any, Any]:
        """Return the rows at some places, one at least, and their weights."""
        ends = [end for end, _, _ in self._parts]
        rows, weights = [], []
        for place in places:
            end, own_rows, own_weights = self._parts[bisect_right(ends, place)]
            rows.append(own_rows[[place - end]])  # counted from the end of the part
            weights.append(own_weights[[place - end]])
        return joined(rows), joined(weights)

    @property
    def parts(self) -> list[tuple[Any, Any]]:
        """Tables of rows with their weights, one for each call."""
        return [(rows, weights) for _, rows, weights in self._parts]

    @property
    def rows(self) -> Any:
        """All rows as one table; None if there are none."""
        return joined([rows for _, rows, _ in self._parts])

    @property
    def weights(self) -> Any:
        """The weights of all rows; None if there are none."""
        return joined([weights for _, _, weights in self._parts])

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing."""
        return self.facts_later()()

    def facts_later(self) -> Later:
        """Return what makes the facts of the rows that there are now, while others may come.

        This takes no time that grows with their number. Weights may be later ones.
        """
        parts, told = self._parts, self.labelled_places
        n_parts, n_told = len(parts), len(told)

        def facts() -> dict[str, Any]:
            tables = parts[:n_parts]
            return {
                "rows": joined([rows for _, rows, _ in tables]),
                "weights": joined([weights for _, _, weights in tables]),
                "told": np.array(sorted(first_of(told, n_told)), dtype=np.int64),
            }

        return facts

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> KeptRows:
        """Rebuild what ``to_facts`` returned."""
        found = cls()
        if facts["rows"] is not None:
            found.put(0, facts["rows"], facts["weights"])
        found.labelled_places = dict.fromkeys(facts["told"].tolist())
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
    >>> waiting.split(3)[1].first_rows(1).tolist()
    [[4.0]]
    """

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self._parts: list[tuple[int, Any]] = []  # as those of ``KeptRows``

    @property
    def end(self) -> int:
        """Number of rows that were supplied, with those that are used by now."""
        return self._parts[-1][0] if self._parts else self.first

    def __len__(self) -> int:
        return self.end - self.first

    def put(self, at: int, rows: Any) -> None:
        """Add rows before which ``at`` were supplied, unless they are here already."""
        end, before = at + len(rows), self.end
        if end <= before:
            return
        if at != before:
            raise AssertionError("rows come in order")
        parts = [(end, rows)]
        if len(rows) > PART:  # so that a cut copies a few rows, however many came at once
            tables = [rows[start : start + PART].copy() for start in range(0, len(rows), PART)]
            ends = accumulate(map(len, tables), initial=at)
            parts = list(zip(list(ends)[1:], tables, strict=True))
        self._parts.extend(parts)  # as one: no interrupt comes between them

    def split(self, count: int) -> tuple[FreshRows, FreshRows]:
        """Return the rows that came first, and the others; so many must be there.

        The work does not grow with the number of rows: tables are handed over as they are, and one
        of them is cut.
        """
        taken, left = FreshRows(self.first), FreshRows(self.first + count)
        place = bisect_right(self._parts, left.first, key=itemgetter(0))
        taken._parts, left._parts = self._parts[:place], self._parts[place:]
        missing = left.first - taken.end
        if missing:
            end, rows = left._parts[0]
            taken._parts.append((left.first, rows[:missing]))
            left._parts[0] = (end, rows[missing:].copy())  # a view would keep what was taken
        return taken, left

    def first_rows(self, count: int) -> Any:
        """Return the rows that came first; so many must be there."""
        return self.split(count)[0].all()

    def all(self) -> Any:
        """Return all rows; None if there are none."""
        return joined([rows for _, rows in self._parts])

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing."""
        return self.facts_later()()

    def facts_later(self) -> Later:
        """Return what makes the facts of the rows that there are now, as ``KeptRows`` does."""
        first, parts, n_parts = self.first, self._parts, len(self._parts)

        def facts() -> dict[str, Any]:
            return {"first": first, "rows": joined([rows for _, rows in parts[:n_parts]])}

        return facts

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> FreshRows:
        """Rebuild what ``to_facts`` returned."""
        found = cls(facts["first"])
        if facts["rows"] is not None:
            found.put(found.first, facts["rows"])
        return found


def first_of(growing: Mapping[Any, Any], count: int) -> dict[Any, Any]:
    """Return so many first entries of a dict to which another thread may add some meanwhile."""
    copy = dict(growing)  # in one step of the interpreter, as opposed to a loop
    return dict(islice(copy.items(), count))


def joined(parts: Sequence[Any]) -> Any:
    """Return tables of one kind as one table; None if there are none."""
    if not parts:
        return None
    join = _concatenated if isinstance(parts[0], pd.DataFrame) else np.concatenate
    while len(parts) > PART:  # some at a time, so that other threads need not wait for all of them
        parts = [join(parts[start : start + PART]) for start in range(0, len(parts), PART)]
    return parts[0] if len(parts) == 1 else join(parts)


def _concatenated(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(frames, ignore_index=True)
