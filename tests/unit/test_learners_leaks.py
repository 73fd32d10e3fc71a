"""Leaks that a hostile review found, each with the test that would find it again."""

from __future__ import annotations

import copy
import datetime as dt
import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cumae.concepts import Halfspaces, Thresholds
from cumae.errors import InvalidData, InvalidParameter, LiveState
from cumae.learners import (
    AccuracyBoost,
    ActiveLearner,
    Adapter,
    Columns,
    GenericLearner,
    LabelBoost,
    PrivateBooster,
    PrivateLearner,
    PrivateLogisticRegression,
    SemiPrivateLearner,
)
from cumae.learners.columns import cells_of_columns
from cumae.privacy import Guarantee

BIG = 2**53


def differing_rows(columns: Columns, first: Any, second: Any) -> int:
    one, other = columns.encode(first), columns.encode(second)
    return int((one != other).any(axis=1).sum())


@pytest.mark.parametrize("last", [[BIG, 1.5], [0.5, 1], ["text", 1], [None, 1], [BIG, True]])
def test_one_row_of_a_list_changes_its_own_row_only(last: list[Any]) -> None:
    columns = Columns({0: [BIG, BIG + 1, 7]}, None, 2)
    rows = [[BIG + 1, 1]] * 20
    assert differing_rows(columns, [*rows, [7, 1]], [*rows, last]) <= 1


@pytest.mark.parametrize("kind", ["Int64", "category"])
def test_one_missing_cell_of_a_frame_changes_its_own_row_only(kind: str) -> None:
    columns = Columns({"code": [BIG, BIG + 1, 7]}, ["code"], 1)
    whole = pd.Series([BIG + 1] * 20 + [7], dtype="Int64")
    gone = pd.Series([BIG + 1] * 20 + [None], dtype="Int64")
    frames = [pd.DataFrame({"code": s.astype(kind)}) for s in (whole, gone)]  # type: ignore[call-overload]
    assert differing_rows(columns, *frames) == 1


def test_units_of_dates_are_read_cell_by_cell() -> None:
    days = [dt.date(2020, 1, 1), dt.date(2020, 1, 2)]
    columns = Columns({0: days}, None, 1)
    rows: list[Any] = [[np.datetime64("2020-01-02")]] * 20
    one = columns.encode([*rows, [np.datetime64("2020-01-01")]])
    other = columns.encode([*rows, [np.datetime64("2020-01-01T05")]])
    assert np.array_equal(one[:20], other[:20])


def test_cells_that_cannot_be_compared_are_no_category() -> None:
    columns = Columns({0: ["a", "b", "c"]}, None, 1)
    cells = np.array([["a"], [pd.NA], ["c"]], dtype=object)
    assert columns.encode(cells).tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]


def test_a_float_among_long_integers_does_not_round_the_others() -> None:
    """With a single raw column, too: all rows but one stay what they are."""
    points = [[BIG], [BIG + 1]]
    for last in (BIG, 0.5):
        learner = PrivateLearner(Thresholds("above"), epsilon=math.inf)
        rows: list[Any] = [[BIG + 1]] * 50 + [[last]]
        try:
            learner.fit(rows, [1] * 50 + [0], points)
        except InvalidData:  # refused for the owner to see, while nothing was drawn
            continue
        assert learner.predict([[BIG], [BIG + 1]]).tolist() == [0, 1]


def test_public_labels_of_another_type_do_not_round_private_rows() -> None:
    learner = SemiPrivateLearner(Thresholds("above"), epsilon=math.inf)
    private = np.full((50, 1), BIG + 1)
    learner.fit(private, np.ones(50), np.array([[BIG], [BIG + 1]]), [0, -1])
    assert learner.predict(np.array([[BIG + 1]])).tolist() == [1]


def active(**changes: Any) -> tuple[ActiveLearner, Any]:
    settings: dict[str, Any] = {"epsilon": 1.0, "n_labels": 50, "n_rows": 60}
    base = GenericLearner(Thresholds(), epsilon=1.0, columns=[(0, 1)])
    return ActiveLearner(base, **(settings | changes)), np.linspace(0, 1, 500).reshape(-1, 1)


@pytest.mark.claim("ACTIVE")
@pytest.mark.parametrize("change", [{"n_rows": 55}, {"variant": "paper"}, {"n_labels": 40}])
def test_parameters_must_not_change_between_select_and_fit(change: dict[str, Any]) -> None:
    learner, X = active()
    asked = learner.select(X)
    learner.set_params(**change)
    with pytest.raises((InvalidParameter, InvalidData)):
        learner.fit(X, (X[asked, 0] > 0.5).astype(int))


@pytest.mark.claim("ACTIVE")
def test_a_seeded_sample_voids_the_guarantee() -> None:
    learner, X = active(random_state=3)
    asked = learner.select(X)
    learner.set_params(random_state=None)
    learner.fit(X, (X[asked, 0] > 0.5).astype(int))
    assert learner.guarantee_.void


