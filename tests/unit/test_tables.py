"""Tables as people have them go through all estimators, from several libraries, with one result."""

from __future__ import annotations

import datetime as dt
import math
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from cumae import (
    Budget,
    EverlastingPredictor,
    InvalidData,
    InvalidParameter,
    OneVsRest,
    ParquetRows,
    PrivateBooster,
    PrivateLogisticRegression,
    QueryRelease,
    TooFewRows,
)
from cumae.data import Columns
from cumae.learners.base import Rows, Sizes
from cumae.learners.ranged import range_epsilon
from tests.tables import adult, credit_default, hospital

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TABLES = {"adult": adult, "credit default": credit_default, "hospital": hospital}
SIZE, ASKED = 1_600, 100
FRAMES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda rows: rows,
    "pandas with its own types": lambda rows: rows.convert_dtypes(),
    "polars": pl.from_pandas,
}


@cache
def table(name: str) -> Any:
    return TABLES[name]().some(SIZE + ASKED)


def estimators(declared: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"columns": declared, "random_state": 7}
    return {
        "booster": PrivateBooster(1.0, 1e-6, **given),
        "logistic": PrivateLogisticRegression(1.0, 1e-6, **given),
        "release": QueryRelease(max_queries=ASKED, epsilon=3.0, **given),
        # The default prior is read alike, and takes a second more for each fit.
        "everlasting": EverlastingPredictor(
            epsilon=3.0, prior=PrivateLogisticRegression(), **given
        ),
    }


def answers(estimator: Any, rows: Any, labels: Any, queries: Any) -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: list[Any] = estimator.fit(rows, labels).predict(queries).tolist()
    return found


@cache
def usual(name: str, kind: str) -> list[Any]:
    """Answers with pandas."""
    given = table(name)
    rows, queries = given.rows[:SIZE], given.rows[SIZE:]
    return answers(estimators(given.declared)[kind], rows, given.labels[:SIZE], queries)


@pytest.mark.parametrize("kind", ["booster", "logistic", "release", "everlasting"])
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("library", ["polars", "parquet", "pandas with its own types"])
def test_all_libraries_give_the_same_answers(
    library: str, name: str, kind: str, tmp_path: Path
) -> None:
    given = table(name)
    rows, queries = given.rows[:SIZE], given.rows[SIZE:]
    if library == "parquet":
        rows.to_parquet(tmp_path / "rows.parquet", index=False)
        queries.to_parquet(tmp_path / "queries.parquet", index=False)
        X: Any = ParquetRows(tmp_path / "rows.parquet")
        asked: Any = ParquetRows(tmp_path / "queries.parquet")
    else:
        X, asked = FRAMES[library](rows), FRAMES[library](queries)
    found = answers(estimators(given.declared)[kind], X, given.labels[:SIZE], asked)
    assert found == usual(name, kind)
    assert set(found) <= {0, 1}
    assert len(set(found)) == 2, "all answers are the same"


@pytest.mark.parametrize("kind", ["booster", "logistic", "everlasting"])
def test_columns_in_another_order_are_found_by_name(kind: str) -> None:
    given = table("hospital")
    rows, queries = given.rows[:SIZE], given.rows[SIZE:]
    turned = queries[list(reversed(queries.columns))]
    found = answers(estimators(given.declared)[kind], rows, given.labels[:SIZE], turned)
    assert found == usual("hospital", kind)


# Undeclared ranges


@pytest.mark.claim("RANGES")
def test_undeclared_ranges_cost_little_accuracy() -> None:
    """All ranges of credit default unknown, 5,000 rows: at most two points; here .5 on the mean."""
    whole = credit_default()
    scores: dict[str, list[float]] = {"declared": [], "open": []}
    for seed in range(3):
        given = whole.some(15_000, seed)
        train = slice(0, 5_000)
        categories = {name: value for name, value in given.declared.items() if type(value) is list}
        for how, declared in (("declared", given.declared), ("open", categories)):
            learner = PrivateLogisticRegression(
                1.0, 1e-6, curves=6, columns=declared, random_state=seed
            )
            learner.fit(given.rows[train], given.labels[train])
            assert ("RANGES" in learner.guarantee_.claims) == (how == "open")
            assert learner.guarantee_.epsilon <= 1
            scores[how].append(learner.score(given.rows[5_000:], given.labels[5_000:]))
    assert np.mean(scores["open"]) > np.mean(scores["declared"]) - 0.02
    assert np.mean(scores["open"]) > 0.78


@pytest.mark.claim("RANGES")
@pytest.mark.parametrize("learner", [PrivateBooster(1.0), PrivateBooster(1.0, 0.0, start=None)])
def test_without_a_delta_ranges_must_be_declared(learner: Any) -> None:
    budget = Budget(5.0, 0.0)
    rows = pd.DataFrame({"age": np.arange(9_000.0), "size": np.arange(9_000.0)})
    with pytest.raises(InvalidParameter, match=r"'age': \(low, high\),\n    'size': \(low, high\)"):
        learner.set_params(budget=budget).fit(rows, np.arange(9_000) % 2)
    assert budget.spent == Budget(5.0, 0.0).spent


