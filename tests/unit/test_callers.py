"""A learner behind a scaler, or in a search, does not show a guarantee that does not hold."""

from __future__ import annotations

import json
import math
import warnings
from types import FunctionType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
    cross_validate,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier

from cumae import (
    Budget,
    EverlastingPredictor,
    Guarantee,
    GuaranteeVoid,
    OneVsRest,
    PrivateBooster,
    PrivateClassifier,
    PrivateKernelClassifier,
    PrivateLogisticRegression,
    QueryRelease,
)
from cumae.callers import ENCODERS, LEARN_NOTHING, around
from cumae.estimators import own_clone

GENERATOR = np.random.default_rng(3)
X = GENERATOR.random((600, 2))
Y = (X[:, 0] > 0.5).astype(int)
BOUNDS = [(-4, 4), (-4, 4)]
LOGISTIC = PrivateLogisticRegression(1.0, 1e-6, columns=BOUNDS)
OURS = [
    LOGISTIC,
    PrivateBooster(1.0, columns=BOUNDS),
    PrivateKernelClassifier(1.0, 1e-6, columns=BOUNDS),
    PrivateClassifier(1.0, 1e-6, columns=BOUNDS),
    OneVsRest(PrivateBooster(0.5, columns=BOUNDS), (0, 1, 2), epsilon=3.0),
    QueryRelease(DecisionTreeClassifier(max_depth=2), 400.0, max_queries=1000, n_shards=20),
    EverlastingPredictor(DecisionTreeClassifier(max_depth=2), 400.0, prior=None),
]
QUIET = pytest.mark.filterwarnings(
    "ignore::cumae.errors.TooFewRows",
    "ignore::cumae.errors.AnswersDrift",
    "ignore::cumae.errors.EveryFitPays",
)
pytestmark = QUIET


