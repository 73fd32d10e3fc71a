"""The cost of a mechanism that keeps its promise except in rare cases."""

from __future__ import annotations

from dataclasses import dataclass

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.privacy.cost import Cost, check_cost
from cumae.privacy.formulas import add_up
from cumae.privacy.transforms.base import Transformed
from cumae.privacy.validation import check_delta, keep


def or_fail(cost: Cost, delta: float) -> Cost:
    """Cost when outcomes of probability at most ``delta`` are not covered by ``cost``.

    The condition is that of claim FAIL: for each input there is a set of bad outcomes with that
    probability, and outside it ``cost`` holds against every neighbour.

    Examples
    --------
    >>> from cumae.privacy import Pure, or_fail
    >>> or_fail(Pure(1.0), 1e-6).delta(1.0)
    1e-06
    """
    check_cost(cost)
    return Failing(cost, delta) if check_delta(delta) > 0 else cost


@claim("FAIL")
@dataclass(frozen=True)
class Failing(Transformed):
    """delta'(e) = delta(e) + failure."""

    failure: float

    def __post_init__(self) -> None:
        keep(self, failure=check_delta(self.failure, up=True))

    def _curve(self, epsilon: Floats) -> Floats:
        return add_up(self.base.deltas(epsilon), self.failure)

    @property
    def zcdp(self) -> tuple[float, float] | None:
        return None
