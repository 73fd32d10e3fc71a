"""Running a model's code so that nothing of it is seen outside, and nothing outside by it."""

from __future__ import annotations

import contextlib
import functools
import random
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from cumae.claims import claim
from cumae.quiet import GLOBALS, warnings_raise


@claim("SHARDS")
class _OneThread:
    """Holds the libraries of linear algebra to one thread while anybody is inside.

    How many threads they use is a setting of the whole process, and it decides in which order they
    add. So the first one inside sets it to one, and the last one out puts it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._inside == 0:
                with _in_control() as libraries:
                    self._limit = libraries.limit(limits=1)
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                with _in_control():
                    self._limit.restore_original_limits()


_ONE_THREAD = _OneThread()


@functools.lru_cache(maxsize=2)
def _libraries(kind: str) -> ThreadpoolController:
    """Find the libraries that use threads; it takes longer than training a few shards."""
    return ThreadpoolController().select(user_api=kind)


@contextlib.contextmanager
def _in_control() -> Iterator[ThreadpoolController]:
    """Let this thread change how many threads the libraries of linear algebra use.

    Since version 3.8, threadpoolctl lets only the first thread that asks, and ignores all others
    without a word. The one that sets it here may not be the one that puts it back.
    """
    libraries = _libraries("blas")
    clear = [getattr(one, "clear_controlling_thread", None) for one in libraries.lib_controllers]
    try:
        for call in filter(None, clear):
            call(force=True)
        yield libraries
    finally:
        for call in filter(None, clear):
            call(force=True)


@claim("SHARDS")
@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let libraries of linear algebra use one thread.

    Rounding must not depend on whether another thread of this process trains at the same time.
    """
    _ONE_THREAD.enter()
    try:
        yield
    finally:
        _ONE_THREAD.leave()


@contextlib.contextmanager
def one_core() -> Iterator[None]:
    """Let all libraries use one thread: for few rows, threads wait more than they work."""
    with one_thread(), _libraries("openmp").limit(limits=1):  # the latter for this thread alone
        yield


# Whether the global generators will be put back anyhow, before anything else draws from them.
_KEPT: ContextVar[bool] = ContextVar("kept", default=False)


@claim("SHARDS")
@contextlib.contextmanager
def generators_kept() -> Iterator[None]:
    """Put the global generators back at the end; each shard that is trained inside seeds them.

    To read and write their states takes longer than to train a small model, so it is done once for
    many shards.
    """
    with GLOBALS:
        numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
        token = _KEPT.set(True)
        try:
            yield
        finally:
            _KEPT.reset(token)
            np.random.set_state(numpy_state)  # noqa: NPY002
            random.setstate(python_state)


@claim("SHARDS")
@contextlib.contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Seed the global generators for one shard, and have them put back afterwards.

    An estimator that draws from them would carry numbers from one shard to the next: how many a
    shard uses may depend on its rows.
    """
    with GLOBALS if _KEPT.get() else generators_kept():
        token = _KEPT.set(False)  # what trains shards inside of this one puts back its numbers
        try:
            np.random.seed(seed)  # noqa: NPY002
            random.seed(seed)
            yield
        finally:
            _KEPT.reset(token)


@claim("SHARDS")
@contextlib.contextmanager
def strictly(seed: int) -> Iterator[None]:
    """Train one shard: warnings are errors, and random numbers its own."""
    with warnings_raise(), own_randomness(seed):
        yield
