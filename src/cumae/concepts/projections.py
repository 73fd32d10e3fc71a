"""Projections: a threshold along one of several given directions."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.codec import cell_from_json, cell_to_json
from cumae.concepts.base import ConceptClass, Hypothesis
from cumae.concepts.stumps import (
    Stump,
    Stumps,
    above_cut,
    check_cut,
    describe,
    stump_dimension,
)
from cumae.data import check_number, check_table, check_tuple
from cumae.errors import InvalidData, InvalidParameter
from cumae.parameters import check_count
from cumae.randomness import Source


@dataclass(frozen=True)
class Projection(Hypothesis):
    """The rule that labels 1 projections from ``cut`` on (or, if not ``above``, below it).

    Without a cut nothing is above, with a cut of -inf everything, as in ``Stump``.

    Parameters
    ----------
    direction : tuple of float
        The factor of each column; their sum of products is the projection.
    cut : float or None
        Where the label changes.
    above : bool
        Whether label 1 is above the cut.

    Examples
    --------
    >>> from cumae.concepts.projections import Projection
    >>> Projection((1.0, -1.0), 0.5).predict([[3, 2], [2, 3]]).tolist()
    [1, 0]
    >>> print(Projection((1.0, -1.0), 0.5))
    label 1 where 1.0 x0 - 1.0 x1 is at least 0.5, else 0
    """

    direction: tuple[float, ...]
    cut: float | None
    above: bool = True

    def __post_init__(self) -> None:
        check_tuple(self.direction, "direction")
        for value in self.direction:
            check_number(value, "a number of direction", finite=True)
        if not any(self.direction):
            raise InvalidParameter("direction is empty or all 0; give numbers, not all 0.")
        check_cut(self.cut, self.above)

    def predict(self, X: ArrayLike) -> Integers:
        direction = np.array([self.direction], dtype=np.float64)
        values = project(check_table(X, len(self.direction)), direction)[:, 0]
        return above_cut(values, self.cut, self.above)

    def _fields(self) -> dict[str, Any]:
        return {
            "direction": [float(value) for value in self.direction],
            "cut": cell_to_json(self.cut),
            "above": bool(self.above),
        }

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Projection:
        direction = tuple(float(value) for value in fields["direction"])
        return cls(direction, cell_from_json(fields["cut"]), fields["above"])

    def __str__(self) -> str:
        terms = [(value, column) for column, value in enumerate(self.direction) if value]
        text = "".join(
            f" {'-' if value < 0 else '+'} {abs(value)!r} x{column}" for value, column in terms
        )
        return describe(text.removeprefix(" + ").lstrip(), self.cut, self.above)


@claim("CHOOSE", "STUMPS")
class Projections(ConceptClass):
    """Thresholds along given directions, which must not come from private data.

    These are ``Stumps`` on the projected rows: the same candidates, ties and k = 2. A projection is
    the float64 sum of products, column after column, without those of weight 0: rows that are
    equal project equally, in any array.

    Parameters
    ----------
    directions : array-like of shape (n_directions, n_features)
        One row for each direction, with one finite number for each column, not all 0.

    Examples
    --------
    >>> from cumae.concepts.projections import Projections
    >>> X, y = [[0, 1], [1, 2], [1, 0], [2, 1]], [0, 0, 1, 1]
    >>> print(Projections([[1, 1], [1, -1]]).erm(X, y))
    label 1 where 1.0 x0 - 1.0 x1 is at least 0.0, else 0
    """

    label_boost_k = 2

    def __init__(self, directions: ArrayLike) -> None:
        table = np.empty((0, 0))
        with contextlib.suppress(InvalidData, ValueError):
            if np.ndim(directions) == 2:
                table = check_table(directions)
        if not table.size:
            raise InvalidParameter(
                "directions are no table of numbers; give one row for each direction."
            )
        wrong = ~np.isfinite(table).all(axis=1) | ~table.any(axis=1)
        if wrong.any():
            raise InvalidParameter(
                f"directions are all 0 or not finite in row {int(np.argmax(wrong))}; give finite "
                "numbers, not all 0."
            )
        self.directions = tuple(tuple(row) for row in table.tolist())

    def vc_dimension(self, n_features: int | None = None) -> int:
        """Return an upper bound: that of stumps over as many columns as there are directions.

        Up to the rounding of projections every hypothesis is also a halfspace, so that one more
        than the number of columns is a bound, too.
        """
        columns = len(self.directions[0])
        if check_count(columns if n_features is None else n_features, "n_features") != columns:
            raise InvalidParameter(f"n_features={n_features!r}: the directions have {columns}.")
        return min(stump_dimension(len(self.directions)), columns + 1)

    def n_dichotomies(self, X: ArrayLike) -> int:
        return Stumps().n_dichotomies(self._project(X))

    def n_candidates(self, points: ArrayLike) -> int:
        return Stumps().n_candidates(self._project(points))

    def _draw(
        self,
        points: ArrayLike,
        X: ArrayLike,
        y: Integers,
        rate: Fraction | float,
        source: Source,
    ) -> Hypothesis:
        places, table = self._both(points, X)
        return self._along(Stumps()._draw(places, table, y, rate, source))

    def _law(
        self, points: ArrayLike, X: ArrayLike, y: Integers, rate: float
    ) -> list[tuple[Hypothesis, float]]:
        """Return every candidate with the probability that ``_draw`` draws it with; for tests."""
        places, table = self._both(points, X)
        return [(self._along(h), chance) for h, chance in Stumps()._law(places, table, y, rate)]

    def _best(self, X: ArrayLike, y: Integers, weights: NDArray[Any]) -> Hypothesis:
        return self._along(Stumps()._best(self._project(X), y, weights))

    def _both(self, points: ArrayLike, X: ArrayLike) -> tuple[Floats, Floats]:
        table = self._project(X)
        return (table if points is X else self._project(points, "points")), table

    def _project(self, X: ArrayLike, name: str = "X") -> Floats:
        directions = np.array(self.directions)
        return project(check_table(X, directions.shape[1], name), directions)

    def _along(self, stump: Hypothesis) -> Projection:
        found = cast(Stump, stump)
        return Projection(self.directions[found.column], found.cut, found.above)


def project(table: Floats, directions: Floats) -> Floats:
    """Return the projection of each row on each direction.

    Products are added column after column, each rounded, by elementwise operations. A matrix
    product would be faster, but adds in an order that may depend on where a row stands.
    """
    found = np.zeros((len(table), len(directions)))
    with np.errstate(over="ignore", invalid="ignore"):
        for number, direction in enumerate(directions):
            for column in np.flatnonzero(direction):
                found[:, number] += table[:, column] * direction[column]
    # Infinities of both signs, given or by overflow, cancel to 0: an error would depend on one row.
    return np.where(np.isnan(found), 0.0, found)
