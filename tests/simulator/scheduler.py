"""Who runs, and when: one thread per process, of which only the one with the baton runs."""

from __future__ import annotations

import gc
import os
import secrets
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import cumae
from cumae.errors import CumaeError, LiveState
from cumae.mechanisms import Majority
from cumae.predictors.answering import queue
from cumae.store import accounts, keys, looking, oracle, pieces, replicas, writer
from cumae.store.homes import sqlite
from tests.simulator import homes, servers
from tests.simulator.judge import Judge, watched
from tests.simulator.world import Gate, Killed, Process, Stuck, World, baton

PACKAGE = Path(cumae.__file__).parent
TRACED = (
    "store",
    "predictors",
    "live.py",
    "privacy/budget.py",
    "locks.py",
)  # lines where signals may come
MOST_RESUMES = 5_000  # of one operation
FIRST_PID = 1_000
NESTED = "while the same thread is within a call of it"  # what a call within a call is told
REAL_PID, REAL_COINS = os.getpid, os.urandom


@cache
def lines_without_signals(file: str) -> frozenset[int] | None:
    """Return the lines of a file where Python never interrupts; None if no line is of interest.

    Python never interrupts between the last line of a with block and its end, not at words that do
    nothing by themselves, and not at the beginning or the end of a block where nothing is called.
    """
    if not any(file.startswith(str(PACKAGE / part)) for part in TRACED):
        return None
    text = Path(file).read_text(encoding="utf-8").splitlines()
    ends = ("CALLS.objects = before", "CALLS.objects = outside", "self._inside = False")
    firsts = ("party.left = True", "batch.done = True")  # of a last block, before any call
    idle = ("with ", "try:", "finally:", "else:", *ends, *firsts)
    return frozenset(n for n, line in enumerate(text, 1) if line.strip().startswith(idle))


class Scheduler:
    """Gives the baton to one process after the other, as a history decides.

    Parameters
    ----------
    world : World
        What processes share.
    judge : Judge
        Is told of operations that end in a way that they should not.
    """

    def __init__(self, world: World, judge: Judge) -> None:
        self.world, self.judge = world, judge
        world.judge = judge
        self.environment = world.process
        self.processes: list[Process] = []
        self._back = baton()
        self._n_pids = FIRST_PID
        world.yielded = self._yield
        self.told: Callable[[str], None] = lambda text: None

    # On the thread of the history

    def start(self, oracle: Any = None, place: str = "") -> Process:
        """Start a process."""
        self._n_pids += 1
        made = Process(self._n_pids, oracle, place)
        made.thread = threading.Thread(target=self._work, args=(made,), daemon=True)
        made.thread.start()
        self.processes.append(made)
        return made

    def begin(self, process: Process, job: Callable[[], None]) -> None:
        """Let an idle process begin an operation, and run it until it gives the baton back."""
        process.job, process.busy = job, True
        self.resume(process)

    def resume(self, process: Process) -> None:
        """Let a process go on until it gives the baton back, or its operation ends."""
        self.world.process = process
        process.go.release()
        self._back.acquire()
        self.world.process = self.environment

    def finish(self, process: Process) -> None:
        """Let a process end its operation; others get the baton when it waits for them."""
        for _ in range(MOST_RESUMES):
            if not process.busy:
                return
            self.resume(process)
            for other in self.processes:
                if other is not process and other.busy:
                    self.resume(other)
        self.judge.say("an operation does not end")
        self.kill(process)

    def kill(self, process: Process) -> None:
        """Kill a process wherever it is."""
        self.world.kill(process)
        while process.busy:
            self.resume(process)  # it unwinds, and nothing of that has an effect
        process.oracle = None
        process.kept.clear()

    def stop(self) -> None:
        """End all threads."""
        for process in self.processes:
            self.kill(process)
            self.end(process)
            if process.thread is not None:
                process.thread.join()
        self.processes.clear()

    def end(self, process: Process) -> None:
        """End the thread of a process that is idle."""
        process.job = None
        process.go.release()

    # On the threads of processes

    def _work(self, process: Process) -> None:
        while True:
            process.go.acquire()
            job = process.job
            if job is None:
                return
            if process.at_line is not None:
                sys.settrace(self._trace)
            try:
                job()
            finally:
                sys.settrace(None)
                process.busy = False
                self._back.release()

    def _yield(self, process: Process, *, signals: bool) -> None:
        self._back.release()
        process.go.acquire()
        if not process.alive:
            raise Killed
        while signals and process.pending:
            process.pending.pop(0)()

    def _trace(self, frame: Any, event: str, _: Any) -> Any:
        code = frame.f_code
        if code.co_name == "__init__" and code.co_filename.endswith(("live.py", "queue.py")):
            return None  # of what a thread has for itself, made at its first call
        if self.world.process.at_line is None or lines_without_signals(code.co_filename) is None:
            return None
        return self._line

    def _line(self, frame: Any, event: str, _: Any) -> Any:
        process = self.world.process
        if event == "line" and process.at_line is not None:
            if frame.f_lineno in (lines_without_signals(frame.f_code.co_filename) or ()):
                return self._line
            process.lines -= 1
            if process.lines <= 0:
                action, process.at_line = process.at_line, None
                self.world.steps["a signal at a line"] += 1
                self.told(f"{process.pid}: signal at {frame.f_code.co_qualname}:{frame.f_lineno}")
                action()
        return self._line

    def attempt(self, process: Process, what: str, action: Callable[[], None]) -> None:
        """Run an operation in a process; refusals are counted, and other errors are wrong."""
        self.judge.counts[what] += 1
        self.told(f"{process.pid}: {what} {process.place}")
        process.depth += 1
        end = "done"
        try:
            action()
        except (Killed, KeyboardInterrupt, CumaeError) as error:
            end = type(error).__name__
            if isinstance(error, LiveState) and process.depth == 1 and NESTED in str(error):
                self.judge.say(f"{what} is refused as if it were within another call")
            if (
                isinstance(error, LiveState)
                and process.depth == 1
                and self.world.rng.random() < 0.5
            ):
                process.oracle = None  # it lives elsewhere
            if not isinstance(error, Killed) and self.world.rng.random() < 0.8:
                process.kept.append(error)
        except Stuck:
            self.judge.say(f"{what} waits for ever")
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is told
            self.judge.say(f"{what}: {type(error).__name__}: {error}")
        process.depth -= 1
        self.judge.counts[f"{what}: {end}"] += 1
        self.told(f"{process.pid}: {what}: {end}")


