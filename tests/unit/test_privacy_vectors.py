"""Integer vectors with discrete Gaussian noise: the bound against exact sums."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from cumae.errors import InvalidParameter
from cumae.privacy import DiscreteGaussianVectors, Gaussian
from cumae.privacy.discrete_gaussian import FAR_OUT

Floats = NDArray[np.float64]


def law(scale: float) -> tuple[NDArray[np.int64], Floats]:
    """Integers within 14 scales and their chances, which is all but 1e-40."""
    k = np.arange(-math.ceil(14 * scale), math.ceil(14 * scale) + 1)
    weights = np.exp(-(k**2) / (2 * scale**2))
    return k, weights / weights.sum()


def exact_delta(scale: float, shift: tuple[int, ...], epsilon: float) -> float:
    """Sum of (P - exp(epsilon) P')+ over all outcomes, for a shift of one or two places."""
    _, chances = law(scale)
    pad = max(shift)
    whole = np.pad(chances, pad)
    first, second = whole, [np.roll(whole, step) for step in shift]
    if len(shift) == 1:
        return float(np.maximum(first - math.exp(epsilon) * second[0], 0).sum())
    both, moved = np.outer(first, first), np.outer(*second)
    return float(np.maximum(both - math.exp(epsilon) * moved, 0).sum())


@pytest.mark.claim("VECTOR")
@pytest.mark.parametrize("scale", [1.0, 2.5, 10.0])
def test_rounded_and_discrete_noise_are_as_close_as_the_proof_says(scale: float) -> None:
    with mpmath.workdps(60):
        s = mpmath.mpf(scale)
        norm = mpmath.nsum(lambda j: mpmath.exp(-(j**2) / (2 * s**2)), [-mpmath.inf, mpmath.inf])
        bound = (2 + FAR_OUT**2) / (8 * scale**2)
        for k in range(0, math.floor(FAR_OUT * scale) + 1, max(1, int(scale))):
            discrete = mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * s**2)) / norm
            upper, lower = (k + 0.5) / s, (k - 0.5) / s
            rounded = (
                mpmath.erfc(lower / mpmath.sqrt(2)) - mpmath.erfc(upper / mpmath.sqrt(2))
            ) / 2
            assert abs(mpmath.log(rounded / discrete)) <= bound


@pytest.mark.claim("VECTOR")
@pytest.mark.parametrize("scale", [5.0, 20.0, 60.0])
@pytest.mark.parametrize("shift", [(1,), (3,), (9,), (1, 1), (3, 4), (2, 9)])
def test_the_curve_is_above_the_exact_one(scale: float, shift: tuple[int, ...]) -> None:
    length = math.hypot(*shift)
    cost = DiscreteGaussianVectors(length / scale, len(shift), scale)
    for epsilon in (0.5, 1.0, 2.0, 3.0):
        exact = exact_delta(scale, shift, epsilon)
        assert cost.delta(epsilon) >= exact * (1 - 1e-9) - 1e-40  # what the law leaves out


@pytest.mark.claim("VECTOR")
def test_real_noise_alone_would_promise_too_much() -> None:
    """What the factor and the shift are for: for small scales the real curve is too low."""
    scale, shift = 1.0, (1,)
    found = [
        exact_delta(scale, shift, epsilon) > Gaussian(1.0, 1.0).delta(epsilon)
        for epsilon in np.linspace(0.1, 4.0, 40)
    ]
    assert any(found)


@pytest.mark.claim("VECTOR")
def test_for_large_scales_it_is_the_real_curve() -> None:
    for mu in (0.05, 0.24, 1.0, 3.0):
        cost = DiscreteGaussianVectors(mu, 5_000, 1e7)
        assert cost.epsilon(1e-6) == pytest.approx(Gaussian(1.0, mu).epsilon(1e-6), rel=1e-5)
        assert cost.epsilon(1e-6) >= Gaussian(1.0, mu).epsilon(1e-6) * (1 - 1e-9)
        assert cost.zcdp is not None
        assert cost.zcdp[0] == pytest.approx(mu**2 / 2)


@pytest.mark.claim("VECTOR")
def test_more_places_smaller_scales_and_larger_mu_cost_more() -> None:
    def epsilon(mu: float = 0.3, places: int = 100, scale: float = 50.0) -> float:
        return DiscreteGaussianVectors(mu, places, scale).epsilon(1e-6)

    assert epsilon() < epsilon(mu=0.31)
    assert epsilon() <= epsilon(places=200)
    assert epsilon(scale=100.0) <= epsilon()


def test_edges() -> None:
    with pytest.raises(InvalidParameter, match="below 1"):
        DiscreteGaussianVectors(1.0, 1, 0.5)
    assert DiscreteGaussianVectors(0.0, 1, 1e9).epsilon(1e-6) == 0.0
    assert DiscreteGaussianVectors(1e9, 1, 1e9).delta(1.0) == 1.0
    # Too little noise for the comparison: zCDP still holds, and is what counts.
    tight = DiscreteGaussianVectors(0.1, 10_000, 1.0)
    assert 0 < tight.epsilon(1e-6) < 1
