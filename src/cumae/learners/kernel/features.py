"""Features of a table for a model of log odds: lines, curves, and random waves of a few columns.

Cells first become codes of one byte: which of at most 256 levels of its column a cell is in. Levels
come from a reference table. Every feature is then a small whole number that follows from the codes
of its own row, so that it is the same whatever rows stand beside it. Private rows play no part in
how levels and features are made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cumae.arrays import Floats, Integers
from cumae.codec import register_kind
from cumae.data import INDICATOR, Columns
from cumae.randomness import Source

Bytes = NDArray[np.uint8]
Small = NDArray[np.float32]  # whole numbers of at most 127, ready for matrix products

LEVELS = 256  # of a column of numbers
TOP = 127  # size of a feature at most, in whole numbers
WIDEST = 3.0  # standard deviations beyond which a value is pulled in
CURVES = 6  # cosines of the rank of a column
WAVES = 100  # of each group
WIDTHS = (0.6, 1.5)  # how fast waves go up and down, for each number of columns
SIZES = (2, 3)  # numbers of columns of a wave
TURN = 2.0**12  # whole numbers of a wave's weight that stand for one turn
RANK = 2**8  # whole numbers that stand for a rank of 1
SINE = (6.28128, -41.0955, 73.5891)  # sin(2 pi u) for u up to 1/4: of u, u^3 and u^5
HUGE = 1e150  # its square is a float
LEAST = 1e-12


@dataclass(frozen=True)
class Levels:
    """The levels of one column of numbers, by a reference.

    Parameters
    ----------
    cuts : array of float
        Where a level ends and the next one begins.
    lines : array of float
        The mean of each level in standard deviations from the mean of all, pulled in.
    ranks : array of float
        The mean rank of each level, between 0 and 1.
    centre, scale : float
        Mean and standard deviation of the column.
    """

    cuts: Floats
    lines: Floats
    ranks: Floats
    centre: float
    scale: float

    @classmethod
    def of(cls, column: Floats) -> Levels:
        """Make levels from reference values: one for each value, or at quantiles."""
        column = np.sort(np.clip(np.nan_to_num(column), -HUGE, HUGE))
        values = np.unique(column)
        if len(values) <= LEVELS:
            cuts = values[:-1] / 2 + values[1:] / 2
        else:
            firsts = np.unique(column[np.arange(1, LEVELS) * len(column) // LEVELS])
            places = np.searchsorted(values, firsts[firsts > column[0]])  # no level is empty
            # Half-way to the value below: a cell near a frequent value is in that value's level.
            cuts = values[places - 1] / 2 + values[places] / 2
        centre, spread = float(column.mean()), float(column.std())
        scale = spread if spread > 0 else 1.0
        code = np.searchsorted(cuts, column, side="right")
        counts = np.bincount(code, minlength=len(cuts) + 1)
        line = np.clip((column - centre) / scale, -WIDEST, WIDEST)
        # Between neighbouring floats there is no cut, and one of two levels is empty.
        lines = np.bincount(code, line, len(counts)) / np.maximum(counts, 1)
        ranks = (np.cumsum(counts) - counts / 2) / len(column)
        return cls(cuts, lines, ranks, centre, scale)

    def code(self, column: Floats) -> Bytes:
        """Return the level of each cell."""
        return np.searchsorted(self.cuts, column, side="right").astype(np.uint8)

    @property
    def shares(self) -> Floats:
        """The share of the reference in each level, which follows from the ranks."""
        below, found = 0.0, []
        for rank in self.ranks.tolist():
            found.append(2 * (rank - below))
            below += found[-1]
        return np.maximum(found, 0.0)

    @property
    def values(self) -> Floats:
        """A value inside each level: its mean, or its middle where values were pulled in."""
        cuts = self.cuts
        if not len(cuts):
            return np.array([self.centre])
        widths = np.diff(cuts) if len(cuts) > 1 else np.full(2, self.scale)
        ends = np.concatenate([[cuts[0] - widths[0]], cuts, [cuts[-1] + widths[-1]]])
        means = np.clip(self.centre + self.scale * self.lines, ends[:-1], ends[1:])
        middles = ends[:-1] / 2 + ends[1:] / 2
        found = np.where(np.abs(self.lines) < WIDEST, means, middles)
        digits = 9 - math.floor(math.log10(self.scale))
        return np.asarray(np.round(found, digits) + 0.0, dtype=np.float64)  # 0, not -1e-16


def additive_features(columns: Columns, curves: int) -> int:
    """Return how many features there are without waves, the constant included."""
    numbers = sum(bounds != INDICATOR for bounds in columns.bounds)
    return 1 + len(columns) + curves * numbers


class KernelFeatures:
    """Features in groups: lines, curves, and waves of two and of three columns.

    Parameters
    ----------
    levels : dict from int to Levels
        The levels of each encoded column of numbers. The others are marks of 0 and 1.
    width : int
        Number of encoded columns.
    curves : int
        Cosines of each column of numbers.
    waves : array of float
        Weights of the ranks and marks in each wave, one wave a column; whole numbers.
    shifts : array of float
        What is added to them; whole numbers.
    group_sizes : list of int
        Number of features in each group.

    Attributes
    ----------
    centres, scales : array of float
        Each whole feature minus its centre, times its scale, has mean 0 over the reference. With
        these scales the features of a group have a mean squared length of 1 together.
    """

    def __init__(
        self,
        levels: dict[int, Levels],
        width: int,
        curves: int,
        waves: Small,
        shifts: Small,
        group_sizes: list[int],
    ) -> None:
        self.levels, self.width, self.curves = levels, width, curves
        self.waves, self.shifts = waves, shifts
        self.group_sizes = group_sizes
        self.marks = np.array([p for p in range(width) if p not in levels], dtype=np.int64)
        self.numbers = np.array(sorted(levels), dtype=np.int64)
        self._prepare()

    @classmethod
    def of(
        cls, reference: Floats, columns: Columns, source: Source, *, curves: int, waves: int
    ) -> KernelFeatures:
        """Make features from a reference table.

        Parameters
        ----------
        reference : array of float
            Public or made-up encoded rows.
        columns : Columns
            They tell which columns are marks of 0 and 1.
        source : Source
            Where the coins of the waves come from.
        curves : int
            Cosines of each column of numbers; 0 for straight lines only.
        waves : int
            How many waves each group has; 0 for none.
        """
        levels = {
            place: Levels.of(reference[:, place])
            for place, bounds in enumerate(columns.bounds)
            if bounds != INDICATOR
        }
        weights, shifts = _draw_waves(columns, waves, source)
        sizes = [len(columns), curves * len(levels)]
        if waves and len(columns.columns) > 1:
            sizes += [waves] * (len(SIZES) * len(WIDTHS))
        features = cls(levels, len(columns), curves, weights, shifts, sizes)
        features._scale(features.whole(features.codes(reference)))
        return features

    def _prepare(self) -> None:
        """Make tables that turn codes into whole features."""
        self.n_features = sum(self.group_sizes)
        orders = np.arange(1, self.curves + 1)
        self._lines, self._curves, self._ranks = [], [], []
        for place in self.numbers:
            found = self.levels[place]
            self._lines.append(_whole(found.lines * (TOP / WIDEST)))
            self._curves.append(_whole(TOP * np.cos(math.pi * found.ranks[:, None] * orders)))
            self._ranks.append(_whole((found.ranks - 0.5) * math.sqrt(12.0) * RANK))

    def _scale(self, whole: Small) -> None:
        """Set centres and scales by the whole features of the reference."""
        table = whole.astype(np.float64)
        centres = table.mean(axis=0)
        shape = np.ones(self.n_features)
        if self.curves:
            start = self.group_sizes[0]
            orders = np.tile(np.arange(1, self.curves + 1), len(self.numbers))
            shape[start : start + len(orders)] = 1 / orders
        shape[: self.group_sizes[0]][self.numbers] = WIDEST
        spread = ((table - centres) ** 2).mean(axis=0) * shape**2
        scales, place = shape, 0
        for size in self.group_sizes:
            inside = slice(place, place + size)
            scales[inside] /= math.sqrt(max(float(spread[inside].sum()), LEAST))
            place += size
        self.centres, self.scales = centres, scales

    def codes(self, table: Floats) -> Bytes:
        """Return encoded rows as codes."""
        found = np.empty(table.shape, dtype=np.uint8)
        for place in self.numbers:
            found[:, place] = self.levels[place].code(table[:, place])
        found[:, self.marks] = table[:, self.marks] == 1
        return found

    def whole(self, codes: Bytes) -> Small:
        """Return the features of coded rows as whole numbers of at most ``TOP``."""
        found = np.empty((len(codes), self.n_features), dtype=np.float32)
        ranks = np.empty(codes.shape, dtype=np.float32) if self.waves.size else None
        marks = codes[:, self.marks]
        found[:, self.marks] = marks * np.float32(TOP)
        if ranks is not None:
            ranks[:, self.marks] = marks * np.float32(RANK)
        start = self.width
        for number, place in enumerate(self.numbers):
            code = codes[:, place]
            found[:, place] = self._lines[number][code]
            if self.curves:
                found[:, start : start + self.curves] = self._curves[number][code]
                start += self.curves
            if ranks is not None:
                ranks[:, place] = self._ranks[number][code]
        if ranks is not None:
            # Whole numbers below 2^24: the product is exact, whatever its order.
            angle = ranks @ self.waves
            angle += self.shifts
            found[:, start:] = cosines(angle)
        return found

    def column(self, place: int) -> tuple[Integers, Floats, Floats]:
        """Return what an encoded column says by itself, in each of its levels.

        Parameters
        ----------
        place : int
            Place of the column.

        Returns
        -------
        array of int
            Places of its line and curves among the features.
        array of float
            These features, as whole numbers, a row for each level.
        array of float
            The rank of each level, as a whole number.
        """
        if place not in self.levels:
            mark = np.array([0.0, 1.0])
            return np.array([place]), TOP * mark[:, None], RANK * mark
        number = int(np.searchsorted(self.numbers, place))
        start = self.width + number * self.curves
        places = np.append(place, np.arange(start, start + self.curves))
        whole = np.column_stack([self._lines[number], self._curves[number]])
        return places, whole.astype(np.float64), self._ranks[number].astype(np.float64)

    def alone(self, first: int, codes: Bytes) -> tuple[Integers, Floats, Floats]:
        """Return what neighbouring encoded columns add by themselves.

        Parameters
        ----------
        first : int
            Place of the first of the columns.
        codes : array of int
            Codes of these columns only.

        Returns
        -------
        array of int
            Places of their lines and curves among the features.
        array of float
            These lines and curves, as whole numbers.
        array of float
            What the columns add to the angle of each wave, in radians.
        """
        places, found, ranks = [], [], np.zeros(codes.shape)
        for nearby, code in enumerate(codes.T):
            own, whole, rank = self.column(first + nearby)
            places.append(own)
            found.append(whole[code])
            ranks[:, nearby] = rank[code]
        turns = ranks @ self.waves[first : first + codes.shape[1]] / (TURN * RANK)
        return np.concatenate(places), np.hstack(found), 2 * math.pi * turns

    @property
    def shift_angles(self) -> Floats:
        """What is added to the angle of each wave, in radians."""
        return self.shifts.astype(np.float64) * (2 * math.pi / (TURN * RANK))

    @property
    def wave_places(self) -> slice:
        """Places of the waves among the features."""
        return slice(self.n_features - self.waves.shape[1], self.n_features)

    @property
    def groups(self) -> Integers:
        """The group of each feature, the constant first, which is group 0."""
        return np.repeat(np.arange(len(self.group_sizes) + 1), [1, *self.group_sizes])

    def rows(self, codes: Bytes) -> Floats:
        """Return centred and scaled features, the constant first."""
        features = (self.whole(codes) - self.centres) * self.scales
        return np.hstack([np.ones((len(codes), 1)), features])

    def for_whole(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return weights for whole features and constants, given columns for scaled ones."""
        inner = weights[1:] * self.scales[:, None]
        return inner, weights[0] - self.centres @ inner

    def slopes(self, weights: Floats) -> Floats:
        """Return the constant, and the slopes of the lines in units of the columns."""
        inner = weights[1 : 1 + self.width] * self.scales[: self.width]
        constant = weights[0] - self.centres[: self.width] @ inner
        slopes = inner * TOP
        for place, found in self.levels.items():
            slopes[place] = inner[place] * TOP / (WIDEST * found.scale)
            constant -= slopes[place] * found.centre
        return np.append(constant, slopes)

    def __len__(self) -> int:
        """Return the number of features, the constant included."""
        return 1 + self.n_features

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "levels": [
                [place, x.cuts.tolist(), x.lines.tolist(), x.ranks.tolist(), x.centre, x.scale]
                for place, x in self.levels.items()
            ],
            "width": self.width,
            "curves": self.curves,
            "waves": [
                [[int(place), int(column[place])] for place in np.flatnonzero(column)]
                for column in self.waves.T
            ],
            "shifts": self.shifts.tolist(),
            "groups": self.group_sizes,
            "centres": self.centres.tolist(),
            "scales": self.scales.tolist(),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> KernelFeatures:
        """Rebuild what ``to_dict`` returned."""
        levels = {
            place: Levels(np.array(cuts), np.array(lines), np.array(ranks), centre, scale)
            for place, cuts, lines, ranks, centre, scale in plain["levels"]
        }
        waves = np.zeros((plain["width"], len(plain["waves"])), dtype=np.float32)
        for number, weights in enumerate(plain["waves"]):
            for place, weight in weights:
                waves[place, number] = weight
        shifts = np.array(plain["shifts"], dtype=np.float32)
        found = cls(levels, plain["width"], plain["curves"], waves, shifts, plain["groups"])
        found.centres, found.scales = np.array(plain["centres"]), np.array(plain["scales"])
        return found


