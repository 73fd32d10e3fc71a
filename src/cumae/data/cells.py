"""Cells of tables of any kind as ordinary values, each independent of the other cells."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.claims import claim
from cumae.errors import InvalidData
from cumae.quiet import HiddenFailures


def bare(series: Any) -> Any:
    """Return a column as a numpy array or, for pandas' own types, as pandas' array."""
    return series.to_numpy() if isinstance(series.dtype, np.dtype) else series.array


@claim("EVER")
def unpacked(column: Any, places: Any = slice(None)) -> NDArray[Any]:
    """Return some cells of a bare column as a numpy array, with NaN where one is missing.

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
    with HiddenFailures():  # a single cell may raise it, such as a date of year 10^6
        return _objects(some)
    found = np.full(len(some), np.nan, dtype=object)
    for place in range(len(some)):
        with HiddenFailures():
            found[place : place + 1] = _objects(some[place : place + 1])
    return found


def _objects(column: Any) -> NDArray[Any]:
    return np.asarray(column.to_numpy(dtype=object, na_value=np.nan))


def cells_at(column: Any, places: Any = slice(None)) -> NDArray[Any]:
    """Return some cells of a bare column as ordinary values, with NaN for what is missing."""
    return ordinary_cells(unpacked(column, places))


def columns_at(columns: Iterable[Any], places: Any, *, ordinary: bool = True) -> list[NDArray[Any]]:
    """As ``cells_at``, for several columns; without ``ordinary`` unusual ones stay as they are."""
    unpack = cells_at if ordinary else unpacked
    return [unpack(column, places) for column in columns]


@claim("SHARDS", "EVER")
def ordinary_cells(cells: NDArray[Any]) -> NDArray[Any]:
    """Return cells that no code can stumble over: text, numbers, dates, and NaN for anything else.

    Objects of other types could raise, warn or refuse to travel to another process, because of a
    single row. Arrays with a type of their own stay as they are.
    """
    if cells.dtype.kind != "O" or set(map(type, cells.flat)) <= ALWAYS_ORDINARY:
        return cells
    found = [
        value if type(value) in ALWAYS_ORDINARY else _ordinary_cell(value) for value in cells.flat
    ]
    return np.fromiter(found, dtype=object, count=cells.size).reshape(cells.shape)


ALWAYS_ORDINARY = {str, bool, float, dt.date}
LONGEST = 2**63  # from here on, integers are no longer printed or stored like others


def _ordinary_cell(value: Any) -> Any:  # noqa: PLR0911 - one line a kind of value
    """Return what an unusual object stands for, or NaN."""
    with HiddenFailures():  # an odd cell must not be seen
        if isinstance(value, np.timedelta64):  # for numpy these are integers
            return math.nan
        if isinstance(value, np.datetime64 | np.bool_ | np.integer | np.str_):
            return value if isinstance(value, np.datetime64) else value.item()
        if type(value) is int and -LONGEST <= value < LONGEST:
            return value
        if isinstance(value, pd.Timestamp) and not pd.isna(value):
            return _ordinary_time(value.to_pydatetime(warn=False))
        if type(value) is dt.datetime:
            return _ordinary_time(value)
        if isinstance(value, np.floating | Decimal | Fraction) or type(value) is int:
            with np.errstate(all="ignore"):
                return float(value)
    return math.nan


def _ordinary_time(value: dt.datetime) -> dt.datetime:
    """Return a time whose zone is none, or an ordinary one: a zone can be an object of any kind.

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
    each row by itself. If there are more or fewer answers than rows, nobody knows which answer
    belongs to which row, so that is refused, too.

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
