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
from cumae.learners.kernel.features import RANK, TOP, TURN, KernelFeatures, cosines
from cumae.remembering import remembered

GRID = 2.0**-20  # scores are multiples of it: a chance moves by less than a millionth
FINEST = 40  # a unit of a coefficient is 2^-40, or coarser if coefficients are very large
ROOM = 61  # sums stay below 2^62: one bit is for rounding
LARGEST = 1e90  # of the numbers of a model: sums of products of three, over GRID, are floats
ANGLES = int(TURN * RANK)  # in one turn

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


def _whole(numbers: Floats) -> Integers:
    return np.rint(numbers).astype(np.int64)
