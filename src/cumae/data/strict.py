"""Strict reading: rows that are complete and exact, or an error that names a row and a column.

Concept classes and sanitizers read their rows in this way. Nothing may be missing, no integer is
rounded, and all cells of a column must be comparable. An error never shows a value.
"""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.data.containers import array_of
from cumae.data.readings import is_missing
from cumae.errors import InvalidData, InvalidParameter

WHOLE = (int, np.integer, np.bool_)
FLOAT = (float, np.float32, np.float16)
EXACT = 2**53  # floats hold all whole numbers up to here


def check_table(X: ArrayLike, n_features: int | None = None, name: str = "X") -> Floats:
    """Return a table of numbers as floats; infinite ones are ordered like numbers.

    A single list is one column; an empty one has as many columns as are needed.
    """
    frame: Any = X
    if hasattr(X, "iloc") and len(set(map(str, _types(X)))) > 1:
        # As a whole, pandas would round long integers.
        parts = [check_table(frame.iloc[:, [i]], name=name) for i in range(frame.shape[1])]
        table = np.concatenate(parts, axis=1)
    else:
        table = _numbers(X, n_features, name)
    if n_features is not None and table.shape[1] != n_features:
        raise InvalidData(
            f"{name} has {table.shape[1]} columns, but {n_features} are needed; select them."
        )
    return table


def _numbers(X: ArrayLike, n_features: int | None, name: str) -> Floats:
    cells = _cells(X, name)
    if cells.ndim == 1:
        cells = cells.reshape(-1, 1) if len(cells) else cells.reshape(0, n_features or 1)
    if cells.dtype.kind in "Mm":
        raise InvalidData(
            f"{name} holds dates or durations; convert them to numbers, such as days since a date."
        )
    if family(cells) != "numbers":
        raise InvalidData(
            f"{name} holds something that is no number; encode it first, or use a class that only "
            "compares, such as Thresholds."
        )
    if cells.dtype.kind in "iuO":
        for row, column in np.argwhere((cells > EXACT) | (cells < -EXACT)).tolist():
            if not fits_float(int(cells[row, column])):
                raise _rounded(X, name, row, column)
    return cells.astype(np.float64)


def check_tables(points: ArrayLike, X: ArrayLike) -> tuple[Floats, Floats]:
    """Return points and rows with the same columns; without rows a table has any columns."""
    rows = check_table(X)
    if points is X:
        return rows, rows
    places = check_table(points, name="points")
    if len(rows) == 0:
        rows = np.empty((0, places.shape[1]))
    elif len(places) == 0:
        places = np.empty((0, rows.shape[1]))
    if rows.shape[1] != places.shape[1]:
        raise InvalidData(
            f"X has {rows.shape[1]} columns, but points have {places.shape[1]}; give the same."
        )
    return places, rows


def check_column(X: ArrayLike, name: str = "X") -> NDArray[Any]:
    """Return one column of anything that has an order and can be stored.

    That is floats, 64-bit integers, ``datetime64``, or objects of one kind: strings, dates,
    datetimes, and integers if some are beyond 64 bits.
    """
    column = _cells(X, name)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise InvalidData(f"{name} has shape {column.shape}; give a single column.")
    if column.dtype.kind in "bui":
        if column.dtype == np.uint64 and np.any(column >= 2**63):
            return column.astype(object)
        return column.astype(np.int64, copy=False)
    if column.dtype.kind not in "fMUO":
        raise InvalidData(
            f"{name} is of type {column.dtype}; give numbers, strings, dates or datetime64."
        )
    return column


def _cells(X: Any, name: str) -> NDArray[Any]:
    """Return an array of one type, with nothing missing and no number rounded."""
    cells = _array(X, name)
    if cells.dtype.kind == "O":
        cells = _unboxed(X, cells, name)
    if cells.dtype.kind == "f":
        gone = np.isnan(cells)
    elif cells.dtype.kind in "Mm":
        gone = np.isnat(cells)
    else:
        return cells
    if gone.any():
        raise _missing(X, name, *np.argwhere(gone)[0].tolist())
    if cells.dtype.itemsize > 8:
        raise InvalidData(f"{name} is of type {cells.dtype}; convert it to float64.")
    return cells


