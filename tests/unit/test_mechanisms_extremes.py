"""Epsilons of any size: an answer, or an error of ours, and never a warning of numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cumae.concepts import (
    Halfspaces,
    Intervals,
    Points,
    Rectangles,
    Stumps,
    Thresholds,
    Trees,
    UnionOfIntervals,
)
from cumae.errors import CumaeError, InvalidParameter
from cumae.mechanisms import (
    BetweenThresholds,
    ExponentialMechanism,
    GaussianNoise,
    LaplaceNoise,
    NoisyMajority,
    StabilityTest,
)
from cumae.mechanisms.between_thresholds import least_gap
from cumae.mechanisms.stability import delta_at_threshold, least_threshold
from cumae.sanitizers import (
    MultiplicativeWeights,
    Quantiles,
    SmallDatabase,
    StableThresholds,
)

X = [[float(i % 17)] for i in range(200)]
Y = [int(i % 17 > 8) for i in range(200)]
VOTES = [[10, 1000], [500, 500]]

USES: dict[str, Callable[[float], Any]] = {
    "gap": lambda e: least_gap(e, 1e-6),
    "between": lambda e: BetweenThresholds(0, 100, e, 1e-6, 5).ask([0, 500, 1000]),
    "between, calibrated": lambda e: BetweenThresholds.calibrated(1000, e, 1e-6, 5).cost.delta(e),
    "stability": lambda e: StabilityTest(e, 1e-6, 100, 5).ask(VOTES),
    "stability, calibrated": lambda e: StabilityTest.calibrated(e, 1e-6, 100, 5).cost.delta(e),
    "laplace majority": lambda e: NoisyMajority.calibrated(e, 1e-6, 9, kind="laplace").ask(VOTES),
    "exponential": lambda e: ExponentialMechanism(e).choose([1, 5, 9]),
    "laplace": lambda e: LaplaceNoise(e).release([1, 5, 9]),
    "laplace, many": lambda e: str(LaplaceNoise(e).guarantee("a row", delta=1e-6, releases=20)),
    "gaussian": lambda e: GaussianNoise(min(1 / e, 1e300)).release([1, 5, 9]),
    "quantiles": lambda e: Quantiles(e, [(0.0, 20.0)], 7).sanitize(X),
    "stable": lambda e: StableThresholds(e, 1e-6, 7).sanitize(X),
    "weights": lambda e: MultiplicativeWeights(Thresholds(), e, range(8), 3).sanitize(X),
    "small database": lambda e: SmallDatabase(Thresholds(), e, domain=range(4), size=2).sanitize(X),
}
CLASSES = [
    Thresholds(),
    Points(),
    Intervals(),
    UnionOfIntervals(3),
    Rectangles(),
    Halfspaces(),
    Stumps(),
    Trees(2),
]
EPSILONS = [5e-324, 1e-308, 1e-200, 1e-14, 1e3, 1e4, 1e6, 1e9, 1e200, 1.7e308]


@pytest.mark.claim(
    "BT", "STAB", "MULTI", "EXP", "NOISE", "RAND", "QUANT", "STABLE", "MW", "SMALLDB"
)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_any_epsilon_gets_an_answer_or_an_error_of_ours(use: str, epsilon: float) -> None:
    with np.errstate(all="raise"):
        try:
            USES[use](epsilon)
        except CumaeError:
            assert not 1e3 <= epsilon <= 1e6, "this much is no reason to refuse"


@pytest.mark.claim("CHOOSE")
@pytest.mark.parametrize("concept", CLASSES, ids=repr)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_any_epsilon_draws_a_hypothesis_or_is_too_large(concept: Any, epsilon: float) -> None:
    with np.errstate(all="raise"):
        try:
            concept.choose(X, X, Y, epsilon)
        except InvalidParameter:
            assert epsilon > 1e9


@pytest.mark.claim("STAB")
@pytest.mark.parametrize("epsilon", [0.5, 30.0, 300.0, 1500.0, 1e6])
def test_the_threshold_for_a_large_epsilon_is_the_limit(epsilon: float) -> None:
    """Without noise to speak of, a distance of 1 tells a stable query from an unstable one."""
    threshold = least_threshold(epsilon, 1e-6, 100, 5)
    assert delta_at_threshold(epsilon, threshold, 100, 5) <= 1e-6
    assert delta_at_threshold(epsilon, threshold, 100, 5) > 0
    if epsilon >= 300:
        assert threshold == 1
