"""Leaks that a hostile review found, each with the test that would find it again."""

from __future__ import annotations

import copy
import datetime as dt
import math
import os
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cumae.concepts import FiniteClass, Halfspaces, Rectangles, Threshold, Thresholds
from cumae.data import cells_of_columns
from cumae.errors import InvalidData, InvalidParameter, LiveState, TooFewRows
from cumae.learners import (
    AccuracyBoost,
    ActiveLearner,
    Adapter,
    Columns,
    GenericLearner,
    IterLabelBoost,
    LabelBoost,
    OneVsRest,
    PrivateBooster,
    PrivateLearner,
    PublicDataReduction,
    SemiPrivateLearner,
)
from cumae.privacy import REPLACE_ONE, Budget, Guarantee

pytestmark = pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows")

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


@pytest.mark.claim("SSPP")
def test_public_labels_of_a_type_that_no_float_can_join_are_refused_before_paying() -> None:
    budget = Budget(5.0, 0.0)
    learner = SemiPrivateLearner(Thresholds(), epsilon=1.0, budget=budget)
    public: Any = ([[BIG + 1], [3]], [0, 1])
    mixed: Any = [[1], [2], [3.5]]
    with pytest.raises(InvalidData, match="X together with X_public"):
        learner.fit(mixed, [0, 0, 1], *public)
    assert budget.spent == (0.0, 0.0)
    learner.fit([[1], [2], [3]], [0, 0, 1], *public)
    assert budget.spent == (1.0, 0.0)


@pytest.mark.claim("SSPP")
def test_public_dates_of_another_unit_add_to_the_score() -> None:
    days = np.arange("2020-01-01", "2020-02-01", dtype="datetime64[D]")
    later = (np.arange(len(days)) >= 12).astype(int)
    learner = SemiPrivateLearner(Thresholds(), epsilon=math.inf)
    learner.fit(days[:1].astype("datetime64[ns]"), later[:1], days, later)
    assert learner.predict(days).tolist() == later.tolist()


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
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LiveState, match="between select and fit"):
            duplicate(learner)
    assert vars(clone(learner)).keys() == learner.get_params(deep=False).keys()
    learner.fit(X, (X[asked, 0] > 0.5).astype(int))
    for again in (copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):  # noqa: S301
        assert len(again.select(X)) == 50  # a copy of what is fitted may go on by itself
    with pytest.raises(InvalidData, match="select"):
        learner.fit(X, (X[asked, 0] > 0.5).astype(int))


@pytest.mark.claim("ACTIVE")
def test_what_was_fitted_is_stored_while_the_next_rows_are_labelled() -> None:
    learner, X = active()
    learner.fit(X, (X[learner.select(X), 0] > 0.5).astype(int))
    before = learner.to_dict()
    learner.select(X)
    assert learner.to_dict() == before


@pytest.mark.claim("ACTIVE")
def test_a_sample_is_learnt_from_in_one_process() -> None:
    learner, X = active()
    y = (X[learner.select(X), 0] > 0.5).astype(int)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            learner.fit(X, y)
            os.write(writing, b"fitted")
        except LiveState:
            os.write(writing, b"refused")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 20) == b"refused"
    learner.fit(X, y)


HALF = PrivateLearner(Halfspaces(), epsilon=0.5, columns=[(0, 1), (0, 1)], n_points=3)
SOME: Any = {"n_labelled": 30, "n_unlabelled": 30}
WRAPPERS: dict[str, Any] = {
    "label boost": LabelBoost(HALF, Rectangles(), epsilon=3.0, **SOME),
    "label boost, foreign": LabelBoost(
        Adapter(LogisticRegression(), 0.5), Rectangles(), epsilon=3.0, **SOME
    ),
    "rounds": IterLabelBoost(HALF, Rectangles(), epsilon=3.0),
    "blocks": AccuracyBoost(HALF, blocks=3),
    "blocks of label boosts": AccuracyBoost(LabelBoost(HALF, Rectangles(), epsilon=3.0), blocks=3),
    "dummies": PublicDataReduction(
        SemiPrivateLearner(Halfspaces()), [[0.1, 0.1], [0.9, 0.9]], 5, n_private=300, one_in=2
    ),
    "classes": OneVsRest(HALF, [0, 1], 1.0),
    "active": ActiveLearner(HALF, epsilon=0.5, n_labels=30),
}


