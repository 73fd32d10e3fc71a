"""Kinds of columns: numbers, truth, categories, dates, missing cells; by declaration and type."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cumae.data import Column, Columns, bad_rows
from cumae.data.kinds import kinds_of
from cumae.errors import InvalidData, InvalidParameter

FIRST = dt.date(2020, 1, 1)
NAN = math.nan


def read(declared: Any, *cells: Any) -> list[list[float]]:
    """Read cells of one column."""
    table = np.empty((len(cells), 1), dtype=object)
    table[:, 0] = cells
    found: list[list[float]] = Columns([declared], None, 1).read(table).tolist()
    return found


def same(found: Any, wanted: Any) -> bool:
    return np.array_equal(np.array(found), np.array(wanted), equal_nan=True)


@pytest.mark.parametrize(
    ("declared", "cell", "wanted"),
    [
        ((0, 9), "2.5", [2.5]),
        ((0, 9), " 7 ", [7.0]),
        ((0, 9), "nan", [NAN]),
        ((0, 9), "0x10", [NAN]),
        ((0, 9), "", [NAN]),
        ((0, 9), "9" * 500, [NAN]),
        (None, "2.5", [NAN]),
        (float, "2.5", [2.5]),
        (int, True, [1.0]),
        ((0, 9, "missing"), None, [4.5, 1.0]),
        ((0, 9, "missing"), "", [4.5, 1.0]),
        ((0, 9, "missing"), 3, [3.0, 0.0]),
        ((0, 9, "missing"), "x", [NAN, 0.0]),
        ((0, 9, 2, "missing"), NAN, [4.0, 1.0]),
        (("missing",), pd.NA, [0.0, 1.0]),
        ({"missing": True}, None, [0.0, 1.0]),
        ({"low": 0, "high": 9, "missing": True}, None, [4.5, 1.0]),
        ({"low": 0, "high": 9, "step": 3}, 6, [6.0]),
        (bool, "Yes", [1.0]),
        (bool, np.False_, [0.0]),
        (bool, 2, [NAN]),
        (bool, None, [NAN]),
        ({"boolean": True, "missing": True}, None, [0.0, 1.0]),
        ({"boolean": False}, 7, [7.0]),
        (FIRST, dt.date(2020, 1, 3), [2.0]),
        (FIRST, dt.datetime(2020, 1, 1, 12), [0.5]),  # noqa: DTZ001
        (FIRST, pd.Timestamp("2020-01-02", tz="Europe/Berlin"), [1 - 1 / 24]),
        (FIRST, np.datetime64("2019-12-31"), [-1.0]),
        (FIRST, np.datetime64("2020-02", "M"), [31.0]),
        (FIRST, "2020-01-01T06:00", [0.25]),
        (FIRST, "yesterday", [NAN]),
        (FIRST, 7, [NAN]),
        (FIRST, pd.NaT, [NAN]),
        ((FIRST, dt.date(2020, 1, 11)), "2020-01-11", [10.0]),
        ((FIRST, dt.date(2020, 1, 11), "missing"), None, [5.0, 1.0]),
        ((FIRST, "missing"), None, [0.0, 1.0]),
        ({"since": "2020-01-01", "missing": True}, "2020-01-02", [1.0, 0.0]),
        (["a", "b", None], "a", [0.0, 0.0]),
        (["a", "b", None], "b", [1.0, 0.0]),
        (["a", "b", None], None, [0.0, 1.0]),
        (["a", "b", None], "", [0.0, 1.0]),
        (["a", "b", None], "c", [0.0, 0.0]),
        (["a", "", None], "", [1.0, 0.0]),
        ({"categories": ["a", "b", "c"], "missing": True}, NAN, [0.0, 0.0, 0.0, 1.0]),
        (["a", "b", "c"], None, [0.0, 0.0, 0.0]),
        ([1, 2, 3], "2", [0.0, 1.0, 0.0]),
        ([1, 2, 3], 2.0, [0.0, 1.0, 0.0]),
        (["1", "2", "3"], 2, [0.0, 1.0, 0.0]),
        ([0.5, 1.5, 7], "0.5", [1.0, 0.0, 0.0]),
        ([False, True], True, [1.0]),
    ],
)
def test_a_cell_is_read_by_its_declaration_alone(
    declared: Any, cell: Any, wanted: list[float]
) -> None:
    assert same(read(declared, cell), [wanted])
    for company in ("x", None, 5, NAN, dt.date(1999, 1, 1), 10**400, object()):
        assert same(read(declared, company, cell, company)[1:2], [wanted])


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ((5, 3), "lower bound is not below the upper one"),
        ((dt.date(2020, 1, 2), FIRST), "first day that is not before the last one"),
        ((FIRST, dt.date(2020, 1, 2), 3), "is no declaration"),
        ({"low": 0}, "is no declaration"),
        ({"highest": 3}, "has the entry 'highest'; the entries are"),
        ({"missing": "yes"}, "missing='yes'; give True or False"),
        ({"since": "soon"}, "a day that cannot be read"),
        ([None], "fewer than two categories"),
        ([None, None, "a"], "fewer than two categories"),
        ([b"a", b"b"], "category that is no text, number, date"),
        ([1, (2, 3)], "category that is no text"),
    ],
)
def test_wrong_declarations_say_what_to_write(declared: Any, message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        Columns([declared], None, 1)


def test_a_missing_number_among_categories_says_that_cells_may_be_missing() -> None:
    columns = Columns([[1.0, np.nan, 2.0]], None, 1)
    assert json.loads(json.dumps(columns.to_dict(), allow_nan=False)) == columns.to_dict()
    assert columns.encode([[np.nan], [None], [1]])[:, -1].tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    "categories",
    [
        [FIRST, dt.date(2020, 1, 2)],
        [pd.Timestamp("2020-01-01 12:00"), np.datetime64("2020-01-02T00:00")],
        [1.0, math.inf],
        [10**400, True, "a"],
    ],
)
def test_columns_with_categories_of_any_kind_are_stored(categories: Any) -> None:
    columns = Columns([categories], None, 1)
    written = json.dumps(columns.to_dict(), allow_nan=False)
    again = Columns.from_dict(json.loads(written))
    cells = [[category] for category in categories]
    assert again.read(cells).tolist() == columns.read(cells).tolist()


@pytest.mark.parametrize(
    "X",
    [
        [[3], [7.0], [0.5]],
        np.array([[3], [7], [0.5]]),
        np.array([[3], [7], [0.5]], dtype=object),
        [np.array([3]), np.array([7.0]), np.array([0.5])],
        pd.DataFrame({"c": [3, 7, 0.5]}),
    ],
    ids=["list", "array", "objects", "rows", "frame"],
)
def test_a_number_is_the_category_that_it_is_written_as(X: Any) -> None:
    columns = Columns([["3", "7", "0.5"]], None, 1)
    assert columns.read(X).tolist() == np.eye(3).tolist()


def test_all_wrong_declarations_are_listed_at_once() -> None:
    with pytest.raises(InvalidParameter) as caught:
        Columns({"a": (5, 3), "b": ["only"], "c": 7}, ["a", "b", "c"], 3)
    for name in ("columns['a']", "columns['b']", "columns['c']"):
        assert name in str(caught.value)


FRAME = pd.DataFrame(
    {
        "age": [31.0, 52.0],
        "smokes": [True, False],
        "job": ["baker", "nurse"],
        "seen": pd.to_datetime(["2020-01-02", "2020-01-03"]),
        "mixed": pd.Series([1, "a"], dtype=object),
        "code": pd.Categorical(["x", "y"]),
    }
)


def test_what_must_be_declared_is_listed_with_lines_to_paste() -> None:
    with pytest.raises(InvalidParameter) as caught:
        Columns.of(FRAME)
    message = str(caught.value)
    assert "4 columns of X must be declared" in message
    pasted = message[message.index("columns=") + len("columns=") :]
    with pytest.raises(
        InvalidParameter, match="one of them twice"
    ):  # as long as it is not filled in
        Columns.of(FRAME, eval(pasted, {"datetime": dt}))  # noqa: S307
    pasted = pasted.replace('["...", "..."]', '["one", "another"]')
    declared = eval(pasted, {"datetime": dt})  # noqa: S307 - that it can be pasted is the point
    columns = Columns.of(FRAME, declared)
    assert [column.kind for column in columns.columns] == [
        "numbers",
        "booleans",
        "categories",
        "dates",
        "categories",
        "categories",
    ]


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"job": [1, 2]}, "text by its type, but its categories are numbers"),
        ({"age": ["a", "b"]}, "numbers by its type, but its categories are text"),
        ({"age": FIRST}, "numbers by its type, but declared as dates"),
        ({"seen": (0, 9)}, "dates: give a day to count from"),
        ({"smokes": ["no", "yes"]}, "booleans by its type, but its categories are text"),
    ],
)
def test_a_declaration_that_does_not_fit_the_type_is_refused(declared: Any, message: str) -> None:
    rest = {"job": ["a", "b"], "seen": FIRST, "mixed": (0, 1), "code": ["x", "y"]}
    with pytest.raises(InvalidParameter, match=message):
        Columns.of(FRAME, rest | declared)


def test_types_come_from_the_container_and_never_from_cells() -> None:
    assert kinds_of(FRAME) == ["numbers", "booleans", "text", "dates", "objects", "text"]
    assert kinds_of([[1, "a"]]) == ["", ""]
    assert kinds_of(np.zeros((2, 2))) == ["numbers"] * 2
    assert kinds_of(np.array([["a"]])) == ["text"]
    assert kinds_of(np.array([[True]])) == ["booleans"]
    nullable = pd.DataFrame(
        {"a": pd.array([1, None], "Int64"), "b": pd.array([True], "boolean")[[0, 0]]}
    )
    assert kinds_of(nullable) == ["numbers", "booleans"]


def test_a_table_of_text_is_read_once_it_is_declared() -> None:
    written = pd.DataFrame({"age": ["31", ""], "seen": ["2020-01-02", "2020-01-03"]}, dtype="str")
    with pytest.raises(InvalidParameter, match="2 columns"):
        Columns.of(written)
    columns = Columns.of(written, {"age": (0, 100, "missing"), "seen": FIRST})
    assert columns.encode(written).tolist() == [[31, 0, 1], [50, 1, 2]]
    assert columns.names == ["age", "age missing", "seen"]


def test_columns_of_all_kinds_are_stored() -> None:
    declared = {
        "age": (0, 9, "missing"),
        "smokes": bool,
        "job": ["a", "b", None],
        "seen": (FIRST, dt.date(2021, 1, 1)),
        "free": float,
    }
    columns = Columns(declared, list(declared), 5)
    again = Columns.from_dict(json.loads(json.dumps(columns.to_dict())))
    assert again.columns == columns.columns
    assert (again.names, again.bounds, again.shares) == (
        columns.names,
        columns.bounds,
        columns.shares,
    )


@pytest.mark.parametrize(
    ("declared", "cell", "form"),
    [
        ((0, 9), 1.0, '(0, 9, "missing")'),
        ((0, 12345678, 0.5), 1.0, '(0, 12345678, 0.5, "missing")'),
        (None, 1.0, '{"missing": True}'),
        (bool, 1.0, '{"boolean": True, "missing": True}'),
        (FIRST, FIRST, '(datetime.datetime(2020, 1, 1, 0, 0), "missing")'),
        (
            (FIRST, dt.date(2020, 1, 3)),
            FIRST,
            '(datetime.datetime(2020, 1, 1, 0, 0), datetime.datetime(2020, 1, 3, 0, 0), "missing")',
        ),
    ],
)
def test_a_missing_cell_is_refused_with_the_declaration_that_allows_it(
    declared: Any, cell: Any, form: str
) -> None:
    line = f"columns={{0: {form}}}"
    with pytest.raises(InvalidData, match=re.escape(line)):
        Columns([declared], None, 1).encode([[cell], [None]])
    names = {"datetime": dt}
    allowed = eval(line.removeprefix("columns="), names)  # noqa: S307 - the test's own text
    assert Columns(allowed, None, 1).encode([[cell], [None]])[:, 1].tolist() == [0, 1]


def test_ranges_found_later_move_the_stand_in() -> None:
    columns = Columns([float, ("missing",), (0, 1)], None, 3)
    assert columns.open == [0, 1]
    found = columns.within([(0.0, 4.0), (10.0, 20.0)])
    assert found.open == []
    table = columns.encode([[1, None, 0], [2, 12, 1]])
    found.fill(table)
    assert table.tolist() == [[1, 15, 1, 0], [2, 12, 0, 1]]
    assert found.encode([[1, None, 0], [2, 12, 1]]).tolist() == table.tolist()


@pytest.mark.parametrize("declared", [(0, 9), (0, 9, 3), bool, FIRST, ["a", "b"], float])
@pytest.mark.parametrize("missing", [False, True])
def test_made_up_cells_can_be_read(declared: Any, missing: bool) -> None:
    column = Columns([declared], None, 1).columns[0]
    column = Column(**{**vars(column), "missing": missing})
    cells = column.made_up(np.array([0.0, 0.3, 0.6, 0.95]))
    assert np.all(np.isfinite(column.read(cells)))
    assert (column.read(cells)[3, -1] == 1) or not missing


def test_the_owner_hears_of_all_kinds_of_bad_cells() -> None:
    rows = [
        [5, "yes", "2020-01-02", "a"],
        [None, "maybe", "2020-01-02", "a"],
        [50, "no", "soon", "c"],
        [5, "no", None, None],
    ]
    declared = [(0, 9, "missing"), bool, FIRST, ["a", "b", None]]
    assert bad_rows(rows, [0, 1, 0, 1], (0, 1), declared) == [
        "row 1, column 1: neither yes nor no (true, false, 1, 0)",
        "row 2, column 0: outside its declared bounds",
        "row 2, column 2: no date",
        "row 2, column 3: none of the declared categories",
        "row 3, column 2: missing value",
    ]
