"""The cost of running on rows that a privately drawn hypothesis has labelled."""

from __future__ import annotations

import math

import numpy as np

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.errors import InvalidParameter
from cumae.parameters import check_choice, check_count
from cumae.privacy.cost import BoundedRange, Cost, check_cost
from cumae.privacy.formulas import UP, sum_up
from cumae.privacy.transforms.base import VARIANTS, FromPaper
from cumae.privacy.validation import check_epsilon


@claim("LB")
def label_boost(cost: Cost, epsilon: float, role: str, k: int = 2, variant: str = "tight") -> Cost:
    """Cost for one row when a drawn hypothesis relabels the rows and ``cost`` is paid afterwards.

    The hypothesis is drawn by the exponential mechanism with ``epsilon``, scored on the labelled
    rows S, among candidates that the points of S and T define. With g = exp(epsilon/2), the draw is
    a mechanism of bounded range 2 ln F, composed with ``cost``: F = 1 + g for a row of S and 2 for
    a row of T if k = 2, which means that a new point splits a candidate into at most two, which
    disagree on it; else F = k g for S and k for T, where k bounds the factor by which one point
    changes the weight of the candidates that agree elsewhere (k = 1: candidates are public).

    Parameters
    ----------
    cost : Cost
        What the algorithm that runs on the relabelled rows costs.
    epsilon : float of 0 or more
        Parameter of the exponential mechanism that draws the hypothesis.
    role : {"S", "T", "untouched"}
        ``"S"`` for a labelled row that is scored, ``"T"`` for one that only defines candidates, or
        ``"untouched"`` for a row that takes part in neither.
    k : int of 1 or more
        As above; a class without a proven k must not be used.
    variant : {"tight", "paper"}
        ``"paper"`` is (e + 3, 4 exp(1) d) for both roles, stated for ``epsilon = 1`` and k = 2.

    Examples
    --------
    >>> from cumae.privacy import Pure, label_boost
    >>> round(label_boost(Pure(1.0), 1.0, "S").epsilon(0), 3)
    2.948
    >>> label_boost(Pure(1.0), 1.0, "S", variant="paper").epsilon(0)
    4.0
    """
    check_cost(cost)
    epsilon = check_epsilon(epsilon, up=True)
    k = check_count(k, "k", least=1)
    check_choice(role, ("S", "T", "untouched"), "role")
    if role == "untouched":
        return cost
    if check_choice(variant, VARIANTS, "variant") == "paper":
        if epsilon != 1 or k != 2:
            raise InvalidParameter(
                f"variant='paper' with epsilon={epsilon!r}, k={k!r}: the paper states its bound "
                "for epsilon=1 and k=2 only; use variant='tight'."
            )
        return PaperLabelBoosted(cost)
    scored = epsilon / 2 if role == "S" else 0.0
    log_factor = np.logaddexp(0.0, scored) if k == 2 else math.log(k) + scored
    return cost + BoundedRange(2 * float(log_factor) * (1.0 + 1e-15))


@claim("LB")
class PaperLabelBoosted(FromPaper):
    """Lemma 4.1 of paper 1, as its proof gives it: delta'(e + 3) = 4 exp(1) delta(e)."""

    def _curve(self, epsilon: Floats) -> Floats:
        near = np.maximum(epsilon - 3.0, 0.0) * (1.0 - 1e-15)
        stated = 4 * math.e * self.base.deltas(near) * UP
        return np.where(epsilon >= 3.0, stated, 1.0)

    @property
    def pure(self) -> float:
        return sum_up([(self.base.pure, 1), (3.0, 1)])
