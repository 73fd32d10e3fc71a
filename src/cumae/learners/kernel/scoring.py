"""Scores of rows in whole numbers: the same bits in any table, at any place, in any thread.

A score is a sum of features times coefficients. In floating point, the sum of many products depends
on the order in which a library adds them, which depends on the shape of the table. So features are
whole numbers already, coefficients are rounded to whole numbers of a small unit, and the sum is one
of whole numbers, which has no order. At the end it is rounded to a grid that all models share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numba
import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.errors import InvalidParameter
from cumae.learners.kernel.features import (
    RANK,
    SINE,
    TOP,
    TURN,
    KernelFeatures,
    Small,
    cosines,
)
from cumae.learners.kernel.levels import Bytes
from cumae.remembering import remembered

GRID = 2.0**-20  # scores are multiples of it: a chance moves by less than a millionth
FINEST = 40  # a unit of a coefficient is 2^-40, or coarser if coefficients are very large
ROOM = 61  # sums stay below 2^62: one bit is for rounding
LARGEST = 1e90  # of the numbers of a model: sums of products of three, over GRID, are floats
ANGLES = int(TURN * RANK)  # in one turn
ROWS = 1_024  # at a time, so that their waves stay in the processor's own memory
BLOCK = 1_024  # features at a time: 1,024 products of numbers up to 127 stay below 2^24
MOST_CELLS = 2**22  # of tables of what levels add: larger ones take longer than features do
MOST_FEATURES = 2**31 // TOP**2  # whose products with numbers up to 127 add up to 32 bits

Whole = NDArray[np.int32]


@claim("KERNEL")
@dataclass(frozen=True, eq=False)
class WholeScores:
    """A model of log odds as whole numbers.

    A line and the curves of a column follow from the level of a cell, and so does what they add to
    a score. So tables hold that for each level, and only waves are computed.

    Parameters
    ----------
    starts, cuts : array
        Where the cuts of each encoded column begin, and the cuts. The level of a cell is the number
        of cuts that are not above it: a column has one level more than cuts.
    added : array of int
        What a level adds to each score; the levels of the columns follow each other.
    ranks : array of int
        The rank of each level, from which angles of waves follow.
    waves, shifts : array of int
        As in ``KernelFeatures``.
    weights : array of int
        Coefficients of the waves, a row for each score.
    constant : array of int
        The constant of each score.
    unit : float
        What 1 stands for in these numbers; a power of 2.
    """

    starts: Integers
    cuts: Floats
    added: Integers
    ranks: Whole
    waves: Whole
    shifts: Whole
    weights: Integers
    constant: Integers
    unit: float

    @classmethod
    def of(cls, features: KernelFeatures, weights: Floats) -> Self:
        """Round the coefficients of scaled features, the constant first, to whole numbers.

        Parameters
        ----------
        features : KernelFeatures
            How rows become features.
        weights : array of float
            Coefficients, a column for each score.
        """
        numbers = np.concatenate([weights.ravel(), features.scales, features.centres])
        if not np.abs(numbers).max() < LARGEST:  # not for NaN either
            raise InvalidParameter(f"a kernel model holds numbers that are not below {LARGEST:g}.")
        inner = weights[1:] * features.scales[:, None]
        parts = np.vstack([weights[:1], -features.centres[:, None] * inner])
        constant = np.array([math.fsum(column) for column in parts.T.tolist()])
        sizes = [math.fsum(column) for column in (TOP * np.abs(inner)).T.tolist()]
        power = min(FINEST, ROOM - math.frexp(max(np.add(sizes, np.abs(constant)).tolist()))[1])
        whole = _whole(np.ldexp(inner, power))
        cuts, added, ranks = [], [], []
        for place in range(features.width):
            own, table, rank = features.column(place)
            here: Any = slice(None)
            if place in features.levels:
                cuts.append(features.levels[place].cuts)
            else:  # a mark counts if it is 1, and not below or above
                cuts.append(np.array([1.0, np.nextafter(1.0, 2.0)]))
                here = [0, 1, 0]
            added.append(table[here].astype(np.int64) @ whole[own])
            ranks.append(rank[here].astype(np.int32))
        return cls(
            np.append(0, np.cumsum(list(map(len, cuts)))).astype(np.int64),
            np.concatenate(cuts),
            np.vstack(added),
            np.concatenate(ranks),
            features.waves.astype(np.int32),
            features.shifts.astype(np.int32),
            np.ascontiguousarray(whole[features.wave_places].T),
            _whole(np.ldexp(constant, power)),
            math.ldexp(1.0, -power),
        )

    def scores(self, table: Floats) -> Floats:
        """Return the scores of encoded rows, as multiples of ``GRID``."""
        rows = np.ascontiguousarray(table, dtype=np.float64)
        if not rows.flags.writeable:  # for which numba would compile a second time
            rows = rows.copy()
        found = np.empty((len(rows), len(self.constant)), dtype=np.int64)
        add_scores(
            rows,
            self.starts,
            self.cuts,
            self.added,
            self.ranks,
            self.waves,
            self.shifts,
            cosine_table(),
            self.weights,
            self.constant,
            np.empty(len(self.shifts), dtype=np.int32),
            found,
        )
        # Each step is a function of one number: the product is exact, as both are powers of 2.
        return np.asarray(np.rint(found * (self.unit / GRID)) * GRID)


@claim("KERNEL")
@remembered(1)
def cosine_table() -> NDArray[np.int8]:
    """Return the cosine of each whole angle of a turn, as a whole number of at most ``TOP``."""
    return cosines(np.arange(ANGLES, dtype=np.float32)).astype(np.int8)


@claim("KERNEL")
@numba.njit(cache=True, nogil=True)
def add_scores(  # noqa: C901, PLR0912 - one loop: numba would compile a called function twice
    table: Floats,
    starts: Integers,
    cuts: Floats,
    added: Integers,
    ranks: Whole,
    waves: Whole,
    shifts: Whole,
    turn: NDArray[np.int8],
    weights: Integers,
    constant: Integers,
    angles: Whole,
    found: Integers,
) -> None:
    """Write the whole scores of rows; the parameters are those of ``WholeScores``, and room.

    Parameters
    ----------
    table : array of float
        Encoded rows.
    starts, cuts, added, ranks, waves, shifts, weights, constant : array
        As in ``WholeScores``.
    turn : array of int
        The cosines of a turn.
    angles : array of int
        Room for the angle of each wave.
    found : array of int
        Room for the scores.
    """
    for row in range(len(table)):
        for score in range(len(constant)):
            found[row, score] = constant[score]
        for wave in range(len(shifts)):
            angles[wave] = shifts[wave]
        for column in range(len(waves)):
            cell, low, high = table[row, column], starts[column], starts[column + 1]
            while low < high:
                middle = (low + high) >> 1
                if cell < cuts[middle]:
                    high = middle
                else:  # NaN is above all cuts
                    low = middle + 1
            level = low + column  # among the levels of all columns
            for score in range(len(constant)):
                found[row, score] += added[level, score]
            rank = ranks[level]
            if rank != 0:
                for wave in range(len(angles)):
                    angles[wave] += rank * waves[column, wave]
        for wave in range(len(angles)):
            angles[wave] = turn[angles[wave] & (ANGLES - 1)]
        for score in range(len(constant)):
            total = 0
            for wave in range(len(angles)):
                total += weights[score, wave] * angles[wave]
            found[row, score] += total


@claim("KERNEL")
class WholeProducts:
    """Products of whole features with small whole numbers, for coded rows.

    What a column adds by its line, curves and marks of levels follows from its code, and stands in
    a table. So features are not written down, and only waves are computed and multiplied. Where
    tables would be large, features are written down for some rows at a time.

    Parameters
    ----------
    features : KernelFeatures
        How codes become features.
    weights : array of float
        Whole numbers of at most ``TOP`` in size, a row for each feature.
    """

    def __init__(self, features: KernelFeatures, weights: Small) -> None:
        if features.n_features >= MOST_FEATURES:
            raise InvalidParameter(
                f"{features.n_features:,} features are too many; declare fewer categories."
            )
        self._features, self._across = features, weights.shape[1]
        columns = [features.column(place) for place in range(features.width)]
        ends = np.cumsum([len(rank) for _, _, rank in columns])
        self._has_tables = bool(ends[-1] * self._across <= MOST_CELLS)
        if not self._has_tables:
            self._weights = np.ascontiguousarray(weights)
            return
        whole = weights.astype(np.float64)
        self._starts = np.append(0, ends[:-1]).astype(np.int64)
        self._added = np.vstack([(table @ whole[own]) for own, table, _ in columns]).astype(
            np.int32
        )
        self._ranks = np.concatenate([rank for _, _, rank in columns]).astype(np.float32)
        self._shifts = features.shifts.copy()  # which a cluster may send as what cannot be written
        self._weights = np.ascontiguousarray(weights[features.wave_places])

    def __call__(self, codes: Bytes) -> Whole:
        """Return the products, a row for each row.

        Parameters
        ----------
        codes : array of int
            Codes of rows, as ``KernelFeatures.codes`` returns them.
        """
        if not codes.flags.writeable or not codes.flags.c_contiguous:
            codes = codes.copy()  # for others numba would compile a second time
        found = np.zeros((len(codes), self._across), dtype=np.int32)
        for start in range(0, len(codes), ROWS):
            some, sums = codes[start : start + ROWS], found[start : start + ROWS]
            if not self._has_tables:
                left = self._features.whole(some)
            else:
                add_levels(some, self._starts, self._added, sums)
                left = self._cosines(some)
            for place in range(0, left.shape[1], BLOCK):
                part = slice(place, place + BLOCK)
                sums += (left[:, part] @ self._weights[part]).astype(np.int32)
        return found

    def _cosines(self, codes: Bytes) -> Small:
        """Return the waves of rows."""
        ranks = np.empty(codes.shape, dtype=np.float32)
        find_ranks(codes, self._starts, self._ranks, ranks)
        # Whole numbers below 2^24: the product is exact, whatever its order.
        found = ranks @ self._features.waves
        turn_to_cosines(found, self._shifts, ROUNDING)
        return found


# As in ``cosines``: one turn, a quarter of it, the polynomial, and the largest whole number.
ROUNDING = np.array([1 / (TURN * RANK), 0.25, *SINE, TOP], dtype=np.float32)


@claim("KERNEL")
@numba.njit(cache=True, nogil=True)
def add_levels(codes: Bytes, starts: Integers, added: Whole, found: Whole) -> None:
    """Add what the codes of each row add; ``starts`` has the first level of each column."""
    for row in range(len(codes)):
        for column in range(codes.shape[1]):
            level = starts[column] + codes[row, column]
            for place in range(found.shape[1]):
                found[row, place] += added[level, place]


@claim("KERNEL")
@numba.njit(cache=True, nogil=True)
def find_ranks(codes: Bytes, starts: Integers, ranks: Small, found: Small) -> None:
    """Write the rank of each code; ``starts`` has the first level of each column."""
    for row in range(len(codes)):
        for column in range(codes.shape[1]):
            found[row, column] = ranks[starts[column] + codes[row, column]]


@claim("KERNEL")
@numba.njit(cache=True, nogil=True)
def turn_to_cosines(angles: Small, shifts: Small, how: Small) -> None:
    """Write the cosines of shifted whole angles in their place: what ``cosines`` does, in one go.

    Parameters
    ----------
    angles : array of float
        Angles, a column for each wave.
    shifts : array of float
        What is added to each wave.
    how : array of float
        The numbers of the polynomial, in float32 as all of this.
    """
    turn, quarter, first, third, fifth, top = how
    for row in range(len(angles)):
        for wave in range(angles.shape[1]):
            angle = (angles[row, wave] + shifts[wave]) * turn
            angle = quarter - abs(angle - np.rint(angle))
            square = angle * angle
            sine = ((square * fifth + third) * square + first) * angle
            cosine = np.rint(sine * top)
            if cosine > top:  # numba would compile min and max as functions of their own
                cosine = top
            elif cosine < -top:
                cosine = -top
            angles[row, wave] = cosine


def _whole(numbers: Floats) -> Integers:
    return np.rint(numbers).astype(np.int64)
