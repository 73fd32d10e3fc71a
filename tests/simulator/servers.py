"""A simulated PostgreSQL server: sessions, advisory locks, and a head that commits depend on."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from cumae.codec import FORMAT
from cumae.errors import InvalidParameter, LiveState, StoreFailed
from cumae.store.homes.home import SHARED, Home, Place, Transaction
from cumae.store.homes.postgres import Head
from cumae.store.keys import HOME, KeyStore
from tests.simulator.homes import (
    SimulatedFile,
    SimulatedHome,
    SimulatedPlace,
    keys_elsewhere,
    world,
)
from tests.simulator.world import MOST_TURNS, Cell, Stuck, Tables

SERVER = "server:"  # what addresses begin with


class Database(Cell):
    """The tables of one schema, with their head, sessions and locks."""

    def __init__(self, name: str) -> None:
        super().__init__(Tables(), Tables())
        self.name, self.identity = name, f"{name} 1".encode()
        self.transactions = count(1)
        self.head: Head | None = None
        self.sessions: list[Session] = []
        self.locks: dict[str, list[Session]] = {}  # exclusive but for "open"

    def write(self, tables: Tables) -> None:
        """Write all tables anew, as a dump does; the head has another writer then."""
        self.now = self.synced = tables
        number, _, known = tables.entries[-1]
        transaction = str(next(self.transactions))
        self.head = Head(number, known, transaction, transaction)

    def end_sessions(self) -> None:
        """Restart the server: what was committed stays, sessions and their locks end."""
        for session in list(self.sessions):
            session.end()


class Session:
    """A connection with its locks, as long as it lasts."""

    def __init__(self, database: Database) -> None:
        self.database, self.alive = database, True
        database.sessions.append(self)
        world().process.sessions.append(self)

    def end(self) -> None:
        self.alive = False
        for held in self.database.locks.values():
            while self in held:
                held.remove(self)
        if self in self.database.sessions:
            self.database.sessions.remove(self)

    def try_lock(self, name: str, *, shared: bool = False) -> bool:
        held = self.database.locks.setdefault(name, [])
        if not shared and any(other is not self for other in held):
            return False
        held.append(self)
        return True

    def unlock(self, name: str) -> None:
        held = self.database.locks.get(name, [])
        if self in held:
            held.remove(self)


class SimulatedServerHome(SimulatedHome):
    """A connection to a simulated database, as ``PostgresHome``."""

    shared: ClassVar[bool] = True
    written: Head

    def __init__(self, name: str, *, reading: bool = False) -> None:
        self.world.point("connect")
        self.name, self.reading = name, reading
        found = self.world.databases.get(name)
        if found is None or found.head is None:
            raise InvalidParameter(f"path={name!r} holds no oracle: there are no tables.")
        self.cell: Database = found
        self.session = Session(found)

    def _alive(self, what: str) -> None:
        self.world.point(what)
        if not self.session.alive:
            raise StoreFailed(f"{self.name} cannot be read or written (OperationalError).")

    def _tables(self, what: str) -> Tables:
        self._alive(what)
        found: Tables = self.cell.now
        return found

    # Turns

    def head(self) -> Head:
        self._alive("read the head")
        if self.cell.head is None:
            raise StoreFailed("there are no tables.")
        return self.cell.head

    def take_turn(self) -> Head:
        try:
            for _ in range(MOST_TURNS):
                self._alive("take a turn")
                if self.session.try_lock("turn"):
                    return self.head()
                self.world.steps["wait for a turn"] += 1
                self.world.yielded(self.world.process, signals=True)
            raise Stuck("nobody ends a turn")
        except BaseException:
            self.close()
            raise

    def end_turn(self) -> None:
        self._alive("end a turn")
        self.session.unlock("turn")

    def identity(self) -> bytes:
        self._alive("read the identity")
        return self.cell.identity

    def join(self, replica: str) -> None:
        self._alive("join")
        if not (self.session.try_lock("open", shared=True) and self.session.try_lock(replica)):
            raise LiveState("somebody is about to destroy this oracle.")

    def is_gone(self, replica: str) -> bool:
        self._alive("look for a replica")
        if not self.session.try_lock(replica):
            return False
        self.session.unlock(replica)
        return True

    def keep_others_away(self) -> None:
        self._alive("keep others away")
        if not self.session.try_lock("open"):
            raise LiveState("replicas have this oracle open; close them first.")

    # Rows

    def commit(self, change: Transaction) -> None:
        self._alive("commit: begin")
        self.world.may_fail("a commit")
        if self.cell.head is None or self.cell.head[:2] != change.after:
            raise StoreFailed(f"another replica has gone on with the oracle at {self.name}.")
        self.cell.now = self.cell.now.after(change)
        self.cell.sync()
        transaction = str(next(self.cell.transactions))
        self.cell.head = Head(*change.head, transaction, self.cell.head.tables)
        written = self.cell.head
        self._alive("commit: written")
        self.world.may_fail("the end of a commit")
        self.written = written

    def for_reading(self) -> SimulatedServerHome:
        return SimulatedServerHome(self.name, reading=True)

    def again(self) -> SimulatedServerHome:
        self.close()
        return SimulatedServerHome(self.name, reading=self.reading)

    def close(self) -> None:
        if self.world.process.alive:
            self.session.end()


class SimulatedServerPlace(Place):
    """A schema of a simulated database."""

    shared: ClassVar[bool] = True

    def __init__(self, name: str) -> None:
        self.name = name

    def check_new(self) -> None:
        found = world().databases.get(self.name)
        if found is not None and found.head is not None:
            raise InvalidParameter(f"path={self.name!r} has an oracle already.")

    def keys(self, given: str | None) -> KeyStore:
        if given is None:
            raise InvalidParameter("keys=None: an oracle in PostgreSQL needs keys.")
        return keys_elsewhere(given)

    def home(self, *, reading: bool = False) -> Home:
        return SimulatedServerHome(self.name, reading=reading)

    def create(self, first: Transaction) -> None:
        world().point("create tables")
        made = world().databases.setdefault(self.name, Database(self.name))
        tables = Tables().after(first)
        meta = {"format": str(FORMAT), **first.meta, "home": SHARED}
        made.write(Tables(meta, tables.entries, tables.blobs, tables.answers))
        world().point("create tables: done")

    def bind(self, keys: KeyStore) -> None:
        with self.home() as home:
            keys.put(HOME, home.identity())  # type: ignore[attr-defined]

    def backup(self, path: Path) -> None:
        with self.home(reading=True) as home:
            SimulatedFile.create(path, home.contents()).close()

    def lock(self, keys: KeyStore) -> Any:
        del keys
        home: Any = self.home()
        try:
            home.keep_others_away()
        except BaseException:
            home.close()
            raise
        return home

    def remove(self) -> None:
        world().point("drop tables")
        found = world().databases.get(self.name)
        if found is not None:
            found.head = None

    def n_bytes(self) -> int:
        return 0

    def n_replicas(self, keys: str | None) -> int:
        del keys
        return len(world().databases[self.name].locks.get("open", []))


def place_of(path: str | Path) -> Place:
    """Return the simulated place that a path or an address names."""
    if str(path).startswith(SERVER):
        return SimulatedServerPlace(str(path))
    return SimulatedPlace(Path(path))