@pytest.mark.claim("ITER")
@pytest.mark.claim("REDUCE")
@pytest.mark.claim("OVR")
@pytest.mark.claim("ACTIVE")
@pytest.mark.parametrize("kind", WRAPPERS)
def test_a_row_is_refused_by_its_place_whoever_is_drawn(kind: str) -> None:
    X = np.random.default_rng(0).random((300, 2))
    y = np.where(np.arange(300) < 150, X[:, 0] > 0.5, -1).astype(int)
    if not WRAPPERS[kind].takes_unlabelled:
        y = np.abs(y)
    X[251, 1] = math.inf
    for seed in range(5):
        budget = Budget(100.0)
        learner = clone(WRAPPERS[kind]).set_params(budget=budget, random_state=seed)
        labels = np.abs(y[learner.select(X)]) if kind == "active" else y
        with pytest.raises(InvalidData, match="row 251, column 1"):
            learner.fit(X, labels)
        assert budget.spent == (0.0, 0.0)


@pytest.mark.claim("ITER")
@pytest.mark.parametrize("bad", [math.nan, None, "text"])
def test_cells_of_an_undeclared_column_are_read_before_any_is_drawn(bad: Any) -> None:
    X = np.random.default_rng(0).random((300, 1)).astype(object)
    y = np.where(np.arange(300) < 150, X[:, 0] > 0.5, -1).astype(int)
    X[251] = bad
    base = SemiPrivateLearner(Thresholds(), epsilon=0.5)
    for seed in range(5):
        budget = Budget(100.0)
        learner = LabelBoost(base, Thresholds(), 3.0, **SOME, budget=budget, random_state=seed)
        with pytest.raises(InvalidData, match=r"row 251|mixes"):
            learner.fit(X, y, X[:50])
        assert budget.spent == (0.0, 0.0)


@pytest.mark.parametrize(
    ("learner", "X", "public"),
    [
        (PrivateLearner(Thresholds()), [["a"], ["b"]], [[1.0], [2.0]]),
        (SemiPrivateLearner(Thresholds()), [["a"], ["b"]], [[1.0], [2.0]]),
        (GenericLearner(Thresholds()), [["a"], ["b"]], None),
        (PrivateLearner(Thresholds(), columns=[(0, 1)] * 2), [[0.0, 1.0], [1.0, 0.0]], None),
        (PrivateLearner(Rectangles(), columns=[(0, 1)] * 4), [[0.0] * 4, [1.0] * 4], None),
        (PrivateBooster(concept_class=Thresholds()), [[0.0, 1.0], [1.0, 0.0]], None),
        (PrivateLearner(FiniteClass([Threshold(1)])), [["a"], ["b"]], None),
        (
            AccuracyBoost(PrivateLearner(Thresholds(), columns=[(0, 1)]), blocks=1),
            np.zeros((0, 1)),
            None,
        ),
    ],
    ids=["text", "text again", "text for a sanitizer", "width", "boxes", "rounds", "list", "none"],
)
def test_what_cannot_be_learnt_is_refused_before_it_is_paid(
    learner: Any, X: Any, public: Any
) -> None:
    budget = Budget(10.0)
    learner.set_params(budget=budget)
    y = [0, -1] if isinstance(learner, GenericLearner) else [0, 1]
    with pytest.raises((InvalidData, InvalidParameter)):
        learner.fit(X, y[: len(X)], public)
    assert budget.spent == (0.0, 0.0)


@pytest.mark.claim("REDUCE")
def test_warnings_of_a_foreign_base_are_dropped_but_not_ours() -> None:
    class Loud(DummyClassifier):  # type: ignore[misc]  # untyped base
        epsilon, delta = 1.0, 0.0

        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Loud:
            warnings.warn("bad cell 42.5", stacklevel=2)
            warnings.warn("few rows", TooFewRows, stacklevel=2)
            self.guarantee_ = Guarantee(1.0, 0.0, "a row", claims=(), relation=REPLACE_ONE)
            return self

    with pytest.warns(TooFewRows, match="few rows") as heard:
        AccuracyBoost(Loud(), 1.0, 0.0, blocks=1).fit([[1.0], [2.0]] * 9, [0, 1] * 9)
    assert len(heard) == 1


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
