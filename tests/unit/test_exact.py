"""Certified exponentials against mpmath."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cumae.exact import exp_bounds, gaussian_bounds

pytestmark = pytest.mark.claim("EXACT")

negative = st.fractions(min_value=-300, max_value=0, max_denominator=10**12)


@given(negative, st.integers(0, 300))
def test_bounds_enclose_the_exponential_and_are_tight(x: Fraction, bits: int) -> None:
    low, high = exp_bounds(x, bits)
    with mpmath.workdps(400):
        true = mpmath.ldexp(mpmath.exp(mpmath.mpf(x.numerator) / x.denominator), bits)
        assert low <= true <= high
    assert high - low <= 2


def test_zero_is_exact() -> None:
    assert exp_bounds(Fraction(0), 70) == (1 << 70, 1 << 70)


def test_the_tiny_end_is_below_one_unit() -> None:
    assert exp_bounds(Fraction(-(10**9)), 64) == (0, 1)


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(1, 3), 1, Fraction(7, 2), 40])
def test_gaussian_bounds_enclose_the_distribution_function(scale: Fraction) -> None:
    variance, bits = Fraction(scale) ** 2, 150
    bounds = gaussian_bounds(variance, bits)
    with mpmath.workdps(120):
        weights = [
            mpmath.exp(-mpmath.mpf(k * k) * variance.denominator / (2 * variance.numerator))
            for k in range(len(bounds) + 1200)
        ]
        total = weights[0] + 2 * mpmath.fsum(weights[1:])
        partial = weights[0]
        for k, (low, high) in enumerate(bounds):
            partial += 2 * weights[k] if k else 0
            assert low <= mpmath.ldexp(partial / total, bits) <= high
            assert high - low <= 2
        assert mpmath.ldexp(1 - partial / total, bits) < 1


@pytest.mark.claim("RAND")
def test_float_exp_and_log_are_as_accurate_as_the_samplers_assume() -> None:
    """RAND assumes a relative error of 2^-44; the margins take 64 times that."""
    generator = np.random.default_rng(5)
    x = np.concatenate([-generator.exponential(s, 500) for s in (1e-6, 1e-2, 1.0, 50.0)])
    u = generator.random(500) ** 3
    for value, found in zip(x, np.exp(x), strict=True):
        assert abs(mpmath.mpf(float(found)) / mpmath.exp(float(value)) - 1) < 2.0**-44
    for value, found in zip(u, np.log(u), strict=True):
        assert abs(mpmath.mpf(float(found)) / mpmath.log(float(value)) - 1) < 2.0**-44
