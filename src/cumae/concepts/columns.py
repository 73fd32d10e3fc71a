"""One ordered column: its distinct points, the gaps between them, and what each cell would gain.

Classes over a single column (points, thresholds, intervals) see a table as a row of cells, one
around each distinct point. A labelling of the points is a set of cells labelled 1; its score is
``base`` plus the ``gain`` of those cells.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Floats, Integers
from cumae.data import EXACT, check_column, check_rows, family
from cumae.errors import InvalidData


@dataclass(frozen=True, eq=False, repr=False)
class Cells:
    """Distinct points in order, with what labelling each cell 1 instead of 0 gains."""

    points: NDArray[Any] | Keys
    gain: NDArray[Any]  # 64-bit integers, or Python integers where sums might overflow
    base: int  # score of labelling everything 0

    def __len__(self) -> int:
        return len(self.points)

    def cut(self, place: int) -> Any:
        """Return the cut below point ``place``; None before the first and behind the last."""
        if not 0 < place < len(self.points):
            return None
        return middle(self.points[place - 1 : place], self.points[place : place + 1])[0]


def cells_of(
    points: ArrayLike,
    X: ArrayLike,
    y: Integers,
    weights: NDArray[Any] | None = None,
) -> Cells:
    """Sort rows into the cells around the distinct points; a cut belongs to the cell above it.

    Parameters
    ----------
    points : array-like
        What defines the cells.
    X : array-like
        The rows, in one column.
    y : array of int
        Their labels, 0 or 1.
    weights : array of whole numbers, or None
        What each row counts; None means 1 for each.
    """
    column = check_column(X)
    check_rows(len(column), y)
    if points is X and weights is None and column.dtype == np.float64 and len(column):
        keys, least, fits = _keys(column, y)
        if fits:
            keys.sort()
            distinct, gain = _gains(keys)
            return Cells(Keys(distinct, least), gain, int(len(y) - y.sum()))
    # Candidates come from the points alone, in the points' own type: were they converted to a type
    # that X brings along, one private row could move every cut.
    distinct = _distinct(column if points is X else check_column(points, "points"))
    signed = np.where(y == 1, 1, -1) if weights is None else np.where(y == 1, weights, -weights)
    base = len(y) - int(y.sum()) if weights is None else sum(weights[y == 0].tolist())
    gain = np.zeros(len(distinct), dtype=signed.dtype)
    check_alike(distinct, column)
    if len(distinct) and len(column):
        cuts, rows = alike(middle(distinct[:-1], distinct[1:]), column)
        np.add.at(gain, np.searchsorted(cuts, rows, side="right"), signed)
    return Cells(distinct, gain, int(base))


def distinct_points(X: ArrayLike, name: str = "X") -> NDArray[Any]:
    """Return the distinct values of a column, in order."""
    return _distinct(check_column(X, name))


def middle(low: NDArray[Any], high: NDArray[Any]) -> NDArray[Any]:
    """Return a cut c with low < c <= high in the middle, or at ``high`` where there is none.

    A row is above the cut if it is at least c. Floats, whole numbers and ``datetime64`` have
    middles; what is only compared, such as strings and Python's dates, has not.
    """
    kind = low.dtype.kind
    if kind == "f":
        with np.errstate(invalid="ignore"):  # between -inf and inf there is no middle
            half = low / 2 + high / 2
        return np.where((half > low) & (half <= high), half, high)
    if kind in "iu":
        return np.asarray((low >> 1) + (high >> 1) + ((low | high) & 1))
    if kind in "Mm":
        return middle(low.view(np.int64), high.view(np.int64)).view(low.dtype)
    if kind == "O" and all(type(value) is int for value in (*low, *high)):
        return np.asarray((low + high + 1) // 2)
    return high


def compare(column: NDArray[Any], how: Callable[[Any, Any], Any], value: Any) -> NDArray[np.bool_]:
    """Compare each row with one value, exactly, as rows are compared with cuts.

    Parameters
    ----------
    column : array
        The rows.
    how : callable from two arrays to an array of bool
        A comparison such as ``operator.ge``.
    value : object
        What each row is compared with.
    """
    one = check_column([value])
    check_alike(one, column, "the hypothesis")
    one, rows = alike(one, column)
    return np.asarray(how(rows, one), dtype=bool)


def at_least(column: NDArray[Any], value: Any) -> NDArray[np.bool_]:
    """Tell which rows are at or above a value."""
    return compare(column, operator.ge, value)


def check_alike(points: NDArray[Any], column: NDArray[Any], name: str = "points") -> None:
    """Refuse rows that cannot be compared with the points.

    Parameters
    ----------
    points : array
        The points.
    column : array
        The rows.
    name : str
        What the points are called in the message.
    """
    if len(points) and len(column) and family(points) != family(column):
        raise InvalidData(
            f"X holds {family(column)}, but {name} {family(points)}; give both in the same type."
        )


def alike(points: NDArray[Any], column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Bring both to one type in which comparisons are exact, independent of the other rows."""
    if points.dtype == column.dtype or not len(points) or not len(column):
        return points, column
    kind = np.result_type(points, column)
    if kind.kind == "f" and (_is_wide(points) or _is_wide(column)):
        kind = np.dtype(object)  # Python compares integers and floats exactly
    found = points.astype(kind), column.astype(kind)
    if kind.kind == "M" and any(
        np.any(new.astype(old.dtype) != old)
        for new, old in zip(found, (points, column), strict=True)
    ):
        raise InvalidData(f"some dates are too far away for the unit of {kind}; give less.")
    return found


