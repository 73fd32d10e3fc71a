"""Who does parts of the work: threads of this process, or workers of joblib elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

from joblib import Parallel, delayed, parallel_config
from joblib.parallel import BACKENDS, DEFAULT_BACKEND, get_active_backend


def elsewhere() -> bool:
    """Tell whether the user chose a backend of joblib that goes beyond this process."""
    backend, _ = get_active_backend()
    # Workers of joblib see the last two: they should not start workers of their own.
    return type(backend) not in [BACKENDS[k] for k in (DEFAULT_BACKEND, "threading", "sequential")]


def parallel(**how: Any) -> Parallel:
    """Return a ``joblib.Parallel`` that writes no array to a temporary folder.

    By default joblib writes arrays above a megabyte there, in clear, for workers to read. If the
    machine stops in the meantime, private rows stay in that folder.

    Parameters
    ----------
    **how : object
        Parameters of ``joblib.Parallel``.
    """
    return Parallel(max_nbytes=None, **how)


@contextlib.contextmanager
def in_memory() -> Iterator[None]:
    """Let code of others start workers of joblib that get no array through a temporary folder."""
    with parallel_config(max_nbytes=None):
        yield


def each(work: Callable[..., Any], parts: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
    """Return what ``work`` makes of each part, in any order.

    Threads of this process do it, or the workers of the backend that the user chose, such as
    ``joblib.parallel_config("dask")``.

    Parameters
    ----------
    work : callable
        Gets what a part holds, and returns a result that does not depend on other parts.
    parts : iterable of tuple
        The parts, made one by one while others are worked on.
    """
    rest = iter(parts)
    first = list(islice(rest, 2))
    if len(first) < 2:  # to start threads for it would take longer
        return iter([work(*part) for part in first])
    parts = chain(first, rest)
    if elsewhere():
        return iter(parallel(return_as="generator_unordered")(delayed(work)(*p) for p in parts))
    pool = parallel(n_jobs=-1, backend="threading", return_as="generator_unordered")
    return iter(pool(delayed(work)(*part) for part in parts))
