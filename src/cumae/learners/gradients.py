"""Sums of rows with integer noise, and gradient steps that know how large their noise is."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.randomness import Source, discrete_gaussian

LENGTH = 2**20  # of the longest row of integers
CHUNK = 8192  # rows that are turned into integers at a time
PRIOR = 0.15  # variance of a coefficient before any row was seen
FREE = 4.0  # the same for the constant
STEEP = 0.5  # largest residual that counts in full


@claim("LOGREG")
def noisy_sum(
    rows: NDArray[np.float32], factors: Floats, length: float, noise: float, source: Source
) -> Floats:
    """Sum factors * rows, each shortened to ``length`` and rounded to integers, with noise."""
    total = np.zeros(rows.shape[1], dtype=np.int64)
    # Rounding adds at most half of a unit in each place, hence sqrt(width) / 2 in length.
    unit = (LENGTH - math.sqrt(rows.shape[1])) / length
    for start in range(0, len(rows), CHUNK):
        part = slice(start, start + CHUNK)
        total += _integers(rows[part] * (factors[part, None] * unit)).sum(axis=0)
    total += discrete_gaussian(noise, len(total), source)
    return total / unit


@claim("LOGREG")
def _integers(scaled: Floats) -> Integers:
    """Round rows; one that is longer than LENGTH or no number somewhere becomes zero.

    What the arithmetic before promises is not taken on trust.
    """
    usual = np.all(np.abs(scaled) <= LENGTH, axis=1)  # so that squares do not overflow; not for NaN
    whole = np.rint(np.where(usual[:, None], scaled, 0.0)).astype(np.int64)
    whole[(whole**2).sum(axis=1) > LENGTH**2] = 0
    return whole


class Curvature:
    """The expected second derivative of the loss: from public rows, or else an upper bound.

    Parameters
    ----------
    moments : array of float
        Sums of products of the features over all rows, published.
    public : array of float, or None
        Features of public rows.
    rows : int
        Number of private rows.
    """

    def __init__(self, moments: Floats, public: Floats | None, rows: int) -> None:
        self.moments, self.public, self.rows = moments, public, rows

    def at(self, coefficients: Floats) -> Floats:
        """Return the matrix of second derivatives at some coefficients."""
        if self.public is None:
            return self.moments / 4
        chance = expit(self.public @ coefficients)
        weighted = self.public * (chance * (1 - chance))[:, None]
        return np.asarray(weighted.T @ self.public * (self.rows / len(self.public)))


def kalman_steps(
    Z: NDArray[np.float32],
    y: Integers,
    longest: float,
    curvature: Curvature,
    steps: int,
    scale: float,
    source: Source,
) -> Floats:
    """Return coefficients after noisy gradient steps, each weighed by what its noise leaves.

    Parameters
    ----------
    Z : array of float
        Features of the rows, the constant first.
    y : array of int
        Labels 0 and 1.
    longest : float
        Length to which rows of features were shortened.
    curvature : Curvature
        Second derivatives of the loss.
    steps : int
        Number of steps.
    scale : float
        Scale of the noise of each, in units of the integers.
    source : Source
        Where coins come from.

    Returns
    -------
    array of float
        A coefficient for each feature.
    """
    width = Z.shape[1]
    mean = np.zeros(width)
    spread = np.diag(np.append(FREE, np.full(width - 1, PRIOR)))
    length = STEEP * longest
    # Noise of one step, in units of the gradient.
    noise = scale * length / (LENGTH - math.sqrt(width))
    for _ in range(steps):
        residual = np.clip(expit(Z @ mean) - y, -STEEP, STEEP)
        gradient = noisy_sum(Z, residual, length, scale, source)
        bend = curvature.at(mean)
        # gradient = bend (mean - truth) + noise; the rows' own scatter, which all steps share,
        # counts once for all of them together.
        # Without noise, directions that no row shows would have no inverse.
        scatter = max(noise**2, 1e-9) * np.eye(width) + steps * bend
        gain = np.linalg.solve(bend @ spread @ bend + scatter, bend @ spread).T
        mean = mean - gain @ gradient
        spread = spread - gain @ bend @ spread
    return mean


@claim("LOGREG")
def noisy_moments(Z: NDArray[np.float32], longest: float, noise: float, source: Source) -> Floats:
    """Return the matrix of second moments with noise, its negative directions set to 0."""
    width = Z.shape[1]
    upper = np.triu_indices(width)
    double = np.where(upper[0] == upper[1], 1.0, math.sqrt(2.0)).astype(np.float32)
    # Each entry off the diagonal stands for two, so that lengths agree with the whole matrix.
    whole = np.zeros(len(double), dtype=np.int64)
    unit = (LENGTH - math.sqrt(len(double))) / longest**2
    size = max(1, CHUNK * 64 // len(double))
    for start in range(0, len(Z), size):
        part = Z[start : start + size].astype(np.float64)
        whole += _integers(part[:, upper[0]] * part[:, upper[1]] * (double * unit)).sum(axis=0)
    whole += discrete_gaussian(noise, len(whole), source)
    matrix = np.zeros((width, width))
    matrix[upper] = whole / (unit * double)
    matrix += np.triu(matrix, 1).T
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
