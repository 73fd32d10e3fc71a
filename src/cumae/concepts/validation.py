"""Checks of tables and labels: an error names a row and a column, never a value."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.errors import InvalidData

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def check_table(X: ArrayLike, n_features: int | None = None) -> Floats:
    """Return a table of numbers as floats; infinite ones are ordered like numbers."""
    names = _names(X)
    table = np.asarray(X)
    if table.ndim == 1:
        table = table.reshape(-1, 1)
    if table.ndim != 2:
        raise InvalidData(f"X has {table.ndim} dimensions; give rows and columns.")
    numbers = None
    with contextlib.suppress(TypeError, ValueError, OverflowError):  # their text carries values
        numbers = table.astype(np.float64)
    if numbers is None:
        raise InvalidData(
            "X holds something that is no number; encode it first, or use a class that only "
            "compares, such as Thresholds."
        )
    missing = np.argwhere(np.isnan(numbers))
    if len(missing):
        row, column = (int(i) for i in missing[0])
        raise InvalidData(
            f"X has a missing value in row {row}, column {_name(names, column)}; fill or drop it."
        )
    if n_features is not None and numbers.shape[1] != n_features:
        raise InvalidData(
            f"X has {numbers.shape[1]} columns, but {n_features} are needed; select them."
        )
    return numbers


def check_column(X: ArrayLike) -> NDArray[Any]:
    """Return one column of anything that has an order: numbers, strings, dates, long integers."""
    names = _names(X)
    column = np.asarray(X)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise InvalidData(f"X has shape {column.shape}; give a single column.")
    if column.dtype.kind == "O":
        kinds = {type(value) for value in column}
        if kinds and kinds <= {int, float, bool, np.float64, np.int64} and float in kinds:
            column = column.astype(np.float64)
    missing = _missing(column)
    if missing.any():
        row = int(np.argmax(missing))
        raise InvalidData(
            f"X has a missing value in row {row}, column {_name(names, 0)}; fill or drop it."
        )
    if column.dtype.kind not in "biufMmUSO":
        raise InvalidData(f"X is of type {column.dtype}, which has no order; convert it.")
    return column


def _missing(column: NDArray[Any]) -> NDArray[np.bool_]:
    if column.dtype.kind == "f":
        return np.asarray(np.isnan(column))
    if column.dtype.kind in "Mm":
        return np.asarray(np.isnat(column))
    if column.dtype.kind == "O":
        # None, NaN and NaT are the values that do not equal themselves, and None.
        return np.array([value is None or value != value for value in column], dtype=bool)  # noqa: PLR0124
    return np.zeros(len(column), dtype=bool)


def check_labels(y: ArrayLike) -> Integers:
    """Return labels as integers, all of them 0 or 1."""
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InvalidData(f"y has shape {labels.shape}; give one label for each row.")
    if labels.size == 0:
        return np.zeros(0, dtype=np.int64)
    if labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() <= 1:
        return labels.astype(np.int64, copy=False)
    wrong = np.ones(len(labels), dtype=bool)
    if labels.dtype.kind in "biuf":
        wrong = (labels != 0) & (labels != 1)
    if wrong.any():
        raise InvalidData(f"y has a label in row {int(np.argmax(wrong))} that is neither 0 nor 1.")
    return labels.astype(np.int64)


def check_rows(count: int, y: Integers) -> None:
    """Refuse labels that do not match the rows."""
    if count != len(y):
        raise InvalidData(f"X has {count} rows but y has {len(y)}; give one label for each row.")


def exact_weights(weights: ArrayLike | None, rows: int) -> NDArray[Any]:
    """Return weights scaled by a power of two to whole numbers, so that sums of them are exact.

    They come as 64-bit integers if no sum can overflow, else as Python integers.

    Examples
    --------
    >>> from cumae.concepts.validation import exact_weights
    >>> exact_weights([0.5, -1.25], 2)
    array([ 2, -5])
    """
    if weights is None:
        return np.ones(rows, dtype=np.int64)
    array = np.asarray(weights)
    if array.shape != (rows,) or array.dtype.kind not in "biuf":
        raise InvalidData(
            f"sample_weight has shape {array.shape} and type {array.dtype}; give one number for "
            "each row."
        )
    wrong = ~np.isfinite(array)
    if wrong.any():
        raise InvalidData(f"sample_weight is not finite in row {int(np.argmax(wrong))}.")
    if array.dtype.kind in "biu":
        whole = array.astype(object)
    elif np.all(array == np.rint(array)) and np.abs(array).sum() < 2.0**53:
        return array.astype(np.int64)
    else:
        fractions = [Fraction(float(value)) for value in array]
        scale = max((f.denominator for f in fractions), default=1)
        whole = np.array([int(f * scale) for f in fractions], dtype=object)
    if sum(abs(value) for value in whole) < 2**62:
        return whole.astype(np.int64)
    return whole


def _names(X: ArrayLike) -> list[str] | None:
    columns = getattr(X, "columns", None)
    if columns is not None:
        return [str(name) for name in columns]
    name = getattr(X, "name", None)
    return None if name is None else [str(name)]


def _name(names: list[str] | None, column: int) -> str:
    return str(column) if names is None else names[column]
