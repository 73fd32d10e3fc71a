"""What QueryRelease takes: tables of all kinds; what it refuses, clearly and for nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from cumae import Budget, BudgetExhausted, InvalidData, InvalidParameter, QueryRelease
from cumae.concepts import Stumps, Thresholds
from tests.query_release import QUERIES, X, Y

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")


# What is refused, clearly and for nothing


@pytest.mark.parametrize(
    ("changes", "error", "what"),
    [
        ({"n_shards": 2000}, InvalidParameter, "shards of 2 rows; 2 classes need 4 rows at least"),
        ({"n_shards": 0}, InvalidParameter, "n_shards"),
        ({"n_shards": "many"}, InvalidParameter, "n_shards"),
        ({"max_queries": 0}, InvalidParameter, "max_queries"),
        ({"epsilon": -1.0}, InvalidParameter, "epsilon"),
        ({"delta": 2.0}, InvalidParameter, "delta"),
        ({"delta": 0.0, "mechanism": "gaussian"}, InvalidParameter, "delta"),
        ({"mechanism": "magic"}, InvalidParameter, "mechanism"),
        ({"alpha": 0.0}, InvalidParameter, "alpha"),
        ({"max_unstable": 0}, InvalidParameter, "max_unstable"),
        ({"classes": (0,)}, InvalidParameter, "class"),
        ({"concept_class": Thresholds()}, InvalidParameter, "both given"),
        ({"estimator": Stumps(), "classes": (0, 1, 2)}, InvalidParameter, "two"),
        ({"mechanism": "between", "classes": (0, 1, 2)}, InvalidParameter, "takes two"),
        ({"columns": {"age": (0, 1)}}, InvalidParameter, "age"),
    ],
)
def test_bad_parameters_cost_nothing(changes: dict[str, Any], error: Any, what: str) -> None:
    budget = Budget(1.0, 1e-6)
    release = QueryRelease(DecisionTreeClassifier(), budget=budget).set_params(**changes)
    with pytest.raises(error, match=what):
        release.fit(X, Y)
    assert budget.remaining == (1.0, 1e-6)
    with pytest.raises(NotFittedError):
        release.predict(X)


@pytest.mark.parametrize(
    ("queries", "what"),
    [
        (np.zeros((3, 5)), "X has 5 features, but QueryRelease is expecting 2 features"),
        (np.zeros(3), "1 features, but QueryRelease is .*Reshape your data"),
        ([[0.5, np.nan]], "missing value"),
        ([[0.5, None]], "missing value|no number"),
        ([[0.5, "a"]], "no number"),
        ([[0.5, np.inf]], "infinite in row 0, column 1"),
    ],
)
def test_bad_queries_cost_nothing(queries: Any, what: str) -> None:
    release = QueryRelease(max_queries=10).fit(X, Y)
    with pytest.raises(InvalidData, match=what):
        release.predict(queries)
    assert release.remaining_ == 10


def test_a_budget_is_paid_once_and_before() -> None:
    budget = Budget(1.5, 1e-5)
    release = QueryRelease(epsilon=1.0, max_queries=10, budget=budget)
    release.fit(X, Y).predict(QUERIES[:10])
    assert budget.remaining[0] == pytest.approx(0.5, abs=1e-3)
    with pytest.raises(BudgetExhausted):
        release.fit(X, Y)
    assert release.remaining_ == 0  # the earlier fit is still there, and still used up


def test_a_broken_fit_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    release = QueryRelease(max_queries=10).fit(X, Y)

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cumae.predictors.recipes.train_shards", stop)
    with pytest.raises(KeyboardInterrupt):
        release.fit(X, Y)
    with pytest.raises(NotFittedError):
        release.predict(QUERIES)
    assert not [name for name in vars(release) if name in ("_state_", "guarantee_")]


# Tables of all kinds


@pytest.mark.usefixtures("little_trained")
def test_frames_reach_pipelines_as_frames() -> None:
    frame = pd.DataFrame({"size": X[:, 0], "job": np.where(X[:, 1] > 0.5, "baker", "nurse")})
    model = make_pipeline(
        OneHotEncoder(handle_unknown="ignore"), DecisionTreeClassifier(max_depth=3)
    )
    labels = (X[:, 1] > 0.5).astype(int)
    release = QueryRelease(model, epsilon=3.0, max_queries=100).fit(frame[["job"]], labels)
    assert release.predict(pd.DataFrame({"job": ["baker", "nurse"]})).tolist() == [1, 0]
    with pytest.raises(InvalidData, match="columns"):
        release.predict([["baker"]])
    with pytest.raises(InvalidData, match=r"missing value .* row 0, column job"):
        release.predict(pd.DataFrame({"job": [None]}))
    declared = QueryRelease(
        epsilon=3.0, max_queries=100, columns={"size": (0, 1), "job": ["baker", "nurse"]}
    ).fit(frame, labels)
    assert declared.predict([[0.5, "baker"], [0.5, "nurse"]]).tolist() == [1, 0]
    assert declared.feature_names_in_.tolist() == ["size", "job"]


def test_concept_classes_take_frames_of_numbers() -> None:
    frame = pd.DataFrame({"size": X[:, 0]})
    for mechanism in ("auto", "offline"):
        release = QueryRelease(Thresholds(), 3.0, max_queries=20, mechanism=mechanism)
        asked = pd.DataFrame({"size": [0.05, 0.95]})
        assert release.fit(frame, Y).predict(asked).tolist() == [0, 1]


def test_a_row_of_text_in_a_list_is_not_seen() -> None:
    mixed: Any = X.tolist()
    mixed[5] = ["what", None]
    release = QueryRelease(epsilon=3.0, max_queries=100).fit(mixed, Y.tolist())
    assert release.predict([[0.05, 0.5], [0.95, 0.5]]).tolist() == [0, 1]


def test_estimators_without_a_stacked_form() -> None:
    model = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5)
    release = QueryRelease(model, epsilon=5.0, max_queries=20, n_shards=40).fit(X, Y)
    assert np.mean(release.predict([[0.05, 0.5], [0.95, 0.5]] * 5) == [0, 1] * 5) > 0.8
