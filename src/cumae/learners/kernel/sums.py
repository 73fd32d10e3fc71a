"""The one way by which private rows speak: sums of bounded whole numbers, with noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import expit

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.randomness import Source, discrete_gaussian

LENGTH = 2**11  # of the longest direction, in whole numbers
STEEP = 2**9  # of the largest residual
MOVES = 2 * LENGTH * STEEP  # how far a replaced row moves a sum
CHUNK = 16_384  # rows at a time
WHOLE = 2.0**20  # units of whole numbers of directions and coefficients
MOST = 2.0**24  # size of such a number: with features up to 2^15, sums stay exact


def chunks(count: int) -> Iterator[slice]:
    """Return slices that cover so many rows."""
    for start in range(0, count, CHUNK):
        yield slice(start, min(count, start + CHUNK))


def rounded(numbers: Floats) -> Floats:
    """Return numbers as multiples of 1 / ``WHOLE``, so that products with features are exact."""
    return np.clip(np.rint(numbers * WHOLE), -MOST, MOST) / WHOLE


@claim("KERNEL")
def noisy_sum(
    features: Callable[[slice], Floats],
    labels: Integers,
    mean: Floats,
    directions: Floats,
    scale: float,
    source: Source,
) -> Integers:
    """Release the sum over all rows of a residual times a shortened direction, with noise.

    Parameters
    ----------
    features : callable
        Returns whole features of a slice of the rows, in units of 1 / ``UNIT``.
    labels : array of int
        0 or 1.
    mean : array of float
        Coefficients of the log odds so far, for features in these units.
    directions : array of float
        What is measured: one column for each direction, for features in these units.
    scale : float
        Scale of the noise, in whole numbers.
    source : Source
        Where coins come from.

    Returns
    -------
    array of int
        One number for each direction.
    """
    total = np.zeros(directions.shape[1], dtype=np.int64)
    for part in chunks(len(labels)):
        total += contribution(features(part), labels[part], mean, directions).sum(axis=0)
    return np.asarray(total + discrete_gaussian(scale, len(total), source))


@claim("KERNEL")
def contribution(whole: Floats, labels: Integers, mean: Floats, directions: Floats) -> Integers:
    """Return what each row adds: whole numbers of length at most ``LENGTH * STEEP``.

    Residuals are weighed so that they are at most 1/2 in size, and zero on the mean if the log odds
    are right. Bounds are enforced on the whole numbers, whatever arithmetic did before.
    """
    chance = expit(whole @ mean)
    residual = np.rint((chance - labels) * (STEEP / np.maximum(chance, 1 - chance)))
    residual = np.where(np.abs(residual) <= STEEP, residual, 0.0)  # not for NaN either
    shortened = shorten(whole @ directions)
    pointed = np.rint(shortened * room(directions.shape[1]))
    pointed = np.where(np.isfinite(pointed), pointed, 0.0)
    pointed[(pointed**2).sum(axis=1) > LENGTH**2] = 0.0
    return np.asarray(pointed * residual[:, None], dtype=np.int64)


def room(count: int) -> float:
    """Return how many whole numbers stand for a length of 1 in so many directions.

    Rounding adds at most half of a number to each.
    """
    return LENGTH - math.sqrt(count)


def shorten(rows: Floats) -> Floats:
    """Return rows of at most length 1; longer ones are shortened."""
    length = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    return np.asarray(rows / np.maximum(length, 1.0))