def _is_wide(column: NDArray[Any]) -> bool:
    """Tell whether floats are too coarse for some of a column's integers."""
    return column.dtype.kind == "i" and bool(np.any((column > EXACT) | (column < -EXACT)))


def _distinct(points: NDArray[Any]) -> NDArray[Any]:
    ordered = np.sort(points)
    if len(ordered) == 0:
        return ordered
    return np.asarray(ordered[np.append(True, ordered[1:] != ordered[:-1])])


# Sorting row numbers by value costs several sorts. Instead, floats become integers of the same
# order, with the label as an additional last bit: one sort of these brings values and labels along.


@dataclass(frozen=True, eq=False, repr=False)
class Keys:
    """Distinct floats in order, kept as integer keys and turned back when asked for."""

    keys: NDArray[np.uint64]
    least: int

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, part: slice) -> Floats:
        signed = self.keys[part].view(np.int64) + self.least
        return (signed ^ ((signed >> 63) & MAGNITUDE)).view(np.float64)


MAGNITUDE = np.int64(2**63 - 1)


@numba.njit(cache=True, nogil=True)
def _keys(column: Floats, y: Integers) -> tuple[Any, ...]:
    """Return (key - least key) * 2 + label for each row; false if that leaves 64 bits."""
    bits = (column + 0.0).view(np.int64)  # minus zero becomes zero
    least, most = MAGNITUDE, -MAGNITUDE
    for i in range(len(bits)):
        # Negative floats fall as their bits rise: flip all bits but the sign.
        bits[i] ^= (bits[i] >> 63) & MAGNITUDE
        least, most = min(least, bits[i]), max(most, bits[i])
    keys = bits.view(np.uint64)
    if (most >> 1) - (least >> 1) >= 1 << 61:
        return keys, least, False
    for i in range(len(bits)):
        keys[i] = (np.uint64(bits[i] - least) << np.uint64(1)) | np.uint64(y[i])
    return keys, least, True


@numba.njit(cache=True, nogil=True)
def _gains(keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], Integers]:
    """Return the distinct keys, which overwrite the sorted ones, with the gain of each."""
    gain = np.empty(len(keys), dtype=np.int64)
    cell = -1
    last = np.uint64(2**64 - 1)
    for i in range(len(keys)):
        value = keys[i] >> np.uint64(1)
        sign = 2 * np.int64(keys[i] & np.uint64(1)) - 1
        if value != last:
            cell += 1
            keys[cell] = value
            gain[cell] = sign
            last = value
        else:
            gain[cell] += sign
    return keys[: cell + 1], gain[: cell + 1]
