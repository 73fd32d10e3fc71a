"""Features of a table for a model of log odds: lines, bins, and random waves of a few columns.

All of them are made from a reference table and coins; private rows play no part. Each number is
computed from its own row by the same operations, and then rounded to a whole number, so that it is
the same whatever rows stand beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from cumae.arrays import Floats, Integers
from cumae.data import INDICATOR, Columns
from cumae.randomness import Source
from cumae.storage import KINDS

UNIT = 2.0**12  # whole numbers that stand for 1
LARGEST = 2**15  # size of a whole number at most
WIDEST = 3.0  # standard deviations beyond which a value is pulled in
FEW_VALUES = 24  # up to so many values, each has a bin
BINS = 16  # of a column with more values
WAVES = 100  # of each group
WIDTHS = (0.6, 1.5)  # how fast waves go up and down, for each number of columns
SIZES = (2, 3)  # numbers of columns of a wave
MOST_FEATURES = 2**13  # so that sums of whole products over them are exact
HUGE = 1e150  # its square is a float
LEAST = 1e-12


@dataclass(frozen=True)
class StraightLine:
    """A column as a straight line: (value - centre) / scale, pulled in."""

    place: int
    centre: float
    scale: float

    def of(self, column: Floats) -> Floats:
        inside = np.clip(column, -HUGE, HUGE)
        return np.clip((inside - self.centre) / self.scale, -WIDEST, WIDEST)


@dataclass(frozen=True)
class Waves:
    """Cosines of weighted sums of a few columns, as one group of features.

    Parameters
    ----------
    places : array of int
        The columns of each wave, one wave a row.
    weights : array of float
        Their weights.
    shifts : array of float
        What is added before the cosine is taken.
    """

    places: Integers
    weights: Floats
    shifts: Floats

    def of(self, ranks: Floats) -> Floats:
        angle = np.broadcast_to(self.shifts, (len(ranks), len(self.shifts))).copy()
        for part in range(self.places.shape[1]):  # in this order for every row
            angle += ranks[:, self.places[:, part]] * self.weights[:, part]
        return np.cos(angle)


def most_features(columns: Columns, waves: int) -> int:
    """Return how many features there can be, whatever the reference is."""
    numeric = sum(bounds != INDICATOR for bounds in columns.bounds)
    return 1 + len(columns) + (FEW_VALUES + 1) * numeric + len(SIZES) * len(WIDTHS) * waves


class KernelFeatures:
    """Features in groups, each centred and scaled by a reference table.

    Parameters
    ----------
    lines : sequence of StraightLine
        One for each column.
    cuts : dict from int to array of float
        Cuts between the bins of columns that have some.
    ranks : dict from int to array of float
        Ordered reference values of columns whose ranks are used.
    waves : sequence of Waves
        Groups of waves.
    centres, scales : array of float
        What is taken from each feature, and what it is multiplied with.
    groups : array of int
        The group of each feature: 0 is the constant, 1 lines, 2 bins, and then waves.
    """

    def __init__(
        self,
        lines: Sequence[StraightLine],
        cuts: dict[int, Floats],
        ranks: dict[int, Floats],
        waves: Sequence[Waves],
        centres: Floats,
        scales: Floats,
        groups: Integers,
    ) -> None:
        self.lines, self.cuts, self.ranks, self.waves = list(lines), cuts, ranks, list(waves)
        self.centres, self.scales, self.groups = centres, scales, groups

    @classmethod
    def of(
        cls, reference: Floats, columns: Columns, source: Source, *, bins: bool, waves: int
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
        bins : bool
            Whether columns of numbers have bins.
        waves : int
            How many waves each group has; 0 for none.
        """
        numeric = [place for place, bounds in enumerate(columns.bounds) if bounds != INDICATOR]
        lines = [
            _line(place, reference[:, place], place in numeric) for place in range(len(columns))
        ]
        cuts = {place: _cuts(reference[:, place]) for place in numeric} if bins else {}
        cuts = {place: found for place, found in cuts.items() if len(found) > 1}
        ranks: dict[int, Floats] = {}
        found: list[Waves] = []
        if waves and len(columns) > 1:
            ranks = {place: np.sort(reference[:, place]) for place in numeric}
            found = _draw_waves(len(columns), waves, source)
        features = cls(lines, cuts, ranks, found, np.zeros(0), np.zeros(0), np.zeros(0, np.int64))
        features._scale(reference)
        return features

    def _scale(self, reference: Floats) -> None:
        """Centre each group, and give it a mean squared length of 1 on the reference."""
        parts = self._parts(reference)
        groups = np.concatenate([np.full(part.shape[1], i) for i, part in enumerate(parts)])
        table = np.hstack(parts)
        centres = table.mean(axis=0)
        centres[0] = 0.0
        spread = ((table - centres) ** 2).mean(axis=0)
        scales = np.ones(len(groups))
        for group in range(1, len(parts)):
            inside = groups == group
            scales[inside] = 1 / math.sqrt(max(float(spread[inside].sum()), LEAST))
        self.centres, self.scales, self.groups = centres, scales, groups

    def _parts(self, table: Floats) -> list[Floats]:
        """Return the features of each group, neither centred nor scaled."""
        parts = [np.ones((len(table), 1))]
        parts.append(np.column_stack([line.of(table[:, line.place]) for line in self.lines]))
        bins = [_marks(table[:, place], cuts) for place, cuts in self.cuts.items()]
        parts.append(np.hstack(bins) if bins else np.zeros((len(table), 0)))
        if self.waves:
            ranks = self._ranked(table)
            parts += [waves.of(ranks) for waves in self.waves]
        return parts

    def _ranked(self, table: Floats) -> Floats:
        """Return middle ranks of numbers, with variance 1, and marks as they are."""
        found = np.empty_like(table)
        for place in range(table.shape[1]):
            known = self.ranks.get(place)
            if known is None:
                found[:, place] = table[:, place]
                continue
            low = np.searchsorted(known, table[:, place], side="left")
            high = np.searchsorted(known, table[:, place], side="right")
            found[:, place] = ((low + high) / (2 * len(known)) - 0.5) * math.sqrt(12.0)
        return found

    def whole(self, table: Floats) -> Floats:
        """Return the features as whole numbers, in units of 1 / ``UNIT``."""
        features = np.hstack(self._parts(table))
        features -= self.centres
        features *= self.scales * UNIT
        np.clip(np.rint(features, out=features), -LARGEST, LARGEST, out=features)
        return np.nan_to_num(features, copy=False)

    def rows(self, table: Floats) -> Floats:
        """Return the features of encoded rows."""
        return self.whole(table) / UNIT

    def __len__(self) -> int:
        """Return the number of features."""
        return len(self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "lines": [[line.place, line.centre, line.scale] for line in self.lines],
            "cuts": [[place, cuts.tolist()] for place, cuts in self.cuts.items()],
            "ranks": [[place, known.tolist()] for place, known in self.ranks.items()],
            "waves": [
                [waves.places.tolist(), waves.weights.tolist(), waves.shifts.tolist()]
                for waves in self.waves
            ],
            "centres": self.centres.tolist(),
            "scales": self.scales.tolist(),
            "groups": self.groups.tolist(),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> KernelFeatures:
        """Rebuild what ``to_dict`` returned."""
        return cls(
            [StraightLine(*line) for line in plain["lines"]],
            {place: np.array(cuts) for place, cuts in plain["cuts"]},
            {place: np.array(known) for place, known in plain["ranks"]},
            [
                Waves(np.array(places), np.array(weights), np.array(shifts))
                for places, weights, shifts in plain["waves"]
            ],
            np.array(plain["centres"]),
            np.array(plain["scales"]),
            np.array(plain["groups"]),
        )


def _line(place: int, column: Floats, numeric: bool) -> StraightLine:
    finite = np.clip(column[np.isfinite(column)], -HUGE, HUGE)
    if not numeric or not len(finite):
        return StraightLine(place, 0.0, 1.0)
    spread = float(finite.std())
    return StraightLine(place, float(finite.mean()), spread if spread > 0 else 1.0)


def _cuts(column: Floats) -> Floats:
    """Return cuts between all values if they are few, else at quantiles."""
    values = np.unique(np.clip(column, -HUGE, HUGE))
    if len(values) <= FEW_VALUES:
        return (values[1:] + values[:-1]) / 2
    ranks = np.arange(1, BINS) * len(column) // BINS
    return np.unique(np.sort(np.clip(column, -HUGE, HUGE))[ranks])


def _marks(column: Floats, cuts: Floats) -> Floats:
    """Return 0 and 1 for each bin between cuts."""
    code = np.searchsorted(cuts, column, side="right")
    return np.asarray(code[:, None] == np.arange(len(cuts) + 1), dtype=np.float64)


def _draw_waves(n_columns: int, count: int, source: Source) -> list[Waves]:
    """Draw waves of pairs and triples of columns; no row is looked at."""
    groups = []
    for size in (min(size, n_columns) for size in SIZES):
        for width in WIDTHS:
            order = np.argsort(_even(count * n_columns, source).reshape(count, n_columns), axis=1)
            weights = ndtri(_even(count * size, source)).reshape(count, size)
            shifts = 2 * math.pi * _even(count, source)
            scale = width * math.sqrt(2 / size)
            groups.append(Waves(order[:, :size].astype(np.int64), scale * weights, shifts))
    return groups


def _even(count: int, source: Source) -> Floats:
    """Return numbers that lie evenly between 0 and 1."""
    return np.asarray((source.words(count) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


KINDS["kernel features"] = KernelFeatures
