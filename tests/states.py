"""What tests of stored states share."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cumae.randomness import SeededSource, SystemSource


def throw_coins(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Let the operating system's generator give what a seed decides."""
    source = SeededSource(seed)
    monkeypatch.setattr(SystemSource, "words", lambda _, count: source.words(count))


def through_a_file(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Write arrays to a file without pickling, and read them again."""
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays)
    file.seek(0)
    with np.load(file, allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def rows_of(table: Any, start: int, stop: int) -> Any:
    """Return some rows of a table that begins again at its end."""
    places = np.arange(start, stop) % len(table)
    return table.iloc[places] if hasattr(table, "iloc") else table[places]
