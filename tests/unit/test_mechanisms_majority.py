"""The majority of votes after noise."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

from cumae.errors import BudgetExhausted, InvalidData, InvalidParameter, LiveState
from cumae.mechanisms import GaussianNoise, LaplaceNoise, NoisyMajority
from cumae.mechanisms.majority import laplace_epsilon
from cumae.privacy import DiscreteGaussian, Gaussian, Pure
from tests.statistics import chi_square_rejects


@pytest.mark.claim("MULTI")
def test_two_classes_cost_one_release_each() -> None:
    majority = NoisyMajority.calibrated(1.0, 1e-6, 1000)
    assert isinstance(majority.noise, GaussianNoise)
    scale = majority.noise.scale
    assert majority.cost.delta(1.0) <= 1e-6
    # Independent of the code that composes: a Gaussian with mu = sqrt(1000) / scale.
    closed = Gaussian(scale, math.sqrt(1000)).epsilon(1e-6)
    assert closed == pytest.approx(1.0, abs=2e-3)
    assert majority.cost.zcdp == pytest.approx((1000 / (2 * scale**2), 0.0))


@pytest.mark.claim("MULTI")
@pytest.mark.parametrize("classes", [3, 7])
def test_more_classes_cost_two_releases_each(classes: int) -> None:
    majority = NoisyMajority.calibrated(1.0, 1e-6, 500, classes)
    assert isinstance(majority.noise, GaussianNoise)
    scale = majority.noise.scale
    assert majority.cost.zcdp == pytest.approx((500 / scale**2, 0.0))  # rho = R / s^2
    assert Gaussian(scale, math.sqrt(1000)).epsilon(1e-6) == pytest.approx(1.0, abs=2e-3)
    assert scale == pytest.approx(
        math.sqrt(2) * NoisyMajority.calibrated(1.0, 1e-6, 500).noise.scale,  # type: ignore[union-attr]
        rel=1e-3,
    )


@pytest.mark.claim("MULTI")
def test_laplace_noise_is_pure() -> None:
    single = NoisyMajority.calibrated(1.0, 0.0, 1, kind="laplace")
    assert isinstance(single.noise, LaplaceNoise)
    assert single.noise.epsilon == pytest.approx(1.0, rel=1e-4)
    assert single.cost.epsilon(0.0) <= 1.0
    ten = NoisyMajority.calibrated(1.0, 0.0, 10, 4, kind="laplace")
    assert isinstance(ten.noise, LaplaceNoise)
    assert ten.noise.sensitivity == 2
    assert ten.noise.epsilon == pytest.approx(0.1, rel=1e-4)
    # With a delta, composition beats the plain sum.
    assert laplace_epsilon(1.0, 1e-6, 200) > 3 / 200
    assert (Pure(laplace_epsilon(1.0, 1e-6, 200)) * 200).delta(1.0) <= 1e-6


@pytest.mark.claim("MULTI")
def test_noise_that_covers_too_little_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="moves two counts"):
        NoisyMajority(GaussianNoise(5.0), n_classes=3)
    with pytest.raises(InvalidParameter, match="moves two counts"):
        NoisyMajority(LaplaceNoise(1.0), n_classes=3)
    assert NoisyMajority(GaussianNoise(5.0, moves=2), n_classes=3).cost.zcdp == pytest.approx(
        (DiscreteGaussian(5.0) * 2).zcdp
    )


def test_without_noise_it_is_the_majority_with_ties_to_the_first() -> None:
    for kind in ("gaussian", "laplace"):
        majority = NoisyMajority.calibrated(math.inf, 0.0, 10, kind=kind)
        assert majority.ask([[5, 5], [4, 6], [6, 4]]).tolist() == [0, 1, 0]
        three = NoisyMajority.calibrated(math.inf, 0.0, 10, 3, kind=kind)
        assert three.ask([[1, 4, 4], [2, 2, 2], [0, 1, 5]]).tolist() == [1, 0, 2]


def test_counts_down_and_refuses_whole_batches() -> None:
    majority = NoisyMajority.calibrated(1.0, 1e-6, 5)
    majority.ask([[3, 4]] * 3)
    with pytest.raises(BudgetExhausted, match="3 queries were asked, but 2 of 5"):
        majority.ask([[3, 4]] * 3)
    assert majority.remaining == 2
    with pytest.raises(InvalidData, match="columns"):
        majority.ask([[1, 2, 3]])
    with pytest.raises(InvalidData, match="integers"):
        majority.ask([[1.5, 2.5]])
    assert majority.remaining == 2
    majority.ask([[3, 4]] * 2)
    with pytest.raises(BudgetExhausted):
        majority.ask([[3, 4]])


def test_there_is_only_one() -> None:
    majority = NoisyMajority.calibrated(1.0, 1e-6, 5)
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LiveState):
            duplicate(majority)


def test_two_noisy_counts_add_up_to_the_voters() -> None:
    noisy = NoisyMajority.calibrated(1.0, 1e-6, 50).release([[30, 70]] * 50)
    assert (noisy.sum(axis=1) == 100).all()
    assert len(np.unique(noisy[:, 1])) > 10
    three = NoisyMajority.calibrated(1.0, 1e-6, 50, 3).release([[30, 60, 10]] * 50)
    assert len(np.unique(three.sum(axis=1))) > 10  # independent noise on each count


@pytest.mark.statistical
@pytest.mark.claim("MULTI")
def test_the_noise_is_that_of_the_cost() -> None:
    scale, draws = 3.0, 20_000
    majority = NoisyMajority(GaussianNoise(scale, moves=2), 3, draws)
    noise = majority.release(np.tile([5, 9, 2], (draws, 1))) - [5, 9, 2]
    support = np.arange(-30, 31)
    weights = np.exp(-(support**2) / (2 * scale**2))
    counts = [int(np.count_nonzero(noise == value)) for value in support]
    assert sum(counts) == noise.size
    assert not chi_square_rejects(counts, weights / weights.sum(), checks=1)
    half = np.exp(-(support**2) / (2 * (scale / 2) ** 2))  # a planted bug: half of the noise
    assert chi_square_rejects(counts, half / half.sum(), checks=0)