def _array(X: Any, name: str) -> NDArray[Any]:
    """Return one or two dimensions with nothing masked; cells of a list stay as they are."""
    if "category" in map(str, _types(X)):
        raise InvalidData(f"{name} holds categories; give their numbers (.cat.codes).")
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        row, *column = np.argwhere(np.ma.getmaskarray(X))[0].tolist()
        raise _missing(X, name, row, *column[:1])
    cells = array_of(X, name)
    if cells.ndim > 2:
        raise InvalidData(f"{name} has {cells.ndim} dimensions; give rows and columns.")
    return cells


def _unboxed(X: Any, cells: NDArray[Any], name: str) -> NDArray[Any]:
    """Return objects of one kind, as numbers or ``datetime64`` if they are such."""
    gone = np.argwhere(pd.isna(cells))
    if len(gone):
        raise _missing(X, name, *gone[0].tolist())
    values = cells.ravel().tolist()
    kinds = {kind_of_type(kind) for kind in set(map(type, values))}
    if None in kinds:
        odd = next(type(value).__name__ for value in values if kind_of_type(type(value)) is None)
        raise InvalidData(
            f"{name} holds values of type {odd}; give numbers, strings, dates or datetime64."
        )
    if kinds == {"whole numbers"}:
        whole = [int(value) for value in values]
        fits = min(whole) >= -(2**63) and max(whole) < 2**63
        return np.array(whole, dtype=np.int64 if fits else object).reshape(cells.shape)
    if kinds <= {"whole numbers", "numbers"}:
        for number, value in enumerate(values):
            if isinstance(value, WHOLE) and not fits_float(int(value)):
                raise _rounded(X, name, *_where(number, cells))
        return np.array([float(value) for value in values]).reshape(cells.shape)
    if len(kinds) > 1:
        raise InvalidData(f"{name} mixes {' and '.join(sorted(map(str, kinds)))}; give one type.")
    return _dates(values, name).reshape(cells.shape) if kinds != {"strings"} else cells


def _dates(values: list[Any], name: str) -> NDArray[Any]:
    if any(getattr(value, "tzinfo", None) is not None for value in values):
        raise InvalidData(f"{name} has times with a time zone; convert them to UTC without one.")
    if len({getattr(value, "dtype", None) for value in values}) > 1:
        raise InvalidData(f"{name} mixes units of datetime64; give one.")
    return np.array(values)


def family(cells: NDArray[Any]) -> str | None:
    """Return in a word what a checked array holds: only arrays of one family can be compared."""
    if cells.dtype.kind == "O":
        kind = kind_of_type(type(cells.flat[0])) if cells.size else None
        return "numbers" if kind == "whole numbers" else kind
    known = {"U": "strings", "M": "datetime64"}
    return "numbers" if cells.dtype.kind in "biuf" else known.get(cells.dtype.kind)


def _missing(X: Any, name: str, row: int, column: int | None = None) -> InvalidData:
    text = f"{name} has a missing value in {_place(X, row, column)}; fill or drop it."
    return InvalidData(text, columns=_titles(X, column), rows=[row])


def _rounded(X: Any, name: str, row: int, column: int | None = None) -> InvalidData:
    return InvalidData(
        f"{name} has an integer in {_place(X, row, column)} that would be rounded as a float; give "
        "fewer digits, or a column of integers to a class that only compares.",
        columns=_titles(X, column),
        rows=[row],
    )


def _where(number: int, cells: NDArray[Any]) -> list[int]:
    """Return row and column of a cell, given its number."""
    return [int(i) for i in np.unravel_index(number, cells.shape)]


def _place(X: Any, row: int, column: int | None = None) -> str:
    """Say where a cell stands, with the column's name if there is one."""
    return ", ".join([f"row {row}", *(f"column {title}" for title in _titles(X, column))])


def _titles(X: Any, column: int | None) -> list[str]:
    """Return the name or number of a column, if there is one."""
    names = getattr(X, "columns", None)
    where: Any = getattr(X, "name", None) if names is None else names[column or 0]
    where = column if where is None else where
    return [] if where is None else [str(where)]


