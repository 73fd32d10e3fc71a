"""PrivateLogisticRegression: sums whose rows are bounded whatever happens, and their cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from cumae.errors import InvalidParameter
from cumae.learners import Columns, Learner, PrivateLogisticRegression
from cumae.learners.base import Rows, Sizes
from cumae.learners.features import FeatureMap
from cumae.learners.gradients import LENGTH, noisy_moments, noisy_sum
from cumae.learners.logistic import rho_for
from cumae.privacy import ZCDP
from cumae.randomness import SYSTEM
from cumae.sanitizers import Quantiles
from tests.statistics import chi_square_rejects

RNG = np.random.default_rng(8)
X = RNG.uniform(-1, 1, (2000, 3))
Y = (RNG.random(2000) < expit(6 * X[:, 0] - 3 * X[:, 1])).astype(int)
UNIT = [(-1, 1)] * 3


# Cost


@pytest.mark.claim("LOGREG")
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 1.0, 10.0])
@pytest.mark.parametrize(
    ("rows", "public", "bounds"), [(50, 0, UNIT), (10**6, 0, UNIT), (500, 40, None)]
)
def test_the_cost_is_that_of_what_is_released(
    rows: int, public: int, bounds: Any, epsilon: float, delta: float
) -> None:
    learner = PrivateLogisticRegression(epsilon, delta)
    columns = Columns(bounds, None, 3)
    seen = Rows(np.zeros((0, 3)), np.zeros(0, dtype=np.int64))
    plan = learner.plan(Sizes(rows, 0, public, columns), seen)
    schedule = plan.steps
    rho = schedule.steps * 2 * LENGTH**2 / schedule.noise**2
    if schedule.moments_noise is not None:
        rho += 2 * LENGTH**2 / schedule.moments_noise**2
    if schedule.points:
        numeric = [columns.bounds[place] for place in columns.numeric]
        quantiles = Quantiles(schedule.points_epsilon, numeric, schedule.points).cost
        assert quantiles.zcdp is not None
        rho += quantiles.zcdp[0]
        # All shares together are within what the zCDP of the whole allows.
        assert rho <= rho_for(epsilon, delta)
        assert ZCDP(rho).delta(epsilon) <= delta
    assert plan.cost.delta(epsilon) <= delta
    known = plan.cost.zcdp
    assert known is None or known[0] == pytest.approx(rho)
    if epsilon >= 1:  # it is no waste either
        assert plan.cost.delta(0.8 * epsilon) > delta


@pytest.mark.claim("LOGREG")
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-9), (5.0, 1e-3)])
def test_a_guarantee_is_never_above_what_was_asked(epsilon: float, delta: float) -> None:
    for learner, data in (
        (PrivateLogisticRegression(epsilon, delta, UNIT), (X, Y)),
        (PrivateLogisticRegression(epsilon, delta, bins=4), (X, Y, X[:100])),
    ):
        guarantee = learner.fit(*data).guarantee_
        assert 0 < guarantee.epsilon <= epsilon
        assert guarantee.delta == delta
        assert "LOGREG" in guarantee.claims


# Sums


def integers_of(total: NDArray[Any], width: int, length: float) -> NDArray[Any]:
    return np.asarray(total * (LENGTH - math.sqrt(width)) / length)


@pytest.mark.claim("LOGREG")
def test_without_noise_sums_are_exact() -> None:
    rows = RNG.normal(size=(20_000, 4)).astype(np.float32)
    rows /= np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
    factors = RNG.uniform(-0.5, 0.5, 20_000)
    total = noisy_sum(rows, factors, 0.5, 0.0, SYSTEM)
    assert total == pytest.approx((rows.astype(float) * factors[:, None]).sum(axis=0), abs=1e-2)
    whole = integers_of(total, 4, 0.5)
    assert whole == pytest.approx(np.rint(whole), abs=1e-4)
    moments = noisy_moments(rows, 1.0, 0.0, SYSTEM)
    assert moments == pytest.approx(rows.astype(float).T @ rows, rel=1e-2, abs=0.5)


@pytest.mark.claim("LOGREG")
@pytest.mark.parametrize(
    "cell", [1.5, -3.0, 1e10, 2.0**44, -(2.0**63), 1e38, math.inf, -math.inf, math.nan]
)
def test_rows_that_are_too_long_are_left_out(cell: float) -> None:
    """Also where a cast to integers, or a square of them, would overflow."""
    usual = np.array([[0.5, 0.25]], dtype=np.float32)
    rows = np.vstack([usual, np.array([[cell, 0.1]], dtype=np.float32)])
    both = noisy_sum(rows, np.ones(2), 1.0, 0.0, SYSTEM)
    assert both.tolist() == noisy_sum(usual, np.ones(1), 1.0, 0.0, SYSTEM).tolist()
    both, one = (noisy_moments(part, 1.0, 0.0, SYSTEM) for part in (rows, usual))
    assert both.tolist() == one.tolist()


@pytest.mark.claim("LOGREG")
@given(st.integers(0, 2**32), st.integers(1, 12), st.sampled_from([0.1, 1.0, 30.0, 1e15]))
def test_a_replaced_row_moves_sums_by_at_most_two_lengths(
    seed: int, width: int, size: float
) -> None:
    rng = np.random.default_rng(seed)
    rows = (rng.normal(size=(5, width)) * size).astype(np.float32)
    if seed % 2:  # rows of just the length that is allowed
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    neighbour = rows.copy()
    neighbour[0] = -rows[0] if seed % 3 else rng.normal(size=width) * size
    factors = np.ones(5)
    one, two = (noisy_sum(part, factors, 1.0, 0.0, SYSTEM) for part in (rows, neighbour))
    moved = np.linalg.norm(integers_of(one - two, width, 1.0))
    assert moved <= 2 * LENGTH * (1 + 1e-9)


@pytest.mark.claim("LOGREG")
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_a_replaced_row_moves_moments_by_at_most_two_lengths(seed: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(3, width)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) * (0.9 if seed % 2 else 1.0)
    neighbour = rows.copy()
    neighbour[0] = rng.normal(size=width)
    one, two = (noisy_moments(part, 1.0, 0.0, SYSTEM) for part in (rows, neighbour))
    places = width * (width + 1) // 2
    moved = np.linalg.norm(one - two) * (LENGTH - math.sqrt(places))
    assert moved <= 2 * LENGTH * (1 + 1e-6)


@pytest.mark.claim("LOGREG")
@pytest.mark.statistical
def test_sums_have_the_noise_that_they_state() -> None:
    """Discrete Gaussian noise of the scale that is given, in each place."""
    rows = np.full((3, 2000), 0.001, dtype=np.float32)

    def counts(noise: float) -> list[int]:
        drawn = noisy_sum(rows, np.ones(3), 1.0, noise, SYSTEM)
        exact = noisy_sum(rows, np.ones(3), 1.0, 0.0, SYSTEM)
        places = np.rint(integers_of(drawn - exact, 2000, 1.0)).astype(int)
        return [int(n) for n in np.bincount(np.clip(places, -9, 9) + 9, minlength=19)]

    x = np.arange(-100, 101)
    mass = np.exp(-(x**2) / 32.0)
    mass /= mass.sum()
    expected = [mass[x <= -9].sum(), *mass[np.abs(x) < 9], mass[x >= 9].sum()]
    assert not chi_square_rejects(counts(4.0), expected)
    assert chi_square_rejects(counts(2.0), expected, checks=0)  # planted: half of the noise


# What it learns


def test_without_noise_it_is_about_as_good_as_scikit_learn() -> None:
    theirs = LogisticRegression().fit(X, Y).score(X, Y)
    for learner, data in (
        (PrivateLogisticRegression(math.inf, 1e-6, UNIT), (X, Y)),
        (PrivateLogisticRegression(math.inf, 1e-6), (X, Y)),
        (PrivateLogisticRegression(math.inf, 1e-6), (X, Y, X[:500])),
    ):
        assert learner.fit(*data).score(X, Y) > theirs - 0.02


def test_a_curve_takes_bins() -> None:
    y = (np.abs(X[:, 0]) < 0.5).astype(int)
    line = PrivateLogisticRegression(math.inf, 1e-6, UNIT).fit(X, y)
    curve = PrivateLogisticRegression(math.inf, 1e-6, UNIT, 8).fit(X, y)
    assert line.score(X, y) < 0.7
    assert curve.score(X, y) > 0.85


@pytest.mark.parametrize("bins", [None, 4])
@pytest.mark.parametrize("value", [1.7e308, math.inf, 5e-324])
def test_extreme_values_neither_warn_nor_break_anything(value: float, bins: int | None) -> None:
    rows = np.where(RNG.random((2000, 2)) < 0.5, -value, value)
    usual = RNG.random((2000, 2))
    usual[:2] = rows[:2]
    for X_private, X_public in ((rows, None), (rows, usual), (usual, rows)):
        learner = PrivateLogisticRegression(1.0, 1e-6, bins=bins).fit(X_private, Y[:2000], X_public)
        assert np.all(np.isfinite(learner.weights_))
        assert np.abs(learner.weights_).max() < 1e3
        assert np.all(np.isfinite(learner.predict_proba(rows)))


def test_features_are_bounded_whatever_a_row_holds() -> None:
    reference = np.array([[-1.7e308, 1.0], [1.7e308, 1.0 + 1e-16], [0.0, 1.0]])
    features = FeatureMap.of(reference, Columns(None, None, 2), bins=2)
    rows = np.array([[math.inf, -math.inf], [-1.7e308, 1.7e308], [0.0, 5e-324]])
    assert np.all(np.isfinite(features.rows(rows)))
    lengths = np.linalg.norm(features.clipped(rows), axis=1)
    assert np.all(lengths <= features.norm * (1 + 1e-6))


def test_chances_and_text() -> None:
    frame = pd.DataFrame({"age": X[:, 0], "job": np.where(X[:, 1] > 0, "nurse", "poet")})
    columns = {"age": (-1, 1), "job": ["poet", "nurse", "judge"]}
    learner = PrivateLogisticRegression(math.inf, 1e-6, columns, 4, classes=("no", "yes"))
    assert str(learner) == repr(learner)
    learner.fit(frame, np.where(Y == 1, "yes", "no"))
    chances = learner.predict_proba(frame)
    assert np.allclose(chances.sum(axis=1), 1)
    assert learner.predict(frame).tolist() == np.where(chances[:, 1] > 0.5, "yes", "no").tolist()
    lines = str(learner).splitlines()
    assert lines[0].startswith("log odds of 1: ")
    assert "* (age - " in lines[1]
    assert "and age: below " in lines[1]
    for name, line in zip(("poet", "nurse", "judge"), lines[2:], strict=True):
        assert f"* (job={name} - " in line
    again = Learner.from_dict(learner.to_dict())
    assert np.array_equal(again.predict_proba(frame), chances)


def test_bad_parameters() -> None:
    with pytest.raises(InvalidParameter, match=r"delta=0.0: Gaussian noise needs a delta above 0"):
        PrivateLogisticRegression(1.0, 0.0, UNIT).fit(X, Y)
    with pytest.raises(InvalidParameter, match="both given"):
        PrivateLogisticRegression(bounds=UNIT, columns=UNIT).fit(X, Y)
    wrong: list[dict[str, Any]] = [
        {"bins": 1},
        {"bins": "many"},
        {"n_steps": 0},
        {"n_steps": "all"},
    ]
    for bad in wrong:
        with pytest.raises(InvalidParameter):
            PrivateLogisticRegression(1.0, 1e-6, UNIT, **bad).fit(X, Y)
