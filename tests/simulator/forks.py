"""A fork: the memory of a process, copied object by object, with locks as they are held."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from tests.simulator.world import Cell, HostLock, Process, World

SHARED = (
    *(int, float, str, bytes, bool, type(None), type, ModuleType, FunctionType),
    *(BuiltinFunctionType, Dispatcher, BaseException, Cell, HostLock, World, Process),
)
RLOCK = type(threading.RLock())
LOCK = type(threading.Lock())


def forked(oracle: Any) -> Any:
    """Return the copy of an oracle that a forked process has in its memory."""
    return _copied(oracle, {})


def _copied(one: Any, known: dict[int, Any]) -> Any:
    if isinstance(one, SHARED):
        return one
    if id(one) in known:
        return known[id(one)][0]
    found = _made(one, known)
    known[id(one)] = (found, one)  # the original must not go while its id is used
    return found


def _made(one: Any, known: dict[int, Any]) -> Any:
    copy: Callable[[Any], Any] = lambda part: _copied(part, known)  # noqa: E731
    for special, how in HOW.items():
        if isinstance(one, special):
            return how(one, copy)
    if type(one) in (tuple, set, frozenset):
        return type(one)(map(copy, one))
    if not hasattr(one, "__dict__") and not isinstance(one, list | dict):
        return one  # a value
    kind: Any = type(one)
    made = kind.__new__(kind)
    known[id(one)] = (made, one)
    if isinstance(one, list):
        made.extend(map(copy, one))
    if isinstance(one, dict):
        made.update({key: copy(value) for key, value in one.items()})
    for name, value in getattr(one, "__dict__", {}).items():
        made.__dict__[name] = copy(value)
    return made


def _end_of(one: weakref.finalize[Any, Any], copy: Callable[[Any], Any]) -> Any:
    """Return the finaliser that a child inherits: the same call, of its own objects."""
    alive = one.peek()
    if alive is None:
        return one
    owner, action, args, kwargs = alive
    made = weakref.finalize(copy(owner), action, *map(copy, args), **kwargs)
    made.atexit = False
    return made


# How objects that are no plain values or records are copied. A thread that is not in the child
# holds none of its locks here: processes of the simulator have one thread each.
HOW: dict[Any, Callable[[Any, Callable[[Any], Any]], Any]] = {
    np.ndarray: lambda one, copy: one.copy(),
    RLOCK: lambda one, copy: threading.RLock(),
    LOCK: lambda one, copy: threading.Lock(),
    partial: lambda one, copy: partial(copy(one.func), *map(copy, one.args), **one.keywords),
    MethodType: lambda one, copy: MethodType(one.__func__, copy(one.__self__)),
    weakref.finalize: _end_of,
}
