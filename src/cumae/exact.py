"""Certified bounds and tables that samplers compare random bits with; nothing is drawn here.

Floating point decides almost every comparison; what it leaves open is decided here, in integers of
any precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers, Words
from cumae.claims import claim
from cumae.compiling import announce
from cumae.remembering import remembered

announce()  # here, because everything that compiles imports this module

Bounds: TypeAlias = tuple[int, int]

GUIDE_BITS = 14
# Float arithmetic, exp and log are right to 2^-50 or so; the margins take them for 2^-38.
MARGIN = 2.0**-38
LOWEST = -800.0  # exp of less is 0 for a float


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


@claim("RAND")
def scaled_exp_bounds(exponent: Fraction, factor: Fraction) -> Callable[[int], Bounds]:
    """Return a function from ``bits`` to bounds on 2^bits factor exp(exponent)."""

    def bounds(bits: int) -> Bounds:
        extra = max(0, factor.numerator.bit_length() - factor.denominator.bit_length() + 8)
        low, high = exp_bounds(exponent, bits + extra)
        scale = factor / (1 << extra)
        return math.floor(low * scale), math.ceil(high * scale)

    return bounds


@remembered(32)
@claim("RAND")
def gaussian_table(scale: Fraction) -> tuple[Words, NDArray[np.int32]]:
    """Return floors of 2^63 P(|X| <= k), and where to start looking for given top bits."""
    top, extra = (1 << 63) - 1, 32
    while True:
        bounds = gaussian_bounds(scale**2, 63 + extra)
        floors = [(low >> extra, min(high >> extra, top)) for low, high in bounds]
        if all(low == high for low, high in floors):
            break
        extra *= 2
    thresholds = np.array([low for low, _ in floors], dtype=np.uint64)
    thresholds = thresholds[: int(np.searchsorted(thresholds, np.uint64(top))) + 1]
    starts = np.arange(1 << GUIDE_BITS, dtype=np.uint64) << np.uint64(63 - GUIDE_BITS)
    return thresholds, np.searchsorted(thresholds, starts).astype(np.int32)


@claim("RAND")
def look_up(words: Words, thresholds: Words, guide: NDArray[np.int32], drawn: Integers) -> Integers:
    """Fill ``drawn``; return the places where the bits equal a floor and decide nothing."""
    if _search(words, thresholds, guide, drawn) == 0:
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(thresholds[np.abs(drawn)] == words >> np.uint64(1))


# Kernels are loops over arrays that numpy made before, because this compiles quickly.


@numba.njit(cache=True, nogil=True)
@claim("RAND")
def _search(words: Words, thresholds: Words, guide: NDArray[np.int32], drawn: Integers) -> int:
    """Fill ``drawn``; return at how many places the bits equal a floor and decide nothing."""
    unsure = 0
    for i in range(len(words)):
        top = words[i] >> np.uint64(1)
        k = guide[top >> np.uint64(63 - GUIDE_BITS)]
        while thresholds[k] < top:
            k += 1
        drawn[i] = -k if words[i] & np.uint64(1) else k
        unsure += thresholds[k] == top
    return unsure


@claim("RAND")
def proposals(behind: Floats, often: Floats, rate: float) -> tuple[Floats, Integers, Integers, int]:
    """Return the logarithms rate * behind, the raised weights, their sums, and their scale."""
    logs, rough = np.empty((2, len(behind)))
    proposal, upto = np.empty((2, len(behind)), dtype=np.int64)
    return logs, proposal, upto, _propose(behind, often, rate, logs, rough, proposal, upto)


@numba.njit(cache=True, nogil=True)
@claim("RAND")
def _propose(
    behind: Floats,
    often: Floats,
    rate: float,
    logs: Floats,
    rough: Floats,
    proposal: Integers,
    upto: Integers,
) -> int:  # one pass: numpy's calls took most of a short draw
    """Fill the logarithms, the weights, the raised weights and their sums; return their scale."""
    largest = 0.0
    for i in range(len(behind)):
        # What is never drawn gets no weight, whatever its score: it must not spoil the scale.
        drawn = often[i] > 0 and behind[i] > -np.inf
        # A product beyond floats is cut off, not taken for never: ``exact`` knows better.
        logs[i] = max(rate * behind[i], -1e300) if drawn else -np.inf
        rough[i] = often[i] * math.exp(logs[i])
        largest = max(largest, rough[i])
    bits = 0
    while len(behind) >> bits:
        bits += 1
    power = 60 - bits - math.frexp(largest)[1]
    total = 0
    for i in range(len(behind)):
        raised = math.ldexp(rough[i] * (1.0 + (1.0 - max(logs[i], LOWEST)) * MARGIN), power)
        proposal[i] = np.int64(math.floor(raised)) + 1 if often[i] > 0 else 0
        total += proposal[i]
        upto[i] = total
    return power


def last(holds: Callable[[int], bool]) -> int:
    """Return the largest k >= 0 for which ``holds(k)``, true for 0 and false from some k on."""
    low, high = 0, 1
    while holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
