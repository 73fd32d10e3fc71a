"""The published model: features, coefficients as far as they are known, and what follows."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from cumae.arrays import Floats
from cumae.codec import register_kind
from cumae.learners.kernel.features import KernelFeatures
from cumae.learners.kernel.linear import Covariance
from cumae.learners.kernel.posterior import Posterior
from cumae.learners.kernel.scoring import WholeScores

AXES = 80  # directions that are stored of what the releases told, for each score
DIGITS = 6  # of stored numbers
ROWS = 8_192  # whose variances are computed at a time


@dataclass(frozen=True)
class KernelModel:
    """Scores of rows, and how sure they are; computed from released numbers alone.

    Parameters
    ----------
    features : KernelFeatures
        How rows become features.
    weights : array of float
        Mean of the coefficients, a column for each score.
    prior : array of float
        Prior variance of each coefficient.
    learnt : array of float
        For each score, columns whose outer products tell by how much the releases changed the prior
        covariance of the coefficients.
    signs : array of float
        For each of these columns, 1 if they reduced it, and -1 if they added to it: where several
        views of the matter are believed, they may be farther apart than any of them is unsure.
    """

    features: KernelFeatures
    weights: Floats
    prior: Floats
    learnt: Floats
    signs: Floats

    @classmethod
    def of(cls, features: KernelFeatures, posterior: Posterior) -> KernelModel:
        """Keep what predictions need of a posterior, with six digits.

        What several scores have in common says nothing about chances, and is left out.
        """
        size, scores = posterior.mean.shape
        mean, prior = posterior.mean, posterior.spread.prior[:size]
        if scores == 1:
            changes = [posterior.spread.axes(AXES)]
        else:
            blocks = posterior.covariance.reshape(scores, size, scores, size)
            common = blocks.mean(axis=2)  # with the mean of all scores
            both = common.mean(axis=0)
            own = [blocks[k, :, k] - common[k] - common[k].T + both for k in range(scores)]
            mean, prior = mean - mean.mean(axis=1, keepdims=True), prior * (1 - 1 / scores)
            changes = [Covariance.whole(prior, one).axes(AXES) for one in own]
        learnt, signs = (np.stack(part) for part in zip(*changes, strict=True))
        return cls(
            features,
            _short(mean),
            _short(prior),
            _short(learnt),
            signs,
        )

    def scores(self, table: Floats) -> Floats:
        """Return the scores of encoded rows: log odds for two classes.

        They are the mean of what the releases leave open. Drawing them towards 0 where they are
        less sure made chances too careful: the mean is drawn towards 0 already. The score of a row
        is computed in whole numbers, so that it has the same bits in any table.
        """
        return self._whole.scores(table)

    @functools.cached_property  # each answer of an oracle asks
    def _whole(self) -> WholeScores:
        return WholeScores.of(self.features, self.weights)

    def log_odds(self, table: Floats) -> Floats:
        """Return the log odds of the second of two classes, or the scores of more."""
        scores = self.scores(table)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _rows(self, table: Floats) -> Floats:
        return self.features.rows(self.features.codes(table))

    def variance(self, rows: Floats, places: Any = slice(None)) -> Floats:
        """Return the variance of each score of rows of features, or of some features only.

        Parameters
        ----------
        rows : array of float
            Features.
        places : array of int
            Which features these are; all, if it is not given.
        """
        prior = rows**2 @ self.prior[places]
        changes = zip(self.learnt, self.signs, strict=True)
        learnt = [(rows @ axes[places]) ** 2 @ signs for axes, signs in changes]
        return np.asarray(np.maximum(prior[:, None] - np.stack(learnt, axis=1), 0.0))

    def uncertainty(self, table: Floats) -> Floats:
        """Return the standard deviation of each score of encoded rows."""
        found = np.empty((len(table), self.weights.shape[1]))
        for start in range(0, len(table), ROWS):
            found[start : start + ROWS] = self.variance(self._rows(table[start : start + ROWS]))
        return np.sqrt(found)

    def slopes(self) -> Floats:
        """Return the constant, and the slopes of the lines in units of the columns."""
        return self.features.slopes(self.weights[:, 0])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "features": self.features.to_dict(),
            "weights": self.weights.tolist(),
            "prior": self.prior.tolist(),
            "learnt": self.learnt.tolist(),
            "signs": self.signs.tolist(),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> KernelModel:
        """Rebuild what ``to_dict`` returned."""
        features = KernelFeatures.from_dict(plain["features"])
        return cls(features, *(np.array(plain[k]) for k in ("weights", "prior", "learnt", "signs")))


def _short(numbers: Floats) -> Floats:
    """Round to a few digits, so that the model is the same after it was stored."""
    found = [float(f"{x:.{DIGITS}g}") for x in numbers.ravel().tolist()]
    return np.array(found).reshape(numbers.shape)


register_kind("kernel model", KernelModel)
