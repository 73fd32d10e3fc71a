"""Learners that score rows by log odds."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.learners.base import Learner, LearningPlan, Rows, Sizes
from cumae.learners.ranged import (
    RangedSteps,
    learn_with_ranges,
    needs_ranges,
    plan_with_ranges,
)
from cumae.randomness import Source


class ScoredLearner(Learner):
    """A learner that computes labels from log odds. It shows these, too, at no further cost.

    If columns of numbers have no range, it first finds one privately (``ranged``), and then learns.
    A subclass says how it plans and learns when all ranges are known.
    """

    def decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[Any]:
        """Decide what to do, and what it costs; ranges that are not known come first."""
        if not needs_ranges(sizes):
            return self._decide(sizes, rows)
        return plan_with_ranges(self, sizes, rows, type(self)._decide)

    @abstractmethod
    def _decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[Any]:
        """As ``decide``, if all ranges are known or public rows show them."""

    def _learn(self, rows: Rows, plan: LearningPlan[Any], source: Source) -> None:
        if isinstance(plan.steps, RangedSteps):
            learn_with_ranges(self, rows, plan.steps, source, type(self)._learn_within)
        else:
            self._learn_within(rows, plan, source)

    @abstractmethod
    def _learn_within(self, rows: Rows, plan: LearningPlan[Any], source: Source) -> None:
        """Learn from rows whose ranges are known, and keep the private output."""

    @property
    @abstractmethod
    def log_odds(self) -> Callable[[NDArray[Any]], Floats]:
        """What tells log odds: it takes a table of encoded rows, and belongs to what is published.

        It returns an array with the log odds of the second class for each row; with more than two
        classes, with a score of each class.
        """

    def decision_function(self, X: Any) -> Floats:
        """Return the log odds of the second of two classes, or a score for each of more.

        Parameters
        ----------
        X : table
            Rows with the columns of ``fit``.
        """
        check_is_fitted(self, "guarantee_")
        return self.log_odds(self._encode(self.columns_, X))

    def predict_proba(self, X: Any) -> Floats:
        """Return the chance of each class.

        Parameters
        ----------
        X : table
            Rows with the columns of ``fit``.
        """
        return chances(self.decision_function(X))

    def _labels(self, table: NDArray[Any]) -> Integers:
        scores = self.log_odds(table)
        if scores.ndim == 1:
            return (scores > 0).astype(np.int64)
        return np.asarray(np.argmax(scores, axis=1), dtype=np.int64)


@claim("PRIOR", "KERNEL")
def chances(log_odds: Floats) -> Floats:
    """Return the chance of each class, from log odds of the second of two, or scores of all.

    The chances of a row are a function of its own scores, bit by bit.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.learners.scored import chances
    >>> chances(np.array([0.0])).tolist()
    [[0.5, 0.5]]
    """
    if log_odds.ndim == 2:
        raised = _powers(log_odds - log_odds.max(axis=1, keepdims=True))
        total = np.zeros((len(raised), 1))
        for column in raised.T:  # in one order, which a library's sum does not promise
            total[:, 0] += column
        return np.asarray(raised / total)
    small = _powers(-np.abs(log_odds))  # the odds of the less likely class
    less, more = small / (1 + small), 1 / (1 + small)
    second = log_odds > 0
    return np.column_stack([np.where(second, less, more), np.where(second, more, less)])


def _powers(exponents: Floats) -> Floats:
    """Return the powers of e, each by itself: a function of one number, wherever it stands.

    A library's function of arrays may compute the first numbers of an array in another way than
    the last ones, and then a bit may differ.
    """
    found = list(map(math.exp, exponents.ravel().tolist()))
    return np.array(found).reshape(exponents.shape)
