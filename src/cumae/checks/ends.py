"""The end of a call: its result, or what it raised; here or in a forked process."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

from cumae.checks.shards import demand
from cumae.quiet import is_failure


def end_of(call: Callable[[], Any]) -> str:
    """Return "done", or the name of what was raised.

    Examples
    --------
    >>> from cumae.checks.ends import end_of
    >>> end_of(lambda: 1), end_of(lambda: 1 // 0)
    ('done', 'ZeroDivisionError')
    """
    try:
        call()
    except BaseException as error:
        if not is_failure(type(error)):
            raise
        return type(error).__name__
    return "done"


def in_a_fork(call: Callable[[], Any]) -> str:
    """Return how a call ends in a forked process."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about forks of threaded processes
        child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            os.write(writing, end_of(call).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        end = answer.read()
    os.waitpid(child, 0)
    return end


def demand_end(kind: type[Exception], call: Callable[[], Any]) -> None:
    """Raise AssertionError unless a call raises this kind of error."""
    end = end_of(call)
    demand(end == kind.__name__, f"{kind.__name__} was expected, but it ended as {end}")
