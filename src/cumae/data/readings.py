"""Numbers for cells: each is read by itself, by what was declared about its column."""

from __future__ import annotations

import contextlib
import datetime as dt
import math
from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.data.texts import PLAIN, Order, Written, moment_in, number_in
from cumae.data.texts.written import LONGEST_TEXT
from cumae.errors import InvalidParameter, shown
from cumae.quiet import HiddenFailures


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
    found = (value.item() if isinstance(value, np.generic) else value for value in values)
    return {value: place for place, value in enumerate(found) if not is_missing(value)}


def codes_of(cells: NDArray[Any], known: dict[Any, int]) -> NDArray[np.int64]:
    """Return for each cell the place of the known value that it equals, or -1; no cell raises.

    This is how labels and categories are read.
    """
    numeric = cells.dtype.kind in "biuf"
    if numeric and all(isinstance(value, int | float | str) for value in known):
        return _codes_of_numbers(cells.view(np.uint8) if cells.dtype.kind == "b" else cells, known)
    listed = cells.astype(object)
    found: Iterable[int] = (_code_of(cell, known) for cell in listed)
    if set(map(type, listed)) <= HASHED:  # the same, but faster
        found = map(known.get, listed, repeat(-1))
    return np.fromiter(found, dtype=np.int64, count=len(cells))


def _code_of(cell: Any, known: dict[Any, int]) -> int:
    with HiddenFailures():  # a cell may be anything, and raise anything
        return known.get(cell, -1)
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


HASHED = {str, float, int, bool, bytes, type(None)}  # to look for one of these raises nothing
NUMBERS = {float, int, bool, type(None)}  # numpy reads these as ``number_of`` does, but faster
NO_NUMBERS = (str, bytes, np.complexfloating, np.datetime64, np.timedelta64)


@claim("EVER")
def numbers(cells: NDArray[Any]) -> Floats:
    """Return cells as floats, each read by itself; NaN for what is missing or is no number.

    No cell raises or warns. Text is no number, even if it says one.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.data.readings import numbers
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
    with HiddenFailures():  # a cell may be anything, and raise anything
        return math.nan if isinstance(cell, NO_NUMBERS) else float(cell)
    return math.nan


TRUTH = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


def numbers_in_text(cells: NDArray[Any], written: Written = PLAIN) -> Floats:
    """As ``numbers``, for a column that was declared: text that says a number is one.

    Parameters
    ----------
    cells : array
        The cells.
    written : Written
        How numbers are written.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.data.readings import numbers_in_text
    >>> numbers_in_text(np.array([" 2.5", "1e3", "nan", "1_000", True], dtype=object)).tolist()
    [2.5, 1000.0, nan, nan, 1.0]
    """
    if cells.dtype.kind not in "OU":
        return numbers(cells)
    objects = cells.astype(object)
    texts = np.fromiter((type(cell) is str for cell in objects), dtype=bool, count=len(objects))
    found = np.full(len(objects), np.nan)
    found[~texts] = numbers(objects[~texts])
    found[texts] = [number_in(cell, written) for cell in objects[texts]]
    return found


def booleans(cells: NDArray[Any], known: dict[Any, int] | None = None) -> Floats:
    """Return 1 for what is true and 0 for what is false; NaN for anything else.

    Parameters
    ----------
    cells : array
        The cells.
    known : dict, or None
        The codes that were declared, with 1 for what is true; without any, true and false, yes and
        no, and the numbers 1 and 0.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.data.readings import booleans
    >>> booleans(np.array([True, 0, "Yes", "false", "1.0", 2, None], dtype=object)).tolist()
    [1.0, 0.0, 1.0, 0.0, 1.0, nan, nan]
    >>> booleans(np.array(["J", "N", "yes"]), {"J": 1, "N": 0}).tolist()
    [1.0, 0.0, nan]
    """
    if known:
        codes = category_codes(cells, known)
        return np.where(codes < 0, np.nan, codes)
    if cells.dtype.kind in "OU":
        objects = cells.astype(object)
        found = np.fromiter(map(_truth, objects), dtype=np.float64, count=len(objects))
    else:
        found = numbers(cells)
    return np.where((found == 0) | (found == 1), found, np.nan)


def _truth(cell: Any) -> float:
    if type(cell) is not str:
        return number_of(cell)
    found = TRUTH.get(cell[:LONGEST_TEXT].strip().lower())
    return number_in(cell) if found is None else found


def days_since(cells: NDArray[Any], since: dt.datetime, form: str | None = None) -> Floats:
    """Return dates and times as days since a day; NaN for anything else.

    Times with a zone are taken in UTC.

    Text is read if it is written in the declared format or, without one, as 2020-02-29 or
    2020-02-29T12:30.

    Examples
    --------
    >>> import datetime as dt
    >>> import numpy as np
    >>> from cumae.data.readings import days_since
    >>> first = dt.datetime(2020, 2, 28)
    >>> cells = np.array([dt.date(2020, 2, 29), "2020-03-01T12:00", "soon", None], dtype=object)
    >>> days_since(cells, first).tolist()
    [1.0, 2.5, nan, nan]
    """
    if cells.dtype.kind == "M":
        return _days_of_type(cells) - _days_of_type(np.array([since], dtype="M8[us]"))
    if cells.dtype.kind not in "OU":
        return np.full(len(cells), np.nan)
    found = (_days(cell, since, form) for cell in cells.astype(object))
    return np.fromiter(found, dtype=np.float64, count=len(cells))


# How many of a unit of numpy make a day.
IN_A_DAY = {"W": 1 / 7, "D": 1.0, "h": 24.0, "m": 1440.0, "s": 86_400.0, "ms": 864e5, "us": 864e8}
IN_A_DAY |= {"ns": 864e11, "ps": 864e14, "fs": 864e17, "as": 864e20}


def _days_of_type(cells: NDArray[Any]) -> Floats:
    """Return an array of dates as days since 1970, without a unit in which one could overflow."""
    unit, count = np.datetime_data(cells.dtype)
    if unit in ("Y", "M"):  # without even length
        return _days_of_type(cells.astype("M8[D]"))
    # Without a unit there are missing ones only.
    days = cells.astype(np.int64) / (IN_A_DAY.get(unit, 1.0) / count)
    return np.where(np.isnat(cells), np.nan, days)


def _days(cell: Any, since: dt.datetime, form: str | None) -> float:
    with HiddenFailures():  # a cell may be anything, and raise anything
        if isinstance(cell, np.datetime64):
            return float(days_since(np.array([cell]), since)[0])
        if type(cell) is str and len(cell) <= LONGEST_TEXT:
            text = cell.strip()
            plain = form is None
            cell = dt.datetime.fromisoformat(text) if plain else moment_in(text, form or "", since)
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
    >>> from cumae.data.readings import canonical
    >>> canonical(3), canonical(3.0), canonical(0.5), canonical("3")
    ('3', '3', '0.5', '3')
    """
    value = value.item() if isinstance(value, np.integer | np.floating) else value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    with contextlib.suppress(ValueError, OverflowError):  # infinite, or too long to be written
        return str(int(value)) if value == int(value) else repr(value)
    return value


