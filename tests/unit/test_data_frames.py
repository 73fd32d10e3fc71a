"""Data frames of several libraries give the same rows."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cumae import Budget, ParquetRows, PrivateBooster, QueryRelease
from cumae.data import Columns, label_codes, row_source, table_of
from cumae.errors import InvalidData, InvalidParameter, MissingPackage

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 600
RNG = np.random.default_rng(0)
AGES = RNG.integers(0, 90, SIZE).astype(float)
FRAME = pd.DataFrame(
    {
        "age": np.where(AGES < 5, np.nan, AGES),
        "job": pd.Series(np.where(AGES > 40, "nurse", "baker")).where(AGES > 9, None),
        "seen": pd.to_datetime("2020-01-01") + pd.to_timedelta(AGES, unit="D"),
        "smokes": AGES % 3 == 0,
        "visits": RNG.integers(0, 9, SIZE),
    }
)
LABELS = (AGES > 45).astype(int)
DECLARED: dict[str, Any] = {
    "age": (0, 90, "missing"),
    "job": ["baker", "nurse", None],
    "seen": (dt.date(2020, 1, 1), dt.date(2020, 6, 1)),
    "visits": (0, 9),
}
LIBRARIES = ("pandas", "pandas with its own types", "polars", "pyarrow", "parquet", "shuffled")


@pytest.fixture(params=LIBRARIES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """The same rows, from several libraries."""
    arrow = pa.Table.from_pandas(FRAME, preserve_index=False)
    if request.param == "parquet":
        FRAME.to_parquet(tmp_path / "rows.parquet", index=False)
        return ParquetRows(tmp_path)
    return {
        "pandas": FRAME,
        "pandas with its own types": FRAME.convert_dtypes(),
        "polars": pl.from_pandas(FRAME),
        "pyarrow": arrow,
        "shuffled": pl.from_pandas(FRAME).select(["seen", "visits", "job", "age", "smokes"]),
    }[request.param]


def test_rows_are_read_alike(table: Any) -> None:
    columns = Columns.of(FRAME, DECLARED)
    assert columns.encode(table).tolist() == columns.encode(FRAME).tolist()
    names = set(Columns.of(table, DECLARED).names)
    assert names == set(columns.names)


def test_text_and_dates_of_other_libraries_must_be_declared(table: Any) -> None:
    with pytest.raises(InvalidParameter, match="2 columns of X must be declared"):
        PrivateBooster(1.0).fit(table, LABELS)


def test_a_lazy_frame_is_refused_with_advice() -> None:
    with pytest.raises(InvalidData, match=r"not read yet; give X\.collect"):
        table_of(pl.from_pandas(FRAME[["age"]]).lazy())


def test_a_frame_that_is_none_stays_what_it_is() -> None:
    for thing in ([[1]], np.zeros((1, 1)), FRAME, "text", None, object()):
        assert table_of(thing) is thing


def test_labels_may_come_from_a_column_of_a_file(tmp_path: Path) -> None:
    FRAME.assign(ill=LABELS).to_parquet(tmp_path / "rows.parquet", index=False)
    rows = ParquetRows(tmp_path)
    named = PrivateBooster(1.0, columns=DECLARED, random_state=1).fit(rows, "ill")
    given = PrivateBooster(1.0, columns=DECLARED, random_state=1).fit(FRAME, LABELS)
    assert named.to_dict() == given.to_dict()
    labels: Any = pl.Series(LABELS)
    again = PrivateBooster(1.0, columns=DECLARED, random_state=1).fit(FRAME, labels)
    assert again.to_dict() == given.to_dict()


def test_one_odd_cell_of_an_arrow_column_leaves_the_others_alone() -> None:
    rows = row_source(pa.table({"n": pa.array([1, None, 2**60], pa.int64())}))
    assert rows.take(np.arange(3))["n"].tolist()[:1] == [1]
    assert rows.kinds == ["numbers"]


def test_one_null_where_none_may_be_leaves_the_others_alone() -> None:
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    columns = Columns({"n": [2**60, 2**60 + 1]}, ["n"], 1)
    for last in (0, None):  # nobody checks what a table in memory says about itself
        table = pa.table([pa.array([2**60 + 1, last])], schema=schema)
        taken = row_source(table).take(np.arange(2))
        assert taken["n"].dtype == np.int64
        assert columns.read(table_of(table))[0].tolist() == [1.0]


DAMAGED = pa.Array.from_buffers(
    pa.string(),
    3,
    [None, pa.py_buffer(np.arange(4, dtype=np.int32).tobytes()), pa.py_buffer(b"\xffab")],
)


@pytest.mark.parametrize(
    "cells",
    [DAMAGED, pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), DAMAGED)],
    ids=["text", "dictionary"],
)
def test_one_damaged_text_leaves_the_others_alone(cells: Any) -> None:
    taken = row_source(pa.table({"c": cells})).take(np.arange(3))
    assert taken["c"].tolist()[1:] == ["a", "b"]


def test_cells_of_arrow_are_as_plain_as_those_of_pandas(tmp_path: Path) -> None:
    table = pa.table({"c": pa.array([Decimal("0.5"), None])})
    pq.write_table(table, tmp_path / "rows.parquet")
    for source in (row_source(table), ParquetRows(tmp_path)):
        assert [type(cell) for cell in source.take(np.arange(2))["c"]] == [float, float]


TIMES = pa.array([0, 1, 2], pa.time32("s"))


@pytest.mark.parametrize(
    "cells",
    [pa.array([b"a", b"b", None]), TIMES, pa.array([1, 2, 3], pa.duration("s"))],
    ids=["bytes", "times", "durations"],
)
@pytest.mark.parametrize("declared", [None, {"c": (0, 1)}], ids=["undeclared", "declared"])
def test_columns_that_no_row_could_use_are_refused_before_the_payment(
    cells: Any, declared: Any
) -> None:
    budget = Budget(1.0, 1e-6)
    predictor = QueryRelease(max_queries=1, columns=declared, budget=budget)
    with pytest.raises(InvalidParameter, match="must be declared, or declared otherwise"):
        predictor.fit(pa.table({"c": cells}), [0, 1, 0])
    assert budget.spent == (0.0, 0.0)


def test_nested_columns_are_refused_by_their_type() -> None:
    for cells in ([[1], None], [None, None]):
        with pytest.raises(InvalidData, match="column c holds nested values"):
            row_source(pa.table({"c": pa.array(cells, pa.list_(pa.int64()))}))


def test_types_that_arrow_cannot_take_rows_from_are_refused() -> None:
    with pytest.raises(InvalidData, match="pyarrow cannot take rows"):
        row_source(pa.table({"c": pa.array(["a", "b"], pa.string_view())}))


@pytest.mark.parametrize("kind", [">M8[D]", "M8[ns]", "M8[ps]", "M8[25s]"])
def test_dates_of_all_units_are_days(kind: str) -> None:
    columns = Columns([dt.date(1970, 1, 1)], None, 1)
    cells = np.array(["1970-01-02", "NaT"], dtype=kind).reshape(-1, 1)
    assert columns.read(cells)[0] == 1.0
    assert np.isnan(columns.read(cells)[1])


def test_what_becomes_pandas_stays_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    class Foreign:
        """A frame of a library that is built like pandas, and not installed here."""

    mixed = pd.DataFrame({"c": pd.Series([1, "a", None], dtype=object)})
    frame = nw.from_native(mixed)
    monkeypatch.setattr(nw, "from_native", lambda *_, **__: frame)
    table = table_of(Foreign())
    assert isinstance(table, pd.DataFrame)
    assert table["c"].tolist()[:2] == [1, "a"]


def test_without_pyarrow_other_data_frames_are_refused_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    told = r"data frames that are not of pandas need pyarrow: pip install 'cumae\[parquet\]'"
    with pytest.raises(MissingPackage, match=told):
        row_source(pl.DataFrame({"age": [31.0, 52.0]}))
    with pytest.raises(MissingPackage, match=told):
        label_codes(row_source([[1], [2]]), pl.Series([0, 1]), (0, 1))
    assert label_codes(row_source([[1], [2]]), pd.Series([0, 1]), (0, 1)).tolist() == [0, 1]
