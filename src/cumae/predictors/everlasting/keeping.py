"""Rows that wait for the next phase: who is kept, and where."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.claims import claim
from cumae.data.rows import Integers, RowSource, row_source
from cumae.errors import InvalidData

# What turns ids of a kind on: how it stands without, and how to ask for it.
SWITCHES = {
    "users": ("user_ids was False", "user_ids=True"),
    "clients": ("client_cap was None", "client_cap=0.01, say"),
}


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
    >>> from cumae.predictors.everlasting.keeping import MemoryRows
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
    >>> from cumae.predictors.everlasting.keeping import FreshRows
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


class SomeRows(RowSource):
    """Some rows of another source, by their places."""

    def __init__(self, rows: RowSource, places: Integers) -> None:
        self._source, self._places = rows, places
        self.n_rows, self.n_features = len(places), rows.n_features
        self.names, self.is_frame = rows.names, rows.is_frame

    def take(self, places: Integers) -> Any:
        return self._source.take(self._places[places])

    def is_text(self, place: int) -> bool:
        return self._source.is_text(place)


@claim("USER")
@dataclass
class Admission:
    """Decides which rows are kept, by ids and order of arrival; never by what is in them.

    Parameters
    ----------
    one_per_user
        Whether each user has one kept row for ever, in training or as a query.
    cap
        How many rows of a phase may come from one client; None for any number.
    """

    one_per_user: bool = False
    cap: int | None = None
    seen: set[Any] = field(default_factory=set)
    of_client: Counter[Any] = field(default_factory=Counter)

    def admit(self, count: int, users: Sequence[Any] | None, clients: Any) -> NDArray[np.bool_]:
        """Tell for each of the next rows whether it is kept, and remember it."""
        kept = np.ones(count, dtype=bool)
        for place in range(count if self.one_per_user or self.cap is not None else 0):
            if users is not None:
                kept[place] = users[place] not in self.seen
                self.seen.add(users[place])
            if self.cap is not None and clients is not None and kept[place]:
                self.of_client[clients[place]] += 1
                kept[place] = self.of_client[clients[place]] <= self.cap
        return kept

    def new_phase(self, cap: int | None) -> None:
        """Start counting the rows of clients anew."""
        self.cap, self.of_client = cap, Counter()

    def copy(self) -> Admission:
        """Return one that can be asked what would happen."""
        return Admission(self.one_per_user, self.cap, set(self.seen), Counter(self.of_client))


def check_ids(ids: Any, wanted: bool, count: int, name: str) -> list[Any] | None:
    """Return ids of users or clients, one for each row."""
    if not wanted:
        if ids is not None:
            raise InvalidData(
                f"{name} were given, but {SWITCHES[name][0]} at fit; leave them out, or fit anew "
                f"with {SWITCHES[name][1]}."
            )
        return None
    # A text would be read letter by letter, and a set has no order.
    flat = hasattr(ids, "__len__") and getattr(ids, "ndim", 1) == 1
    if ids is not None and (not flat or isinstance(ids, str | bytes | set | frozenset | dict)):
        raise InvalidData(
            f"{name} is a {type(ids).__name__}; give a list with one id for each row, such as "
            f'{name}=["anna"] for one.'
        )
    if ids is None or len(ids) != count:
        given = "none" if ids is None else len(ids)
        raise InvalidData(f"{name}: {given} for {count} rows; give one id for each row.")
    found = ids.tolist() if hasattr(ids, "tolist") else list(ids)
    if not all(isinstance(one, str | bytes | int | float) and one == one for one in found):  # noqa: PLR0124
        raise InvalidData(f"{name} hold something that is no id; give numbers or strings.")
    return found
