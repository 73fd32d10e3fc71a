"""Columns: numbers by declarations alone, and messages that show what to write."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from cumae.errors import InvalidData, InvalidParameter
from cumae.learners import Columns, PrivateLearner

CELL = "123456.789"
JOBS = ["farmer", "baker", "nurse"]


def table(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame(columns)


def test_a_category_is_a_column_of_its_own() -> None:
    columns = Columns({"age": (18, 99), "job": JOBS}, ["age", "job"], 2)
    assert columns.names == ["age", "job=farmer", "job=baker", "job=nurse"]
    assert columns.bounds == [(18, 99), *[(0, 1, 1)] * 3]
    assert columns.shares == [None, 1 / 3, 1 / 3, 1 / 3]
    rows = columns.encode(table(age=[40, 50, 60], job=["nurse", "farmer", "baker"]))
    assert rows.tolist() == [[40, 0, 0, 1], [50, 1, 0, 0], [60, 0, 1, 0]]
    assert len(columns) == 4


def test_of_two_categories_the_second_is_shown() -> None:
    columns = Columns([["no", "yes"]], None, 1)
    assert columns.names == ["0=yes"]
    assert columns.titles == ["column 0=yes"]
    assert columns.encode([["no"], ["yes"]]).tolist() == [[0], [1]]


@pytest.mark.parametrize("dtype", ["object", "str", "string", "category"])
def test_unknown_and_missing_categories_are_none_of_them(dtype: str) -> None:
    column = pd.Series(["poet", None, "baker"], dtype=dtype)
    rows = Columns.of(table(job=column), {"job": JOBS}).encode(table(job=column))
    assert rows.tolist() == [[0, 0, 0], [0, 0, 0], [0, 1, 0]]


def test_categories_may_be_numbers_or_booleans() -> None:
    assert Columns([[1, 2, 3]], None, 1).encode([[2.0], [4.0]]).tolist() == [[0, 1, 0], [0, 0, 0]]
    assert Columns([[False, True]], None, 1).encode([[True], [False]]).tolist() == [[1], [0]]


@pytest.mark.parametrize(
    "column",
    [[1.0, math.nan], pd.Series([1, None], dtype="Int64")],
)
def test_a_missing_number_is_named_by_row_and_column(column: Any) -> None:
    frame = table(age=[1, 2], income=column)
    with pytest.raises(InvalidData, match=r"missing value \(NaN\) in row 1, column income; fill"):
        Columns.of(frame).encode(frame)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"size": (0, 1)}, "columns declares 'size', which is no column of X"),
        ({2: (0, 1)}, "columns declares 2, which is no column of X"),
        ({-1: (0, 1)}, "columns declares -1, which is no column of X"),
        ([(0, 1)], "columns declares 1 columns, but X has 2; give one declaration for each"),
        ({"age": ["only"]}, r"columns\['age'\] lists fewer than two categories"),
        ({"age": ["a", "a"]}, r"columns\['age'\] lists fewer than two categories"),
        ({"age": (1, 0)}, r"lower bound is not below the upper one; give \(low, high\)"),
        ({"age": ()}, r"give \(low, high\), \(low, high, step\), a list of categories"),
        ({"age": (0, 1, 0)}, r"columns\['age'\] is no declaration"),
        ({"age": (0, math.inf)}, "is no declaration"),
        ({"age": (0, math.nan)}, "is no declaration"),
        ({"age": (-1.7e308, 1.7e308)}, "is no declaration"),
        ({"age": (1,)}, "is no declaration"),
        ({"age": 5}, "is no declaration"),
        ({"age": ("a", "b")}, "is no declaration"),
        ({"age": "text"}, "is no declaration"),
    ],
)
def test_wrong_declarations(declared: Any, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        Columns(declared, ["age", "job"], 2)


def test_messages_show_the_line_to_write_and_the_line_works() -> None:
    named = table(job=["a", CELL])
    with pytest.raises(InvalidParameter, match=r"columns=\{\n    'job': \[\"\.\.\.\", "):
        Columns.of(named)
    Columns.of(named, {"job": ["one", "another"]}).encode(named)
    with pytest.raises(InvalidData, match=r"columns=\{0: \[\"\.\.\.\", \"\.\.\.\"\]\}"):
        Columns.of([["a"], ["b"]]).encode([["a"], ["b"]])
    Columns.of([["a"], ["b"]], {0: ["one", "another"]}).encode([["a"], ["b"]])
    with pytest.raises(InvalidParameter, match=r"Write columns=\{'job': \(low, high\)\}"):
        Columns.of(table(job=[1.0])).need_bounds()
    with pytest.raises(InvalidParameter, match=r"Write columns=\{1: \(low, high\)\}"):
        Columns.of([[1.0, 2.0]], {0: (0, 1)}).need_bounds()
    assert Columns.of([[1.0, 2.0]], {0: (0, 1), 1: (0, 5)}).need_bounds() == [(0, 1), (0, 5)]


def test_private_learner_says_which_bounds_are_missing() -> None:
    with pytest.raises(InvalidParameter, match=r"Write columns=\{'age': \(low, high\)\}.*X_public"):
        PrivateLearner().fit(table(age=[1.0, 2.0]), [0, 1])


BAD = [
    [[1.0], [CELL]],
    np.array([[CELL]]),
    np.array([[complex(CELL)]]),
    np.array([[{CELL: 1}]], dtype=object),
    np.array([[[123456.789]]]),
    [[123456.789, 1.0], [123456.789]],
    [[123456.789, 1.0]],
    np.array([["2024-05-06"]], dtype="datetime64[D]"),
    table(x=[CELL]),
    table(y=[123456.789]),
    table(x=[pd.Timestamp("2024-05-06")]),
    sparse.csr_array(np.array([[123456.789]])),
    np.zeros((3, 0)),
    123456.789,
    [[10**400]],
]


@pytest.mark.parametrize("X", BAD, ids=range(len(BAD)))
def test_no_message_holds_a_cell(X: Any) -> None:
    columns = Columns(None, ["x"], 1)
    with pytest.raises(InvalidData) as caught:
        columns.encode(X)
    error: BaseException | None = caught.value
    while error is not None:  # what stands behind it is printed, too
        assert "123456" not in str(error)
        assert "2024" not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_kinds_of_tables_that_are_refused_say_so() -> None:
    columns = Columns(None, None, 2)
    thin: Any = sparse.csr_array(np.eye(2))
    with pytest.raises(InvalidData, match="sparse"):
        columns.encode(thin)
    with pytest.raises(InvalidData, match="Complex data not supported"):
        columns.encode(np.eye(2) * 1j)
    with pytest.raises(InvalidData, match=r"X has 3 features.* 2 features as input\.$"):
        columns.encode(np.ones((2, 3)))
    with pytest.raises(InvalidData, match="Reshape your data"):
        columns.encode([1.0, 2.0])
    with pytest.raises(InvalidData, match="0 feature"):
        columns.encode(np.zeros((2, 0)))


def test_frames_and_arrays_of_the_same_numbers_are_alike() -> None:
    numbers = np.array([[1, 2.5], [3, 4.5]])
    frame = pd.DataFrame(numbers, columns=["a", "b"]).astype({"a": int})
    by_name, by_place = Columns.of(frame, {"b": (0, 9)}), Columns.of(numbers, {1: (0, 9)})
    for columns in (by_name, by_place):
        for X in (frame, numbers, numbers.tolist()):
            assert columns.encode(X).tolist() == numbers.tolist()
        assert columns.bounds == [None, (0, 9)]
    assert Columns.of(frame, {1: (0, 9)}).bounds == by_name.bounds
    mixed: Any = [[1, "x"], [2, "y"]]
    assert Columns.of(mixed, [None, ["x", "y"]]).encode(mixed).tolist() == [[1, 0], [2, 1]]


def test_columns_may_come_in_another_order() -> None:
    frame = table(a=[1], b=[2])
    assert Columns.of(frame).encode(frame[["b", "a"]]).tolist() == [[1, 2]]


def test_other_columns_are_refused_by_name() -> None:
    frame = table(a=[1], b=[2])
    message = r"\['b'\] are not there. \['c'\] were not there. Select \['a', 'b'\]"
    with pytest.raises(InvalidData, match=message):
        Columns.of(frame).encode(table(c=[2], a=[1]))
    with pytest.raises(InvalidData, match=r"\['c'\] were not there"):
        Columns.of(frame).encode(table(c=[2], a=[1], b=[2]))


def test_numbers_as_names_go_before_places() -> None:
    frame = pd.DataFrame([[5.0, 50.0]], columns=[1, 0])
    assert Columns.of(frame, {0: (0, 99)}).bounds == [None, (0, 99)]


def test_infinite_numbers_stay_numbers() -> None:
    assert Columns(None, None, 1).encode([[math.inf], [-math.inf]]).tolist() == [
        [math.inf],
        [-math.inf],
    ]


def test_json_and_back() -> None:
    declared = {"age": (18, 99), "size": (0, 10, 2), "job": JOBS, "code": list(np.array([3, 7]))}
    columns = Columns(declared, ["age", "size", "job", "code", "free"], 5)
    again = Columns.from_dict(json.loads(json.dumps(columns.to_dict())))
    assert again.columns == columns.columns
    assert (again.original_names, again.names, again.bounds, again.shares) == (
        columns.original_names,
        columns.names,
        columns.bounds,
        columns.shares,
    )
    plain = Columns(None, None, 2)
    assert Columns.from_dict(json.loads(json.dumps(plain.to_dict()))).columns == plain.columns
