"""Time and memory of a fit: simple models, fitted once to what was measured.

Each part of a fit is an ``Effort``: so many steps of one kind, and so many numbers that are held at
once. A rate says what a step and a number of this kind take. ``benchmarks/plan_costs.py`` measures
fits and fits the rates to them; its result lies beside it. There nine of ten forecasts of time are
within a factor of two, and nine of ten forecasts of memory within a factor of three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Rate:
    """Time and memory that one kind of work takes.

    Parameters
    ----------
    start : float
        Seconds of a fit without steps.
    step : float
        Seconds of a step.
    number : float
        Bytes for each number that is held.
    """

    start: float
    step: float
    number: float


# Fitted by benchmarks/plan_costs.py; benchmarks/results/plan_costs.json has what was measured.
RATES: Mapping[str, Rate] = {
    "draws": Rate(0.0027, 3e-8, 28.0),  # by the exponential mechanism; a step is a cell
    "trees": Rate(0.0, 0.0016, 12.0),  # of a booster; a step is a tree
    "posteriors": Rate(0.0062, 8.1e-7, 11.0),  # of the kernel classifier; a pair of coefficients
    "sums": Rate(0.035, 1.2e-8, 8.0),  # of the same; a row times a coefficient
    "one column": Rate(0.064, 3.4e-6, 39.0),  # shards of a concept class; a step is a cell
    "small trees": Rate(0.079, 2.3e-6, 72.0),  # shards of trees and their trial; a step is a cell
    "measured": Rate(0.0, 1.0, 24.0),  # an estimator that was timed; a step is a second
}
FIXED = 100_000  # bytes of any fit


@dataclass(frozen=True)
class Effort:
    """A part of a fit: steps of one kind, and what is held meanwhile.

    Parameters
    ----------
    kind : str
        A key of ``RATES``.
    steps : float
        Number of steps.
    numbers : float
        Numbers that are held at once.
    fits : int
        How often it is done, each time with this number of steps.
    """

    kind: str
    steps: float
    numbers: float
    fits: int = 1

    @property
    def seconds(self) -> float:
        """About how long it takes on one core."""
        rate = RATES[self.kind]
        return self.fits * (rate.start + rate.step * self.steps)

    @property
    def memory(self) -> float:
        """About how many bytes it needs."""
        return RATES[self.kind].number * self.numbers

    def repeated(self, times: int) -> Effort:
        """Return the effort of doing this so many times, one after another."""
        return replace(self, fits=self.fits * times)


def total_effort(
    parts: Sequence[Effort] | None, spent: float = 0.0
) -> tuple[float | None, int | None]:
    """Return the seconds of all parts together, and the memory of the largest one.

    Parameters
    ----------
    parts : sequence of Effort, or None
        All parts of a fit; None if one of them is not known.
    spent : float
        Seconds that it took to decide, which a fit takes as well.

    Returns
    -------
    float, or None
        Seconds on one core.
    int, or None
        Bytes beside the table that is learnt from.

    Examples
    --------
    >>> from cumae.effort import Effort, total_effort
    >>> seconds, memory = total_effort([Effort("draws", 1e6, 1e6)])
    >>> 0.01 < seconds < 10, 1e6 < memory < 1e9
    (True, True)
    >>> total_effort(None)
    (None, None)
    """
    if parts is None:
        return None, None
    held = max((part.memory for part in parts), default=0.0)
    return spent + sum(part.seconds for part in parts), round(FIXED + held)
