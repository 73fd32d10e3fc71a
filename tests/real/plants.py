"""Bugs for histories of real processes: those of the simulator, and one that takes away more."""

from __future__ import annotations

from typing import Any

import pytest

from cumae.store.keys import Life, Mark
from tests.simulator import plants


def name_and_mark_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a life go on though the keys name another one, and its own mark was deleted.

    Either look stops nearly all lives that have ended, so that without one of them only a race of
    a few milliseconds is left.
    """

    def write(self: Any, mark: Mark) -> None:
        self.keys.write_mark(mark, self.mark_name)
        self.mark = mark

    monkeypatch.setattr(Life, "write_mark", write)
    monkeypatch.setattr(Life, "check", lambda self: None)


PLANTS = (*(plant for plant, _ in plants.PLANTS), name_and_mark_are_not_read)
