"""Histories: what processes do and what happens to them, as one seed decides."""

from __future__ import annotations

import gc
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import cumae
from cumae import store
from cumae.concepts import Thresholds
from cumae.predictors.state import restore
from cumae.privacy import Pure
from tests.simulator.forks import forked
from tests.simulator.homes import WORLDS
from tests.simulator.judge import Judge
from tests.simulator.scheduler import Scheduler
from tests.simulator.servers import SERVER, Database
from tests.simulator.world import Cell, Process, World

ROWS = np.random.default_rng(5).random((36, 1))
LABELS = (ROWS[:, 0] > 0.3).astype(int)
# Noise so wide that four draws in a row are a name: two equal rows have chance 1e-17.
WIDE: dict[str, Any] = {"epsilon": 1e-3, "delta": 1e-4}
# After so many lines a signal comes, at most: operations have about so many.
MOST_LINES = {"open": 1_000, "save": 260, "use": 550, "turn_key": 480, "rotate": 1_200}
FEW_LINES = 60  # of other operations
MOST_POINTS = 25  # and so many calls of the world
STEPS = (20, 60)  # of a history, at least and at most
NAMES = [Path(f"/{letter}.db") for letter in "abc"]
KINDS = ("everlasting", "everlasting, late", "release", "account")
CAP = 2  # payments of 1 that an account covers
BEFORE = {"copy", "restore", "dump", "link"}  # what may put an older oracle into its place


@cache
def fitted(kind: str) -> Any:
    """Return the arrays of a fitted predictor; each history restores one of its own."""
    with warnings.catch_warnings(action="ignore"):
        if kind.startswith("everlasting"):
            more: dict[str, Any] = {"late": 0.4} if kind.endswith("late") else {}
            made: Any = cumae.EverlastingPredictor(
                Thresholds(), **WIDE, shard_size=6, growth=1.0, prior=False, **more
            )
        else:
            made = cumae.QueryRelease(Thresholds(), **WIDE, max_queries=24, mechanism="gaussian")
        return made.fit(ROWS, LABELS).to_arrays()


@dataclass(frozen=True)
class Swarm:
    """What a history has: some of all faults and places, so that each is seen without the others.

    Parameters
    ----------
    kind : str
        The predictor, or an account.
    keys : str
        Where keys are: "beside", "folder" or "command".
    shared : bool
        Whether the oracle is in a database, with replicas.
    faults : frozenset of str
        What may happen.
    """

    kind: str
    keys: str
    shared: bool
    faults: frozenset[str]


FAULTS = {
    "kill": 1.0,
    "power": 0.5,
    "interrupt": 2.0,
    "nested": 2.0,
    "copy": 1.5,
    "restore": 1.5,
    "link": 0.3,
    "fork": 0.7,
    "clock": 0.5,
    "failing": 0.0,
    "sessions": 0.7,
    "dump": 1.0,
    "keys": 1.0,
}


