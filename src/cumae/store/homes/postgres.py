"""A PostgreSQL schema as the home of an oracle that several processes answer from, its replicas.

One row, the head, has the number and hash of the last ledger entry. Whoever commits changes it, on
the condition that it is still the one that was read; and whoever wants to commit takes a lock of
the session before reading the head. So replicas take turns. The condition keeps the promise, and
the lock lets nobody work in vain.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import psycopg

from cumae.claims import claim
from cumae.codec import FORMAT
from cumae.errors import InvalidParameter, LiveState, StoreFailed
from cumae.store.homes.connections import connected, failing, without_password
from cumae.store.homes.home import (
    ALL,
    SHARED,
    Blob,
    Home,
    Place,
    Sweep,
    Transaction,
    gathered,
)
from cumae.store.homes.rows import OLD, SWEEP, write_rows
from cumae.store.homes.sqlite import SqliteFile, whole_or_not
from cumae.store.keys import HOME, KeyCommand, KeyFolder, KeyStore, keys_elsewhere
from cumae.store.ledger import LedgerEntry

LARGE = 2**14  # bytes; the buffers of a socket hold less than ten times as much
NAMES = ("meta", "head", "ledger", "blobs", "answers")  # of tables, each after "cumae_"
TABLES = """
CREATE TABLE cumae_meta (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE cumae_head (one boolean PRIMARY KEY CHECK (one), number bigint NOT NULL,
  hash bytea NOT NULL) WITH (fillfactor = 20);
CREATE TABLE cumae_ledger (number bigint PRIMARY KEY, entry text NOT NULL, hash bytea NOT NULL);
CREATE TABLE cumae_blobs (number bigint, part integer, epoch bigint NOT NULL, kind text NOT NULL,
  sealed bytea NOT NULL, PRIMARY KEY (number, part));
ALTER TABLE cumae_blobs ALTER COLUMN sealed SET STORAGE EXTERNAL;
CREATE TABLE cumae_answers (name bytea PRIMARY KEY, epoch bigint NOT NULL, sealed bytea NOT NULL);
ALTER TABLE cumae_answers ALTER COLUMN sealed SET STORAGE EXTERNAL;
"""
SIZE = "SELECT coalesce(sum(length(sealed)), 0) FROM cumae_blobs"  # pages hold deleted rows, too
# What makes a commit survive a crash of the server's machine. Looked at again in every turn.
SAFE = {"fsync": ("on",), "full_page_writes": ("on",), "synchronous_commit": ("on", "remote_apply")}
# A session that nobody hears of any more ends, and its locks with it.
SESSION = """
SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0;
SET client_min_messages = 'error'; SET default_transaction_isolation = 'read committed';
SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3
"""
AGAIN_SECONDS = 30
SETTINGS = ", ".join(f"current_setting('{name}')" for name in SAFE)
HEAD = "number, hash, xmin::text, (SELECT xmin::text FROM cumae_meta WHERE name = 'oracle')"
READ_HEAD = f"SELECT {HEAD}, pg_backend_pid(), {SETTINGS} FROM cumae_head"  # noqa: S608 - names of settings
MOVE_HEAD = (
    "UPDATE cumae_head SET number = %s, hash = %b WHERE number = %s AND hash = %b "  # noqa: S608
    f"RETURNING {HEAD}"
)


class Head(NamedTuple):
    """The last ledger entry, and who wrote it.

    Parameters
    ----------
    number : int
        Of the entry.
    hash : bytes
        Of the chain up to it.
    writer : str
        The transaction that wrote it. A database that was put back has another one.
    tables : str
        The transaction that wrote the tables: the same one until they are put back.
    """

    number: int
    hash: bytes
    writer: str
    tables: str


@claim("REPLICAS")
class PostgresHome(Home):
    """The tables of an oracle, in the schema that an address leads to.

    Parameters
    ----------
    address : str
        As psycopg takes it: ``postgresql://user@host/database``.
    reading : bool
        Whether nothing will be written.
    """

    shared: ClassVar[bool] = True
    written: Head  # by the last commit

    def __init__(self, address: str, *, reading: bool = False) -> None:
        self.address, self.name, self._reading = address, without_password(address), reading
        self._connection = connected(address)
        try:
            self._check(reading)
        except BaseException:
            self.close()
            raise

    def _check(self, reading: bool) -> None:
        with failing(self.name):
            self._execute(SESSION)
            if reading:
                self._execute("SET default_transaction_read_only = on")
            if not self._rows("SELECT to_regclass('cumae_meta') IS NOT NULL")[0][0]:
                raise InvalidParameter(f"path={self.name!r} holds no oracle: there are no tables.")
            number = int(self.meta().get("format", "0"))
            if not 0 < number <= FORMAT:
                raise InvalidParameter(
                    f"path={self.name!r} has format {number}, but this version of cumae knows up "
                    f"to {FORMAT}; open it with a newer version."
                )
            if number < FORMAT and not reading:  # older records are read as they are
                text = "UPDATE cumae_meta SET value=%s WHERE name='format'"
                self._execute(text, (str(FORMAT),))
            self._session = self._rows("SELECT pg_backend_pid()")[0][0]
            self._oracle = self.meta()["oracle"]
            self._refuse_if_others_read()
            if not reading:
                self._refuse_unsafe()

    def _refuse_if_others_read(self) -> None:
        asked = ", ".join(
            f"has_table_privilege('public', 'cumae_{name}', 'SELECT,INSERT,UPDATE,DELETE')"
            for name in NAMES
        )
        if any(self._rows(f"SELECT {asked}")[0]):
            raise StoreFailed(
                f"everybody with an account at {self.name} may use its tables; revoke what was "
                "granted to PUBLIC, and think about who may have a copy."
            )

    def _refuse_unsafe(self) -> None:
        if self._rows("SELECT pg_is_in_recovery()")[0][0]:
            raise StoreFailed(f"{self.name} is a standby; give the address of the primary.")
        self.head()

    # Turns

    @claim("REPLICAS")
    def head(self) -> Head:
        """Return the head; refuse if the server is not safe, or not the one of this session."""
        with failing(self.name):
            return self._checked(self._rows(READ_HEAD)[0])

    def _checked(self, row: Any) -> Head:
        number, known, writer, tables, session, *settings = row
        for (name, wanted), found in zip(SAFE.items(), settings, strict=True):
            if found not in wanted:
                raise StoreFailed(
                    f"PostgreSQL runs with {name}={found} here, so that a crash could take back a "
                    f"debit; set it to {wanted[0]}, and open the oracle again."
                )
        if session != self._session:
            raise StoreFailed(
                "the connection goes to changing sessions, so that locks do not hold; connect to "
                "the server itself, or through a pooler in session mode."
            )
        return Head(number, bytes(known), writer, tables)

    @claim("REPLICAS")
    def take_turn(self) -> Head:
        """Wait until no other replica has a turn, and return the head."""
        try:
            with failing(self.name), self._connection.pipeline():
                self._execute("SELECT pg_advisory_lock(%s)", (self._lock_number("turn"),))
                # A statement of its own, so that it sees what was committed before the lock.
                head = self._execute(READ_HEAD).fetchone()
            return self._checked(head)
        except BaseException:  # nobody knows whether the lock is held
            self.close()
            raise

    def end_turn(self) -> None:
        """Let other replicas go on."""
        with failing(self.name):
            self._execute("SELECT pg_advisory_unlock(%s)", (self._lock_number("turn"),))

    def identity(self) -> bytes:
        """Return what differs in a copy of the database: server, database, table or timeline."""
        text = (
            "SELECT (SELECT system_identifier FROM pg_control_system())::text, "
            "(SELECT oid FROM pg_database WHERE datname = current_database())::text, "
            "'cumae_head'::regclass::oid::text, left(pg_walfile_name(pg_current_wal_lsn()), 8)"
        )
        with failing(self.name):
            return " ".join(self._rows(text)[0]).encode()

    def _lock_number(self, use: str) -> int:
        found = hashlib.sha256(f"cumae {use} {self._oracle}".encode()).digest()
        return int.from_bytes(found[:8], "big", signed=True)

    def join(self, replica: str) -> None:
        """Let others see that this replica has the oracle open, as long as the session lasts."""
        with failing(self.name):
            text = "SELECT pg_try_advisory_lock_shared(%s) AND pg_try_advisory_lock(%s)"
            values = (self._lock_number("open"), self._lock_number(replica))
            if not self._rows(text, values)[0][0]:
                raise LiveState("somebody is about to destroy this oracle.")

    def is_gone(self, replica: str) -> bool:
        """Tell whether the session of a replica has ended, so that it can commit no more."""
        with failing(self.name):
            values = (self._lock_number(replica),)
            if not self._rows("SELECT pg_try_advisory_lock(%s)", values)[0][0]:
                return False
            self._execute("SELECT pg_advisory_unlock(%s)", values)
            return True

    def keep_others_away(self) -> None:
        """Refuse if a replica has the oracle open; until the session ends, none can open it."""
        with failing(self.name):
            text, values = "SELECT pg_try_advisory_lock(%s)", (self._lock_number("open"),)
            if not self._rows(text, values)[0][0]:
                raise LiveState("replicas have this oracle open; close them first.")

    def n_replicas(self) -> int:
        """Return how many replicas have the oracle open."""
        number = self._lock_number("open") % 2**64
        text = (
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted AND "
            "objsubid = 1 AND classid::bigint = %s AND objid::bigint = %s AND database = "
            "(SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        with failing(self.name):
            return int(self._rows(text, (number >> 32, number % 2**32))[0][0])

    # Rows

    def _execute(self, text: str, values: Any = None) -> psycopg.Cursor[Any]:
        return self._connection.execute(text, values)

    def _rows(self, text: str, values: Any = None) -> list[Any]:
        return self._execute(text, values).fetchall()

    def meta(self) -> dict[str, str]:
        with failing(self.name):
            return dict(self._rows("SELECT name, value FROM cumae_meta"))

    def n_bytes(self) -> int:
        with failing(self.name):
            return int(self._rows(SIZE)[0][0])

    def entries(self, after: int = 0) -> list[tuple[int, str, bytes]]:
        with failing(self.name):
            text = "SELECT number, entry, hash FROM cumae_ledger WHERE number > %s ORDER BY number"
            return self._rows(text, (after,))

    def holds(self, number: int, known: bytes) -> bool:
        with failing(self.name):
            found = self._rows("SELECT hash FROM cumae_ledger WHERE number = %s", (number,))
        return bool(found and found[0][0] == known)

    def blobs(self, after: int = 0) -> Iterator[Blob]:
        with failing(self.name):
            text = (
                "SELECT number, epoch, kind, sealed FROM cumae_blobs WHERE number > %s "
                "ORDER BY number, part"
            )
            with self._connection.cursor(binary=True) as cursor:
                yield from gathered(cursor.execute(text, (after,)))

    def parts(self, number: int) -> list[bytes]:
        with failing(self.name), self._connection.cursor(binary=True) as cursor:
            text = "SELECT sealed FROM cumae_blobs WHERE number = %s ORDER BY part"
            return [sealed for (sealed,) in cursor.execute(text, (number,))]

    def n_old(self, old: Sweep) -> int:
        with failing(self.name):
            return int(self._rows(f"SELECT count(*) {OLD}", old[:3])[0][0])

    def sweep(self, old: Sweep) -> None:
        with failing(self.name):
            self._execute(SWEEP, old)

    def answer(self, name: bytes) -> tuple[int, bytes] | None:
        with failing(self.name):
            text = "SELECT epoch, sealed FROM cumae_answers WHERE name = %b"
            found = self._rows(text, (name,))
        return (found[0][0], bytes(found[0][1])) if found else None

    def contents(self) -> Transaction:
        with failing(self.name):
            self._execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                answers = self._rows("SELECT name, epoch, sealed FROM cumae_answers")
                return Transaction(
                    [LedgerEntry(*row) for row in self.entries()],
                    list(self.blobs(ALL)),
                    answers={name: (epoch, sealed) for name, epoch, sealed in answers},
                    meta=self.meta(),
                )
            finally:
                self._execute("ROLLBACK")

    @claim("REPLICAS")
    def commit(self, change: Transaction) -> None:
        if change.after is None:
            raise AssertionError("nobody commits without saying what came before")
        with failing(self.name), self._sent_together(change) as sync:
            self._execute("BEGIN")
            # The condition. A second one that would follow the same entry waits here for the
            # first one's commit, and then changes nothing.
            moved = self._execute(MOVE_HEAD, (*change.head, *change.after))
            write_rows(self._connection, change)
            sync()
            head = moved.fetchone()
            if head is None:
                raise StoreFailed(
                    f"another replica has gone on with the oracle at {self.name} in the meantime; "
                    "open it again."
                )
            done = self._execute("COMMIT")
            sync()
            if done.statusmessage != "COMMIT":  # which a transaction that has failed does not get
                raise StoreFailed(f"{self.name} did not commit; open it again.")
        self.written = Head(*head)

    @contextmanager
    def _sent_together(self, change: Transaction) -> Iterator[Callable[[], None]]:
        """Send small statements without waiting for each answer; yield what waits for all of them.

        With large ones psycopg may wait for ever for the answer to what it has not sent yet
        (psycopg/psycopg, issue 685), so these are sent one by one.
        """
        sealed = [part for blob in change.blobs for part in blob.parts]
        sealed += [answer for _, answer in change.answers.values()]
        if sum(map(len, sealed)) > LARGE:
            yield lambda: None
            return
        with self._connection.pipeline() as running:
            yield running.sync

    def for_reading(self) -> PostgresHome:
        return PostgresHome(self.address, reading=True)

    def again(self) -> PostgresHome:
        self.close()
        until = time.monotonic() + AGAIN_SECONDS
        while True:  # a server that was killed takes a while to come back
            try:
                return PostgresHome(self.address, reading=self._reading)
            except StoreFailed:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._connection.close()


class ServerPlace(Place):
    """A schema of a database.

    Parameters
    ----------
    address : str
        As psycopg takes it.
    """

    shared: ClassVar[bool] = True

    def __init__(self, address: str) -> None:
        self.address, self.name = address, without_password(address)

    def check_new(self) -> None:
        with self._connection() as connection, failing(self.name):
            found = connection.execute("SELECT to_regclass('cumae_meta')").fetchone()
        if found is not None and found[0] is not None:
            raise InvalidParameter(
                f"path={self.name!r} has an oracle already; go on with it by cumae.open, or give "
                "another database or schema."
            )

    def _connection(self) -> psycopg.Connection[Any]:
        return connected(self.address)

    def keys(self, given: str | None) -> KeyFolder | KeyCommand:
        if given is None:
            raise InvalidParameter(
                "keys=None: an oracle in PostgreSQL needs keys that all replicas reach, and that "
                "are not in the database. Give keys='folder:/path' or keys='a command'."
            )
        return keys_elsewhere(given)

    def home(self, *, reading: bool = False) -> PostgresHome:
        return PostgresHome(self.address, reading=reading)

    @claim("REPLICAS")
    def create(self, first: Transaction) -> None:
        made = {"format": str(FORMAT), **first.meta, "home": SHARED}
        with self._connection() as connection, failing(self.name), connection.transaction():
            connection.execute(TABLES)
            for item in made.items():
                connection.execute("INSERT INTO cumae_meta VALUES (%s, %s)", item)
            connection.execute("INSERT INTO cumae_head VALUES (true, %s, %b)", first.head)
            write_rows(connection, first)

    def bind(self, keys: KeyStore) -> None:
        with self.home() as home:
            keys.put(HOME, home.identity())

    def backup(self, path: Path) -> None:
        with self.home(reading=True) as home, whole_or_not(path) as scratch:
            SqliteFile.create(scratch, home.contents()).close()

    def lock(self, keys: KeyStore) -> Any:
        del keys
        home = self.home()
        try:
            home.keep_others_away()
        except BaseException:
            home.close()
            raise
        return home

    def remove(self) -> None:
        with self._connection() as connection, failing(self.name):
            tables = ", ".join(f"cumae_{name}" for name in NAMES)
            connection.execute(f"DROP TABLE IF EXISTS {tables}")

    def n_replicas(self, keys: str | None) -> int:
        del keys
        with self.home(reading=True) as home:
            return home.n_replicas()
