"""Calibration returns a noise within the target, hardly more than needed, or refuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from cumae import InvalidParameter
from cumae.privacy import (
    Cost,
    DiscreteGaussian,
    Gaussian,
    Pure,
    calibrate,
    calibrate_gaussian,
    label_boost,
    or_fail,
    subsample,
)

COST_AT: dict[str, Callable[[float], Cost]] = {
    "pure": lambda noise: Pure(1 / noise),
    "many pure": lambda noise: Pure(1 / noise) * 30,
    "gaussian": Gaussian,
    "discrete gaussian": lambda noise: DiscreteGaussian(noise) * 40,
    "subsampled": lambda noise: subsample(Gaussian(noise), 0.1),
    "label boosted": lambda noise: label_boost(Pure(1 / noise), 0.1, "T", k=1),
    "failing": lambda noise: or_fail(Pure(1 / noise) * 3, 5e-7),
}


@pytest.mark.claim("CAL")
@pytest.mark.parametrize("name", COST_AT)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("start", [1e-3, 1.0, 1e3])
def test_the_noise_is_within_the_target_and_smallest(
    name: str, epsilon: float, start: float
) -> None:
    if name == "discrete gaussian" and start == 1e-3:
        start = 0.5  # far below, the answer is the same but takes long
    cost_at = COST_AT[name]
    noise = calibrate(cost_at, epsilon, 1e-6, start=start)
    assert cost_at(noise).delta(epsilon) <= 1e-6
    assert cost_at(noise).epsilon(1e-6) <= epsilon * (1 + 2e-9)
    assert cost_at(0.99 * noise).delta(epsilon) > 1e-6


@pytest.mark.claim("CAL")
def test_a_smaller_tolerance_comes_closer() -> None:
    for tolerance in (1e-2, 1e-4, 1e-8):
        noise = calibrate(lambda noise: Pure(1 / noise), 0.7, tolerance=tolerance)
        assert 1 / 0.7 <= noise <= 1 / 0.7 * (1 + 2 * tolerance)


@pytest.mark.claim("CAL")
def test_without_a_target_there_is_no_noise() -> None:
    assert calibrate(Gaussian, math.inf) == 0.0
    assert calibrate_gaussian(math.inf, 1e-6) == 0.0
    assert calibrate_gaussian(1.0, 1e-6, releases=0) == 0.0
    assert calibrate_gaussian(1.0, 1e-6, sensitivity=0) == 0.0


@pytest.mark.claim("CAL")
@pytest.mark.parametrize(
    "cost_at", [lambda noise: Pure(2.0), lambda noise: or_fail(Pure(1 / noise), 0.1)]
)
def test_impossible_targets_raise(cost_at: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"epsilon=1\.0, delta=1e-06"):
        calibrate(cost_at, 1.0, 1e-6)


@pytest.mark.claim("CAL")
def test_gaussian_noise_cannot_be_pure() -> None:
    with pytest.raises(InvalidParameter, match=r"delta=0\.0"):
        calibrate(Gaussian, 1.0, 0.0)
    with pytest.raises(InvalidParameter, match="delta=0"):
        calibrate_gaussian(1.0, 0)


@pytest.mark.claim("CAL")
@pytest.mark.parametrize("period", [0.3, 1.0, 7.0])
@pytest.mark.parametrize("start", [0.05, 1.0, 20.0])
def test_a_cost_that_rises_with_noise_is_refused_or_still_within_the_target(
    period: float, start: float
) -> None:
    def cost_at(noise: float) -> Cost:
        return Pure((1.5 + math.sin(noise / period)) / noise)

    try:
        noise = calibrate(cost_at, 0.8, start=start)
    except InvalidParameter:
        return
    assert cost_at(noise).epsilon(0.0) <= 0.8


@pytest.mark.claim("CAL")
def test_a_cost_that_changes_its_mind_is_refused() -> None:
    """The last reading decides: the noise returned was found within the target at the end."""
    readings: list[float] = []

    def cost_at(noise: float) -> Cost:
        readings.append(noise)
        return Pure(0.5 if len(readings) < 3 else 2.0)

    with pytest.raises(InvalidParameter):
        calibrate(cost_at, 1.0)


@pytest.mark.claim("CAL")
@pytest.mark.parametrize("releases", [1, 7, 20_000])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-3)])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_gaussian_calibration(
    releases: int, epsilon: float, delta: float, sensitivity: int
) -> None:
    scale = calibrate_gaussian(epsilon, delta, releases, sensitivity)
    assert (DiscreteGaussian(scale, sensitivity) * releases).delta(epsilon) <= delta
    assert (DiscreteGaussian(0.99 * scale, sensitivity) * releases).delta(epsilon) > delta


@pytest.mark.claim("CAL")
def test_gaussian_calibration_of_the_votes() -> None:
    assert calibrate_gaussian(1.0, 1e-6, releases=20_000) == pytest.approx(597.5, rel=0.01)


BAD_EPSILONS = [math.nan, -1.0, True, "1"]
BAD_DELTAS = [math.nan, -1e-9, 1.0, True, "0"]


@pytest.mark.parametrize("value", BAD_EPSILONS, ids=repr)
def test_bad_epsilons_raise(value: Any) -> None:
    with pytest.raises(InvalidParameter, match="epsilon="):
        calibrate(Gaussian, value, 1e-6)
    with pytest.raises(InvalidParameter, match="epsilon="):
        calibrate_gaussian(value, 1e-6)


@pytest.mark.parametrize("value", BAD_DELTAS, ids=repr)
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
@pytest.mark.parametrize("releases", [0, 1])
def test_bad_deltas_raise_whatever_the_rest(value: Any, epsilon: float, releases: int) -> None:
    with pytest.raises(InvalidParameter, match="delta="):
        calibrate(Gaussian, epsilon, value)
    with pytest.raises(InvalidParameter, match="delta="):
        calibrate_gaussian(epsilon, value, releases)


@pytest.mark.parametrize("value", [-1, 1.5, True, "1"], ids=repr)
def test_bad_counts_raise(value: Any) -> None:
    with pytest.raises(InvalidParameter, match="releases="):
        calibrate_gaussian(1.0, 1e-6, releases=value)
    with pytest.raises(InvalidParameter, match="sensitivity="):
        calibrate_gaussian(1.0, 1e-6, sensitivity=value)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "1", None, True], ids=repr)
def test_bad_starts_raise(value: Any) -> None:
    with pytest.raises(InvalidParameter, match="start="):
        calibrate(Gaussian, 1.0, 1e-6, start=value)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, 1.0, "1", None], ids=repr)
def test_bad_tolerances_raise(value: Any) -> None:
    with pytest.raises(InvalidParameter, match="tolerance="):
        calibrate(Gaussian, 1.0, 1e-6, tolerance=value)
    with pytest.raises(InvalidParameter, match="tolerance="):
        calibrate_gaussian(1.0, 1e-6, tolerance=value)