@pytest.mark.claim("ACTIVE")
def test_a_sample_is_learnt_from_once() -> None:
    learner, X = active()
    asked = learner.select(X)
    for duplicate in (copy.deepcopy, pickle.dumps):
        with pytest.raises(LiveState):
            duplicate(learner)
    learner.fit(X, (X[asked, 0] > 0.5).astype(int))
    copy.deepcopy(learner)
    with pytest.raises(InvalidData, match="select"):
        learner.fit(X, (X[asked, 0] > 0.5).astype(int))


@pytest.mark.claim("BOOST")
def test_a_broken_fit_leaves_no_model_under_an_old_guarantee(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X = np.random.default_rng(0).random((600, 1))
    y = (X[:, 0] > 0.5).astype(int)
    model = PrivateBooster(0.1, n_rounds=3, columns=[(0, 1)]).fit(X, y)
    model.set_params(epsilon=50.0)
    calls = []

    def fails(*_: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return Thresholds().erm([0.0, 1.0], [0, 1])

    monkeypatch.setattr(PrivateBooster, "_choose", fails)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "guarantee_")
    with pytest.raises(Exception, match="not fitted"):
        model.predict(X)


@pytest.mark.claim("ITER")
def test_parts_of_a_boosted_base_promise_no_more_than_the_whole() -> None:
    x = np.random.default_rng(0).random((4000, 1))
    y = np.where(np.arange(4000) < 1500, x[:, 0] > 0.4, -1)
    inner = PrivateLearner(Thresholds(), epsilon=0.5, columns=[(0, 1)])
    base = AccuracyBoost(inner, 0.5, 0.0, blocks=3)
    learner = LabelBoost(base, Thresholds(), epsilon=3.0).fit(x, y)

    def promises(part: Any) -> list[Guarantee]:
        found = (
            [part.guarantee_] if isinstance(getattr(part, "guarantee_", None), Guarantee) else []
        )
        for value in vars(part).values() if hasattr(part, "__dict__") else []:
            for item in value if isinstance(value, list) else [value]:
                if hasattr(item, "guarantee_"):
                    found += promises(item)
        return found

    found = promises(learner)
    assert len(found) > 2
    assert {promise.epsilon for promise in found} == {learner.guarantee_.epsilon}


@pytest.mark.parametrize("kind", ["booster", "private", "label boost"])
def test_infinite_cells_are_refused_before_anything_is_drawn(kind: str) -> None:
    X = np.random.default_rng(0).random((300, 2))
    y = (X[:, 0] > 0.5).astype(int)
    X[7, 1] = math.inf
    models: dict[str, Any] = {
        "booster": PrivateBooster(concept_class=Halfspaces(), columns=[(0, 1), (0, 1)]),
        "private": PrivateLearner(Halfspaces(), columns=[(0, 1), (0, 1)]),
        "label boost": LabelBoost(
            PrivateLearner(Halfspaces(), epsilon=0.1, columns=[(0, 1), (0, 1)]),
            Halfspaces(),
            epsilon=3.0,
        ),
    }
    for _ in range(5):
        with pytest.raises(InvalidData, match="row 7, column 1"):
            models[kind].fit(X, y)


def test_seeds_inside_a_pipeline_are_seen() -> None:
    seeded = DummyClassifier(strategy="stratified", random_state=0)
    with pytest.raises(InvalidParameter, match="random_state"):
        Adapter(make_pipeline(StandardScaler(), seeded), 1.0).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.claim("GENERIC")
def test_with_public_rows_the_roles_of_rows_are_public_too() -> None:
    X = np.linspace(0, 1, 100).reshape(-1, 1)
    y = np.where(np.arange(100) < 50, X[:, 0] > 0.3, -1)
    learner = GenericLearner(Thresholds(), 1.0).fit(X, y, X)
    assert "which rows are labelled is public" in learner.guarantee_.relation


@pytest.mark.claim("LOGREG")
def test_columns_of_two_declared_values_have_no_bins() -> None:
    X = np.tile(np.arange(40.0), 100).reshape(-1, 1)
    model = PrivateLogisticRegression(1.0, 1e-6, bounds=[(0, 5, 5)], bins=16)
    model.fit(X, X[:, 0] > 20, X[:40])
    assert len(model.weights_) == 2


@pytest.mark.claim("REDUCE")
def test_what_a_foreign_base_says_is_dropped() -> None:
    class Loud(DummyClassifier):  # type: ignore[misc]  # untyped base
        epsilon, delta = 1.0, 0.0

        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Loud:
            raise RuntimeError("bad cell 42.5")

    with pytest.raises(InvalidData) as caught:
        AccuracyBoost(Loud(), 1.0, 0.0, blocks=1).fit([[1.0], [2.0]], [0, 1])
    assert "42.5" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_missing_category_leaves_the_other_cells_whole() -> None:
    # pandas reads categories of whole numbers as floats as soon as one cell is missing.
    whole = pd.DataFrame({"code": pd.Categorical([2**53 + 1, 2**53 + 1, 5])})
    broken = pd.DataFrame({"code": pd.Categorical([2**53 + 1, 2**53 + 1, None])})
    (here,), (there,) = cells_of_columns(whole), cells_of_columns(broken)
    assert here[:2].tolist() == there[:2].tolist() == [2**53 + 1] * 2
    assert [type(cell) for cell in here[:2]] == [type(cell) for cell in there[:2]]
