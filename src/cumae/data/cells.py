"""How single cells are read: each by itself, whatever the other cells hold."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import re
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


def is_missing(cell: Any) -> bool:
    """Tell whether a cell is None, NaN, NaT or what pandas has for a missing one."""
    return bool(pd.api.types.is_scalar(cell) and pd.isna(cell))


def missing_cells(cells: NDArray[Any], *, text: bool = False) -> NDArray[np.bool_]:
    """Tell which cells are missing, each by itself; with ``text`` an empty text is missing, too."""
    if cells.dtype.kind in "fc":
        return np.asarray(np.isnan(cells))
    if cells.dtype.kind in "Mm":
        return np.asarray(np.isnat(cells))
    if cells.dtype.kind not in "OU":
        return np.zeros(cells.shape, dtype=bool)
    gone = np.asarray(pd.isna(cells.astype(object)))
    if text:
        empty = (type(cell) is str and not cell.strip() for cell in cells.astype(object).flat)
        gone |= np.fromiter(empty, dtype=bool, count=cells.size).reshape(cells.shape)
    return gone


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


# What is read where it was declared: text that says a number, truth, dates

WRITTEN = re.compile(r"\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
LONGEST_TEXT = 400  # characters of a number, or of a date
TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "1": 1.0, "0": 0.0}


def numbers_in_text(cells: NDArray[Any]) -> Floats:
    """As ``numbers``, for a column that was declared: text that says a number is one.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.data.cells import numbers_in_text
    >>> numbers_in_text(np.array([" 2.5", "1e3", "nan", "1_000", True], dtype=object)).tolist()
    [2.5, 1000.0, nan, nan, 1.0]
    """
    if cells.dtype.kind not in "OU":
        return numbers(cells)
    objects = cells.astype(object)
    texts = np.fromiter((type(cell) is str for cell in objects), dtype=bool, count=len(objects))
    found = np.full(len(objects), np.nan)
    found[~texts] = numbers(objects[~texts])
    found[texts] = [_written_number(cell) for cell in objects[texts]]
    return found


def _written_number(text: str) -> float:
    return float(text) if len(text) <= LONGEST_TEXT and WRITTEN.fullmatch(text) else math.nan


def booleans(cells: NDArray[Any]) -> Floats:
    """Return 1 for what is true and 0 for what is false; NaN for all else.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.data.cells import booleans
    >>> booleans(np.array([True, 0, "Yes", "false", 2, None], dtype=object)).tolist()
    [1.0, 0.0, 1.0, 0.0, nan, nan]
    """
    if cells.dtype.kind in "OU":
        objects = cells.astype(object)
        found = np.fromiter(map(_truth, objects), dtype=np.float64, count=len(objects))
    else:
        found = numbers(cells)
    return np.where((found == 0) | (found == 1), found, np.nan)


def _truth(cell: Any) -> float:
    if type(cell) is str:
        return TRUTH.get(cell[:LONGEST_TEXT].strip().lower(), math.nan)
    return number_of(cell)


def days_since(cells: NDArray[Any], since: dt.datetime) -> Floats:
    """Return dates and times as days since a day, in UTC where they have a zone; NaN for all else.

    Text is read if it is written as 2020-02-29 or 2020-02-29T12:30.

    Examples
    --------
    >>> import datetime as dt
    >>> import numpy as np
    >>> from cumae.data.cells import days_since
    >>> first = dt.datetime(2020, 2, 28)
    >>> cells = np.array([dt.date(2020, 2, 29), "2020-03-01T12:00", "soon", None], dtype=object)
    >>> days_since(cells, first).tolist()
    [1.0, 2.5, nan, nan]
    """
    if cells.dtype.kind == "M":
        return _days_of_type(cells) - _days_of_type(np.array([since], dtype="M8[us]"))
    if cells.dtype.kind not in "OU":
        return np.full(len(cells), np.nan)
    found = (_days(cell, since) for cell in cells.astype(object))
    return np.fromiter(found, dtype=np.float64, count=len(cells))


# How many of a unit of numpy make a day.
IN_A_DAY = {"W": 1 / 7, "D": 1.0, "h": 24.0, "m": 1440.0, "s": 86_400.0, "ms": 864e5, "us": 864e8}


def _days_of_type(cells: NDArray[Any]) -> Floats:
    """Return an array of dates as days since 1970, without a unit in which one could overflow."""
    unit, count = np.datetime_data(cells.dtype)
    if unit in ("Y", "M"):  # without even length
        return _days_of_type(cells.astype("M8[D]"))
    days = cells.view(np.int64) / (IN_A_DAY.get(unit, 864e11) / count)
    return np.where(np.isnat(cells), np.nan, days)


def _days(cell: Any, since: dt.datetime) -> float:
    with contextlib.suppress(Exception):  # a cell may be anything, and raise anything
        if isinstance(cell, np.datetime64):
            return float(days_since(np.array([cell]), since)[0])
        if type(cell) is str and len(cell) <= LONGEST_TEXT:
            cell = dt.datetime.fromisoformat(cell.strip())
        if isinstance(cell, dt.datetime):
            moment = cell if cell.tzinfo is None else cell.astimezone(dt.UTC).replace(tzinfo=None)
            return (moment - since) / dt.timedelta(days=1)
        if isinstance(cell, dt.date):
            return (dt.datetime(cell.year, cell.month, cell.day) - since) / dt.timedelta(days=1)  # noqa: DTZ001
    return math.nan


def canonical(value: Any) -> Any:
    """Return what a number looks like as text; anything else as it is.

    Examples
    --------
    >>> from cumae.data.cells import canonical
    >>> canonical(3), canonical(3.0), canonical(0.5), canonical("3")
    ('3', '3', '0.5', '3')
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    with contextlib.suppress(ValueError, OverflowError):  # infinite, or too long to be written
        return str(int(value)) if value == int(value) else repr(value)
    return value
