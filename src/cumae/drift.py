"""An estimate of how far answers wander that rest on votes alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cumae.parameters import check_count


@dataclass(frozen=True)
class Drift:
    """An estimate, from a simulation with public counts, of how far a boundary of votes wanders.

    It is no bound. Votes alone, without a prior, learn each phase from the one before, so that the
    boundary makes a random step in each. The simulation has one threshold over one evenly spread
    column, and knows nothing of the rows.

    Parameters
    ----------
    n_rows : int
        Rows of a phase that grows no more.
    step : float
        Standard deviation of a step, as a share of the rows.

    Examples
    --------
    >>> from cumae.drift import Drift
    >>> print(Drift(20_000, 0.002))
    estimated drift, simulated with thresholds: answers that turn are 0.16% in a phase of 20,000 ...
    """

    n_rows: int
    step: float

    def after(self, phases: int) -> float:
        """Return about the share of answers that so many phases turn.

        Parameters
        ----------
        phases : int of 0 or more
            Phases after the growth has ended.
        """
        mean = math.sqrt(2 / math.pi)  # of the absolute value of a standard normal number
        return min(0.5, mean * self.step * math.sqrt(check_count(phases, "phases")))

    def __str__(self) -> str:
        """Return one line."""
        return (
            "estimated drift, simulated with thresholds: answers that turn are "
            f"{self.after(1):.2%} in a phase of {self.n_rows:,} rows, "
            f"{self.after(100):.2%} in 100 phases"
        )