class _Time:
    """The clock of the world that runs, as the module ``time``."""

    def __getattr__(self, name: str) -> Any:
        return getattr(homes.world().clock, name)


def _pid() -> int:
    return homes.world().process.pid if homes.WORLDS else REAL_PID()


def _coins(count: int = 32) -> bytes:
    return homes.world().coins.randbytes(count) if homes.WORLDS else REAL_COINS(count)


def _now() -> tuple[Judge, Process]:
    world = homes.world()
    return world.judge, world.process


@contextmanager
def simulated() -> Iterator[None]:
    """Let the store run in a simulated world: disks, keys, clocks, coins and process numbers."""
    threads = SimpleNamespace(
        Lock=Gate, RLock=threading.RLock, local=threading.local, get_ident=threading.get_ident
    )
    replaced: list[tuple[Any, str, Any]] = [
        (oracle, "place_of", servers.place_of),
        (looking, "place_of", servers.place_of),
        (oracle, "shutil", SimpleNamespace(rmtree=homes.remove_tree)),
        (oracle, "remove_files", homes.remove),
        (sqlite, "SqliteFile", homes.SimulatedFile),
        (sqlite, "take_lock", lambda file: homes.world().take_lock(file)),
        (sqlite, "sync_folder", lambda folder: None),
        (sqlite, "remove_files", homes.remove),
        (accounts, "SqliteFile", homes.SimulatedFile),
        (accounts, "opened_lock", lambda file: homes.world().opened_lock(file)),
        (keys.KeyFolder, "make", homes.SimulatedFolder.make),
        (Majority, "release", watched(_now)),
        (pieces, "LEAST_PIECE_BYTES", 8),  # bytes: the next phase is written ahead in several parts
        (writer, "SWEPT", 2),
        (os, "getpid", _pid),
        (os, "urandom", _coins),
        (secrets, "token_bytes", _coins),
        (sys, "unraisablehook", _unraisable),
    ]
    replaced += [(module, "time", _Time()) for module in (keys, replicas, queue)]
    replaced += [(module, "threading", threads) for module in (writer, queue, replicas)]
    gc.collect()
    gc.freeze()
    gc.disable()
    patches = [mock.patch.object(*one) for one in replaced]
    try:
        for patch in patches:
            patch.start()
        yield
    finally:
        for patch in reversed(patches):
            patch.stop()
        gc.enable()


def _unraisable(found: Any) -> None:
    if not isinstance(found.exc_value, Killed | KeyboardInterrupt):
        sys.__unraisablehook__(found)
