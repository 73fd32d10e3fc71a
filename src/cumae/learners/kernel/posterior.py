"""What the releases say about the coefficients, and what is worth measuring next.

Nothing here touches private rows: it is computed from releases, from the reference and from public
numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from cumae.arrays import Floats, Integers

MOST_DIRECTIONS = 160
ROUNDS = 2  # of linearising all releases at the mean so far
UPDATES = 6  # of the prior's variances in each of them
BELIEF = 4.0  # coefficients that the first guess of a variance is worth
SMALLEST, LARGEST = 1e-4, 30.0  # variances
LEAST = 1e-9
JITTER = 1e-12


@dataclass(frozen=True)
class NoisySum:
    """One noisy sum, with what is needed to predict it from coefficients.

    Parameters
    ----------
    value : array of float
        What was released, in units of rows.
    noise : float
        Variance of its noise.
    shown : array of float
        Shortened directions of the reference rows.
    chance : array of float
        Chances of the reference rows when it was planned.
    """

    value: Floats
    noise: float
    shown: Floats
    chance: Floats

    @property
    def weight(self) -> Floats:
        """By how much residuals of the reference rows were weighed."""
        return 0.5 / np.maximum(self.chance, 1 - self.chance)


@dataclass
class Posterior:
    """Coefficients as far as they are known: a mean, a covariance, and variances of groups.

    Parameters
    ----------
    reference : array of float
        Features of the reference rows.
    groups : array of int
        The group of each feature.
    start : array of float
        First guess of the variance of each group.
    rows : int
        Number of private rows.
    worth : float
        How many rows the reference is worth.
    steps : int
        How many releases there are going to be.
    """

    reference: Floats
    groups: Integers
    start: Floats
    rows: int
    worth: float
    steps: int
    releases: list[NoisySum] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.variances = self.start.copy()
        self.mean = np.zeros(len(self.groups))
        self.covariance = np.diag(self.start[self.groups])

    @property
    def chance(self) -> Floats:
        """Chances of the reference rows by the mean."""
        return np.asarray(expit(self.reference @ self.mean))

    def design(self, noise: float) -> Floats:
        """Return the directions to measure next: those about which much is unknown.

        Parameters
        ----------
        noise : float
            Variance of the noise of the next release.
        """
        chance, n = self.chance, self.rows
        bend = 0.5 / np.maximum(chance, 1 - chance) * chance * (1 - chance)
        size = len(self.groups)
        root = _root(self.covariance + LEAST * np.eye(size))
        seen = self.reference @ root
        known, axes = np.linalg.eigh((seen * bend[:, None]).T @ seen / len(seen))
        order = np.argsort(known)[::-1][:MOST_DIRECTIONS]
        known, axes = np.maximum(known[order], LEAST), axes[:, order]
        lengths = ((seen @ axes) ** 2).mean(axis=0) / known
        shares = _water(known, lengths, noise, n)
        kept = shares > 0
        return np.asarray(root @ (axes[:, kept] * np.sqrt(shares[kept] / known[kept])))

    def learn(self, release: NoisySum) -> None:
        """Take in one more release."""
        self.releases.append(release)
        for _ in range(ROUNDS):
            slopes, gaps, noise = self._linearised()
            for update in range(UPDATES + 1):
                self._solve(slopes, gaps, noise)
                if update < UPDATES:
                    self._update_variances()
        prior = self.variances[self.groups]
        covariance = np.diag(prior) - self._spread.T @ self._solved
        self.covariance = (covariance + covariance.T) / 2

    def _linearised(self) -> tuple[Floats, Floats, Floats]:
        """Return all releases as linear measurements, at the mean so far."""
        reference, n, count = self.reference, self.rows, len(self.reference)
        now = self.chance
        slopes, gaps, noises = [], [], []
        for release in self.releases:
            weight, shown, share = release.weight, release.shown, n / count
            told = share * (shown.T @ (weight * (release.chance - now)))
            slope = -share * (shown * (weight * now * (1 - now))[:, None]).T @ reference
            scatter = share * self.steps * weight**2 * now * (1 - now)
            scatter += share * (n / self.worth + 1) * (weight * (release.chance - now)) ** 2
            noise = release.noise * np.eye(shown.shape[1]) + (shown * scatter[:, None]).T @ shown
            slopes.append(slope)
            gaps.append(release.value - told + slope @ self.mean)
            noises.append(noise)
        return np.vstack(slopes), np.concatenate(gaps), _blocks(noises)

    def _solve(self, slopes: Floats, gaps: Floats, noise: Floats) -> None:
        """Set mean and covariance to those of a linear model with Gaussian noise."""
        prior = self.variances[self.groups]
        spread = slopes * prior
        whole = spread @ slopes.T + noise
        # Where there is hardly any noise, rounding must not make it singular.
        whole += JITTER * np.trace(whole) / len(whole) * np.eye(len(whole))
        factor = cho_factor(whole, lower=True)
        solved = cho_solve(factor, spread)
        self.mean = spread.T @ cho_solve(factor, gaps)
        self._spread, self._solved = spread, solved
        self._left = prior - (spread * solved).sum(axis=0)

    def _update_variances(self) -> None:
        """Move the variance of each group to what its coefficients show; not of the constant."""
        squares = self.mean**2 + np.maximum(self._left, 0.0)
        for group in range(1, len(self.variances)):
            inside = self.groups == group
            if not inside.any():  # a table without bins, say
                continue
            total = squares[inside].sum() + BELIEF * self.start[group]
            found = total / (np.count_nonzero(inside) + BELIEF)
            self.variances[group] = min(max(found, SMALLEST), LARGEST)


def _root(matrix: Floats) -> Floats:
    """Return a matrix whose product with its own transpose is a covariance."""
    try:
        return np.asarray(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:  # rounding left a direction with less than nothing
        values, vectors = np.linalg.eigh(matrix)
        return np.asarray(vectors * np.sqrt(np.maximum(values, LEAST)))


def _blocks(parts: list[Floats]) -> Floats:
    size = sum(len(part) for part in parts)
    whole, place = np.zeros((size, size)), 0
    for part in parts:
        whole[place : place + len(part), place : place + len(part)] = part
        place += len(part)
    return whole


def _water(known: Floats, lengths: Floats, noise: float, rows: int) -> Floats:
    """Return how much of the length of a row each direction gets: most where most is unknown."""

    def shares(level: float) -> Floats:
        wanted = rows * np.sqrt(noise / (level * lengths)) - noise / known
        return np.maximum(wanted, 0.0) / (rows / known + float(rows) ** 2)

    low, high = -80.0, 80.0  # logarithms of the level
    for _ in range(80):
        middle = (low + high) / 2
        if float(shares(math.exp(middle)) @ lengths) > 1:
            low = middle
        else:
            high = middle
    found = shares(math.exp(low))
    total = float(found @ lengths)
    if not total > 0:
        found = np.zeros(len(known))
        found[0] = 1 / lengths[0]
        return found
    return found / total
