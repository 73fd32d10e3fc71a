"""Rows come as they are, only those asked for, and each as if the others were not there."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array

from cumae.errors import InvalidData, InvalidParameter
from cumae.predictors import bad_rows
from cumae.predictors.labels import label_codes
from cumae.predictors.rows import ParquetRows, RowSource, row_source
from tests.cells import ODD, write

PLACES = np.array([17, 3, 3, 0, 29, 12, 8])


def numbers() -> Any:
    return np.random.default_rng(0).normal(size=(30, 4))


def of_memory_map(table: Any, folder: Path) -> RowSource:
    np.save(folder / "table.npy", table)
    return row_source(np.load(folder / "table.npy", mmap_mode="r"))


def of_parquet(table: Any, folder: Path) -> RowSource:
    frame = pd.DataFrame(table, columns=list("abcd"))
    for part in range(3):
        rows = frame.iloc[10 * part : 10 * part + 10]
        rows.to_parquet(folder / f"part{part}.parquet", row_group_size=4, index=False)
    return ParquetRows(folder)


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
        (pd.Series([1, 2]), "DataFrame"),
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


def look(rows: RowSource, row: int = 5) -> list[Any]:
    """Return values and types of all cells but those of one row, which is taken with them."""
    taken = rows.take(np.arange(rows.n_rows))
    kinds = [str(kind) for kind in taken.dtypes] if rows.is_frame else [str(taken.dtype)]
    columns = [taken[name].to_numpy() for name in taken] if rows.is_frame else list(taken.T)
    others = [cell for cells in columns for cell in np.delete(cells, row)]
    return [*kinds, *[(type(cell).__name__, repr(cell)) for cell in others]]


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
    assert cells[1] is odd if type(odd) in (str, int, bool, float) else isinstance(cells[1], float)
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


@pytest.mark.parametrize(
    "values",
    [
        pa.array(range(2**60, 2**60 + 12)),
        pa.array(range(12), pa.uint8()),
        pa.array([True, False] * 6),
        pa.array(np.arange(12) / 3),
        pa.array(np.arange(12) / 3, pa.float32()),
        pa.array(list("abcdefghijkl")),
        pa.array(list("abcdefghijkl")).dictionary_encode(),
        pa.array(range(12)).dictionary_encode(),
        pa.array([b"x"] * 12),
        pa.array(range(12), pa.timestamp("us")),
        pa.array(range(12), pa.date32()),
        pa.array(range(12), pa.time64("us")),
        pa.array([Decimal(i) for i in range(12)]),
    ],
    ids=lambda values: str(values.type),
)
def test_one_null_in_parquet_leaves_the_others_alone(values: Any, tmp_path: Path) -> None:
    hole = pa.array([place == 5 for place in range(12)])
    changed = pa.compute.if_else(hole, pa.scalar(None, values.type), values)
    plain = write(tmp_path / "plain.parquet", {"a": values})
    holed = write(tmp_path / "holed.parquet", {"a": changed})
    assert look(holed) == look(plain)
    assert holed.column("a").dtype == plain.column("a").dtype
    assert pd.isna(holed.take(np.array([5]))["a"][0])
    dates = pa.types.is_temporal(values.type)
    if not dates:
        assert plain.take(np.array([11, 2]))["a"].tolist() == [
            values[11].as_py(),
            values[2].as_py(),
        ]


def test_one_damaged_text_in_parquet_leaves_the_others_alone(tmp_path: Path) -> None:
    def column(words: list[bytes]) -> Any:
        raw = pa.array(words)
        return pa.StringArray.from_buffers(len(raw), raw.buffers()[1], raw.buffers()[2])

    words = [f"wört {i}".encode() for i in range(8)]
    plain = write(tmp_path / "plain.parquet", {"a": column(words)})
    words[5] = b"\xff\xfe"
    damaged = write(tmp_path / "damaged.parquet", {"a": column(words)})
    assert look(damaged) == look(plain)
    assert label_codes(damaged, "a", ["wört 4", "wört 7"]).tolist() == [-1] * 4 + [0, -1, -1, 1]


def test_columns_that_cannot_be_null_keep_their_type(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int16(), nullable=False)])
    pq.write_table(pa.table({"a": [1, 2, 3]}, schema), tmp_path / "a.parquet")
    taken = ParquetRows(tmp_path).take(np.array([2, 0]))["a"]
    assert taken.dtype == np.int16
    assert taken.tolist() == [3, 1]


def test_only_the_row_groups_with_wanted_rows_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = numbers()
    rows = of_parquet(table, tmp_path)  # row groups of 4, 4 and 2 rows in each of 3 files
    read: list[tuple[int, Any]] = []
    plain = pq.ParquetFile.read_row_group

    def watched(self: Any, group: int, columns: Any = None, **more: Any) -> Any:
        read.append((group, columns))
        return plain(self, group, columns=columns, **more)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", watched)
    assert isinstance(rows, ParquetRows)
    rows.without("b").take(np.array([29, 14, 29, 15, 13]))
    assert read == [(0, ["a", "c", "d"]), (1, ["a", "c", "d"]), (2, ["a", "c", "d"])]
    read.clear()
    rows.take(np.array([14, 17]))
    assert [group for group, _ in read] == [1]
    read.clear()
    assert np.array_equal(rows.column("c"), table[:, 2])
    assert [columns for _, columns in read] == [["c"]] * 9


def test_one_row_group_at_a_time_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(0)
    for part in range(4):
        table = pa.table({f"x{i}": generator.random(100_000) for i in range(20)})
        file = tmp_path / f"{part}.parquet"
        pq.write_table(table, file, row_group_size=10_000, use_dictionary=False)
    del table
    on_disk = sum(path.stat().st_size for path in tmp_path.iterdir())
    group = 10_000 * 20 * 8
    assert on_disk > 39 * group
    rows = ParquetRows(tmp_path)
    before = pa.total_allocated_bytes()
    held: list[int] = []
    plain = pq.ParquetFile.read_row_group

    def watched(*args: Any, **more: Any) -> Any:
        held.append(pa.total_allocated_bytes() - before)
        found = plain(*args, **more)
        held.append(pa.total_allocated_bytes() - before)
        return found

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", watched)
    tracemalloc.start()
    taken = rows.take(np.linspace(0, rows.n_rows - 1, 1000).astype(np.int64))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken.shape == (1000, 20)
    assert len(held) == 80
    assert max(held[::2]) < group / 10  # nothing is left of the row groups before
    assert group <= max(held[1::2]) < 1.2 * group
    assert peak < on_disk / 50


def test_parquet_files_are_taken_by_name_and_must_agree(tmp_path: Path) -> None:
    for name, start in (("b", 2), ("a", 0), ("c", 4)):
        pq.write_table(pa.table({"x": [start, start + 1]}), tmp_path / f"{name}.parquet")
    (tmp_path / "_SUCCESS").write_text("")
    assert ParquetRows(tmp_path).column("x").tolist() == [0, 1, 2, 3, 4, 5]
    listed = ParquetRows([tmp_path / "c.parquet", str(tmp_path / "a.parquet")])
    assert listed.take(np.arange(4))["x"].tolist() == [4, 5, 0, 1]
    pq.write_table(pa.table({"x": [1.5]}), tmp_path / "d.parquet")
    with pytest.raises(InvalidData, match=r"d\.parquet has other columns.*a\.parquet"):
        ParquetRows(tmp_path)


def test_declared_facts_of_parquet_are_checked(tmp_path: Path) -> None:
    nested = pa.array([[1], [2]])
    rows = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": [1, 2], "b.c": [3, 4], "n": nested}), rows)
    with pytest.raises(InvalidData, match="column n holds nested"):
        ParquetRows(rows)
    two = ParquetRows(rows, features=["b.c", "a"])
    assert two.take(np.array([1])).to_numpy().tolist() == [[4, 2]]
    assert two.without("n").names == ["b.c", "a"]
    assert two.without("a").names == ["b.c"]
    assert two.names == ["b.c", "a"]
    with pytest.raises(InvalidData, match="no single column 'z'"):
        two.without("z")
    with pytest.raises(InvalidData, match="no single column 'z'"):
        label_codes(two, "z", [0, 1])
    with pytest.raises(InvalidData, match="no single column"):
        ParquetRows(rows, features=["z"])
    with pytest.raises(InvalidData, match="same name"):
        ParquetRows(rows, features=["a", "a"])
    with pytest.raises(InvalidData, match="minimum of 1"):
        two.without("a").without("b.c")
    (tmp_path / "text.parquet").write_text("a,b")
    for path in (tmp_path / "text.parquet", tmp_path / "none.parquet"):
        with pytest.raises(InvalidData, match="is missing, unreadable or no Parquet file"):
            ParquetRows(path)
    (tmp_path / "empty").mkdir()
    nothing: list[Any] = [tmp_path / "empty", []]
    for empty in nothing:
        with pytest.raises(InvalidData, match="is empty"):
            ParquetRows(empty)
    with pytest.raises(InvalidData, match="0 rows"):
        write(tmp_path / "none.parquet", {"a": pa.array([], pa.int64())})
    pq.write_table(pa.table({"a": [1, 2, 3], "b.c": [3, 4, 5], "n": [[1], [2], [3]]}), rows)
    with pytest.raises(InvalidData, match="written anew"):
        two.take(np.array([0]))


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
    ]
    assert bad_rows(frame, y, (0, 1)) == plain
    declared = {"age": (25, 99), "job": ["baker", "nurse"]}
    more = bad_rows(frame, y, (0, 1), declared)
    assert set(more) - set(plain) == {
        "row 3, column age: outside its declared bounds",
        "row 2, column job: none of the declared categories",
    }
    assert bad_rows([[1.0, math.nan]], [0], (0, 1)) == ["row 0, column 1: missing value"]
    rows = write(tmp_path / "rows.parquet", {"a": [1.0, None], "y": [None, 1]})
    assert bad_rows(rows, "y", (0, 1)) == [
        "row 0: label is none of the declared classes",
        "row 1, column a: missing value",
    ]


def test_findings_are_few_and_beyond_the_first_block() -> None:
    X = np.zeros((200_000, 2))
    y = np.zeros(200_000, dtype=int)
    assert bad_rows(X, y, (0, 1)) == []
    X[150_000, 1] = np.nan
    assert bad_rows(X, y, (0, 1)) == ["row 150000, column 1: missing value"]
    X[:20] = np.nan
    found = bad_rows(X, y, (0, 1))
    assert found == [f"row {i // 2}, column {i % 2}: missing value" for i in range(20)]
