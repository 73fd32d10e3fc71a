"""Simulated homes and key stores: the real classes, with the world in place of the disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from cumae.codec import FORMAT
from cumae.errors import InvalidParameter, StoreFailed
from cumae.store.homes.home import Blob, Home, Sweep, Transaction
from cumae.store.homes.sqlite import FilePlace
from cumae.store.keys import FOLDER, KeyCommand, KeyFolder, KeyStore
from cumae.store.ledger import LedgerEntry
from tests.simulator.world import Cell, Tables, World, old_parts, swept

WORLDS: list[World] = []  # the one that runs


def world() -> World:
    """Return the world that runs."""
    return WORLDS[-1]


class SimulatedHome(Home):
    """What reads tables; ``cell`` has them."""

    shared: ClassVar[bool] = False
    cell: Cell

    def _tables(self, what: str) -> Tables:
        self.world.point(what)
        found: Tables = self.cell.now
        return found

    @property
    def world(self) -> World:
        return world()

    def meta(self) -> dict[str, str]:
        return dict(self._tables("read meta").meta)

    def entries(self, after: int = 0) -> list[tuple[int, str, bytes]]:
        return [one for one in self._tables("read ledger").entries if one[0] > after]

    def holds(self, number: int, known: bytes) -> bool:
        found = self._tables("read an entry").entries
        return any(one[0] == number and one[2] == known for one in found)

    def blobs(self, after: int = 0) -> Iterator[Blob]:
        yield from [one for one in self._tables("read blobs").blobs if one.number > after]

    def parts(self, number: int) -> list[bytes]:
        found = self._tables("read parts").blobs
        return [part for one in found if one.number == number for part in one.parts]

    def n_old(self, old: Sweep) -> int:
        return len(old_parts(self._tables("count old pieces").blobs, old))

    def sweep(self, old: Sweep) -> None:
        self.world.point("sweep")
        now = self.cell.now
        if old_parts(now.blobs, old):
            self.cell.now = replace(now, blobs=swept(now.blobs, old))
            self.cell.sync()

    def answer(self, name: bytes) -> tuple[int, bytes] | None:
        return self._tables("read an answer").answers.get(name)

    def n_bytes(self) -> int:
        return sum(len(part) for one in self._tables("read sizes").blobs for part in one.parts)

    def contents(self) -> Transaction:
        tables = self._tables("read all")
        entries = [LedgerEntry(*one) for one in tables.entries]
        return Transaction(
            entries, list(tables.blobs), answers=dict(tables.answers), meta=dict(tables.meta)
        )


class SimulatedFile(SimulatedHome):
    """The file of an oracle, as ``SqliteFile``: who has it open keeps it when its name goes."""

    def __init__(self, path: Path, *, reading: bool = False) -> None:
        self.world.point("open a file")
        found = self.world.files.get(path)
        if found is None or found.now is None:
            raise InvalidParameter(f"path={str(path)!r} holds no oracle: there is no such file.")
        if sum(one is found for one in self.world.files.values()) > 1:
            raise InvalidParameter(f"path={str(path)!r} has another name, a hard link.")
        self.path, self.cell, self.reading, self.closed = path, found, reading, False

    @classmethod
    def create(cls, path: Path, first: Transaction) -> SimulatedFile:
        running = world()
        running.point("create a file")
        if path in running.files:
            raise InvalidParameter(f"path={str(path)!r} exists already.")
        made = running.files[path] = Cell(Tables({"format": str(FORMAT), **first.meta}))
        try:
            running.point("create: tables")
            made.sync()
            found = cls(path)
            found.commit(first)
        except BaseException:
            remove(path)
            raise
        return found

    def commit(self, change: Transaction) -> None:
        self.world.point("commit: begin")
        self.world.may_fail("a commit")
        self.cell.now = self.cell.now.after(change)
        self.world.point("commit: written", signals=False)
        self.cell.sync()
        self.world.texts.update(entry.text for entry in change.entries)
        self.world.point("commit: synced")
        self.world.may_fail("the end of a commit")

    def for_reading(self) -> SimulatedFile:
        return SimulatedFile(self.path, reading=True)

    def again(self) -> SimulatedFile:
        self.close()
        return SimulatedFile(self.path)

    def backup(self, path: Path) -> None:
        made = self.world.files[path] = Cell()
        made.now = self._tables("backup")
        self.world.point("backup: written")
        made.sync()

    def close(self) -> None:
        if not self.closed and self.world.process.alive:
            self.closed = True
            self.world.point("close a file")


def remove(path: Path) -> None:
    """Remove a file."""
    world().point("remove a file")
    world().files.pop(path, None)


class SimulatedPlace(FilePlace):
    """A file of the simulated disk; paths are names, and nothing of them is resolved."""

    def __init__(self, path: Path) -> None:
        self.path, self.name = path, str(path)

    def check_new(self) -> None:
        if self.path in world().files:
            raise InvalidParameter(f"path={self.name!r} exists already.")

    def keys(self, given: str | None) -> Any:
        if given is None:
            return SimulatedFolder(self.path.with_name(self.path.name + ".keys"))
        return keys_elsewhere(given, self.path.with_name(self.path.name + ".lock"))

    def n_bytes(self) -> int:
        return 0

    def n_replicas(self, keys: str | None) -> int:
        return int(self.keys(keys).lock_file in world().locks)


def keys_elsewhere(given: str, lock_file: Path | None = None) -> KeyStore:
    """Return the key store that ``keys`` names."""
    if given.startswith(FOLDER):
        return SimulatedFolder(Path(given[len(FOLDER) :]))
    return SimulatedCommand(given, lock_file)


class SimulatedFolder(KeyFolder):
    """Secrets in a folder: one is there after a rename, and survives after a sync."""

    @property
    def _cells(self) -> dict[str, Cell]:
        try:
            return world().folders[self.folder]
        except KeyError:
            raise StoreFailed("the keys of this oracle cannot be read or written.") from None

    @classmethod
    def make(cls, folder: Path) -> KeyFolder:
        world().point("keys: make")
        if folder in world().folders:
            raise InvalidParameter(f"{folder} exists already.")
        world().folders[folder] = {}
        return cls(folder)

    def check(self) -> None:
        if self.folder not in world().folders:
            raise StoreFailed(f"{self.folder} with the keys of this oracle is not there.")

    def get(self, name: str) -> bytes | None:
        world().point("keys: get")
        found = world().folders.get(self.folder, {}).get(name)
        return None if found is None else found.now

    def put(self, name: str, secret: bytes) -> None:
        world().point("keys: put")
        world().may_fail("a put of a key")
        cell = self._cells.setdefault(name, Cell())
        cell.now = secret
        world().point("keys: renamed")
        cell.sync()
        world().point("keys: synced")

    def delete(self, name: str) -> None:
        world().point("keys: delete")
        cell = self._cells.get(name)
        if cell is not None:
            cell.now = None
            world().point("keys: unlinked")
            cell.sync()
            self._cells.pop(name, None)
        world().point("keys: deleted")

    def names(self) -> list[str]:
        world().point("keys: list")
        return [name for name, cell in self._cells.items() if cell.now is not None]

    def remove(self) -> None:
        remove_tree(self.folder)


class SimulatedCommand(KeyCommand):
    """Secrets behind a command: another machine has them, and all copies reach it."""

    def _run(self, *words: str, given: bytes = b"") -> bytes:
        word, *name = words
        world().point(f"keys: {word}")
        world().may_fail(f"the command for keys ({word})")
        store = world().stores.setdefault(self.words[0], {})
        found = b""
        if word == "list":
            found = "\n".join(store).encode()
        elif word == "put":
            store[name[0]] = given
        elif word == "delete":
            store.pop(name[0], None)
        elif name[0] in store:
            found = store[name[0]]
        else:
            raise StoreFailed(f"the command for keys failed with exit code 1 for {word!r}.")
        if word in ("put", "delete"):
            world().point(f"keys: {word} done")
            world().may_fail(f"the answer of the command for keys ({word})")
        return found

    def remove(self) -> None:
        if self.lock_file is not None:
            world().locks.pop(self.lock_file, None)


def remove_tree(folder: Path, **_: Any) -> None:
    """Remove a folder of keys, as ``shutil.rmtree`` does; who waits for its lock waits no more."""
    world().point("keys: remove")
    world().folders.pop(folder, None)
    world().locks.pop(folder / "lock", None)
