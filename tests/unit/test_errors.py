"""Errors: fields that a program can read, beside the words for people."""

from __future__ import annotations

import copy
import importlib
import inspect
import math
import pickle
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cumae
from cumae import (
    Budget,
    BudgetExhausted,
    CumaeError,
    EverlastingPredictor,
    InvalidData,
    InvalidParameter,
    MissingPackage,
    PrivateKernelClassifier,
    PrivateLogisticRegression,
    QueryRelease,
    TooFewRows,
)
from cumae.concepts import Thresholds
from cumae.extras import needing
from cumae.learners.regression.target import numbers_of
from cumae.privacy import Pure
from cumae.theorems.rows import need_rows

ROWS = np.linspace(0, 1, 400)[:, None]
LABELS = (ROWS[:, 0] > 0.5).astype(int)
KINDS = [
    kind
    for kind in (getattr(cumae, name) for name in cumae.__all__)
    if inspect.isclass(kind) and issubclass(kind, CumaeError | Warning)
]


def raised(call: Callable[[], Any]) -> Any:
    with pytest.raises(CumaeError) as found:
        call()
    return found.value


def release() -> QueryRelease:
    return QueryRelease(Thresholds(), 20.0, max_queries=3, n_shards=20).fit(ROWS, LABELS)


def asked_too_much() -> Any:
    return release().predict(ROWS[:5])


def no_epsilon_left() -> Any:
    account = Budget(1.0, 1e-6)
    account.spend(Pure(0.75))
    return PrivateLogisticRegression(0.5, columns=[(0, 1)], budget=account).fit(ROWS, LABELS)


def no_next_phase() -> Any:
    model = EverlastingPredictor(Thresholds(), 200.0, shard_size=20, fresh=True, prior=False)
    return model.fit(ROWS, LABELS).predict(np.tile(ROWS, (40, 1)))


def cell_that_lacks() -> Any:
    rows = pd.DataFrame({"age": [1.0, np.nan], "height": [1.0, 2.0]})
    return PrivateLogisticRegression(columns={"age": (0, 9), "height": (0, 9)}).fit(rows, [0, 1])


def other_columns() -> Any:
    rows = pd.DataFrame({"age": ROWS[:, 0]})
    model = PrivateLogisticRegression(8.0, columns={"age": (0, 1)}).fit(rows, LABELS)
    return model.predict(rows.rename(columns={"age": "years"}))


def text_in_numbers() -> Any:
    rows = pd.DataFrame({"age": ["1", "two", "3"]})
    return PrivateLogisticRegression(columns={"age": (0, 9)}).fit(rows, [0, 1, 1])


def label_of_no_class() -> Any:
    return PrivateLogisticRegression(columns=[(0, 1)]).fit(ROWS, [*LABELS[:-1], 7])


def number_that_lacks() -> Any:
    return numbers_of([1.0, np.nan], 10)


def column_of_other_words() -> Any:
    rows = pd.DataFrame({"town": ["Rome"] * 400})
    return PrivateLogisticRegression(columns={"town": ["Bath", "York"]}).fit(rows, LABELS)


def cell_of_a_query_that_lacks() -> Any:
    model = QueryRelease(Thresholds(), 20.0, max_queries=3, n_shards=20, columns=[(0, 1)])
    return model.fit(ROWS, LABELS).predict([[0.5], [np.nan]])


def open_range_of_few_rows() -> Any:
    columns = {"age": (0, 1), "income": None}
    rows = pd.DataFrame({"age": ROWS[:40, 0], "income": ROWS[:40, 0]})
    return PrivateLogisticRegression(0.5, 1e-6, columns=columns).fit(rows, LABELS[180:220])


def paper_of_few_rows() -> Any:
    return need_rows(100, 646)


def package_that_lacks() -> None:
    with needing("parrots", "birds"):
        importlib.import_module("no_such_package")


