"""How two stages on the same rows share a budget."""

from __future__ import annotations

import math
from fractions import Fraction

from cumae.claims import claim
from cumae.privacy import Approximate, Guarantee
from cumae.privacy.formulas import round_up


def split_epsilon(epsilon: float, share: float) -> tuple[float, float]:
    """Return two parts that add up to no more than the whole, exactly."""
    before = epsilon * share
    if epsilon == math.inf:
        return before, epsilon
    after = epsilon - before
    while Fraction(before) + Fraction(after) > Fraction(epsilon):
        after = math.nextafter(after, 0.0)
    return before, after


@claim("UNV")
def universal_cost(first: Guarantee, epsilon: float) -> Approximate:
    """Return the cost of both stages: a release with its guarantee, then a draw with epsilon."""
    if math.inf in (first.epsilon, epsilon):
        return Approximate(math.inf, 0.0)
    return Approximate(round_up(Fraction(first.epsilon) + Fraction(epsilon)), first.delta)
