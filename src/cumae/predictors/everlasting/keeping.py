"""Which rows are kept for the next phase, and where these rows come from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.errors import BudgetExhausted
from cumae.predictors.state import objects
from cumae.predictors.waiting import joined

if TYPE_CHECKING:
    from cumae.predictors.everlasting.rules import EverlastingRules
    from cumae.predictors.everlasting.schedule import PhaseSchedule
    from cumae.predictors.everlasting.state import EverlastingState


def _itself(one: Any) -> tuple[Any, ...]:
    return (one,)


@claim("USER")
@dataclass
class Admission:
    """Decides which rows are kept, by ids and order of arrival; never by what is in them.

    Parameters
    ----------
    one_per_user : bool
        Whether each user has one kept row for ever, in training or as a query.
    cap : int, or None
        How many rows of a phase may come from one client; None for any number.
    seen : set
        Ids of the users who have their row.
    of_client : Counter
        How many rows each client has offered during this phase.
    known_as : callable
        Returns what stands for an id: the id itself, or in a durable oracle its HMAC. What it may
        have stood as in files of earlier versions follows. Equal ids have the same.
    """

    one_per_user: bool = False
    cap: int | None = None
    seen: set[Any] = field(default_factory=set)
    of_client: Counter[Any] = field(default_factory=Counter)
    known_as: Callable[[Any], tuple[Any, ...]] = _itself

    @property
    def takes_all(self) -> bool:
        """Whether every row is kept, whoever it comes from."""
        return not self.one_per_user and self.cap is None

    def admit(self, count: int, users: Sequence[Any] | None, clients: Any) -> NDArray[np.bool_]:
        """Tell for each of the next rows whether it is kept, and remember it."""
        kept = np.ones(count, dtype=bool)
        for place in range(0 if self.takes_all else count):
            if users is not None:
                user, *earlier = self.known_as(users[place])
                kept[place] = self.seen.isdisjoint((user, *earlier))
                self.seen.add(user)
            if self.cap is not None and clients is not None and kept[place]:
                client, *earlier = self.known_as(clients[place])
                self.of_client[client] += 1
                offered = sum(self.of_client[one] for one in (client, *earlier))
                kept[place] = offered <= self.cap
        return kept

    def new_phase(self, cap: int | None) -> None:
        """Start counting the rows of clients anew."""
        self.cap, self.of_client = cap, Counter()

    def copy(self) -> Admission:
        """Return one that can be asked what would happen."""
        return replace(self, seen=set(self.seen), of_client=Counter(self.of_client))

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing."""
        return {
            "one_per_user": self.one_per_user,
            "cap": self.cap,
            "seen": objects(self.seen),
            "clients": objects(self.of_client),
            "counts": np.array(list(self.of_client.values()), dtype=np.int64),
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Admission:
        """Rebuild what ``to_facts`` returned."""
        counts = zip(facts["clients"].tolist(), facts["counts"].tolist(), strict=True)
        seen = set(facts["seen"].tolist())
        return cls(facts["one_per_user"], facts["cap"], seen, Counter(dict(counts)))


class RowsOfNextPhase(ABC):
    """Where the rows of the next phase come from. All decisions follow from counts and ids."""

    keeps_queries: bool

    @abstractmethod
    def remaining(self, state: EverlastingState) -> float:
        """Return how many answers are left."""

    @abstractmethod
    def check_batch(self, state: EverlastingState, asked: int, users: Any, clients: Any) -> None:
        """Raise ``BudgetExhausted`` if a batch of queries cannot be answered whole."""

    @abstractmethod
    def used_up(self, state: EverlastingState) -> bool:
        """Tell whether the phase answers no more queries."""

    @abstractmethod
    def until_next(self, state: EverlastingState) -> int:
        """Return how many queries can be answered before rows are collected for another phase."""

    @abstractmethod
    def complete(self, state: EverlastingState) -> bool:
        """Tell whether the rows of the next phase are there, so that its training can begin."""

    @abstractmethod
    def take(
        self, state: EverlastingState, label: Callable[[Any], Integers]
    ) -> tuple[Any, Integers, int]:
        """Return rows and weights of the next phase, and how many of the rows were supplied.

        ``label`` returns weights for rows that have none, at the price of a release each.
        """


@claim("EVER", "LATE", "USER")
class QueryRows(RowsOfNextPhase):
    """Queries are kept, and become the rows of the next phase."""

    keeps_queries = True

    def remaining(self, state: EverlastingState) -> float:
        left = state.phase.left
        enough = state.n_kept + left >= state.rules.least
        return math.inf if state.following is not None or enough else left

    def check_batch(self, state: EverlastingState, asked: int, users: Any, clients: Any) -> None:
        left = self.remaining(state)
        if asked > left:
            # What is finite here stays so: even if all of the rest were kept, it is too little.
            raise BudgetExhausted(
                f"{asked} queries were asked, but {left} answers remain in phase "
                f"{state.phase.number}; there will be no next phase, which needs "
                f"{self._needed(state)}. After "
                "them, fit again, which costs again."
            )
        left = state.phase.left
        if (users is None and clients is None) or asked <= left:
            return
        # The batch ends this phase, and perhaps others: would each have enough rows?
        if not Forecast.of(state).has_rows_for(self, asked, users, clients):
            raise BudgetExhausted(
                f"{asked} queries were asked, but {left} answers remain in phase "
                f"{state.phase.number}; each phase that the batch goes on to needs "
                f"{self._needed(state)}. "
                "Nothing was answered. Ask fewer, and let others ask."
                # no count: it would tell whose ids are known
            )

    def _needed(self, state: EverlastingState) -> str:
        asked = ["new users"] * state.rules.user_ids
        asked += ["clients below client_cap"] * (state.rules.client_cap is not None)
        return f"{state.rules.least:,} rows{' of ' * bool(asked)}{' and '.join(asked)}"

    def used_up(self, state: EverlastingState) -> bool:
        return state.phase.left == 0

    def until_next(self, state: EverlastingState | Forecast) -> int:
        left = state.phase.left
        if state.following is not None:
            return left
        before = left - state.rules.late_releases(state.phase.n_rows)
        # Past the mark, the next phase starts to train as soon as it has enough rows.
        return before if before > 0 else min(left, max(1, state.rules.least - state.n_kept))

    def complete(self, state: EverlastingState | Forecast) -> bool:
        if state.n_kept < state.rules.least:
            return False
        return state.phase.left <= state.rules.late_releases(state.phase.n_rows)

    def take(
        self, state: EverlastingState, label: Callable[[Any], Integers]
    ) -> tuple[Any, Integers, int]:
        del label  # their answers gave them weights
        rows, weights = zip(*state.kept, strict=True)
        return joined(rows), np.concatenate(weights), 0


@claim("USER")
@dataclass
class Forecast:
    """The counts of a state, to see what a batch would do to them. Ids and counts decide it.

    Parameters
    ----------
    rules : EverlastingRules
        All public numbers.
    left, n_rows : int
        Answers left in the phase, and how many rows it was trained on.
    n_kept : int
        How many queries wait for the next phase.
    following : int, or None
        How many rows the next phase has, once its training has begun.
    labelled : int
        How many rows with labels wait for the next phase.
    admission : Admission
        Who may still supply rows.
    """

    rules: EverlastingRules
    left: int
    n_rows: int
    n_kept: int
    following: int | None
    labelled: int
    admission: Admission

    @classmethod
    def of(cls, state: EverlastingState) -> Forecast:
        """Return the counts of a state, which stays as it is."""
        following = None if state.following is None else state.following.n_rows
        counts = (state.phase.left, state.phase.n_rows, state.n_kept, following, state.n_labelled)
        return cls(state.rules, *counts, state.admission.copy())

    @property
    def phase(self) -> Forecast:
        """What has the attributes ``left`` and ``n_rows``, as the phase of a state has them."""
        return self

    def has_rows_for(self, rows_from: QueryRows, asked: int, users: Any, clients: Any) -> bool:
        """Go through a batch as ``predict`` does, and tell whether each phase gets its rows."""
        start = 0
        while start < asked:
            if self.left == 0:
                if self.following is None:
                    return False
                self.n_rows, self.following = self.following, None
                self.left = self.rules.releases(self.n_rows)
            part = slice(start, min(asked, start + rows_from.until_next(self)))
            count, start = part.stop - part.start, part.stop
            admitted = self.admission.admit(count, users and users[part], clients and clients[part])
            self.left -= count
            self.n_kept += int(admitted.sum())
            if self.following is None and rows_from.complete(self):
                self.following, self.n_kept = self.n_kept + self.labelled, 0
                self.labelled = 0
                self.admission.new_phase(self.rules.cap(self.n_rows))
        return True


@claim("FRESH")
class SuppliedRows(RowsOfNextPhase):
    """Rows of ``add_unlabelled`` become the rows of the next phase, and queries leave no trace.

    Of the releases of a phase, some are for labelling the next one's rows: at least as many as it
    has rows itself, and with ``growth="auto"`` as many as rows were supplied, up to what the
    schedule allows. What decides are counts: rows supplied, and releases made.
    """

    keeps_queries = False

    def remaining(self, state: EverlastingState) -> float:
        schedule, phase, waiting = state.rules.schedule, state.phase, len(state.waiting)
        if state.following is not None:
            found, n_rows = phase.left, state.following.n_rows
        else:
            label = _labelled(schedule, phase.n_rows, phase.left, waiting)
            found = max(0, phase.left - label)
            if phase.left < label or waiting < label:  # broken off, or too few rows
                return found
            n_rows, waiting = label + state.n_labelled, waiting - label
        while True:  # the phases that the supplied rows are enough for
            left = schedule.releases(n_rows)
            label = _labelled(schedule, n_rows, left, waiting)
            found += left - label
            if waiting < label:
                return found
            n_rows, waiting = label, waiting - label

    def check_batch(self, state: EverlastingState, asked: int, users: Any, clients: Any) -> None:
        del users, clients
        left = self.remaining(state)
        if asked > left:
            raise BudgetExhausted(
                f"{asked} queries were asked, but {left} answers remain in phase "
                f"{state.phase.number}; the next phase needs {state.phase.n_rows:,} rows by "
                "add_unlabelled."
            )

    def used_up(self, state: EverlastingState) -> bool:
        return self.until_next(state) <= 0

    def until_next(self, state: EverlastingState) -> int:
        return state.phase.left - (self._for_labels(state) if state.following is None else 0)

    def complete(self, state: EverlastingState) -> bool:
        label = self._for_labels(state)
        if state.phase.left > label or len(state.waiting) < label:
            return False
        if state.phase.left < label:  # nothing else takes releases that are for these rows
            raise BudgetExhausted(
                "the labelling of fresh rows was broken off, and its releases are spent; fit again."
            )
        return True

    def take(
        self, state: EverlastingState, label: Callable[[Any], Integers]
    ) -> tuple[Any, Integers, int]:
        rows = state.waiting.first(self._for_labels(state))
        return rows, label(rows), len(rows)

    def _for_labels(self, state: EverlastingState) -> int:
        phase = state.phase
        return _labelled(state.rules.schedule, phase.n_rows, phase.left, len(state.waiting))


@claim("FRESH")
def _labelled(schedule: PhaseSchedule, n_rows: int, left: int, waiting: int) -> int:
    """Return how many of the releases left in a phase are for labelling, by counts alone."""
    return max(n_rows, min(schedule.next_rows(n_rows), left, waiting))


QUERY_ROWS, SUPPLIED_ROWS = QueryRows(), SuppliedRows()
