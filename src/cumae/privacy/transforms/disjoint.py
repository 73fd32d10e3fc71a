"""The cost of several mechanisms that share no row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.privacy.cost import Cost, Pure, check_cost


def parallel(*costs: Cost) -> Cost:
    """Cost of mechanisms that each see rows of their own, split by index and public status only.

    Examples
    --------
    >>> from cumae.privacy import Approximate, Pure, parallel
    >>> parallel(Pure(1.0), Approximate(0.5, 1e-6)).delta(0.5) == Pure(1.0).delta(0.5)
    True
    """
    distinct = tuple(sorted({check_cost(cost) for cost in costs}, key=repr))
    if not distinct:
        return Pure(0.0)
    return distinct[0] if len(distinct) == 1 else Parallel(distinct)


@claim("PAR")
@dataclass(frozen=True)
class Parallel(Cost):
    """One row is in one part only: delta(e) is the largest of the parts'."""

    parts: tuple[Cost, ...]

    def _curve(self, epsilon: Floats) -> Floats:
        return np.asarray(np.max([part.deltas(epsilon) for part in self.parts], axis=0))

    @property
    def pure(self) -> float:
        return max(part.pure for part in self.parts)

    @property
    def zcdp(self) -> tuple[float, float] | None:
        known = [part.zcdp for part in self.parts if part.zcdp is not None]
        if len(known) < len(self.parts):
            return None
        return (max(rho for rho, _ in known), max(xi for _, xi in known))

    @property
    def infinite(self) -> bool:
        return any(part.infinite for part in self.parts)
