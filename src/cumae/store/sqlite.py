"""One SQLite file as the home of an oracle. It knows rows of tables, and nothing of what they mean.

SQLite comes with apsw, because the system's own may be old: versions below 3.51.3 can damage a
write-ahead log.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import apsw

from cumae.claims import claim
from cumae.errors import InvalidParameter, StoreFailed
from cumae.store.keys import refuse_if_others_read, sync_folder
from cumae.store.ledger import LedgerEntry

FORMAT = 1  # of the file
# How a file of an older format becomes one of the next: one function for each format.
MIGRATIONS: dict[int, Callable[[apsw.Connection], None]] = {}
TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID, STRICT;
CREATE TABLE ledger (number INTEGER PRIMARY KEY, entry TEXT NOT NULL, hash BLOB NOT NULL) STRICT;
CREATE TABLE blobs (number INTEGER, part INTEGER, epoch INTEGER NOT NULL, kind TEXT NOT NULL,
  sealed BLOB NOT NULL, PRIMARY KEY (number, part)) STRICT;
CREATE TABLE answers (name BLOB PRIMARY KEY, epoch INTEGER NOT NULL, sealed BLOB NOT NULL)
  WITHOUT ROWID, STRICT;
"""
# What makes a commit survive a loss of power; read back after it was set.
SAFE = {"journal_mode": "wal", "synchronous": 2}
OPENING = apsw.SQLITE_OPEN_READWRITE


@dataclass
class Blob:
    """One encrypted piece of a state.

    Parameters
    ----------
    number : int
        Its place in the order in which pieces are applied.
    epoch : int
        The key that it is encrypted with.
    kind : str
        What it is.
    parts : list of bytes
        What is encrypted.
    """

    number: int
    epoch: int
    kind: str
    parts: list[bytes] = field(repr=False)


@dataclass
class Transaction:
    """What is committed as one.

    Parameters
    ----------
    entries : list of LedgerEntry
        Ledger entries.
    blobs : list of Blob
        New pieces of the state.
    drop_from, drop_below : int
        Pieces with numbers from the first and below the second are deleted.
    answers : dict from bytes to tuple of int and bytes
        Answers for retries: names, epochs, and what is encrypted.
    drop_answers : bool
        Whether all earlier answers are deleted.
    prune_below : int
        Ledger entries with numbers below are deleted.
    meta : dict from str to str
        What the first transaction says about the oracle.
    """

    entries: list[LedgerEntry] = field(default_factory=list)
    blobs: list[Blob] = field(default_factory=list)
    drop_from: int = 0
    drop_below: int = 0
    answers: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)
    drop_answers: bool = False
    prune_below: int = 0
    meta: dict[str, str] = field(default_factory=dict)


