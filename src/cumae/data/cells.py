"""How single cells are read: each by itself, whatever the other cells hold."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.data.arrow import arrow_kind
from cumae.errors import InvalidData, InvalidParameter, shown


def bare(series: Any) -> Any:
    """Return a column as a numpy array or, for pandas' own types, as pandas' array."""
    return series.to_numpy() if isinstance(series.dtype, np.dtype) else series.array


@claim("EVER")
def unpacked(column: Any, places: Any = slice(None)) -> NDArray[Any]:
    """Return some cells of a bare column as a numpy array, with NaN where pandas misses one.

    Of its own types pandas would make floats as soon as one cell is missing. Here each cell stays
    what it is.
    """
    if isinstance(column, np.ndarray):
        return np.asarray(column[places])
    if isinstance(column, pd.Categorical):
        values = np.full(len(column.categories) + 1, np.nan, dtype=object)
        values[:-1] = column.categories.to_numpy(dtype=object)
        # The code of a missing cell is -1: the last value.
        return np.asarray(values[column.codes[places]])
    some = column[places]
    with contextlib.suppress(Exception):  # which a single cell may raise, as in a date of year 10^6
        return _objects(some)
    found = np.full(len(some), np.nan, dtype=object)
    for place in range(len(some)):
        with contextlib.suppress(Exception):
            found[place : place + 1] = _objects(some[place : place + 1])
    return found


def _objects(column: Any) -> NDArray[Any]:
    return np.asarray(column.to_numpy(dtype=object, na_value=np.nan))


def cells_at(column: Any, places: Any = slice(None)) -> NDArray[Any]:
    """Return some cells of a bare column as plain values, with NaN for what is missing."""
    return plain_cells(unpacked(column, places))


def columns_at(columns: Iterable[Any], places: Any) -> list[NDArray[Any]]:
    """As ``cells_at``, for several columns."""
    return [cells_at(column, places) for column in columns]


def read_columns(
    columns: Iterable[Any],
    known: Iterable[dict[Any, int] | None],
    places: Any = slice(None),
    *,
    plain: bool = False,
) -> list[NDArray[Any]]:
    """Return some cells of bare columns as numbers, each cell read by itself.

    Parameters
    ----------
    columns : iterable of arrays
        The columns.
    known : iterable of dicts from values to int, or None
        For each column of categories, their places; None for a column of numbers.
    places : array of int or slice
        Which rows to read.
    plain : bool
        Whether objects of unusual types are unreadable, as they are for private rows.

    Returns
    -------
    list of arrays
        For numbers floats, with NaN for what is no number; for categories their places, or -1.
    """
    found: list[NDArray[Any]] = []
    for column, values in zip(columns, known, strict=True):
        cells = cells_at(column, places) if plain else unpacked(column, places)
        found.append(numbers(cells) if values is None else codes_of(cells, values))
    return found


def is_missing(cell: Any) -> bool:
    """Tell whether a cell is None, NaN, NaT or what pandas has for a missing one."""
    return bool(pd.api.types.is_scalar(cell) and pd.isna(cell))


@claim("SHARDS", "EVER")
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
        if isinstance(value, np.timedelta64):  # for numpy these are integers
            return math.nan
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
    """Return a time whose zone is none, or a plain one: a zone can be an object of any kind.

    Zones lose their names, and a time does not tell whether its hour comes twice that day: neither
    would be stored.
    """
    if value.tzinfo is None:
        return value.replace(fold=0)
    if type(value.tzinfo) is not dt.timezone:
        return value.astimezone(dt.UTC)
    return value.replace(tzinfo=dt.timezone(value.tzinfo.utcoffset(None)), fold=0)


@claim("SHARDS", "PRIOR")
def answers_of(given: Any, count: int) -> NDArray[Any]:
    """Return what a model answered for so many rows; none of it decides how the rest is read.

    Of a list, numpy would choose one type for all: a single text would turn numbers into texts. An
    array of texts may have become one in that way, so it is refused, and whoever asks can ask about
    each row by itself. So is what is not one answer for each row: no answer would have its place.

    Examples
    --------
    >>> from cumae.data.cells import answers_of
    >>> answers_of([0, 1, "no idea"], 3).tolist()
    [0, 1, 'no idea']
    """
    answers = given
    if not isinstance(given, np.ndarray):
        answers = np.fromiter(given, dtype=object, count=len(given))
    if answers.shape != (count,) or answers.dtype.kind in "US":
        raise InvalidData(
            "a model gave texts, or not one answer for each row; it must give labels."
        )
    return np.asarray(answers)


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
    labels = list(classes) if listed else []
    known: dict[Any, int] = {}
    with contextlib.suppress(TypeError):  # what has no hash can be no class
        known = places_of_values(labels)
    if len(known) < 2 or len(known) < len(labels):
        raise InvalidParameter(
            f"classes={shown(classes)} must list at least two labels, all different, none missing."
        )
    return known


def places_of_values(values: Iterable[Any]) -> dict[Any, int]:
    """Return the place of each value, without those that stand for a missing cell."""
    plain = (value.item() if isinstance(value, np.generic) else value for value in values)
    return {value: place for place, value in enumerate(plain) if not is_missing(value)}


def codes_of(cells: NDArray[Any], known: dict[Any, int]) -> NDArray[np.int64]:
    """Return for each cell the place of the known value that it equals, or -1; no cell raises.

    This is how labels and categories are read.
    """
    numeric = cells.dtype.kind in "biuf"
    if numeric and all(isinstance(value, int | float | str) for value in known):
        return _codes_of_numbers(cells.view(np.uint8) if cells.dtype.kind == "b" else cells, known)
    found = (_code_of(cell, known) for cell in cells.astype(object))
    return np.fromiter(found, dtype=np.int64, count=len(cells))


def _code_of(cell: Any, known: dict[Any, int]) -> int:
    try:
        return known.get(cell, -1)
    except Exception:  # noqa: BLE001 - a cell may be anything, and raise anything
        return -1


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


NUMBERS = {float, int, bool, type(None)}  # numpy reads these as ``number_of`` does, but faster
NO_NUMBERS = (str, bytes, np.complexfloating, np.datetime64, np.timedelta64)


@claim("EVER")
def numbers(cells: NDArray[Any]) -> Floats:
    """Return cells as floats, each read by itself; NaN for what is missing or is no number.

    No cell raises or warns. Text is no number, whatever it says.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.data.cells import numbers
    >>> numbers(np.array([1, True, None, "2", 10**400], dtype=object)).tolist()
    [1.0, 1.0, nan, nan, nan]
    """
    with np.errstate(all="ignore"):
        if cells.dtype.kind in "biuf":
            return np.asarray(cells, dtype=np.float64)
        if cells.dtype.kind != "O":
            return np.full(cells.shape, np.nan)
        if set(map(type, cells.flat)) <= NUMBERS:
            with contextlib.suppress(OverflowError):  # an integer beyond all floats
                return cells.astype(np.float64)
        found = map(number_of, cells.flat)
        return np.fromiter(found, dtype=np.float64, count=cells.size).reshape(cells.shape)


def number_of(cell: Any) -> float:
    """Return a cell as a float; NaN if it is no number."""
    if not isinstance(cell, NO_NUMBERS):
        with contextlib.suppress(Exception):  # a cell may be anything, and raise anything
            return float(cell)
    return math.nan
