"""Stumps: a threshold on one of several numeric columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numba
import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.codec import cell_from_json, cell_to_json
from cumae.concepts.base import ConceptClass, Hypothesis, text
from cumae.concepts.columns import Cells, cells_of, distinct_points
from cumae.data import (
    check_number,
    check_rows,
    check_table,
    check_tables,
)
from cumae.errors import InvalidData
from cumae.parameters import check_count, check_flag
from cumae.randomness import Source, integers, weighted_choice


@dataclass(frozen=True)
class Stump(Hypothesis):
    """The rule that labels 1 where a column is at least ``cut`` (or, if not ``above``, below it).

    Without a cut nothing is above: label 0 everywhere, or 1 if not ``above``. With a cut of -inf
    everything is.

    Parameters
    ----------
    column : int of 0 or more
        Number of the column.
    cut : float or None
        Where the label changes.
    above : bool
        Whether label 1 is above the cut.

    Examples
    --------
    >>> from cumae.concepts.stumps import Stump
    >>> Stump(1, 2.5).predict([[9, 1], [9, 3]]).tolist()
    [0, 1]
    >>> print(Stump(1, 2.5, above=False))
    label 1 where column 1 is below 2.5, else 0
    """

    column: int
    cut: float | None
    above: bool = True

    def __post_init__(self) -> None:
        check_count(self.column, "column")
        check_cut(self.cut, self.above)

    def predict(self, X: ArrayLike) -> Integers:
        table = check_table(X)
        if table.shape[1] <= self.column and len(table):
            raise InvalidData(
                f"X has {table.shape[1]} columns, but the stump looks at column {self.column}; "
                "give the columns it was chosen from."
            )
        values = table[:, self.column] if len(table) else np.empty(0)
        return above_cut(values, self.cut, self.above)

    def _fields(self) -> dict[str, Any]:
        return {
            "column": int(self.column),
            "cut": cell_to_json(self.cut),
            "above": bool(self.above),
        }

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Stump:
        return cls(fields["column"], cell_from_json(fields["cut"]), fields["above"])

    def __str__(self) -> str:
        return describe(f"column {self.column}", self.cut, self.above)


def check_cut(cut: object, above: object) -> None:
    """Refuse a cut that is no number, or a side that is none."""
    if cut is not None:
        check_number(cut, "cut")
    check_flag(above, "above")


def above_cut(values: Floats, cut: float | None, above: bool) -> Integers:
    """Label values by a cut; None is a cut that nothing reaches.

    Parameters
    ----------
    values : array of float
        The values.
    cut : float or None
        The cut; None is a cut that nothing reaches.
    above : bool
        Whether label 1 is above the cut or below it.
    """
    if cut is None:
        return np.full(len(values), int(not above))
    return np.asarray((values >= cut) == above, dtype=np.int64)


def describe(what: str, cut: float | None, above: bool) -> str:
    """Say in one line what a cut does.

    Parameters
    ----------
    what : str
        What is compared with the cut, such as the name of a column.
    cut : float or None
        The cut; None is a cut that nothing reaches.
    above : bool
        Whether label 1 is above the cut or below it.
    """
    if cut is None or cut == -math.inf:
        return f"label {int(above == (cut is not None))} everywhere"
    return f"label 1 where {what} is {'at least' if above else 'below'} {text(cut)}, else 0"


@claim("CHOOSE", "STUMPS")
class Stumps(ConceptClass):
    """Thresholds on any one of the columns, with label 1 above or below.

    Candidates are triples of column, side and gap: a column with m distinct points has m + 1
    gaps, the two outer ones included. Two columns may divide the points alike, and each of them
    has the constant labellings too, so a labelling may have several candidates; there are
    2 * sum(m + 1) of them. A new point splits a candidate into at most two, which disagree about
    that point: this is what label boosting needs, with k = 2 (claim LB).

    Cuts lie in the middle between neighbouring points. Of several best stumps ``erm`` takes
    the first column that has one, label 1 above before label 1 below, and of the tied gaps there
    the middle one.

    Examples
    --------
    >>> from cumae.concepts.stumps import Stumps
    >>> X, y = [[1, 31], [0, 44], [1, 62], [0, 70]], [0, 0, 1, 1]
    >>> print(Stumps().erm(X, y))
    label 1 where column 1 is at least 53.0, else 0
    >>> Stumps().n_candidates(X), Stumps().n_dichotomies(X), Stumps().vc_dimension(2)
    (16, 10, 3)
    >>> print(Stumps().choose(X, X, y, epsilon=100.0))
    label 1 where column 1 is at least 53.0, else 0
    """

    label_boost_k = 2

    def vc_dimension(self, n_features: int) -> int:
        """Return the largest n with binomial(n, n // 2) <= 2 * n_features: exact.

        On one column that is 2; it grows like the binary logarithm of the number of columns (Gey,
        Vapnik-Chervonenkis dimension of axis-parallel cuts, 2018); proofs/CHOOSE.md proves it.
        """
        return stump_dimension(check_count(n_features, "n_features", least=1))

    def n_dichotomies(self, X: ArrayLike) -> int:
        return count_splits(_table(X))

    def n_candidates(self, points: ArrayLike) -> int:
        table = _table(points)
        return sum(2 * len(distinct_points(column)) + 2 for column in table.T)

    def _draw(
        self,
        points: ArrayLike,
        X: ArrayLike,
        y: Integers,
        rate: Fraction | float,
        source: Source,
    ) -> Hypothesis:
        columns = _columns(points, X, y)
        signed = int(2 * y.sum() - len(y))
        # Scores are whole numbers from 0 to n: draw one of them with the number of candidates
        # that reach it, then one of these. Both draws are exact.
        counts = np.zeros(len(y) + 1, dtype=np.int64)
        for cells in columns:
            count_scores(cells.gain, cells.base, signed, counts)
        reached = np.flatnonzero(counts)
        score = int(reached[weighted_choice(reached, rate, counts=counts[reached], source=source)])
        place = integers(int(counts[score]), source=source)
        for column, cells in enumerate(columns):
            ties = np.flatnonzero(np.concatenate(scores_of(cells, signed)) == score)
            if place < len(ties):
                return _stump(column, cells, int(ties[place]))
            place -= len(ties)
        raise AssertionError("the histogram counts every candidate")  # pragma: no cover

    def _law(
        self, points: ArrayLike, X: ArrayLike, y: Integers, rate: float
    ) -> list[tuple[Hypothesis, float]]:
        """Return every candidate with the probability that ``_draw`` draws it with; for tests."""
        columns = _columns(points, X, y)
        signed = int(2 * y.sum() - len(y))
        counts = np.zeros(len(y) + 1, dtype=np.int64)
        for cells in columns:
            count_scores(cells.gain, cells.base, signed, counts)
        weight = np.exp(rate * (np.arange(len(counts)) - np.flatnonzero(counts).max()))
        chance = weight / (weight * counts).sum()
        return [
            (_stump(column, cells, place), float(chance[score]))
            for column, cells in enumerate(columns)
            for place, score in enumerate(np.concatenate(scores_of(cells, signed)))
        ]

    def _best(self, X: ArrayLike, y: Integers, weights: NDArray[Any]) -> Hypothesis:
        columns = _columns(X, X, y, weights)
        signed = sum(np.where(y == 1, weights, -weights).tolist())
        scores = [scores_of(cells, signed) for cells in columns]
        best = max(side.max() for sides in scores for side in sides)
        column, side = next(
            (column, side)
            for column, sides in enumerate(scores)
            for side in (0, 1)
            if best in sides[side]
        )
        ties = np.flatnonzero(scores[column][side] == best)
        gap = int(ties[(len(ties) - 1) // 2])
        return _stump(column, columns[column], gap + side * len(scores[column][side]))


def stump_dimension(columns: int) -> int:
    """Return the VC dimension of stumps over ``columns`` columns."""
    size = 2
    while math.comb(size + 1, (size + 1) // 2) <= 2 * columns:
        size += 1
    return size


def _table(X: ArrayLike) -> Floats:
    return _some_columns(check_table(X))


def _some_columns(table: Floats) -> Floats:
    if table.shape[1] == 0:
        raise InvalidData("X has no columns; give at least one.")
    return table


def _columns(
    points: ArrayLike, X: ArrayLike, y: Integers, weights: NDArray[Any] | None = None
) -> list[Cells]:
    """Return the cells of each column."""
    places, table = (_some_columns(part) for part in check_tables(points, X))
    check_rows(len(table), y)
    if places is table:  # the same column twice, which is sorted only once
        return [cells_of(column, column, y, weights) for column in table.T]
    return [cells_of(p, x, y, weights) for p, x in zip(places.T, table.T, strict=True)]


def scores_of(cells: Cells, signed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the scores of the gaps with label 1 above, and with label 1 below.

    ``signed`` is the weight of label 1 less that of label 0. Below gap number g are the first g
    cells. Without points there is a single gap, and everything is below it.
    """
    if len(cells):
        below = np.concatenate([np.zeros(1, dtype=cells.gain.dtype), np.cumsum(cells.gain)])
    else:
        below = np.array([signed])
    return cells.base + (signed - below), cells.base + below


@numba.njit(cache=True, nogil=True)
def count_scores(gain: Integers, base: int, signed: int, counts: Integers) -> None:
    """Add to ``counts`` how many gaps reach each score, on both sides; see ``scores_of``.

    Parameters
    ----------
    gain : array of int
        What label 1 gains over label 0 in each cell of a column.
    base : int
        The score of label 0 everywhere.
    signed : int
        What label 1 everywhere gains over it.
    counts : array of int
        How many gaps have each score; it is added to.
    """
    below = 0 if len(gain) else signed
    counts[base + signed - below] += 1
    counts[base + below] += 1
    for step in gain:
        below += step
        counts[base + signed - below] += 1
        counts[base + below] += 1


def _stump(column: int, cells: Cells, place: int) -> Stump:
    """Return candidate number ``place`` of a column: gaps with label 1 above, then below."""
    side, gap = divmod(place, len(cells) + 1)
    cut = None if gap == len(cells) else -math.inf if gap == 0 else float(cells.cut(gap))
    return Stump(column, cut, above=side == 0)


def count_splits(table: NDArray[Any]) -> int:
    """Return the number of labellings of the rows by stumps, constant ones included: exact.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts.stumps import count_splits
    >>> count_splits(np.array([[1, 1], [2, 3], [3, 2]]))
    8
    """
    if len(table) == 0:
        return 1
    order = np.argsort(table.T, axis=1, kind="stable")
    upto, onward = np.empty_like(order), np.empty_like(order)
    for column in range(len(order)):
        values = table[order[column], column]
        upto[column, order[column]] = np.searchsorted(values, values, side="right")
        onward[column, order[column]] = len(values) - np.searchsorted(values, values, side="left")
    return 2 + 2 * int(_new_splits(order, upto, onward))


@numba.njit(cache=True, nogil=True)
def _new_splits(order: Integers, upto: Integers, onward: Integers) -> int:
    """Count the ways to divide the rows in two that a column has and no column before it.

    ``upto`` holds for each column and row how many rows are at or below it, ``onward`` at or above.
    The s lowest rows of a column are all that is at or below some value of another column if
    and only if the largest ``upto`` among them is s: those counted there are s rows and include
    them. The same goes for ``onward`` and what is at or above a value.
    """
    columns, rows = order.shape
    new = np.empty(rows + 1, dtype=np.bool_)
    found = 0
    for column in range(columns):
        new[:] = False
        for place in range(rows - 1):
            low, high = order[column, place], order[column, place + 1]
            new[place + 1] = upto[column, low] != upto[column, high]
        for before in range(column):
            most_upto = most_onward = 0
            for place in range(rows - 1):
                row = order[column, place]
                most_upto = max(most_upto, upto[before, row])
                most_onward = max(most_onward, onward[before, row])
                if most_upto == place + 1 or most_onward == place + 1:
                    new[place + 1] = False
        found += new.sum()
    return found
