"""The one way by which private rows speak: sums of bounded whole numbers, with noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.engines import Pieces, summed
from cumae.learners.kernel.features import TOP, KernelFeatures, Small, packed, unpacked
from cumae.learners.kernel.levels import Bytes
from cumae.learners.kernel.scoring import ROWS, WholeProducts
from cumae.randomness import Source, discrete_gaussian

LENGTH = 2**11  # of the longest direction, in whole numbers
STEEP = 2**10  # of the longest residual
MOVES = 2 * LENGTH * STEEP  # how far a replaced row moves a sum
COUNTED = 2**12  # whole numbers that stand for one row in a bin
CHUNK = 8_192  # rows at a time
LIMBS = 3  # digits of a coefficient, each up to 127 in size
BASE = 128


@claim("KERNEL")
def noisy_sum(
    total: Callable[..., Integers],
    parts: Pieces | Iterable[tuple[Any, ...]],
    scale: float,
    source: Source,
) -> Integers:
    """Release a sum over all rows, with noise: all that is ever said about private rows.

    Parameters
    ----------
    total : callable
        Returns the sum of whole numbers over the rows of a part. What one row adds is bounded
        there, and does not depend on other rows.
    parts : Pieces, or iterable of tuple
        The rows in parts: what ``total`` is given.
    scale : float
        Scale of the noise of each number.
    source : Source
        Where coins come from.
    """
    whole = np.asarray(summed(total, parts), dtype=np.int64)
    return np.asarray(whole + discrete_gaussian(scale, whole.size, source).reshape(whole.shape))


@dataclass(frozen=True)
class Question:
    """The question of a step to each row: residuals of a model, along some directions.

    All numbers are kept as small whole numbers, so that products with features are exact.

    Parameters
    ----------
    features : KernelFeatures
        How codes become features.
    odds : array of float
        Digits of the coefficients of the log odds, for whole features.
    odds_unit : float
        What a coefficient of 1 in the last digit stands for.
    odds_constant : array of float
        The constant of each score.
    directions : array of float
        Whole numbers of at most ``TOP``, one column for each direction.
    units, constants : array of float
        What 1 stands for in each direction, and what is added.
    """

    features: KernelFeatures
    odds: Small
    odds_unit: float
    odds_constant: Floats
    directions: Small
    units: NDArray[np.float32]
    constants: NDArray[np.float32]

    @classmethod
    def of(cls, features: KernelFeatures, mean: Floats, directions: Floats) -> Question:
        """Round coefficients and directions for scaled features, the constant first.

        Parameters
        ----------
        features : KernelFeatures
            How codes become features.
        mean : array of float
            Coefficients, one column for each score.
        directions : array of float
            One column for each direction.
        """
        inner, constant = features.for_whole(mean)
        largest = max(float(np.abs(inner).max(initial=0.0)), 1e-30)
        unit = largest / (BASE ** (LIMBS - 1) * (TOP - 1))
        digits, left = [], np.rint(inner / unit)
        for power in reversed(range(LIMBS)):
            digit = np.rint(left / BASE**power)
            digits.append(digit)
            left = left - digit * BASE**power
        across, constants = features.for_whole(directions)
        units = np.maximum(np.abs(across).max(axis=0, initial=0.0), 1e-30) / TOP
        return cls(
            features,
            np.hstack(digits).astype(np.float32),
            unit,
            constant,
            np.rint(across / units).astype(np.float32),
            units.astype(np.float32),
            constants.astype(np.float32),
        )

    @cached_property
    def _products(self) -> WholeProducts:
        return WholeProducts(self.features, np.hstack([self.odds, self.directions]))

    def __getstate__(self) -> dict[str, Any]:
        """Return what workers get: small numbers, and no tables, which they make themselves."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return state | {"odds": packed(self.odds), "directions": packed(self.directions)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        small = {name: unpacked(state[name]) for name in ("odds", "directions")}
        self.__dict__.update(state | small)

    def ask(self, codes: Bytes) -> tuple[Floats, Small]:
        """Return the scores of coded rows, and their shortened directions."""
        scores = self.odds_constant.shape[0]
        both = self._products(codes)
        odds = np.zeros((len(codes), scores))
        for limb in range(LIMBS):
            odds = odds * BASE + both[:, limb * scores : (limb + 1) * scores]
        odds = odds * self.odds_unit + self.odds_constant
        across = both[:, LIMBS * scores :].astype(np.float32)
        across *= self.units
        across += self.constants
        return odds, shorten(across)

    @claim("KERNEL")
    @np.errstate(all="ignore")  # here, too: a thread does not know what its caller ignores
    def total(self, codes: Bytes, labels: Integers) -> Integers:
        """Return the sum of what rows add, one row of numbers for each direction.

        A row adds its residuals times its directions, as whole numbers. Both are bounded here,
        for any input.
        """
        found = np.zeros((self.directions.shape[1], self.odds_constant.shape[0]), dtype=np.int64)
        for start in range(0, len(codes), ROWS):
            odds, across = self.ask(codes[start : start + ROWS])
            pointed = np.rint(across * np.float32(room(across.shape[1], LENGTH)))
            pointed[~((pointed**2).sum(axis=1) <= LENGTH**2)] = 0.0  # not for NaN either
            answers = residuals(odds, labels[start : start + ROWS])
            residual = np.rint(answers * (2 * room(odds.shape[1], STEEP)))
            residual[~((residual**2).sum(axis=1) <= STEEP**2)] = 0.0
            found += (pointed.T.astype(np.float64) @ residual).astype(np.int64)
        return found


def chances(odds: Floats) -> Floats:
    """Return the chance of each class that has a score: of the second of two, or of all of more."""
    if odds.shape[1] == 1:
        return np.asarray(expit(odds))
    raised = powers(odds - odds.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def powers(exponents: Floats) -> Floats:
    """Return powers of e, number by number, which numpy's exponential does not promise."""
    return np.asarray(expit(exponents) / expit(-exponents))


def weights(chance: Floats) -> Floats:
    """Return by how much residuals are weighed: the longest one that can be is then 1/2."""
    if chance.shape[1] == 1:
        return np.asarray(0.5 / np.maximum(chance[:, 0], 1 - chance[:, 0]))
    square = (chance**2).sum(axis=1) - 2 * chance.min(axis=1) + 1
    return np.asarray(0.5 / np.sqrt(np.maximum(square, 1e-300)))


def residuals(odds: Floats, labels: Integers) -> Floats:
    """Return chances less labels, weighed so that they are at most 1/2 long.

    The weight does not depend on the label: residuals are zero on the mean if the odds are right.
    """
    chance = chances(odds)
    if odds.shape[1] == 1:
        wrong = chance - labels[:, None]
    else:
        wrong = chance - (labels[:, None] == np.arange(odds.shape[1]))
    return np.asarray(wrong * weights(chance)[:, None])


def room(count: int, length: int) -> float:
    """Return how many whole numbers stand for a length of 1 in so many places.

    Rounding adds at most half of a number to each place. The other half is for float32, which may
    leave a row a little longer than 1.
    """
    return length - math.sqrt(count)


def shorten(rows: Small) -> Small:
    """Return rows of at most length 1; longer ones are shortened."""
    length = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    return np.asarray(rows / np.maximum(length, np.float32(1.0)))
