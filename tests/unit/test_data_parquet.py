"""Rows of Parquet files: the row groups asked for, and each row as if the others were not there."""

from __future__ import annotations

import pickle
import tracemalloc
from decimal import Decimal
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cumae.data import ParquetRows, label_codes
from cumae.errors import InvalidData
from tests.cells import look, numbers, of_parquet, write


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


def test_files_on_other_file_systems_are_read_by_their_addresses(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    table = pd.DataFrame({"age": np.arange(30.0), "ill": np.arange(30) % 2})
    for part in range(3):
        table.iloc[part * 10 : part * 10 + 10].to_parquet(tmp_path / "part.parquet")
        memory.pipe(f"/ward/{part}.parquet", (tmp_path / "part.parquet").read_bytes())
    rows = ParquetRows("memory://ward").without("ill")
    assert rows.n_rows == 30
    assert rows.take(np.array([25, 3]))["age"].tolist() == [25.0, 3.0]
    again = pickle.loads(pickle.dumps(rows))  # noqa: S301 - as it travels to workers
    assert again.take(np.array([29]))["age"].tolist() == [29.0]
    assert ParquetRows("memory://ward/1.parquet").n_rows == 10
    with pytest.raises(InvalidData, match=r"no \*\.parquet file"):
        ParquetRows("memory://nobody")
    with pytest.raises(InvalidData, match="fsspec knows no such file system"):
        ParquetRows("nowhere://ward")
