"""On which side of a line or plane through points another point lies, decided exactly.

Columns are scaled to at most 1, with no magnitude below 2^-300 except 0: then all of the sums and
products below are exact where they claim it.
"""

from __future__ import annotations

import numba
import numpy as np

from cumae.arrays import Floats

# Shewchuk's bounds for determinants of differences, with 2^-53 for half a unit in the last place.
ERROR_2 = (3 + 16 * 2.0**-53) * 2.0**-53
ERROR_3 = (7 + 56 * 2.0**-53) * 2.0**-53
SPLITTER = 2.0**27 + 1


@numba.njit(cache=True, nogil=True)
def _two_sum(a: float, b: float) -> tuple[float, float]:
    """Return the rounded sum and what rounding lost."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@numba.njit(cache=True, nogil=True)
def _two_product(a: float, b: float) -> tuple[float, float]:
    """Return the rounded product and what rounding lost."""
    product = a * b
    c = SPLITTER * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = SPLITTER * b
    b_high = c - (c - b)
    b_low = b - b_high
    lost = product - a_high * b_high - a_low * b_high - a_high * b_low
    return product, a_low * b_low - lost


@numba.njit(cache=True, nogil=True)
def _grow(parts: Floats, size: int, value: float) -> int:
    """Add a number to a sum of ``size`` parts that do not overlap, the largest last."""
    kept = 0
    for k in range(size):
        value, lost = _two_sum(value, parts[k])
        if lost != 0.0:
            parts[kept] = lost
            kept += 1
    if value != 0.0:
        parts[kept] = value
        kept += 1
    return kept


@numba.njit(cache=True, nogil=True)
def _sign(parts: Floats, size: int) -> int:
    if size == 0:
        return 0
    return 1 if parts[size - 1] > 0.0 else -1


@numba.njit(cache=True, nogil=True)
def turn_2(points: Floats, x: int, y: int, a: int, k: int, m: int) -> int:
    """Return 1 if the way from a over k to m turns left in columns x and y, -1 if right.

    Parameters
    ----------
    points : array of float
        The points, one a line.
    x, y : int
        The two columns.
    a, k, m : int
        Places of the three points.
    """
    left = (points[k, x] - points[a, x]) * (points[m, y] - points[a, y])
    right = (points[k, y] - points[a, y]) * (points[m, x] - points[a, x])
    det = left - right
    if abs(det) > ERROR_2 * (abs(left) + abs(right)):
        return 1 if det > 0.0 else -1
    if left == 0.0 and right == 0.0:  # a difference is 0 only if it truly is
        return 0
    return _exact_2(points, x, y, a, k, m)


@numba.njit(cache=True, nogil=True)
def _exact_2(points: Floats, x: int, y: int, a: int, k: int, m: int) -> int:
    kx = _two_sum(points[k, x], -points[a, x])
    ky = _two_sum(points[k, y], -points[a, y])
    mx = _two_sum(points[m, x], -points[a, x])
    my = _two_sum(points[m, y], -points[a, y])
    # First with twice the digits: what this leaves out is below 16 * 2^-106 of both products.
    left, right = _two_product(kx[0], my[0]), _two_product(ky[0], mx[0])
    rest = kx[0] * my[1] + kx[1] * my[0], ky[0] * mx[1] + ky[1] * mx[0]
    det, lost = _two_sum(left[0], -right[0])
    det += lost + ((left[1] + rest[0]) - (right[1] + rest[1]))
    if abs(det) > 2.0**-101 * (abs(left[0]) + abs(right[0])):
        return 1 if det > 0.0 else -1
    if det == 0.0 and kx[1] == ky[1] == mx[1] == my[1] == 0.0 and left == right:
        return 0
    parts = np.empty(20)
    size = 0
    for term in range(8):
        i, j = term // 2 % 2, term % 2
        u, v = (kx[i], my[j]) if term < 4 else (-ky[i], mx[j])
        product, lost = _two_product(u, v)
        size = _grow(parts, _grow(parts, size, lost), product)
    return _sign(parts, size)


@numba.njit(cache=True, nogil=True)
def turn_3(points: Floats, a: int, b: int, k: int, m: int) -> int:
    """Return the sign of det(b - a, k - a, m - a): 1 if m is ahead of k, turning left around it.

    Parameters
    ----------
    points : array of float
        The points in space, one a line.
    a, b : int
        Places of the two points on the axis.
    k, m : int
        Places of the points that are compared.
    """
    ux, uy, uz = (
        points[b, 0] - points[a, 0],
        points[b, 1] - points[a, 1],
        points[b, 2] - points[a, 2],
    )
    vx, vy, vz = (
        points[k, 0] - points[a, 0],
        points[k, 1] - points[a, 1],
        points[k, 2] - points[a, 2],
    )
    wx, wy, wz = (
        points[m, 0] - points[a, 0],
        points[m, 1] - points[a, 1],
        points[m, 2] - points[a, 2],
    )
    yz, zy, zx, xz, xy, yx = vy * wz, vz * wy, vz * wx, vx * wz, vx * wy, vy * wx
    det = ux * (yz - zy) + uy * (zx - xz) + uz * (xy - yx)
    size = (
        (abs(yz) + abs(zy)) * abs(ux)
        + (abs(zx) + abs(xz)) * abs(uy)
        + (abs(xy) + abs(yx)) * abs(uz)
    )
    if abs(det) > ERROR_3 * size:
        return 1 if det > 0.0 else -1
    if size == 0.0:
        return 0
    return _exact_3(points, a, b, k, m)


@numba.njit(cache=True, nogil=True)
def _exact_3(points: Floats, a: int, b: int, k: int, m: int) -> int:
    # Each difference is exactly a sum of two floats; the determinant is a sum of triple products.
    edges = np.empty((3, 3, 2))
    for i in range(3):
        edges[0, i, 0], edges[0, i, 1] = _two_sum(points[b, i], -points[a, i])
        edges[1, i, 0], edges[1, i, 1] = _two_sum(points[k, i], -points[a, i])
        edges[2, i, 0], edges[2, i, 1] = _two_sum(points[m, i], -points[a, i])
    parts = np.empty(200)
    size = 0
    for term in range(48):  # 3 columns, 2 signs, and 2 floats for each of the 3 factors
        i, odd = term // 16, term // 8 % 2
        u = edges[0, i, term // 4 % 2] * (1 - 2 * odd)
        v = edges[1, (i + 1 + odd) % 3, term // 2 % 2]
        w = edges[2, (i + 2 - odd) % 3, term % 2]
        if u * v * w != 0.0:
            high, low = _two_product(u, v)
            for factor in range(2):
                product, lost = _two_product(high if factor else low, w)
                size = _grow(parts, _grow(parts, size, lost), product)
    return _sign(parts, size)


@numba.njit(cache=True, nogil=True)
def turn_of(points: Floats, a: int, b: int, k: int, m: int) -> int:
    """Return ``turn_2`` around the pivot a in a plane, ``turn_3`` around the axis a, b in space.

    Parameters
    ----------
    points : array of float
        The points, one a line.
    a, b : int
        Places of the pivot, or of the two points on the axis; in a plane b is not used.
    k, m : int
        Places of the points that are compared.
    """
    if points.shape[1] == 2:
        return turn_2(points, 0, 1, a, k, m)
    return turn_3(points, a, b, k, m)
