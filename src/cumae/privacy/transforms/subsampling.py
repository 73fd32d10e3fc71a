"""The cost of running on a random subset of the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.parameters import check_choice
from cumae.privacy.cost import Cost, check_cost
from cumae.privacy.formulas import FAR, UP
from cumae.privacy.transforms.base import VARIANTS, FromPaper, Transformed
from cumae.privacy.validation import check_rate, keep


def subsample(cost: Cost, rate: float, variant: str = "tight") -> Cost:
    """Cost of running on a uniform subset of that share of the rows, in uniformly random order.

    Kept in the order of the table, a subset is not covered: shuffle it, or ignore the order.

    Examples
    --------
    >>> from cumae.privacy import Pure, subsample
    >>> round(subsample(Pure(1.0), 0.1).epsilon(0), 4)
    0.1586
    >>> round(subsample(Pure(1.0), 0.1, variant="paper").epsilon(0), 4)
    0.5718
    """
    check_cost(cost)
    if check_choice(variant, VARIANTS, "variant") == "paper":
        return PaperSubsampled(cost, rate)
    return Subsampled(cost, rate)


@claim("SUB")
@dataclass(frozen=True)
class OnSubset(Transformed):
    """The cost of a mechanism that runs on a share ``rate`` of the rows."""

    rate: float

    def __post_init__(self) -> None:
        keep(self, rate=check_rate(self.rate, up=True))

    @property
    def infinite(self) -> bool:
        return self.base.infinite and self.rate == 1


@claim("SUB")
class Subsampled(OnSubset):
    """On a share q of the rows: delta'(ln(1 + q (exp(e) - 1))) = q delta(e)."""

    def _curve(self, epsilon: Floats) -> Floats:
        if self.rate == 0:
            return np.zeros_like(epsilon)
        with np.errstate(over="ignore"):
            inner = np.minimum(np.log1p(np.expm1(epsilon) / self.rate), FAR)
        # Reading the base a little to the left keeps the rounding of ``inner`` on the safe side.
        return self.rate * self.base.deltas(inner * (1.0 - 1e-12)) * UP

    @property
    def pure(self) -> float:
        return _amplified(self.base.pure, self.rate)

    @property
    def zcdp(self) -> tuple[float, float] | None:
        # A mixture diverges no more than its worst part, so the base's own figure still holds;
        # what follows from the amplified pure epsilon may be better.
        known = [rho for rho in (self.base.zcdp, super().zcdp) if rho is not None]
        return min(known, default=None) if self.rate > 0 else (0.0, 0.0)


@claim("SUB")
class PaperSubsampled(OnSubset, FromPaper):
    """Claim C.1 of paper 1: (e, d) on a share q is (q (3 + exp(e)), 4 q d), if at most (1, ...)."""

    def _curve(self, epsilon: Floats) -> Floats:
        if self.rate == 0:
            return np.zeros_like(epsilon)
        inner = np.minimum(epsilon, 1.0) / self.rate * (1.0 - 1e-12) - 3.0
        near = np.log(np.maximum(inner, 1.0)) * (1.0 - 1e-12)
        stated = 4 * self.rate * self.base.deltas(near) * UP
        return np.where(inner >= 1.0, stated, 1.0)

    @property
    def pure(self) -> float:
        if self.rate == 0:
            return 0.0
        if self.base.pure > FAR:
            return math.inf
        epsilon = self.rate * (3.0 + math.exp(self.base.pure)) * UP
        return epsilon if epsilon <= 1 else math.inf


def _amplified(epsilon: float, rate: float) -> float:
    if epsilon == math.inf:
        return math.inf if rate > 0 else 0.0
    if rate == 1:
        return epsilon
    if epsilon > FAR:
        return epsilon  # the formula overflows; not amplifying is safe
    return min(epsilon, math.log1p(rate * math.expm1(epsilon)) * UP)
