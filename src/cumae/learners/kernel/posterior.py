"""What the releases say about the coefficients, and what is worth measuring next.

Nothing here touches private rows: it is computed from releases, from the reference and from public
numbers.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular
from scipy.linalg.lapack import dpotri
from scipy.special import expit, softmax

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.learners.kernel.sums import chances, weights

MOST_DIRECTIONS = 160  # of a release, if there is one score; several scores share about as many
ROUNDS = 2  # of linearising all releases at the mean so far
UPDATES = 3  # of the prior's variances in each of them
BELIEF = 4.0  # coefficients that the first guess of a variance is worth
SMALLEST, LARGEST = 1e-4, 30.0  # variances
LEAST = 1e-9
FLAT = 1e-6  # variance of a direction, against the largest, below which nothing is measured


@claim("KERNEL")
def most_directions(scores: int) -> int:
    """Return how many directions a release has at most, so that inference takes seconds."""
    return max(32, 2 * MOST_DIRECTIONS // (scores + 1))


@dataclass(frozen=True)
class NoisySum:
    """One noisy sum, with what is needed to predict it from coefficients.

    Parameters
    ----------
    value : array of float
        What was released, in units of rows: a row for each direction, a column for each score.
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


@dataclass
class Posterior:
    """Coefficients as far as they are known: a mean, a covariance, and variances of groups.

    Parameters
    ----------
    reference : array of float
        Features of the reference rows.
    groups : array of int
        The group of each feature.
    starts : array of float
        First guesses of the variance of each group: a row for each view of the matter.
    beliefs : array of float
        How much each view is believed at first.
    scores : int
        Number of scores of a row: one for two classes, else one for each class.
    rows : int
        Number of private rows.
    worth : float
        How many rows the reference is worth.
    steps : int
        How many releases there are going to be.
    constant : array of float, or None
        First guess of the constant of each score; 0 if there is none.
    """

    reference: Floats
    groups: Integers
    starts: Floats
    beliefs: Floats
    scores: int
    rows: int
    worth: float
    steps: int
    constant: Floats | None = None
    releases: list[NoisySum] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.variances = self.starts.copy()
        self.shares = self.beliefs / self.beliefs.sum()
        self.first = np.zeros((len(self.groups), self.scores))
        if self.constant is not None:
            self.first[0] = self.constant
        self.mean = self.first.copy()
        self.prior = self.shares @ self.starts[:, self.groups]
        self.covariance = np.diag(np.tile(self.prior, self.scores))
        # Means of the products of features, from which the lengths of directions follow.
        self.squares = self.reference.T @ self.reference / len(self.reference)

    @property
    def chance(self) -> Floats:
        """Chances of the reference rows by the mean."""
        return chances(self.reference @ self.mean)

    def bend(self) -> Floats:
        """Return by how much the residual of each reference row follows its scores."""
        chance = self.chance
        return np.asarray(weights(chance) * (chance * (1 - chance)).mean(axis=1))

    def design(self, noise: float) -> Floats:
        """Return the directions to measure next: those about which much is unknown.

        Several scores share directions; what is unknown is then a mean over them.

        Parameters
        ----------
        noise : float
            Variance of the noise of the next release.
        """
        n, size, bend = self.rows, len(self.groups), self.bend()
        blocks = self.covariance.reshape(self.scores, size, self.scores, size)
        unknown = np.einsum("cicj->ij", blocks) / self.scores
        root = _root(unknown + LEAST * np.eye(size))
        bent = self.reference * np.sqrt(bend)[:, None]
        # A matrix times its own transpose takes half the time of another product, and the products
        # with ``root`` are small.
        told = root.T @ (bent.T @ bent / len(bent)) @ root
        known, axes = _largest(told, most_directions(self.scores))
        kept = known > FLAT * known[-1]  # others vary by rounding alone
        known, axes = known[kept][::-1], root @ axes[:, kept][:, ::-1]
        lengths = (axes * (self.squares @ axes)).sum(axis=0) / known
        shares = _water(known, lengths, noise, n)
        kept = shares > 0
        return np.asarray(axes[:, kept] * np.sqrt(shares[kept] / known[kept]))

    def learn(self, release: NoisySum) -> None:
        """Take in one more release.

        Each view moves its variances to what the releases show. How well a view foretold them
        decides how much it is believed, and the coefficients are a mean over all views.
        """
        self.releases.append(release)
        for _ in range(ROUNDS):
            solver = _Solver(*self._linearised())
            priors, means, evidence = [], [], []
            for view in range(len(self.starts)):
                for update in range(UPDATES + 1):
                    prior = np.tile(self.variances[view, self.groups], self.scores)
                    mean, left, told = solver.solve(prior)
                    if update < UPDATES:
                        self._update_variances(view, mean, left)
                priors.append(prior)
                means.append(mean)
                evidence.append(told)
            self.shares = softmax(np.log(self.beliefs) + np.array(evidence))
            whole = self.shares @ np.stack(means)
            self.mean = self.first + whole.reshape(self.scores, -1).T
        self.prior = self.shares @ self.variances[:, self.groups]
        self.covariance = np.zeros((len(whole), len(whole)))
        for share, prior, mean in zip(self.shares, priors, means, strict=True):
            if share > LEAST:
                apart = mean - whole
                self.covariance += share * (solver.covariance(prior) + np.outer(apart, apart))

    def _linearised(self) -> tuple[Floats, Floats]:
        """Return all releases as linear measurements with noise of variance 1, at the mean."""
        now = self.chance
        slopes, gaps = [], []
        for release in self.releases:
            slope, gap, noise = self._line(release, now)
            root = cholesky(noise, lower=True, check_finite=False)
            slopes.append(solve_triangular(root, slope, lower=True, check_finite=False))
            gaps.append(solve_triangular(root, gap, lower=True, check_finite=False))
        return np.vstack(slopes), np.concatenate(gaps)

    def _line(self, release: NoisySum, now: Floats) -> tuple[Floats, Floats, Floats]:
        """Return one release as a linear measurement: slope, value at 0, and noise."""
        n, shown, scores = self.rows, release.shown, self.scores
        share, weight = n / len(shown), weights(release.chance)
        gap = weight[:, None] * (release.chance - now)
        count, size = shown.shape[1], len(self.groups)
        slope = np.empty((scores, count, scores, size))
        noise = np.empty((scores, count, scores, count))
        for one, other in itertools.combinations_with_replacement(range(scores), 2):
            bend = now[:, one] * ((one == other) - now[:, other])  # the same the other way round
            steep = -share * (shown * (weight * bend)[:, None]).T @ self.reference
            scatter = share * self.steps * weight**2 * bend
            scatter += share * (n / self.worth + 1) * gap[:, one] * gap[:, other]
            spread = (shown * scatter[:, None]).T @ shown
            slope[one, :, other] = slope[other, :, one] = steep
            noise[one, :, other] = noise[other, :, one] = spread
        flat = slope.reshape(scores * count, -1)
        whole = noise.reshape(scores * count, -1) + release.noise * np.eye(scores * count)
        told = share * (shown.T @ gap)
        value = (release.value - told).T.ravel() + flat @ (self.mean - self.first).T.ravel()
        return flat, value, whole

    def _update_variances(self, view: int, mean: Floats, left: Floats) -> None:
        """Move the variance of each group to what its coefficients show; not of the constant.

        Parameters
        ----------
        view : int
            Whose variances.
        mean, left : array of float
            Mean of the coefficients, and the variance that is left of each.
        """
        squares = (mean**2).reshape(self.scores, -1).sum(axis=0)
        left = left.reshape(self.scores, -1).sum(axis=0)
        for group in range(1, self.variances.shape[1]):
            inside = self.groups == group
            if not inside.any():  # a table without numbers, say
                continue
            # How many coefficients of the group the releases have determined.
            known = self.scores * np.count_nonzero(inside)
            known -= left[inside].sum() / self.variances[view, group]
            total = squares[inside].sum() + BELIEF * self.starts[view, group]
            found = total / (max(known, 0.0) + BELIEF)
            self.variances[view, group] = min(max(found, SMALLEST), LARGEST)


