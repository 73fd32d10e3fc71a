"""Which rows are kept for the next phase, and where these rows come from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.errors import BudgetExhausted
from cumae.predictors.everlasting.rules import EverlastingRules
from cumae.predictors.everlasting.schedule import PhaseSchedule
from cumae.predictors.ids import as_rows, from_rows, sorted_rows
from cumae.predictors.waiting import FreshRows, KeptRows, Later, first_of

Ids: TypeAlias = Sequence[tuple[bytes, ...]] | None  # hidden ids, one for each row


class Admitted(NamedTuple):
    """Which rows are kept, and what is remembered of who offered them.

    Parameters
    ----------
    kept : array of bool
        Whether each row is kept.
    users : list of bytes, or None
        Hidden ids of the users who have their row then.
    offered : dict from bytes to int, or None
        How many rows each of the clients has offered during this phase then.
    """

    kept: NDArray[np.bool_]
    users: list[bytes] | None
    offered: dict[bytes, int] | None


@claim("USER")
class SeenIds:
    """Hidden ids that were seen; the order in which they came tells too much, and is not stored.

    Parameters
    ----------
    ids : iterable of bytes
        The first ones.
    """

    def __init__(self, ids: Iterable[bytes] = ()) -> None:
        self._ids: MutableMapping[bytes, None] = dict.fromkeys(ids)

    def __contains__(self, one: bytes) -> bool:
        return one in self._ids

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def update(self, ids: Iterable[bytes]) -> None:
        """Add ids, of which some may be there already."""
        self._ids.update(dict.fromkeys(ids))

    def copy(self) -> SeenIds:
        """Return some that may get others; these must not change meanwhile."""
        found = SeenIds()
        found._ids = ChainMap({}, self._ids)
        return found

    def to_facts(self) -> dict[str, Any]:
        """Return them for storing."""
        return self.facts_later()()

    def facts_later(self) -> Later:
        """Return what makes the facts of those that there are now, while others may come."""
        ids, count = self._ids, len(self._ids)
        return lambda: {"seen": sorted_rows(first_of(ids, count))}


@claim("USER")
@dataclass
class Admission:
    """Decides which rows are kept, by ids and order of arrival; never by what is in them.

    Ids are hidden ones, each with what it may have been hidden as by earlier versions
    (``HiddenIds.known_as``).

    Parameters
    ----------
    one_per_user : bool
        Whether each user has one kept row for ever, in training or as a query.
    cap : int, or None
        How many rows of a phase may come from one client; None for any number.
    seen : SeenIds
        Ids of the users who have their row.
    of_client : dict from bytes to int
        How many rows each client has offered during this phase.
    """

    one_per_user: bool = False
    cap: int | None = None
    seen: SeenIds = field(default_factory=SeenIds)
    of_client: MutableMapping[bytes, int] = field(default_factory=dict)

    @property
    def takes_all(self) -> bool:
        """True if every row is kept, from any client."""
        return not self.one_per_user and self.cap is None

    def decide(self, count: int, users: Ids, clients: Ids) -> Admitted:
        """Tell for each of the next rows whether it is kept; remember nothing."""
        kept = np.ones(count, dtype=bool)
        if self.takes_all:
            return Admitted(kept, None, None)
        new: dict[bytes, None] = {}
        offered: dict[bytes, int] = {}
        for place in range(count):
            if users is not None:
                user = users[place][0]
                has_row = user in new or any(one in self.seen for one in users[place])
                kept[place] = not has_row
                new[user] = None
            if self.cap is not None and clients is not None and kept[place]:
                client, *earlier = clients[place]
                before = offered.get(client, self.of_client.get(client, 0))
                offered[client] = before + 1
                known = sum(self.of_client.get(one, 0) for one in earlier)
                kept[place] = offered[client] + known <= self.cap
        capped = self.cap is not None and clients is not None
        return Admitted(kept, None if users is None else list(new), offered if capped else None)

    def take(self, admitted: Admitted) -> None:
        """Remember what was decided."""
        self.seen.update(admitted.users or ())
        self.of_client.update(admitted.offered or {})

    def of_new_phase(self, cap: int | None) -> Admission:
        """Return one that counts the rows of clients anew."""
        return replace(self, cap=cap, of_client={})

    def copy(self) -> Admission:
        """Return one that can be asked what would happen; this one must not change meanwhile."""
        return replace(self, seen=self.seen.copy(), of_client=ChainMap({}, self.of_client))

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing."""
        return self.facts_later()()

    def facts_later(self) -> Later:
        """Return what makes its facts as they are now, while other ids may come.

        This takes no time that grows with their number. Numbers of rows may be later ones.
        """
        rules = {"one_per_user": self.one_per_user, "cap": self.cap}
        seen, offered, n_offered = self.seen.facts_later(), self.of_client, len(self.of_client)

        def facts() -> dict[str, Any]:
            clients = first_of(offered, n_offered)
            return {
                **rules,
                **seen(),
                "clients": as_rows(clients),
                "offered": np.array(list(clients.values()), dtype=np.int64),
            }

        return facts

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Admission:
        """Rebuild what ``to_facts`` returned."""
        offered = zip(from_rows(facts["clients"]), facts["offered"].tolist(), strict=True)
        seen = SeenIds(from_rows(facts["seen"]))
        return cls(facts["one_per_user"], facts["cap"], seen, dict(offered))


