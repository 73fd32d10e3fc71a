"""Compiled sweeps over the halfspace labellings of points in a plane or in space.

Points come distinct and in lexicographic order, scaled to at most 1 in each column, with no
magnitude below 2^-300 but 0: then all of the sums and products below are exact where they claim it.

A *fan* turns a line around a pivot point ``a`` (plane; then b = a), or a plane around the axis
through two neighbouring points ``a < b`` of their line (space). It sorts the other points by the
angle of the line or plane that they lie on; those on one line or plane form a group. A point lies
on the front or on the back half of it (``fold`` 1 or -1; 0 on the axis). Each group stands for two
directions, one along its front and one along its back, and each of those for the labelling

    1 on the axis from b on, 1 on the half that the direction shows, 0 on the other half,
    1 to the right of it, 0 to the left,

unless it is counted elsewhere (``_kept``). The proof that this yields every labelling once is with
the claim CHOOSE.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers

# Shewchuk's bounds for determinants of differences, with 2^-53 for half a unit in the last place.
ERROR_2 = (3 + 16 * 2.0**-53) * 2.0**-53
ERROR_3 = (7 + 56 * 2.0**-53) * 2.0**-53
SPLITTER = 2.0**27 + 1
ORDER, SPARE, FOLD, TURNS, ENDS, SIDES = range(6)  # rows of the kernel's working memory
LIMB = 40  # bits of a limb: a sum over 2^22 points stays below 2^62


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
    """Return 1 if the way from a over k to m turns left in columns x and y, -1 if right."""
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
def _turn_3(points: Floats, a: int, b: int, k: int, m: int) -> int:
    """Return the sign of det(b - a, k - a, m - a): 1 if m is ahead of k, turning left around it."""
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
def _turn(points: Floats, a: int, b: int, k: int, m: int) -> int:
    if points.shape[1] == 2:
        return turn_2(points, 0, 1, a, k, m)
    return _turn_3(points, a, b, k, m)


@numba.njit(cache=True, nogil=True)
def _collect_2(a: int, rough: Integers, work: Integers) -> int:
    """Take the points around pivot a in rough order; the lexicographically later are in front."""
    order, fold = work[ORDER], work[FOLD]
    size = 0
    for k in rough:
        fold[k] = (k > a) - (k < a)
        if k != a:
            order[size] = k
            size += 1
    return size


@numba.njit(cache=True, nogil=True)
def _collect_3(points: Floats, a: int, b: int, work: Integers) -> int:
    """Gather the points around the axis; -1 if a point lies on it between a and b."""
    order, fold = work[ORDER], work[FOLD]
    first, front, size = -1, 0, 0
    for k in range(len(points)):
        fold[k] = 0
        view = 0 if k in (a, b) else _off_axis(points, a, b, k)
        if view == 0:
            if a < k < b:
                return -1
            continue
        if first < 0:  # the first point off the axis shows angle 0
            first, front = k, view
        # Folding sees what lies to the right of the first point from behind. In one plane with it
        # the same view shows both, on the same side or on opposite ones.
        fold[k] = _turn_3(points, a, b, first, k)
        if fold[k] == 0:
            fold[k] = 1 if view == front else -1
        order[size] = k
        size += 1
    return size


@numba.njit(cache=True, nogil=True)
def _off_axis(points: Floats, a: int, b: int, k: int) -> int:
    """Return 0 on the axis, else the side of k (1 or -1) plus 3 times the view that shows it."""
    for view in range(3):  # columns 0 and 1, 0 and 2, 1 and 2
        turn = turn_2(points, view // 2, (view + 3) // 2, a, b, k)
        if turn != 0:
            return turn + 3 * view
    return 0


@numba.njit(cache=True, nogil=True)
def _ahead(points: Floats, a: int, b: int, fold: Integers, k: int, m: int) -> int:
    """Return 1 if m has the larger folded angle, 0 if it has the same, -1 if the smaller."""
    return int(fold[k] * fold[m] * _turn(points, a, b, k, m))


@numba.njit(cache=True, nogil=True)
def _sort(points: Floats, a: int, b: int, size: int, work: Integers) -> None:
    """Sort by folded angle with exact turns, merging runs that are in order already.

    In the end ``turns`` tells for each point whether it is ahead of the one before: 0 says that
    both are in one group.
    """
    order, spare, fold, turns, starts = (
        work[ORDER],
        work[SPARE],
        work[FOLD],
        work[TURNS],
        work[ENDS],
    )
    while True:
        starts[0], runs = 0, 1
        for s in range(1, size):
            turns[s] = _ahead(points, a, b, fold, order[s - 1], order[s])
            if turns[s] < 0:
                starts[runs] = s
                runs += 1
        if runs == 1:
            return
        while runs > 1:
            for run in range(0, runs, 2):
                i = starts[run]
                middle = j = starts[run + 1] if run + 1 < runs else size
                end = starts[run + 2] if run + 2 < runs else size
                for t in range(i, end):
                    if j >= end or (
                        i < middle and _ahead(points, a, b, fold, order[i], order[j]) >= 0
                    ):
                        spare[t] = order[i]
                        i += 1
                    else:
                        spare[t] = order[j]
                        j += 1
                starts[run // 2] = starts[run]
            for t in range(size):
                order[t] = spare[t]
            runs = (runs + 1) // 2


@numba.njit(cache=True, nogil=True)
def _kept(a: int, b: int, least_ahead: int, most_behind: int) -> bool:
    """Tell whether a labelling belongs to this fan.

    In the plane a point has to follow the pivot, or the pivot is not the last one of its side. In
    space the labelling within the plane must not be a cut through the lexicographic order.
    """
    if a == b:
        return most_behind >= 0
    return min(b, least_ahead) < max(a, most_behind)


@numba.njit(cache=True, nogil=True)
def _candidates(
    points: Floats, gains: Integers, a: int, b: int, rough: Integers, work: Integers, out: Integers
) -> int:
    """Write the gain of each labelling of a fan, in limbs; return how many there are."""
    order, fold, turns = work[ORDER], work[FOLD], work[TURNS]
    size = _collect_2(a, rough, work) if a == b else _collect_3(points, a, b, work)
    if size < 0:
        return 0
    _sort(points, a, b, size, work)
    # What labels 1 gain for the directions of front and back: at first, to the right of all groups.
    front, back = np.zeros(gains.shape[1], np.int64), np.zeros(gains.shape[1], np.int64)
    for k in range(len(points)):
        if fold[k] < 0 or (fold[k] == 0 and k >= b):
            _add(front, gains[k], 1)
        if fold[k] > 0 or (fold[k] == 0 and k >= b):
            _add(back, gains[k], 1)
    found = end = 0
    while end < size:
        least_front = least_back = len(points)
        most_front = most_back = -1
        start = end
        while end == start or (end < size and turns[end] == 0):
            k = order[end]
            _add(front, gains[k], fold[k])
            _add(back, gains[k], -fold[k])
            if fold[k] > 0:
                least_front, most_front = min(least_front, k), max(most_front, k)
            else:
                least_back, most_back = min(least_back, k), max(most_back, k)
            end += 1
        if _kept(a, b, least_front, most_back):
            found = _emit(front, end, 1, found, work, out)
        if _kept(a, b, least_back, most_front):
            found = _emit(back, end, -1, found, work, out)
    return found


@numba.njit(cache=True, nogil=True)
def _emit(gain: Integers, end: int, side: int, found: int, work: Integers, out: Integers) -> int:
    """Write down one labelling, carrying limbs so that all but the first are in 0 to 2^LIMB - 1."""
    work[ENDS, found], work[SIDES, found] = end, side
    carried = 0
    for limb in range(len(gain) - 1, 0, -1):
        value = gain[limb] + carried
        carried = value >> LIMB
        out[found, limb] = value - (carried << LIMB)
    out[found, 0] = gain[0] + carried
    return found + 1


@numba.njit(cache=True, nogil=True)
def _add(total: Integers, gain: Integers, sign: int) -> None:
    for limb in range(len(total)):
        total[limb] += sign * gain[limb]


@numba.njit(cache=True, nogil=True)
def _compare(first: Integers, second: Integers) -> int:
    for limb in range(len(first)):
        if first[limb] != second[limb]:
            return 1 if first[limb] > second[limb] else -1
    return 0


@numba.njit(cache=True, nogil=True)
def sweep(
    points: Floats,
    gains: Integers,
    start: int,
    rough: Integers,
    counts: Integers,
    wanted: Integers,
    place: int,
    labels: Integers,
) -> tuple[Integers, int, int]:
    """Go through the labellings of fans: pivots from ``start`` on, one for each row of ``rough``.

    In the plane such a row holds all points, roughly ordered by folded angle.

    Count in ``counts`` how many have each gain, if it is long enough, counting from its end for
    negative ones. Write the labels into the rows of ``labels``, if there are any, of those with the
    wanted gain (of all, if none is wanted), from number ``place`` on; stop when it is full. Return
    the largest gain, how many reach it, and how many labellings there were. It is one function for
    all of this because it takes seconds to compile.
    """
    out = np.empty((2 * len(points), gains.shape[1]), np.int64)
    work = np.empty((6, 2 * len(points)), np.int64)
    best = np.zeros(gains.shape[1], np.int64)
    ties = seen = written = 0
    for a in range(start, start + len(rough)):
        for b in range(a, a + 1) if points.shape[1] == 2 else range(a + 1, len(points)):
            found = _candidates(points, gains, a, b, rough[a - start], work, out)
            seen += found
            for c in range(found):
                if len(counts):
                    counts[out[c, 0]] += 1
                better = _compare(out[c], best) if ties else 1
                if better > 0:
                    ties = 0
                    for limb in range(len(best)):
                        best[limb] = out[c, limb]
                ties += better >= 0
                if len(labels) and (len(wanted) == 0 or _compare(out[c], wanted) == 0):
                    if place <= 0:
                        _fill(labels[written], b, c, work)
                        written += 1
                        if written == len(labels):
                            return best, ties, seen
                    place -= 1
    return best, ties, seen


@numba.njit(cache=True, nogil=True)
def _fill(labels: Integers, b: int, c: int, work: Integers) -> None:
    """Write the labels of candidate number c of the fan that was sorted last."""
    order, fold, ends, sides = work[ORDER], work[FOLD], work[ENDS], work[SIDES]
    size = 0
    for k in range(len(labels)):
        labels[k] = fold[k] == 0 and k >= b
        size += fold[k] != 0
    for s in range(size):
        k = order[s]
        labels[k] = (fold[k] == sides[c]) == (s < ends[c])


@numba.njit(cache=True, nogil=True)
def side(normal: Floats, offset: float, row: Floats) -> int:
    """Return 1 if normal . row > offset for certain, 0 if below, -1 if rounding leaves it open."""
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
