"""Cells become numbers and places each by itself, in the same way wherever they are read."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cumae.data import Columns, bad_rows, class_places, length_of, numbers, read_table, width_of
from cumae.data.readings import codes_of, is_missing, places_of_values
from cumae.errors import InvalidData
from tests.cells import ODD

NUMBERS = [
    (1, 1.0),
    (True, 1.0),
    (2.5, 2.5),
    (np.int8(3), 3.0),
    (np.float32(0.5), 0.5),
    (Decimal("0.25"), 0.25),
    (Fraction(1, 2), 0.5),
    (math.inf, math.inf),
    (np.array(7.0), 7.0),
]
NO_NUMBERS: list[Any] = [
    None,
    "2",
    b"2",
    10**400,
    1j,
    np.complex128(1),
    np.datetime64("2020-01-01"),
    np.timedelta64(1, "D"),
    pd.NA,
    pd.NaT,
    Decimal("sNaN"),
    {},
    object(),
]


def objects(*cells: Any) -> Any:
    made = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        made[place] = cell
    return made


@pytest.mark.parametrize("odd", NO_NUMBERS, ids=lambda odd: repr(odd).partition(" at 0x")[0])
def test_no_cell_raises_or_warns_or_changes_another(odd: Any) -> None:
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for cell, number in NUMBERS:
            found = numbers(objects(cell, odd, 4))
            assert (found[0], found[2]) == (number, 4.0)
            assert math.isnan(found[1])


@pytest.mark.parametrize("kind", ["U3", "S3", "datetime64[D]", "timedelta64[D]", "complex128"])
def test_types_that_hold_no_numbers(kind: str) -> None:
    assert np.isnan(numbers(np.zeros((2, 3)).astype("int64").astype(kind))).all()


@given(
    st.lists(st.one_of(st.floats(), st.integers(), st.booleans(), st.none(), st.text()), max_size=6)
)
def test_cells_are_read_as_if_they_were_alone(cells: list[Any]) -> None:
    together = numbers(objects(*cells))
    alone = [float(numbers(objects(cell))[0]) for cell in cells]
    assert repr(together.tolist()) == repr(alone)


def test_declared_and_undeclared_tables_are_read_alike() -> None:
    rows = [[cell, odd] for (cell, _), odd in zip(NUMBERS, NO_NUMBERS, strict=False)]
    table = objects(*[cell for row in rows for cell in row]).reshape(-1, 2)
    frame = pd.DataFrame({"a": table[:, 0], "b": table[:, 1]}, dtype=object)
    declared = Columns([(0, 9), None], None, 2)
    for found in (read_table(table, None), read_table(table, declared), read_table(frame, None)):
        assert found[:, 0].tolist() == [number for _, number in NUMBERS]
        assert np.isnan(found[:, 1]).all()


def test_an_error_of_encode_is_about_a_cell_that_read_leaves_out() -> None:
    columns = Columns({0: ["a", "b", "c"]}, None, 2)
    rows: Any = [["a", 1.0], ["x", 2.0]]
    assert columns.encode(rows).tolist() == columns.read(rows).tolist()
    for odd, what in (
        (None, "missing value .* row 1, column 1"),
        ("2", "column 1 holds something"),
    ):
        rows[1][1] = odd
        assert np.isnan(columns.read(rows)[:, 3]).tolist() == [False, True]
        with pytest.raises(InvalidData, match=what):
            columns.encode(rows)


def test_categories_are_the_same_for_learners_and_owners() -> None:
    column = np.array([[0.1], [0.5], [0.7]], dtype=np.float32)
    columns = Columns([[0.1, 0.5, 0.9]], None, 1)
    assert columns.encode(column).argmax(axis=1)[:2].tolist() == [0, 1]
    assert columns.encode(column)[2].sum() == 0
    found = bad_rows(column, [0, 1, 1], (0, 1), [[0.1, 0.5, 0.9]])
    assert found == ["row 2, column 0: none of the declared categories"]


def test_a_missing_cell_is_no_category() -> None:
    for gone in (None, math.nan, np.nan):
        known = places_of_values(["a", gone])
        assert known == {"a": 0}
        assert codes_of(objects("a", gone), known).tolist() == [0, -1]
    assert is_missing(pd.NA)
    assert not is_missing([None])


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_a_label_that_is_none_of_the_classes_is_named_by_its_own_row(odd: Any) -> None:
    if odd is not True:
        with pytest.raises(InvalidData, match="label in row 1 that is none of classes"):
            class_places([0, odd, 1], (0, 1), unlabelled=False)
    assert class_places([0, -1, 1], (0, 1), unlabelled=True).tolist() == [0, -1, 1]
    with pytest.raises(InvalidData, match="row 1"):
        class_places([0, -1, 1], (0, 1), unlabelled=False)


def test_masked_labels_are_refused() -> None:
    masked = np.ma.masked_array([0, 1], [False, True])
    with pytest.raises(InvalidData, match="MaskedArray cannot be used"):
        class_places(masked, (0, 1), unlabelled=False)


def test_width_and_length_of_any_table() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    tables: list[Any] = [[[1, "a"], [2, None]], np.zeros((2, 2)), frame]
    for table in tables:
        assert (length_of(table), width_of(table)) == (2, 2)
    assert (length_of([1, 2, 3]), width_of([1, 2, 3])) == (3, 1)

    class Wrapped:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.zeros((4, 3))

    wrapped: Any = Wrapped()
    assert (length_of(wrapped), width_of(wrapped)) == (4, 3)
    strange: Any = (5, None, np.array(5.0))
    for nothing in strange:
        with pytest.raises(InvalidData, match="has no rows"):
            length_of(nothing)