def heard(work: Any) -> list[str]:
    """Run something and return what it warned about guarantees."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [str(one.message) for one in caught if issubclass(one.category, GuaranteeVoid)]


# --- a scaler before a learner


@pytest.mark.claim("QUERY", "BBL", "REDUCE")
@pytest.mark.parametrize("model", OURS, ids=lambda model: type(model).__name__)
def test_a_scaler_before_an_estimator_of_ours_warns_and_voids_its_guarantee(model: Any) -> None:
    piped = make_pipeline(StandardScaler(), clone(model))
    (said,) = heard(lambda: piped.fit(X, Y))
    assert "StandardScaler before it in a Pipeline learnt from the rows" in said
    assert type(model).__name__ in said
    promised = piped[-1].guarantee_
    assert promised.void
    assert not promised.within(1e9, 1.0)
    assert str(promised).startswith("VOID, no privacy at all, because StandardScaler before it")
    assert any("StandardScaler" in one for one in promised.assumptions)
    # The same estimator, fitted to the rows themselves, keeps what it promises.
    assert heard(lambda: piped[-1].fit(X, Y)) == []
    assert not piped[-1].guarantee_.void


def test_the_warning_comes_before_the_payment() -> None:
    budget = Budget(10.0, 1e-4)
    piped = make_pipeline(StandardScaler(), clone(LOGISTIC).set_params(budget=budget))
    with warnings.catch_warnings():
        warnings.simplefilter("error", GuaranteeVoid)
        with pytest.raises(GuaranteeVoid):
            piped.fit(X, Y)
    assert budget.entries == ()


def test_a_void_guarantee_stays_void_in_a_file(tmp_path: Any) -> None:
    piped = make_pipeline(StandardScaler(), PrivateClassifier(1.0, 1e-6, columns=BOUNDS))
    assert len(heard(lambda: piped.fit(X, Y))) == 1
    piped[-1].save(tmp_path / "model.json")
    again = PrivateClassifier.load(tmp_path / "model.json")
    assert again.guarantee_.void
    assert "StandardScaler" in str(again.guarantee_)
    plain = json.loads(json.dumps(again.guarantee_.to_dict()))
    assert Guarantee.from_dict(plain) == again.guarantee_


def test_what_is_inside_of_a_void_one_is_void() -> None:
    piped = make_pipeline(StandardScaler(), clone(OURS[4]))
    heard(lambda: piped.fit(X, Y))
    assert all(member.guarantee_.void for member in piped[-1].members_)


def test_without_privacy_nothing_can_be_void() -> None:
    free = PrivateBooster(math.inf, columns=BOUNDS)
    assert heard(lambda: make_pipeline(StandardScaler(), free).fit(X, Y)) == []


# --- steps that learn nothing, and steps that do


def same(table: Any) -> Any:
    return table


class OwnNormalizer(Normalizer):  # type: ignore[misc]  # its base has no types
    """A subclass may learn anything."""


GRID = [["0", "1"], ["0", "1"]]
FINE: dict[str, Any] = {
    "nothing": "passthrough",
    "normalizer": Normalizer(),
    "binarizer": Binarizer(threshold=0.5),
    "polynomial": PolynomialFeatures(1, include_bias=False),
    "pipeline": make_pipeline(Normalizer(), "passthrough"),
    "union": FeatureUnion([("one", Binarizer()), ("no", "drop")]),
    "columns": ColumnTransformer([("a", Binarizer(), [0])], remainder="passthrough"),
    "codes": OrdinalEncoder(
        categories=[[0.0, 1.0]] * 2, handle_unknown="use_encoded_value", unknown_value=-1
    ),
}
LEARNERS: dict[str, Any] = {
    "scaler": StandardScaler(),
    "components": PCA(2),
    "selection": SelectKBest(k=1),
    "subclass": OwnNormalizer(),
    "within a pipeline": make_pipeline(Normalizer(), StandardScaler()),
    "within a union": FeatureUnion([("one", Normalizer()), ("two", StandardScaler())]),
    "within columns": ColumnTransformer([("a", StandardScaler(), [0])], remainder="passthrough"),
    "remainder": ColumnTransformer([("a", Normalizer(), [0])], remainder=StandardScaler()),
    "columns by a function": ColumnTransformer([("a", Normalizer(), lambda table: [0, 1])]),
    "categories of the rows": OrdinalEncoder(),
}


@pytest.mark.parametrize("name", FINE)
def test_steps_that_learn_nothing_are_fine(name: str) -> None:
    width = 2
    model = PrivateBooster(1.0, columns=[(-4, 4)] * width)
    piped = make_pipeline(clone(FINE[name]) if name != "nothing" else FINE[name], model)
    assert heard(lambda: piped.fit(X, Y)) == []
    assert not piped[-1].guarantee_.void
    assert piped[-1].guarantee_ == clone(model).fit(X, Y).guarantee_


@pytest.mark.parametrize("name", LEARNERS)
def test_every_other_step_voids(name: str) -> None:
    width = {"selection": 1, "within a union": 4}.get(name, 2)
    width = 1 if name == "columns by a function" else width
    model = PrivateBooster(1.0, columns=[(-1e3, 1e3)] * (2 if width == 1 else width))
    if name == "selection":
        model = PrivateBooster(1.0, columns=[(-4, 4)])
    piped = make_pipeline(clone(LEARNERS[name]), model)
    assert len(heard(lambda: piped.fit(X, Y))) == 1
    assert piped[-1].guarantee_.void


def test_a_function_is_believed_and_that_is_listed() -> None:
    piped = make_pipeline(FunctionTransformer(same), clone(LOGISTIC)).fit(X, Y)
    assert not piped[-1].guarantee_.void
    assert any(
        "FunctionTransformer changes each row" in one for one in piped[-1].guarantee_.assumptions
    )
    scaler = FrozenEstimator(StandardScaler().fit(GENERATOR.random((50, 2))))  # of public rows
    piped = make_pipeline(scaler, clone(LOGISTIC)).fit(X, Y)
    assert not piped[-1].guarantee_.void
    assert any("FrozenEstimator" in one for one in piped[-1].guarantee_.assumptions)


def test_declared_categories_learn_nothing_but_rare_ones_do() -> None:
    cells = np.where(X > 0.5, "1", "0").astype(object)
    columns = [(0, 1)] * 4
    cases: list[tuple[dict[str, Any], bool]] = [
        ({}, False),
        ({"min_frequency": 5}, True),
        ({"max_categories": 2}, True),
        ({"categories": "auto"}, True),
    ]
    for options, void in cases:
        given: dict[str, Any] = {
            "categories": GRID,
            "handle_unknown": "ignore",
            "sparse_output": False,
        } | options
        piped = make_pipeline(OneHotEncoder(**given), PrivateBooster(1.0, columns=columns))
        heard(lambda piped=piped: piped.fit(cells, Y))
        assert piped[-1].guarantee_.void == void, options


def test_listed_names_exist_in_this_version() -> None:
    """A name that was moved fails closed; here it is noticed."""
    import importlib

    for names in (LEARN_NOTHING, ENCODERS):
        for module, listed in names.items():
            for name in listed:
                assert hasattr(importlib.import_module(module), name)


# --- searches and other meta-estimators


def grid(model: Any) -> dict[str, list[float]]:
    return {"epsilon": [0.5, 1.0]}


@pytest.mark.parametrize("backend", ["sequential", "threading", "loky"])
def test_the_best_of_a_search_does_not_show_the_price_of_one_fit(backend: str) -> None:
    search = GridSearchCV(clone(LOGISTIC), grid(LOGISTIC), cv=2, n_jobs=2)
    with parallel_config(backend):
        search.fit(X, Y)
    promised = search.best_estimator_.guarantee_
    assert promised.void
    assert "sklearn.model_selection.GridSearchCV fitted it" in str(promised)
    assert "the price here is that of one fit" in str(promised)


@pytest.mark.parametrize(
    "search",
    [
        RandomizedSearchCV(LOGISTIC, {"epsilon": [0.5, 1.0]}, n_iter=2, cv=2),
        HalvingGridSearchCV(LOGISTIC, {"epsilon": [0.5, 1.0]}, cv=2, min_resources=200),
        TunedThresholdClassifierCV(LOGISTIC, cv=2),
    ],
    ids=lambda search: type(search).__name__,
)
def test_other_searches(search: Any) -> None:
    found = clone(search).fit(X, Y)
    best = getattr(found, "best_estimator_", None) or found.estimator_
    assert best.guarantee_.void


def test_estimators_of_cross_validation() -> None:
    for fitted in cross_validate(clone(LOGISTIC), X, Y, cv=2, return_estimator=True)["estimator"]:
        assert fitted.guarantee_.void
        assert "model_selection" in str(fitted.guarantee_)


def test_a_search_over_a_pipeline_warns_once_and_names_the_step() -> None:
    piped = make_pipeline(StandardScaler(), own_clone(LOGISTIC))
    search = GridSearchCV(piped, {"privatelogisticregression__epsilon": [0.5, 1.0]}, cv=2)
    assert len(heard(lambda: search.fit(X, Y))) == 1
    told = str(search.best_estimator_[-1].guarantee_)
    assert "StandardScaler" in told
    assert "GridSearchCV" in told


@pytest.mark.parametrize(
    ("whole", "parts"),
    [
        (CalibratedClassifierCV(LOGISTIC, cv=2), lambda fitted: [
            one.estimator for one in fitted.calibrated_classifiers_
        ]),
        (BaggingClassifier(LOGISTIC, n_estimators=2), lambda fitted: fitted.estimators_),
        (OneVsRestClassifier(LOGISTIC), lambda fitted: fitted.estimators_),
        (VotingClassifier([("a", LOGISTIC)]), lambda fitted: fitted.estimators_),
        (StackingClassifier([("a", LOGISTIC)], cv=2), lambda fitted: fitted.estimators_),
    ],
    ids=lambda whole: type(whole).__name__,
)  # fmt: skip
def test_other_meta_estimators_warn_and_void(whole: Any, parts: Any) -> None:
    whole = own_clone(whole)
    assert len(heard(lambda: whole.fit(X, Y))) == 1
    assert all(part.guarantee_.void for part in parts(whole))


def test_a_fixed_threshold_fits_once() -> None:
    fixed = FixedThresholdClassifier(clone(LOGISTIC), threshold=0.2)
    assert heard(lambda: fixed.fit(X, Y)) == []
    assert not fixed.estimator_.guarantee_.void


# --- no false alarms, and other versions


def test_a_pipeline_inside_of_an_oracle_is_its_own_affair() -> None:
    inner = make_pipeline(StandardScaler(), clone(LOGISTIC))
    oracle = QueryRelease(inner, 400.0, n_shards=5, max_queries=10)
    assert heard(lambda: oracle.fit(X, Y)) == []
    assert not oracle.guarantee_.void


def test_a_class_of_the_users_own_is_left_alone() -> None:
    class Mine(BaseEstimator):  # type: ignore[misc]  # its base has no types
        def fit(self, table: Any, labels: Any) -> Any:
            self.model_ = clone(LOGISTIC).fit(table, labels)
            return self

    assert not Mine().fit(X, Y).model_.guarantee_.void


def test_a_meta_estimator_of_another_library_voids() -> None:
    class Search(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
        def fit(self, table: Any, labels: Any) -> Any:
            self.model_ = own_clone(LOGISTIC).fit(table, labels)
            return self

    search = Search()
    assert len(heard(lambda: search.fit(X, Y))) == 1
    assert search.model_.guarantee_.void


def brand_new(model: Any, table: Any, labels: Any) -> Any:
    return model.fit(table, labels)


def from_module(name: str) -> Any:
    """Return a function that fits, as a module of another version might have one."""
    space: dict[str, Any] = {"__name__": name}
    return FunctionType(brand_new.__code__, space)


def test_what_this_version_does_not_know_fails_closed() -> None:
    model = own_clone(LOGISTIC)
    assert len(heard(lambda: from_module("sklearn.brand_new")(model, X, Y))) == 1
    assert model.guarantee_.void
    assert "sklearn.brand_new" in str(model.guarantee_)
    for harmless in ("sklearn.utils.validation", "sklearn.base", "sklearnex", "mine"):
        from_module(harmless)(model, X, Y)
        assert not model.guarantee_.void

    class Other(Pipeline):  # type: ignore[misc]  # its base has no types
        """Keeps its steps otherwise, as a later version may."""

        def fit(self, table: Any, labels: Any) -> Any:
            last: Any = self.steps[-1][1]
            self.steps: Any = {"scaler": 1, "model": 2}
            self.model_ = last.fit(table, labels)
            return self

    other = Other([("scaler", StandardScaler()), ("model", clone(LOGISTIC))])
    assert len(heard(lambda: other.fit(X, Y))) == 1
    assert other.model_.guarantee_.void


def test_a_look_takes_no_cell_and_no_time_of_it() -> None:
    """Only types and parameters are asked: a table that counts looks is not asked once more."""

    class Table(np.ndarray[Any, Any]):
        looks = 0

        def __getitem__(self, places: Any) -> Any:
            Table.looks += 1
            return super().__getitem__(places)

    class Holder(Pipeline):  # type: ignore[misc]  # its base has no types
        def fit(self, table: Any, labels: Any) -> Any:
            before = Table.looks
            self.found_ = around(self.steps[-1][1])[0]
            assert Table.looks == before
            return self

    holder = Holder([("scaler", StandardScaler()), ("model", clone(LOGISTIC))])
    holder.fit(X.view(Table), Y)
    assert holder.found_.steps == ("StandardScaler",)


def test_a_frame_in_a_pipeline_is_seen_as_well() -> None:
    frame = pd.DataFrame(X, columns=["a", "b"])
    piped = make_pipeline(StandardScaler().set_output(transform="pandas"), clone(LOGISTIC))
    assert len(heard(lambda: piped.fit(frame, Y))) == 1
