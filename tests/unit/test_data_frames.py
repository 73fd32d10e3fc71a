"""Data frames of several libraries give the same rows."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cumae import ParquetRows, PrivateBooster
from cumae.data import Columns, row_source, table_of
from cumae.errors import InvalidData, InvalidParameter

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
