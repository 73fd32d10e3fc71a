"""Sums over rows on a cluster of Dask."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, ClassVar

from cumae.engines.engine import Failed, Found, RowEngine, Work, each_once, size_of, worked
from cumae.errors import InvalidParameter, WorkersLost
from cumae.extras import dask, distributed

PATIENCE = 300.0  # seconds without any worker: Dask itself would wait for ever
PAUSE = 0.02  # seconds between two looks for results
# Errors by which Dask says that it gave up on a task, and not what went wrong in it.
LOST = frozenset(
    ("KilledWorker", "CancelledError", "FutureCancelledError", "CommClosedError", "TimeoutError")
)


class Dask(RowEngine):
    """Workers of Dask, by its distributed scheduler.

    Pieces that are kept stay in the memory of workers. A piece whose worker died is computed again
    from what it was made of.

    Parameters
    ----------
    client : distributed.Client, or None
        The client; None is the one that was made last.

    Examples
    --------
    >>> import numpy as np
    >>> from dask.distributed import Client, LocalCluster  # doctest: +SKIP
    >>> from cumae.engines import Dask, cut
    >>> with LocalCluster(2, dashboard_address=None) as cluster, Client(cluster):  # doctest: +SKIP
    ...     int(cut(np.arange(30_000), engine=Dask()).sum(np.sum))
    449985000
    """

    name: ClassVar[str] = "Dask"

    def __init__(self, client: Any = None) -> None:
        self.client = _current() if client is None else client

    def hold(self, pieces: Sequence[Any]) -> Any:
        # They go along with tasks: data that were scattered would be gone with their worker.
        return list(pieces)

    def run(self, work: Work, table: Any) -> Found:
        waiting = {
            future.key: (number, future) for number, future in enumerate(self._asked(work, table))
        }
        ready = distributed.as_completed([future for _, future in waiting.values()])
        seen = time.monotonic()  # when there was a worker, or a result
        while waiting:
            done = ready.next_batch(block=False)
            if done or self.client.nthreads():
                seen = time.monotonic()
            elif time.monotonic() - seen > PATIENCE:
                raise WorkersLost(
                    f"Dask has had no worker for {PATIENCE:.0f} seconds; start some, and fit again."
                )
            for one in done:
                number, future = waiting.pop(one.key)
                yield number, _reply(future)
            if not done:
                time.sleep(PAUSE)

    def keep(self, work: Work, table: Any) -> tuple[Any, tuple[int, ...]]:
        made = self._asked(work, table)
        sizes = dict(each_once(self.run(size_of, made), len(made), self.name))
        return made, tuple(sizes[number] for number in range(len(made)))

    def _asked(self, work: Work, table: Any) -> list[Any]:
        """Return a future of what work makes of each piece."""
        if not any(dask.is_dask_collection(piece) for piece in table):
            # Not pure: Dask would name tasks by a digest of rows.
            return [self.client.submit(worked, work, piece, pure=False) for piece in table]
        task = dask.delayed(worked, pure=False)
        shared = dask.delayed(work, pure=False, traverse=False)
        return list(self.client.compute([task(shared, piece) for piece in table]))


def _current() -> Any:
    try:
        return distributed.default_client()
    except ValueError:
        raise InvalidParameter(
            "there is no client of Dask; connect first: distributed.Client(address)."
        ) from None


def _reply(future: Any) -> Any:
    """Return a result, or that there is none; what an error says stays with Dask."""
    if future.status == "finished":
        try:
            return future.result()
        except Exception as error:  # noqa: BLE001 - the worker may die just now
            kind = type(error).__name__
    else:
        kind = type(future.exception()).__name__ if future.status == "error" else "CancelledError"
    if kind in LOST:
        raise WorkersLost(
            f"Dask gave up on a piece ({kind}), because its workers died again and again; look for "
            "what kills them, such as too little memory, and fit again."
        )
    return Failed(kind, None)
