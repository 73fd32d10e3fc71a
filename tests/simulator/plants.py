"""Bugs that lives of an oracle could have, planted: histories find each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cumae.predictors.state import state_of
from cumae.randomness import SeededSource, SystemSource
from cumae.store import keys, opening, oracle, pieces
from cumae.store.keys import KeyStore, Life, Mark
from cumae.store.writer import Writer


def debit_after_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let answers leave, and write their debit with the next call."""
    real = Writer.commit

    def commit(self: Any, ticket: int) -> None:
        real(self, ticket - 1)

    monkeypatch.setattr(Writer, "commit", commit)


def mark_goes_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write marks of one release less than were used."""
    real = KeyStore.write_mark

    def write(self: Any, mark: Mark, name: str) -> None:
        real(self, replace(mark, high=max(0, mark.high - 1)), name)

    monkeypatch.setattr(KeyStore, "write_mark", write)
    monkeypatch.setattr(Life, "write_mark", _write_without_comparing)


def _write_without_comparing(self: Any, mark: Mark) -> None:
    self.keys.write_mark(mark, self.mark_name)
    self.mark = mark
    self.check()


def name_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a life go on though the keys name another one."""
    monkeypatch.setattr(Life, "check", lambda self: None)


def marks_of_others_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a life begin as if no other one had used anything."""
    real = Life.begin

    def begin(self: Any) -> Any:
        return {name: replace(mark, high=0) for name, mark in real(self).items()}

    monkeypatch.setattr(Life, "begin", begin)


def mark_is_never_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all commits pass as if they were below the mark."""
    real: Any = Writer._write_mark

    def write(self: Any, *given: Any, **more: Any) -> None:
        if self.life.mark is None or self.life.mark.epoch < self.totals.epoch:
            real(self, *given, **more)

    monkeypatch.setattr(Writer, "_write_mark", write)


def one_mark_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all lives write one mark: harmless where a lock keeps them apart, and nowhere else."""
    monkeypatch.setattr(keys, "mark_of", lambda life: f"{keys.MARK}-0")
    monkeypatch.setattr(Life, "write_mark", _write_without_comparing)


def late_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an opening that was broken off write its mark whenever it is let go of.

    Nobody tells its writer that it failed, and nobody looks at the lock.
    """
    one_mark_for_all(monkeypatch)
    real = opening._Opened.model

    def model(self: Any) -> Any:
        try:
            return real(self)
        except BaseException:
            self.writer = None
            raise

    monkeypatch.setattr(opening._Opened, "model", model)
    monkeypatch.setattr(Life, "_check_lock", lambda self: None)


def valid_before_memory_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a new place be valid before the object in memory refuses."""

    def hand_over(self: Any, take: Any, moved: Any, before: Any) -> None:
        self.write_mark()
        take(moved)

    monkeypatch.setattr(oracle._New, "hand_over", hand_over)


def new_key_forgets_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let only marks of the same key be charged, and not those of the phase."""
    real: Any = vars(opening._Opened)["high"].fget

    def high(self: Any) -> Any:
        own = {name: replace(mark, phase=0) for name, mark in self.marks.items()}
        return real(SimpleNamespace(marks=own, totals=self.totals))

    monkeypatch.setattr(opening._Opened, "high", property(high))


def noise_comes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each opening go on with the coins of the one before, as if they were in the file."""
    real = state_of

    def stored_generator(*given: Any) -> Any:
        source = SeededSource(7)
        monkeypatch.setattr(SystemSource, "words", lambda _, count: source.words(count))
        return real(*given)

    monkeypatch.setattr(pieces, "state_of", stored_generator)


FILES: dict[str, Any] = {"shared": False, "keys": "command"}  # copies reach the same keys
ALONE: dict[str, Any] = {"shared": False, "keys": "beside"}  # a lock keeps lives apart
ACCOUNT: dict[str, Any] = {"shared": False, "kind": "account"}
# Each with what its histories have in common; the seed decides the rest, and all faults.
PLANTS: tuple[tuple[Callable[[pytest.MonkeyPatch], None], dict[str, Any]], ...] = (
    (debit_after_the_answer, {}),
    (mark_goes_down, {}),
    (name_is_not_read, FILES),
    (name_is_not_read, ACCOUNT),
    (marks_of_others_are_not_read, {}),
    (mark_is_never_raised, {}),
    (late_end, ALONE),
    (valid_before_memory_refuses, {}),
    (valid_before_memory_refuses, ACCOUNT),
    (new_key_forgets_copies, FILES),
    (noise_comes_again, {}),
)
