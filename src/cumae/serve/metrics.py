"""Counts for operators, in the text format of Prometheus.

Labels are names of models, of routes and of statuses, all of them public. Times have coarse
buckets, because time tells more than counts do.
"""

from __future__ import annotations

import math
from collections import Counter

from cumae.claims import claim

BUCKETS = (0.01, 0.1, 1.0, 10.0)


@claim("SERVE")
class Metrics:
    """Counts of what was asked and refused, and of how long it took."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._rows: Counter[str] = Counter()
        self._times: Counter[float] = Counter()
        self._count, self.internal_errors = 0, 0
        self.refusals: Counter[str] = Counter()

    def request(self, route: str, status: int, seconds: float) -> None:
        """Count a request.

        Parameters
        ----------
        route : str
            The pattern of its address.
        status : int
            The status of the reply.
        seconds : float
            How long it took.
        """
        self._requests[route, status] += 1
        self._count += 1
        for bucket in BUCKETS:
            if seconds <= bucket:
                self._times[bucket] += 1
                break

    @property
    def n_requests(self) -> int:
        """Requests so far."""
        return self._count

    @property
    def times(self) -> list[tuple[float, int]]:
        """Requests by their time: ends of coarse buckets in seconds, the last one open."""
        found = [(bucket, self._times[bucket]) for bucket in BUCKETS]
        return [*found, (math.inf, self._count - sum(count for _, count in found))]

    def rows(self, model: str) -> int:
        """Return how many rows of a model were answered."""
        return self._rows[model]

    def answered(self, model: str, n_rows: int) -> None:
        """Count rows that were answered."""
        self._rows[model] += n_rows

    def text(self, ready: dict[str, bool]) -> bytes:
        """Return all counts.

        Parameters
        ----------
        ready : dict of str to bool
            Which models can answer.
        """
        lines = ["# TYPE cumae_requests_total counter"]
        for (route, status), count in sorted(self._requests.items()):
            lines.append(f'cumae_requests_total{{route="{route}",status="{status}"}} {count}')
        lines.append("# TYPE cumae_rows_total counter")
        lines += [f'cumae_rows_total{{model="{name}"}} {self._rows[name]}' for name in ready]
        lines.append("# TYPE cumae_ready gauge")
        lines += [f'cumae_ready{{model="{name}"}} {int(good)}' for name, good in ready.items()]
        lines.append("# TYPE cumae_internal_errors_total counter")
        lines.append(f"cumae_internal_errors_total {self.internal_errors}")
        lines.append("# TYPE cumae_request_seconds histogram")
        below = 0
        for bucket in BUCKETS:
            below += self._times[bucket]
            lines.append(f'cumae_request_seconds_bucket{{le="{bucket:g}"}} {below}')
        lines.append(f'cumae_request_seconds_bucket{{le="+Inf"}} {self._count}')
        lines.append(f"cumae_request_seconds_count {self._count}")
        return ("\n".join(lines) + "\n").encode()
