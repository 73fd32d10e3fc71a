"""Groups against the worst chain of neighbours that is within a cost's curve, mixtures included.

The largest power g(a) of a test at level a tells a curve. Laws P_0, P_1, ... on [0, 1] with
P_0 uniform and P_(j+1)([0, a]) = g(P_j([0, a])) are a chain of which every link is as far apart as
the curve allows. No single mechanism of the cost's kind need be behind it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from cumae.arrays import Floats
from cumae.privacy import (
    Approximate,
    BoundedRange,
    Cost,
    DiscreteGaussian,
    Gaussian,
    Pure,
    group,
)
from tests.divergence import EPSILONS, Law, assert_covers, divergence, product_pair, response

Power = Callable[[Floats], Floats]
LEVELS = np.concatenate([[0.0], np.geomspace(1e-9, 0.4, 400), 1 - np.geomspace(0.4, 1e-9, 400)])
LEVELS = np.unique(np.append(LEVELS, 1.0))


def _pure(eps: float, failure: float = 0.0) -> Power:
    def power(a: Floats) -> Floats:
        low = failure + math.exp(eps) * a
        high = 1 - math.exp(-eps) * (1 - failure - a)
        return np.minimum(np.minimum(low, high), 1.0)

    return power


def _bounded(eps: float) -> Power:
    w = math.exp(eps)
    return lambda a: w * a / (1 + (w - 1) * a)  # the odds times exp(eps)


def _gaussian(mu: float) -> Power:
    return lambda a: stats.norm.cdf(stats.norm.ppf(a) + mu)


def _discrete(scale: float, shift: int) -> Power:
    x = np.arange(-200, 201)
    weights = np.exp(-(x**2) / (2 * scale**2))
    tail = np.append(np.cumsum(weights[::-1] / weights.sum())[::-1], 0.0)  # P(noise >= x)
    moved = np.concatenate([np.ones(shift), tail])[: len(tail)]
    return lambda a: np.interp(a, tail[::-1], moved[::-1])


def _response(eps: float, count: int) -> Power:
    """Return the power for several randomized responses: its corners are sums of atoms."""
    p, q = product_pair([(response(eps), response(eps)[::-1])] * count)
    order = np.argsort(q / p, kind="stable")
    levels, powers = (np.append(0.0, np.cumsum(side[order])) for side in (q, p))
    return lambda a: np.interp(a, levels, powers)


def _chain(power: Power, size: int) -> list[Law]:
    """Return the masses of P_0, ..., P_size: of a point at 0, and between the levels."""
    cumulated, laws = LEVELS, []
    for _ in range(size + 1):
        laws.append(np.diff(cumulated, prepend=0.0))
        cumulated = np.minimum(power(cumulated), 1.0)
    return laws


CHAINS: dict[str, tuple[Cost, Power]] = {
    "pure": (Pure(0.7), _pure(0.7)),
    "approximate": (Approximate(0.4, 1e-3), _pure(0.4, 1e-3)),
    "bounded range": (BoundedRange(0.9), _bounded(0.9)),
    "gaussian": (Gaussian(2.0), _gaussian(0.5)),
    "discrete gaussian": (DiscreteGaussian(1.3, 2), _discrete(1.3, 2)),
    "narrow discrete gaussian": (DiscreteGaussian(0.6), _discrete(0.6, 1)),
}


@pytest.mark.claim("GROUP")
@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_groups_cover_every_chain_within_the_curve(name: str, size: int) -> None:
    cost, power = CHAINS[name]
    laws = _chain(power, size)
    for link in zip(laws[1:], laws, strict=False):
        for epsilon in EPSILONS:  # the oracle itself: links are neighbours
            assert divergence([link], epsilon) <= cost.delta(epsilon) + 1e-8
    grouped = group(cost, size)
    for epsilon in EPSILONS:
        exact = divergence([(laws[-1], laws[0])], epsilon)
        assert exact <= grouped.delta(epsilon) + 1e-8
    if not isinstance(cost, Approximate | Pure):  # and no smaller cost would do
        assert divergence([(laws[-1], laws[0])], 0.4) >= grouped.delta(0.4) - 0.02


@pytest.mark.claim("GROUP")
def test_mixtures_of_draws_are_no_draw_but_their_groups_are_covered() -> None:
    """With the coin public each pair has bounded range 1; without it, the range is larger."""
    eps, sides = 1.0, (0.1, 0.9)

    def law(rows: int) -> Law:
        drawn = [np.exp(-eps / 2 * rows * np.array([side, 1 - side, 0.5])) for side in sides]
        return np.asarray(sum(0.5 * weights / weights.sum() for weights in drawn))

    for size in (1, 2, 4):
        assert_covers(group(BoundedRange(eps), size), [(law(0), law(size)), (law(size), law(0))])


@pytest.mark.claim("GROUP")
def test_a_curve_of_a_composition_is_not_enough_to_group_its_parts() -> None:
    """Why the parts of a composition must be uses: a chain within the curve alone goes further."""
    cost = Pure(1.0) * 2
    laws = _chain(_response(1.0, 2), 2)
    for link in zip(laws[1:], laws, strict=False):
        for epsilon in EPSILONS:
            assert divergence([link], epsilon) <= cost.delta(epsilon) + 1e-8
    assert divergence([(laws[2], laws[0])], 0.0) > group(cost, 2).delta(0.0) + 0.05