@pytest.mark.claim("RANGES")
def test_too_few_rows_for_a_range_are_refused_before_the_payment() -> None:
    budget = Budget(5.0, 1e-5)
    learner = PrivateLogisticRegression(1.0, 1e-6, budget=budget)
    rows = np.arange(100.0).reshape(50, 2)
    with pytest.raises(InvalidData, match=r"50 rows are too few .*: ([0-9]+) would do") as caught:
        learner.fit(rows, np.arange(50) % 2)
    assert budget.spent == Budget(5.0, 1e-5).spent
    enough = int(str(caught.value).split(": ")[1].split()[0])
    more = np.resize(rows, (enough, 2))
    PrivateLogisticRegression(1.0, 1e-6).fit(more, np.arange(enough) % 2)
    with pytest.raises(InvalidData, match="too few"):
        PrivateLogisticRegression(1.0, 1e-6).fit(more[:-1], np.arange(enough - 1) % 2)


@pytest.mark.claim("RANGES")
@pytest.mark.parametrize("count", [1, 5, 40])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_ranges_keep_to_their_share(epsilon: float, count: int) -> None:
    from cumae.sanitizers import Ranges

    cost = Ranges(range_epsilon(epsilon, 1e-6, count), count).cost
    assert cost.delta(epsilon / 4) <= 1e-6 / 4


@pytest.mark.claim("RANGES")
@pytest.mark.parametrize("size", [500, 20_000, 1_000_000])
@pytest.mark.parametrize(
    "learner", [PrivateBooster(1.0, 1e-6), PrivateLogisticRegression(1.0, 1e-6, curves=6)]
)
def test_plans_do_not_depend_on_the_ends_of_ranges(learner: Any, size: int) -> None:
    """They are made before the ranges are known, and a start is planned once more afterwards."""
    declared = Columns([float, {"missing": True}, ["a", "b"], dt.date(2020, 1, 1)], None, 4)
    rows = Rows(np.zeros((0, len(declared))), np.zeros(0, dtype=np.int64))
    first, *others = [
        learner.decide(Sizes(size, 0, 0, declared.within([ends] * 3)), rows)
        for ends in ((-1.0, 1.0), (0.0, 1.0), (1e-10, 2e-10), (-(2.0**66), 2.0**67), (5.0, 5.5))
    ]
    assert others == [first] * 4


@pytest.mark.claim("RANGES")
@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e300, -1e-300, 0.0])
def test_one_strange_row_among_undeclared_ranges_changes_no_refusal(value: float) -> None:
    """Same coins, one row replaced: the same guarantee, finite ranges, and no word about it."""
    coins = np.random.default_rng(0)
    rows = coins.normal(50, 10, (3_000, 2))
    labels = (rows[:, 0] > 50).astype(int)
    other = rows.copy()
    other[17] = value
    found = []
    for given in (rows, other):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            learner = PrivateLogisticRegression(1.0, 1e-6, random_state=3).fit(given, labels)
        found.append(learner)
        assert np.all(np.isfinite(np.array(learner.columns_.bounds, dtype=float)))
        assert np.all(np.isfinite(learner.predict_proba(other)))
        low, high, *_ = learner.columns_.bounds[0] or ()
        assert -200 < low < 40
        assert 60 < high < 300
    assert found[0].guarantee_ == found[1].guarantee_


def test_a_model_with_found_ranges_is_stored(tmp_path: Path) -> None:
    given = table("hospital")
    for name in ("booster", "logistic"):
        learner = estimators(given.declared)[name].fit(given.rows, given.labels)
        learner.save(tmp_path / "model.json")
        again = type(learner).load(tmp_path / "model.json")
        assert again.predict(given.rows).tolist() == learner.predict(given.rows).tolist()
        assert again.columns_.bounds == learner.columns_.bounds


# One row that is missing, infinite, of another type or out of range


