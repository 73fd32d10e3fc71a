"""Cells that are no numbers, and small Parquet files."""

from __future__ import annotations

import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cumae.predictors.rows import ParquetRows

ODD = [None, "text", 10**30, math.nan, True, [1, 2], b"raw", Decimal("0.1"), pd.NA]


def write(path: Path, columns: dict[str, Any], size: int = 4, **more: Any) -> ParquetRows:
    pq.write_table(pa.table(columns), path, row_group_size=size, **more)
    return ParquetRows(path)
