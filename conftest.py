"""Coins of tests and examples: each one's name decides them, so that nothing fails by chance.

Tests marked ``statistical`` or ``system_coins`` draw from the operating system, as production does,
and so do processes that a test starts. What several tests share has the coins of the first one that
needs it. ``CUMAE_COINS=7 make test`` throws other coins, and lets hypothesis look for other
examples, to see what holds by luck.

Models that are asked one by one get blocks of 64 rows here, and not of 4,096, because a single
query costs a whole block: what must hold does not depend on the size. Tests marked
``full_blocks`` keep the real one.

What exists once the tests are collected stays until the end. So Python's collector of garbage is
told to leave these million objects alone, which it would otherwise look through again and again.
"""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING
from zlib import crc32

import pytest

from cumae.ensembles import blocks
from cumae.randomness import SeededSource, SystemSource

if TYPE_CHECKING:
    from collections.abc import Generator

    from cumae.arrays import Words


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests, and keep what they are made of out of the collection of garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test, its fixtures included, with coins that its name decides."""
    with pytest.MonkeyPatch.context() as patch:
        if not item.get_closest_marker("full_blocks"):
            patch.setattr(blocks, "BLOCK_ROWS", 64)
        return (yield from _with_own_coins(item))


def _with_own_coins(item: pytest.Item) -> Generator[None, object, object]:
    if any(item.get_closest_marker(name) for name in ("statistical", "system_coins")):
        return (yield)
    named = SeededSource(crc32(f"{item.nodeid} {os.environ.get('CUMAE_COINS', '')}".encode()))
    system, parent = SystemSource.words, os.getpid()

    def words(self: SystemSource, count: int) -> Words:
        return named.words(count) if os.getpid() == parent else system(self, count)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SystemSource, "words", words)
        return (yield)
