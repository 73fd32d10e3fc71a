"""The cost of protecting several rows at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.parameters import check_count
from cumae.privacy.cost import (
    Approximate,
    BoundedRange,
    Composed,
    Cost,
    Gaussian,
    Pure,
    check_cost,
    compose,
)
from cumae.privacy.discrete_gaussian import DiscreteGaussian
from cumae.privacy.formulas import FAR, UP, sum_up, times_up
from cumae.privacy.transforms.base import Transformed
from cumae.privacy.validation import keep


@claim("GROUP")
def group(cost: Cost, size: int) -> Cost:  # noqa: PLR0911 - one line a kind of cost
    """Cost of protecting ``size`` rows at once.

    A composition is taken for several uses of the rows. For noise on several counts that one row
    moves at once (``GaussianNoise`` with ``moves``), make the noise for the group instead.

    Examples
    --------
    >>> from cumae.privacy import DiscreteGaussian, Pure, group
    >>> group(Pure(0.5), 3)
    Pure(eps=1.5)
    >>> group(DiscreteGaussian(600.0), 2)
    DiscreteGaussian(scale=600.0, sensitivity=2)
    """
    check_cost(cost)
    size = check_count(size, "size")
    if size == 0:
        return Pure(0.0)
    if size == 1:
        return cost
    match cost:
        case Pure(eps):
            return Pure(times_up(eps, size))
        case BoundedRange(eps):
            return BoundedRange(times_up(eps, size))
        case Gaussian(scale, sensitivity):
            return Gaussian(scale, times_up(sensitivity, size))
        case DiscreteGaussian(scale, sensitivity):
            return DiscreteGaussian(scale, size * sensitivity)
        case Approximate(eps, failure) if size * eps < FAR:
            total = failure * _chain(np.array([times_up(eps, size)]), size)[0] * UP
            return (
                Approximate(times_up(eps, size), float(total)) if total < 1 else Grouped(cost, size)
            )
        case Composed(parts):
            return compose((group(part, size), count) for part, count in parts)
        case _:
            return Grouped(cost, size)


@claim("GROUP")
@dataclass(frozen=True)
class Grouped(Transformed):
    """A chain of k neighbours: delta_k(e) = (1 + x + ... + x^(k-1)) delta(e/k), x = exp(e/k)."""

    size: int

    def __post_init__(self) -> None:
        keep(self, size=check_count(self.size, "size", least=1))

    def _curve(self, epsilon: Floats) -> Floats:
        # The chained bound may rise again with e, delta may not: stay at the best e behind it.
        return self._chained(np.minimum(epsilon, self._turn))

    def _chained(self, epsilon: Floats) -> Floats:
        delta = self.base.deltas(epsilon / self.size * (1.0 - 1e-15))
        return np.minimum(_chain(epsilon, self.size) * delta * UP, 1.0)

    @cached_property
    def _turn(self) -> float:
        """Return the e with the least chained bound that a search finds."""
        grid = np.linspace(0.0, FAR, 2001)
        for _ in range(6):
            best = int(np.argmin(self._chained(grid)))
            grid = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)], 101)
        return float(grid[int(np.argmin(self._chained(grid)))])

    @property
    def pure(self) -> float:
        return times_up(self.base.pure, self.size)

    @property
    def zcdp(self) -> tuple[float, float] | None:
        if self.base.zcdp is None or self.base.zcdp[1] > 0:
            return super().zcdp
        return (sum_up([(self.base.zcdp[0], self.size**2)]), 0.0)


def _chain(epsilon: Floats, size: int) -> Floats:
    """Return 1 + x + ... + x^(size - 1) with x = exp(epsilon / size)."""
    with np.errstate(all="ignore"):
        step = epsilon / size
        return np.where(step > 1e-300, np.expm1(epsilon) / np.expm1(step), size)
