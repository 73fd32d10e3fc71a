"""The question to each row: a shortened residual along some directions, and bins of its error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.learners.kernel.levels import Bytes
from cumae.learners.kernel.scoring import ROWS
from cumae.learners.kernel.sums import COUNTED, LENGTH, STEEP, Question, room
from cumae.learners.regression.target import NumberTarget

COUNTS_MOVE = COUNTED * 2**0.5  # how far a replaced row moves counts of bins: from one to another


@claim("REGRESS")
@np.errstate(all="ignore")  # a thread does not know what its caller ignores
def bin_counts(numbers: Floats, cuts: Floats) -> Integers:
    """Return how many numbers are in each bin, in whole numbers; each is in one bin.

    Parameters
    ----------
    numbers : array of float
        One number for each row.
    cuts : array of float
        Where a bin ends and the next one begins.
    """
    places = np.searchsorted(cuts, numbers, side="right")
    return COUNTED * np.bincount(places, minlength=len(cuts) + 1)


@dataclass(frozen=True)
class Clipping:
    """A step that moves numbers beyond a range to its ends.

    Parameters
    ----------
    low, high : float
        The range.
    """

    low: float
    high: float

    @claim("REGRESS")
    def __call__(self, numbers: Floats) -> tuple[Floats]:
        return (np.clip(numbers, self.low, self.high),)


@dataclass(frozen=True)
class NumberQuestion:
    """The question of a step to each row with a number.

    Parameters
    ----------
    asked : Question
        Model and directions.
    target : NumberTarget
        What the number is counted in.
    reach : float
        Where residuals are shortened, in units of the target and of the size of errors.
    """

    asked: Question
    target: NumberTarget
    reach: float

    def residuals(self, scores: Floats, numbers: Floats) -> Floats:
        """Return means less numbers, divided by ``reach`` times the size of errors there."""
        off = self.target.mean(scores) - self.target.standard(numbers)
        return off / (self.reach * self.target.size(scores))

    @claim("REGRESS")
    @np.errstate(all="ignore")  # as above
    def total(self, codes: Bytes, numbers: Floats) -> Integers:
        """Return the sum of what rows add, one number for each direction.

        A row adds its shortened residual times its directions, as whole numbers. Both are bounded
        here, for any input.
        """
        found = np.zeros(self.asked.directions.shape[1], dtype=np.int64)
        for start in range(0, len(codes), ROWS):
            scores, across = self.asked.ask(codes[start : start + ROWS])
            pointed = np.rint(across * np.float32(room(across.shape[1], LENGTH)))
            pointed[~((pointed**2).sum(axis=1) <= LENGTH**2)] = 0.0  # not for NaN either
            off = self.residuals(scores[:, 0], numbers[start : start + ROWS])
            residual = np.rint(np.clip(off, -1.0, 1.0) * STEEP)
            residual[~(np.abs(residual) <= STEEP)] = 0.0
            found += (pointed.T.astype(np.float64) @ residual).astype(np.int64)
        return found

    @claim("REGRESS")
    @np.errstate(all="ignore")  # as above
    def errors(self, codes: Bytes, numbers: Floats, cuts: Floats) -> Integers:
        """Return how many errors, numbers less means, are in each bin, in whole numbers.

        Parameters
        ----------
        codes : array of int
            Coded rows.
        numbers : array of float
            Their numbers.
        cuts : array of float
            Cuts between bins, in units of the target and of the size of errors.
        """
        scores, _ = self.asked.ask(codes)
        return bin_counts(-self.reach * self.residuals(scores[:, 0], numbers), cuts)
