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

from cumae.arrays import Floats, Integers
from cumae.concepts.kernels.turns import turn_2, turn_3, turn_of

ORDER, SPARE, FOLD, TURNS, ENDS, SIDES = range(6)  # rows of the kernel's working memory
LIMB = 40  # bits of a limb: a sum over 2^22 points stays below 2^62


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
        fold[k] = turn_3(points, a, b, first, k)
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
    """Return 1 if m has the larger folded angle, 0 if it has the same, -1 if the smaller.

    Parameters
    ----------
    points : array of float
        The points.
    a, b : int
        The pivot twice, or the two points on the axis.
    fold : array of int
        On which side each point is seen: 1 in front, -1 behind, 0 on the axis.
    k, m : int
        The points that are compared.
    """
    return int(fold[k] * fold[m] * turn_of(points, a, b, k, m))


@numba.njit(cache=True, nogil=True)
def _sort(points: Floats, a: int, b: int, size: int, work: Integers) -> None:
    """Sort by folded angle with exact turns, merging runs that are in order already.

    In the end ``turns`` tells for each point whether it is ahead of the one before: 0 says that
    both are in one group.

    Parameters
    ----------
    points : array of float
        The points.
    a, b : int
        The pivot twice, or the two points on the axis.
    size : int
        How many points are sorted.
    work : array of int
        Working memory, whose lines ``ORDER`` and ``TURNS`` hold the result.
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
    """Write the gain of each labelling of a fan, in limbs; return how many there are.

    Parameters
    ----------
    points : array of float
        The points.
    gains : array of int
        What label 1 gains over label 0 at each point, in limbs.
    a, b : int
        The pivot twice, or the two points on the axis.
    rough : array of int
        In the plane, all points roughly ordered by folded angle.
    work : array of int
        Working memory, whose lines ``ENDS`` and ``SIDES`` tell the labellings.
    out : array of int
        Room for the gains, one line for each labelling.
    """
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
    """Write down one labelling, carrying limbs so that all but the first are in 0 to 2^LIMB - 1.

    Parameters
    ----------
    gain : array of int
        The gain of the labelling, in limbs that may overflow.
    end : int
        How many points of the sorted list come before its boundary.
    side : {1, -1}
        Whether those of them that are in front, or those behind, have label 1.
    found : int
        How many labellings were written before.
    work, out : arrays of int
        As in ``_candidates``.
    """
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
    """Go through the labellings of fans: those of some pivots, one after the other.

    It counts how many labellings have each gain, and writes down some of them. It returns the
    largest gain, how many labellings reach it, and how many there were. It is one function for all
    of this because it takes seconds to compile.

    Parameters
    ----------
    points : array of float
        The points, in lexicographic order.
    gains : array of int
        What label 1 gains over label 0 at each point, in limbs: one line a point.
    start : int
        The first pivot.
    rough : array of int
        One line for each pivot. In the plane it lists all points, roughly ordered by folded
        angle.
    counts : array of int
        How many labellings have each gain; it is added to, unless it is empty. Negative
        gains count from its end.
    wanted : array of int
        The gain, in limbs, of the labellings to write down; empty for all of them.
    place : int
        The number of the first of these that is written down.
    labels : array of int
        Room for labellings, one a line. The sweep ends when it is full, unless it is empty.
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