@claim("STORE")
class SqliteFile:
    """The file of an oracle, open for writing or for reading only.

    Parameters
    ----------
    path : Path
        The file; it must exist.
    reading : bool
        Whether nothing will be written: several may read while one writes.
    """

    def __init__(self, path: Path, *, reading: bool = False) -> None:
        self.path = path
        if not path.is_file():
            raise InvalidParameter(f"path={str(path)!r} holds no oracle: there is no such file.")
        refuse_if_others_read(path)
        with failing(path):
            flags = apsw.SQLITE_OPEN_READONLY if reading else OPENING
            self._connection = apsw.Connection(str(path), flags=flags)
            self._connection.set_busy_timeout(10_000)
            self._execute("PRAGMA trusted_schema=OFF")
            self._execute("PRAGMA foreign_keys=OFF")
            if not reading:
                self._make_safe()
        found = self.meta()
        number = int(found.get("format", "0"))
        if not 0 < number <= FORMAT:
            self.close()
            raise InvalidParameter(
                f"path={str(path)!r} has format {number}, but this version of cumae knows up to "
                f"{FORMAT}; open it with a newer version."
            )
        if number < FORMAT and not reading:
            self._migrate(number)

    @classmethod
    def create(cls, path: Path, first: Transaction) -> SqliteFile:
        """Make a file with its first transaction; refuse if there is one already."""
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            raise InvalidParameter(
                f"path={str(path)!r} exists already; go on with it by cumae.open, or give another."
            ) from None
        try:
            with failing(path):
                connection = apsw.Connection(str(path), flags=OPENING)
                connection.execute("PRAGMA journal_mode=wal")
                connection.execute("PRAGMA synchronous=FULL")
                with connection:
                    connection.execute(TABLES)
                    made = {"format": str(FORMAT), **first.meta}
                    connection.executemany("INSERT INTO meta VALUES (?, ?)", made.items())
                connection.close()
                sync_folder(path.parent)
            found = cls(path)
            found.commit(first)
        except BaseException:
            remove_files(path)
            raise
        return found

    def _make_safe(self) -> None:
        self._execute("PRAGMA journal_mode=wal")
        self._execute("PRAGMA synchronous=FULL")
        self._execute("PRAGMA journal_size_limit=67108864")
        for name, wanted in SAFE.items():
            found = self._execute(f"PRAGMA {name}").get
            if found != wanted:
                raise StoreFailed(
                    f"SQLite runs with {name}={found!r} and not {wanted!r} here, so that a loss of "
                    "power could take back a debit; put the file on a local disk."
                )

    def _migrate(self, number: int) -> None:
        with failing(self.path), self._connection:
            for step in range(number, FORMAT):
                MIGRATIONS[step](self._connection)
            self._execute("UPDATE meta SET value=? WHERE name='format'", (str(FORMAT),))

    def _execute(self, text: str, values: Any = None) -> apsw.Cursor:
        return self._connection.execute(text, values)

    def _rows(self, text: str, values: Any = None) -> list[Any]:
        return list(self._execute(text, values).fetchall())

    def meta(self) -> dict[str, str]:
        """Return what the file says about itself; nothing in it is secret."""
        with failing(self.path):
            return dict(self._rows("SELECT name, value FROM meta"))

    def entries(self) -> list[tuple[int, str, bytes]]:
        """Return the ledger, from its beginning or its last checkpoint on."""
        with failing(self.path):
            return self._rows("SELECT number, entry, hash FROM ledger ORDER BY number")

    def head(self) -> tuple[int, bytes]:
        """Return number and hash of the last ledger entry."""
        with failing(self.path):
            text = "SELECT number, hash FROM ledger ORDER BY number DESC LIMIT 1"
            number, known = self._rows(text)[0]
            return number, known

    def blobs(self) -> Iterator[Blob]:
        """Return all pieces of the state, in order."""
        found: Blob | None = None
        with failing(self.path):
            text = "SELECT number, epoch, kind, sealed FROM blobs ORDER BY number, part"
            for number, epoch, kind, sealed in self._execute(text):
                if found is None or found.number != number:
                    if found is not None:
                        yield found
                    found = Blob(number, epoch, kind, [])
                found.parts.append(sealed)
        if found is not None:
            yield found

    def answer(self, name: bytes) -> tuple[int, bytes] | None:
        """Return the epoch of a stored answer and what is encrypted; None if there is none."""
        with failing(self.path):
            text = "SELECT epoch, sealed FROM answers WHERE name=?"
            found = self._rows(text, (name,))
        return (found[0][0], found[0][1]) if found else None

    @claim("STORE")
    def commit(self, change: Transaction) -> None:
        """Write all of it or nothing; once this returns, it survives a loss of power.

        If it raises, nobody knows whether it was committed until ``again`` was called: this
        connection must not be used any more.
        """
        with failing(self.path):
            self._execute("BEGIN IMMEDIATE")
            for text, values in (
                ("DELETE FROM blobs WHERE number>=? AND number<?", _range(change)),
                ("DELETE FROM answers", () if change.drop_answers else None),
                ("DELETE FROM ledger WHERE number<?", _below(change.prune_below)),
            ):
                if values is not None:
                    self._execute(text, values)
            self._connection.executemany(
                "INSERT INTO blobs VALUES (?, ?, ?, ?, ?)",
                [
                    (blob.number, part, blob.epoch, blob.kind, sealed)
                    for blob in change.blobs
                    for part, sealed in enumerate(blob.parts)
                ],
            )
            self._connection.executemany(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?)",
                [(name, *stored) for name, stored in change.answers.items()],
            )
            self._connection.executemany(
                "INSERT INTO ledger VALUES (?, ?, ?)",
                [(entry.number, entry.text, entry.hash) for entry in change.entries],
            )
            self._execute("COMMIT")

    def again(self) -> SqliteFile:
        """Return a new connection, after one that failed."""
        self.close()
        return SqliteFile(self.path)

    def backup(self, path: Path) -> None:
        """Write a copy while others go on writing to the file."""
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with failing(path):
            copy = apsw.Connection(str(path), flags=OPENING)
            try:
                with copy.backup("main", self._connection, "main") as running:
                    while not running.done:
                        running.step(1_000)
                copy.execute("PRAGMA journal_mode=delete")
            finally:
                copy.close()
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_folder(path.parent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, also one that failed; nothing is lost that was committed."""
        with suppress(apsw.Error):
            self._connection.close(force=True)


def _range(change: Transaction) -> tuple[int, int] | None:
    return (change.drop_from, change.drop_below) if change.drop_below else None


def _below(number: int) -> tuple[int] | None:
    return (number,) if number else None


def remove_files(path: Path) -> None:
    """Remove an oracle's file, with what SQLite keeps beside it."""
    for ending in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


@contextmanager
def failing(path: Path) -> Iterator[None]:
    """Let all that SQLite may raise become ``StoreFailed``."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise StoreFailed(
            f"{path} cannot be read or written ({type(error).__name__}). If it is no oracle, give "
            "another path; else look after the disk, and open it again."
        ) from error
