"""Composition on a grid against exact convolutions, with dp-accounting as the judge."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import common, privacy_loss_distribution

from cumae.arrays import Floats
from cumae.privacy import DiscreteGaussian
from cumae.privacy.loss import TAIL, window

UNIT = 2**40  # masses are whole numbers of 2^-40, so that their products are exact
FACTORS = np.array([0.5, 0.8, 1.0, 1.3, 2.0])


def in_units(shares: list[float]) -> list[int]:
    """Return masses as whole numbers that add up to 2^40."""
    found = [int(share / sum(shares) * UNIT) for share in shares]
    found[0] += UNIT - sum(found)
    return found


GRIDS = {
    "coin": in_units([1.0, 1.0]),
    "rare": in_units([1.0, 0.0, 0.0, 0.0, 1e-6]),
    "skew": in_units([0.5**k for k in range(12)]),
    "bell": in_units([float(np.exp(-(k**2) / 8)) for k in range(-9, 10)]),
    "ends": in_units([1.0, *[0.0] * 28, 2.0]),
}


def deviation(masses: list[int]) -> float:
    places = np.arange(len(masses))
    mean = np.average(places, weights=masses)
    return max(float(np.sqrt(np.average((places - mean) ** 2, weights=masses))), 1.0)


def power(masses: list[int], count: int) -> list[int]:
    """Return the exact convolution: digits of a power of one number that holds all masses."""
    bits = 41 * count
    number = sum(mass << (bits * place) for place, mass in enumerate(masses))
    digits = number**count
    mask = (1 << bits) - 1
    return [(digits >> (bits * k)) & mask for k in range((len(masses) - 1) * count + 1)]


@pytest.mark.claim("COMP")
@pytest.mark.parametrize("count", [1, 7, 60])
@pytest.mark.parametrize("name", GRIDS)
def test_no_more_than_the_tail_lies_outside_the_window(name: str, count: int) -> None:
    masses = GRIDS[name]
    convolved = power(masses, count)
    assert sum(convolved) == UNIT**count
    first, last = window(np.array(masses) / UNIT, count, deviation(masses))
    outside = sum(convolved[:first]) + sum(convolved[last + 1 :])
    assert Fraction(outside, UNIT**count) <= Fraction(TAIL)


@pytest.mark.claim("COMP")
def test_the_window_is_not_the_whole_range() -> None:
    """A window that is a fifth shorter loses more than the tail."""
    convolved = power(GRIDS["bell"], 60)
    first, last = window(np.array(GRIDS["bell"]) / UNIT, 60, deviation(GRIDS["bell"]))
    assert 0 < first < last < len(convolved) - 1
    cut = (last - first) // 10
    outside = sum(convolved[: first + cut]) + sum(convolved[last - cut + 1 :])
    assert Fraction(outside, UNIT**60) > Fraction(TAIL)


@pytest.mark.claim("COMP")
@pytest.mark.parametrize("count", [1, 60, 10_000, 10_000_000])
@pytest.mark.parametrize("name", GRIDS)
def test_the_window_is_that_of_dp_accounting(name: str, count: int) -> None:
    """Ours adds what rounding may take, and so may be a few places wider, but never narrower."""
    grid: Floats = np.array(GRIDS[name]) / UNIT
    wide = deviation(GRIDS[name])
    orders = np.sqrt(-2 * np.log(TAIL / 2)) / (np.sqrt(count) * wide) * FACTORS
    low, high = common.compute_self_convolve_bounds(
        grid, count, TAIL, np.concatenate([-orders, orders])
    )
    first, last = window(grid, count, wide)
    room = 2 + 1e-4 * (high - low)
    assert low - room <= first <= low
    assert high <= last <= high + room


@pytest.mark.claim("COMP")
@pytest.mark.parametrize("count", [2, 300])
def test_composed_noise_costs_what_dp_accounting_says(count: int) -> None:
    sigma = 8.0 * count**0.5
    judge = privacy_loss_distribution.from_discrete_gaussian_mechanism(
        sigma, sensitivity=2, value_discretization_interval=1e-5
    ).self_compose(count)
    epsilons = np.array([0.1, 0.5, 1.0])
    ours = (DiscreteGaussian(sigma, 2) * count).deltas(epsilons)
    theirs = np.array([judge.get_delta_for_epsilon(epsilon) for epsilon in epsilons])
    assert (ours <= theirs + 1e-13).all()  # its losses are rounded up to its grid
    assert (ours >= theirs * 0.96).all()
