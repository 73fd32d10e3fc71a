"""Tables for tests of rows: cells that are no numbers, small Parquet files, and a look at rows."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cumae.data import ParquetRows, RowSource

ODD = [None, "text", 10**30, math.nan, True, [1, 2], b"raw", Decimal("0.1"), pd.NA]


def write(path: Path, columns: dict[str, Any], size: int = 4, **more: Any) -> ParquetRows:
    pq.write_table(pa.table(columns), path, row_group_size=size, **more)
    return ParquetRows(path)


def numbers() -> Any:
    return np.random.default_rng(0).normal(size=(30, 4))


def of_parquet(table: Any, folder: Path) -> RowSource:
    frame = pd.DataFrame(table, columns=list("abcd"))
    for part in range(3):
        rows = frame.iloc[10 * part : 10 * part + 10]
        rows.to_parquet(folder / f"part{part}.parquet", row_group_size=4, index=False)
    return ParquetRows(folder)


def look(rows: RowSource, row: int = 5) -> list[Any]:
    """Return values and types of all cells but those of one row, which is taken with them."""
    taken = rows.take(np.arange(rows.n_rows))
    kinds = [str(kind) for kind in taken.dtypes] if rows.is_frame else [str(taken.dtype)]
    columns = [taken[name].to_numpy() for name in taken] if rows.is_frame else list(taken.T)
    others = [cell for cells in columns for cell in np.delete(cells, row)]
    return [*kinds, *[(type(cell).__name__, repr(cell)) for cell in others]]
