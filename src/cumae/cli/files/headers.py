"""The header of a file, without a look at its rows."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from cumae.cli.files.csv_text import CsvForm, CsvText
from cumae.cli.files.drafts import WHOLE
from cumae.cli.files.source import STANDARD, is_parquet, opened_file, title

if TYPE_CHECKING:
    from cumae.data import RowSource


def read_header(path: str, form: CsvForm) -> tuple[list[str], list[str]]:
    """Return the names of columns, and what they can hold by the types that a file declares.

    Parameters
    ----------
    path : str
        A file, a folder of Parquet files, or ``-`` for standard input.
    form : CsvForm
        How CSV is written.
    """
    if path != STANDARD and Path(path).is_dir():
        from cumae.data import ParquetRows  # noqa: PLC0415 - CSV needs nothing of it

        rows: RowSource = ParquetRows(path)
        return rows.names or [], _held(rows)
    with opened_file(path) as stream:
        if not is_parquet(stream):
            with contextlib.closing(CsvText(stream, title(path), form)) as text:
                return text.names, ["text"] * len(text.names)
        from cumae.cli.files.tables import parquet_in  # noqa: PLC0415

        rows = parquet_in(stream, path).rows
    return rows.names or [], _held(rows)


def _held(rows: RowSource) -> list[str]:
    """Return what columns can hold by types that a file declares, whole numbers apart."""
    whole = rows.whole or [False] * rows.n_features
    return [WHOLE if is_so else kind for kind, is_so in zip(rows.kinds, whole, strict=True)]
