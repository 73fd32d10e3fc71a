"""Labels as places in the declared classes, each read as if it were the only one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from cumae.arrays import Integers
from cumae.data.cells import bare, cells_at, codes_of, kind_of, places_of
from cumae.data.parquet import ParquetRows
from cumae.data.rows import RowSource
from cumae.errors import InvalidData


def label_codes(rows: RowSource, y: Any, classes: Sequence[Any]) -> Integers:
    """Return for each row the place of its label in ``classes``; -1 if it is none of them.

    A missing or an undeclared label is -1 as well: no single label raises.

    Parameters
    ----------
    rows
        The rows that the labels belong to.
    y
        One label for each row; for ParquetRows, the name of a column will do.
    classes
        The labels that can occur, declared without looking at ``y``.

    Examples
    --------
    >>> from cumae.data.labels import label_codes
    >>> from cumae.data.rows import row_source
    >>> label_codes(row_source([[1], [2], [3]]), [0, True, "a"], classes=(0, 1)).tolist()
    [0, 1, -1]
    """
    known = places_of(classes)
    if isinstance(y, str):
        if not isinstance(rows, ParquetRows):
            raise InvalidData("y is the name of a column, which needs ParquetRows; give labels.")
        _need_fitting(rows.kind_of(y), known)
        return np.concatenate([codes_of(part, known) for part in rows.parts(y)])
    cells, kind = _labels(y)
    if len(cells) != rows.n_rows:
        raise InvalidData(
            f"y has {len(cells)} labels for {rows.n_rows} rows; give one label for each row."
        )
    _need_fitting(kind, known)
    return codes_of(cells, known)


def _need_fitting(kind: str, known: dict[Any, int]) -> None:
    """Refuse labels whose type as a whole cannot hold a single one of the classes."""
    named = {str: "text", bool: "numbers", int: "numbers", float: "numbers", bytes: "bytes"}
    kinds = {named.get(type(label), "") for label in known}
    if kind and "" not in kinds and kind not in kinds:
        raise InvalidData(
            f"y has a type for {kind}, but the declared classes are {' and '.join(sorted(kinds))}; "
            "declare the labels that can occur: classes=[...]."
        )


def _only(cell: Any) -> Any:
    """Return the label that stands alone in a list; a row of several is none."""
    return cell[0] if isinstance(cell, list) and len(cell) == 1 else cell


def _labels(y: Any) -> tuple[NDArray[Any], str]:
    """Return the labels cell by cell, and what their type as a whole can hold."""
    if y is None:
        raise InvalidData("fit requires y to be passed, but the target y is None.")
    if isinstance(y, pd.DataFrame | np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
        y = y.iloc[:, 0] if isinstance(y, pd.DataFrame) else y[:, 0]
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; it is taken as one.",
            DataConversionWarning,
            stacklevel=4,
        )
    if hasattr(y, "__array__") and not isinstance(y, pd.Series | np.ndarray | pd.DataFrame):
        y = np.asarray(y)
    if isinstance(y, list | tuple):
        return np.fromiter(map(_only, y), dtype=object, count=len(y)), ""
    if isinstance(y, pd.Series):
        cells: Any = bare(y)
        if not isinstance(cells, np.ndarray):
            cells = cells_at(cells, np.arange(len(y)))
        return cells, kind_of(y.dtype)
    if isinstance(y, np.ndarray) and y.ndim == 1 and not isinstance(y, np.ma.MaskedArray):
        return y, kind_of(y.dtype)
    raise InvalidData(
        f"y is a {type(y).__name__} of a form that cannot be used; give a flat list, array or "
        "Series with one label for each row."
    )
