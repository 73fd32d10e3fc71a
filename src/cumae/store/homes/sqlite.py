"""One SQLite file as the home of an oracle.

SQLite comes with apsw, because the system's own may be old: versions below 3.51.3 can damage a
write-ahead log.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cumae.claims import claim
from cumae.codec import FORMAT
from cumae.errors import InvalidParameter, LiveState, StoreFailed
from cumae.extras import STORE, LaterModule
from cumae.privacy.account_file import refuse_several_names
from cumae.store.homes.home import (
    ALL,
    Blob,
    Home,
    Place,
    Sweep,
    Transaction,
    gathered,
)
from cumae.store.keys import (
    KeyCommand,
    KeyFolder,
    KeyStore,
    keys_elsewhere,
    refuse_if_others_read,
    sync_folder,
    take_lock,
)
from cumae.store.ledger import LedgerEntry

if TYPE_CHECKING:
    import apsw
else:
    apsw = LaterModule("apsw", *STORE)

# How a file of an older format becomes one of the next: one function for each format. The tables
# have been the same since the first; what is in them is written anew when it is opened, because
# that needs keys.
MIGRATIONS: dict[int, Callable[[apsw.Connection], None]] = {
    1: lambda _: None,
    2: lambda _: None,
    3: lambda _: None,
    4: lambda _: None,
    5: lambda _: None,
}
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
OLD = "FROM blobs WHERE number<? AND number<>? AND epoch<=?"
SWEEP = f"DELETE FROM blobs WHERE (number, part) IN (SELECT number, part {OLD} LIMIT ?)"  # noqa: S608 - as above
OPENING = 0x2  # SQLITE_OPEN_READWRITE; apsw, which knows its name, is imported later
PAGE = 1_024  # bytes; an answer changes some hundred bytes, but pages are written whole


class NoDatabase(StoreFailed):
    """A file is none of SQLite, so that no connection of this process can have a lock on it."""


@claim("STORE")
class SqliteFile(Home):
    """The file of an oracle, open for writing or for reading only.

    Parameters
    ----------
    path : Path
        The file; it must exist.
    reading : bool
        Whether nothing will be written: several may read while one writes.
    """

    shared: ClassVar[bool] = False

    def __init__(self, path: Path, *, reading: bool = False) -> None:
        self.path = path
        if not path.is_file():
            why = "it is a folder" if path.is_dir() else "there is no such file"
            raise InvalidParameter(f"path={str(path)!r} holds no oracle: {why}.")
        if not path.stat().st_size:  # SQLite would take it for an empty database
            raise NoDatabase(f"{path} is empty.")
        with failing(path):
            refuse_several_names(path)
            flags = apsw.SQLITE_OPEN_READONLY if reading else OPENING
            self._connection = apsw.Connection(str(path), flags=flags)
        try:
            self._check(reading)
        except BaseException:
            self.close()
            raise

    def _check(self, reading: bool) -> None:
        """Refuse what is no oracle, or one that is not safe here.

        SQLite reads the file, and nothing else does: whoever closes a descriptor of it ends all
        POSIX locks of the process on it, also those of other connections.
        """
        with failing(self.path):
            self._connection.set_busy_timeout(10_000)
            self._execute("PRAGMA trusted_schema=OFF")
            try:
                self._execute("PRAGMA schema_version")
            except apsw.NotADBError:  # before anybody is told to change its mode
                raise NoDatabase(
                    f"{self.path} cannot be read as an oracle: it is another kind of file, or it "
                    "is damaged. A published model is shown by `cumae show`."
                ) from None
            refuse_if_others_read(self.path)
            self._execute("PRAGMA foreign_keys=OFF")
            if not reading:
                self._make_safe()
        number = int(self.meta().get("format", "0"))
        if not 0 < number <= FORMAT:
            raise InvalidParameter(
                f"path={str(self.path)!r} has format {number}, but this version of cumae knows up "
                f"to {FORMAT}; open it with a newer version."
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
                connection.execute(f"PRAGMA page_size={PAGE}")
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
        with failing(self.path):
            return dict(self._rows("SELECT name, value FROM meta"))

    def n_bytes(self) -> int:
        with failing(self.path):
            pages = [self._execute(f"PRAGMA {name}").get for name in ("page_count", "page_size")]
        return int(pages[0] * pages[1])

    def entries(self, after: int = 0) -> list[tuple[int, str, bytes]]:
        with failing(self.path):
            text = "SELECT number, entry, hash FROM ledger WHERE number>? ORDER BY number"
            return self._rows(text, (after,))

    def holds(self, number: int, known: bytes) -> bool:
        with failing(self.path):
            found = self._rows("SELECT hash FROM ledger WHERE number=?", (number,))
        return bool(found and found[0][0] == known)

    def blobs(self, after: int = 0) -> Iterator[Blob]:
        with failing(self.path):
            text = (
                "SELECT number, epoch, kind, sealed FROM blobs WHERE number>? ORDER BY number, part"
            )
            yield from gathered(self._execute(text, (after,)))

    def parts(self, number: int) -> list[bytes]:
        with failing(self.path):
            text = "SELECT sealed FROM blobs WHERE number=? ORDER BY part"
            return [sealed for (sealed,) in self._rows(text, (number,))]

    def n_old(self, old: Sweep) -> int:
        with failing(self.path):
            return int(self._rows(f"SELECT count(*) {OLD}", old[:3])[0][0])

    def sweep(self, old: Sweep) -> None:
        with failing(self.path):
            self._execute(SWEEP, old)

    def answer(self, name: bytes) -> tuple[int, bytes] | None:
        with failing(self.path):
            text = "SELECT epoch, sealed FROM answers WHERE name=?"
            found = self._rows(text, (name,))
        return (found[0][0], found[0][1]) if found else None

    def contents(self) -> Transaction:
        with failing(self.path), self._connection:
            answers = self._rows("SELECT name, epoch, sealed FROM answers")
            entries, blobs, meta = self.entries(), list(self.blobs(ALL)), self.meta()
        return Transaction(
            [LedgerEntry(*row) for row in entries],
            blobs,
            answers={name: (epoch, sealed) for name, epoch, sealed in answers},
            meta=meta,
        )

    @claim("STORE")
    def commit(self, change: Transaction) -> None:
        try:
            self._commit(change)
        except (apsw.Error, OSError) as error:
            raise failed(self.path, error) from error

    def _commit(self, change: Transaction) -> None:
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        if change.drop_below:
            dropped = (change.drop_from, change.drop_below)
            execute("DELETE FROM blobs WHERE number>=? AND number<?", dropped)
        if change.drop_answers:
            execute("DELETE FROM answers")
        if change.prune_below:
            execute("DELETE FROM ledger WHERE number<?", (change.prune_below,))
        if change.sweep is not None:
            execute(SWEEP, change.sweep)
        for number, epoch, kind, parts, first in change.blobs:
            for part, sealed in enumerate(parts, first):
                row = (number, part, epoch, kind, sealed)
                execute("INSERT INTO blobs VALUES (?, ?, ?, ?, ?)", row)
        for name, stored in change.answers.items():
            execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", (name, *stored))
        for entry in change.entries:
            execute("INSERT INTO ledger VALUES (?, ?, ?)", entry)
        execute("COMMIT")

    def for_reading(self) -> SqliteFile:
        return SqliteFile(self.path, reading=True)

    def again(self) -> SqliteFile:
        self.close()
        return SqliteFile(self.path)

    def backup(self, path: Path) -> None:
        """Write a copy while others go on writing to the file."""
        with whole_or_not(path) as scratch, failing(path):
            os.close(os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            copy = apsw.Connection(str(scratch), flags=OPENING)
            try:
                with copy.backup("main", self._connection, "main") as running:
                    while not running.done:
                        running.step(1_000)
                copy.execute("PRAGMA journal_mode=delete")
            finally:
                copy.close()

    def close(self) -> None:
        with suppress(apsw.Error):
            self._connection.close(force=True)


class FilePlace(Place):
    """A file.

    Parameters
    ----------
    path : Path
        Where it is.
    """

    shared: ClassVar[bool] = False

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.name = str(path)

    def check_new(self) -> None:
        if not self.path.parent.is_dir():
            raise InvalidParameter(f"path={self.name!r}: there is no such folder.")
        if self.path.exists():
            raise InvalidParameter(
                f"path={self.name!r} exists already; go on with it by cumae.open, or give another."
            )

    def keys(self, given: str | None) -> KeyFolder | KeyCommand:
        if given is None:
            return KeyFolder(self.path.with_name(self.path.name + ".keys"))
        return keys_elsewhere(given, self.path.with_name(self.path.name + ".lock"))

    def home(self, *, reading: bool = False) -> SqliteFile:
        return SqliteFile(self.path, reading=reading)

    def create(self, first: Transaction) -> None:
        sync_folder(self.path.parent)  # the folder of the keys may be in it
        SqliteFile.create(self.path, first).close()

    def bind(self, keys: KeyStore) -> None:
        """Do nothing: whoever opens the file writes the name of its life."""

    def backup(self, path: Path) -> None:
        with self.home(reading=True) as file:
            file.backup(path)

    def lock(self, keys: KeyStore) -> Any:
        return take_lock(keys.lock_file)

    def remove(self) -> None:
        remove_files(self.path)
        sync_folder(self.path.parent)

    def n_replicas(self, keys: str | None) -> int:
        lock_file = self.keys(keys).lock_file
        if lock_file is None or not lock_file.exists():
            return 0
        try:
            take_lock(lock_file).close()
        except LiveState:
            return 1
        return 0


def remove_files(path: Path) -> None:
    """Remove an oracle's file, with what SQLite keeps beside it."""
    for ending in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + ending).unlink(missing_ok=True)


@contextmanager
def whole_or_not(path: Path) -> Iterator[Path]:
    """Return another name to write a new file under: it gets its own name when it is whole.

    A process that is killed meanwhile leaves the other name behind, which ends in ``.part`` and
    which the next try removes; nobody takes half of an oracle for one.
    """
    scratch = path.with_name(f"{path.name}.part")
    remove_files(scratch)
    try:
        yield scratch
        descriptor = os.open(scratch, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        scratch.rename(path)
        sync_folder(path.parent)
    except BaseException:
        remove_files(scratch)
        raise


@contextmanager
def failing(path: Path) -> Iterator[None]:
    """Let all that SQLite may raise become ``StoreFailed``."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise failed(path, error) from error


def failed(path: Path, error: Exception) -> StoreFailed:
    """Return what is raised when a file cannot be used."""
    return StoreFailed(
        f"{path} cannot be read or written ({type(error).__name__}). If it is no oracle, give "
        "another path; else check the disk, and open it again."
    )
