"""The shared part of transformed costs: the cost before, and the choice of a formula."""

from __future__ import annotations

from dataclasses import dataclass

from cumae.privacy.cost import Cost

VARIANTS = ("tight", "paper")


@dataclass(frozen=True)
class Transformed(Cost):
    """The cost of running a mechanism in another way; ``base`` is its cost in the usual way."""

    base: Cost

    @property
    def infinite(self) -> bool:
        return self.base.infinite


class FromPaper(Transformed):
    """A bound as a paper prints it, on delta and the pure epsilon; none is printed for rho."""

    @property
    def zcdp(self) -> tuple[float, float] | None:
        return None
