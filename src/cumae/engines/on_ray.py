"""Sums over rows on a cluster of Ray."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from cumae.engines.engine import Failed, Found, RowEngine, Work, each_once, size_of, worked
from cumae.errors import WorkersLost
from cumae.extras import ray

AT_ONCE = 256  # pieces that Ray knows of at a time
TRIES = 4  # times that a piece is given to another worker


class Ray(RowEngine):
    """Workers of Ray.

    Pieces lie in its object store. A piece whose worker died is computed again from what it was
    made of.

    Parameters
    ----------
    address : str, or None
        Where Ray runs, if this process is not connected yet; None starts it on this machine, with
        neither a dashboard nor the output of workers.
    """

    name: ClassVar[str] = "Ray"

    def __init__(self, address: str | None = None) -> None:
        if not ray.is_initialized():
            # What workers print may show cells of rows.
            ray.init(address, log_to_driver=False, include_dashboard=None if address else False)
        self._task = ray.remote(max_retries=TRIES)(worked)

    def hold(self, pieces: Sequence[Any]) -> Any:
        return [ray.put(piece) for piece in pieces]

    def run(self, work: Work, table: Any) -> Found:
        shared, left = ray.put(work), list(enumerate(table))[::-1]
        waiting: dict[Any, int] = {}
        while left or waiting:
            while left and len(waiting) < AT_ONCE:
                number, piece = left.pop()
                waiting[self._task.remote(shared, piece)] = number
            (done,), _ = ray.wait(list(waiting), num_returns=1)
            yield waiting.pop(done), _reply(done)

    def keep(self, work: Work, table: Any) -> tuple[Any, tuple[int, ...]]:
        shared = ray.put(work)
        made = [self._task.remote(shared, piece) for piece in table]
        sizes = dict(each_once(self.run(size_of, made), len(made), self.name))
        return made, tuple(sizes[number] for number in range(len(made)))


def _reply(done: Any) -> Any:
    """Return a result, or that there is none; what an error says stays with Ray."""
    try:
        return ray.get(done)
    except Exception as error:  # noqa: BLE001 - it may hold what an error of a worker says
        kind, cause = type(error).__name__, getattr(error, "cause", None)
        failed = hasattr(error, "as_instanceof_cause")
    if not failed:
        raise WorkersLost(
            f"Ray gave up on a piece ({kind}), because its workers died again and again; look for "
            "what kills them, such as too little memory, and fit again."
        )
    return Failed(kind if cause is None else type(cause).__name__, None)
