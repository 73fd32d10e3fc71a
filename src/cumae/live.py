"""Objects with a live privacy state: one thread at a time, and only in the process that began."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from cumae.claims import claim
from cumae.errors import LiveState

Result = TypeVar("Result")

NOT_KEPT = ("_lock", "_process", "_queue")  # what a copy or a pickle must leave out


class _Running(threading.local):
    """The objects whose marked methods a thread is within."""

    def __init__(self) -> None:
        self.objects: list[int] = []


RUNNING = _Running()


@claim("ACTIVE", "EVER", "QUERY", "BBL")
def belongs_here(owned: Any) -> int:
    """Let an object belong to this process, unless it belongs to one; return which one it is.

    What is made without a call of a marked method, such as a restored predictor, must be given to
    its process at once: a fork before the first call would have two owners.
    """
    process: int = owned.__dict__.setdefault("_process", os.getpid())
    return process


@claim("ACTIVE", "QUERY", "BBL", "EVER")
def check_process(owned: Any) -> None:
    """Refuse in a process that the object does not belong to."""
    if os.getpid() != belongs_here(owned):
        raise LiveState(
            f"{type(owned).__name__} was used in another process; go on there, or take "
            "sklearn.base.clone of it here, because what was paid once must not be had twice."
        )


def is_running(owned: Any) -> bool:
    """Tell whether this thread is within a marked method of an object."""
    return id(owned) in RUNNING.objects


@claim("ACTIVE", "QUERY", "BBL", "EVER")
def one_at_a_time(method: Callable[..., Result]) -> Callable[..., Result]:
    """Let one thread at a time run the marked methods of an object, in one process only."""

    @functools.wraps(method)
    def locked(self: Any, *args: Any, **kwargs: Any) -> Result:
        check_process(self)  # before the lock is taken: in a forked process it may be held for ever
        with self.__dict__.setdefault("_lock", threading.RLock()):
            RUNNING.objects.append(id(self))
            try:
                return method(self, *args, **kwargs)
            finally:
                RUNNING.objects.pop()

    return locked


def forget(estimator: Any) -> None:
    """Drop an earlier fit: one that is broken off must leave nothing under its guarantee."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)
