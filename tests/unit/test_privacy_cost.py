"""Costs against closed forms in high precision, brute force, and their own laws of composition."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import signal

from cumae import InvalidParameter, UnknownCost
from cumae.privacy import (
    ZCDP,
    Approximate,
    BoundedRange,
    Cost,
    DiscreteGaussian,
    Gaussian,
    Pure,
    bootstrap,
    compose,
    group,
    label_boost,
    or_fail,
    parallel,
    subsample,
)
from cumae.privacy.loss import Atoms
from tests.divergence import (
    EPSILONS,
    TOO_SMALL,
    Exact,
    Law,
    assert_covers,
    divergence,
    hockey_stick,
    pairs_of,
    product_pair,
    random_mechanism,
    response,
)

mpf = mpmath.mpf
PRECISE = mpmath.workdps(40)

LEAVES: dict[str, Cost] = {
    "pure": Pure(0.3),
    "bounded range": BoundedRange(0.7),
    "approximate": Approximate(0.2, 1e-7),
    "zcdp": ZCDP(0.02),
    "approximate zcdp": ZCDP(0.02, 1e-8),
    "gaussian": Gaussian(7.0),
    "discrete gaussian": DiscreteGaussian(6.0, 2),
}
BUILT: dict[str, Cost] = {
    "composed": Pure(0.1) * 2 + Gaussian(9.0),
    "subsampled": subsample(Gaussian(2.0), 0.05),
    "paper subsampled": subsample(Approximate(0.5, 1e-6), 0.05, variant="paper"),
    "label boosted": label_boost(Approximate(0.5, 1e-8), 0.3, "S"),
    "paper label boosted": label_boost(Approximate(0.5, 1e-8), 1.0, "S", variant="paper"),
    "bootstrapped": bootstrap(Pure(0.2), 50),
    "paper bootstrapped": bootstrap(Approximate(1.0, 1e-9), 50, variant="paper"),
    "grouped": group(Approximate(0.2, 1e-7), 3),
    "grouped zcdp": group(ZCDP(0.01), 2),
    "parallel": parallel(Pure(0.4), Gaussian(5.0)),
    "failing": or_fail(BoundedRange(0.5), 1e-7),
    "nested": subsample(or_fail(parallel(Pure(0.4), Gaussian(5.0)), 1e-8), 0.3),
}
COSTS = LEAVES | BUILT
every_cost = pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS.keys())


# --- closed forms in high precision


def response_delta(eps: float, failure: float, count: int, epsilon: float) -> Any:
    """Kairouz, Oh and Viswanath: a direct sum over the number of truthful answers."""
    with PRECISE:
        e, step = mpf(epsilon), mpf(eps)
        truth = 1 / (1 + mpmath.exp(-step))
        total, chance = mpf(0), truth**count
        for hits in range(count, count // 2, -1):
            loss = (2 * hits - count) * step
            if loss > e:
                total += chance * (1 - mpmath.exp(e - loss))
            chance *= mpf(hits) / (count - hits + 1) * (1 - truth) / truth
        kept = (1 - mpf(failure)) ** count
        return 1 - kept + kept * total


def gaussian_delta(mu: Any, epsilon: float) -> Any:
    """Balle and Wang's formula for the continuous Gaussian."""
    with PRECISE:
        mu, e = mpf(mu), mpf(epsilon)
        return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Solve the formula for epsilon."""
    low, high = 0.0, 100.0
    while high - low > 1e-10:
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_delta(mu, middle) <= delta else (middle, high)
    return high


def discrete_gaussian_delta(scale: float, shift: int, epsilon: float) -> Any:
    """Sum over the integers, far beyond what matters."""
    with PRECISE:
        s, u = mpf(scale), mpmath.exp(mpf(epsilon))
        reach = int(20 * scale) + 20

        def weight(x: int) -> Any:
            return mpmath.exp(-mpf(x * x) / (2 * s * s))

        total = mpmath.fsum(weight(x) for x in range(-reach, reach + 1))
        gain = (weight(x) - u * weight(x - shift) for x in range(-reach, reach + shift + 1))
        return mpmath.fsum(max(0, value) for value in gain) / total


def zcdp_delta(rho: float, xi: float, epsilon: float) -> Any:
    """Least bound over a fine grid of orders, then refined around the best."""
    with mpmath.workdps(25):
        r, e = mpf(rho), mpf(epsilon)

        def log_delta(t: Any) -> Any:
            a = 1 + mpmath.exp(t)
            return (a - 1) * (a * r - e) - t + a * mpmath.log(1 - 1 / a)

        best = min((t / mpf(2) for t in range(-40, 60)), key=log_delta)
        for width in (mpf(2) ** -k for k in range(2, 22)):
            best = min((best - width, best, best + width), key=log_delta)
        return min(mpf(1), xi + (1 - mpf(xi)) * mpmath.exp(log_delta(best)))


@pytest.mark.claim("PURE")
@pytest.mark.parametrize("eps", [1e-9, 0.01, 0.5, 1.0, 4.0, 30.0])
@pytest.mark.parametrize("failure", [0.0, 1e-9, 0.2])
def test_pure_and_approximate_are_randomized_response(eps: float, failure: float) -> None:
    cost = Approximate(eps, failure) if failure else Pure(eps)
    for share in (0.0, 0.3, 0.9, 0.999, 1.0, 1.5):
        exact = response_delta(eps, failure, 1, share * eps)
        assert exact - TOO_SMALL <= cost.delta(share * eps) <= exact * (1 + 1e-9) + TOO_SMALL


@pytest.mark.claim("PURE", "COMP")
@pytest.mark.parametrize(
    ("eps", "failure", "count"),
    [(0.1, 0.0, 3), (0.5, 0.0, 20), (3.0, 0.0, 7), (0.01, 0.0, 1000), (0.2, 1e-4, 25)],
)
def test_composed_randomized_response_is_the_binomial_sum(
    eps: float, failure: float, count: int
) -> None:
    cost = Approximate(eps, failure) * count
    for share in (0.0, 0.1, 0.3, 0.5, 0.8, 0.99):
        epsilon = share * min(eps * count, 7 * eps * math.sqrt(count))
        exact = response_delta(eps, failure, count, epsilon)
        assert exact - TOO_SMALL <= cost.delta(epsilon) <= exact * (1 + 1e-6) + 2e-11


@pytest.mark.claim("COMP")
@pytest.mark.parametrize("eps", [0.005, 0.005001])
def test_a_step_that_is_off_the_grid_costs_what_its_neighbour_costs(eps: float) -> None:
    """The grid trap of dp-accounting: 7.5 instead of 2.254 for 10,000 steps of 0.005001."""
    epsilon = (Pure(eps) * 10_000).epsilon(1e-6)
    assert epsilon == pytest.approx(2.254, abs=2e-3)
    assert response_delta(eps, 0.0, 10_000, epsilon) <= 1e-6
    assert response_delta(eps, 0.0, 10_000, 0.999 * epsilon) > 1e-6


@pytest.mark.claim("PURE")
@pytest.mark.parametrize("eps", [0.01, 0.5, 1.0, 4.0])
def test_bounded_range_is_the_worst_of_the_two_point_family(eps: float) -> None:
    cost = BoundedRange(eps)
    for epsilon in np.linspace(0.0, 1.1 * eps, 12):
        worst = max(
            hockey_stick(*two_points(eps, top), float(epsilon)) for top in np.linspace(0, eps, 4001)
        )
        assert worst - TOO_SMALL <= cost.delta(float(epsilon)) <= worst * (1 + 1e-4) + 1e-12


def two_points(width: float, top: float) -> tuple[Law, Law]:
    """Return the pair whose loss is ``top`` or ``top - width``."""
    chance = math.exp(top - width) * math.expm1(width - top) / -math.expm1(-width)
    chance *= math.exp(-top)  # now (exp(width) - exp(top)) / (exp(width) - 1) over exp(top): Q's
    q = np.array([chance, 1.0 - chance])
    return q * np.exp([top, top - width]), q


@pytest.mark.claim("PURE")
@pytest.mark.parametrize("eps", [0.1, 1.0, 3.0])
def test_rho_of_pure_and_bounded_range_bounds_every_renyi_divergence(eps: float) -> None:
    """The orders are swept for the two-point family, which is extreme for both."""
    for cost, pairs in [
        (Pure(eps), [(response(eps), response(eps)[::-1])]),
        (BoundedRange(eps), [two_points(eps, top) for top in np.linspace(0.01, 0.99, 50) * eps]),
    ]:
        assert cost.zcdp is not None
        for p, q in pairs:
            for order in (1.001, 1.1, 1.5, 2.0, 4.0, 16.0, 100.0):
                moment = math.log(math.fsum(q * (p / q) ** order)) / (order - 1)
                assert moment <= cost.zcdp[0] * order + 1e-12


@pytest.mark.claim("NOISE")
@pytest.mark.parametrize("scale", [1e6, 1e3, 100.0, 10.0, 1.0, 0.3, 0.1])
def test_gaussian_is_the_closed_form(scale: float) -> None:
    mu = Gaussian(scale).mu
    for epsilon in (0.0, 1e-6, 1e-3, 0.1, 1.0, 3.0, 10.0, 100.0):
        exact = gaussian_delta(mu, epsilon)
        found = Gaussian(scale).delta(epsilon)
        assert found >= exact * (1 - mpf(10) ** -13) - mpf(10) ** -300
        # Where both terms nearly cancel, the safe side may cost some digits.
        larger = float(mpmath.ncdf(mu / 2 - epsilon / mu))
        assert found <= exact * (1 + 1e-6) + 1e-12 * larger + 1e-300 + 1e-300


@pytest.mark.claim("NOISE")
@pytest.mark.parametrize(("scale", "sensitivity"), [(3.0, 1.0), (0.5, 2.0), (600.0, 1.0)])
def test_composed_gaussians_are_one_gaussian(scale: float, sensitivity: float) -> None:
    composed = Gaussian(scale, sensitivity) * 9 + Gaussian(2 * scale, 2 * sensitivity) * 7
    mu = 4 * sensitivity / scale
    for share in (0.0, 0.5, 2.0, 4.0):
        exact = gaussian_delta(mu, share * mu)
        assert exact * (1 - 1e-12) <= composed.delta(share * mu) <= exact * (1 + 1e-6)


@pytest.mark.claim("NOISE")
@pytest.mark.parametrize(
    ("scale", "shift"), [(0.1, 1), (0.3, 1), (1.0, 1), (1.0, 3), (10.0, 1), (60.0, 2)]
)
def test_discrete_gaussian_is_the_sum_over_the_integers(scale: float, shift: int) -> None:
    rho = shift**2 / (2 * scale**2)
    for share in (0.0, 0.01, 0.5, 0.9, 1.0, 1.1, 3.0):
        epsilon = share * (rho + math.sqrt(2 * rho))
        exact = discrete_gaussian_delta(scale, shift, epsilon)
        found = DiscreteGaussian(scale, shift).delta(epsilon)
        assert exact - TOO_SMALL <= found <= exact * (1 + 1e-9) + 1e-12


@pytest.mark.claim("NOISE")
def test_discrete_gaussian_with_many_atoms_is_summed_safely() -> None:
    """7 million atoms: sums must not lose more than the slack covers."""
    scale = 3e5
    weights = [math.exp(-((x / scale) ** 2) / 2) for x in range(int(12 * scale))]
    total = 2 * math.fsum(weights) - 1
    for first in (0, 90_000, 450_000):  # epsilon at which noise below -first still gains
        epsilon = (0.5 + first) / scale**2
        exact = (
            math.fsum(weights[first:]) - math.exp(epsilon) * math.fsum(weights[first + 1 :])
        ) / total
        found = DiscreteGaussian(scale).delta(epsilon)
        assert exact - TOO_SMALL <= found <= exact * (1 + 1e-6) + 2e-9


@pytest.mark.claim("NOISE")
@pytest.mark.parametrize("scale", [0.4, 1.0, 2.5])
def test_a_larger_shift_costs_more(scale: float) -> None:
    """A sensitivity is a bound: whoever moves less must be covered."""
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 11.0):
        deltas = [DiscreteGaussian(scale, shift).delta(epsilon) for shift in range(6)]
        assert deltas == sorted(deltas)


@pytest.mark.claim("NOISE", "COMP")
def test_twenty_thousand_discrete_gaussian_releases() -> None:
    epsilon = (DiscreteGaussian(600) * 20_000).epsilon(1e-6)
    assert 0.995 < epsilon < 1.02
    continuous = gaussian_epsilon(math.sqrt(20_000) / 600, 1e-6)
    assert continuous - 1e-6 <= epsilon <= 1.002 * continuous
    assert (Gaussian(600) * 20_000).epsilon(1e-6) == pytest.approx(continuous, rel=1e-6)


@pytest.mark.claim("NOISE", "COMP")
@pytest.mark.parametrize(("scale", "count"), [(0.5, 3), (2.0, 30), (50.0, 1000), (1e5, 50)])
def test_composed_discrete_gaussian_follows_the_continuous_one(scale: float, count: int) -> None:
    """Both have the same rho; from moderate scales on they are almost the same."""
    found = (DiscreteGaussian(scale) * count).epsilon(1e-5)
    assert found <= ZCDP(count / (2 * scale**2)).epsilon(1e-5) * (1 + 1e-9)
    if scale >= 2:
        assert found == pytest.approx(gaussian_epsilon(math.sqrt(count) / scale, 1e-5), rel=0.01)


@pytest.mark.claim("ZCDP")
@pytest.mark.parametrize("rho", [1e-6, 1e-4, 0.01, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("xi", [0.0, 1e-7])
def test_zcdp_conversion_is_the_infimum_over_orders(rho: float, xi: float) -> None:
    for share in (0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 5.0):
        epsilon = share * (rho + 2 * math.sqrt(rho))
        exact = zcdp_delta(rho, xi, epsilon)
        found = ZCDP(rho, xi).delta(epsilon)
        assert exact * (1 - mpf(10) ** -11) <= found
        assert found <= exact * (1 + mpf(10) ** -3), (epsilon, float(exact))


@pytest.mark.claim("ZCDP")
@pytest.mark.parametrize("rho", [0.001, 0.1, 2.0])
def test_zcdp_covers_the_gaussian(rho: float) -> None:
    for share in (0.0, 0.3, 1.0, 3.0, 5.0):
        epsilon = rho + share * math.sqrt(2 * rho)
        assert ZCDP(rho).delta(epsilon) >= gaussian_delta(math.sqrt(2 * rho), epsilon)


# --- composition against brute force

TIGHT: dict[str, tuple[Cost, tuple[Law, Law]]] = {
    # each cost with a pair of laws that attains it
    "pure": (Pure(0.6), (response(0.6), response(0.6)[::-1])),
    "small pure": (Pure(0.05), (response(0.05), response(0.05)[::-1])),
    "approximate": (
        Approximate(0.4, 0.01),
        (
            np.append(0.99 * response(0.4), [0.01, 0.0]),
            np.append(0.99 * response(0.4)[::-1], [0.0, 0.01]),
        ),
    ),
    "failing": (
        or_fail(Pure(0.3), 1e-3),
        (
            np.append(0.999 * response(0.3), [1e-3, 0.0]),
            np.append(0.999 * response(0.3)[::-1], [0.0, 1e-3]),
        ),
    ),
}


def discrete_gaussian_pair(scale: float, shift: int) -> tuple[Law, Law]:
    """Return the two laws on a window that holds all but 1e-20 of the mass."""
    x = np.arange(-math.ceil(9.7 * scale) - 2, math.ceil(9.7 * scale) + 3 + shift)
    p, q = (np.exp(-((x - s) ** 2) / (2 * scale**2)) for s in (0, shift))
    total = math.fsum(p)
    return p / total, q / total


TIGHT["discrete gaussian"] = (DiscreteGaussian(0.9), discrete_gaussian_pair(0.9, 1))
TIGHT["wide discrete gaussian"] = (DiscreteGaussian(2.0, 3), discrete_gaussian_pair(2.0, 3))

LOOSE: dict[str, tuple[Cost, tuple[Law, Law]]] = {
    # each cost with a pair of laws that stays below it
    "bounded range": (BoundedRange(0.8), two_points(0.8, 0.4)),
    "lopsided bounded range": (BoundedRange(0.8), two_points(0.8, 0.65)),
    "zcdp": (ZCDP(0.125), discrete_gaussian_pair(2.0, 1)),
    "gaussian": (Gaussian(0.9), discrete_gaussian_pair(0.9, 1)),
    "subsampled": (
        subsample(Pure(1.5), 0.25),
        (0.25 * response(1.5) + 0.75 * response(1.5)[::-1], response(1.5)[::-1]),
    ),
    "subsampled, reversed": (
        subsample(Pure(1.5), 0.25),
        (response(1.5)[::-1], 0.25 * response(1.5) + 0.75 * response(1.5)[::-1]),
    ),
    "parallel": (parallel(Pure(0.2), Pure(0.6)), (response(0.6), response(0.6)[::-1])),
    "grouped": (group(Pure(0.2), 3), (response(0.6), response(0.6)[::-1])),
}
# A continuous Gaussian is no finite law; the discrete one at the same scale costs a little more or
# less. Merged bins of the continuous one are a post-processing of it, so they are covered.
_edges = np.arange(-9.0, 10.05, 0.5)


def _binned(shift: float) -> Law:
    inner = [float(mpmath.ncdf((edge - shift) / 0.9)) for edge in _edges]
    return np.diff([0.0, *inner, 1.0])


LOOSE["gaussian"] = (Gaussian(0.9), (_binned(0.0), _binned(1.0)))
PAIRS = TIGHT | LOOSE

MIXES = [
    ["pure", "bounded range"],
    ["pure", "pure", "small pure"],
    ["pure", "approximate", "failing"],
    ["bounded range", "bounded range", "lopsided bounded range", "approximate"],
    ["zcdp", "pure"],
    ["zcdp", "zcdp", "gaussian"],
    ["gaussian", "pure", "pure", "bounded range"],
    ["gaussian", "gaussian", "approximate"],
    ["discrete gaussian", "discrete gaussian", "pure"],
    ["discrete gaussian", "wide discrete gaussian", "approximate", "small pure"],
    ["subsampled", "subsampled", "subsampled", "subsampled", "pure"],
    ["subsampled", "subsampled, reversed", "subsampled", "discrete gaussian"],
    ["subsampled, reversed"] * 6,
    ["parallel", "grouped", "failing", "subsampled"],
    ["zcdp", "gaussian", "discrete gaussian", "bounded range"],
]


@pytest.mark.claim("COMP")
@pytest.mark.parametrize("names", MIXES, ids=" + ".join)
def test_compositions_cover_the_product_of_the_laws(names: list[str]) -> None:
    cost = compose([(PAIRS[name][0], 1) for name in names])
    assert_covers(cost, [product_pair(PAIRS[name][1] for name in names)])


@pytest.mark.claim("COMP")
@pytest.mark.parametrize(
    "names",
    [
        ["pure", "pure", "small pure"],
        ["pure", "approximate", "failing"],
        ["discrete gaussian"] * 3,
        ["discrete gaussian", "wide discrete gaussian", "small pure"],
        ["pure"] * 4 + ["small pure"] * 6,
        ["failing", "failing", "discrete gaussian"],
    ],
    ids=" + ".join,
)
@pytest.mark.parametrize("target", [0.3, 0.05, 2e-2])
def test_compositions_of_tight_costs_are_tight(names: list[str], target: float) -> None:
    cost = compose([(TIGHT[name][0], 1) for name in names])
    pair = product_pair(TIGHT[name][1] for name in names)
    low, high = 0.0, 30.0
    while high - low > 1e-7:
        middle = (low + high) / 2
        low, high = (low, middle) if divergence([pair], middle) <= target else (middle, high)
    assert low - 1e-6 <= cost.epsilon(target) <= 1.05 * high


@pytest.mark.claim("COMP")
@pytest.mark.parametrize("seed", range(6))
def test_adaptive_composition_of_explicit_mechanisms_is_covered(seed: int) -> None:
    """The second mechanism is another one for each outcome of the first."""
    first = random_mechanism(seed, zeros=seed % 2 == 1)
    seconds = [random_mechanism(10 * seed + i + 100, 4, zeros=seed % 3 == 1) for i in range(3)]

    def both(rows: tuple[Any, ...]) -> Law:
        return np.concatenate(
            [p * second(rows) for p, second in zip(first(rows), seconds, strict=True)]
        )

    worst_second = Exact(tuple(p for second in seconds for p in pairs_of(second, (0, 1), 3)))
    cost = Exact(pairs_of(first, (0, 1), 3)) + worst_second
    assert_covers(cost, pairs_of(both, (0, 1), 3))


# --- counts


@pytest.mark.claim("COMP")
@every_cost
@pytest.mark.parametrize("count", [4])
def test_composing_in_one_call_is_composing_one_by_one(cost: Cost, count: int) -> None:
    at_once, one_by_one = cost * count, reduce(add, [cost] * count)
    nested = (cost * (count - 1)) + cost
    listed = compose([(cost, 1)] * count)
    for epsilon in (0.0, 0.2, 1.0, 3.5):
        delta = at_once.delta(epsilon)
        assert delta == one_by_one.delta(epsilon) == nested.delta(epsilon) == listed.delta(epsilon)
    assert at_once == one_by_one == nested == listed == count * cost


@pytest.mark.claim("COMP")
@every_cost
def test_counts_multiply(cost: Cost) -> None:
    assert (cost * 2) * 3 == cost * 6
    assert (cost * 2) * 0 == Pure(0.0)
    assert cost * 1 == cost
    two: Any = np.int64(2)
    assert two * cost == cost * two == cost + cost


def by_convolving(
    atoms: Atoms, count: int, step: float, rounding: Callable[[Law], Law]
) -> Callable[[float], float]:
    """Convolve the losses on a plain grid, one at a time; the rounding decides on which side."""
    places = rounding(atoms.losses / step).astype(int)
    one = np.zeros(np.ptp(places) + 1)
    np.add.at(one, places - places.min(), atoms.masses)
    law = np.ones(1)
    for _ in range(count):
        law = np.maximum(signal.fftconvolve(law, one), 0.0)
    losses = (np.arange(len(law)) + count * places.min()) * step
    failure = 1 - (1 - atoms.infinite) ** count
    return lambda epsilon: (
        failure + float(law @ np.maximum(0.0, -np.expm1(np.minimum(epsilon - losses, 0))))
    )


@pytest.mark.claim("COMP")
@pytest.mark.parametrize(
    ("cost", "step"),
    [
        (Pure(0.3), 1e-3),
        (Approximate(0.3, 1e-4), 1e-3),
        (BoundedRange(0.7), 1e-3),
        (DiscreteGaussian(2.0), 2e-3),
        (subsample(Pure(1.0), 0.2), 5e-4),
        (subsample(Gaussian(1.0), 0.1), 2e-3),
        (or_fail(BoundedRange(0.5), 1e-4), 1e-3),
        (bootstrap(Pure(0.2), 50), 1e-3),
        (parallel(BoundedRange(0.5), Pure(0.3)), 1e-3),
    ],
    ids=repr,
)
def test_a_power_is_a_loop_of_convolutions(cost: Cost, step: float) -> None:
    """The count must reach the grid: rounding all losses down, and up, brackets the result."""
    count = 6
    below = by_convolving(cost.atoms, count, step, np.floor)
    above = by_convolving(cost.atoms, count, step, np.ceil)
    composed = cost * count
    for epsilon in (0.0, 0.1, 0.3, 0.6):
        assert composed.delta(epsilon) <= above(epsilon) * (1 + 1e-3) + 1e-10
        # Its other bounds may be better, but not near epsilon 0.
        assert composed.delta(epsilon) >= below(epsilon) * (1 - 1e-3) or epsilon > 0.3
    assert above(0.0) - below(0.0) < 0.05 * above(0.0)  # else this would test nothing


@pytest.mark.claim("COMP", "SUB")
@pytest.mark.parametrize("rate", [0.5, 0.01])
def test_a_pure_part_shifts_only_what_lies_beyond_it(rate: float) -> None:
    """Below the shift there is nothing to read: a curve at a negative epsilon makes no sense."""
    others = subsample(Gaussian(1.0), rate)
    both = others + Pure(1.0)
    for epsilon in (0.0, 0.5, 1.0):
        assert Pure(1.0).delta(epsilon) <= both.delta(epsilon) <= 1.0
    for epsilon in (1.0, 1.5, 4.0):
        assert both.delta(epsilon) <= others.delta(epsilon - 1.0) * (1 + 1e-9)


@pytest.mark.claim("COMP", "GROUP")
def test_a_grouped_cost_composes_as_well_as_what_it_implies() -> None:
    """Groups of two of a (0.1, 1e-5) mechanism are at least a (0.2, (1 + exp(0.1)) 1e-5) one."""
    implied = Approximate(0.2, (1 + math.exp(0.1)) * 1e-5)
    grouped = group(Approximate(0.1, 1e-5), 2)
    for count in (6, 50):
        assert (grouped * count).epsilon(0.01) <= 1.05 * (implied * count).epsilon(0.01)


@pytest.mark.claim("COMP")
def test_many_uses_of_a_cost_without_a_closed_form_follow_the_central_limit() -> None:
    """With mean m and variance v a step, epsilon is near n m + z sqrt(n v); a lost count shows."""
    cost = subsample(Pure(1.0), 0.02)
    one, many = cost.epsilon(1e-6), (cost * 10_000).epsilon(1e-6)
    assert 10 * one < many < 10_000 * one / 5


@pytest.mark.claim("COMP")
def test_the_least_bound_wins_at_both_ends() -> None:
    """Pure parts add up at delta 0; a pure part shifts the curve of a Gaussian at worst."""
    assert (Pure(0.5) + BoundedRange(0.25)).epsilon(0.0) == 0.75
    assert (Pure(0.5) * 4).epsilon(0.0) == 2.0
    both = Pure(0.5) + Gaussian(4.0)
    for epsilon in (0.5, 0.8, 2.0):
        assert both.delta(epsilon) <= Gaussian(4.0).delta(epsilon - 0.5) * (1 + 1e-9)


@pytest.mark.claim("COMP")
def test_a_sum_of_pure_costs_is_never_rounded_below_the_exact_sum() -> None:
    for eps, count in [(0.1, 3), (0.1, 7), (0.7, 3), (1e-3, 999), (0.3, 11)]:
        for cost in (Pure(eps) * count, group(Pure(eps), count)):
            assert Fraction(cost.epsilon(0.0)) >= Fraction(eps) * count, cost


def test_equal_costs_are_equal_and_order_does_not_matter() -> None:
    assert Pure(1.0) + Gaussian(2.0) == Gaussian(2.0) + Pure(1.0)
    assert hash(Pure(1.0) + Gaussian(2.0)) == hash(Gaussian(2.0) + Pure(1.0))
    assert len({Pure(1.0), BoundedRange(1.0), Approximate(1.0, 0.0)}) == 3
    assert compose([]) == Pure(0.0)


# --- curves


GRID = [0.0, *np.geomspace(1e-3, 12.0, 25), 50.0, 300.0, 700.0, 1e4, math.inf]


@every_cost
@pytest.mark.parametrize("count", [1, 3])
def test_delta_never_rises_and_is_a_probability(cost: Cost, count: int) -> None:
    deltas = [(cost * count).delta(epsilon) for epsilon in GRID]
    assert all(0 <= delta <= 1 for delta in deltas)
    for epsilon, before, after in zip(GRID[1:], deltas, deltas[1:], strict=False):
        assert after <= before * (1 + 1e-7), epsilon


@every_cost
@pytest.mark.parametrize("count", [1, 3])
def test_epsilon_inverts_delta_from_above(cost: Cost, count: int) -> None:
    composed = cost * count
    for delta in (0.0, 1e-12, 1e-6, 1e-3, 0.3, 0.999):
        epsilon = composed.epsilon(delta)
        if epsilon < math.inf:
            assert composed.delta(epsilon) <= delta
            if epsilon > 0:
                assert composed.delta(epsilon * (1 - 1e-6)) > delta


@every_cost
def test_deltas_are_the_single_deltas(cost: Cost) -> None:
    """Reading many points at once may be a little looser, never tighter beyond rounding."""
    epsilons = np.array(EPSILONS)
    for epsilon, delta in zip(EPSILONS, cost.deltas(epsilons), strict=True):
        assert delta == pytest.approx(cost.delta(epsilon), rel=0.1, abs=1e-15)
        assert delta >= cost.delta(epsilon) * (1 - 1e-9)


# --- edges

NOTHING = [
    Pure(0.0),
    BoundedRange(0.0),
    Approximate(0.0, 0.0),
    ZCDP(0.0),
    Gaussian(math.inf),
    Gaussian(1.0, 0.0),
    Gaussian(0.0, 0.0),
    DiscreteGaussian(math.inf),
    DiscreteGaussian(3.0, 0),
    DiscreteGaussian(0.0, 0),
    Pure(5.0) * 0,
    Pure(math.inf) * 0,
    subsample(Pure(math.inf), 0.0),
    subsample(Gaussian(1.0), 0.0, variant="paper"),
    group(Pure(math.inf), 0),
    bootstrap(Gaussian(0.0), 5, 0),
    parallel(),
]
EVERYTHING = [
    Pure(math.inf),
    BoundedRange(math.inf),
    Approximate(math.inf, 0.1),
    ZCDP(math.inf),
    Gaussian(0.0),
    Gaussian(1.0, math.inf),
    DiscreteGaussian(0.0),
    Pure(math.inf) * 3,
    Pure(math.inf) + Pure(1.0),
    subsample(Gaussian(0.0), 1.0),
    group(Gaussian(0.0), 2),
    parallel(Pure(math.inf), Pure(1.0)),
    or_fail(ZCDP(math.inf), 0.1),
    bootstrap(Pure(math.inf), 5),
]


@pytest.mark.parametrize("cost", NOTHING, ids=repr)
def test_what_costs_nothing(cost: Cost) -> None:
    assert cost.delta(0.0) == cost.delta(1.0) == cost.delta(math.inf) == cost.epsilon(0.0) == 0.0
    assert cost + Gaussian(2.0) == Gaussian(2.0)
    assert not cost.infinite
    assert (cost * 5).epsilon(0.0) == 0.0


@pytest.mark.parametrize("cost", EVERYTHING, ids=repr)
def test_what_promises_nothing(cost: Cost) -> None:
    assert cost.infinite
    assert cost.delta(0.0) == cost.delta(700.0) == cost.delta(math.inf) == 1.0
    assert cost.epsilon(0.0) == cost.epsilon(0.999) == math.inf
    assert (cost + Gaussian(2.0)).delta(1.0) == (cost * 2).delta(1.0) == 1.0


@pytest.mark.parametrize("cost", [Pure(1.0), BoundedRange(1.0), Pure(0.4) * 2], ids=repr)
def test_pure_costs_end(cost: Cost) -> None:
    assert cost.delta(cost.pure) == cost.delta(math.inf) == 0.0
    assert cost.delta(cost.pure * 0.999) > 0
    assert cost.epsilon(0.0) == cost.pure


def test_very_large_epsilons_stay_finite() -> None:
    assert Pure(1000.0).epsilon(0.0) == 1000.0
    assert Pure(1000.0).delta(999.0) > 0
    assert (Pure(500.0) * 4).epsilon(0.0) == 2000.0
    assert Gaussian(0.01).epsilon(1e-6) >= 5000  # far beyond the search: inf will do


@pytest.mark.parametrize(
    "cost",
    [
        Pure(1e200),
        BoundedRange(1e200),
        Gaussian(1e-200),
        Gaussian(1e160),
        Gaussian(1e200) * 2,
        DiscreteGaussian(1e-200),
        DiscreteGaussian(1e200),
        DiscreteGaussian(0.001) * 3,
        ZCDP(1e-300),
        ZCDP(1e300),
        Approximate(1e200, 0.5),
    ],
    ids=repr,
)
def test_extreme_parameters_yield_probabilities(cost: Cost) -> None:
    """No overflow, no warning, no NaN: a NaN would pass for 'within the target'."""
    for epsilon in (0.0, 1.0, 700.0, math.inf):
        assert 0 <= cost.delta(epsilon) <= 1
    assert cost.epsilon(1e-6) >= 0


@pytest.mark.claim("COMP")
@pytest.mark.parametrize(
    ("cost", "exact"),
    [
        (or_fail(Pure(0.0), 1e-6) * 2, 2e-6),
        (ZCDP(0.0, 1e-6) * 2, 2e-6),
        (Approximate(0.0, 1e-6) * 2, 2e-6),
        (subsample(Pure(math.inf), 0.5) * 2, 0.75),
        (BoundedRange(1e-17) * 2, 1e-17),
        (subsample(Pure(1e-8), 1e-8) * 3, 1e-15),
    ],
    ids=repr,
)
def test_composing_costs_with_hardly_any_loss_is_not_silly(cost: Cost, exact: float) -> None:
    """Losses that all vanish leave only the failures, which add up."""
    assert cost.delta(0.0) <= 1.01 * exact + 1e-10


@pytest.mark.claim("COMP")
@pytest.mark.parametrize("cost", [Gaussian(0.01), ZCDP(1000.0), Gaussian(0.02) * 3], ids=repr)
def test_a_cost_that_is_hopeless_on_the_grid_can_still_be_composed(cost: Cost) -> None:
    both = cost + Pure(1.0)
    assert cost.delta(1.0) - TOO_SMALL <= both.delta(1.0) <= 1.0
    assert both.epsilon(1e-6) >= cost.epsilon(1e-6)


@pytest.mark.claim("COMP")
def test_a_huge_count_does_not_need_a_huge_grid() -> None:
    """A billion uses or more fall back to closed forms instead of filling the memory."""
    cost = Pure(1e-9) * 2**40
    assert (Pure(1e-9) * 2**40).epsilon(1e-6) <= ZCDP(2**40 * 1e-18 / 2).epsilon(1e-6) * (1 + 1e-9)
    assert cost.epsilon(0.0) == pytest.approx(2**40 * 1e-9)


# --- bad input

BAD_NUMBERS = [math.nan, -1e-9, -math.inf, True, "1", None, 1j]
BAD_DELTAS = [*BAD_NUMBERS, 1.0, 1.5, math.inf]
BAD_COUNTS = [-1, 1.0, 2.5, True, "3", None, math.nan]


@pytest.mark.parametrize("value", BAD_NUMBERS, ids=repr)
@pytest.mark.parametrize(
    "make",
    [
        Pure,
        BoundedRange,
        ZCDP,
        Gaussian,
        DiscreteGaussian,
        lambda value: Approximate(value, 0.1),
        lambda value: Gaussian(1.0, value),
        lambda value: Pure(1.0).delta(value),
        lambda value: Gaussian(1.0).delta(value),
    ],
)
def test_bad_epsilons_and_scales_raise(make: Callable[[Any], object], value: Any) -> None:
    with pytest.raises(InvalidParameter) as raised:
        make(value)
    assert repr(value) in str(raised.value)


@pytest.mark.parametrize("value", BAD_DELTAS, ids=repr)
@pytest.mark.parametrize(
    "make",
    [
        lambda value: Approximate(1.0, value),
        lambda value: ZCDP(1.0, value),
        lambda value: Pure(1.0).epsilon(value),
        lambda value: or_fail(Pure(1.0), value),
    ],
)
def test_bad_deltas_raise(make: Callable[[Any], object], value: Any) -> None:
    with pytest.raises(InvalidParameter) as raised:
        make(value)
    assert repr(value) in str(raised.value)


@pytest.mark.parametrize("value", BAD_COUNTS, ids=repr)
@pytest.mark.parametrize(
    "make",
    [
        lambda value: Pure(1.0) * value,
        lambda value: value * Pure(1.0),
        lambda value: compose([(Pure(1.0), value)]),
        lambda value: DiscreteGaussian(1.0, value),
    ],
)
def test_bad_counts_raise(make: Callable[[Any], object], value: Any) -> None:
    with pytest.raises(InvalidParameter) as raised:
        make(value)
    assert repr(value) in str(raised.value)


@pytest.mark.parametrize("value", [10**400, -(10**400)], ids=["huge", "minus huge"])
def test_integers_beyond_floats_raise_an_error_of_ours(value: int) -> None:
    with pytest.raises(InvalidParameter):
        Pure(value)


@pytest.mark.parametrize("other", [1.0, "Pure(1.0)", None, Pure])
def test_composing_with_what_is_no_cost_raises(other: Any) -> None:
    with pytest.raises(UnknownCost):
        Pure(1.0) + other
    with pytest.raises(UnknownCost):
        compose([(other, 1)])


@pytest.mark.parametrize(
    "number",
    [np.float64(0.5), np.int64(1), 1, Fraction(1, 2)],
    ids=["float64", "int64", "int", "fraction"],
)
def test_numbers_of_other_types_are_floats(number: Any) -> None:
    for make in (Pure, BoundedRange, ZCDP, Gaussian):
        cost, plain = make(number), make(float(number))
        assert cost == plain
        assert cost.delta(0.25) == plain.delta(0.25)
        assert cost.epsilon(0.01) == plain.epsilon(0.01)
        assert repr(cost) == repr(plain) or isinstance(number, int)


def test_single_precision_numbers_are_floats() -> None:
    """Bisection in single precision never gets as narrow as asked, so it must not happen."""
    half: Any = np.float32(0.5)
    assert type(Pure(half).eps) is float
    assert type(Gaussian(half).scale) is float
    assert type(ZCDP(half).rho) is float