class History:
    """One history.

    Parameters
    ----------
    seed : int
        Decides all of it.
    given : dict from str to object
        Fields of ``Swarm`` that the seed does not decide.
    told : callable, or None
        Is told each step, in words.
    """

    def __init__(
        self,
        seed: int,
        given: dict[str, Any] | None = None,
        told: Callable[[str], None] | None = None,
    ) -> None:
        self.world, self.judge = World(seed), Judge()
        self.scheduler = Scheduler(self.world, self.judge)
        self.rng = self.world.rng
        self.swarm = replace(self._swarm(), **(given or {}))
        if told is not None:
            told(repr(self.swarm))
            self.world.told = self.scheduler.told = told
        self.n_requests = 0
        self.requests: list[tuple[Any, Any]] = []  # ids and bodies, to be asked again
        self.copies: list[Any] = []  # older contents of files and databases
        self.older_keys: list[Any] = []
        self.world.switching = self.rng.choice((0.02, 0.1, 0.3))
        self.world.failing = 0.01 if "failing" in self.swarm.faults else 0.0
        if self.swarm.shared:
            self.addresses: list[Any] = [f"{SERVER}one", f"{SERVER}two"]
        else:  # a copy whose keys would be beside it has none
            self.addresses = NAMES[:1] if self.swarm.keys == "beside" else list(NAMES)

    def _swarm(self) -> Swarm:
        rng = self.rng
        kind = rng.choice(KINDS)
        shared = kind != "account" and rng.random() < 0.35
        keys = rng.choice(("folder", "command") if shared else ("beside", "folder", "command"))
        often = rng.choice((0.2, 0.5, 0.8))
        faults = {one for one in FAULTS if rng.random() < often}
        if "keys" in faults:  # older keys and an older file together are an older oracle
            faults -= rng.choice((BEFORE, {"keys"}, {"keys"}))
        return Swarm(kind, keys, shared, frozenset(faults))

    @property
    def keys(self) -> str | None:
        return {"beside": None, "folder": "folder:/keys", "command": "command"}[self.swarm.keys]

    # One history

    def run(self) -> list[str]:
        """Run it; return what is wrong."""
        WORLDS.append(self.world)
        try:
            first = self._first()
            for _ in range(self.rng.randint(*STEPS)):
                self._step()
                if self.judge.wrong:
                    break
            self._epilogue(first)
            return self.judge.verdict()
        finally:
            self.scheduler.stop()
            self.judge.forget()
            gc.collect()  # here, so that no finaliser of this world runs in the next one
            WORLDS.pop()

    def _first(self) -> Process:
        """Start the process that has fitted the predictor."""
        process = self.scheduler.start()
        self.world.process = process
        account = self.swarm.kind == "account"
        process.oracle = cumae.Budget(CAP) if account else restore(fitted(self.swarm.kind))
        self.world.process = self.scheduler.environment
        if self.rng.random() < 0.3:
            self._do(process, self._use)
        self._do(process, self._save)
        if self.rng.random() < 0.6:
            self.scheduler.finish(process)
        return process

    def _step(self) -> None:
        if self.world.files and self.rng.random() < 0.1:
            self.copies.append(self.rng.choice(list(self.world.files.values())).now)
        rng, processes = self.rng, [one for one in self.scheduler.processes if one.alive]
        faults = [one for one in FAULTS if one in self.swarm.faults and FAULTS[one]]
        if faults and rng.random() < 0.25:
            weights = [FAULTS[one] for one in faults]
            fault = rng.choices(faults, weights)[0]
            getattr(self, f"_fault_{fault}")(processes)
            return
        if len(processes) < 2 or (len(processes) < 4 and rng.random() < 0.1):
            processes.append(self.scheduler.start())
        process = rng.choice(processes)
        alone = not self.swarm.shared and self.swarm.keys != "command"
        live = [one for one in processes if alone and one.oracle is not None]
        if process.oracle is None and not process.busy and live and rng.random() < 0.6:
            process = rng.choice(live)  # mostly the others would be told that it is open
        if not process.busy:
            self._do(process, self._operation(process))
        elif rng.random() < 0.5:
            self.scheduler.resume(process)
        else:
            self.scheduler.finish(process)

    def _do(self, process: Process, action: Callable[[Process], None]) -> None:
        """Begin an operation of an idle process, with a signal at one of its lines perhaps."""
        process.at_line = process.at_point = None
        name = action.__name__.strip("_")
        signals = [one for one in ("interrupt", "nested", "fork") if one in self.swarm.faults]
        if signals and self.rng.random() < 0.4:
            signal = partial(self._signal, process, self.rng.choice(signals))
            if self.rng.random() < 0.6:
                process.points, process.at_point = self.rng.randint(1, MOST_POINTS), signal
            else:
                process.lines = self.rng.randint(1, MOST_LINES.get(name, FEW_LINES))
                process.at_line = signal
        self.scheduler.begin(
            process, partial(self.scheduler.attempt, process, name, partial(action, process))
        )

    def _operation(self, process: Process) -> Callable[[Process], None]:
        rng = self.rng
        if process.kept and rng.random() < 0.05:
            return self._forget
        if process.oracle is None:
            return rng.choices(
                (self._open, self._rotate, self._status, self._backup, self._destroy),
                (10, 1, 1, 1, 0.1),
            )[0]
        here = (self._use, self._close, self._look, self._leave, self._turn_key)
        weights = [16.0, 2, 1, 1, 1]
        if not process.place:
            return rng.choices((*here, self._save), (*weights, 8))[0]
        return rng.choices(here, weights)[0]

    # Operations, on the threads of processes

    def _use(self, process: Process) -> None:
        """Spend something: releases, or what an account has."""
        if self.swarm.kind == "account":
            self._pay(process)
        else:
            self._predict(process)

    def _pay(self, process: Process) -> None:
        account = process.oracle
        if account is None:
            return
        self.n_requests += 1
        use = f"use {self.n_requests}"
        account.spend(Pure(1.0), what=use)
        if process.alive:
            texts = None if account._home is None else self.world.texts
            self.judge.paid_for(use, texts, CAP)

    def _predict(self, process: Process) -> None:
        oracle, cell = process.oracle, self._cell(process)
        if oracle is None:
            return
        again = self.requests and self.rng.random() < 0.2
        if again:
            request, body = self.rng.choice(self.requests)
        else:
            count = self.rng.choice((1, 1, 2, 3, 8, 8, 30))
            body = np.array([[self.rng.random()] for _ in range(count)])
            self.n_requests += 1
            request = self.n_requests if self.rng.random() < 0.5 else None
            if request is not None:
                self.requests.append((request, body))
        call = self.judge.begin(process, oracle, request)
        try:
            answers = oracle.predict(body, request_id=request)
        finally:
            self.judge.end(call)
        if process.alive:
            self.judge.acknowledged(call, answers, cell)

    def _cell(self, process: Process) -> Cell | None:
        """Return the home of the oracle that a process has open; None in memory."""
        writer = getattr(_journal(process.oracle), "writer", None)
        return None if writer is None else writer.home.cell

    def _save(self, process: Process) -> None:
        if process.oracle is not None:
            process.oracle.save_to(self.addresses[0], keys=self.keys)
            if self.rng.random() < 0.7:
                process.oracle = None

    def _open(self, process: Process) -> None:
        process.place = str(self._address())
        process.oracle = cumae.open(
            process.place if self.swarm.shared else Path(process.place),
            keys=self.keys,
            accept_rollback=self.rng.random() < 0.4,
        )

    def _address(self) -> Any:
        known = self.world.databases if self.swarm.shared else self.world.files
        found = [one for one in self.addresses if one in known]
        return self.rng.choice(found or self.addresses[:1])

    def _close(self, process: Process) -> None:
        if process.oracle is not None:
            if self.swarm.kind != "account":
                process.oracle.close()
            if not process.depth > 1:
                process.oracle, process.place = None, ""

    def _look(self, process: Process) -> None:
        oracle = process.oracle
        if self.swarm.kind == "account":
            assert oracle is None or oracle.remaining[0] >= 0
        elif oracle is not None:
            oracle._settled_state()
            assert oracle.remaining_ >= 0

    def _forget(self, process: Process) -> None:
        """Drop errors that were kept, and let go of what only they held."""
        process.kept.clear()
        gc.collect()

    def _leave(self, process: Process) -> None:
        """End the process as a program ends: what is open is let go of."""
        oracle, process.oracle = process.oracle, None
        end = getattr(_journal(oracle), "_end", None)
        if end is not None:
            end()
        process.kept.clear()
        self.world.kill(process)

    def _turn_key(self, process: Process) -> None:
        if process.oracle is not None and process.place and self.swarm.kind != "account":
            process.oracle.rotate_key()

    def _rotate(self, process: Process) -> None:
        store.rotate(self._address(), keys=self.keys)

    def _status(self, process: Process) -> None:
        store.status(self._address(), keys=self.keys)

    def _backup(self, process: Process) -> None:
        source = self._address()
        if self.swarm.shared or "keys" in self.swarm.faults:
            return
        target = self.rng.choice([one for one in NAMES if one != source])
        if target not in self.world.files:
            store.backup(source, target)
            if target in self.world.files:  # unless another process has destroyed it by now
                self.copies.append(self.world.files[target].now)

    def _destroy(self, process: Process) -> None:
        store.destroy(self._address(), keys=self.keys)

    # Faults, on the thread of the history

    def _signal(self, process: Process, kind: str) -> None:
        """Deliver a signal to a process, on its own thread."""
        self.world.fault(f"fault: {kind}")
        if kind == "interrupt":
            raise KeyboardInterrupt
        if kind == "fork":
            self._fork(process)
            return
        if process.depth > 2:
            return
        action = self.rng.choice(
            (self._use, self._use, self._use, self._close, self._look, self._status)
        )
        name = f"nested {action.__name__.strip('_')}"
        self.scheduler.attempt(process, name, partial(action, process))

    def _fault_interrupt(self, processes: list[Process], kind: str = "interrupt") -> None:
        for process in [one for one in processes if one.busy][:1]:
            process.pending.append(partial(self._signal, process, kind))
            self.scheduler.resume(process)

    def _fault_nested(self, processes: list[Process]) -> None:
        self._fault_interrupt(processes, "nested")

    def _fault_fork(self, processes: list[Process]) -> None:
        if processes:
            self._fork(self.rng.choice(processes))

    def _fork(self, parent: Process) -> None:
        self.world.fault("fault: fork")
        before, self.world.process = self.world.process, parent
        child = self.scheduler.start(place=parent.place)
        child.oracle = forked(parent.oracle)
        for lock in self.world.locks.values():
            if parent.pid in lock.holders:
                lock.holders.add(child.pid)
        self.world.process = before

    def _fault_kill(self, processes: list[Process]) -> None:
        if processes:
            self.world.fault("fault: kill")
            busy = [one for one in processes if one.busy]
            self._kill(self.rng.choice(busy or processes))

    def _kill(self, process: Process) -> None:
        self.scheduler.kill(process)
        self.scheduler.processes.remove(process)
        self.scheduler.end(process)

    def _fault_power(self, processes: list[Process]) -> None:
        self.world.fault("fault: power")
        for process in processes:
            self._kill(process)
        for database in self.world.databases.values():
            database.end_sessions()
        self.world.lose_power()

    def _fault_copy(self, processes: list[Process]) -> None:
        if self.world.files:
            self.world.fault("fault: copy")
            path = self.rng.choice(list(self.world.files))
            self.copies.append(self.world.files[path].now)
            if len(self.addresses) > 1:
                self.world.copy(path, self.rng.choice(self.addresses))

    def _fault_restore(self, processes: list[Process]) -> None:
        if self.copies and self.world.files:
            self.world.fault("fault: restore")
            content = self.rng.choice(self.copies)
            self.world.files[self.rng.choice(self.addresses)] = Cell(content, content)

    def _fault_link(self, processes: list[Process]) -> None:
        if self.world.files:
            self.world.fault("fault: link")
            path = self.rng.choice(list(self.world.files))
            self.world.files[self.rng.choice(self.addresses)] = self.world.files[path]

    def _fault_keys(self, processes: list[Process]) -> None:
        """Copy the keys, or put a copy back below whoever has the oracle open."""
        self.world.fault("fault: keys")
        if not self.older_keys or self.rng.random() < 0.5:
            folders = {one: _now(cells) for one, cells in self.world.folders.items()}
            stores = {one: dict(secrets) for one, secrets in self.world.stores.items()}
            self.older_keys.append((folders, stores))
            return
        folders, stores = self.rng.choice(self.older_keys)
        self.world.stores = {one: dict(secrets) for one, secrets in stores.items()}
        for one, secrets in folders.items():
            self.world.folders[one] = {name: Cell(now, now) for name, now in secrets.items()}

    def _fault_clock(self, processes: list[Process]) -> None:
        self.world.fault("fault: clock")
        self.world.clock.now += self.rng.choice((0.2, 3_600.0, -3_600.0))

    def _fault_sessions(self, processes: list[Process]) -> None:
        for database in self.world.databases.values():
            self.world.fault("fault: sessions")
            for session in list(database.sessions):
                if self.rng.random() < 0.5:
                    session.end()

    def _fault_dump(self, processes: list[Process]) -> None:
        """Dump a database, or put a dump back: below replicas, or at another server."""
        live = [one for one in self.world.databases.values() if one.head is not None]
        if not live:
            return
        self.world.fault("fault: dump")
        dumps = self.copies
        if not dumps or self.rng.random() < 0.5:
            dumps.append(self.rng.choice(live).now)
            return
        name = self.rng.choice(self.addresses)
        target = self.world.databases.setdefault(name, Database(name))
        target.write(self.rng.choice(dumps))
        if self.rng.random() < 0.3:
            target.identity += b"'"

    # The end

    def _epilogue(self, first: Process) -> None:
        """End all lives, and let each file or database answer again, as far as it may."""
        for process in list(self.scheduler.processes):
            if process.busy and self.rng.random() < 0.5:
                self.scheduler.finish(process)
            if process is not first and not process.kept and self.rng.random() < 0.7:
                self._kill(process)
        self.world.failing = 0.0
        for process in self.scheduler.processes:
            if process.alive and not process.busy:
                for action in (self._forget, self._close):
                    self._do(process, action)
                    self.scheduler.finish(process)
        if "keys" not in self.swarm.faults and self.rng.random() < 0.5:
            self._fault_restore([])
        for address in self.addresses:
            process = self.scheduler.start()
            self._end_life(process, address)

    def _end_life(self, process: Process, address: Any) -> None:
        def go_on(process: Process) -> None:
            process.place = str(address)
            process.oracle = cumae.open(address, keys=self.keys, accept_rollback=True)
            self._use(process)
            self._use(process)

        run = partial(self.scheduler.attempt, process, "last life", partial(go_on, process))
        self.scheduler.begin(process, run)
        self.scheduler.finish(process)


def _journal(oracle: Any) -> Any:
    """Return what records the events of an oracle; None for an account."""
    counter = getattr(oracle, "_counter_", None)
    return None if counter is None else counter.journal


def _now(cells: dict[str, Cell]) -> dict[str, Any]:
    return {name: cell.now for name, cell in cells.items() if cell.now is not None}


def played(
    seed: int, given: dict[str, Any] | None = None, told: Callable[[str], None] | None = None
) -> tuple[list[str], Counter[str], Counter[str]]:
    """Run a history; return what is wrong, steps and faults, and operations with their ends."""
    history = History(seed, given, told)
    wrong, swarm = history.run(), history.swarm
    where = "in a database" if swarm.shared else "in a file"
    history.judge.counts[f"history: {swarm.kind}, {where}, keys: {swarm.keys}"] += 1
    return wrong, history.world.steps, history.judge.counts


def warm_up() -> None:
    """Fit the predictors that histories begin with."""
    for kind in KINDS[:-1]:
        restore(fitted(kind))
