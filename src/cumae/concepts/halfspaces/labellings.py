"""All labellings of some points by halfspaces, with what each of them gains."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.concepts.columns import middle
from cumae.concepts.halfspaces.hypothesis import Halfspace
from cumae.concepts.kernels.gaps import gains_outside, separate
from cumae.concepts.kernels.halfspaces import LIMB, sweep
from cumae.concepts.kernels.halfspaces_exact import (
    exact_rows,
    gap_along,
    reference_labels,
    shortest_between,
    spanning_columns,
    without_fractions,
)

_NONE = np.zeros(0, dtype=np.int64)
_NO_LABELS = np.zeros((0, 0), dtype=np.int64)
BLOCK = 64  # pivots swept at a time in the plane
SMALLEST = 2.0**-300  # relative to the column: the kernel's products of three stay exact


class Labellings:
    """All labellings of some points, and what each gains on rows by its labels 1.

    It is a list in two parts: cuts through the lexicographic order of the points (only the first
    and the last of them, which give all points one label, if the points span a plane), and the
    labellings that fans find. Gains come from one kernel sweep as long as all rows are points.
    """

    def __init__(self, points: Floats, rows: Floats, gains: NDArray[Any]) -> None:
        owner, distinct = _distinct(np.concatenate([points, rows]) + 0.0)  # no -0.0
        among = np.zeros(len(distinct), dtype=bool)
        among[owner[: len(points)]] = True
        owner = owner[len(points) :]
        inside = among[owner]
        self.points: Floats = np.ascontiguousarray(distinct[among])
        self.gains = np.zeros(len(self.points), dtype=gains.dtype)
        np.add.at(self.gains, (np.cumsum(among) - 1)[owner[inside]], gains[inside])
        self.rows, self.row_gains = rows[~inside], gains[~inside]
        spanning = spanning_columns(self.points)
        self.rank = len(spanning)
        self.view = self.points[:, spanning]
        self.scaled = _scale(self.view)
        self.n_cuts = max(1, 2 * len(self.points) if self.rank != 2 else 2)
        # Fans are swept in blocks of pivots, so that finding one again takes one block only. If all
        # labels are written out, a block must not be large.
        self.width = BLOCK if self.rank == 2 and len(self.rows) == 0 else 1
        self.starts = range(0, len(self.points) if self.rank > 1 else 0, self.width)
        self.ties: Callable[[int], list[int]] = lambda _: []

    def count(self) -> int:
        """Return the number of labellings."""
        if self.rank > 1 and self.scaled is None:
            return self.n_cuts + sum(1 for _ in reference_labels(self.view))
        return self.n_cuts + sum(self._sweep(start, self._no_gains)[2] for start in self.starts)

    def histogram(self, base: int, most: int) -> Integers:
        """Count the labellings that reach each score from 0 to ``most``, a gain plus ``base``."""
        total = np.zeros(most + 1, dtype=np.int64)
        blocks = []
        # Negative gains are counted from the end; the last step puts them first.
        np.add.at(total, self.cut_gains, 1)
        for block in self.starts if self.listed is None else self.listed:
            counts = np.zeros(most + 1, dtype=np.int64)
            if isinstance(block, int):
                self._sweep(block, self.gains[:, None], counts=counts)
            else:
                np.add.at(counts, block, 1)
            reached = np.flatnonzero(counts)
            blocks.append(dict(zip(reached.tolist(), counts[reached].tolist(), strict=True)))
            total += counts
        self.ties = lambda gain: [counts.get(gain % (most + 1), 0) for counts in blocks]
        return np.roll(total, base)

    def best(self) -> tuple[int, int]:
        """Return the largest gain and how many labellings reach it."""
        found = [(int(self.cut_gains.max()), int(np.sum(self.cut_gains == self.cut_gains.max())))]
        if self.listed is None:
            limbs = _limbs(self.gains, self.gains)
            swept = [self._sweep(start, limbs) for start in self.starts]
            found += [(_whole(most), ties) for most, ties, _ in swept]
        else:
            found += [
                (int(max(g, default=0)), int(np.sum(g == max(g, default=0)))) for g in self.listed
            ]
        self.ties = lambda gain: [ties if most == gain else 0 for most, ties in found[1:]]
        most = max(gain for gain, ties in found if ties)
        return most, sum(ties for gain, ties in found if gain == most)

    def find(self, gain: int, place: int) -> Halfspace:
        """Return number ``place`` of those with that gain, after ``histogram`` or ``best``."""
        cuts = np.flatnonzero(self.cut_gains == gain)
        if place < len(cuts):
            return self.hypothesis(self.cut_labels(int(cuts[place])))
        place -= len(cuts)
        upto = np.cumsum(self.ties(gain))
        block = int(np.searchsorted(upto, place, side="right"))
        place -= int(upto[block - 1]) if block else 0
        return self.hypothesis(self._labels(block, gain, place))

    def _labels(self, block: int, gain: int, place: int) -> Integers:
        """Return the labels of number ``place`` of those in a block of fans with that gain."""
        labels = np.empty((1, len(self.points)), dtype=np.int64)
        if self.listed is None:
            limbs = _limbs(self.gains, self.gains)
            wanted = _limbs(np.array([gain], dtype=self.gains.dtype), self.gains)[0]
            self._sweep(self.starts[block], limbs, wanted=wanted, place=place, labels=labels)
            return np.asarray(labels[0])
        number = int(np.flatnonzero(self.listed[block] == gain)[place])
        if self.scaled is None:
            return next(itertools.islice(reference_labels(self.view), number, None))
        self._sweep(self.starts[block], self._no_gains, place=number, labels=labels)
        return np.asarray(labels[0])

    def hypothesis(self, labels: Integers) -> Halfspace:
        """Return the middle of the widest gap between the two labels."""
        columns = self.points.shape[1]
        if len(labels) == 0 or labels.min() == labels.max():
            return Halfspace((0.0,) * columns, -1.0 if labels.any() else 1.0)
        if columns == 1:
            sign = 1.0 if labels[-1] else -1.0
            ends = np.sort(sign * self.points[:, 0])
            k = len(labels) - int(labels.sum())
            return Halfspace((sign,), float(middle(ends[k - 1 : k], ends[k : k + 1])[0]))
        with np.errstate(all="ignore"):
            normal, offset, holds = separate(self.points, labels)
        if holds:
            return Halfspace(tuple(normal.tolist()), float(offset))
        return widest_gap(self.points, labels)

    def cut_labels(self, place: int) -> Integers:
        """Return the labels of cut number ``place``."""
        inner = self.n_cuts // 2 - 1
        if place in (0, self.n_cuts - 1):
            return np.full(len(self.points), int(place > 0))
        above = place <= inner
        return np.asarray(
            (np.arange(len(self.points)) >= (place if above else place - inner)) == above,
            dtype=np.int64,
        )

    @functools.cached_property
    def cut_gains(self) -> NDArray[Any]:
        upto = np.cumsum(self.gains)
        zero = np.zeros(1, dtype=upto.dtype)
        if self.rank == 2 or len(upto) == 0:
            gains = np.concatenate([zero, upto[-1:]])
        else:
            gains = np.concatenate([zero, upto[-1] - upto[:-1], upto])
        if len(self.rows) == 0:
            return gains
        if self.points.shape[1] == 1:
            return np.asarray(gains + self._column_gains())
        cuts = [self._outside(self.cut_labels(k)[None]) for k in range(self.n_cuts)]
        return np.asarray(gains + np.concatenate(cuts))

    def _column_gains(self) -> NDArray[Any]:
        """Gains of the cuts through a single column on rows beside the points."""
        order = np.argsort(self.rows[:, 0], kind="stable")
        column, points = self.rows[order, 0], self.points[:, 0]
        upto = np.concatenate([[0], np.cumsum(self.row_gains[order])])
        above = np.searchsorted(column, middle(points[:-1], points[1:]), side="left")
        below = np.searchsorted(column, -middle(-points[1:], -points[:-1]), side="right")
        last = [upto[-1]] if len(points) else []
        return np.concatenate([[0], upto[-1] - upto[above], upto[below], last]).astype(np.int64)

    @functools.cached_property
    def listed(self) -> list[NDArray[Any]] | None:
        """Gains of all labellings in each block of fans; None if sweeps are enough."""
        if self.rank > 1 and self.scaled is None:
            found = [self._gain(labels[None]) for labels in reference_labels(self.view)]
            return [np.concatenate(found)]
        if len(self.rows) == 0:
            return None
        return [self._gain(self._all_labels(start)) for start in self.starts]

    def _all_labels(self, start: int) -> Integers:
        size = self._sweep(start, self._no_gains)[2]
        labels = np.empty((size, len(self.points)), dtype=np.int64)
        self._sweep(start, self._no_gains, labels=labels)
        return labels

    def _gain(self, labellings: Integers) -> NDArray[Any]:
        return labellings @ self.gains + self._outside(labellings)

    def _outside(self, labellings: Integers) -> Integers:
        """Return what the hypotheses of labellings gain on rows beside the points."""
        if len(self.rows) == 0:
            return np.zeros(len(labellings), dtype=np.int64)
        gains, sure = gains_outside(self.points, labellings, self.rows, self.row_gains)
        for k in np.flatnonzero(~sure):
            rule = self.hypothesis(labellings[k])
            gains[k] = rule.labels(self.rows) @ self.row_gains
        return np.asarray(gains)

    @property
    def _no_gains(self) -> Integers:
        return np.zeros((len(self.points), 1), dtype=np.int64)

    def _sweep(
        self,
        start: int,
        gains: Integers,
        counts: Integers = _NONE,
        wanted: Integers = _NONE,
        place: int = 0,
        labels: Integers = _NO_LABELS,
    ) -> tuple[Integers, int, int]:
        assert self.scaled is not None  # noqa: S101 - who calls has asked
        pivots = slice(start, min(start + self.width, len(self.points)))
        rough = _rough_order(self.scaled, pivots)
        found: tuple[Integers, int, int] = sweep(
            self.scaled, gains, start, rough, counts, wanted, place, labels
        )
        return found


def _rough_order(points: Floats, pivots: slice) -> Integers:
    """Order the points of a plane by slope as seen from pivots, up to rounding."""
    if points.shape[1] > 2:
        return np.empty((pivots.stop - pivots.start, 0), dtype=np.int64)
    x, y = points.T
    along = x - x[pivots, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = (y - y[pivots, None]) / along
    slopes[along == 0] = np.inf
    return np.argsort(slopes, axis=1)


def _whole(limbs: Integers) -> int:
    return sum(int(limb) << LIMB * place for place, limb in enumerate(limbs[::-1]))


def _limbs(values: NDArray[Any], all_values: NDArray[Any]) -> Integers:
    """Return whole numbers as rows of 64-bit limbs, the highest first, enough for sums of them."""
    if values.dtype != object:
        return values.astype(np.int64)[:, None]
    bits = max((abs(int(value)).bit_length() for value in all_values), default=0)
    shifts = range(LIMB * (bits // LIMB), -1, -LIMB)
    rows = [[int(value) >> s & (1 << LIMB) - 1 for s in shifts] for value in values]
    limbs = np.array(rows, dtype=np.int64).reshape(len(values), len(shifts))
    limbs[:, 0] = [int(value) >> shifts[0] for value in values]
    return limbs


def _distinct(table: Floats) -> tuple[Integers, Floats]:
    """Return which distinct row each row is, and the distinct rows in lexicographic order."""
    order = np.lexsort(table.T[::-1])
    new = np.ones(len(table), dtype=bool)
    new[1:] = np.any(table[order[1:]] != table[order[:-1]], axis=1)
    owner = np.empty(len(table), dtype=np.int64)
    owner[order] = np.cumsum(new) - 1
    return owner, table[order[new]]


def _scale(points: Floats) -> Floats | None:
    """Scale columns by powers of two to at most 1; None if a column is too wide for the kernel."""
    _, powers = np.frexp(np.abs(points).max(axis=0, initial=0.0))
    with np.errstate(under="ignore"):
        scaled = np.ldexp(points, -powers)
        fits = (points == 0) | (np.abs(scaled) >= SMALLEST)
    return np.ascontiguousarray(scaled) if fits.all() else None


def widest_gap(points: Floats, labels: Integers) -> Halfspace:
    """Return the middle of the widest gap, found exactly; in floats, if they are fine enough."""
    rows, scale = exact_rows(points)
    ones = [row for row, label in zip(rows, labels, strict=True) if label]
    zeros = [row for row, label in zip(rows, labels, strict=True) if not label]
    normal = shortest_between(ones, zeros)
    largest = max(abs(value) for value in normal)
    rounded = [value / largest for value in normal]
    low, high = gap_along([Fraction(value) for value in rounded], ones, zeros)
    if high < low and abs(low + high) < scale * 2**1024:
        offset = float((low + high) / (2 * scale))
        if high < Fraction(offset) * scale < low:
            return Halfspace(tuple(rounded), offset)
    low, high = gap_along(normal, ones, zeros)
    *whole, last = without_fractions([*normal, Fraction(low + high, 2 * scale)])
    return Halfspace(tuple(whole), last)
