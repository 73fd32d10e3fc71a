"""Events: what changes in the state of a predictor, as frozen values.

An event holds outcomes and not questions: counters as they are afterwards, rows that are kept and
the place of the first of them, hidden ids. So applying one needs no coin, no id in clear and no
decision, and applying it twice changes nothing. The same ``apply`` is used when an answer is given,
when a file is opened, and by replicas that learn what others did.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self, TypeVar

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.mechanisms import Spent
from cumae.predictors.ids import from_rows
from cumae.predictors.waiting import joined

Kind = TypeVar("Kind", bound="type[Event]")

EVENTS: dict[int, type[Event]] = {}  # by numbers that never change: stored files have them


def numbered(number: int) -> Callable[[Kind], Kind]:
    """Give a kind of event its number."""

    def register(kind: Kind) -> Kind:
        if number in EVENTS:
            raise AssertionError(f"two kinds of event have the number {number}")
        kind.number = number
        EVENTS[number] = kind
        return kind

    return register


class Event(ABC):
    """One change of a state."""

    number: ClassVar[int]

    @abstractmethod
    def apply(self, state: Any) -> None:
        """Change the state; applied twice, it changes nothing more."""

    @abstractmethod
    def entry(self) -> dict[str, Any] | None:
        """Return what the ledger says of it; None if it costs nothing and need not be recorded.

        ``used`` are the releases of the phase that are gone afterwards, where that may change.
        """

    def to_facts(self) -> dict[str, Any]:
        """Return its fields for storing."""
        found = {name: value for name, value in vars(self).items() if value is not None}
        if "spent" in found:
            found["spent"] = found["spent"].to_array()
        return found

    def outlasting(self) -> Event | None:
        """Return the part of it that outlasts a phase which began before it; None for nothing."""
        return None

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Self:
        """Rebuild what ``to_facts`` returned."""
        spent = {"spent": Spent.from_array(facts["spent"])} if "spent" in facts else {}
        return cls(**{**facts, **spent})


@numbered(1)
@claim("EVER", "USER", "MEMO", "BBL", "QUERY", "UNV", "STORE")
@dataclass(frozen=True, repr=False, eq=False)  # a message must not show rows
class Answered(Event):
    """Answers that were given, and what is kept of the queries.

    Parameters
    ----------
    count : int
        How many queries were answered.
    answered : int
        Answers since fit, with these.
    spent : Spent, or None
        Counters of the mechanism afterwards; None if what answered was published.
    at : int
        The place of the first kept row among all that are kept.
    rows, weights : table and array, or None
        Rows that are kept, and what their answers are worth to the next phase.
    users : array of bytes, or None
        Hidden ids of users who have their row now, or had it before.
    clients, offered : array of bytes and array of int, or None
        Hidden ids of clients, and how many rows each has offered during this phase.
    query_ids, places : array of bytes and array of int, or None
        Hidden ids of kept queries, and their places; ``~place`` for one that was unusable.
    keys, noisy : array of bytes and array of int, or None
        Hidden rows of a memo, and their noisy votes.
    """

    count: int
    answered: int
    spent: Spent | None = None
    at: int = 0
    rows: Any = None
    weights: Any = None
    users: Any = None
    clients: Any = None
    offered: Any = None
    query_ids: Any = None
    places: Any = None
    keys: Any = None
    noisy: Any = None

    def apply(self, state: Any) -> None:
        if self.rows is not None:
            state.kept.put(self.at, self.rows, self.weights)
        if self.users is not None:
            state.admission.seen.update(from_rows(self.users))
        if self.clients is not None:
            offered = zip(from_rows(self.clients), self.offered.tolist(), strict=True)
            state.admission.of_client.update(offered)
        if self.query_ids is not None:
            places = zip(from_rows(self.query_ids), self.places.tolist(), strict=True)
            state.query_places.update(places)
        if self.keys is not None:
            state.phase.memo.update(zip(from_rows(self.keys), self.noisy, strict=True))
        if self.spent is not None:
            state.spent = self.spent
        state.answered = self.answered

    def entry(self) -> dict[str, Any] | None:
        if self.spent is None or not self.count:
            return None
        return {"event": "answered", "count": self.count, "used": self.spent.asked}

    def outlasting(self) -> Answered:
        return replace(self, spent=None, keys=None, noisy=None)  # these are of the phase

    @classmethod
    def merged(cls, events: Sequence[Answered]) -> Answered:
        """Return one event that does what these do, one after the other."""
        if len(events) == 1:
            return events[0]
        whole = ("count", "answered", "spent", "at")
        tables = [part.name for part in fields(cls) if part.name not in whole]
        found = {}
        for name in tables:
            parts = [getattr(one, name) for one in events if getattr(one, name) is not None]
            found[name] = joined(parts)
        last, kept = events[-1], [one.at for one in events if one.rows is not None]
        count = sum(one.count for one in events)
        return cls(count, last.answered, last.spent, kept[0] if kept else 0, **found)


@numbered(2)
@claim("STORE")
@dataclass(frozen=True, repr=False, eq=False)
class Charged(Event):
    """Releases that may have been used without an answer.

    Parameters
    ----------
    spent : Spent
        Counters of the mechanism afterwards.
    why : str
        What the ledger calls it: "broken off", "restarted" or "rollback".
    """

    spent: Spent
    why: str

    def apply(self, state: Any) -> None:
        state.spent = self.spent

    def entry(self) -> dict[str, Any]:
        return {"event": self.why, "used": self.spent.asked}


@numbered(3)
@claim("FRESH", "BBL")
@dataclass(frozen=True, repr=False, eq=False)
class Supplied(Event):
    """Rows that were supplied for the next phases.

    Parameters
    ----------
    at : int
        How many rows were supplied before.
    rows : array or DataFrame
        The rows.
    """

    at: int
    rows: Any

    def apply(self, state: Any) -> None:
        state.waiting.put(self.at, self.rows)

    def outlasting(self) -> Supplied:
        return self

    def entry(self) -> dict[str, Any]:
        return rows_entry("supplied", len(self.rows))


@numbered(4)
@claim("LABELLED")
@dataclass(frozen=True, repr=False, eq=False)
class Labelled(Event):
    """Rows that came with labels, for the next phase.

    Parameters
    ----------
    count : int
        How many came; ids may admit fewer.
    at : int
        How many wait already.
    rows, weights : table and array of int
        The admitted rows; a weight of 1 for the label.
    users : array of bytes, or None
        Hidden ids of users who have their row now, or had it before.
    """

    count: int
    at: int
    rows: Any
    weights: Any
    users: Any = None

    def apply(self, state: Any) -> None:
        state.labelled.put(self.at, self.rows, self.weights)
        if self.users is not None:
            state.admission.seen.update(from_rows(self.users))

    def outlasting(self) -> Labelled:
        return self

    def entry(self) -> dict[str, Any]:
        return rows_entry("labelled", self.count)


@numbered(5)
@claim("LABELLED")
@dataclass(frozen=True, repr=False, eq=False)
class LabelsArrived(Event):
    """Labels of kept queries, which replace their noisy answers.

    Parameters
    ----------
    places : array of int
        Places of the queries; ``~place`` for one that was unusable, and gets no weight.
    weights : array of int, one row for each
        What the labels are worth.
    """

    places: Integers
    weights: Integers

    def apply(self, state: Any) -> None:
        state.kept.tell(self.places, self.weights)

    def outlasting(self) -> LabelsArrived:
        return self

    def entry(self) -> dict[str, Any]:
        return rows_entry("labels", len(self.places))


@numbered(6)
@claim("BBL", "FRESH", "UNV", "QUERY")
@dataclass(frozen=True, repr=False, eq=False)
class Used(Event):
    """A draw begins: what it needs is gone from the state, so that it cannot be repeated.

    Parameters
    ----------
    spent : Spent
        Counters of the mechanism afterwards, where the draw takes releases.
    """

    spent: Spent

    def apply(self, state: Any) -> None:
        state.spent = self.spent
        state.use()

    def entry(self) -> dict[str, Any]:
        return {"event": "used", "used": self.spent.asked}


@numbered(7)
@claim("STORE")
@dataclass(frozen=True, repr=False, eq=False)
class Remembered(Event):
    """Nothing but answers for retries, whose debit is on the disk already."""

    def apply(self, state: Any) -> None:
        """Change nothing."""

    def entry(self) -> dict[str, Any]:
        return rows_entry("answers", 0)


@claim("STORE")
@dataclass(frozen=True, repr=False, eq=False)
class Whole(Event):
    """A whole state, which replaces everything before it.

    Parameters
    ----------
    state : State
        What there is afterwards.
    """

    state: Any

    def apply(self, state: Any) -> None:
        state.become(self.state)

    def entry(self) -> dict[str, Any]:
        return {"event": "prepared", "used": int(self.state.used)}

    def to_facts(self) -> dict[str, Any]:
        found: dict[str, Any] = self.state.to_facts()
        return found


@claim("EVER", "BBL", "UNV", "QUERY")
@dataclass(frozen=True, repr=False, eq=False)
class Entered(Whole):
    """A phase has begun; what there was of the one before is gone.

    Parameters
    ----------
    count : int
        Answers that were given with it.
    renewed : bool
        Whether a new prior is published with it.
    packed : bytes, or None
        The stored form of its phase, where the training has made it.
    """

    count: int = 0
    renewed: bool = False
    packed: bytes | None = None

    def to_facts(self) -> dict[str, Any]:
        if self.packed is None:
            return super().to_facts()
        found: dict[str, Any] = self.state.to_facts(self.packed)
        return found

    def short_facts(self) -> dict[str, Any]:
        """Return the state without all that was written ahead of it."""
        found: dict[str, Any] = self.state.short_facts()
        return found


def rows_entry(kind: str, count: int) -> dict[str, Any]:
    """Return what the ledger says of rows."""
    return {"event": "rows", "kind": kind, "count": count}
