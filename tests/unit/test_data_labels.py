"""Labels become places among the declared classes, each for itself."""

from __future__ import annotations

import math
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cumae.data import label_codes, row_source
from cumae.errors import InvalidData, InvalidParameter
from tests.cells import ODD, write


def labels(y: Any, classes: Any = (0, 1)) -> list[int]:
    count = len(y) if y is not None else 1
    return list(label_codes(row_source(np.zeros((count, 1))), y, classes))


@pytest.mark.parametrize(
    ("y", "classes", "codes"),
    [
        ([0, 1, "a"], (0, 1), [0, 1, -1]),
        ([0, None, math.nan, [1], pd.NA], (0, 1), [0, -1, -1, 1, -1]),
        ([True, 1.0, np.int8(1), np.False_], (0, 1), [1, 1, 1, 0]),
        (np.array([0, 1, 2, -1]), (1, 0), [1, 0, -1, -1]),
        (np.array([0.0, 1.0, np.nan, 0.5, np.inf]), (0, 1), [0, 1, -1, -1, -1]),
        (np.array([True, False]), (0, 1), [1, 0]),
        (np.array([1, 2], dtype=np.uint8), (-1, 257, 2, 1), [3, 2]),
        (np.array([1, 2, 3]), (2.5, 3.0, 10**400, 1), [3, -1, 1]),
        (np.array([2**53, 2**53 + 1]), (2.0**53, 2**53 + 1), [0, 1]),
        (np.array([2.0**53]), (2**53 + 1, 0), [-1]),
        (np.array([np.inf, 1.0], dtype=np.float16), (1e30, 1), [-1, 1]),
        (np.array([0.1, 0.5], dtype=np.float32), (0.1, 0.5), [0, 1]),
        (np.array([1, 2]), (1, "b"), [0, -1]),
        (np.array([1, 2]), (Decimal(2), 1), [1, 0]),
        (np.array(["no", "yes", ""]), ("no", "yes"), [0, 1, -1]),
        (np.array([[0], [1]]), (0, 1), [0, 1]),
        (pd.Series(["b", None, "a"]), ("a", "b"), [1, -1, 0]),
        (pd.Series([1, None, 0], dtype="Int64"), (0, 1), [1, -1, 0]),
        (pd.Series([1, 0], index=[1, 0]), (0, 1), [1, 0]),
        (pd.Series(["b", None], dtype="category"), ("a", "b"), [1, -1]),
        (pd.DataFrame({"y": [1, 0]}), (0, 1), [1, 0]),
        ([(1, 2), "a"], ("a", (1, 2)), [1, 0]),
        ((1, 0), np.array([0, 1]), [1, 0]),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_labels_become_places_among_the_classes(y: Any, classes: Any, codes: list[int]) -> None:
    assert labels(y, classes) == codes


class Hostile:
    """A cell that raises whenever it is touched."""

    def __hash__(self) -> int:
        raise RuntimeError("secret")


def test_no_single_label_raises_or_changes_another() -> None:
    strange: list[Any] = [*ODD, Hostile(), np.zeros(2), {}]
    for odd in strange:
        assert labels([1, odd, 0, "x"], (0, 1))[::2] == [1, 0]
        assert labels([1, odd, 0, "x"], (0, 2))[0] == -1


@pytest.mark.parametrize("of", [pl.Series, pa.array, lambda y: pl.DataFrame({"y": y})])
def test_one_missing_label_of_another_library_leaves_the_others_alone(of: Any) -> None:
    far = 2**60 + 1
    assert labels(of([far, 0]), (0, far)) == [1, 0]
    assert labels(of([far, None]), (0, far)) == [1, -1]
    for truth in (True, None):
        with pytest.raises(InvalidData, match="type for numbers"):
            labels(of([False, truth]), ("no", "yes"))


@given(
    st.lists(
        st.one_of(st.integers(-3, 3), st.floats(), st.booleans(), st.text(max_size=2)), max_size=8
    )
)
def test_labels_are_compared_as_in_python(cells: list[Any]) -> None:
    classes = [2, -1, 0.5, "", "a", False]
    expected = [next((i for i, c in enumerate(classes) if cell == c), -1) for cell in cells]
    if cells:
        assert labels(cells, classes) == expected
        alone = [labels([cell], classes)[0] for cell in cells]
        assert alone == expected
        array = np.array([cell for cell in cells if isinstance(cell, int | float)], dtype=float)
        if len(array):
            wanted = [next((i for i, c in enumerate(classes) if cell == c), -1) for cell in array]
            assert labels(array, classes) == wanted


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y is None"),
        (np.zeros((3, 2)), "flat list"),
        (np.ma.masked_array([1, 0], [True, False]), "flat list"),
        (pd.DataFrame({"a": [1], "b": [1]}), "flat list"),
        ({0: 1}, "flat list"),
        ("label", "needs ParquetRows"),
        (np.array(["0", "1"]), "type for text, but the declared classes are numbers"),
        (pd.Series(["0", "1"], dtype="string"), "type for text"),
        (pd.Series(["0", "1"], dtype="category"), "type for text"),
        (np.array([b"0"]), "type for bytes"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "type for dates"),
    ],
    ids=str,
)
def test_labels_of_the_wrong_form_are_refused(y: Any, message: str) -> None:
    with pytest.raises(InvalidData, match=message):
        labels(y)


def test_labels_of_the_wrong_number_or_type_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match="X has 2 rows but y has 3"):
        label_codes(row_source([[1], [2]]), [0, 1, 0], (0, 1))
    for numeric in (np.array([0, 1]), np.array([0.5]), pd.Series([True, None], dtype="boolean")):
        with pytest.raises(InvalidData, match=r"numbers.*are text; declare .*classes="):
            labels(numeric, ("no", "yes"))
    rows = write(tmp_path / "rows.parquet", {"a": [1, None, 0, 1, 7], "b": list("vwxyz")})
    assert label_codes(rows, "a", (0, 1)).tolist() == [1, -1, 0, 1, -1]
    assert label_codes(rows, "b", ("z", "w")).tolist() == [-1, 1, -1, -1, 0]
    assert label_codes(rows, [0, 1, 1, 1, 1], (0, 1)).tolist() == [0, 1, 1, 1, 1]
    for name, classes in (("a", ("0", "1")), ("b", (0, 1))):
        with pytest.raises(InvalidData, match="y has a type for"):
            label_codes(rows, name, classes)


@pytest.mark.parametrize(
    "classes", [(), (0,), (0, 0), (0, False), (0, math.nan), (0, None), "ab", 3, None, ([1], [2])]
)
def test_classes_must_be_two_or_more_different_labels(classes: Any) -> None:
    with pytest.raises(InvalidParameter, match="at least two labels"):
        labels([0, 1], classes)


@pytest.mark.parametrize("kind", [np.int64, np.int8, bool, np.float64])
def test_a_million_labels_are_coded_at_array_speed(kind: Any) -> None:
    y = (np.random.default_rng(0).random(1_000_000) < 0.5).astype(kind)
    rows = row_source(y)
    together, one_by_one = [], []
    for _ in range(3):
        start = time.perf_counter()
        codes = label_codes(rows, y, (0, 1))
        middle = time.perf_counter()
        assert np.array_equal([int(label) for label in y], codes)
        together.append(middle - start)
        one_by_one.append(time.perf_counter() - middle)
    assert min(together) < min(one_by_one) / 3
