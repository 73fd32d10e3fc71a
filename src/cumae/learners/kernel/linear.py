"""Linear models with Gaussian noise, and what they leave unknown.

Tables of some thousand features and some hundred measurements are common here. So an unknown
covariance is kept as what was known before, less a few products, and nothing takes the cube of the
number of features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cholesky, eigh, qr, solve_triangular
from scipy.linalg.lapack import dpotri

from cumae.arrays import Floats, Integers

SMALLEST_VARIANCE = 1e-9
MANY = 1_500  # rows of a matrix from which on a few products take less time
SPARE = 24  # directions beside those that are looked for
UPDATES = 30  # of how many correlations are more than noise, and of their size
TINY = 1e-9  # instead of 0, to divide by
PASSES = 4  # that look for the largest directions


@dataclass(frozen=True)
class Covariance:
    """A covariance: what was known before, plus a matrix or some products.

    Parameters
    ----------
    prior : array of float
        The diagonal of what was known before.
    rows : array of float
        Their products with themselves are taken off.
    signs : array of float
        For each row, 1 if its product is taken off, and -1 if it is added.
    more : array of float or None
        A matrix that is added.
    """

    prior: Floats
    rows: Floats
    signs: Floats
    more: Floats | None = None

    @classmethod
    def of(cls, prior: Floats) -> Covariance:
        """Return what is unknown before anything is measured."""
        return cls(prior, np.zeros((0, len(prior))), np.zeros(0))

    @classmethod
    def whole(cls, prior: Floats, covariance: Floats) -> Covariance:
        """Return a covariance that is known as a matrix.

        Parameters
        ----------
        prior : array of float
            The diagonal of what was known before.
        covariance : array of float
            The matrix.
        """
        nothing = cls.of(prior)
        return replace(nothing, more=covariance - np.diag(prior))

    @classmethod
    def mixture(cls, shares: Floats, parts: list[Covariance], apart: list[Floats]) -> Covariance:
        """Return the covariance of several beliefs, which may be apart.

        Parameters
        ----------
        shares : array of float
            How much each is believed.
        parts : list of Covariance
            Their covariances.
        apart : list of array
            How far each is from the mean of all.
        """
        prior = sum(share * one.prior for share, one in zip(shares, parts, strict=True))
        roots = np.sqrt(shares)
        scaled = [root * one.rows for root, one in zip(roots, parts, strict=True)]
        off = roots[:, None] * np.stack(apart)
        dense = [
            share * one.more
            for share, one in zip(shares, parts, strict=True)
            if one.more is not None
        ]
        signs = [one.signs for one in parts]
        return cls(
            np.asarray(prior),
            np.vstack([*scaled, off]),
            np.concatenate([*signs, -np.ones(len(off))]),
            np.asarray(sum(dense)) if dense else None,
        )

    def dense(self) -> Floats:
        """Return the covariance as a matrix."""
        found = -(self.rows.T * self.signs) @ self.rows
        found[np.diag_indices(len(found))] += self.prior
        return found if self.more is None else np.asarray(found + self.more)

    def between(self, table: Floats, scores: int) -> Floats:
        """Return the covariances between rows of features, on the mean over scores.

        Parameters
        ----------
        table : array of float
            Rows of features.
        scores : int
            How many scores the coefficients belong to.
        """
        size = table.shape[1]
        found = (table * self.prior.reshape(scores, size).mean(axis=0)) @ table.T
        for score in range(scores):
            own = slice(score * size, (score + 1) * size)
            seen = table @ self.rows[:, own].T
            found -= (seen * (self.signs / scores)) @ seen.T
            if self.more is not None:
                found += table @ (self.more[own, own] / scores) @ table.T
        return np.asarray(found)

    def times(self, vectors: Floats, scores: int) -> Floats:
        """Return products with vectors of features, on the mean over scores.

        Parameters
        ----------
        vectors : array of float
            One vector a column.
        scores : int
            As above.
        """
        size = len(vectors)
        found = self.prior.reshape(scores, size).mean(axis=0)[:, None] * vectors
        for score in range(scores):
            own = slice(score * size, (score + 1) * size)
            seen = self.rows[:, own] @ vectors
            found -= self.rows[:, own].T @ (seen * (self.signs / scores)[:, None])
            if self.more is not None:
                found += self.more[own, own] @ vectors / scores
        return np.asarray(found)

    def axes(self, most: int) -> tuple[Floats, Floats]:
        """Return columns and signs whose products make up most of what the prior lost.

        Parameters
        ----------
        most : int
            Number of columns.
        """
        if self.more is not None or len(self.rows) >= len(self.prior):
            values, vectors = np.linalg.eigh(np.diag(self.prior) - self.dense())
        else:
            base, corner = qr(self.rows.T, mode="economic", check_finite=False)
            values, inner = np.linalg.eigh((corner * self.signs) @ corner.T)
            vectors = base @ inner
        kept = np.argsort(-np.abs(values))[:most]
        return vectors[:, kept] * np.sqrt(np.abs(values[kept])), np.sign(values[kept])


class Solver:
    """A linear model with Gaussian noise of variance 1, solved for several priors.

    It works in the space of the measurements or of the coefficients, whichever is smaller.

    Parameters
    ----------
    slopes, gaps : array of float
        Measurements: how they depend on the coefficients, and their values.
    groups : array of int
        The group of each coefficient.
    n_groups : int
        How many groups there are; some may be empty.
    """

    def __init__(self, slopes: Floats, gaps: Floats, groups: Integers, n_groups: int) -> None:
        self.slopes, self.gaps, self.groups = slopes, gaps, groups
        count, size = slopes.shape
        self.dual = count < size
        if not self.dual:
            self.information, self.pull = slopes.T @ slopes, slopes.T @ gaps
            return
        self.grams = []
        for group in range(n_groups):
            inside = slopes[:, groups == group]
            self.grams.append(inside @ inside.T)

    def by_groups(self, variances: Floats) -> tuple[Floats, Floats]:
        """Return what a prior of one variance for each group makes of the groups.

        Parameters
        ----------
        variances : array of float
            Of each group.

        Returns
        -------
        array of float
            The sum of the squared means of each group.
        array of float
            How many coefficients of each group the measurements have determined.
        """
        if not self.dual:
            found = self.solve(variances[self.groups])
            return (
                by_group(self.groups, found.mean**2, len(variances)),
                by_group(self.groups, found.known(), len(variances)),
            )
        root = self._factor(variances)
        gaps = _inverse_times(root, self.gaps)
        inverse = _inverse(root)
        each = list(zip(variances.tolist(), self.grams, strict=True))
        return (
            np.array([variance**2 * float(gaps @ gram @ gaps) for variance, gram in each]),
            np.array([variance * float(np.vdot(inverse, gram)) for variance, gram in each]),
        )

    def _factor(self, variances: Floats) -> Floats:
        whole = np.eye(len(self.gaps))
        for variance, gram in zip(variances, self.grams, strict=True):
            whole += variance * gram
        return cholesky(whole, lower=True, check_finite=False, overwrite_a=True)

    def solve(self, prior: Floats) -> Solved:
        """Return what the measurements say, for one prior.

        Parameters
        ----------
        prior : array of float
            Variance of each coefficient before.
        """
        if self.dual:
            scaled = self.slopes * prior
            whole = scaled @ self.slopes.T
            whole[np.diag_indices(len(whole))] += 1.0
            root = cholesky(whole, lower=True, check_finite=False)
            half = solve_triangular(root, scaled, lower=True, check_finite=False)
            gaps = solve_triangular(root, self.gaps, lower=True, check_finite=False)
            evidence = -0.5 * float(gaps @ gaps) - float(np.log(np.diag(root)).sum())
            return Solved(prior, half.T @ gaps, evidence, half, None)
        whole = self.information.copy()
        whole[np.diag_indices(len(whole))] += 1 / prior
        root = cholesky(whole, lower=True, check_finite=False)
        inverse = _inverse(root)
        mean = inverse @ self.pull
        evidence = 0.5 * float(self.pull @ mean) - float(np.log(np.diag(root)).sum())
        evidence -= 0.5 * float(self.gaps @ self.gaps + np.log(prior).sum())
        return Solved(prior, mean, evidence, np.zeros((0, len(prior))), inverse)


@dataclass(frozen=True)
class Solved:
    """Coefficients as measurements find them, for one prior.

    Parameters
    ----------
    prior : array of float
        Variance of each coefficient before.
    mean : array of float
        Mean of the coefficients.
    evidence : float
        Logarithm of the evidence.
    half : array of float
        The covariance is the prior less the products of these rows with themselves,
    inverse : array of float or None
        or this matrix, if there is one.
    """

    prior: Floats
    mean: Floats
    evidence: float
    half: Floats
    inverse: Floats | None

    def known(self) -> Floats:
        """Return for each coefficient which share of its variance is gone."""
        if self.inverse is None:
            return np.asarray(np.einsum("ij,ij->j", self.half, self.half) / self.prior)
        return np.asarray(1 - np.diag(self.inverse) / self.prior)

    def spread(self) -> Covariance:
        """Return the covariance."""
        if self.inverse is None:
            return Covariance(self.prior, self.half, np.ones(len(self.half)))
        return Covariance.whole(self.prior, self.inverse)

    def blocks(self, places: Integers, scale: Floats) -> tuple[Floats, Floats]:
        """Return what is known about blocks of coefficients, if nothing else changes.

        Parameters
        ----------
        places : array of int
            Coefficients of each block, one row for each.
        scale : array of float
            Standard deviations that coefficients are divided by.

        Returns
        -------
        array of float
            For each block the slopes of its coefficients, times their transpose, weighed by the
            inverse of the covariance of the measurements.
        array of float
            The same of slopes and values.
        """
        scale, prior = scale[places], self.prior[places]
        shrink = scale / prior
        if self.inverse is None:
            inside = self.half[:, places].transpose(1, 2, 0) * shrink[:, :, None]
            gram = inside @ inside.transpose(0, 2, 1)
        else:
            inside = self.inverse[places[:, :, None], places[:, None, :]]
            gram = -inside * shrink[:, :, None] * shrink[:, None, :]
            gram[:, range(places.shape[1]), range(places.shape[1])] += scale * shrink
        return gram, shrink * self.mean[places]


def evidence_of_scales(
    slopes: Floats, gaps: Floats, apart: Floats, prior: Floats, scales: tuple[float, ...]
) -> list[float]:
    """Return the logarithm of the evidence for slopes that are so many times as steep.

    Parameters
    ----------
    slopes, gaps : array of float
        Measurements with noise of variance 1: how they depend on coefficients, and their values.
    apart : array of float
        What of the values follows from the slopes, and grows with them.
    prior : array of float
        Variance of each coefficient before.
    scales : tuple of float
        How many times.
    """
    half, found = slopes * np.sqrt(prior), []
    dual = half.shape[0] < half.shape[1]
    inside = half @ half.T if dual else half.T @ half
    for scale in scales:
        values = gaps + (scale - 1) * apart
        root = cholesky(scale**2 * inside + np.eye(len(inside)), lower=True, check_finite=False)
        pull = values if dual else scale * (values @ half)
        solved = solve_triangular(root, pull, lower=True, check_finite=False)
        square = float(solved @ solved)
        misfit = square if dual else float(values @ values) - square
        found.append(-misfit / 2 - float(np.log(np.diag(root)).sum()))
    return found


def largest(matrix: Floats, most: int) -> tuple[Floats, Floats]:
    """Return about the largest eigenvalues of a symmetric matrix, upwards, and their vectors.

    Of large matrices they are found by a few products. Vectors are then mixed where values are
    nearly the same.

    Parameters
    ----------
    matrix : array of float
        Without negative eigenvalues.
    most : int
        How many are looked for.
    """
    size = len(matrix)
    if size <= 4 * most:  # then it takes less time to find all of them
        values, vectors = eigh(matrix, driver="evd", check_finite=False)
        return values[-most:], vectors[:, -most:]
    if size < MANY:
        last = (size - most, size - 1)
        values, vectors = eigh(matrix, subset_by_index=last, check_finite=False)
        return values, vectors
    # Columns of the matrix, spread over it, are a start that leans the right way.
    found: Floats = matrix[:, np.linspace(0, size - 1, most + SPARE).astype(np.int64)]
    for _ in range(PASSES):
        found = np.asarray(matrix @ qr(found, mode="economic", check_finite=False)[0])
    base = qr(found, mode="economic", check_finite=False)[0]
    values, inner = eigh(base.T @ (matrix @ base), driver="evd", check_finite=False)
    return values[-most:], base @ inner[:, -most:]


def by_group(groups: Integers, numbers: Floats, count: int) -> Floats:
    """Return the sum of the numbers of each group.

    Parameters
    ----------
    groups : array of int
        The group of each number.
    numbers : array of float
        The numbers.
    count : int
        How many groups there are.
    """
    return np.bincount(groups, numbers, count).astype(np.float64)


def likely_correlations(measured: Floats, lengths: Floats, noise: float) -> Floats:
    """Return what correlations are likely to be, given noisy ones.

    Columns may go together along a few directions, of which all columns tell, or pair by pair. What
    is beyond the largest eigenvalue of noise is taken for the first. What is left of a pair is
    noise, or more than noise: how often, and how much more, follows from all pairs.

    Parameters
    ----------
    measured : array of float
        Noisy correlations.
    lengths : array of float
        The noise of a pair is the noise times the lengths of both.
    noise : float
        As said.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.learners.kernel.linear import likely_correlations
    >>> measured = np.array([[1.0, 0.8, 0.1], [0.8, 1.0, -0.1], [0.1, -0.1, 1.0]])
    >>> np.round(likely_correlations(measured, np.ones(3), 0.3), 1) + 0.0
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    measured = measured - np.diag(np.diag(measured))
    if not noise > 0 or len(measured) < 2:
        return np.asarray(measured + np.eye(len(measured)))
    alike = measured / np.outer(lengths, lengths)
    values, vectors = np.linalg.eigh(alike)
    edge = 2 * noise * math.sqrt(len(measured))  # of the eigenvalues of noise
    beyond = np.sqrt(np.maximum(values**2 - edge**2, 0.0))
    kept = np.where(np.abs(values) > edge, (values + np.sign(values) * beyond) / 2, 0.0)
    along = (vectors * kept) @ vectors.T * np.outer(lengths, lengths)
    np.fill_diagonal(along, 0.0)
    upper = np.triu_indices(len(measured), 1)
    left, error = (measured - along)[upper] ** 2, (noise * np.outer(lengths, lengths))[upper] ** 2
    share, more = 0.1, max(float(np.mean(np.maximum(left - error, 0.0))), TINY) / 0.1
    for _ in range(UPDATES):
        whole = error + more
        ratio = share / (1 - share) * np.sqrt(error / whole)
        ratio = ratio * np.exp(np.minimum(left * more / (2 * error * whole), 700.0))
        likely = ratio / (1 + ratio)
        share = min(max(float(likely.mean()), TINY), 0.95)
        pull = more / whole
        power = likely * (pull**2 * left + pull * error)
        more = max(float(power.sum() / max(likely.sum(), TINY)), TINY)
    found = along.copy()
    found[upper] += (measured - along)[upper] * likely * more / (error + more)
    lower = np.triu(found, 1)
    return np.asarray(lower + lower.T + np.eye(len(measured)))


def root_of(matrix: Floats) -> Floats:
    """Return a matrix whose product with its own transpose is a covariance."""
    try:
        return np.asarray(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:  # rounding left a direction with less than nothing
        values, vectors = np.linalg.eigh(matrix)
        return np.asarray(vectors * np.sqrt(np.maximum(values, SMALLEST_VARIANCE)))


def _inverse(root: Floats) -> Floats:
    found, _ = dpotri(root, lower=1)
    lower = np.tril(found)
    return np.asarray(lower + np.tril(lower, -1).T)


def _inverse_times(root: Floats, vector: Floats) -> Floats:
    half = solve_triangular(root, vector, lower=True, check_finite=False)
    return np.asarray(solve_triangular(root, half, lower=True, trans=1, check_finite=False))