def number_said(text: str) -> Any:
    """Return the number that a text says, as ``canonical`` writes it; None if it says none.

    A text that begins with zeros, such as 007, is a code and no number.

    Examples
    --------
    >>> from cumae.data.readings import number_said
    >>> [number_said(text) for text in ("1.0", "1e0", " 1", "007", "0.0", "one")]
    ['1', '1', '1', None, '0', None]
    """
    digits = text.strip().lstrip("+-")
    found = math.nan if digits[:1] == "0" and digits[1:2].isdigit() else number_in(text)
    return None if math.isnan(found) else canonical(found)


def category_codes(cells: NDArray[Any], known: dict[Any, int]) -> NDArray[np.int64]:
    """As ``codes_of``, for categories, which may be numbers that are written in several ways.

    A text that is no known value, but says a number, stands for the value that is this number.
    """
    if cells.dtype.kind in "Oiuf" and all(isinstance(value, str) for value in known):
        cells = np.fromiter(map(canonical, cells.tolist()), dtype=object, count=len(cells))
    codes = codes_of(cells, known)
    if cells.dtype.kind in "OU":
        for place in np.flatnonzero(codes < 0).tolist():
            if isinstance(cells[place], str):
                codes[place] = known.get(number_said(str(cells[place])), -1)
    return codes


class Encoding(NamedTuple):
    """The way the cells of one column are read, and the numbers that stand for them.

    Parameters
    ----------
    kind : {"numbers", "booleans", "dates", "categories", "ordered"}
        What it holds.
    known : dict
        The places of categories; for booleans by codes, 1 for each code of what is true.
    marked : tuple of int
        The places of the categories that have a column of 0 and 1.
    since : datetime, or None
        The day from which dates are counted.
    declared : bool
        Whether text that says a number is one, and an empty text is a missing cell.
    missing : bool
        Whether missing cells have a column of 0 and 1.
    stand_in : float
        The number that replaces a missing one.
    written : Written
        How numbers and dates are written as text.
    order : Order, or None
        How ordered values become keys.
    """

    kind: str
    known: dict[Any, int]
    marked: tuple[int, ...]
    since: dt.datetime | None
    declared: bool
    missing: bool
    stand_in: float
    written: Written = PLAIN
    order: Order | None = None


def read_cells(cells: NDArray[Any], how: Encoding) -> Floats:
    """Return the numbers that stand for cells, each read by itself; NaN for what is unusable."""
    if how.order is not None:
        return how.order.words(cells)
    absent = missing_cells(cells, text=how.declared) if how.missing else None
    if how.kind == "categories":
        return _indicators(cells, absent, how)
    if how.since is not None:
        found = days_since(cells, how.since, how.written.format)
    elif how.kind == "booleans":
        found = booleans(cells, how.known)
    else:
        found = numbers_in_text(cells, how.written) if how.declared else numbers(cells)
    if absent is None:
        return found.reshape(-1, 1)
    return np.column_stack([np.where(absent, how.stand_in, found), absent])


def _indicators(cells: NDArray[Any], absent: NDArray[np.bool_] | None, how: Encoding) -> Floats:
    """Return 0 and 1 for each marked category and, where they may be missing, for missing cells.

    A cell that is a declared category is not missing, even if it is an empty text.
    """
    codes = category_codes(cells, how.known)
    marks = [codes == place for place in how.marked]
    if absent is not None:
        marks.append(absent & (codes < 0))
    return np.column_stack(marks).astype(np.float64)


def read_columns(columns: Iterable[NDArray[Any]], how: Iterable[Encoding]) -> list[Floats]:
    """As ``read_cells``, for several columns.

    Parameters
    ----------
    columns : iterable of arrays
        The cells of each column.
    how : iterable of Encoding
        How each of them is read.
    """
    return [read_cells(cells, encoding) for cells, encoding in zip(columns, how, strict=True)]
