"""GenericLearner: one unlabelled row, and what its sanitizer lets through."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import ArrayLike

from cumae.arrays import Floats
from cumae.concepts import Thresholds
from cumae.learners import GenericLearner
from cumae.learners.base import Rows, Sizes
from cumae.privacy import Cost, Pure
from cumae.randomness import SYSTEM, integers
from cumae.sanitizers import Quantiles, Sanitizer
from tests.statistics import binomial_rejects


class Clean(Quantiles):
    """Quantiles whose cost, the same epsilon, is known without any arithmetic."""

    @property
    def cost(self) -> Cost:
        return Pure(self.epsilon)


class Leaky(Clean):
    """Adds the last row itself, and a point next to it: a planted bug."""

    def sanitize(self, X: ArrayLike) -> Floats:
        last = np.asarray(X)[-1:]
        return np.vstack([super().sanitize(X), last, last + 1e-3])


PLACE = 0.53


def from_first(sanitizer: Sanitizer) -> tuple[int, int]:
    """Count how often a cut is at ``PLACE``, and how often of these a row was there.

    A fair coin says whether the last row is there. If the guarantee holds then, given that the cut
    is there, the chance that the row was is at most exp(epsilon) / (1 + exp(epsilon)).
    """
    learner = GenericLearner(Thresholds("above"), 1.0, sanitizer=sanitizer)
    unlabelled = np.linspace(0, 1, 400).reshape(-1, 1)
    labelled = np.array([[PLACE - 0.002]] * 300 + [[PLACE + 0.002]] * 300)
    labels = np.array([0] * 300 + [1] * 300 + [-1] * 400)
    X = np.vstack([labelled, unlabelled])
    learner.fit(X, labels)
    plan = learner.decide(Sizes(600, 400, 0, learner.columns_), Rows(X, labels))
    seen = first = 0
    for coin in integers(2, size=500).tolist():
        X[-1] = PLACE if coin else 0.1
        learner._learn(Rows(X, labels), plan, SYSTEM)  # as fit does, with the same plan each time
        hit = learner.predict([[PLACE - 0.002], [PLACE + 0.002]]).tolist() == [0, 1]
        seen, first = seen + hit, first + (hit and coin)
    return first, seen


@pytest.mark.claim("GENERIC")
@pytest.mark.statistical
def test_a_sanitizer_that_leaks_a_row_is_caught_and_a_clean_one_is_not() -> None:
    most = math.e / (1 + math.e)
    first, seen = from_first(Clean(1.0, [(0.0, 1.0)], 15))
    assert seen > 10  # the event happens
    # Too few are no leak: only the upper tail counts.
    assert not binomial_rejects(max(first, math.ceil(most * seen)), seen, most)
    first, seen = from_first(Leaky(1.0, [(0.0, 1.0)], 15))
    assert binomial_rejects(first, seen, most, checks=0)
