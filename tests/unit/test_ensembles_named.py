"""Pipelines of a user's own, which choose columns by name, on rows whose columns were declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import cumae
from cumae import EverlastingPredictor, QueryRelease, UniversalQueryRelease
from cumae.data import Columns
from cumae.ensembles.named import on_numbers
from cumae.ensembles.sizing import is_of_many
from cumae.ensembles.voters.linear import LinearVoters
from cumae.ensembles.voters.stacking import stack
from cumae.errors import AnswersDrift, InvalidParameter

JOBS, WARDS = ["baker", "nurse", "farmer"], ["A", "B"]
DECLARED: dict[str, Any] = {
    "age": (18, 98, "missing"),
    "job": [*JOBS, None],
    "income": (0, 200),
    "ward": WARDS,
}
TEXT = ["job", "ward"]
NUMBERS = ["age", "income"]
ROWS = 900


def people(count: int = ROWS) -> tuple[pd.DataFrame, np.ndarray]:
    coins = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": coins.integers(18, 99, count).astype(float),
            "job": coins.choice(JOBS, count),
            "income": coins.gamma(2.0, 20.0, count),
            "ward": coins.choice(WARDS, count),
        }
    )
    score = (X["job"] == "nurse") * 2.0 + (X["age"] > 60) - 1.2
    return X, (coins.random(count) < 1 / (1 + np.exp(-4 * score))).astype(int)


def columns() -> Columns:
    X, _ = people(2)
    return Columns.of(X, DECLARED)


def encoder() -> OneHotEncoder:
    return OneHotEncoder(handle_unknown="ignore", sparse_output=False)


def by_name(numbers: Any, model: Any) -> Pipeline:
    return make_pipeline(make_column_transformer((encoder(), TEXT), (numbers, NUMBERS)), model)


OWN: dict[str, Any] = {
    "logistic": lambda: by_name(StandardScaler(), LogisticRegression()),
    "forest": lambda: by_name("passthrough", RandomForestClassifier(n_estimators=3)),
    "boosting": lambda: by_name("passthrough", HistGradientBoostingClassifier(max_iter=3)),
}


# "I have an encoder and a model in a Pipeline, and a frame with text."


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("kind", [EverlastingPredictor, QueryRelease])
def test_an_own_pipeline_learns_from_a_frame_with_text(name: str, kind: Any) -> None:
    X, y = people()
    size = {"shard_size": 60} if kind is EverlastingPredictor else {"n_shards": 15}
    more: dict[str, Any] = {} if kind is EverlastingPredictor else {"max_queries": 60}
    oracle = kind(OWN[name](), epsilon=60.0, delta=1e-6, columns=DECLARED, **size, **more)
    outlook = oracle.plan(len(X), 4)
    assert outlook.can_run
    assert not any("drift" in told for told in outlook.warnings)
    oracle.fit(X, y)
    assert oracle.n_shards_ == outlook.facts["n_shards"]
    assert np.mean(oracle.predict(X[:60]) == y[:60]) > 0.75


def test_an_oracle_of_an_own_pipeline_lives_in_a_file(tmp_path: Path) -> None:
    X, y = people()
    for name in ("logistic", "forest"):
        given = OWN[name]()
        oracle = QueryRelease(given, epsilon=60.0, max_queries=90, columns=DECLARED, n_shards=15)
        oracle.fit(X, y).save_to(tmp_path / f"{name}.db")
        with cumae.open(tmp_path / f"{name}.db") as again:
            assert np.mean(again.predict(X[:60]) == y[:60]) > 0.75
            assert again.estimator.steps[0][1].transformers[0][2] == TEXT  # as it was given


def test_a_student_of_an_own_pipeline() -> None:
    X, y = people()
    learner = UniversalQueryRelease(
        OWN["logistic"](), epsilon=60.0, columns=DECLARED, n_shards=15, n_first=60
    )
    learner.fit(X, y)
    learner.predict(X[:60])
    assert np.mean(learner.predict(X[60:260]) == y[60:260]) > 0.7


# What is trained in its place


def test_encoders_of_declared_categories_are_left_out() -> None:
    model = on_numbers(by_name("passthrough", DecisionTreeClassifier()), columns())
    assert isinstance(model, DecisionTreeClassifier)
    everything = make_pipeline(encoder(), LogisticRegression())
    declared = Columns({"job": JOBS, "ward": bool}, ["job", "ward"], 2)
    assert isinstance(on_numbers(everything, declared), LogisticRegression)


@pytest.mark.parametrize(
    "chosen",
    [
        make_column_transformer((StandardScaler(), NUMBERS), remainder=encoder()),
        make_column_transformer((OrdinalEncoder(), TEXT), remainder=StandardScaler()),
        make_column_transformer(
            (make_pipeline(SimpleImputer(strategy="most_frequent"), encoder()), TEXT),
            (StandardScaler(), NUMBERS),
        ),
        make_column_transformer(
            (encoder(), make_column_selector(dtype_include=object)),
            (StandardScaler(), make_column_selector(dtype_include="number")),
        ),
        make_column_transformer((StandardScaler(), ["age", "income"]), (encoder(), [1, 3])),
        make_column_transformer(
            (StandardScaler(), ["income", "age"]), (encoder(), [False, True, False, True])
        ),
    ],
)
def test_each_way_to_name_columns_comes_to_the_same(chosen: Any) -> None:
    """Numbers are scaled, indicators and marks of missing cells stay as they are."""
    X, _ = people(50)
    X.loc[3, "age"], X.loc[4, "job"] = np.nan, None
    table = columns().encode(X)
    model = on_numbers(make_pipeline(chosen, LogisticRegression()), columns())
    found = model.steps[0][1].fit_transform(table)
    numbers = [columns().names.index(name) for name in NUMBERS]
    table[:, numbers] = StandardScaler().fit_transform(table[:, numbers])
    assert np.allclose(sorted(found.T.tolist()), sorted(table.T.tolist()))


def test_columns_that_a_step_drops_are_dropped() -> None:
    chosen = make_column_transformer((encoder(), ["job"]), ("drop", ["age"]), remainder="drop")
    model = on_numbers(make_pipeline(chosen, LogisticRegression()), columns())
    X, _ = people(9)
    assert model.steps[0][1].fit_transform(columns().encode(X)).shape == (9, 4)
    sliced = ColumnTransformer([("some", "passthrough", slice("age", "job"))])
    model = on_numbers(make_pipeline(sliced, LogisticRegression()), columns())
    assert model.steps[0][1].fit_transform(columns().encode(X)).shape == (9, 6)


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(make_column_transformer((StandardScaler(), [0])), LogisticRegression()),
    ],
)
def test_what_names_no_column_stays_as_it_is(model: Any) -> None:
    assert on_numbers(model, columns()) is model


@pytest.mark.parametrize(
    ("chosen", "told"),
    [
        (make_column_transformer((encoder(), ["jobs"])), "columns that X does not have: jobs; it"),
        (make_column_transformer((CountVectorizer(), "job")), "whose declared categories become 0"),
        (
            ColumnTransformer([("a", encoder(), TEXT)], transformer_weights={"a": 2.0}),
            "transformer_weights",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_before_the_payment(chosen: Any, told: str) -> None:
    X, y = people(60)
    budget = cumae.Budget(9.0, 1e-3)
    model = make_pipeline(chosen, LogisticRegression())
    oracle = EverlastingPredictor(model, epsilon=1.0, columns=DECLARED, budget=budget)
    with pytest.raises(InvalidParameter, match=told):
        oracle.fit(X, y)
    assert budget.entries == ()


# Without declarations


def test_a_plan_without_declarations_says_that_it_knows_no_names() -> None:
    X, y = people(300)
    oracle = EverlastingPredictor(OWN["logistic"](), epsilon=60.0, shard_size=20, prior=False)
    outlook = oracle.plan(300, 4)
    assert outlook.can_run
    assert any("a plan knows no names" in told for told in outlook.warnings)
    assert oracle.fit(X, y).n_shards_ == outlook.facts["n_shards"]


def test_drift_is_warned_of_before_the_trial_and_the_payment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def trial(*_: Any, **__: Any) -> None:
        raise AssertionError("tried before the warning")

    monkeypatch.setattr("cumae.predictors.everlasting.fitting.try_sizes", trial)
    X, y = people(300)
    budget = cumae.Budget(99.0, 1e-3)
    oracle = EverlastingPredictor(OWN["logistic"](), epsilon=60.0, budget=budget)
    with pytest.raises(AnswersDrift, match=r"columns of text were not declared.*job, ward"):
        oracle.fit(X, y)
    assert budget.entries == ()


# Votes at array speed


@pytest.mark.claim("SHARDS")
@pytest.mark.parametrize("remainder", ["drop", "passthrough", StandardScaler()])
def test_scalers_of_some_columns_are_folded_into_weights(remainder: Any) -> None:
    coins = np.random.default_rng(1)
    X = coins.normal(3.0, 2.0, (400, 5))
    y = (X[:, 0] - X[:, 3] + coins.normal(size=400) > 0).astype(int)
    chosen = make_column_transformer(
        (StandardScaler(), [3, 0]), ("passthrough", [1]), remainder=remainder
    )
    models = [
        make_pipeline(chosen, StandardScaler(), LogisticRegression(C=c)).fit(X[part], y[part])
        for part, c in ((slice(0, 200), 1.0), (slice(200, 400), 0.1))
    ]
    (voters,) = stack(models, 2)
    assert isinstance(voters, LinearVoters)
    votes = sum(np.eye(2, dtype=int)[model.predict(X)] for model in models)
    assert np.array_equal(voters.count(X), votes)


def test_estimators_of_many_models_are_known_by_their_class() -> None:
    assert all(is_of_many(OWN[name]()) for name in ("forest", "boosting"))
    assert not is_of_many(OWN["logistic"]())
