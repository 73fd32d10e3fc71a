"""Halfspaces in one, two or three columns, decided exactly, as a concept class."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.concepts.base import ConceptClass, Hypothesis
from cumae.concepts.halfspaces.hypothesis import check_shape, halfspace_table
from cumae.concepts.halfspaces.labellings import Labellings
from cumae.data import check_rows, check_tables
from cumae.errors import InvalidParameter
from cumae.randomness import Source, integers, weighted_choice


@claim("CHOOSE", "HALFSPACES")
class Halfspaces(ConceptClass):
    """All halfspaces in one, two or three columns of finite numbers, with label 1 on either side.

    The hypothesis of a labelling runs through the middle of the widest gap between its two sides,
    and has no point on its boundary. ``n`` points in general position have n^2 - n + 2 labellings
    in two columns, n (n - 1) (n - 2) / 3 + 2 n in three; points that coincide or share lines or
    planes have fewer. Rows of ``X`` that are not among the points cost ``choose`` extra: every
    candidate is built and tried on them, which takes milliseconds each where gaps are as fine as
    rounding. A single column may hold infinite values.

    Of several best hypotheses ``erm`` takes the middle one of a list that depends on the points
    only: label 0 everywhere; if the points share a line or span three columns, the cuts through
    their lexicographic order, first with label 1 above, then below; label 1 everywhere; then the
    others as lines turn left around each point in order (planes around each pair of points).

    Examples
    --------
    >>> from cumae.concepts import Halfspaces
    >>> corners = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> Halfspaces().n_dichotomies(corners)
    14
    >>> print(Halfspaces().erm(corners, [0, 0, 0, 1]))
    label 1 where 1.0 x0 + 1.0 x1 >= 1.5, else 0
    >>> rule = Halfspaces().choose(corners, corners, [0, 1, 0, 1], epsilon=100.0)
    >>> rule.predict([[5, 0.25], [-3, 0.75]]).tolist()
    [0, 1]
    """

    def vc_dimension(self, n_features: int) -> int:
        """Return one more than the number of columns."""
        if n_features not in (1, 2, 3):
            raise InvalidParameter(
                f"n_features={n_features!r}: halfspaces have 1, 2 or 3 columns; select some, or "
                "use Projections."
            )
        return n_features + 1

    def n_dichotomies(self, X: ArrayLike) -> int:
        table = halfspace_table(X)
        return Labellings(table, table[:0], np.zeros(0, dtype=np.int64)).count()

    def _draw(
        self,
        points: ArrayLike,
        X: ArrayLike,
        y: Integers,
        rate: Fraction | float,
        source: Source,
    ) -> Hypothesis:
        labellings, base = _scored(points, X, y)
        # Scores are whole numbers from 0 to n: draw one of them with the number of candidates that
        # reach it, then one of these. Both draws are exact.
        counts = labellings.histogram(base, len(y))
        reached = np.flatnonzero(counts)
        score = int(reached[weighted_choice(reached, rate, counts=counts[reached], source=source)])
        return labellings.find(score - base, integers(int(counts[score]), source=source))

    def _law(
        self,
        points: ArrayLike,
        X: ArrayLike,
        y: Integers,
        rate: Fraction | float,
    ) -> list[tuple[Hypothesis, float]]:
        """Return every candidate with its probability, by the stages of ``_draw``."""
        labellings, base = _scored(points, X, y)
        counts = labellings.histogram(base, len(y))
        scores = np.flatnonzero(counts)
        if math.isinf(rate):
            scores, rate = scores[-1:], 0.0
        weights = np.exp(float(rate) * (scores - scores.max()).astype(float))
        total = float(np.sum(weights * counts[scores]))
        return [
            (labellings.find(int(score) - base, place), float(weight) / total)
            for score, weight in zip(scores, weights, strict=True)
            for place in range(counts[score])
        ]

    def _best(self, X: ArrayLike, y: Integers, weights: NDArray[Any]) -> Hypothesis:
        table = halfspace_table(X)
        check_rows(len(table), y)
        labellings = Labellings(table, table, np.where(y == 1, weights, -weights))
        gain, ties = labellings.best()
        return labellings.find(gain, (ties - 1) // 2)


def _scored(points: ArrayLike, X: ArrayLike, y: Integers) -> tuple[Labellings, int]:
    """Return the candidates, scored by what labels 1 gain, and the score of label 0 everywhere."""
    places, rows = check_tables(points, X)
    check_shape(places, points, "points")
    check_shape(rows, X, "X")
    check_rows(len(rows), y)
    return Labellings(places, rows, 2 * y - 1), len(y) - int(y.sum())