@pytest.mark.parametrize(
    ("call", "kind", "fields"),
    [
        (asked_too_much, BudgetExhausted, {"remaining": 3, "asked": 5}),
        (no_epsilon_left, BudgetExhausted, {"remaining": 0.25, "asked": 0.5}),
        (no_next_phase, BudgetExhausted, {"asked": 16_000}),
        (cell_that_lacks, InvalidData, {"columns": ("age",), "rows": (1,)}),
        (other_columns, InvalidData, {"columns": ("age", "years")}),
        (text_in_numbers, InvalidData, {"columns": ("age",), "rows": (1,)}),
        (label_of_no_class, InvalidData, {"rows": (399,)}),
        (number_that_lacks, InvalidData, {"rows": (11,)}),
        (column_of_other_words, InvalidData, {"columns": ("town",)}),
        (cell_of_a_query_that_lacks, InvalidData, {"columns": ("0",), "rows": (1,)}),
        (open_range_of_few_rows, InvalidData, {"columns": ("income",)}),
        (paper_of_few_rows, InvalidData, {"needed_rows": 646}),
        (lambda: PrivateKernelClassifier(-1.0).fit(ROWS, LABELS), InvalidParameter, {}),
        (
            lambda: PrivateKernelClassifier(goal="speed").fit(ROWS, LABELS),
            InvalidParameter,
            {"parameter": "goal"},
        ),
        (package_that_lacks, MissingPackage, {"name": "no_such_package", "extra": "birds"}),
    ],
)
def test_errors_carry_what_their_words_name(
    call: Callable[[], Any], kind: type[CumaeError], fields: dict[str, Any]
) -> None:
    error = raised(call)
    assert type(error) is kind
    for name, value in fields.items():
        close = pytest.approx(value, rel=1e-4) if isinstance(value, float) else value
        assert getattr(error, name) == close
    # Numbers in fields stand in the words as well, so that neither says more than the other.
    words = str(error).replace(",", "")
    for value in vars(error).values():
        for one in value if isinstance(value, tuple) else [value]:
            assert one is None or re.search(rf"(?<![\w.]){re.escape(str(one))}\b", words), one


def test_a_phase_that_waits_for_rows_says_how_many() -> None:
    error = raised(no_next_phase)
    assert 0 <= error.remaining < error.asked
    assert error.needed_rows >= 6
    assert f"{error.needed_rows:,} rows" in str(error)


def test_a_warning_says_how_many_rows_are_enough() -> None:
    with pytest.warns(TooFewRows) as heard:
        PrivateLogisticRegression(0.1, columns=[(0, 1)]).fit(ROWS[:40], [0, 1] * 20)
    (one,) = [each.message for each in heard if isinstance(each.message, TooFewRows)]
    assert one.needed_rows is not None
    assert f"{one.needed_rows} rows would do" in str(one)
    with warnings.catch_warnings():
        warnings.simplefilter("error", TooFewRows)
        rows = np.resize(ROWS, (one.needed_rows, 1))
        learner = PrivateLogisticRegression(0.1, columns=[(0, 1)])
        learner.fit(rows, np.resize([0, 1], len(rows)))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_errors_are_pickled_with_their_fields(kind: Any) -> None:
    fields = {
        "remaining": 1.5,
        "asked": math.inf,
        "answered": 3,
        "needed_rows": 40,
        "columns": ("age",),
        "rows": (7,),
        "parameter": "epsilon",
        "name": "pyarrow",
        "extra": "parquet",
    }
    taken = {*vars(kind("words")), *(["name"] if issubclass(kind, ImportError) else [])}
    error = kind("words", **{name: fields[name] for name in taken})
    twins = (pickle.loads(pickle.dumps(error)), copy.copy(error))  # noqa: S301 - its own bytes
    for twin in twins:
        assert type(twin) is kind
        assert str(twin) == "words"
        assert vars(twin) == vars(error)
        assert all(getattr(twin, name) == fields[name] for name in taken)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_field_is_documented_and_empty_at_first(kind: Any) -> None:
    error = kind("words")
    assert str(error) == "words"
    for name, value in vars(error).items():
        assert value in (None, ())
        pages = "\n".join(base.__doc__ or "" for base in kind.__mro__)
        assert re.search(rf"^    (\w+, )*{name}\b.* : ", pages, re.MULTILINE), name
