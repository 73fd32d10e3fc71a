"""The levels of a column of numbers: which of its values are kept apart, and which stand out.

All of it follows from a reference: public rows, or rows that are made up from releases. Private
rows play no part.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers

Bytes = NDArray[np.uint8]

LEVELS = 256  # of a column of numbers
WIDEST = 3.0  # standard deviations beyond which a value is pulled in
FEW = 12  # values of a column that are so few that each has a mark
HEAVY = 0.1  # share of a value that a rank takes in at most
FINDS_LEVELS, TELLS_LEVELS = 500.0, 5_000.0  # strength that tells of single levels, and all of it
HUGE = 1e150  # its square is a float
FREQUENT, AROUND, NEAR = 0.004, 3.0, 3  # what stands out: share, times the median of neighbours


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
        The mean rank of each level, between 0 and 1; frequent values take in a tenth at most.
    centre, scale : float
        Mean and standard deviation of the column.
    shares : array of float
        The share of the reference in each level.
    spots : array of int
        Levels that have a mark of their own.
    is_mark : bool
        Whether there are two levels only, so that one mark says all.
    """

    cuts: Floats
    lines: Floats
    ranks: Floats
    centre: float
    scale: float
    shares: Floats
    spots: Integers
    is_mark: bool

    @classmethod
    def of(cls, column: Floats, detail: float = 1.0) -> Levels:
        """Make levels from reference values: one for each value, or at quantiles.

        Parameters
        ----------
        column : array of float
            Values of the column in the reference.
        detail : float from 0 to 1
            How much rows tell about single values; with 0 none of them has a mark.
        """
        column = np.sort(np.clip(np.nan_to_num(column), -HUGE, HUGE))
        values, times = np.unique(column, return_counts=True)
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
        shares = counts / len(column)
        # If most rows have one value, curves are for the others.
        taken = np.minimum(shares, HEAVY / math.sqrt(detail)) if detail else shares
        ranks = (np.cumsum(taken) - taken / 2) / taken.sum()
        spots = np.zeros(0, dtype=np.int64)
        if detail and 2 < len(values) <= FEW:
            spots = np.arange(len(counts))
        elif detail and len(values) > FEW:
            alone = np.searchsorted(cuts, values, side="right")
            spots = np.unique(alone[stand_out(times / len(column))])
        return cls(cuts, lines, ranks, centre, scale, shares, spots, len(cuts) == 1)

    def code(self, column: Floats) -> Bytes:
        """Return the level of each cell."""
        return np.searchsorted(self.cuts, column, side="right").astype(np.uint8)

    @property
    def values(self) -> Floats:
        """A value inside each level: its mean, or its middle where values were pulled in."""
        cuts = self.cuts
        if not len(cuts):
            return np.array([self.centre])
        if self.is_mark:
            low, high = self.ends
            return np.array([low, high])
        widths = np.diff(cuts) if len(cuts) > 1 else np.full(2, self.scale)
        ends = np.concatenate([[cuts[0] - widths[0]], cuts, [cuts[-1] + widths[-1]]])
        means = np.clip(self.centre + self.scale * self.lines, ends[:-1], ends[1:])
        middles = ends[:-1] / 2 + ends[1:] / 2
        found = np.where(np.abs(self.lines) < WIDEST, means, middles)
        return _short(found, self.scale)

    @property
    def ends(self) -> tuple[float, float]:
        """The two values of a mark, as mean and standard deviation tell them."""
        share = min(max(float(self.shares[1]), 1e-12), 1 - 1e-12)
        apart = self.scale / math.sqrt(share * (1 - share))
        low = self.centre - share * apart
        low, high = _short(np.array([low, low + apart]), self.scale).tolist()
        return low, high

    def to_list(self) -> list[Any]:
        """Return plain values that JSON can hold."""
        own = [one.tolist() for one in (self.cuts, self.lines, self.ranks)]
        plain = [*own, self.centre, self.scale]
        if self.is_mark or len(self.spots) or np.any(self.shares != _shares_of(self.ranks)):
            plain += [self.shares.tolist(), self.spots.tolist()]
        return plain

    @classmethod
    def from_list(cls, plain: list[Any]) -> Levels:
        """Rebuild what ``to_list`` returned; older models have no marks of levels."""
        cuts, lines, ranks = map(np.array, plain[:3])
        centre, scale, *more = plain[3:]
        shares, spots = more or (_shares_of(ranks), [])
        shares, spots = np.array(shares, dtype=np.float64), np.array(spots, dtype=np.int64)
        is_mark = bool(more) and len(cuts) == 1
        return cls(cuts, lines, ranks, centre, scale, shares, spots, is_mark)


def detail_of(strength: float) -> float:
    """Return how much rows tell about single values of columns, by public numbers: 0 to 1.

    Parameters
    ----------
    strength : float
        How far all rows together stand out from noise.
    """
    return min(strength / TELLS_LEVELS, 1.0) if strength > FINDS_LEVELS else 0.0


def stand_out(shares: Floats) -> NDArray[np.bool_]:
    """Tell which values are far more frequent than those around them."""
    wide = np.pad(shares, NEAR, mode="reflect") if len(shares) > NEAR else shares
    around = np.lib.stride_tricks.sliding_window_view(wide, 2 * NEAR + 1)
    middle = np.median(around, axis=1)
    return np.asarray((shares > FREQUENT) & (shares > AROUND * middle))


def _short(values: Floats, scale: float) -> Floats:
    """Return values with the digits that matter."""
    digits = 9 - math.floor(math.log10(scale))
    return np.asarray(np.round(values, digits) + 0.0, dtype=np.float64)  # 0, not -1e-16


def _shares_of(ranks: Floats) -> Floats:
    below, found = 0.0, []
    for rank in ranks.tolist():
        found.append(2 * (rank - below))
        below += found[-1]
    return np.maximum(found, 0.0)
