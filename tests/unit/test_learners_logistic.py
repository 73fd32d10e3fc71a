"""PrivateLogisticRegression: the engine of noisy sums with lines, or lines and curves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from cumae.errors import InvalidParameter
from cumae.learners import Learner, PrivateLogisticRegression

RNG = np.random.default_rng(8)
X = RNG.uniform(-1, 1, (2000, 3))
Y = (RNG.random(2000) < expit(6 * X[:, 0] - 3 * X[:, 1])).astype(int)
UNIT = [(-1, 1)] * 3


# Cost


@pytest.mark.claim("KERNEL")
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-9), (5.0, 1e-3)])
def test_a_guarantee_is_never_above_what_was_asked(epsilon: float, delta: float) -> None:
    for learner, data in (
        (PrivateLogisticRegression(epsilon, delta, UNIT), (X, Y)),
        (PrivateLogisticRegression(epsilon, delta, curves=4), (X, Y, X[:100])),
    ):
        guarantee = learner.fit(*data).guarantee_
        assert 0 < guarantee.epsilon <= epsilon
        assert guarantee.delta == delta
        assert "KERNEL" in guarantee.claims


# What it learns


def test_without_noise_it_is_about_as_good_as_scikit_learn() -> None:
    theirs = LogisticRegression().fit(X, Y).score(X, Y)
    for learner, data in (
        (PrivateLogisticRegression(math.inf, 1e-6, UNIT), (X, Y)),
        (PrivateLogisticRegression(math.inf, 1e-6), (X, Y)),
        (PrivateLogisticRegression(math.inf, 1e-6), (X, Y, X[:500])),
    ):
        assert learner.fit(*data).score(X, Y) > theirs - 0.02


def test_a_curve_takes_cosines() -> None:
    y = (np.abs(X[:, 0]) < 0.5).astype(int)
    line = PrivateLogisticRegression(math.inf, 1e-6, UNIT).fit(X, y)
    curve = PrivateLogisticRegression(math.inf, 1e-6, UNIT, 8).fit(X, y)
    assert line.score(X, y) < 0.7
    assert curve.score(X, y) > 0.85


@pytest.mark.parametrize("curves", [0, 4])
@pytest.mark.parametrize("value", [1.7e308, math.inf, 5e-324])
def test_extreme_values_neither_warn_nor_break_anything(value: float, curves: int) -> None:
    rows = np.where(RNG.random((2000, 2)) < 0.5, -value, value)
    usual = RNG.random((2000, 2))
    usual[:2] = rows[:2]
    for X_private, X_public in ((rows, None), (rows, usual), (usual, rows)):
        learner = PrivateLogisticRegression(1.0, 1e-6, curves=curves).fit(
            X_private, Y[:2000], X_public
        )
        weights = learner.published().weights
        assert np.all(np.isfinite(weights))
        assert np.abs(weights).max() < 1e3
        assert np.all(np.isfinite(learner.predict_proba(rows)))


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
    assert lines[0].startswith("log odds of yes: ")
    assert f"  age: {learner.coef_[0, 0]:+.3g} a unit and a curve: -" in lines[1]
    assert lines[1].count(" +/- ") == 5
    assert lines[2].startswith("  job: ")
    for name in ("poet", "nurse", "judge"):
        assert f" at {name}" in lines[2]
    assert len(lines) == 3
    again = Learner.from_dict(learner.to_dict())
    assert np.array_equal(again.predict_proba(frame), chances)


def test_bad_parameters() -> None:
    with pytest.raises(InvalidParameter, match=r"delta=0.0: Gaussian noise needs a delta above 0"):
        PrivateLogisticRegression(1.0, 0.0, UNIT).fit(X, Y)
    with pytest.raises(InvalidParameter, match="both given"):
        PrivateLogisticRegression(bounds=UNIT, columns=UNIT).fit(X, Y)
    wrong: list[dict[str, Any]] = [
        {"curves": -1},
        {"curves": "many"},
        {"n_steps": 0},
        {"n_steps": "all"},
    ]
    for bad in wrong:
        with pytest.raises(InvalidParameter):
            PrivateLogisticRegression(1.0, 1e-6, UNIT, **bad).fit(X, Y)
