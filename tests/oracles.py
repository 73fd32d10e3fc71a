"""Small durable oracles for tests, and how they break."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import numpy as np

import cumae
from cumae import store
from cumae.concepts import Thresholds

ROWS = np.random.default_rng(5).random((400, 1))
SECTOR = 512  # bytes that a disk writes as one
MARKED = 0.123456789  # a cell that tests look for in files
SHARED: dict[str, Any] = {
    "epsilon": 60.0,
    "shard_size": 10,
    "growth": 1.0,
    "prior": False,
    "late": 0.0,
    "background": False,  # phases end where tests expect it
}


def everlasting(**more: Any) -> cumae.EverlastingPredictor:
    """Return a fitted predictor whose phases have 400 answers."""
    made = cumae.EverlastingPredictor(Thresholds(), **{**SHARED, **more})
    ids = {"users": range(len(ROWS))} if more.get("user_ids") else {}
    return made.fit(ROWS, (ROWS[:, 0] > 0.3).astype(int), **ids)


def oracle(folder: Path, **more: Any) -> tuple[Path, Any]:
    """Return a new file and the oracle in it, open."""
    path = folder / "oracle.db"
    everlasting(**more).save_to(path)
    return path, cumae.open(path)


@dataclass
class Where:
    """Where the oracle of a test lives: in a file, or in PostgreSQL.

    Parameters
    ----------
    address : str or Path
        For ``save_to``.
    keys : str, or None
        The same.
    key_folder : Path
        Where the keys are.
    server : PostgresServer, or None
        What has the address.
    """

    address: Any
    keys: str | None
    key_folder: Path
    server: Any = None

    @property
    def shared(self) -> bool:
        return self.server is not None

    def save(self, one: Any) -> None:
        one.save_to(self.address, keys=self.keys)

    def open(self, **more: Any) -> Any:
        return cumae.open(self.address, keys=self.keys, **more)

    def oracle(self, **more: Any) -> Any:
        """Return a new oracle, open."""
        self.save(everlasting(**more))
        return self.open()

    def status(self) -> Any:
        return store.status(self.address, keys=self.keys)

    def used(self) -> int:
        return int(self.status().totals.used)


def key_command(folder: Path) -> tuple[str, Path]:
    """Return a command that keeps keys, and the folder where it keeps them."""
    where = folder / "elsewhere"
    where.mkdir()
    script = folder / "keys.sh"
    script.write_text(
        'cd "$1" && case $2 in\n'
        "list) ls ;;\n"
        'get) cat "$3" ;;\n'
        'put) cat > .new && mv .new "$3" ;;\n'
        'delete) rm "$3" ;;\n'
        "esac\n",
        encoding="utf-8",
    )
    return f"sh {script} {where}", where


def ask_part(one: Any, more: dict[str, Any], queries: Any, start: int, *cuts: int) -> list[Any]:
    """Ask 150 queries of a predictor with these parameters; return what it shows then.

    Parameters
    ----------
    one : EverlastingPredictor
        Made by ``everlasting(**more)``.
    more : dict
        Its parameters; ids and fresh rows are given where they ask for them.
    queries : array
        All queries.
    start : int
        The first one of this part.
    *cuts : int
        Where the part is cut into several calls.
    """
    part = queries[start : start + 150]
    if more.get("fresh"):
        one.add_unlabelled(queries if start == 0 else part)
        part = part[:60]
    ids: dict[str, Any] = {}
    if more.get("user_ids"):
        ids = {"users": range(5_000 + start, 5_000 + start + len(part))}
    if "client_cap" in more:
        ids = {"clients": [f"client {number % 3}" for number in range(len(part))]}
    answers = []
    for first, last in itertools.pairwise([0, *cuts, len(part)]):
        own = {name: given[first:last] for name, given in ids.items()}
        answers.append(one.predict(part[first:last], **own).tolist())
    return [answers, one.phase_, one.answered_, one.remaining_]


def break_off(one: Any) -> None:
    """Leave an oracle as a crash does: what is on the disk stays, and the mark is not settled."""
    _, _, (_, writer, reader, lock), _ = one._counter_.journal._end.detach()
    writer.failed = RuntimeError("the process is gone")
    for each in (reader, writer.home, lock):
        if each is not None:
            each.close()


class UnsyncedFile(apsw.VFSFile):
    """Remembers what every write since the last sync replaced."""

    def __init__(self, owner: Unsynced, name: Any, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        self.owner = owner
        self.name = name.filename() if hasattr(name, "filename") else name

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self.owner.write(self.name, data, offset)
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self.owner.truncate(self.name, size)
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self.owner.sync(self.name)
        super().xSync(flags)


class Unsynced(apsw.VFS):
    """A file system that loses, with the power, what was not synced; and that can be full."""

    def __init__(self) -> None:
        self.before: dict[str, list[tuple[int, bytes, int]]] = {}
        self.fails_after: int | None = None
        self.error: type[Exception] = apsw.IOError
        super().__init__("unsynced", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> UnsyncedFile:  # noqa: N802
        return UnsyncedFile(self, name, flags)

    def _count(self) -> None:
        if self.fails_after is not None:
            self.fails_after -= 1
            if self.fails_after < 0:
                raise self.error("planted")

    def write(self, name: str, data: bytes, offset: int) -> None:
        self._count()
        file = Path(name)
        content = file.read_bytes() if file.exists() else b""
        old = content[offset : offset + len(data)].ljust(len(data), b"\0")
        self.before.setdefault(name, []).append((offset, old, len(content)))

    def truncate(self, name: str, size: int) -> None:
        content = Path(name).read_bytes()
        self.before.setdefault(name, []).append((size, content[size:], len(content)))

    def sync(self, name: str) -> None:
        self._count()
        self.before.pop(name, None)

    def lose_power(self, torn: int | None = None) -> None:
        """Take back what was not synced; with ``torn``, only some sectors of it, at random.

        So pages are torn: a part of a page is new, and a part of it is old.
        """
        chosen = None if torn is None else np.random.default_rng(torn)
        for name, writes in self.before.items():
            with Path(name).open("r+b") as file:
                for offset, old, size in reversed(writes):
                    for start in range(0, len(old), SECTOR):
                        if chosen is None or chosen.random() < 0.5:
                            file.seek(offset + start)
                            file.write(old[start : start + SECTOR])
                    if chosen is None:
                        file.truncate(size)
        self.before.clear()