ODD: dict[str, Any] = {
    "missing": None,
    "infinite": math.inf,
    "text": "?",
    "huge": 1e300,
    "a day": dt.date(2020, 1, 1),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("kind", ["release", "everlasting"])
def test_one_odd_training_row_changes_no_refusal_and_no_other_shard(kind: str, odd: str) -> None:
    given = table("hospital")
    rows, queries = given.rows[:SIZE], given.rows[SIZE:]
    strange = rows.astype(object)
    strange.iloc[5] = [ODD[odd]] * rows.shape[1]
    plain = rows.astype(object)
    declared = {**given.declared, "smokes": bool, "protein": float}
    found = [
        answers(estimators(declared)[kind], X, given.labels[:SIZE], queries)
        for X in (plain, strange)
    ]
    agree = np.mean(np.array(found[0]) == np.array(found[1]))
    assert agree > 0.9


@pytest.mark.parametrize("odd", ["missing", "infinite", "huge"])
@pytest.mark.parametrize("kind", ["booster", "logistic"])
def test_one_odd_training_row_changes_the_private_output_of_a_learner_only(
    kind: str, odd: str
) -> None:
    """Cells that are declared as missing, infinite or out of range neither raise nor warn."""
    given = table("hospital")
    declared = {**given.declared, "protein": ("missing",)}
    rows = given.rows.assign(pressure=given.rows["pressure"].fillna(120.0))
    strange = rows.copy()
    value = np.nan if ODD[odd] is None else ODD[odd]
    strange.loc[5, ["pressure", "protein"]] = value
    found = [estimators(declared)[kind].fit(X, given.labels) for X in (rows, strange)]
    assert found[0].guarantee_ == found[1].guarantee_
    names = {name for name in vars(found[0]) if name.endswith("_")}
    assert names == {name for name in vars(found[1]) if name.endswith("_")}
    private = {"columns_", "model_", "trees_", "start_"}
    for name in names - private:
        assert repr(getattr(found[0], name)) == repr(getattr(found[1], name))


@pytest.mark.parametrize("odd", ODD)
def test_one_odd_query_leaves_the_others_alone(odd: str) -> None:
    given = table("hospital")
    rows, queries = given.rows[:SIZE], given.rows[SIZE:].astype(object)
    declared = {**given.declared, "smokes": bool, "protein": float}
    strange = queries.copy()
    strange.iloc[5] = [ODD[odd]] * rows.shape[1]
    found = [
        answers(estimators(declared)["everlasting"], rows.astype(object), given.labels[:SIZE], X)
        for X in (queries, strange)
    ]
    assert np.delete(found[0], 5).tolist() == np.delete(found[1], 5).tolist()
    assert found[1][5] == -1


def test_declared_missing_cells_are_answered() -> None:
    given = table("hospital")
    queries = given.rows[SIZE:].copy()
    queries["pressure"] = np.nan
    found = answers(
        estimators(given.declared)["everlasting"], given.rows[:SIZE], given.labels[:SIZE], queries
    )
    assert set(found) <= {0, 1}


# Checks before the payment


def test_everything_that_is_wrong_is_said_at_once_and_before_the_payment() -> None:
    given = table("hospital")
    budget = Budget(5.0, 1e-5)
    wrong: dict[str, Any] = {"age": (110, 0), "code": [1, 2, 3]}
    for learner in estimators(wrong).values():
        with pytest.raises(InvalidParameter) as caught:
            learner.set_params(budget=budget).fit(given.rows, given.labels)
        for part in ("columns['age']", "'admitted': datetime.date", '\'code\': ["1", "2"'):
            assert part in str(caught.value)
    assert budget.spent == Budget(5.0, 1e-5).spent


def test_a_frame_with_dates_is_refused_before_the_payment() -> None:
    given = table("hospital")
    budget = Budget(5.0, 1e-5)
    rows = given.rows[["age", "admitted"]]
    for estimator in estimators(None).values():
        with pytest.raises(InvalidParameter, match=r"'admitted': datetime\.date"):
            estimator.set_params(budget=budget).fit(rows, given.labels)
    assert budget.spent == Budget(5.0, 1e-5).spent


def refuse_missing(table: Any) -> Any:
    """Fail on a row whose last column, the mark of a missing cell, is 1."""
    if np.any(np.asarray(table)[:, -1] == 1) and len(table) == 1:
        raise ValueError("a missing cell")
    return table


@pytest.mark.parametrize("kind", ["release", "everlasting"])
def test_a_pipeline_that_cannot_answer_a_missing_cell_is_refused(kind: str) -> None:
    estimator = make_pipeline(FunctionTransformer(refuse_missing), LogisticRegression())
    rows = np.random.default_rng(0).random((2_000, 2))
    oracle = estimators([(0, 1), (0, 1, "missing")])[kind].set_params(estimator=estimator)
    with pytest.raises(InvalidParameter, match="a missing cell"):
        oracle.fit(rows, (rows[:, 0] > 0.5).astype(int))


# Warnings that help


def test_few_rows_are_told_before_the_payment() -> None:
    budget = Budget(1.0)
    rows = np.random.default_rng(0).random((40, 4))
    learner = PrivateBooster(0.1, columns=[(0, 1)] * 4, budget=budget)
    # Warnings are errors in these tests, so that nothing was paid when it was heard.
    with pytest.raises(TooFewRows, match=r"40 rows with 4 columns .* 200 rows would do"):
        learner.fit(rows, np.arange(40) % 2)
    assert budget.spent == Budget(1.0).spent
    with pytest.warns(TooFewRows):
        learner.fit(rows, np.arange(40) % 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner.set_params(epsilon=0.5).fit(rows, np.arange(40) % 2)


def test_a_wrapper_warns_once_of_few_rows() -> None:
    rows = np.random.default_rng(0).random((40, 4))
    base = PrivateBooster(columns=[(0, 1)] * 4)
    with pytest.warns(TooFewRows) as heard:
        OneVsRest(base, [0, 1, 2], epsilon=0.1).fit(rows, np.arange(40) % 3)
    assert len(heard) == 1
