"""Engines by their addresses: ``dask://``, ``ray://``, ``spark://`` and ``processes://``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from cumae.engines.engine import RowEngine
from cumae.engines.here import Processes
from cumae.engines.on_dask import Dask
from cumae.engines.on_ray import Ray
from cumae.engines.on_spark import Spark, start_spark
from cumae.errors import InvalidParameter, shown
from cumae.extras import dask, distributed, ray

LOCAL = "local"  # workers on this machine, for this one fit
# A local cluster of Dask writes no rows to a disk, and waits for a worker that starts anew.
OF_DASK = {
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.deploy.lost-worker-timeout": "300s",
}


@contextlib.contextmanager
def engine_at(address: str) -> Iterator[RowEngine]:
    """Connect to an engine, and leave it at the end of the block.

    Parameters
    ----------
    address : str
        ``dask://host:port`` (a scheduler), ``ray://host:port`` (its client server) or
        ``spark://host:port`` (a master); ``dask://local``, ``ray://local``, ``spark://local`` and
        ``processes://local`` start workers on this machine.

    Raises
    ------
    InvalidParameter
        If it is no such address.

    Examples
    --------
    >>> from cumae.engines import engine_at
    >>> with engine_at("processes://local") as engine:
    ...     engine.name
    'processes'
    """
    kind, slashes, where = address.partition("://")
    if kind not in KNOWN or not slashes or not where:
        raise InvalidParameter(
            f"{shown(address)} is no engine; give dask://host:port, ray://host:port or "
            "spark://host:port, or dask://local, ray://local, spark://local or processes://local "
            "for workers on this machine."
        )
    with KNOWN[kind](where) as engine:
        yield engine


@contextlib.contextmanager
def _dask(where: str) -> Iterator[RowEngine]:
    with contextlib.ExitStack() as stack:
        if where == LOCAL:
            stack.enter_context(dask.config.set(OF_DASK))
            cluster = stack.enter_context(distributed.LocalCluster(dashboard_address=None))
            yield Dask(stack.enter_context(distributed.Client(cluster)))
        else:
            yield Dask(stack.enter_context(distributed.Client(f"tcp://{where}")))


@contextlib.contextmanager
def _ray(where: str) -> Iterator[RowEngine]:
    try:
        yield Ray(None if where == LOCAL else f"ray://{where}")
    finally:
        ray.shutdown()


@contextlib.contextmanager
def _spark(where: str) -> Iterator[RowEngine]:
    session = start_spark("local[*,4]" if where == LOCAL else f"spark://{where}")
    try:
        yield Spark(session)
    finally:
        session.stop()


@contextlib.contextmanager
def _processes(where: str) -> Iterator[RowEngine]:
    if where != LOCAL:
        raise InvalidParameter("processes run on this machine: processes://local.")
    yield Processes()


KNOWN: dict[str, Callable[[str], contextlib.AbstractContextManager[RowEngine]]] = {
    "dask": _dask,
    "ray": _ray,
    "spark": _spark,
    "processes": _processes,
}
