"""Deterministic sources for tests."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from cumae.arrays import Words
from cumae.randomness import SYSTEM, Source


class Scripted(Source):
    """Yields the given words first, then those of the system."""

    deterministic = True

    def __init__(self, words: Iterable[int]) -> None:
        self.script = [np.uint64(word) for word in words]

    def words(self, count: int) -> Words:
        head, self.script = self.script[:count], self.script[count:]
        return np.concatenate([np.array(head, dtype=np.uint64), SYSTEM.words(count - len(head))])


class Forgetful(Source):
    """Yields the same word for every place of a batch: noise that is reused (a planted bug)."""

    deterministic = True

    def words(self, count: int) -> Words:
        return np.repeat(SYSTEM.words(1), count)
