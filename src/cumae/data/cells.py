"""How single cells are read: each by its column's declared type or, without one, by itself."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.arrays import Floats
from cumae.data.arrow import arrow_kind
from cumae.data.columns import Column
from cumae.errors import InvalidData, InvalidParameter, shown


def table_of(X: Sequence[Any]) -> NDArray[Any]:
    """Return the cells of a list as they are.

    Numpy would choose one type for all of them, and so one cell could change the others.
    """
    rows = [
        isinstance(row, list | tuple | pd.Series) or (isinstance(row, np.ndarray) and row.ndim == 1)
        for row in X
    ]
    widths = {len(row) for row in X} if all(rows) else {1}
    if any(rows) and (not all(rows) or len(widths) > 1):
        raise InvalidData("X is no regular table; give rows of the same length.")
    (width,) = widths or {1}
    cells: Any = chain.from_iterable(X) if any(rows) else X
    table = np.fromiter(cells, dtype=object, count=len(X) * width)
    if len(table) and all(isinstance(cell, list | tuple | dict | np.ndarray) for cell in table):
        raise InvalidData("the rows of X hold no single values; give a list of flat rows.")
    return table.reshape(len(X), width)


def bare(series: Any) -> Any:
    """Return a column as a numpy array or, for pandas' own types, as pandas' array."""
    return series.to_numpy() if isinstance(series.dtype, np.dtype) else series.array


def cells_at(column: Any, places: NDArray[np.int64]) -> NDArray[Any]:
    """Return some cells of a bare column, with NaN for what is missing."""
    if isinstance(column, np.ndarray):
        return plain_cells(column[places])
    if isinstance(column, pd.Categorical):
        # Not through pandas: a missing cell would turn whole numbers into floats.
        values = np.full(len(column.categories) + 1, np.nan, dtype=object)
        values[:-1] = column.categories.to_numpy(dtype=object)
        # The code of a missing cell is -1: the last value.
        return plain_cells(values[column.codes[places]])
    return plain_cells(column.take(places).to_numpy(dtype=object, na_value=np.nan))


def plain_cells(cells: NDArray[Any]) -> NDArray[Any]:
    """Return cells that no code can stumble over: text, numbers, dates, and NaN for all else.

    Objects of other types could raise, warn or refuse to travel to another process, because of a
    single row. Arrays with a type of their own stay as they are.
    """
    if cells.dtype.kind != "O" or set(map(type, cells.flat)) <= ALWAYS_PLAIN:
        return cells
    plain = [value if type(value) in ALWAYS_PLAIN else _plain_cell(value) for value in cells.flat]
    return np.fromiter(plain, dtype=object, count=cells.size).reshape(cells.shape)


ALWAYS_PLAIN = {str, bool, float, dt.date}
LONGEST = 2**63  # from here on, integers are no longer printed or stored like others


def _plain_cell(value: Any) -> Any:  # noqa: PLR0911 - one line a kind of value
    """Return what an unusual object stands for, or NaN."""
    try:
        if isinstance(value, np.datetime64 | np.bool_ | np.integer | np.str_):
            return value if isinstance(value, np.datetime64) else value.item()
        if type(value) is int and -LONGEST <= value < LONGEST:
            return value
        if isinstance(value, pd.Timestamp) and not pd.isna(value):
            return _plain_time(value.to_pydatetime(warn=False))
        if type(value) is dt.datetime:
            return _plain_time(value)
        if isinstance(value, np.floating | Decimal | Fraction) or type(value) is int:
            with np.errstate(all="ignore"):
                return float(value)
    except Exception:  # noqa: BLE001 - an odd cell must not be seen
        return math.nan
    return math.nan


def _plain_time(value: dt.datetime) -> dt.datetime:
    """Return a time whose zone is none, or a plain one: a zone can be an object of any kind."""
    if value.tzinfo is None or type(value.tzinfo) is dt.timezone:
        return value
    return value.astimezone(dt.UTC)


def kind_of(dtype: Any) -> str:
    """Return what a type of numpy or pandas can hold; nothing where it does not say."""
    if isinstance(dtype, pd.CategoricalDtype):
        return kind_of(dtype.categories.dtype)
    if isinstance(dtype, pd.StringDtype):
        return "text"
    if isinstance(dtype, pd.ArrowDtype):
        return arrow_kind(dtype.pyarrow_dtype)
    if not isinstance(dtype, np.dtype):
        return "numbers" if pd.api.types.is_numeric_dtype(dtype) else ""
    kinds = {"U": "text", "S": "bytes", "M": "dates", "m": "durations", "O": "", "V": ""}
    return kinds.get(dtype.kind, "numbers")


def places_of(classes: Any) -> dict[Any, int]:
    """Return the place of each declared class."""
    listed = isinstance(classes, Sequence | np.ndarray) and not isinstance(classes, str | bytes)
    labels = [c.item() if isinstance(c, np.generic) else c for c in classes] if listed else []
    known: dict[Any, int] = {}
    with contextlib.suppress(TypeError):  # what has no hash can be no class
        known = {label: place for place, label in enumerate(labels)}
    missing = any(pd.api.types.is_scalar(label) and pd.isna(label) for label in known)
    if len(known) < 2 or len(known) < len(labels) or missing:
        raise InvalidParameter(
            f"classes={shown(classes)} must list at least two labels, all different, none missing."
        )
    return known


def codes_of(cells: NDArray[Any], known: dict[Any, int]) -> NDArray[np.int64]:
    """Return the place of each cell among the known labels, or -1; no cell raises."""
    numeric = cells.dtype.kind in "biuf"
    if numeric and all(isinstance(label, int | float | str) for label in known):
        return _codes_of_numbers(cells.view(np.uint8) if cells.dtype.kind == "b" else cells, known)
    objects = cells.astype(object)
    with contextlib.suppress(Exception):  # a cell may be anything, and raise anything
        return np.array([known.get(cell, -1) for cell in objects], dtype=np.int64)
    codes = np.full(len(objects), -1, dtype=np.int64)
    for place, cell in enumerate(objects):
        with contextlib.suppress(Exception):
            codes[place] = known.get(cell, -1)
    return codes


def _codes_of_numbers(cells: NDArray[Any], known: dict[Any, int]) -> NDArray[np.int64]:
    kept = {}
    for label, place in known.items():
        with contextlib.suppress(ValueError, OverflowError):
            kept[_in_type(label, cells.dtype)] = place
    if not kept:
        return np.full(len(cells), -1, dtype=np.int64)
    targets = np.array(sorted(kept), dtype=cells.dtype)
    places = np.array([kept[target] for target in sorted(kept)], dtype=np.int64)
    nearest = np.minimum(np.searchsorted(targets, cells), len(targets) - 1)
    return np.where(targets[nearest] == cells, places[nearest], -1)


def _in_type(label: Any, dtype: np.dtype[Any]) -> Any:
    """Return a label as a number of this type; ValueError if no cell of the type can equal it."""
    whole = dtype.kind in "iu"
    with np.errstate(over="ignore"):
        number = np.array(int(label) if whole else label, dtype=dtype)[()]
    # A decimal fraction is rounded as the cells were.
    exact = whole or isinstance(label, int) or not np.isfinite(number)
    if isinstance(label, str) or (exact and number.item() != label):
        raise ValueError(dtype.name)
    return number


def faults(cells: NDArray[Any], column: Column, most: int) -> list[tuple[int, str]]:
    """Return the places of the first bad cells of a column, and what is wrong with them."""
    missing = np.asarray(pd.isna(cells))
    marks = {"missing value": missing}
    if column.categories is not None:
        known = {label: place for place, label in enumerate(column.categories)}
        marks["none of the declared categories"] = ~missing & (codes_of(cells, known) < 0)
    elif cells.dtype.kind not in "Mm":
        numbers = _numbers(cells)
        good = ~np.isnan(numbers)
        if column.bounds is not None or 2 * good.sum() > (~missing).sum():
            marks["no number"] = ~missing & ~good
        marks["infinite value"] = np.isinf(numbers)
        if column.bounds is not None:
            outside = (numbers < column.bounds[0]) | (numbers > column.bounds[1])
            marks["outside its declared bounds"] = np.isfinite(numbers) & outside
    return [
        (int(row), fault) for fault, mark in marks.items() for row in np.flatnonzero(mark)[:most]
    ]


def _numbers(cells: NDArray[Any]) -> NDArray[np.float64]:
    if cells.dtype.kind in "biuf":
        return cells.astype(np.float64)
    return np.fromiter(map(_number, cells), dtype=np.float64, count=len(cells))


def _number(cell: Any) -> float:
    if not isinstance(cell, str | bytes):
        with contextlib.suppress(Exception):
            return float(cell)
    return float("nan")


def floats(X: Any, start: int, stop: int) -> Floats:
    """Return some rows of a table as floats, without converting the others.

    What is no number becomes NaN, a vote for class 0: an error would tell that there are models.
    """
    part = X.iloc[start:stop] if hasattr(X, "iloc") else X[start:stop]
    table = part.to_numpy() if hasattr(part, "to_numpy") else np.asarray(part)
    if table.dtype.kind in "biuf":
        with np.errstate(all="ignore"):  # whatever a cell holds, nobody hears of it
            return np.ascontiguousarray(table, dtype=np.float64)
    numbers = [_number(cell) for cell in table.flat]
    return np.array(numbers, dtype=np.float64).reshape(table.shape)
