"""Large epsilons, few rows, infinite and huge cells: an answer or a clear error, and no warning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier

from cumae.concepts import Intervals, Thresholds
from cumae.errors import CumaeError, InvalidParameter
from cumae.learners import (
    AccuracyBoost,
    ActiveLearner,
    Adapter,
    GenericLearner,
    HypothesisLearner,
    IterLabelBoost,
    LabelBoost,
    OneVsRest,
    PrivateBooster,
    PrivateLearner,
    PrivateLogisticRegression,
    PublicDataReduction,
    SemiPrivateLearner,
)
from cumae.privacy import Budget

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

GRID = [[0.1], [0.5], [0.9]]
ONE = [(0, 1)]


def intervals(epsilon: float) -> PrivateLearner:
    return PrivateLearner(Intervals(), epsilon, columns=ONE, n_points=7)


def generic(epsilon: float) -> GenericLearner:
    return GenericLearner(Thresholds(), epsilon, columns=ONE)


def stable(epsilon: float) -> GenericLearner:
    return GenericLearner(Thresholds(), epsilon, 1e-6, sanitizer="stable")


LEARNERS: dict[str, Callable[[float], Any]] = {
    "private": intervals,
    "generic": generic,
    "generic, stable": stable,
    "semi-private": lambda e: SemiPrivateLearner(Intervals(), e),
    "label boost": lambda e: LabelBoost(intervals(e), Intervals(), 3 * e),
    "rounds": lambda e: IterLabelBoost(intervals(e), Intervals(), 3 * e),
    "active": lambda e: ActiveLearner(generic(e), e, n_labels=3),
    "active, stable": lambda e: ActiveLearner(stable(e), e, 1e-6, n_labels=3),
    "regression": lambda e: PrivateLogisticRegression(e, 1e-6, curves=4),
    "booster": lambda e: PrivateBooster(e, concept_class=Intervals(), columns=ONE),
    "booster, start": lambda e: PrivateBooster(e, 1e-6, n_rounds=2),
    "classes": lambda e: OneVsRest(intervals(e), [0, 1], e),
    "adapter": lambda e: Adapter(DummyClassifier(strategy="prior"), e),
    "table": lambda e: HypothesisLearner(intervals(e), GRID),
    "blocks": lambda e: AccuracyBoost(intervals(e), blocks=3),
    "blocks, stable": lambda e: AccuracyBoost(stable(e), blocks=3),
    "dummies": lambda e: PublicDataReduction(SemiPrivateLearner(None, e), GRID, 5, n_private=50),
}
UNLABELLED = ("generic", "generic, stable", "label boost", "rounds", "blocks, stable")


@pytest.mark.parametrize("cell", [None, np.inf, -1e308, 1e308])
@pytest.mark.parametrize("epsilon", [1.0, 1e3, 1e4, 1e6])
@pytest.mark.parametrize("kind", LEARNERS)
def test_an_answer_or_a_clear_error(kind: str, epsilon: float, cell: float | None) -> None:
    X = np.random.default_rng(0).random((10, 1))
    y = (X[:, 0] > 0.5).astype(int)
    if kind in UNLABELLED:
        y[5:] = -1
    if cell is not None:
        X[4] = cell
    budget = Budget(1e9, 0.1)
    learner = LEARNERS[kind](epsilon).set_params(budget=budget)
    public = [GRID] if kind == "semi-private" else []
    with np.errstate(all="warn"):
        try:
            y = y[learner.select(X)] if "active" in kind else y
            learner.fit(X, y, *public)
        except CumaeError:
            assert budget.spent == (0.0, 0.0)
            return
    assert learner.guarantee_.epsilon <= 3 * epsilon
    assert set(learner.predict(GRID).tolist()) <= {0, 1}


@pytest.mark.parametrize("kind", ["generic, stable", "active, stable"])
def test_costs_with_a_delta_end_where_there_is_no_privacy(kind: str) -> None:
    X = np.random.default_rng(0).random((60, 1))
    y = np.where(np.arange(60) < 30, X[:, 0] > 0.5, -1).astype(int)
    learner = LEARNERS[kind](1000.0)
    y = np.abs(y[learner.select(X)]) if "active" in kind else y
    with pytest.raises(InvalidParameter, match=r"epsilon=1000\.0"):
        learner.fit(X, y)
