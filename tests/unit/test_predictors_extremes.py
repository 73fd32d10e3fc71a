"""Huge epsilons, few rows and cells of any size: an answer or a clear error, and no warning."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from cumae import (
    AgnosticQueryRelease,
    Budget,
    CumaeError,
    EverlastingPredictor,
    GenericBBL,
    QueryRelease,
    UniversalQueryRelease,
)
from cumae.checks.payments import done_or_unpaid
from cumae.concepts import Thresholds
from cumae.errors import AnswersDrift, TooFewRows, VotesIgnored, WeakPrivacy

pytestmark = pytest.mark.usefixtures("little_trained")

X = np.random.default_rng(5).random((400, 1))
Y = (X[:, 0] > 0.5).astype(int)

PREDICTORS: dict[str, Any] = {
    "everlasting": lambda e: EverlastingPredictor(Thresholds(), e),
    "everlasting, trees": lambda e: EverlastingPredictor(None, e, prior=False),
    "everlasting, prior": lambda e: EverlastingPredictor(None, e, columns=[(0, 1)]),
    "everlasting, fresh": lambda e: EverlastingPredictor(Thresholds(), e, fresh=True, growth=2.0),
    "query": lambda e: QueryRelease(Thresholds(), e, max_queries=20),
    "query, stability": lambda e: QueryRelease(Thresholds(), e, 1e-6, 20, "stability"),
    "query, between": lambda e: QueryRelease(Thresholds(), e, 1e-6, 20, "between"),
    "query, laplace": lambda e: QueryRelease(Thresholds(), e, 0.0, 20, "laplace"),
    "query, offline": lambda e: QueryRelease(Thresholds(), e, 1e-6, 20, "offline"),
    "agnostic": lambda e: AgnosticQueryRelease(Thresholds(), e, max_queries=20),
    "universal": lambda e: UniversalQueryRelease(Thresholds(), e, n_first=20),
    "universal, student": lambda e: UniversalQueryRelease(
        DecisionTreeClassifier(max_depth=2), e, n_first=20
    ),
    "bbl": lambda e: GenericBBL(Thresholds(), e),
    "bbl, between": lambda e: GenericBBL(Thresholds(), e, votes="between"),
}


@pytest.mark.parametrize("cell", [0.5, math.inf, 1.7e308])
@pytest.mark.parametrize("epsilon", [1.0, 1e3, 1e6, 1e300])
@pytest.mark.parametrize("name", PREDICTORS)
def test_an_answer_or_a_clear_error(name: str, epsilon: float, cell: float) -> None:
    for n_rows in (10, 400):
        rows = X[:n_rows].copy()
        rows[3] = cell
        with warnings.catch_warnings(), np.errstate(all="warn"):
            warnings.simplefilter("error")
            for kind in (AnswersDrift, TooFewRows, VotesIgnored, WeakPrivacy):
                warnings.simplefilter("ignore", kind)
            budget = Budget(1e308, 0.5)
            try:
                one = PREDICTORS[name](epsilon).set_params(budget=budget).fit(rows, Y[:n_rows])
            except CumaeError as error:
                assert len(str(error)) > 20  # noqa: PT017
                assert budget.entries == ()
            else:
                assert set(one.predict(X[5:8]).tolist()) <= {0, 1}


@pytest.mark.parametrize("name", PREDICTORS)
def test_noise_beyond_what_can_be_drawn_is_refused_unpaid(name: str) -> None:
    """A fit ends well, or nothing is paid, also with next to no epsilon and delta."""

    def fit(budget: Budget) -> None:
        one = PREDICTORS[name](1e-9).set_params(budget=budget)
        if one.delta:
            one.set_params(delta=1e-15)
        one.fit(X, Y)

    with warnings.catch_warnings():
        for kind in (AnswersDrift, TooFewRows, VotesIgnored, WeakPrivacy):
            warnings.simplefilter("ignore", kind)
        done_or_unpaid(fit)