class PhaseCounts(Protocol):
    """The counts by which phases begin and end.

    ``left`` are the releases left in the phase, ``n_rows`` the rows it was trained on, ``late`` the
    answers at its end that are given while the next phase trains, ``n_kept`` the queries that wait,
    and ``following`` is None until the next phase trains.
    """

    @property
    def rules(self) -> EverlastingRules: ...
    @property
    def left(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
    @property
    def late(self) -> int: ...
    @property
    def n_kept(self) -> int: ...
    @property
    def following(self) -> Any: ...


class PhaseRows(PhaseCounts, Protocol):
    """The counts of a state, and the rows that wait in it."""

    @property
    def phase_number(self) -> int: ...
    @property
    def n_labelled(self) -> int: ...
    @property
    def admission(self) -> Admission: ...
    @property
    def kept(self) -> KeptRows: ...
    @property
    def waiting(self) -> FreshRows: ...


class RowsOfNextPhase(ABC):
    """Where the rows of the next phase come from. All decisions follow from counts and ids."""

    keeps_queries: bool

    @abstractmethod
    def remaining(self, state: PhaseRows) -> float:
        """Return how many answers are left."""

    @abstractmethod
    def check_batch(self, state: PhaseRows, asked: int, users: Ids, clients: Ids) -> None:
        """Raise ``BudgetExhausted`` if a batch of queries cannot be answered whole."""

    @abstractmethod
    def used_up(self, state: PhaseRows) -> bool:
        """Tell whether the phase answers no more queries."""

    @abstractmethod
    def until_next(self, state: PhaseRows) -> int:
        """Return how many queries can be answered before rows are collected for another phase."""

    @abstractmethod
    def complete(self, state: PhaseRows) -> bool:
        """Tell whether the rows of the next phase are there, so that its training can begin."""

    @abstractmethod
    def to_label(self, state: PhaseRows) -> int:
        """Return how many rows must be labelled first, at the price of a release each."""

    @abstractmethod
    def handed_over(self, state: PhaseRows, taken: int, weights: Integers | None) -> KeptRows:
        """Return those rows of the next phase that have their weights.

        Parameters
        ----------
        state : PhaseRows
            The state, which stays as it is.
        taken : int
            How many supplied rows are among them.
        weights : array of int, or None
            Weights of supplied rows, in events of older files.
        """


@claim("EVER", "LATE", "USER")
class QueryRows(RowsOfNextPhase):
    """Queries are kept, and become the rows of the next phase."""

    keeps_queries = True

    def remaining(self, state: PhaseRows) -> float:
        left = state.left
        enough = state.n_kept + left >= state.rules.least
        return math.inf if state.following is not None or enough else left

    def check_batch(self, state: PhaseRows, asked: int, users: Ids, clients: Ids) -> None:
        left = self.remaining(state)
        if asked > left:
            # What is finite here stays so: even if all of the rest were kept, it is too little.
            raise BudgetExhausted(
                f"{asked} queries were asked, but {left} answers remain in phase "
                f"{state.phase_number}; there will be no next phase, which needs "
                f"{self._needed(state)}. After "
                "them, fit again, which costs again.",
                remaining=left,
                asked=asked,
                needed_rows=state.rules.least,
            )
        left = state.left
        if (users is None and clients is None) or asked <= left:
            return
        # The batch ends this phase, and perhaps others: would each have enough rows?
        if not Forecast.of(state).has_rows_for(self, asked, users, clients):
            raise BudgetExhausted(
                f"{asked} queries were asked, but {left} answers remain in phase "
                f"{state.phase_number}; each phase that the batch goes on to needs "
                f"{self._needed(state)}. "
                "Nothing was answered. Ask fewer, and let others ask.",
                # no count: it would tell whose ids are known
                remaining=left,
                asked=asked,
                needed_rows=state.rules.least,
            )

    def _needed(self, state: PhaseRows) -> str:
        asked = ["new users"] * state.rules.user_ids
        asked += ["clients below client_cap"] * (state.rules.client_cap is not None)
        return f"{state.rules.least:,} rows{' of ' * bool(asked)}{' and '.join(asked)}"

    def used_up(self, state: PhaseRows) -> bool:
        return state.left == 0

    def until_next(self, state: PhaseCounts) -> int:
        left = state.left
        if state.following is not None:
            return left
        before = left - state.late
        # Past the mark, the next phase starts to train as soon as it has enough rows.
        return before if before > 0 else min(left, max(1, state.rules.least - state.n_kept))

    def complete(self, state: PhaseCounts) -> bool:
        if state.n_kept < state.rules.least:
            return False
        return state.left <= state.late

    def to_label(self, state: PhaseRows) -> int:  # noqa: ARG002 - no state has any
        return 0  # their answers gave them weights

    def handed_over(
        self,
        state: PhaseRows,
        taken: int,  # noqa: ARG002 - as above
        weights: Integers | None,  # noqa: ARG002 - as above
    ) -> KeptRows:
        return state.kept


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

    @property
    def late(self) -> int:
        """Number of the last answers of the phase that are given while the next one trains."""
        return self.rules.late_releases(self.n_rows)

    @classmethod
    def of(cls, state: PhaseRows) -> Forecast:
        """Return the counts of a state, which stays as it is."""
        following = None if state.following is None else state.following.n_rows
        counts = (state.left, state.n_rows, state.n_kept, following, state.n_labelled)
        return cls(state.rules, *counts, state.admission.copy())

    def has_rows_for(
        self, next_phase_rows: QueryRows, asked: int, users: Ids, clients: Ids
    ) -> bool:
        """Go through a batch as ``predict`` does, and tell whether each phase gets its rows."""
        start = 0
        while start < asked:
            if self.left == 0:
                if self.following is None:
                    return False
                self.n_rows, self.following = self.following, None
                self.left = self.rules.releases(self.n_rows)
            part = slice(start, min(asked, start + next_phase_rows.until_next(self)))
            count, start = part.stop - part.start, part.stop
            own = (users and users[part], clients and clients[part])
            admitted = self.admission.decide(count, *own)
            self.admission.take(admitted)
            self.left -= count
            self.n_kept += int(admitted.kept.sum())
            if self.following is None and next_phase_rows.complete(self):
                self.following, self.n_kept = self.n_kept + self.labelled, 0
                self.labelled = 0
                self.admission = self.admission.of_new_phase(self.rules.cap(self.n_rows))
        return True


@claim("FRESH")
class SuppliedRows(RowsOfNextPhase):
    """Rows of ``add_unlabelled`` become the rows of the next phase, and queries leave no trace.

    Of the releases of a phase, some are for labelling the next one's rows: at least as many as it
    has rows itself, and with ``growth="auto"`` as many as rows were supplied, up to what the
    schedule allows. What decides are counts: rows supplied, and releases made.
    """

    keeps_queries = False

    def remaining(self, state: PhaseRows) -> float:
        schedule, left, waiting = state.rules.schedule, state.left, len(state.waiting)
        if state.following is not None:
            found, n_rows = left, state.following.n_rows
        else:
            label = self.to_label(state)
            found = max(0, left - label)
            if left < label or waiting < label:  # broken off, or too few rows
                return found
            n_rows, waiting = label + state.n_labelled, waiting - label
        while True:  # the phases that the supplied rows are enough for
            left = schedule.releases(n_rows)
            label = _labelled(schedule, n_rows, left, waiting)
            found += left - label
            if waiting < label:
                return found
            n_rows, waiting = label, waiting - label

    def check_batch(
        self,
        state: PhaseRows,
        asked: int,
        users: Ids,  # noqa: ARG002 - ids do not matter: queries leave no trace
        clients: Ids,  # noqa: ARG002 - as above
    ) -> None:
        left = self.remaining(state)
        if asked > left:
            raise BudgetExhausted(
                f"{asked} queries were asked, but {left} answers remain in phase "
                f"{state.phase_number}; the next phase needs {state.n_rows:,} rows by "
                "add_unlabelled.",
                remaining=left,
                asked=asked,
                needed_rows=state.n_rows,
            )

    def used_up(self, state: PhaseRows) -> bool:
        return self.until_next(state) <= 0

    def until_next(self, state: PhaseRows) -> int:
        if state.following is not None:
            return state.left
        left = state.left - self.to_label(state)
        before = left - state.late
        if before > 0:
            return before
        # Past the mark, the next phase starts to train as soon as it has enough rows.
        return left if len(state.waiting) < self.to_label(state) else 0

    def complete(self, state: PhaseRows) -> bool:
        label = self.to_label(state)
        if state.left > label + state.late or len(state.waiting) < label:
            return False
        if state.left < label:  # nothing else takes releases that are for these rows
            raise BudgetExhausted(
                "the labelling of fresh rows was broken off, and its releases are spent; fit "
                "again.",
                remaining=0,
            )
        return True

    def handed_over(self, state: PhaseRows, taken: int, weights: Integers | None) -> KeptRows:
        found = KeptRows()
        if weights is not None:  # else the training labels them
            found.put(0, state.waiting.first_rows(taken), weights)
        return found

    def to_label(self, state: PhaseRows) -> int:
        left, waiting = state.left - state.late, len(state.waiting)
        return _labelled(state.rules.schedule, state.n_rows, left, waiting)


@claim("FRESH")
def _labelled(schedule: PhaseSchedule, n_rows: int, left: int, waiting: int) -> int:
    """Return how many of the releases left in a phase are for labelling, by counts alone."""
    return max(n_rows, min(schedule.next_rows(n_rows), left, waiting))


QUERY_ROWS, SUPPLIED_ROWS = QueryRows(), SuppliedRows()
