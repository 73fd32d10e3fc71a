"""Rows come as they are, only those asked for, and each as if the others were not there."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from cumae.data import RowSource, row_source
from cumae.errors import InvalidData, InvalidParameter
from cumae.predictors import bad_rows
from tests.cells import ODD, look, numbers, of_parquet, write

PLACES = np.array([17, 3, 3, 0, 29, 12, 8])


def of_memory_map(table: Any, folder: Path) -> RowSource:
    np.save(folder / "table.npy", table)
    return row_source(np.load(folder / "table.npy", mmap_mode="r"))


SOURCES: dict[str, Callable[[Any, Path], RowSource]] = {
    "array": lambda table, _: row_source(table),
    "columns first": lambda table, _: row_source(np.asfortranarray(table)),
    "list": lambda table, _: row_source(table.tolist()),
    "tuples": lambda table, _: row_source([tuple(row) for row in table]),
    "arrays": lambda table, _: row_source(list(table)),
    "frame": lambda table, _: row_source(pd.DataFrame(table, columns=list("abcd"))),
    "memory map": of_memory_map,
    "parquet": of_parquet,
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_rows_of_numpy(name: str, tmp_path: Path) -> None:
    table = numbers()
    rows = SOURCES[name](table, tmp_path)
    assert (rows.n_rows, rows.n_features) == (30, 4)
    assert rows.names == (list("abcd") if rows.is_frame else None)
    assert row_source(rows) is rows
    assert not any(rows.is_text(place) for place in range(4))
    for places in (PLACES, np.arange(30), np.array([], dtype=np.int64)):
        taken = rows.take(places)
        assert type(taken).__name__ == ("DataFrame" if rows.is_frame else "ndarray")
        assert np.array_equal(np.asarray(taken, dtype=float), table[places])
        if rows.is_frame:
            assert list(taken.columns) == rows.names
            assert taken.index.equals(pd.RangeIndex(len(places)))
            assert {str(kind) for kind in taken.dtypes} == {"float64"}


@pytest.mark.parametrize("name", ["array", "frame", "list"])
def test_what_is_taken_is_a_copy(name: str, tmp_path: Path) -> None:
    table = numbers()
    rows = SOURCES[name](table, tmp_path)
    before = np.array(rows.take(PLACES))
    taken = rows.take(PLACES)
    taken[:] = -1
    assert np.array_equal(np.array(rows.take(PLACES)), before)
    assert table.min() != -1


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("places", [[-1], [30], [[0]]])
def test_places_outside_are_refused(name: str, places: Any, tmp_path: Path) -> None:
    rows = SOURCES[name](numbers(), tmp_path)
    with pytest.raises(InvalidParameter, match="from 0 to 29"):
        rows.take(np.array(places))


@pytest.mark.parametrize("flat", [np.arange(5.0), [0.0, 1.0, 2.0, 3.0, 4.0]])
def test_flat_rows_are_one_column(flat: Any) -> None:
    rows = row_source(flat)
    assert (rows.n_rows, rows.n_features) == (5, 1)
    assert rows.take(np.array([4, 1])).tolist() == [[4.0], [1.0]]


@pytest.mark.parametrize(
    ("X", "advice"),
    [
        (csr_array(np.eye(3)), "toarray"),
        (pd.Series([1, 2]), "data frame"),
        (None, "numpy array"),
        ("table.parquet", "ParquetRows"),
        (np.zeros((2, 2, 2)), "3 dimensions"),
        (np.zeros((0, 2)), "0 rows"),
        (np.zeros((2, 0)), "minimum of 1"),
        (np.zeros((2, 2), dtype=complex), "real numbers"),
        (np.zeros(2, dtype=[("a", float)]), "structured"),
        (np.ma.masked_array([[1.0]], [[True]]), "filled"),
        ([], "0 rows"),
        ([[], []], "minimum of 1"),
        ([[1, 2], [3]], "same length"),
        ([[1, 2], 3], "same length"),
        ([[[1], [2]], [[3], [4]]], "flat rows"),
        ([{"a": 1}, {"a": 2}], "flat rows"),
        ([np.zeros((2, 2))], "flat rows"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "same name"),
        (pd.DataFrame(), "0 rows"),
    ],
)
def test_what_is_no_table_is_refused_with_advice(X: Any, advice: str) -> None:
    with pytest.raises(InvalidData, match=advice):
        row_source(X)


class Watched(np.ndarray):
    """Counts the cells that were read."""

    read = 0

    def __getitem__(self, key: Any) -> Any:
        found = np.asarray(super().__getitem__(key))
        Watched.read += found.size
        return found

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("all rows were read")


def test_an_array_is_read_only_where_it_is_asked_for() -> None:
    rows = row_source(numbers().view(Watched))
    assert Watched.read == 0
    rows.take(PLACES)
    assert Watched.read == 4 * len(PLACES)


def test_a_memory_map_far_larger_than_memory_stays_on_disk(tmp_path: Path) -> None:
    shape = (2_000_000_000, 50)  # 800 GB of zeros, which take no room on disk
    table = np.memmap(tmp_path / "huge", dtype=np.float64, mode="w+", shape=shape)
    table[1_999_999_999] = 7.0
    rows = row_source(table)
    assert rows.n_rows == shape[0]
    taken = rows.take(np.array([1_999_999_999, 5]))
    assert taken.sum(axis=1).tolist() == [350.0, 0.0]
    assert (tmp_path / "huge").stat().st_blocks * 512 < 10**6


# One strange cell in row 5 must leave all other rows as they were, down to their types.


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_one_cell_of_a_list_or_of_objects_leaves_the_others_alone(odd: Any) -> None:
    plain = [[i, i / 3, f"word {i}"] for i in range(10)]
    changed = [*plain[:5], [5, odd, odd], *plain[6:]]

    def objects(rows: list[Any]) -> Any:
        made = np.empty((10, 3), dtype=object)
        for place, row in enumerate(rows):
            for column, cell in enumerate(row):
                made[place, column] = cell
        return made

    def frame(rows: list[Any]) -> Any:
        return pd.DataFrame(
            {n: pd.Series(objects(rows)[:, i], dtype=object) for i, n in enumerate("abc")}
        )

    for make in (list, objects, frame):
        assert look(row_source(make(changed))) == look(row_source(make(plain)))
    cells = row_source(changed).take(np.array([5]))[0]
    long = type(odd) is int and abs(odd) >= 2**63  # such a number becomes the nearest float
    kept = type(odd) in (str, int, bool, float) and not long
    assert cells[1] is odd if kept else isinstance(cells[1], float)
    if not isinstance(odd, list):  # which would be a row, not a cell, of a flat list
        flat = [row[1] for row in changed], [row[1] for row in plain]
        assert look(row_source(flat[0])) == look(row_source(flat[1]))


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("Int64", range(2**60, 2**60 + 10)),
        ("int64[pyarrow]", range(2**60, 2**60 + 10)),
        ("boolean", [True, False] * 5),
        ("Float64", np.arange(10) / 3),
        ("float64", np.arange(10) / 3),
        ("string", list("abcdefghij")),
        ("string[pyarrow]", list("abcdefghij")),
        ("datetime64[us]", pd.date_range("2020-01-01", periods=10)),
        ("datetime64[us, UTC]", pd.date_range("2020-01-01", periods=10, tz="UTC")),
        (pd.CategoricalDtype(list(range(10))), range(10)),
        (pd.CategoricalDtype(list("abcdefghij")), list("abcdefghij")),
    ],
    ids=str,
)
def test_one_missing_cell_of_a_frame_leaves_the_others_alone(kind: Any, values: Any) -> None:
    plain = pd.DataFrame({"a": pd.Series(values, dtype=kind)})
    changed = plain.copy()
    changed.iloc[5, 0] = None
    assert look(row_source(changed)) == look(row_source(plain))
    taken = row_source(changed).take(np.array([4, 5, 6]))["a"]
    assert pd.isna(taken[1])
    assert taken[0] == plain["a"][4]
    assert isinstance(taken.dtype, np.dtype)


def test_what_is_missing_among_objects_of_a_frame_is_nan() -> None:
    frame = pd.DataFrame({"a": pd.Series(["x", None, pd.NA, 5, math.nan], dtype=object)})
    taken = row_source(frame).take(np.arange(5))["a"].tolist()
    assert [isinstance(cell, float) for cell in taken] == [False, True, True, False, True]


def test_categories_seen_in_other_rows_do_not_come_along() -> None:
    frame = pd.DataFrame({"job": pd.Categorical(["nurse", "baker", None, "poet"])})
    taken = row_source(frame).take(np.array([1, 2]))
    assert taken["job"].dtype == np.dtype(object)
    assert taken["job"][0] == "baker"
    assert math.isnan(taken["job"][1])


def test_text_is_known_by_its_type() -> None:
    frame = pd.DataFrame(
        {
            "text": pd.Series(["a", "b"], dtype="string"),
            "category": pd.Categorical(["a", "b"]),
            "object": pd.Series(["a", "b"], dtype=object),
            "arrow": pd.Series(["a", "b"], dtype="string[pyarrow]"),
            "whole": pd.Series([1, None], dtype="Int64"),
            "codes": pd.Categorical([1, 2]),
        }
    )
    rows = row_source(frame)
    assert [rows.is_text(i) for i in range(6)] == [True, True, True, True, False, False]
    assert row_source(np.array([["a"]])).is_text(0)
    assert not row_source([["a"]]).is_text(0)


def test_the_owner_can_ask_which_rows_are_bad(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "age": pd.Series([40, None, 30, 20, "forty", 50], dtype=object),
            "job": ["baker", "nurse", "poet", None, "baker", "nurse"],
            "pay": [1.0, 2.0, np.inf, 3.0, 4.0, 5.0],
        }
    )
    y = [0, 1, 1, 9, 0, None]
    plain = [
        "row 1, column age: missing value",
        "row 2, column pay: infinite value",
        "row 3: label is none of the declared classes",
        "row 3, column job: missing value",
        "row 4, column age: no number",
        "row 5: label is none of the declared classes",
        "2 of 6 labels: none of the declared classes",
    ]
    assert bad_rows(frame, y, (0, 1)) == plain
    declared = {"age": (25, 99), "job": ["baker", "nurse"]}
    more = bad_rows(frame, y, (0, 1), declared | {"pay": (0, 99)})
    assert set(more) - set(plain) == {
        "row 3, column age: outside its declared bounds",
        "row 2, column job: none of the declared categories",
    }
    assert bad_rows([[1.0, math.nan]], [0], (0, 1)) == ["row 0, column 1: missing value"]
    rows = write(tmp_path / "rows.parquet", {"a": [1.0, None], "y": [None, 1]})
    assert bad_rows(rows, "y", (0, 1)) == [
        "row 0: label is none of the declared classes",
        "row 1, column a: missing value",
        "1 of 2 labels: none of the declared classes",
    ]
    days = pd.DataFrame({"seen": pd.to_datetime(["2020-01-01"])})
    (found,) = bad_rows(days, [0], (0, 1))
    assert "'seen': datetime.date(2000, 1, 1)" in found


def test_findings_are_few_and_beyond_the_first_block() -> None:
    X = np.zeros((200_000, 2))
    y = np.zeros(200_000, dtype=int)
    assert bad_rows(X, y, (0, 1)) == []
    X[150_000, 1] = np.nan
    assert bad_rows(X, y, (0, 1)) == ["row 150000, column 1: missing value"]
    X[:20] = np.nan
    found = bad_rows(X, y, (0, 1))
    assert found[:20] == [f"row {i // 2}, column {i % 2}: missing value" for i in range(20)]
    assert found[20:] == ["only the first 20 are listed: mend them, and look again"]
