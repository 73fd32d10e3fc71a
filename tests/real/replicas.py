"""Histories of replicas in PostgreSQL: killed replicas, sessions and servers, dumps put back."""

from __future__ import annotations

import signal
import uuid
from pathlib import Path
from typing import Any

from cumae.store import place_of
from tests.real.history import RealHistory
from tests.real.worker import Child, Plan
from tests.servers import PostgresServer

SESSIONS = "SELECT pid FROM pg_stat_activity WHERE application_name='cumae'"


class ReplicaHistory(RealHistory):
    """One history of an oracle in a schema, of its copy in another one, and of dumps.

    Parameters
    ----------
    seed : int
        Decides what is done.
    folder : Path
        For keys and dumps.
    server : PostgresServer
        Which may be killed.
    """

    key_stores: tuple[str, ...] = ("folder", "command")

    def __init__(self, seed: int, folder: Path, server: PostgresServer) -> None:
        super().__init__(seed, folder)
        self.server = server
        self.schemas = [f"s{uuid.uuid4().hex[:12]}" for _ in range(1 + self.copying)]
        for schema in self.schemas:
            server.execute(f"CREATE SCHEMA {schema}")
        self.copies: list[Path] = []

    def addresses(self) -> list[Any]:
        return [self.server.address(schema) for schema in self.schemas if self._is_there(schema)]

    def _is_there(self, schema: str) -> bool:
        found = self.server.execute("SELECT to_regclass('cumae_head') IS NOT NULL", schema)
        return bool(found[0][0])

    def new_copy(self) -> Path:
        self.copies.append(self.folder / f"dump-{len(self.copies)}.db")
        return self.copies[-1]

    def ledger(self, address: Any) -> list[str]:
        with place_of(address).home(reading=True) as home:
            return [text for _, text, _ in home.entries()]

    def first(self) -> None:
        operations = [("first", self.kind), ("save",), ("ask", 5)]
        address = self.server.address(self.schemas[0])
        self.finish([self.start(Plan(address, self.keys, operations))])

    def step(self) -> None:
        schema = self.rng.choice([self.schemas[0], *self.schemas])
        running = [self.start(self.plan(self.server.address(schema)))]
        for _ in range(self.rng.randint(0, 2)):
            self.watch(running, self.rng.uniform(0.0, self.seconds / 2))
            other = schema if self.rng.random() < 0.7 else self.rng.choice(self.schemas)
            running.append(self.start(self.plan(self.server.address(other))))
        self.watch(running, self.rng.uniform(0.0, 2 * self.seconds))
        faults = {"none": 4.0, "sleep": 1.0, "session": 1.0, "backend": 0.15, "server": 0.3}
        faults["put back"] = 3.0 if self.copying else 0.0
        fault = self.rng.choices(list(faults), list(faults.values()))[0]
        self.told.append(f"the fault is {fault}")
        self.counts[f"fault: {fault}"] += 1
        getattr(self, f"_{fault.replace(' ', '_')}")(running)
        self.finish(running, debits=fault != "put back")

    # Faults

    def _none(self, running: list[Child]) -> None:
        """Let them run."""

    def _sleep(self, running: list[Child]) -> None:
        """Let a replica sleep while others go on."""
        running[0].send(signal.SIGSTOP)
        self.watch(running[1:], 2 * self.seconds)
        running[0].send(signal.SIGCONT)

    def _session(self, _: list[Child]) -> None:
        """End a session of a replica."""
        sessions = self.server.execute(SESSIONS)
        if sessions:
            (process,) = self.rng.choice(sessions)
            self.server.execute(f"SELECT pg_terminate_backend({process})")

    def _backend(self, _: list[Child]) -> None:
        """Kill a session's process; the server then ends all others, and recovers."""
        sessions = self.server.execute(SESSIONS)
        if sessions:
            self.server.kill_session(self.rng.choice(sessions)[0])

    def _server(self, _: list[Child]) -> None:
        """Kill the server, or shut it down at once; start it again."""
        if self.rng.random() < 0.5:
            self.server.kill()
        else:
            self.server.stop(signal.SIGQUIT)
        self.server.start()

    def _put_back(self, running: list[Child]) -> None:
        """Make a dump, and replace what replicas have open by an older one."""
        schema = self.rng.choice(self.schemas)
        if self.rng.random() < 0.5:
            self.watch(running)
        made = [one for one in self.copies if one.exists()]
        if not made or self.rng.random() < 0.4:
            source = self.server.address(self.schemas[0])
            operations: list[tuple[Any, ...]] = [("backup", self.new_copy())]
            self.finish([self.start(Plan(source, self.keys, operations, self.fate(0.2)))])
            return
        self.counts["copies"] += 1
        self.server.execute(f"DROP SCHEMA {schema} CASCADE; CREATE SCHEMA {schema}")
        operations = [("put_back", self.rng.choice(made))]
        plan = Plan(self.server.address(schema), self.keys, operations, self.fate(0.2))
        self.finish([self.start(plan)])
