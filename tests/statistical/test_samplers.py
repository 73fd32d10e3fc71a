"""Samplers against their exact laws, and against OpenDP.

Each check rejects correct code with probability ``alarm_rate()`` at most; each comes with a planted
bug that it must reject.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import opendp.prelude as dp
import pytest
from numpy.typing import NDArray

from cumae.randomness import (
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    integers,
    permutation,
    weighted_choice,
)
from tests.statistics import binomial_rejects, chi_square_rejects, two_sample_rejects

pytestmark = [pytest.mark.claim("RAND"), pytest.mark.statistical]
DRAWS = 200_000


def _cells(drawn: NDArray[Any], reach: int) -> NDArray[np.int64]:
    """Counts of -reach..reach; what lies outside joins the ends."""
    return np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=2 * reach + 1)


def _law(log_weight: NDArray[Any], reach: int) -> NDArray[np.float64]:
    """Probabilities of the same cells, from log weights on a symmetric range."""
    weights = np.exp(log_weight - log_weight.max())
    weights /= weights.sum()
    middle = len(weights) // 2
    inner = weights[middle - reach + 1 : middle + reach]
    left = weights[: middle - reach + 1].sum()
    return np.concatenate([[left], inner, [1 - left - inner.sum()]])


def _gaussian_law(scale: float, reach: int) -> NDArray[np.float64]:
    x = np.arange(-round(40 * scale) - 40, round(40 * scale) + 41, dtype=float)
    return _law(-(x**2) / (2 * scale**2), reach)


@pytest.mark.parametrize("scale", [0.5, 3.3, 600.0])
def test_discrete_gaussian_follows_its_mass_function(scale: float) -> None:
    reach = max(2, round(3 * scale))
    law = _gaussian_law(scale, reach)
    assert not chi_square_rejects(_cells(discrete_gaussian(scale, DRAWS), reach), law, checks=3)


def test_half_the_gaussian_noise_is_noticed() -> None:
    law = _gaussian_law(600.0, 1800)
    assert chi_square_rejects(_cells(discrete_gaussian(300.0, DRAWS), 1800), law, checks=0)


def test_large_scales_by_rejection_follow_the_law() -> None:
    """Cells of a quarter of a scale; the law there is summed from the mass function."""
    scale, width = 20_000.0, 5_000
    drawn = discrete_gaussian(scale, DRAWS) // width
    x = np.arange(-800_000, 800_000)
    weights = np.exp(-(x.astype(float) ** 2) / (2 * scale**2))
    sums = np.bincount(np.clip(x // width, -12, 11) + 12, weights=weights)
    observed = np.bincount(np.clip(drawn, -12, 11) + 12, minlength=24)
    assert not chi_square_rejects(observed, sums / sums.sum())
    parity = discrete_gaussian(scale, DRAWS) % 2
    assert not binomial_rejects(int(parity.sum()), DRAWS, 0.5)


@pytest.mark.parametrize("rate", [0.02, 0.7, 4.0])
def test_discrete_laplace_follows_its_mass_function(rate: float) -> None:
    reach = max(2, round(4 / rate))
    x = np.arange(-round(60 / rate) - 9, round(60 / rate) + 10, dtype=float)
    law = _law(-rate * np.abs(x), reach)
    drawn = discrete_laplace(rate, DRAWS)
    assert not chi_square_rejects(_cells(drawn, reach), law, checks=3)
    # Planted: both zeros kept, the classic slip with a sign and a magnitude.
    doubled = np.concatenate([drawn, drawn[drawn == 0]])
    assert chi_square_rejects(_cells(doubled, reach), law, checks=0)


def test_gaussian_and_laplace_agree_with_opendp() -> None:
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    theirs = np.array(dp.m.make_gaussian(*space, scale=40.0)([0] * 20_000))
    ours = discrete_gaussian(40.0, DRAWS)
    assert not two_sample_rejects(_cells(ours, 120), _cells(theirs, 120))
    assert two_sample_rejects(_cells(ours * 2, 120), _cells(theirs, 120), checks=0)
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    theirs = np.array(dp.m.make_laplace(*space, scale=10.0)([0] * 20_000))
    ours = discrete_laplace(0.1, DRAWS)
    assert not two_sample_rejects(_cells(ours, 40), _cells(theirs, 40))


def test_bernoulli_exp() -> None:
    for x in (0.01, 0.7, 3.0):
        hits = int(bernoulli_exp(np.full(DRAWS, x)).sum())
        assert not binomial_rejects(hits, DRAWS, float(np.exp(-x)), checks=3)
        assert binomial_rejects(hits, DRAWS, float(np.exp(-1.05 * x)) * 0.99, checks=0)
    scalar = sum(bernoulli_exp(0.7) for _ in range(20_000))
    assert not binomial_rejects(scalar, 20_000, float(np.exp(-0.7)))


def test_uniform_integers() -> None:
    counts = np.bincount(integers(11, DRAWS), minlength=11)
    assert not chi_square_rejects(counts, np.full(11, 1 / 11))
    # Planted: a remainder instead of a rejection.
    biased = np.bincount(integers(16, DRAWS) % 11, minlength=11)
    assert chi_square_rejects(biased, np.full(11, 1 / 11), checks=0)


def test_orders_are_uniform() -> None:
    orders = {order: i for i, order in enumerate(permutations(range(4)))}
    found = [orders[tuple(permutation(4).tolist())] for _ in range(24_000)]
    assert not chi_square_rejects(np.bincount(found, minlength=24), np.full(24, 1 / 24))


def test_weighted_choice_follows_the_weights() -> None:
    scores, counts = np.array([0, 3, -2, 7, 7, 1]), np.array([5, 1, 40, 0, 1, 3])
    weights = counts * np.exp(0.4 * scores)
    law = weights / weights.sum()
    drawn = weighted_choice(scores, 0.4, counts=counts, size=DRAWS)
    assert not chi_square_rejects(np.bincount(drawn, minlength=6), law)
    wrong = weighted_choice(scores, 0.41, counts=counts, size=DRAWS)
    assert chi_square_rejects(np.bincount(wrong, minlength=6), law, checks=0)


def test_weighted_choice_among_many() -> None:
    """A hundred thousand candidates; cells by score."""
    scores = np.arange(100_000) % 50
    weights = np.exp(0.05 * np.arange(50))
    drawn = scores[weighted_choice(scores, 0.05, size=DRAWS)]
    assert not chi_square_rejects(np.bincount(drawn, minlength=50), weights / weights.sum())
