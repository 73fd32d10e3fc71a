"""Learners that score rows by log odds."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Floats, Integers
from cumae.learners.base import Learner


class ScoredLearner(Learner):
    """A learner whose labels follow from log odds, which it shows: post-processing, free."""

    @abstractmethod
    def log_odds(self, table: NDArray[Any]) -> Floats:
        """Return the log odds of the second class.

        Parameters
        ----------
        table : array
            Encoded rows.

        Returns
        -------
        array of float
            One number for each row.
        """

    def decision_function(self, X: ArrayLike) -> Floats:
        """Return the log odds of the second class."""
        check_is_fitted(self, "guarantee_")
        return self.log_odds(self._encode(self.columns_, X))

    def predict_proba(self, X: ArrayLike) -> Floats:
        """Return the chances of both classes."""
        return chances(self.decision_function(X))

    def _labels(self, table: NDArray[Any]) -> Integers:
        return (self.log_odds(table) > 0).astype(np.int64)


def chances(log_odds: Floats) -> Floats:
    """Return the chances of both classes, a row for each number.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.learners.scored import chances
    >>> chances(np.array([0.0])).tolist()
    [[0.5, 0.5]]
    """
    chance = expit(log_odds)
    return np.column_stack([1 - chance, chance])
