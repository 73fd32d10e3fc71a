"""Certified bounds on exponentials, in integers of any precision; no randomness.

Floating point decides almost every comparison; what it leaves open is decided here.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TypeAlias

from cumae.claims import claim

Bounds: TypeAlias = tuple[int, int]


@claim("EXACT")
def exp_bounds(x: Fraction, bits: int) -> Bounds:
    """Return integers (low, high) with low <= 2^bits exp(x) <= high, for x <= 0.

    They lie two apart at most, and coincide for x = 0.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from cumae.exact import exp_bounds
    >>> exp_bounds(Fraction(-1), 16)  # 65536 / e = 24109.35...
    (24109, 24110)
    >>> exp_bounds(Fraction(0), 16)
    (65536, 65536)
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if x < -(bits + 1):  # exp(-1) < 1/2
        return 0, 1
    # Enough digits that rounding x, and its exponential, shifts the result by far less than 1.
    digits = bits * 302 // 1000 + len(str(math.ceil(-x))) + 8
    below = _context(digits, ROUND_FLOOR)
    above = _context(digits, ROUND_CEILING)
    numerator, denominator = Decimal(x.numerator), Decimal(x.denominator)
    # Decimal's exp is correctly rounded to nearest, so a step of one unit outwards is a bound.
    low = below.next_minus(below.exp(below.divide(numerator, denominator)))
    high = above.next_plus(above.exp(above.divide(numerator, denominator)))
    return math.floor(Fraction(low) * (1 << bits)), math.ceil(Fraction(high) * (1 << bits))


def _context(digits: int, rounding: str) -> Context:
    return Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX)


@claim("EXACT")
def gaussian_bounds(variance: Fraction, bits: int) -> list[Bounds]:
    """Return bounds on 2^bits P(|X| <= k) for k = 0, 1, ... of the discrete Gaussian X.

    P(X = x) is proportional to exp(-x^2 / (2 variance)). The list ends where the rest is below
    2^-bits.
    """
    # w_k = exp(-k^2 / (2 v)) by w_{k+1} = w_k s_k, s_{k+1} = s_k q^2, s_0 = q = exp(-1 / (2 v)):
    # pairs of integers in units of 2^-work, products rounded outwards.
    work = bits + 64
    q = exp_bounds(-1 / (2 * variance), work)
    square = exp_bounds(-1 / variance, work)
    weight, step = (1 << work, 1 << work), q
    low, high = 1 << work, 1 << work  # w_0 + 2 (w_1 + ... + w_k)
    partial = [(low, high)]
    while True:
        weight = _product(weight, step, work)
        step = _product(step, square, work)
        low += 2 * weight[0]
        high += 2 * weight[1]
        partial.append((low, high))
        # Behind k, weights fall at least as fast as a geometric series with the ratio s_k.
        rest = 2 * -(-weight[1] * step[1] // ((1 << work) - step[1]))
        if rest * 2**bits < low:
            break
    total = (low, high + rest)
    return [
        ((a << bits) // total[1], min(-(-(b << bits) // total[0]), 1 << bits)) for a, b in partial
    ]


def _product(a: Bounds, b: Bounds, bits: int) -> Bounds:
    return (a[0] * b[0]) >> bits, -((-a[1] * b[1]) >> bits)
