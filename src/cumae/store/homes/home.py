"""Homes of oracles: they know rows of tables, and nothing of what the rows mean."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from cumae.store.keys import KeyStore
from cumae.store.ledger import LedgerEntry

ALL = -(2**63)  # below all numbers of pieces
SHARED = "shared"  # what meta says of an oracle that has replicas


class Blob(NamedTuple):
    """One encrypted piece of a state.

    Parameters
    ----------
    number : int
        Its place in the order in which pieces are applied; below 0 for what was written ahead.
    epoch : int
        Number of the key that it is encrypted with.
    kind : str
        What it holds: a snapshot, answers, labels or supplied rows.
    parts : list of bytes
        What is encrypted.
    first : int
        The place of the first of these parts; others were written before.
    """

    number: int
    epoch: int
    kind: str
    parts: list[bytes]
    first: int = 0


class Sweep(NamedTuple):
    """Pieces that belong to no state any more.

    Parameters
    ----------
    below : int
        Their numbers are below.
    but : int
        This number is none of them: what was written ahead for the epoch that has begun.
    epoch : int
        Their epochs are not above.
    most : int
        How many parts are deleted at most.
    """

    below: int
    but: int
    epoch: int
    most: int = 2**31


@dataclass
class Transaction:
    """The writes that are committed as one.

    Parameters
    ----------
    entries : list of LedgerEntry
        Ledger entries.
    blobs : list of Blob
        New pieces of the state.
    drop_from, drop_below : int
        Pieces with numbers from the first and below the second are deleted.
    sweep : Sweep, or None
        Old pieces, of which some are deleted.
    answers : dict from bytes to tuple of int and bytes
        Answers for retries: names, epochs, and what is encrypted.
    drop_answers : bool
        Whether all earlier answers are deleted.
    prune_below : int
        Ledger entries with numbers below are deleted.
    meta : dict from str to str
        What the first transaction says about the oracle.
    after : tuple of int and bytes, or None
        Number and hash of the ledger entry that must be the last one before; None at the beginning.
    """

    entries: list[LedgerEntry] = field(default_factory=list)
    blobs: list[Blob] = field(default_factory=list)
    drop_from: int = 0
    drop_below: int = 0
    sweep: Sweep | None = None
    answers: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    drop_answers: bool = False
    prune_below: int = 0
    meta: dict[str, str] = field(default_factory=dict)
    after: tuple[int, bytes] | None = None

    @property
    def head(self) -> tuple[int, bytes]:
        """Number and hash of the last entry."""
        return self.entries[-1].number, self.entries[-1].hash


class Home(ABC):
    """An open connection to the tables of one oracle."""

    shared: ClassVar[bool]  # whether several processes may answer from it

    @abstractmethod
    def meta(self) -> dict[str, str]:
        """Return what the tables say about themselves; nothing in it is secret."""

    @abstractmethod
    def entries(self, after: int = 0) -> list[tuple[int, str, bytes]]:
        """Return the ledger, from its last checkpoint or from after a number on."""

    @abstractmethod
    def holds(self, number: int, known: bytes) -> bool:
        """Tell whether the ledger has an entry with this number and hash."""

    @abstractmethod
    def blobs(self, after: int = 0) -> Iterator[Blob]:
        """Return all pieces of the state with numbers above one, in order."""

    @abstractmethod
    def parts(self, number: int) -> list[bytes]:
        """Return all parts of one piece."""

    @abstractmethod
    def n_old(self, old: Sweep) -> int:
        """Return how many parts of old pieces there are."""

    @abstractmethod
    def sweep(self, old: Sweep) -> None:
        """Delete old pieces, in a transaction of its own."""

    @abstractmethod
    def answer(self, name: bytes) -> tuple[int, bytes] | None:
        """Return the epoch of a stored answer and what is encrypted; None if there is none."""

    @abstractmethod
    def n_bytes(self) -> int:
        """Return the size of the tables, which follows from public counts."""

    @abstractmethod
    def contents(self) -> Transaction:
        """Return everything, as one transaction that makes a copy."""

    @abstractmethod
    def commit(self, change: Transaction) -> None:
        """Write all of it or nothing; once this returns, it survives a loss of power.

        If it raises, nobody knows whether it was committed until ``again`` was called: this
        connection must not be used any more.
        """

    @abstractmethod
    def for_reading(self) -> Home:
        """Return another connection, to read while this one writes."""

    @abstractmethod
    def again(self) -> Home:
        """Return a new connection, after one that failed."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection, also one that failed; nothing is lost that was committed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Place(ABC):
    """Where an oracle is, or will be: a file, or an address.

    ``name`` is what messages call it.
    """

    name: str
    shared: ClassVar[bool]

    @abstractmethod
    def check_new(self) -> None:
        """Refuse if an oracle cannot be made here."""

    @abstractmethod
    def keys(self, given: str | None) -> KeyStore:
        """Return where its keys are; ``given`` is that of ``cumae.open``."""

    @abstractmethod
    def home(self, *, reading: bool = False) -> Home:
        """Return a connection."""

    @abstractmethod
    def create(self, first: Transaction) -> None:
        """Make the tables, with their first transaction; refuse if there are some already."""

    @abstractmethod
    def bind(self, keys: KeyStore) -> None:
        """Write among the keys that they belong to this very place, where there can be others."""

    @abstractmethod
    def backup(self, path: Path) -> None:
        """Write a copy into a new file, while others go on writing."""

    @abstractmethod
    def lock(self, keys: KeyStore) -> Any:
        """Return what keeps all others away until it is closed; refuse if somebody has it open."""

    @abstractmethod
    def remove(self) -> None:
        """Remove the tables."""

    @abstractmethod
    def n_replicas(self, keys: str | None) -> int:
        """Return how many processes have it open; ``keys`` is that of ``cumae.open``."""


def gathered(rows: Iterable[tuple[int, int, str, bytes]]) -> Iterator[Blob]:
    """Return pieces of a state from rows of a table: number, epoch, kind and a part, in order."""
    found: Blob | None = None
    for number, epoch, kind, sealed in rows:
        if found is None or found.number != number:
            if found is not None:
                yield found
            found = Blob(number, epoch, kind, [])
        found.parts.append(sealed)
    if found is not None:
        yield found


def blob_rows(change: Transaction) -> list[tuple[int, int, int, str, bytes]]:
    """Return rows of a table for new pieces: number, part, epoch, kind, and what is encrypted."""
    return [
        (blob.number, part, blob.epoch, blob.kind, sealed)
        for blob in change.blobs
        for part, sealed in enumerate(blob.parts, blob.first)
    ]
