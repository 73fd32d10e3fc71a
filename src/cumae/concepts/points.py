"""Single points: label 1 at one value, or nowhere."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.codec import cell_from_json, cell_to_json
from cumae.concepts.base import ConceptClass, Hypothesis, text
from cumae.concepts.columns import alike, check_alike, compare, distinct_points
from cumae.concepts.thresholds import single_column
from cumae.data import check_cell, check_column, check_rows
from cumae.randomness import Source, integers, weighted_choice


@dataclass(frozen=True, repr=False)
class Point(Hypothesis):
    """Labels 1 what equals ``value``; nothing if there is none.

    Parameters
    ----------
    value : object or None
        The value with label 1: a number, a text, a date or the like.

    Examples
    --------
    >>> from cumae.concepts import Point
    >>> Point("ward 7").predict(["ward 3", "ward 7"]).tolist()
    [0, 1]
    """

    value: Any = None

    def __post_init__(self) -> None:
        check_cell(self.value, "value")

    def predict(self, X: ArrayLike) -> Integers:
        column = check_column(X)
        if self.value is None:
            return np.zeros(len(column), dtype=np.int64)
        return compare(column, operator.eq, self.value).astype(np.int64)

    def _fields(self) -> dict[str, Any]:
        return {"value": cell_to_json(self.value)}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Point:
        return cls(cell_from_json(fields["value"]))

    def __str__(self) -> str:
        if self.value is None:
            return "label 0 everywhere"
        return f"label 1 at {text(self.value)}, else 0"


@claim("CHOOSE")
class Points(ConceptClass):
    """One point, or none: each of the m distinct points alone can be labelled 1, or nothing.

    Of several best hypotheses ``erm`` takes the middle one of this list: nowhere, then the points
    in order.

    Examples
    --------
    >>> from cumae.concepts import Points
    >>> Points().n_dichotomies([4, 4, 9])
    3
    >>> print(Points().erm([4, 4, 9], [1, 1, 0]))
    label 1 at 4, else 0
    """

    def vc_dimension(self, n_features: int = 1) -> int:
        """Return 1."""
        single_column(n_features)
        return 1

    def n_dichotomies(self, X: ArrayLike) -> int:
        return len(distinct_points(X)) + 1

    def _draw(
        self,
        points: ArrayLike,
        X: ArrayLike,
        y: Integers,
        rate: Fraction | float,
        source: Source,
    ) -> Hypothesis:
        values, scores = _scores(points, X, y, np.ones(len(y), dtype=np.int64))
        levels, counts = np.unique(scores, return_counts=True)
        level = weighted_choice(levels, rate, counts=counts, source=source)
        place = integers(int(counts[level]), source=source)
        return _point(values, int(np.flatnonzero(scores == levels[level])[place]))

    def _best(self, X: ArrayLike, y: Integers, weights: NDArray[Any]) -> Hypothesis:
        values, scores = _scores(X, X, y, weights)
        ties = np.flatnonzero(scores == scores.max())
        return _point(values, int(ties[(len(ties) - 1) // 2]))


def _scores(
    points: ArrayLike,
    X: ArrayLike,
    y: Integers,
    weights: NDArray[Any],
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Distinct points, and the scores of labelling nothing, then each of them, 1."""
    column = check_column(X)
    check_rows(len(column), y)
    values = distinct_points(points, "X" if points is X else "points")
    check_alike(values, column)
    gain = np.zeros(len(values) + 1, dtype=weights.dtype)
    if len(values) and len(column):
        places, rows = alike(values, column)
        place = np.minimum(np.searchsorted(places, rows), len(values) - 1)
        found = np.asarray(places[place] == rows, dtype=bool)
        np.add.at(gain, place[found] + 1, np.where(y == 1, weights, -weights)[found])
    base = sum(weights[y == 0].tolist())
    return values, gain + base


def _point(values: NDArray[Any], place: int) -> Point:
    return Point() if place == 0 else Point(values[place - 1])
