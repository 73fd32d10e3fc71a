"""Number of threads that libraries of linear algebra use: a setting of the whole process."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from threadpoolctl import ThreadpoolController

from cumae.claims import claim
from cumae.remembering import remembered


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


@remembered(2)
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