def _whole(numbers: Floats) -> Small:
    return np.rint(numbers).astype(np.float32)


def cosines(angle: Small) -> Small:
    """Return cosines of whole angles, as whole numbers of at most ``TOP``; the angles are lost.

    A polynomial by plain additions and multiplications: they give the same result in any machine
    and in any place of an array, which a library's cosine does not promise.
    """
    angle *= np.float32(1 / (TURN * RANK))  # in turns
    angle -= np.rint(angle)
    np.abs(angle, out=angle)
    np.subtract(np.float32(0.25), angle, out=angle)  # the sine of it is the cosine
    square = angle * angle
    found = square * np.float32(SINE[2])
    found += np.float32(SINE[1])
    found *= square
    found += np.float32(SINE[0])
    found *= angle
    found *= np.float32(TOP)
    np.rint(found, out=found)
    return np.clip(found, -TOP, TOP, out=found)


def _draw_waves(columns: Columns, count: int, source: Source) -> tuple[Small, Small]:
    """Draw waves of pairs and triples of columns; no row is looked at.

    A column of categories has one weight for each of its marks.
    """
    places, start = [], 0
    for column in columns.columns:
        places.append(slice(start, start + len(column.encoded)))
        start += len(column.encoded)
    total = len(places)
    if not count or total < 2:
        return np.zeros((start, 0), dtype=np.float32), np.zeros(0, dtype=np.float32)
    blocks, shifts = [], []
    for size in (min(size, total) for size in SIZES):
        for width in WIDTHS:
            order = np.argsort(even_numbers(count * total, source).reshape(count, total), axis=1)
            chosen = np.zeros((start, count), dtype=bool)
            for number, picked in enumerate(order[:, :size]):
                for place in picked:
                    chosen[places[place], number] = True
            normal = ndtri(even_numbers(start * count, source)).reshape(start, count)
            turns = normal * (width * math.sqrt(2 / size) / (2 * math.pi))
            blocks.append(np.where(chosen, np.clip(np.rint(turns * TURN), -TURN, TURN), 0.0))
            shifts.append(np.floor(even_numbers(count, source) * TURN * RANK))
    return np.hstack(blocks).astype(np.float32), np.concatenate(shifts).astype(np.float32)


def even_numbers(count: int, source: Source) -> Floats:
    """Return numbers that lie evenly between 0 and 1."""
    return np.asarray((source.words(count) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


register_kind("kernel features", KernelFeatures)
