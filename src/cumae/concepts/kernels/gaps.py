"""The widest gap between points with two labels, in floats, and whether rounding leaves it open."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers


@numba.njit(cache=True, nogil=True)
def side(normal: Floats, offset: float, row: Floats) -> int:
    """Return 1 if normal . row > offset for certain, 0 if below, -1 if rounding leaves it open.

    Parameters
    ----------
    normal : array of float
        Direction across the boundary.
    offset : float
        Where along the normal the boundary lies.
    row : array of float
        The row that is labelled.
    """
    value, size = -offset, abs(offset)
    for i in range(len(row)):
        value += normal[i] * row[i]
        size += abs(normal[i] * row[i])
    margin = 2.0**-50 * size + 2.0**-1000  # at most 4 roundings and 3 underflows; NaN stays open
    if value > margin and size < np.inf:
        return 1
    if -value > margin and size < np.inf:
        return 0
    return -1


@numba.njit(cache=True, nogil=True)
def separate(points: Floats, labels: Integers) -> tuple[Floats, float, bool]:
    """Return normal and offset of the widest gap between both labels, and whether they surely hold.

    The normal joins the nearest points of the two convex hulls (Wolfe's algorithm for the shortest
    vector between them, in floats); the offset is half-way.
    """
    normal = np.zeros(points.shape[1])
    low, high = _extremes(points, labels, normal)
    if low < 0 or high < 0:  # all labels are equal
        return normal, 0.0, False
    normal = _shortest(points, labels)
    largest = 0.0
    for i in range(len(normal)):
        largest = max(largest, abs(normal[i]))
    if not 0.0 < largest < np.inf:
        return normal, 0.0, False
    for i in range(len(normal)):
        normal[i] /= largest
    low, high = _extremes(points, labels, normal)
    offset = _dot(points[low], normal) / 2.0 + _dot(points[high], normal) / 2.0
    for k in range(len(points)):
        if side(normal, offset, points[k]) != labels[k]:
            return normal, offset, False
    return normal, offset, True


@numba.njit(cache=True, nogil=True)
def _subtract(a: Floats, b: Floats, out: Floats) -> None:
    for i in range(len(out)):
        out[i] = a[i] - b[i]


@numba.njit(cache=True, nogil=True)
def _dot(a: Floats, b: Floats) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@numba.njit(cache=True, nogil=True)
def _extremes(points: Floats, labels: Integers, normal: Floats) -> tuple[int, int]:
    """Return the lowest point with label 1 and the highest with label 0 along the normal."""
    low = high = -1
    least = most = 0.0
    for k in range(len(points)):
        value = _dot(points[k], normal)
        if labels[k] == 1 and (low < 0 or value < least):
            low, least = k, value
        if labels[k] == 0 and (high < 0 or value > most):
            high, most = k, value
    return low, high


@numba.njit(cache=True, nogil=True)
def _shortest(points: Floats, labels: Integers) -> Floats:
    """Return the shortest difference between the hulls of label 1 and label 0, roughly."""
    columns = points.shape[1]
    corners = np.zeros((columns + 1, columns))
    weights = np.zeros(columns + 1)
    shortest, last = np.zeros(columns), np.zeros(columns)
    length = np.inf
    size = 0
    for _ in range(1000):
        low, high = _extremes(points, labels, shortest)
        _subtract(points[low], points[high], corners[size])
        if _dot(shortest, corners[size]) > length * (1.0 - 2.0**-40):
            break
        weights[size] = 1.0 if size == 0 else 0.0
        size = _shrink(corners, weights, size + 1)
        for i in range(columns):
            last[i], shortest[i] = shortest[i], 0.0
            for k in range(size):
                shortest[i] += weights[k] * corners[k, i]
        shorter = _dot(shortest, shortest)
        if not shorter < length:  # rounding stops the descent
            return last
        length = shorter
        if size == columns + 1:  # only rounding could make the hulls meet
            break
    return shortest


@numba.njit(cache=True, nogil=True)
def _shrink(corners: Floats, weights: Floats, size: int) -> int:
    """Move to the shortest vector of the corners' affine hull, dropping corners on the way out."""
    while True:
        aim = _balance(corners, size)
        step, leaver = 1.0, -1
        for k in range(size):
            if aim[k] <= 0.0 and weights[k] <= step * (weights[k] - aim[k]):
                step, leaver = weights[k] / max(weights[k] - aim[k], 2.0**-1000), k
        for k in range(size):
            weights[k] += step * (aim[k] - weights[k])
        if leaver < 0 or size == 1:
            return size
        size -= 1
        for k in range(leaver, size):
            weights[k] = weights[k + 1]
            for i in range(corners.shape[1]):
                corners[k, i] = corners[k + 1, i]


@numba.njit(cache=True, nogil=True)
def _balance(corners: Floats, size: int) -> Floats:
    """Return weights, with sum 1, of the shortest vector in the corners' affine hull."""
    columns = corners.shape[1]
    edges = np.zeros((size, columns))  # from the first corner, made orthogonal one by one
    change = np.zeros((size, size))  # the weights that make each edge
    rest = corners[0].copy()
    aim = np.zeros(size)
    aim[0] = 1.0
    for k in range(1, size):
        _subtract(corners[k], corners[0], edges[k])
        change[k, k], change[k, 0] = 1.0, -1.0
        for j in range(1, k):
            part = _dot(edges[k], edges[j]) / max(_dot(edges[j], edges[j]), 2.0**-1000)
            for i in range(columns):
                edges[k, i] -= part * edges[j, i]
            for i in range(size):
                change[k, i] -= part * change[j, i]
        part = _dot(rest, edges[k]) / max(_dot(edges[k], edges[k]), 2.0**-1000)
        for i in range(columns):
            rest[i] -= part * edges[k, i]
        for i in range(size):
            aim[i] -= part * change[k, i]
    return aim


@numba.njit(cache=True, nogil=True)
def gains_outside(
    points: Floats, labellings: Integers, rows: Floats, gains: Integers
) -> tuple[Integers, NDArray[np.bool_]]:
    """Return what the hypothesis of each labelling gains on rows beside the points.

    The second array tells for which of them rounding left nothing open.

    Parameters
    ----------
    points : array of float
        The points, one a line.
    labellings : array of int
        The labels of all points, 0 or 1, one line for each hypothesis.
    rows : array of float
        The other rows.
    gains : array of int
        What label 1 gains over label 0 for each of them.
    """
    found = np.zeros(len(labellings), np.int64)
    sure = np.zeros(len(labellings), np.bool_)
    for c in range(len(labellings)):
        normal, offset, sure[c] = separate(points, labellings[c])
        for r in range(len(rows)):
            label = side(normal, offset, rows[r])
            sure[c] &= label >= 0
            found[c] += label * gains[r]
    return found, sure
