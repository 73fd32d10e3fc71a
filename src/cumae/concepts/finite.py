"""Any finite list of hypotheses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.concepts.base import ConceptClass
from cumae.data import check_labels, check_rows, length_of
from cumae.errors import InvalidData, InvalidParameter
from cumae.randomness import Source, integers, weighted_choice

SMALL_DOMAIN = 16  # rows for which the VC dimension is found by trying all subsets


class Predicts(Protocol):
    """Anything with ``predict``: a hypothesis, or a fitted public model."""

    def predict(self, X: Any) -> Any:
        """Label each row 0 or 1."""


@claim("CHOOSE")
class FiniteClass(ConceptClass):
    """The hypotheses of a list, fixed before any private row is seen.

    Of hypotheses that label ``points`` alike, ``choose`` keeps the first. Of several best ones,
    ``erm`` takes the first.

    Parameters
    ----------
    hypotheses : iterable of objects with predict
        Objects with ``predict``.
    domain : array-like or None
        All rows there are, if they are few; the VC dimension is then exact.

    Examples
    --------
    >>> from cumae.concepts import FiniteClass, Threshold
    >>> rules = FiniteClass([Threshold(1), Threshold(2), Threshold(3)])
    >>> rules.n_dichotomies([0, 2])
    2
    >>> print(rules.erm([0, 1, 2, 3], [0, 0, 1, 1]))
    label 1 from 2 on, else 0
    >>> rules.vc_dimension(1)
    1
    """

    needs_points: ClassVar[bool] = False
    _divided: ClassVar[bool] = True  # whether hypotheses that label points alike count as one

    def __init__(self, hypotheses: Iterable[Predicts], domain: ArrayLike | None = None) -> None:
        self.hypotheses: list[Predicts] = []
        with contextlib.suppress(TypeError):
            self.hypotheses = list(hypotheses)
        if len(self.hypotheses) == 0:
            raise InvalidParameter("hypotheses must be a list with at least one hypothesis.")
        for number, hypothesis in enumerate(self.hypotheses):
            if not callable(getattr(hypothesis, "predict", None)):
                raise InvalidParameter(
                    f"hypothesis {number} of type {type(hypothesis).__name__} has no predict."
                )
        if domain is not None:
            length_of(domain, "domain")
        self.domain = domain

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, FiniteClass)
            and self.hypotheses == other.hypotheses
            and np.array_equal(np.asarray(self.domain), np.asarray(other.domain))
        )

    def __hash__(self) -> int:
        return hash((FiniteClass, len(self.hypotheses)))

    def undivided(self) -> FiniteClass:
        """Return the class whose ``choose`` draws among all hypotheses, independent of the points.

        Examples
        --------
        >>> from cumae.concepts import FiniteClass, Threshold
        >>> FiniteClass([Threshold(1), Threshold(2)]).undivided().n_candidates([])
        2
        """
        return _Undivided(self.hypotheses, self.domain)

    def vc_dimension(self, n_features: int = 1) -> int:
        """Return log2 of the list's length, rounded down: an upper bound.

        It is exact if a ``domain`` of at most 16 rows was given: the dimension on these rows, found
        by trying all subsets.
        """
        del n_features
        bound = len(self.hypotheses).bit_length() - 1
        if self.domain is None or length_of(self.domain, "domain") > SMALL_DOMAIN:
            return bound
        labels = np.unique(self._labels(self.domain), axis=0)
        for size in range(min(bound, labels.shape[1]), 0, -1):
            for rows in combinations(range(labels.shape[1]), size):
                if len(np.unique(labels[:, rows], axis=0)) == 2**size:
                    return size
        return 0

    def n_dichotomies(self, X: ArrayLike) -> int:
        return len(self._representatives(X))

    def _labels(self, X: ArrayLike, numbers: Iterable[int] | None = None) -> Integers:
        """Labels of all rows, one line for each hypothesis, or for those with these numbers."""
        rows = length_of(X, "X")
        lines = []
        for i in range(len(self.hypotheses)) if numbers is None else numbers:
            line = check_labels(self.hypotheses[i].predict(X), f"the prediction of hypothesis {i}")
            if len(line) != rows:
                raise InvalidData(f"hypothesis {i} predicts {len(line)} labels of {rows} rows.")
            lines.append(line)
        return np.array(lines)

    def _representatives(self, points: ArrayLike) -> Integers:
        """Return the first hypothesis for each labelling of the points; or all of them."""
        if not self._divided:
            return np.arange(len(self.hypotheses))
        if length_of(points, "points") == 0:
            return np.zeros(1, dtype=np.int64)
        _, first = np.unique(self._labels(points), axis=0, return_index=True)
        return np.sort(first)

    def _draw(
        self,
        points: ArrayLike,
        X: ArrayLike,
        y: Integers,
        rate: Fraction | float,
        source: Source,
    ) -> Any:
        kept = self._representatives(points)
        labels = self._labels(X, kept)
        check_rows(labels.shape[1], y)
        scores = (labels == y).sum(axis=1)
        levels, counts = np.unique(scores, return_counts=True)
        level = weighted_choice(levels, rate, counts=counts, source=source)
        place = integers(int(counts[level]), source=source)
        return self.hypotheses[int(kept[np.flatnonzero(scores == levels[level])[place]])]

    def _best(self, X: ArrayLike, y: Integers, weights: NDArray[Any]) -> Any:
        labels = self._labels(X)
        check_rows(labels.shape[1], y)
        scores = [sum(weights[line == y].tolist()) for line in labels]
        return self.hypotheses[scores.index(max(scores))]


@claim("CHOOSE")
class _Undivided(FiniteClass):
    """A list that is drawn from as a whole: the candidates are public without any points."""

    _divided = False

    def n_candidates(self, points: ArrayLike) -> int:
        return len(self._representatives(points))
