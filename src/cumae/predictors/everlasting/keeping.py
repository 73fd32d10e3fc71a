"""Rows that wait for the next phase: who is kept, and where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.claims import claim


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