def _types(X: Any) -> list[Any]:
    """Return the types of the columns of a table or column that has such."""
    if hasattr(X, "columns"):
        return list(getattr(X, "dtypes", []))
    return [X.dtype] if hasattr(X, "dtype") else []


def exact_weights(weights: ArrayLike | None, rows: int) -> NDArray[Any]:
    """Return weights scaled by a power of two to whole numbers, so that sums of them are exact.

    They come as 64-bit integers if no sum can overflow, else as Python integers.

    Examples
    --------
    >>> from cumae.data import exact_weights
    >>> exact_weights([0.5, -1.25], 2)
    array([ 2, -5])
    """
    if weights is None:
        return np.ones(rows, dtype=np.int64)
    array = _cells(weights, "sample_weight")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (rows,) or family(array) != "numbers":
        raise InvalidData(
            f"sample_weight has shape {array.shape} and type {array.dtype}; give one number for "
            "each row."
        )
    if array.dtype.kind != "f":
        whole = array.astype(object)
    else:
        wrong = np.isinf(array)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InvalidData(f"sample_weight is not finite in row {row}.", rows=[row])
        with np.errstate(over="ignore"):
            small = np.abs(array).sum() < EXACT
        if small and np.all(array == np.rint(array)):
            return array.astype(np.int64)
        fractions = [Fraction(float(value)) for value in array]
        scale = max((f.denominator for f in fractions), default=1)
        whole = np.array([int(f * scale) for f in fractions], dtype=object)
    if sum(abs(value) for value in whole) < 2**62:
        return whole.astype(np.int64)
    return whole


# Single values


def kind_of_type(kind: type) -> str | None:
    """Return the name of the values that this type can be compared with; None if it has no use."""
    # Numpy counts spans of time among the integers.
    if kind.__name__ != "timedelta64" and issubclass(kind, WHOLE):
        return "whole numbers"
    if issubclass(kind, FLOAT):
        return "numbers"
    if issubclass(kind, str):
        return "strings"
    if issubclass(kind, np.datetime64):
        return "datetime64"
    if kind is dt.date:
        return "dates"
    return "datetimes" if kind is dt.datetime else None


@claim("HIST")
def plain_value(value: Any) -> Any:
    """Return a value in a form of its own: whole numbers as int, independent of the other rows.

    Python would call 7 and 7.0 one value, and keep the form of the row that came first.

    Examples
    --------
    >>> from cumae.data import plain_value
    >>> plain_value(7.0), plain_value(0.5), plain_value(True), plain_value("7")
    (7, 0.5, 1, '7')
    """
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    return int(value) if isinstance(value, bool) else value


def fits_float(value: int) -> bool:
    """Tell whether a float can hold the integer without rounding."""
    bits = abs(value).bit_length()
    return bits <= 1024 and abs(value) % (1 << max(0, bits - 53)) == 0


def check_cell(value: object, name: str) -> None:
    """Refuse what no column can hold; None stands for no value."""
    kind = kind_of_type(type(value))
    zone = getattr(value, "tzinfo", None)
    if value is not None and (kind is None or is_missing(value) or zone is not None):
        raise InvalidParameter(
            f"{name} of type {type(value).__name__} is missing or cannot be compared; give a "
            "number, a string, a date or a datetime64."
        )


def check_number(value: Any, name: str, *, finite: bool = False) -> None:
    """Refuse what is no number that a float can hold."""
    number = isinstance(value, WHOLE + FLOAT) and not isinstance(value, bool | np.bool_)
    if number and isinstance(value, WHOLE):
        number = fits_float(int(value))
    if not number or is_missing(value) or (finite and math.isinf(value)):
        kind = "a finite number" if finite else "a number"
        raise InvalidParameter(f"{name} is not {kind}; give one that fits a float.")


def check_tuple(value: object, name: str) -> None:
    """Refuse what is no tuple: hypotheses can be compared and hashed."""
    if not isinstance(value, tuple):
        raise InvalidParameter(f"{name} of type {type(value).__name__} is no tuple; give one.")
