"""Clones that fit in a loop warn once that each fit pays, and notebooks show what is promised."""

from __future__ import annotations

import gc
import math
import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from cumae import (
    Adapter,
    Budget,
    BudgetExhausted,
    EverlastingPredictor,
    EveryFitPays,
    Guarantee,
    IterLabelBoost,
    LabelBoost,
    OneVsRest,
    PrivateBooster,
    PrivateLearner,
    PrivateLogisticRegression,
    QueryRelease,
)
from cumae.concepts import Thresholds
from cumae.ensembles.trainer import Trainer
from cumae.errors import AnswersDrift, TooFewRows
from cumae.estimators import own_clone
from cumae.privacy import ZCDP, Pure

GENERATOR = np.random.default_rng(5)
X = GENERATOR.random((600, 2))
Y = (X[:, 0] > 0.5).astype(int)
BOUNDS = [(0, 1), (0, 1)]
BOOSTER = PrivateBooster(epsilon=1.0, columns=BOUNDS)
LOGISTIC = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, columns=BOUNDS)
# With so large an epsilon that nothing else warns.
RELEASE = QueryRelease(DecisionTreeClassifier(max_depth=2), 400.0, max_queries=1000, n_shards=20)


def heard(work: Any) -> list[str]:
    """Run something and return what it warned about fits."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [str(one.message) for one in caught if issubclass(one.category, EveryFitPays)]


# --- searches


@pytest.mark.parametrize("model", [LOGISTIC, BOOSTER, RELEASE], ids=lambda m: type(m).__name__)
def test_cross_validation_warns_once(model: Any) -> None:
    said = heard(lambda: cross_val_score(own_clone(model), X, Y, cv=3))
    assert len(said) == 1
    assert type(model).__name__ in said[0]
    assert "Every fit pays" in said[0]
    assert "Budget" in said[0]


def test_a_grid_search_warns_once_and_each_fit_pays() -> None:
    budget = Budget(10.0, 1e-4)
    model = own_clone(LOGISTIC).set_params(budget=budget)
    search = GridSearchCV(model, {"epsilon": [0.5, 1.0]}, cv=2)
    assert len(heard(lambda: search.fit(X, Y))) == 1
    assert len(budget.entries) == 5
    assert heard(lambda: search.fit(X, Y)) == []  # the same original: it was said


def test_another_original_warns_anew() -> None:
    for _ in range(2):
        fresh = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, columns=BOUNDS)
        assert len(heard(lambda one=fresh: cross_val_score(one, X, Y, cv=2))) == 1


def test_a_pipeline_is_looked_into() -> None:
    pipeline = make_pipeline(
        StandardScaler(), own_clone(LOGISTIC).set_params(columns=[(-3, 3)] * 2)
    )
    assert len(heard(lambda: cross_val_score(pipeline, X, Y, cv=2))) == 1


def test_the_warning_comes_before_the_payment() -> None:
    budget = Budget(10.0, 1e-4)
    model = own_clone(LOGISTIC).set_params(budget=budget)
    clone(model).fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error", EveryFitPays)
        with pytest.raises(EveryFitPays):
            clone(model).fit(X, Y)
    assert len(budget.entries) == 1


# --- no false alarms


def test_fits_that_are_no_search_do_not_warn() -> None:
    model = own_clone(LOGISTIC)
    assert heard(lambda: [model.fit(X, Y) for _ in range(3)]) == []
    alone = clone(model)
    assert heard(lambda: [alone.fit(X, Y) for _ in range(3)]) == []
    separate = [PrivateLogisticRegression(1.0, 1e-6, columns=BOUNDS) for _ in range(3)]
    assert heard(lambda: [each.fit(X, Y) for each in separate]) == []


def test_without_privacy_nothing_is_paid() -> None:
    free = PrivateBooster(epsilon=math.inf, columns=BOUNDS)
    assert heard(lambda: cross_val_score(free, X, Y, cv=3)) == []
    one = PrivateBooster(epsilon=1.0, columns=BOUNDS)
    search = GridSearchCV(one, {"epsilon": [math.inf]}, cv=2)
    assert heard(lambda: search.fit(X, Y)) == []


def test_a_fit_that_was_refused_does_not_count() -> None:
    model = own_clone(LOGISTIC)

    def work() -> None:
        for _ in range(3):
            with pytest.raises(ValueError, match="epsilon"):
                clone(model).set_params(epsilon=-1.0).fit(X, Y)
        clone(model).fit(X, Y)

    assert heard(work) == []


X_ONE = X[:, :1]
THREE = np.digitize(X[:, 0], [0.3, 0.6])
GENERIC = PrivateLearner(Thresholds(), epsilon=1.0, columns=[(0, 1)])
WRAPPED: list[tuple[Any, Any, Any]] = [
    (OneVsRest(own_clone(BOOSTER), epsilon=3.0, classes=(0, 1, 2)), X, THREE),
    (EverlastingPredictor(DecisionTreeClassifier(), columns=BOUNDS), X, Y),
    (EverlastingPredictor(DecisionTreeClassifier(), prior=LOGISTIC, columns=None), X, Y),
    (QueryRelease(Adapter(DecisionTreeClassifier()), n_shards=10), X, Y),
    (QueryRelease(own_clone(BOOSTER), n_shards=5, max_queries=3), X, Y),
    (QueryRelease(make_pipeline(StandardScaler(), own_clone(BOOSTER)), n_shards=5), X, Y),
]


@pytest.mark.parametrize(("model", "rows", "labels"), WRAPPED, ids=lambda v: type(v).__name__)
@pytest.mark.filterwarnings("ignore::cumae.errors.TooFewRows", "ignore::cumae.errors.AnswersDrift")
def test_clones_inside_of_an_estimator_do_not_warn(model: Any, rows: Any, labels: Any) -> None:
    assert heard(lambda: model.fit(rows, labels)) == []
    # A single clone of the whole is fitted once more: nothing to say about that either.
    assert heard(lambda: clone(model).fit(rows, labels)) == []


def test_a_warning_does_not_break_a_shard() -> None:
    """Others clone inside of a shard, too, where every warning is a failure."""
    model = CalibratedClassifierCV(own_clone(BOOSTER), cv=3)
    assert Trainer(model, 2, None).train_or_raise(X, Y, 7) is not None


@pytest.mark.parametrize("wrapper", [LabelBoost, IterLabelBoost])
def test_label_boosting_does_not_warn(wrapper: Any) -> None:
    labels = np.where(np.arange(len(X)) < 200, X_ONE[:, 0] > 0.5, -1)
    model = wrapper(own_clone(GENERIC), epsilon=5.0, delta=1e-3, concept_class=Thresholds())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert heard(lambda: clone(model).fit(X_ONE, labels)) == []


def test_a_wrapper_in_a_search_warns_for_itself() -> None:
    model = OneVsRest(own_clone(BOOSTER), epsilon=3.0, classes=(0, 1, 2))
    said = heard(lambda: cross_val_score(model, X, THREE, cv=2))
    assert len(said) == 1
    assert "OneVsRest" in said[0]


# --- what clones carry


def test_clones_and_pickles_carry_parameters_only() -> None:
    model = own_clone(LOGISTIC)
    copies = [clone(model), clone(clone(model))]
    for each in copies:
        assert set(vars(each)) == set(each.get_params(deep=False))
    said = heard(lambda: [pickle.loads(pickle.dumps(each)).fit(X, Y) for each in copies])  # noqa: S301
    assert said == []  # a pickle is no clone of anything


def test_nothing_keeps_a_clone_alive() -> None:
    import weakref

    model = own_clone(LOGISTIC)
    copy = clone(model)
    copy.fit(X, Y)
    seen = weakref.ref(copy), weakref.ref(model)
    del copy, model
    gc.collect()
    assert [each() for each in seen] == [None, None]


def test_an_own_clone_is_a_clone() -> None:
    model = own_clone(LOGISTIC).fit(X, Y)
    copy = own_clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "guarantee_")
    assert heard(lambda: [own_clone(model).fit(X, Y) for _ in range(3)]) == []


# --- notebooks

HOSTILE = "<script>alert('x')</script>"
ESCAPED = "&lt;script&gt;"


def test_a_guarantee_is_shown_as_its_sentence() -> None:
    shown = Guarantee.of(Pure(1.0), protects=HOSTILE, claims=(HOSTILE,))._repr_html_()
    assert "differential privacy" in shown
    assert "<script" not in shown
    assert ESCAPED in shown


@pytest.mark.parametrize("accounting", ["sum", "zcdp"])
def test_an_account_is_shown_with_its_payments(accounting: str) -> None:
    budget = Budget(1.0, 1e-6, accounting=accounting)
    budget.spend(ZCDP(0.001), delta=1e-7 if accounting == "sum" else 0.0, what=HOSTILE)
    shown = budget._repr_html_()
    assert "Budget(epsilon=1.0, delta=1e-06" in shown
    assert "left" in shown
    assert shown.count("<tr>") == 2
    assert "<script" not in shown
    assert ESCAPED in shown


@pytest.mark.parametrize("model", [BOOSTER, RELEASE], ids=lambda m: type(m).__name__)
def test_a_fitted_estimator_is_shown_with_its_promise(model: Any) -> None:
    frame = pd.DataFrame(X, columns=[HOSTILE, "b"])
    wanted = {"classes": ["no", HOSTILE]}
    if isinstance(model, PrivateBooster):
        wanted["columns"] = {HOSTILE: (0, 1), "b": (0, 1)}  # type: ignore[assignment]
    one = own_clone(model).set_params(**wanted)
    assert "differential privacy" not in one._repr_html_()
    one.fit(frame, np.where(Y, HOSTILE, "no"))
    for shown in (one._repr_html_(), one._repr_mimebundle_()["text/html"]):
        assert str(one.guarantee_).splitlines()[0] in shown
        assert HOSTILE not in shown
        assert "_state_" not in shown  # where a predictor keeps what nobody may see
    with config_context(display="text"):
        assert "text/html" not in one._repr_mimebundle_()
        assert not hasattr(one, "_repr_html_")


def test_the_account_of_a_shown_estimator_is_not_copied() -> None:
    one = own_clone(BOOSTER).set_params(budget=Budget(1.0)).fit(X, Y)
    assert "Budget(epsilon=1.0" in one._repr_html_()
    with pytest.raises(BudgetExhausted):
        own_clone(one).fit(X, Y)


@pytest.mark.parametrize(
    "model",
    [
        QueryRelease(epsilon=0.5, max_queries=1_000, random_state=0),
        EverlastingPredictor(epsilon=0.2, prior=False, random_state=0),
        PrivateBooster(0.1, 1e-6, columns=[(0, 1)] * 2, random_state=0),
        OneVsRest(PrivateBooster(columns=[(0, 1)] * 2), (0, 1, 2), 0.1, 1e-6, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_warning_names_the_line_that_called_cumae(model: Any) -> None:
    rows = np.random.default_rng(0).random((100, 2))
    labels = (rows[:, 0] > 0.5).astype(int)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model.fit(rows, labels)
    found = [one for one in heard if one.category in (TooFewRows, AnswersDrift)]
    assert found
    assert {one.filename for one in found} == {__file__}
