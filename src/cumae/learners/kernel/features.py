"""Features of a table for a model of log odds: lines, curves, and random waves of a few columns.

Cells first become codes of one byte: which of at most 256 levels of its column a cell is in. Levels
come from a reference table. Every feature is then a small whole number that follows from the codes
of its own row, so that it is the same beside any other rows. Private rows play no part in
how levels and features are made.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from cumae.arrays import Floats, Integers
from cumae.codec import register_kind
from cumae.data import INDICATOR, Columns
from cumae.learners.kernel.levels import WIDEST, Bytes, Levels
from cumae.randomness import Source

Small = NDArray[np.float32]  # whole numbers of at most 127, ready for matrix products

TOP = 127  # size of a feature at most, in whole numbers
CURVES = 6  # cosines of the rank of a column
WAVES = 100  # of each group
WIDTHS = (0.6, 1.5)  # how fast waves go up and down, for each number of columns
SIZES = (2, 3)  # numbers of columns of a wave
TURN = 2.0**12  # whole numbers of a wave's weight that stand for one turn
RANK = 2**8  # whole numbers that stand for a rank of 1
SINE = (6.28128, -41.0955, 73.5891)  # sin(2 pi u) for u up to 1/4: of u, u^3 and u^5
SMALLEST_SPREAD = 1e-12


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
        Cosines of each column of numbers that has more than two levels.
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
        # Columns of two levels are marks, too.
        numbers = [place for place in sorted(levels) if not levels[place].is_mark]
        self.marks = np.array([p for p in range(width) if p not in numbers], dtype=np.int64)
        self.numbers = np.array(numbers, dtype=np.int64)
        self._prepare()

    @classmethod
    def of(
        cls,
        reference: Floats,
        columns: Columns,
        source: Source,
        *,
        curves: int,
        waves: int,
        detail: float = 0.0,
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
        detail : float from 0 to 1
            How much rows tell about single values; with 0 none of them has a mark.
        """
        levels = {
            place: Levels.of(reference[:, place], detail)
            for place, bounds in enumerate(columns.bounds)
            if bounds != INDICATOR
        }
        weights, shifts = _draw_waves(columns, waves, source)
        several = [found for found in levels.values() if not found.is_mark]
        spots = sum(len(found.spots) for found in several) if curves else 0
        sizes = [len(columns), curves * len(several), spots]
        if waves and len(columns.columns) > 1:
            sizes += [waves] * (len(SIZES) * len(WIDTHS))
        features = cls(levels, len(columns), curves, weights, shifts, sizes)
        features._scale(features.whole(features.codes(reference)))
        return features

    def with_marks(self, most: int) -> KernelFeatures:
        """Return the same features with so many marks of levels at most, the most frequent ones.

        Parameters
        ----------
        most : int
            How many there may be.
        """
        if self.group_sizes[2] <= most:
            return self
        several = [self.levels[place] for place in self.numbers]
        shares = np.concatenate([found.shares[found.spots] for found in several])
        kept = np.zeros(len(shares), dtype=np.bool_)
        kept[np.argsort(-shares, kind="stable")[:most]] = True
        chosen = iter(np.split(kept, np.cumsum([len(found.spots) for found in several])[:-1]))
        levels = {
            place: found if found.is_mark else replace(found, spots=found.spots[next(chosen)])
            for place, found in sorted(self.levels.items())
        }
        sizes = [*self.group_sizes[:2], most, *self.group_sizes[3:]]
        features = KernelFeatures(levels, self.width, self.curves, self.waves, self.shifts, sizes)
        begin = sum(self.group_sizes[:2])
        gone = begin + np.flatnonzero(~kept)
        features.centres = np.delete(self.centres, gone)
        features.scales = np.delete(self.scales, gone)
        return features

    def _prepare(self) -> None:
        """Make tables that turn codes into whole features."""
        self.n_features = sum(self.group_sizes)
        self._lines, self._ranks, self._more = [], [], []
        curve, spot = np.add.accumulate(self.group_sizes[:2])
        orders = np.arange(1, self.curves + 1)
        for place in self.numbers:
            found = self.levels[place]
            self._lines.append(_whole(found.lines * (TOP / WIDEST)))
            self._ranks.append(_whole((found.ranks - 0.5) * math.sqrt(12.0) * RANK))
            cosine = _whole(TOP * np.cos(math.pi * found.ranks[:, None] * orders))
            spots = found.spots if self.group_sizes[2] else found.spots[:0]
            marks = _whole(TOP * (np.arange(len(found.lines))[:, None] == spots))
            self._more.append(((curve, cosine), (spot, marks)))
            curve, spot = curve + self.curves, spot + len(spots)

    def __getstate__(self) -> dict[str, Any]:
        """Return what workers get: whole numbers in few bytes."""
        more = [[(start, packed(table)) for start, table in one] for one in self._more]
        small = {"_lines": list(map(packed, self._lines)), "_ranks": list(map(packed, self._ranks))}
        return self.__dict__ | small | {"_more": more, "waves": packed(self.waves)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.waves = unpacked(self.waves)
        self._lines, self._ranks = (
            list(map(unpacked, self._lines)),
            list(map(unpacked, self._ranks)),
        )
        more: list[Any] = [[(start, unpacked(table)) for start, table in one] for one in self._more]
        self._more = more

    def _scale(self, whole: Small) -> None:
        """Set centres and scales by the whole features of the reference."""
        table = whole.astype(np.float64)
        centres = table.mean(axis=0)
        shape = np.ones(self.n_features)
        start, end = np.add.accumulate(self.group_sizes[:2])
        shape[start:end] = 1 / np.tile(np.arange(1, self.curves + 1), len(self.numbers))
        shape[: self.group_sizes[0]][self.numbers] = WIDEST
        spread = ((table - centres) ** 2).mean(axis=0) * shape**2
        scales, place = shape, 0
        for size in self.group_sizes:
            inside = slice(place, place + size)
            scales[inside] /= math.sqrt(max(float(spread[inside].sum()), SMALLEST_SPREAD))
            place += size
        self.centres, self.scales = centres, scales

    def codes(self, table: Floats) -> Bytes:
        """Return encoded rows as codes."""
        found = np.empty(table.shape, dtype=np.uint8)
        for place in range(self.width):
            if place in self.levels:
                found[:, place] = self.levels[place].code(table[:, place])
            else:
                found[:, place] = table[:, place] == 1
        return found

    def code_rows(self, table: Floats, *rest: Any) -> tuple[Any, ...]:
        """Return encoded rows as codes, and what stands beside them as it is."""
        return (self.codes(table), *rest)

    def whole(self, codes: Bytes) -> Small:
        """Return the features of coded rows as whole numbers of at most ``TOP``."""
        found = np.empty((len(codes), self.n_features), dtype=np.float32)
        ranks = np.empty(codes.shape, dtype=np.float32) if self.waves.size else None
        marks = codes[:, self.marks]
        found[:, self.marks] = marks * np.float32(TOP)
        if ranks is not None:
            ranks[:, self.marks] = marks * np.float32(RANK)
        for number, place in enumerate(self.numbers):
            code = codes[:, place]
            found[:, place] = self._lines[number][code]
            for start, table in self._more[number]:
                found[:, start : start + table.shape[1]] = table[code]
            if ranks is not None:
                ranks[:, place] = self._ranks[number][code]
        if ranks is not None:
            # Whole numbers below 2^24: the product is exact, whatever its order.
            angle = ranks @ self.waves
            angle += self.shifts
            found[:, self.wave_places] = cosines(angle)
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
            Places of its line, curves and marks of levels among the features.
        array of float
            These features, as whole numbers, a row for each level.
        array of float
            The rank of each level, as a whole number.
        """
        if place not in self.numbers:
            mark = np.array([0.0, 1.0])
            return np.array([place]), TOP * mark[:, None], RANK * mark
        number = int(np.searchsorted(self.numbers, place))
        more = self._more[number]
        parts = [np.arange(start, start + table.shape[1]) for start, table in more]
        whole = np.column_stack([self._lines[number], *(table for _, table in more)])
        places = np.concatenate([[place], *parts])
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
        """The angle that is added to each wave, in radians."""
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
            if found.is_mark:
                low, high = found.ends
                slopes[place] /= high - low
                constant -= slopes[place] * low
            else:
                slopes[place] = inner[place] * TOP / (WIDEST * found.scale)
                constant -= slopes[place] * found.centre
        return np.append(constant, slopes)

    def __len__(self) -> int:
        """Return the number of features, the constant included."""
        return 1 + self.n_features

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "levels": [[place, *levels.to_list()] for place, levels in self.levels.items()],
            "width": self.width,
            "curves": self.curves,
            "waves": [
                [[int(place), int(column[place])] for place in np.flatnonzero(column)]
                for column in self.waves.T
            ],
            "shifts": self.shifts.tolist(),
            "groups": [*self.group_sizes[:2], *self.group_sizes[3:]],
            **({"marks": self.group_sizes[2]} if self.group_sizes[2] else {}),
            "centres": self.centres.tolist(),
            "scales": self.scales.tolist(),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> KernelFeatures:
        """Rebuild what ``to_dict`` returned."""
        levels = {place: Levels.from_list(rest) for place, *rest in plain["levels"]}
        waves = np.zeros((plain["width"], len(plain["waves"])), dtype=np.float32)
        for number, weights in enumerate(plain["waves"]):
            for place, weight in weights:
                waves[place, number] = weight
        shifts = np.array(plain["shifts"], dtype=np.float32)
        groups = [*plain["groups"][:2], plain.get("marks", 0), *plain["groups"][2:]]
        found = cls(levels, plain["width"], plain["curves"], waves, shifts, groups)
        found.centres, found.scales = np.array(plain["centres"]), np.array(plain["scales"])
        return found


def packed(numbers: Small) -> NDArray[Any]:
    """Return whole numbers in as few bytes as hold them; what is not whole stays as it is."""
    for kind in (np.int8, np.int16):
        with np.errstate(all="ignore"):
            found = numbers.astype(kind)
        if np.array_equal(found, numbers):
            return found
    return numbers


def unpacked(numbers: NDArray[Any]) -> Small:
    """Return what ``packed`` was given."""
    return numbers.astype(np.float32)


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
