"""The published model of a number: scores, and how errors are spread around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cumae.arrays import Floats
from cumae.codec import register_kind
from cumae.learners.kernel.model import KernelModel
from cumae.learners.regression.spread import Spread
from cumae.learners.regression.target import NumberTarget


@dataclass(frozen=True)
class NumberModel:
    """Means of numbers, and intervals; computed from released numbers alone.

    Parameters
    ----------
    kernel : KernelModel
        Scores of rows.
    target : NumberTarget
        What scores stand for.
    errors : Spread
        How numbers less their means are spread, in units of the target and of the size of errors.
    """

    kernel: KernelModel
    target: NumberTarget
    errors: Spread

    def means(self, table: Floats) -> Floats:
        """Return the mean of each encoded row."""
        return self.target.plain(self.target.mean(self.kernel.scores(table)[:, 0]))

    def between(self, table: Floats, shares: Floats) -> Floats:
        """Return numbers below which such shares of all numbers lie, a column for each share.

        Parameters
        ----------
        table : array of float
            Encoded rows.
        shares : array of float
            Shares between 0 and 1.
        """
        scores = self.kernel.scores(table)[:, 0]
        off = self.target.size(scores)[:, None] * self.errors.quantile(shares)
        return self.target.plain(self.target.mean(scores)[:, None] + off)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        errors = {"edges": self.errors.edges.tolist(), "shares": self.errors.shares.tolist()}
        kernel, target = self.kernel.to_dict(), self.target.to_dict()
        return {"kernel": kernel, "target": target, "errors": errors}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> NumberModel:
        """Rebuild what ``to_dict`` returned."""
        errors = Spread(np.array(plain["errors"]["edges"]), np.array(plain["errors"]["shares"]))
        kernel = KernelModel.from_dict(plain["kernel"])
        return cls(kernel, NumberTarget.from_dict(plain["target"]), errors)


register_kind("number model", NumberModel)
