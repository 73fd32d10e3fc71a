"""Copies of one oracle or account that have one key store, and steps in the middle of others."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import cumae
from cumae import CumaeError
from cumae.store.homes import sqlite
from cumae.store.keys import KeyStore
from tests.oracles import ROWS, break_off
from tests.states import rows_of

PHASE = 400  # releases of each phase


class SharedKeys(KeyStore):
    """A key store on another machine, which all copies reach; each file has a lock of its own.

    Parameters
    ----------
    lock_file : Path
        Of the file.
    secrets : dict
        What all of them share.
    before : callable
        Called before each access; it may let others do something.
    """

    def __init__(
        self, lock_file: Path, secrets: dict[str, bytes], before: Callable[[], None]
    ) -> None:
        self.lock_file: Path = lock_file
        self._secrets, self._before = secrets, before

    def get(self, name: str) -> bytes | None:
        self._before()
        return self._secrets.get(name)

    def put(self, name: str, secret: bytes) -> None:
        self._before()
        self._secrets[name] = secret

    def delete(self, name: str) -> None:
        self._before()
        self._secrets.pop(name, None)

    def names(self) -> list[str]:
        self._before()
        return sorted(self._secrets)

    def remove(self) -> None:
        self.lock_file.unlink(missing_ok=True)


class Copies:
    """Files with the same keys, each in a place of its own.

    Parameters
    ----------
    folder : Path
        Where the files go.
    patch : MonkeyPatch
        Lets ``keys="shared"`` mean the key store that all of them reach.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.secrets: dict[str, bytes] = {}
        self.meanwhile: tuple[int, Callable[[], None]] | None = None
        self.given: dict[int, int] = {}  # answers that left, by phase
        patch.setattr(sqlite, "keys_elsewhere", self._keys)

    def _keys(self, _: str, lock_file: Path | None = None) -> SharedKeys:
        assert lock_file is not None
        return SharedKeys(lock_file, self.secrets, self._before)

    def _before(self) -> None:
        if self.meanwhile is not None:
            left, step = self.meanwhile
            self.meanwhile = (left - 1, step) if left else None
            if not left:
                step()

    def at_access(self, number: int, step: Callable[[], None]) -> None:
        """Let a step be done before the access to keys with this number, counted from now on."""
        self.meanwhile = (number, step)

    @property
    def came(self) -> bool:
        """Whether the step was done."""
        done = self.meanwhile is None
        self.meanwhile = None
        return done

    def save(self, one: Any, name: str = "a") -> None:
        one.save_to(self.folder / f"{name}.db", keys="shared")

    def copy(self, name: str, other: str) -> None:
        for ending in ("", "-wal"):
            source = self.folder / f"{name}.db{ending}"
            if source.exists():
                shutil.copy(source, self.folder / f"{other}.db{ending}")

    def open(self, name: str) -> Any:
        return cumae.open(self.folder / f"{name}.db", keys="shared", accept_rollback=True)

    def ask(self, one: Any, count: int) -> None:
        """Ask as much, unless it is refused, and count what left by the phase that answered."""
        phase, left = one.phase_, one._state_.left
        with suppress(CumaeError):
            answers = len(one.predict(rows_of(ROWS, 0, count)))
            first = min(answers, left)
            self.given[phase] = self.given.get(phase, 0) + first
            self.given[phase + 1] = self.given.get(phase + 1, 0) + answers - first

    def ask_all(self, one: Any) -> None:
        """Ask until the phase is nearly over, or nothing is answered any more."""
        with suppress(CumaeError):
            while one._state_.left > 1:
                before = one.answered_
                self.ask(one, min(100, one._state_.left - 1))
                if one.answered_ == before:
                    return

    def check(self) -> None:
        """No phase gave more answers than its noise was calibrated for, over all lives."""
        assert all(count <= PHASE for count in self.given.values()), self.given


class History:
    """A random history of three copies: one seed tells all of it.

    Parameters
    ----------
    copies : Copies
        Files with the names a, b and c.
    seed : int
        Of all choices.
    """

    def __init__(self, copies: Copies, seed: int) -> None:
        self.copies = copies
        self.chosen = random.Random(seed)  # noqa: S311 - it hides nothing
        self.lives: dict[str, Any] = {}
        self._running: list[str] = []

    def run(self, steps: int) -> None:
        """Do random steps, and others in the middle of them; then use up all that is left."""
        for _ in range(steps):
            self._step()
            self.copies.meanwhile = None
        for one in self.lives.values():
            self.copies.ask_all(one)
            break_off(one)
        for name in "cab":
            with suppress(CumaeError):
                one = self.copies.open(name)
                self.copies.ask_all(one)
                break_off(one)

    def _step(self) -> None:
        name = self.chosen.choice("abc")
        if name in self._running:
            return
        self._running.append(name)
        if len(self._running) < 3 and self.chosen.random() < 0.5:
            self.copies.at_access(self.chosen.randrange(12), self._step)
        with suppress(CumaeError):
            self._do(name, self.chosen.choice(("open", "ask", "ask", "end", "copy", "rotate")))
        self._running.remove(name)

    def _do(self, name: str, what: str) -> None:
        one = self.lives.get(name)
        if what == "open" and one is None:
            self.lives[name] = self.copies.open(name)
        elif what == "ask" and one is not None:
            self.copies.ask(one, self.chosen.choice((1, 20, 60, 300)))
        elif what == "rotate" and one is not None:
            one.rotate_key()
        elif what == "end" and one is not None:
            del self.lives[name]
            self.chosen.choice((break_off, type(one).close))(one)
        elif what == "copy" and one is None:
            other = self.chosen.choice("abc")
            if other != name and other not in self.lives and other not in self._running:
                self.copies.copy(name, other)