def constants_of(counts: Floats, noise: float, rows: int, variance: float) -> Floats:
    """Return constants of the scores that noisy counts of classes speak for.

    Parameters
    ----------
    counts : array of float
        Noisy numbers of rows: of the second of two classes, or of each of more.
    noise : float
        Variance of their noise.
    rows : int
        Number of private rows.
    variance : float
        Variance of the log odds of a class before anything is known.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.learners.kernel.posterior import constants_of
    >>> bool(-4.2 < constants_of(np.array([20.0]), 25.0, 1_000, 4.0)[0] < -3.6)
    True
    """
    odds = np.linspace(-12.0, 12.0, 961)
    chance = expit(odds)
    spread = noise + rows * chance * (1 - chance) + LEAST
    off = counts[:, None] - rows * chance
    fit = -(off**2 / spread + np.log(spread) + odds**2 / variance) / 2
    mean = np.asarray(softmax(fit, axis=1) @ odds)
    if len(counts) > 1:  # scores of classes, whose chances add up to 1
        mean = np.log(expit(mean))
        mean -= mean.mean()
    return mean


class _Solver:
    """A linear model with Gaussian noise of variance 1, solved for several priors.

    It works in the space of the measurements or of the coefficients, whichever is smaller.
    """

    def __init__(self, slopes: Floats, gaps: Floats) -> None:
        self.slopes, self.gaps = slopes, gaps
        count, size = slopes.shape
        self.dual = 2 * count**2 * size < size**3
        if not self.dual:
            self.told, self.pull = slopes.T @ slopes, slopes.T @ gaps

    def solve(self, prior: Floats) -> tuple[Floats, Floats, float]:
        """Return the mean of the coefficients, their variances, and the log of the evidence."""
        if self.dual:
            half, root = self._half(prior)
            gaps = solve_triangular(root, self.gaps, lower=True, check_finite=False)
            told = -0.5 * float(gaps @ gaps) - float(np.log(np.diag(root)).sum())
            return half.T @ gaps, prior - (half**2).sum(axis=0), told
        inverse, root = self._inverse(prior)
        mean = inverse @ self.pull
        told = 0.5 * float(self.pull @ mean) - float(np.log(np.diag(root)).sum())
        told -= 0.5 * float(self.gaps @ self.gaps + np.log(prior).sum())
        return mean, np.diag(inverse).copy(), told

    def covariance(self, prior: Floats) -> Floats:
        """Return the covariance of the coefficients."""
        if not self.dual:
            return self._inverse(prior)[0]
        half, _ = self._half(prior)
        found = -(half.T @ half)
        found[np.diag_indices(len(found))] += prior
        return found

    def _half(self, prior: Floats) -> tuple[Floats, Floats]:
        scaled = self.slopes * prior
        whole = scaled @ self.slopes.T
        whole[np.diag_indices(len(whole))] += 1.0
        root = cholesky(whole, lower=True, check_finite=False)
        return solve_triangular(root, scaled, lower=True, check_finite=False), root

    def _inverse(self, prior: Floats) -> tuple[Floats, Floats]:
        whole = self.told.copy()
        whole[np.diag_indices(len(whole))] += 1 / prior
        root = cholesky(whole, lower=True, check_finite=False)
        found, _ = dpotri(root, lower=1)
        lower = np.tril(found)
        return lower + np.tril(lower, -1).T, root


def _root(matrix: Floats) -> Floats:
    """Return a matrix whose product with its own transpose is a covariance."""
    try:
        return np.asarray(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:  # rounding left a direction with less than nothing
        values, vectors = np.linalg.eigh(matrix)
        return np.asarray(vectors * np.sqrt(np.maximum(values, LEAST)))


def _largest(matrix: Floats, most: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues of a symmetric matrix, upwards, and their vectors."""
    size = len(matrix)
    if size <= 4 * most:  # then it takes less time to find all of them
        values, vectors = eigh(matrix, driver="evd", check_finite=False)
        return values[-most:], vectors[:, -most:]
    values, vectors = eigh(matrix, subset_by_index=(size - most, size - 1), check_finite=False)
    return values, vectors


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
