"""Histories of oracles in SQLite files: copies, snapshots and backups, two processes at once."""

from __future__ import annotations

import shutil
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from cumae import CumaeError
from cumae.store import place_of
from tests.real.history import RealHistory
from tests.real.worker import Plan

ENDINGS = ("", "-wal", "-shm")


class FileHistory(RealHistory):
    """One history of files a.db, b.db and c.db, which have the same keys, and of older copies."""

    key_stores: tuple[str, ...] = (
        "beside",
        "folder",
        "command",
        "command",
    )  # only the last lets two run at once

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        names = "a" if self.keys is None or not self.copying else "abc"
        self.files = [folder / f"{name}.db" for name in names]
        self.copies: list[Path] = []
        self.current = self.files[0]  # the one that answered last

    def addresses(self) -> list[Any]:
        return [file for file in self.files if file.exists()]

    def new_copy(self) -> Path:
        self.copies.append(self.folder / f"copy-{len(self.copies)}.db")
        return self.copies[-1]

    def ledger(self, address: Any) -> list[str]:
        """Read it from a copy, so that what a kill left is not mended by this look."""
        self.current = address
        scratch = self.folder / "scratch.db"
        copy(address, scratch, ENDINGS[:2])
        try:
            with place_of(scratch).home(reading=True) as home:
                return [text for _, text, _ in home.entries()]
        except CumaeError as error:
            self.judge.say(f"a file that answered cannot be read: {error}")
            return []

    def first(self) -> None:
        operations: list[tuple[Any, ...]] = [("first", self.kind)]
        if self.rng.random() < 0.3:
            operations.append(("ask", 5))
        operations += [("save",), ("ask", 5)]  # whoever was moved refuses
        fate = self.fate(0.25)
        self.finish([self.start(Plan(self.files[0], self.keys, operations, fate))])
        # What was killed on the way may be half of one; it refuses, and so does a fresh start.
        if fate.kind not in {"none", "leave"}:
            self.copying = True
        for file in self.files[1:]:
            if self.rng.random() < 0.7:
                self._snapshot(self.files[0], file)

    def step(self) -> None:
        if self.copying and self.rng.random() < 0.35:
            self._copy()
        elif self.copying and self.rng.random() < 0.5:
            self._two()
        else:
            child = self.start(self.plan(self.rng.choice([*self.files, self.current])))
            if self.copying and self.rng.random() < 0.2:
                self.watch([child], self.rng.uniform(0.0, self.seconds))
                self._snapshot(child.plan.address, self.new_copy())
            self.finish([child])

    def _two(self) -> None:
        """Let two processes run at once; one of them sleeps for a while, perhaps."""
        first, second = self.current, self.rng.choice(self.files)
        if self.rng.random() < 0.7:
            self._snapshot(first, second)
        if self.rng.random() < 0.5:
            first, second = second, first
        one = self.start(self.plan(first, 5, 0.4))
        self.watch([one], self.rng.uniform(0.0, self.seconds))
        asleep = self.rng.random() < 0.4
        if asleep:
            one.send(signal.SIGSTOP)
        two = self.start(self.plan(second, 5, 0.4))
        if asleep:
            self.watch([two], 2 * self.seconds)
            one.send(signal.SIGCONT)
        self.finish([one, two])

    def _copy(self) -> None:
        """Copy a file that nobody has open, or put a copy in its place."""
        old = self.rng.choice([self.current, self.rng.choice([*self.files, *self.copies])])
        new = self.rng.choice([*self.files, None])
        self._snapshot(old, new or self.new_copy())

    def _snapshot(self, old: Path, new: Path) -> None:
        if old != new and old.exists():
            self.counts["copies"] += 1
            self.told.append(f"{old.name} is copied to {new.name}")
            copy(old, new, ENDINGS if self.rng.random() < 0.5 else ENDINGS[:2])


def copy(old: Path, new: Path, endings: tuple[str, ...]) -> None:
    """Replace a file, and what SQLite keeps beside it, by a copy of another one."""
    for ending in (*ENDINGS, "-journal"):
        new.with_name(new.name + ending).unlink(missing_ok=True)
    for ending in endings:
        with suppress(FileNotFoundError):
            shutil.copy(old.with_name(old.name + ending), new.with_name(new.name + ending))
