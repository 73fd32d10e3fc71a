"""The simulated world: files with what is synced, key stores, locks, a clock, and processes."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cumae.errors import LiveState, StoreFailed
from cumae.store.homes.home import Blob, Sweep, Transaction

MOST_TURNS = 2_000  # that somebody waits for a lock, before nobody can be expected to end it
MOST_WAITS = 50  # looks at a lock that nobody can open any more


def baton() -> threading.Lock:
    """Return a lock that one thread waits for until another one releases it."""
    made = threading.Lock()
    made.acquire()
    return made


class Killed(BaseException):
    """The process is gone: nothing that it does from now on has an effect."""


class Stuck(BaseException):
    """The process waits for itself."""


@dataclass(frozen=True)
class Tables:
    """The rows of an oracle, as a committed transaction left them; never changed in place."""

    meta: dict[str, str] = field(default_factory=dict)
    entries: tuple[tuple[int, str, bytes], ...] = ()
    blobs: tuple[Blob, ...] = ()
    answers: dict[bytes, tuple[int, bytes]] = field(default_factory=dict)

    def after(self, change: Transaction) -> Tables:
        """Return the rows after a transaction; refuse a number that is taken, as a key does."""
        dropped = range(change.drop_from, change.drop_below)
        blobs = tuple(one for one in self.blobs if one.number not in dropped)
        if change.sweep is not None:
            blobs = swept(blobs, change.sweep)
        entries = tuple(one for one in self.entries if one[0] >= change.prune_below)
        added = tuple((one.number, one.text, one.hash) for one in change.entries)
        taken = {one[0] for one in entries} & {one[0] for one in added}
        if taken or _places(blobs) & _places(change.blobs):
            raise StoreFailed("a row with this number is there already.")
        answers = {} if change.drop_answers else dict(self.answers)
        return replace(
            self,
            entries=entries + added,
            blobs=tuple(joined((*blobs, *change.blobs))),
            answers={**answers, **change.answers},
            meta={**self.meta, **change.meta},
        )


def old_parts(blobs: Iterable[Blob], old: Sweep) -> list[tuple[int, int]]:
    """Return numbers and places of the parts of old pieces."""
    found = [one for one in blobs if one.number < old.below and one.number != old.but]
    return sorted(_places(one for one in found if one.epoch <= old.epoch))


def swept(blobs: tuple[Blob, ...], old: Sweep) -> tuple[Blob, ...]:
    """Return pieces without some of the old ones."""
    gone = set(old_parts(blobs, old)[: old.most])
    single = [
        one._replace(parts=[part], first=place)
        for one in blobs
        for place, part in enumerate(one.parts, one.first)
        if (one.number, place) not in gone
    ]
    return tuple(joined(single))


def joined(single: Iterable[Blob]) -> list[Blob]:
    """Return pieces from their parts, in order."""
    found: list[Blob] = []
    for one in sorted(single, key=lambda one: (one.number, one.first)):
        if found and found[-1].number == one.number:
            found[-1] = found[-1]._replace(parts=found[-1].parts + one.parts)
        else:
            found.append(one)
    return found


def _places(blobs: Iterable[Blob]) -> set[tuple[int, int]]:
    return {
        (one.number, place)
        for one in blobs
        for place in range(one.first, one.first + len(one.parts))
    }


class Cell:
    """Something on a disk: what is there now, and what a loss of power leaves of it."""

    def __init__(self, now: Any = None, synced: Any = None) -> None:
        self.now, self.synced = now, synced
        self.committed: list[list[str]] = []  # ledgers that were synced here
        if synced is not None:
            self.sync()

    def sync(self) -> None:
        self.synced = self.now
        if isinstance(self.now, Tables):
            self.committed.append([text for _, text, _ in self.now.entries])


class Clock:
    """The time, which stands still unless somebody waits or moves it."""

    def __init__(self) -> None:
        self.now = 1e6

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class HostLock:
    """A lock on an open file, as ``FileLock`` has it: forked processes share it.

    Whoever waits for it waits until those have ended, too, that its taker has forked.
    """

    def __init__(self, world: World, path: Path) -> None:
        self.world, self.path, self.holders = world, path, {world.process.pid}
        self.taker, self.waits = world.process.pid, False

    def close(self) -> None:
        """Let go of it; its taker does so for all that share it, as ``LOCK_UN`` does."""
        pid = self.world.process.pid
        if pid == self.taker and pid in self.holders:
            self.holders.clear()
        self.leave(pid)

    def leave(self, pid: int) -> None:
        self.holders.discard(pid)
        if self.waits and pid == self.taker:  # and those that it has forked end some time
            self.holders.clear()
        if not self.holders and self.world.locks.get(self.path) is self:
            del self.world.locks[self.path]

    @property
    def closed(self) -> bool:
        return self.world.process.pid not in self.holders

    def __del__(self) -> None:
        self.close()


class WaitingLock:
    """A lock that nobody has yet, as ``FileLock`` before ``take``."""

    is_on_file = True

    def __init__(self, world: World, path: Path) -> None:
        self.world, self.path = world, path
        self.held: HostLock | None = None

    def take(self) -> None:
        """Wait for it."""
        for _ in range(MOST_TURNS):
            if self.path not in self.world.locks:
                break
            self.world.point("wait for a lock")
            self.world.yielded(self.world.process, signals=True)
        else:
            raise Stuck("nobody lets go of a lock")
        self.held = self.world.take_lock(self.path)
        self.held.waits = True

    def close(self) -> None:
        if self.held is not None:
            self.held.close()


class Gate:
    """A ``threading.Lock`` of a process with one thread: whoever waits for it waits for ever."""

    def __init__(self) -> None:
        self._held, self._waits = False, 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if not self._held:
            self._held, self._waits = True, 0
            return True
        self._waits += 1
        if (blocking and timeout < 0) or self._waits > MOST_WAITS:
            raise Stuck("this thread waits for a lock that it holds itself")
        return False

    def release(self) -> None:
        if not self._held:
            raise RuntimeError("release unlocked lock")
        self._held = False

    def locked(self) -> bool:
        return self._held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


@dataclass(eq=False)
class Process:
    """A simulated process: a thread that runs only while it has the baton.

    Parameters
    ----------
    pid : int
        Its number.
    oracle : object
        The predictor that it holds, in memory or open; None if it holds none.
    """

    pid: int
    oracle: Any = None
    place: str = ""  # where the oracle is; nothing for one in memory
    alive: bool = True
    busy: bool = False  # whether an operation has begun and not ended
    job: Callable[[], None] | None = None
    pending: list[Callable[[], None]] = field(default_factory=list)  # signals
    lines: int = 0  # how many lines are left before the signal in ``at_line`` comes
    at_line: Callable[[], None] | None = None
    points: int = 0  # and how many calls of the world before the one in ``at_point``
    at_point: Callable[[], None] | None = None
    depth: int = 0  # of calls within calls
    kept: list[Any] = field(default_factory=list)  # errors that a console would keep
    sessions: list[Any] = field(default_factory=list)  # with the database server
    go: threading.Lock = field(default_factory=baton)
    thread: threading.Thread | None = None


class World:
    """All that processes share, and who of them runs.

    Parameters
    ----------
    seed : int
        Decides everything that happens.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"steps {seed}")  # noqa: S311 - a history can be repeated
        self.coins = random.Random(f"coins {seed}")  # noqa: S311 - and so can its secrets
        self.files: dict[Path, Cell] = {}
        self.folders: dict[Path, dict[str, Cell]] = {}  # of keys
        self.stores: dict[str, dict[str, bytes]] = {}  # of keys, behind a command elsewhere
        self.locks: dict[Path, HostLock] = {}
        self.texts: set[str] = set()  # of all ledger entries that were ever synced in a file
        self.databases: dict[str, Any] = {}
        self.clock = Clock()
        self.process: Any = Process(1)  # who has the baton
        self.judge: Any = None
        self.told: Callable[[str], None] | None = None
        self.steps: Counter[str] = Counter()
        self.failing = 0.0  # how often a disk, a key store or a server raises an error
        self.switching = 0.0  # how often a call gives the baton back
        self.yielded: Callable[..., None] = lambda process, *, signals: None

    def point(self, what: str, *, signals: bool = True) -> None:
        """Let others go on at a call of the world; whoever is dead by then gets no further.

        Signals wait where Python is not asked: in the middle of a call of SQLite, say.
        """
        process = self.process
        if not process.alive:
            raise Killed
        self.steps[what] += 1
        if self.told is not None:
            self.told(f"{process.pid}:   {what}")
        process.points -= 1
        if process.points <= 0 and process.at_point is not None and signals:
            action, process.at_point = process.at_point, None
            self.steps["a signal at a call"] += 1
            action()
        if process.thread is not None and self.rng.random() < self.switching:
            self.yielded(process, signals=signals)

    def fault(self, what: str) -> None:
        """Count something that happens to processes."""
        self.steps[what] += 1
        if self.told is not None:
            self.told(f"      {what}")

    def may_fail(self, what: str) -> None:
        """Raise what a disk or a key store raises that does not work."""
        if self.failing and self.rng.random() < self.failing:
            self.fault(f"fault: {what} fails")
            raise StoreFailed(f"{what} fails: planted.")

    # Files

    def take_lock(self, file: Path | None) -> HostLock:
        self.point("lock")
        if file is None:
            raise AssertionError("an oracle in a file has a lock")
        if file in self.locks:
            raise LiveState("this oracle is open in another process.")
        self.locks[file] = HostLock(self, file)
        return self.locks[file]

    def opened_lock(self, file: Path) -> WaitingLock:
        return WaitingLock(self, file)

    def copy(self, path: Path, copy: Path) -> None:
        """Copy a file as it is now; an older one of that name goes on for who has it open."""
        content = self.files[path].now
        self.files[copy] = Cell(content, content)

    # What happens to processes and machines

    def kill(self, process: Process) -> None:
        """End a process: what it has in memory is gone, and so are its locks and sessions."""
        process.alive = False
        for lock in list(self.locks.values()):
            lock.leave(process.pid)
        for session in process.sessions:
            session.end()

    def lose_power(self) -> None:
        """End all processes; what was not synced is lost, or not."""
        everything: list[dict[Any, Cell]] = [self.files, *self.folders.values()]
        for cells in everything:
            for name, cell in list(cells.items()):
                if cell.now is not cell.synced:
                    cell.now = self.rng.choice((cell.now, cell.synced))
                    cell.sync()
                if cell.now is None:
                    del cells[name]
