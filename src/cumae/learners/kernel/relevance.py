"""Which columns matter: each may have a spread of its own, by what the releases say of it.

A column has a scale, which the variances of its coefficients are multiplied by. A scale is one of
a few; how frequent each of them is among the columns is found together with the scales. So a table
of which few columns matter is distinguished from one where all do, from released numbers alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from cumae.arrays import Floats, Integers
from cumae.learners.kernel.linear import Covariance, Solved

VARIANCES = 4.0 ** np.arange(-5, 3)  # of the log odds by one column, as far as it matters
TOTAL = 2.0  # variance of the log odds by all columns, before anything is known
MOST_LIKELY = 0.1  # share of columns of one scale at most, but 0, before anything is known
BELIEF = 4.0  # columns that the first guess of their shares is worth
LARGEST_BLOCK = 64  # coefficients of a column; of more, each says little about the others
SMALL = 0.03  # a coefficient
NONE = 1e-9  # taken for 0


@dataclass
class Relevance:
    """The scales of columns, as far as they are known.

    Parameters
    ----------
    owners : array of int
        The column of each coefficient, or -1 where it belongs to none.
    """

    owners: Integers

    def __post_init__(self) -> None:
        columns = np.unique(self.owners[self.owners >= 0])
        places = [np.flatnonzero(self.owners == column) for column in columns]
        places = [one for one in places if len(one) <= LARGEST_BLOCK]
        # Blocks of the same size are worked on together.
        self.blocks = [
            np.stack([one for one in places if len(one) == size])
            for size in sorted({len(one) for one in places})
        ]
        count = max(1, len(places))
        self.grid = np.append(NONE, VARIANCES * count)
        share = np.minimum(TOTAL / (len(VARIANCES) * self.grid[1:]), MOST_LIKELY)
        self.first = np.append(1 - share.sum(), share)
        self.weights = self.first.copy()
        self.likely = [np.tile(self.weights, (len(one), 1)) for one in self.blocks]
        self.scales = [one @ self.grid for one in self.likely]
        self._spread()

    def _spread(self) -> None:
        self.factors = np.ones(len(self.owners))
        for places, scale in zip(self.blocks, self.scales, strict=True):
            self.factors[places] = scale[:, None]

    @property
    def idle_pairs(self) -> float:
        """The share of pairs of columns of which none matters, as far as it is known."""
        return float(self.weights[0]) ** 2

    def look(self, solved: Solved, variances: Floats) -> Tilted:
        """Return what the measurements say about each column, if all others stay as they are.

        Parameters
        ----------
        solved : Solved
            What the measurements say, with the scales so far.
        variances : array of float
            Of each coefficient, at a scale of 1.
        """
        mean, evidence = solved.mean.copy(), solved.evidence
        # Guesses of the shares that are far from the first one are less likely.
        evidence += BELIEF * float(self.first @ np.log(self.weights / self.first))
        apart, likely = [], []
        deviations = np.sqrt(variances)
        for places, scale in zip(self.blocks, self.scales, strict=True):
            gram, pull = solved.blocks(places, deviations)
            values, axes = np.linalg.eigh(gram)
            along = np.einsum("kij,ki->kj", axes, pull)[:, None]
            moved = (self.grid - scale[:, None])[:, :, None]
            left = np.maximum(1 + moved * np.maximum(values, 0.0)[:, None], NONE)
            fit = ((moved * along**2 / left) - np.log(left)).sum(axis=2) / 2
            fit += np.log(self.weights)
            whole = logsumexp(fit, axis=1)
            chance = np.exp(fit - whole[:, None])
            means = self.grid[:, None] * along / left
            middle = np.einsum("ks,ksi->ki", chance, means)
            off = np.einsum("ks,ksi->k", chance, (means - middle[:, None]) ** 2)
            found = np.einsum("kij,kj->ki", axes, middle) * deviations[places]
            mean[places] = found
            evidence += float(whole.sum())
            likely.append(chance)
            size = np.sqrt(off / np.maximum((middle**2).sum(axis=1), NONE**2))
            apart.append(found * size[:, None])
        return Tilted(mean, evidence, apart, likely)

    def spread(self, solved: Solved, found: Tilted) -> Covariance:
        """Return what is left unknown about all coefficients, and about scales.

        Parameters
        ----------
        solved, found : Solved, Tilted
            What measurements say with fixed scales, and what follows for scales.
        """
        whole, rows = solved.spread(), found.rows(self.blocks, SMALL)
        signs = np.concatenate([whole.signs, -np.ones(len(rows))])
        return replace(whole, rows=np.vstack([whole.rows, rows]), signs=signs)

    def move(self, found: Tilted) -> None:
        """Move scales and their shares to what was found.

        Parameters
        ----------
        found : Tilted
            What ``look`` returned.
        """
        total = BELIEF * self.first + sum(one.sum(axis=0) for one in found.likely)
        self.weights = np.maximum(total / total.sum(), NONE)
        self.likely = found.likely
        self.scales = [one @ self.grid for one in self.likely]
        self._spread()


@dataclass(frozen=True)
class Tilted:
    """Coefficients as measurements find them, of columns that each have one of several scales.

    Parameters
    ----------
    mean : array of float
        Mean of the coefficients.
    evidence : float
        Logarithm of the evidence.
    apart : list of array
        For blocks of the same size, how far their means are apart for different scales.
    likely : list of array
        How likely each scale is for each block.
    """

    mean: Floats
    evidence: float
    apart: list[Floats]
    likely: list[Floats]

    def rows(self, blocks: list[Integers], least: float) -> Floats:
        """Return rows whose products tell how much is unknown because scales are.

        Parameters
        ----------
        blocks : list of array of int
            Coefficients of each block.
        least : float
            Length of a row below which it is left out.
        """
        found = [np.zeros((0, len(self.mean)))]
        for places, apart in zip(blocks, self.apart, strict=True):
            kept = np.flatnonzero(np.sqrt((apart**2).sum(axis=1)) > least)
            row = np.zeros((len(kept), len(self.mean)))
            row[np.arange(len(kept))[:, None], places[kept]] = apart[kept]
            found.append(row)
        return np.vstack(found)


def doubts(parts: Floats, views: list[tuple[float, Relevance]]) -> tuple[Floats, Floats]:
    """Return by how much the variances of directions may differ from their means.

    Parameters
    ----------
    parts : array of float
        Which part of the variance of each direction (a column) is of each coefficient (a row).
    views : list of pairs
        How much each view is believed in which columns have scales, and these.

    Returns
    -------
    array of float
        For each direction how likely its variance is so many times as large. The first place is for
        the views in which columns have no scales.
    array of float
        So many times.
    """
    scaled = sum(share for share, _ in views)
    size, grid = len(parts), views[0][1].grid
    mean = np.full(size, 1 - scaled)
    for share, one in views:
        mean += share * one.factors[:size]
    chances = np.zeros((parts.shape[1], len(grid) + 1))
    sums = np.zeros_like(chances)
    sums[:, 0] = (1 - scaled) * ((1 / mean) @ parts)
    for share, one in views:
        rest = parts.sum(axis=0)
        for places, likely in zip(one.blocks, one.likely, strict=True):
            first = places[:, (places < size).all(axis=0)]  # scores share directions
            part = parts[first].sum(axis=1)
            rest = rest - part.sum(axis=0)
            chances[:, 1:] += share * part.T @ likely
            sums[:, 1:] += share * (part / mean[first[:, 0], None]).T @ (likely * grid)
        sums[:, 0] += share * rest  # of waves, say
    chances[:, 0] = np.maximum(1 - chances[:, 1:].sum(axis=1), 0.0)
    return chances, sums / np.maximum(chances, NONE)
