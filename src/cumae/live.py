"""Objects with a live privacy state: one thread at a time, and only in the process that began."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from cumae.claims import claim
from cumae.errors import LiveState

Owner = TypeVar("Owner")  # whose method is marked
Arguments = ParamSpec("Arguments")  # what the method is called with
Result = TypeVar("Result")

NOT_KEPT = ("_lock", "_process")  # what a copy or a pickle must leave out


class _Calls(threading.local):
    """The objects whose marked methods a thread is within."""

    def __init__(self) -> None:
        self.objects: tuple[int, ...] = ()


CALLS = _Calls()


@claim("ACTIVE", "EVER", "QUERY", "BBL")
def belongs_here(owned: Any) -> int:
    """Let an object belong to this process, unless it belongs to one; return which one it is.

    What is made without a call of a marked method, such as a restored predictor, must be given to
    its process at once: a fork before the first call would have two owners.
    """
    process: int = owned.__dict__.setdefault("_process", os.getpid())
    return process


@claim("ACTIVE", "QUERY", "BBL", "EVER")
def lock_of(owned: Any) -> threading.RLock:
    """Return the lock of an object, which all its marked methods share."""
    lock: threading.RLock = owned.__dict__.setdefault("_lock", threading.RLock())
    return lock


@claim("ACTIVE", "QUERY", "BBL", "EVER")
def check_process(owned: Any) -> None:
    """Refuse in a process that the object does not belong to."""
    if os.getpid() != belongs_here(owned):
        raise _elsewhere(type(owned).__name__)


def _elsewhere(name: str) -> LiveState:
    return LiveState(
        f"{name} was used in another process; go on there, or take sklearn.base.clone of it here, "
        "because two copies would both spend the same budget."
    )


@claim("ACTIVE", "QUERY", "BBL", "EVER", "STORE")
def refuse_within(owned: Any) -> None:
    """Refuse in a thread that is within a marked method of the object.

    Signal handlers, finalisers, callbacks and models run there, too. They would see what was drawn
    and is not recorded yet, or wait for a lock that their own thread holds.
    """
    if id(owned) in CALLS.objects:
        raise _nested(type(owned).__name__)


def _nested(name: str) -> LiveState:
    return LiveState(
        f"{name} was used while the same thread is within a call of it, as by a "
        "signal handler, a callback or a model; use it when that call has ended. A signal handler "
        "may raise KeyboardInterrupt, which ends the call; close it after that."
    )


@claim("QUERY", "BBL", "EVER", "STORE")
class Within:
    """The calls of one object: a thread is within one of them at a time, in one process.

    It is no context manager: an interrupt may come as the first thing in ``__exit__``, and the
    thread would be within a call for ever.

    Parameters
    ----------
    owned : object
        What is used.

    Attributes
    ----------
    id : int
        What stands for the object in ``CALLS``.
    """

    def __init__(self, owned: Any) -> None:
        self.id, self._name, self._process = id(owned), type(owned).__name__, belongs_here(owned)

    @property
    def is_here(self) -> bool:
        """True if this is the process that the object belongs to."""
        return os.getpid() == self._process

    def check(self) -> tuple[int, ...]:
        """Return the objects whose calls this thread is within; refuse if this is one of them."""
        if os.getpid() != self._process:  # before a lock: in a forked process it may be held
            raise _elsewhere(self._name)
        outside = CALLS.objects
        if self.id in outside:
            raise _nested(self._name)
        return outside

    def run(self, work: Callable[[], Result]) -> Result:
        """Run something as a call of the object."""
        outside = self.check()
        try:
            CALLS.objects = (*outside, self.id)
            return work()
        finally:
            CALLS.objects = outside  # no call, which an interrupt could come before


@claim("ACTIVE", "QUERY", "BBL", "EVER", "STORE")
def one_call(
    method: Callable[Concatenate[Owner, Arguments], Result],
) -> Callable[Concatenate[Owner, Arguments], Result]:
    """Refuse a marked method within a call of the same thread, and in another process."""

    @functools.wraps(method)
    def called(self: Owner, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        check_process(self)  # before a lock is taken: in a forked process it may be held for ever
        refuse_within(self)
        before = CALLS.objects
        try:
            CALLS.objects = (*before, id(self))
            return method(self, *args, **kwargs)
        finally:
            CALLS.objects = before

    return called


@claim("ACTIVE", "QUERY", "BBL", "EVER")
def locked(
    method: Callable[Concatenate[Owner, Arguments], Result],
) -> Callable[Concatenate[Owner, Arguments], Result]:
    """Let one thread at a time run the marked methods of an object, each within ``one_call``."""

    @functools.wraps(method)
    def alone(self: Owner, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        with lock_of(self):
            return method(self, *args, **kwargs)

    return alone


@claim("ACTIVE", "QUERY", "BBL", "EVER")
def one_at_a_time(
    method: Callable[Concatenate[Owner, Arguments], Result],
) -> Callable[Concatenate[Owner, Arguments], Result]:
    """Let one thread at a time call the marked methods of an object, in one process only."""
    return one_call(locked(method))


class Guarded(Protocol):
    """An object whose methods ``only_once`` marks.

    ``_inside`` is False at first. Because the lock is an ``RLock``, a call that gets in while
    another one is inside comes from the same thread.
    """

    _inside: bool
    _lock: threading.RLock

    def _check_process(self) -> None: ...


GuardedOwner = TypeVar("GuardedOwner", bound=Guarded)


@claim("NOISE", "BUDGET")
def only_once(
    method: Callable[Concatenate[GuardedOwner, Arguments], Result],
) -> Callable[Concatenate[GuardedOwner, Arguments], Result]:
    """Let a method run once at a time: other threads wait, and a call within a call is refused."""

    @functools.wraps(method)
    def alone(self: GuardedOwner, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        self._check_process()  # before the lock: in a forked process it may be held for ever
        with self._lock:
            if self._inside:
                raise _nested(type(self).__name__)
            try:
                self._inside = True
                return method(self, *args, **kwargs)
            finally:
                self._inside = False

    return alone


def forget(estimator: Any) -> None:
    """Drop an earlier fit: one that is broken off must leave nothing under its guarantee."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)
