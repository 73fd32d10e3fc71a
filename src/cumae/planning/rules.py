"""Rules that a public sample leaves open, drawn from a Gaussian process of few columns at a time.

A rule is a score for each row; its normal distribution function is the chance of class 1. Scores
are believed to be a sum of functions of one, two and three columns (Duvenaud, Nickisch, Rasmussen:
Additive Gaussian Processes, 2011). How much each column counts, how rough the functions are, and
how much two or three columns count together, is what makes the labels of the sample most likely.
What these labels then say about the scores is computed by expectation propagation (Rasmussen,
Williams: Gaussian Processes for Machine Learning, 2006, section 3.6).

Functions of several out of many columns hardly have anything in common in any two rows. Labels
cannot tell such a score from chance, and nobody who learns from other rows can. So what a score has
in common with the scores of no other row is taken out of it, and counts as chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, lapack, solve_triangular
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr

from cumae.arrays import Floats, Integers
from cumae.data import INDICATOR, Columns
from cumae.randomness import SeededSource, discrete_gaussian

Small = NDArray[np.float32]

GRID = 2**20  # steps of a normal number
HUGE = 1e150  # its square is a float
WIDEST = 3.0  # standard deviations beyond which a value is pulled in
# Widths of slow and fast curves, as shares of the ranks: over the whole column such curves cross
# their mean about once, or three times.
WIDTHS = (0.4, 0.12)
ORDERS = 3  # columns that count together, at most
# Variance of labels that functions of one, two and three columns explain: small for pairs and
# triples, so that they count if labels show it; SPREADS lets them grow by a factor of seven at
# little cost. Picked by hand on made-up tables; 0.1 and 0.05 did hardly worse.
USUAL = (0.3, 0.03, 0.003)
# How far weights of columns, shapes and orders may be off, as logarithms: by a factor of three for
# columns, of which there are many, so that some seem to count by chance; by one of seven for the
# few shapes and orders.
SPREADS = (1.0, 2.0, 2.0)
STEPS = 15  # of the search for what is most likely; more change nothing
MOST_CELLS = 40_000_000  # numbers that the search holds at once
LEARNT = 500  # rows that it looks at
CONSTANT = 4.0  # variance of the score that all rows share
# Variance that scores seldom exceed, and how far its logarithm may do so. With 1.3, best answers
# are right in 77 of 100 cases if both classes are as frequent. Without a limit, a few labels that
# can be told apart by chance would make rules sure of everything.
SCORES = (1.3, 0.7)
JITTER = 1e-4  # so that equal rows have an inverse
# Sweeps of expectation propagation, and what each keeps of the one before: all labels change at
# once, and with nothing kept they may swing to and fro for ever.
SWEEPS, KEPT = 25, 0.2


def draw_rules(
    columns: Columns, table: Floats, labels: Integers, count: int, source: SeededSource
) -> Floats:
    """Draw chances of class 1 for each row, by each of some rules.

    Rules come in pairs, one after the other, as in ``draw_around``.

    Parameters
    ----------
    columns : Columns
        What the columns hold.
    table : array of float
        Encoded rows.
    labels : array of int
        Their labels, 0 and 1.
    count : int
        How many rules; an even number.
    source : SeededSource
        Where coins come from; rules are for public rows, which need no protection.
    """
    blocks = _blocks(columns, table)
    covariance = _covariance(blocks, labels)
    sizes = SCORES[0] * 3.0 ** np.arange(-4, 3)
    found = [_posterior(size * covariance, labels).evidence for size in sizes]
    beyond = np.maximum(np.log(sizes / SCORES[0]), 0.0) / SCORES[1]
    logs = np.array(found) - beyond**2 / 2
    weights = np.exp(logs - logs.max())
    likely = math.exp(float(np.average(np.log(sizes), weights=weights)))
    prior = likely * covariance
    best = _posterior(prior, labels)
    return _chances(draw_around(best.mean, best.covariance, count, source), prior)


def draw_around(mean: Floats, covariance: Floats, count: int, source: SeededSource) -> Floats:
    """Draw scores from a normal distribution.

    Draws come in pairs, as far above the mean as below it, so that few of them stand for all. The
    two of a pair follow each other, so that the first few are pairs as well.

    Parameters
    ----------
    mean, covariance : array of float
        Of the scores of all rows.
    count : int
        How many draws; an even number.
    source : SeededSource
        Where coins come from.
    """
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    coins = _normal(count // 2 * len(values), source).reshape(count // 2, -1)
    moved = (coins * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return np.asarray(mean + np.stack([moved, -moved], axis=1).reshape(-1, len(values)))


def _normal(count: int, source: SeededSource) -> Floats:
    """Return normal numbers for simulations, as whole numbers on a fine grid."""
    return np.asarray(discrete_gaussian(GRID, count, source) / GRID)


# How alike rows are in one column


@dataclass(frozen=True)
class _Block:
    """One column as it was encoded: numbers, and marks of 0 and 1."""

    numbers: Floats
    marks: Floats

    def alike(self) -> Floats:
        """Return by three shapes how alike each two rows are: lines, slow and fast curves."""
        count = len(self.numbers)
        found = np.zeros((1 + len(WIDTHS), count, count))
        for column in np.clip(self.numbers.T, -HUGE, HUGE):
            spread = float(column.std())
            if spread == 0:
                continue
            line = np.clip((column - column.mean()) / spread, -WIDEST, WIDEST)
            values, places, counts = np.unique(column, return_inverse=True, return_counts=True)
            ranks = ((np.cumsum(counts) - counts / 2) / count)[places]
            found[0] += _centred(np.outer(line, line))
            for shape, width in enumerate(WIDTHS, 1):
                far = (ranks[:, None] - ranks) / width
                curve = np.exp(-(far**2) / 2) if len(values) > 2 else np.outer(line, line)
                found[shape] += _centred(curve)
        if self.marks.shape[1]:
            found += _centred(self.marks @ self.marks.T)
        return found


def _blocks(columns: Columns, table: Floats) -> list[_Block]:
    found, place = [], 0
    for column in columns.columns:
        places = np.arange(place, place + len(column.encoded))
        marked = np.array([columns.bounds[one] == INDICATOR for one in places], dtype=bool)
        found.append(_Block(table[:, places[~marked]], table[:, places[marked]]))
        place += len(places)
    return found


def _centred(alike: Floats) -> Floats:
    """Return it for functions with mean 0 and, on the mean over rows, a variance of 1."""
    alike = alike - alike.mean(axis=0)
    alike = alike - alike.mean(axis=1, keepdims=True)
    size = float(np.trace(alike)) / len(alike)
    return np.asarray(alike / size if size > 1e-9 else np.zeros_like(alike))


# Which columns, shapes and orders matter


def _covariance(blocks: list[_Block], labels: Integers) -> Floats:
    """Return the covariance of scores under which the labels of the first rows are most likely.

    On the mean over rows, scores have a variance of 1.
    """
    most = math.isqrt(2 * MOST_CELLS // (len(blocks) * (1 + len(WIDTHS))))
    first = slice(0, min(LEARNT, most))
    search = _Search.of([_Block(one.numbers[first], one.marks[first]) for one in blocks])
    target = labels[first] - labels[first].mean()
    if target.std() > 0:
        search.run(target / target.std())
    count = len(labels)
    sums = np.zeros((ORDERS, count, count))
    for block, weight in zip(blocks, search.weights, strict=True):
        _add(sums, weight * np.tensordot(search.shapes, block.alike(), 1))
    found = np.tensordot(search.orders, sums, 1)
    return np.asarray(found / (np.trace(found) / count or 1.0))


def _add(sums: Any, alike: Any) -> None:
    """Add a column to the sums of products of one, two and three columns."""
    sums[2] += alike * sums[1]
    sums[1] += alike * sums[0]
    sums[0] += alike


class _Search:
    """A search for weights, by the evidence of a regression on the labels and its gradient.

    Only one of two equal halves of each symmetric matrix is held.
    """

    def __init__(self, alike: Small, count: int) -> None:
        self.alike, self.count = alike, count
        self.rows, self.others = np.tril_indices(count)
        self.n_shapes, self.n_columns = alike.shape[:2]
        self.usual = np.concatenate(
            [np.zeros(self.n_columns + self.n_shapes), np.log(USUAL), [np.log(0.7)]]
        )
        numbers = (self.n_columns, self.n_shapes, ORDERS)
        self.spreads = np.append(np.repeat(SPREADS, numbers), np.inf)
        self.found = self.usual

    @classmethod
    def of(cls, blocks: list[_Block]) -> _Search:
        count = len(blocks[0].numbers)
        rows, others = np.tril_indices(count)
        alike = [block.alike()[:, rows, others].astype(np.float32) for block in blocks]
        return cls(np.ascontiguousarray(np.stack(alike, axis=1)), count)

    @property
    def weights(self) -> Floats:
        """The weight of each column."""
        return np.asarray(np.exp(self.found[: self.n_columns]))

    @property
    def shapes(self) -> Floats:
        """The share of each shape."""
        logs = self.found[self.n_columns : self.n_columns + self.n_shapes]
        powers = np.exp(logs - logs.max())
        return np.asarray(powers / powers.sum())

    @property
    def orders(self) -> Floats:
        """The variance of functions of one, two and three columns, for each such set of columns."""
        counts = [max(1, math.comb(self.n_columns, size)) for size in range(1, ORDERS + 1)]
        return np.asarray(np.exp(self.found[-1 - ORDERS : -1]) / counts)

    def run(self, target: Floats) -> None:
        """Find weights; ``target`` has mean 0 and variance 1."""
        bounds = [(-8.0, 4.0)] * (len(self.usual) - 1) + [(-4.0, 1.0)]
        self.found = minimize(
            self.loss,
            self.usual,
            (target,),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": STEPS},
        ).x

    def loss(self, found: Floats, target: Floats) -> tuple[float, Floats]:
        """Return how unlikely the labels are, with such weights, and its gradient."""
        self.found = found
        shapes, weights, orders = self.shapes, self.weights, self.orders.astype(np.float32)
        flat = shapes.astype(np.float32) @ self.alike.reshape(self.n_shapes, -1)
        each = flat.reshape(self.n_columns, -1) * weights.astype(np.float32)[:, None]
        sums = np.zeros((ORDERS, each.shape[1]), np.float32)
        for one in each:
            _add(sums, one)
        noise = math.exp(found[-1])
        try:
            slope, evidence, trace = self._evidence(orders @ sums, noise, target)
        except np.linalg.LinAlgError:  # weights so large that rounding is: a step too far
            return 1e10, np.zeros_like(found)
        gradient = np.zeros_like(found)
        gradient[-1 - ORDERS : -1] = orders * (sums @ slope)
        gradient[-1] = noise * trace
        by_shape = np.zeros(self.n_shapes)
        for place, one in enumerate(each):
            rest = sums[0] - one
            through = (orders[0] + orders[1] * rest + orders[2] * (sums[1] - one * rest)) * slope
            gradient[place] = through @ one
            by_shape += weights[place] * (self.alike[:, place] @ through)
        gradient[self.n_columns : -1 - ORDERS] = shapes * (by_shape - shapes @ by_shape)
        away = (found - self.usual) / self.spreads
        return float(away @ away / 2 - evidence), away / self.spreads - gradient

    def _evidence(self, flat: Small, noise: float, target: Floats) -> tuple[Small, float, float]:
        """Return the slope in each entry of the matrix, the evidence, and the slope in the noise.

        An entry beside the diagonal stands for two.
        """
        matrix = np.zeros((self.count, self.count))
        matrix[self.rows, self.others] = flat + 1.0
        matrix[np.diag_indices(self.count)] += noise + JITTER
        root, failed = lapack.dpotrf(matrix, lower=1)
        if failed:
            raise np.linalg.LinAlgError
        solved = lapack.dpotrs(root, target, lower=1)[0]
        evidence = float(-target @ solved / 2 - np.log(np.diag(root)).sum())
        inverse = lapack.dpotri(root, lower=1)[0]
        slope = (solved[self.rows] * solved[self.others] - inverse[self.rows, self.others]) / 2
        own = self.rows == self.others
        return (
            (np.where(own, 1.0, 2.0) * slope).astype(np.float32),
            evidence,
            float(slope[own].sum()),
        )


# What the labels say about scores


@dataclass(frozen=True)
class _Scores:
    """Mean and covariance of the scores of all rows, and how likely the labels are."""

    mean: Floats
    covariance: Floats
    evidence: float


def _posterior(prior: Floats, labels: Integers) -> _Scores:
    """Return what is known about scores after the labels were seen, by expectation propagation."""
    prior = _with_shared_score(prior)
    signs = 2.0 * labels - 1
    # Each label is seen as a normal measurement that changes its score as much as the label does.
    precision, shift = np.zeros(len(signs)), np.zeros(len(signs))
    before = -math.inf
    for _ in range(SWEEPS):
        root = np.sqrt(precision)
        lower = cholesky(np.eye(len(signs)) + root[:, None] * prior * root, lower=True)
        part = solve_triangular(lower, root[:, None] * prior, lower=True)
        mean = prior @ shift - part.T @ (part @ shift)
        variance = np.diag(prior) - (part**2).sum(axis=0)
        others = np.maximum(1 / variance - precision, 1e-9)  # what all other labels say
        centre = (mean / variance - shift) / others
        wide = np.sqrt(1 + 1 / others)
        place = signs * centre / wide
        logs = log_ndtr(place)
        both = precision + others
        evidence = (
            logs.sum() + np.log1p(precision / others).sum() / 2 - np.log(np.diag(lower)).sum()
        )
        evidence += (shift @ mean - (shift**2 / both).sum()) / 2
        evidence += (centre * others / both * (precision * centre - 2 * shift)).sum() / 2
        if abs(evidence - before) < 0.02:
            break
        before = evidence
        ratio = np.exp(-(place**2) / 2 - logs) / math.sqrt(2 * math.pi)
        matched = 1 / others - ratio * (place + ratio) / (others * wide) ** 2
        moved = centre + signs * ratio / (others * wide)
        wanted = np.maximum(1 / matched - others, 1e-9)
        shift = KEPT * shift + (1 - KEPT) * (moved / matched - centre * others)
        precision = KEPT * precision + (1 - KEPT) * wanted
    return _Scores(mean, prior - part.T @ part, float(evidence))


def _with_shared_score(prior: Floats) -> Floats:
    """Return the covariance of scores to which a score is added that all rows share."""
    return np.asarray(prior + CONSTANT + JITTER * np.eye(len(prior)))


def _chances(scores: Floats, prior: Floats) -> Floats:
    """Return chances of class 1, by what the score of each row has in common with other rows.

    That is its mean given all other scores of the rule (Rasmussen, Williams, section 5.4.2). The
    rest cannot be learnt from other rows, and counts as chance: its variance is added to that of
    the labels.
    """
    inverse = np.linalg.inv(_with_shared_score(prior))
    alone = 1 / np.diag(inverse)  # variance of a score, given all others
    expected = scores - (scores @ inverse) * alone
    return np.asarray(ndtr(expected / np.sqrt(1 + alone)))
