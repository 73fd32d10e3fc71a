"""What tests of stored states share."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from cumae.codec import from_bytes, to_bytes, to_plain
from cumae.data import Columns
from cumae.randomness import SeededSource, SystemSource
from cumae.sanitizers import Sanitizer


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


def rewritten(arrays: dict[str, NDArray[Any]], change: Callable[[Any], Any]) -> dict[str, Any]:
    """Change the facts of a stored state, as somebody would who knows how they are written."""
    facts = from_bytes(arrays["state"].tobytes())
    change(facts)
    content = to_bytes(facts)
    check = np.array([crc32(content)], dtype=np.uint32)
    return {"state": np.frombuffer(content, dtype=np.uint8), "check": check}


def ahead_of(one: Any) -> dict[str, NDArray[Any]]:
    """Return what a predictor has drawn and not used yet."""
    streams = one._counter_.coins._streams
    return {name: stream.waiting for name, stream in streams.items()}


def rows_of(table: Any, start: int, stop: int) -> Any:
    """Return some rows of a table that begins again at its end."""
    places = np.arange(start, stop) % len(table)
    return table.iloc[places] if hasattr(table, "iloc") else table[places]


def same(one: Any, other: Any) -> bool:  # noqa: PLR0911 - one line a kind of value
    """Tell whether two values are of the same types, and equal; NaN is equal to itself."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return False
        if one.dtype.kind == "O":
            return same(one.ravel().tolist(), other.ravel().tolist())
        return bool(one.tobytes() == other.tobytes())
    if isinstance(one, pd.DataFrame):
        names = list(one.columns)
        columns = [same(one[name].to_numpy(), other[name].to_numpy()) for name in names]
        return names == list(other.columns) and all(columns)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one), list(other)) and same(list(one.values()), list(other.values()))
    if isinstance(one, Columns | Sanitizer):
        return same(to_plain(one), to_plain(other))
    if isinstance(one, float | np.datetime64):
        return repr(one) == repr(other)
    return bool(one == other)
