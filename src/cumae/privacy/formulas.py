"""Formulas that costs are computed with: numbers in, upper bounds out.

They know nothing of the classes of costs, so that every module of this package can use them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.privacy.loss import Atoms

SMALLEST_FLOAT = 5e-324  # the smallest positive float
FAR = 700.0  # no curve is searched for an epsilon beyond this
HOPELESS = 1e6  # noise so small, or rho so large, that no epsilon up to FAR is left to promise
UP = 1.0 + 1e-12  # closed forms are raised by this factor, far above their rounding errors
MOST_STEPS = 100  # of a search for the best order, which takes about ten
SLACK = 1.0 - 1e-9  # a target is lowered by this factor, which leaves room for rounding


def round_up(exact: Fraction) -> float:
    """Return the least float that is not below ``exact``."""
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def sum_up(terms: Iterable[tuple[float, int]]) -> float:
    """Return the sum of counts times figures, rounded up."""
    total = Fraction(0)
    for figure, count in terms:
        if figure == math.inf and count:
            return math.inf
        total += Fraction(figure) * count if count else 0
    return round_up(total)


def times_up(figure: float, count: int) -> float:
    """Return the product, rounded up."""
    return sum_up([(figure, count)])


def add_up(a: Floats, b: float) -> Floats:
    """Return the sums, rounded up."""
    total = a + b
    # What rounding has taken away, exactly (Knuth's two-sum).
    part = total - a
    lost = (a - (total - part)) + (b - part)
    return np.where(lost > 0, np.nextafter(total, np.inf), total)


def root_up(square: Fraction) -> float:
    """Return a float that is not below the square root of ``square``, and hardly above it."""
    root = math.sqrt(round_up(square))
    while math.isfinite(root) and Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    return root


def half_square(x: float) -> float:
    """x^2 / 2 rounded up, for a rho: infinite rather than an error, and not 0 unless x is."""
    return round_up(Fraction(x) ** 2 / 2) if math.isfinite(x) else x


def quotient(sensitivity: float, scale: float) -> float:
    """Sensitivity over scale, rounded up: 0 if nothing moves or noise is infinite, inf without."""
    if sensitivity == 0 or scale == math.inf:
        return 0.0
    if scale == 0 or sensitivity == math.inf:
        return math.inf
    return round_up(Fraction(sensitivity) / Fraction(scale))


def gap(epsilon: Floats, end: float) -> Floats:
    """1 - exp(epsilon - end) where positive, else 0."""
    return -np.expm1(np.minimum(epsilon - end, 0.0))


def randomized_response(epsilon: float, failure: float) -> Atoms:
    """Randomized response, with a failure."""
    low = 1.0 / (1.0 + math.exp(min(epsilon, 700.0)))
    masses = (1.0 - failure) * np.array([low, 1.0 - low])
    return Atoms(np.array([-epsilon, epsilon]), masses, failure, lattice=epsilon)


@claim("ZCDP")
def zcdp_deltas(rho: float, xi: float, epsilon: Floats) -> Floats:
    """Best conversion of zCDP to delta (Canonne, Kamath, Steinke): any order a gives a bound."""
    if rho == 0:
        return np.full_like(epsilon, xi)
    if rho > HOPELESS:
        return np.ones_like(epsilon)
    rho = max(rho, 1e-300)
    # The order a = 1 + s is best where rho (1 + 2 s) - epsilon - ln(1 + 1/s) is 0. This rises with
    # s and is concave, so that Newton's steps from below climb to it. Every order is safe, so is
    # every rounding of it.
    least = 0.5 / math.sqrt(rho) if rho < 0.05 else 1e-6  # below the best for every epsilon
    s = np.maximum((epsilon - rho) / (2 * rho), least)
    for _ in range(MOST_STEPS):
        above = rho * (1 + 2 * s) - epsilon - np.log1p(1 / s)
        better = np.maximum(s - above / (2 * rho + 1 / (s * (1 + s))), least)
        close = bool(np.all(np.abs(better - s) <= 1e-8 * s))
        s = better
        if close:
            break
    exponent = s * ((1 + s) * rho - epsilon) - np.log(s) - (1 + s) * np.log1p(1 / s)
    return np.minimum(add_up((1.0 - xi) * np.exp(exponent) * UP, xi), 1.0)
