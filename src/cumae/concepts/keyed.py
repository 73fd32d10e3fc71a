"""Classes of one column over ordered keys, each of which takes several numbers.

A key is a text, a date or a long number as a row of numbers that are compared one after the other
(``cumae.data.texts.ordered``). Rules are found among the ranks of the rows, and then stated by
keys: a rule over an order needs nothing but comparisons.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts.base import ConceptClass, Hypothesis
from cumae.concepts.intervals import IntervalUnion, UnionOfIntervals
from cumae.concepts.points import Point, Points
from cumae.concepts.thresholds import Threshold, Thresholds
from cumae.data import Columns, check_rows, check_table, check_tables, middle_keys, next_key
from cumae.errors import InvalidParameter
from cumae.parameters import check_count
from cumae.randomness import Source

Key: TypeAlias = tuple[float, ...] | None  # None for an end that is open
BELOW, ABOVE = 0.25, 0.75  # added to the rank of a point, on either side of the cut to the next
RIGHT_ABOVE = 1e-6  # a bound that is no further above a rank excludes the point itself
COMPARING = (Points, Thresholds, UnionOfIntervals)


@claim("KEYS")
@dataclass(frozen=True, repr=False)
class KeyRuns(Hypothesis):
    """The rule that labels 1 the keys in some runs [low, high).

    Parameters
    ----------
    width : int of 1 or more
        Numbers of a key.
    runs : tuple of pairs
        The ends of each run: tuples of numbers, or None for an end that is open.

    Examples
    --------
    >>> from cumae.concepts.keyed import KeyRuns
    >>> KeyRuns(2, (((1.0, 5.0), (2.0, 0.0)),)).predict([[1, 4], [1, 5], [1, 9], [2, 0]]).tolist()
    [0, 1, 1, 0]
    """

    width: int
    runs: tuple[tuple[Key, Key], ...] = ()

    def __post_init__(self) -> None:
        check_count(self.width, "width", least=1)
        ends = [end for run in self.runs for end in run if end is not None]
        if not all(len(run) == 2 for run in self.runs) or any(len(e) != self.width for e in ends):
            raise InvalidParameter(f"runs are no pairs of keys of {self.width} numbers.")

    def predict(self, X: ArrayLike) -> Integers:
        table = check_table(X, self.width)
        inside = np.zeros(len(table), dtype=bool)
        for low, high in self.runs:
            inside |= _from(table, low, open_end=True) & ~_from(table, high, open_end=False)
        return inside.astype(np.int64)

    def _fields(self) -> dict[str, Any]:
        runs = [[None if end is None else list(end) for end in run] for run in self.runs]
        return {"width": int(self.width), "runs": runs}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> KeyRuns:
        runs = fields["runs"]
        ends = [[None if end is None else tuple(map(float, end)) for end in run] for run in runs]
        return cls(fields["width"], tuple((low, high) for low, high in ends))

    def describe(self, columns: Columns, classes: Sequence[Any]) -> str:
        if not self.runs:
            return f"label {classes[0]} everywhere"
        parts = [
            " and ".join(
                f"{side} {columns.readable_key(end)}"
                for side, end in zip(("from", "below"), run, strict=True)
                if end is not None
            )
            for run in self.runs
        ]
        if "" in parts:
            return f"label {classes[1]} everywhere"
        return f"{classes[1]} {' or '.join(parts)}, else {classes[0]}"

    def __str__(self) -> str:
        return f"label 1 in {len(self.runs)} runs of keys, else 0"


@claim("KEYS", "CHOOSE")
class Keyed(ConceptClass):
    """A class of one column, for a column of ordered values whose keys take several numbers.

    Predictors make it of the class that they are given, where columns are declared as ordered. A
    cut lies half-way between two keys, as numbers with as many digits as a key has bytes.

    Parameters
    ----------
    concept : ConceptClass
        Points, Thresholds, Intervals or UnionOfIntervals.
    width : int of 1 or more
        Numbers of a key.

    Examples
    --------
    >>> from cumae.concepts import Thresholds
    >>> from cumae.concepts.keyed import Keyed
    >>> names = Keyed(Thresholds(), 2)
    >>> rule = names.erm([[1, 4], [1, 9], [2, 0]], [0, 1, 1])
    >>> rule.runs
    (((1.0, 7.0), None),)
    """

    def __init__(self, concept: ConceptClass, width: int) -> None:
        if not isinstance(concept, COMPARING):
            raise InvalidParameter(
                f"{type(concept).__name__} does more than compare; ordered values need Points, "
                "Thresholds, Intervals or UnionOfIntervals."
            )
        self.concept = concept
        self.width = check_count(width, "width", least=1)
        self.label_boost_k = concept.label_boost_k  # type: ignore[misc]

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Keyed) and self.width == other.width
        return same and self.concept == other.concept  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((Keyed, self.concept, self.width))

    def __repr__(self) -> str:
        return f"Keyed({self.concept!r}, {self.width})"

    def vc_dimension(self, n_features: int) -> int:
        """Return the VC dimension of the class on one column."""
        if n_features != self.width:
            raise InvalidParameter(f"{n_features} numbers are no key of {self.width}.")
        return self.concept.vc_dimension(1)

    def n_dichotomies(self, X: ArrayLike) -> int:
        return self.concept.n_dichotomies(self.ranked(check_table(X, self.width))[1])

    def weight_error(self, size: int, rate: float, points: int | None = None) -> float:
        return self.concept.weight_error(size, rate, points)

    @claim("KEYS")
    def ranked(self, points: Floats, rows: Floats | None = None) -> tuple[Floats, Floats]:
        """Return distinct keys in order, and the rank of each row among them.

        Parameters
        ----------
        points : array of float
            Keys, one a line.
        rows : array of float, or None
            Rows whose ranks are asked for; None for the points themselves. The rank of a row
            between two points is a quarter above that of the lower one, or three quarters if the
            row is at or above the cut half-way between them.
        """
        order = np.lexsort(points.T[::-1])
        ordered = points[order]
        new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))[: len(ordered)]
        distinct = ordered[new]
        if rows is None:
            ranks = np.empty(len(points))
            ranks[order] = np.cumsum(new) - 1.0
            return distinct, ranks
        both = np.vstack([distinct, rows])
        # The sort is stable, so that a point comes before rows that equal it.
        order = np.lexsort(both.T[::-1])
        last = np.empty(len(both), dtype=np.int64)
        last[order] = np.cumsum(order < len(distinct)) - 1
        last = last[len(distinct) :]
        if not len(distinct):
            return distinct, np.zeros(len(rows))
        cuts = np.vstack([distinct[:1], middle_keys(distinct[:-1], distinct[1:]), distinct[-1:]])
        equal = (last >= 0) & (distinct[np.maximum(last, 0)] == rows).all(axis=1)
        inner = (last >= 0) & (last < len(distinct) - 1)
        upper = inner & _at_or_above(rows, cuts[last + 1])
        return distinct, np.where(equal, last, last + np.where(upper, ABOVE, BELOW))

    @claim("KEYS")
    def named(self, rule: Hypothesis, distinct: Floats) -> KeyRuns:
        """Return a rule about ranks as one about keys.

        Parameters
        ----------
        rule : Hypothesis
            A rule of the class, over ranks.
        distinct : array of float
            The keys that have these ranks.
        """

        def key(bound: float | None) -> Key:
            if bound is None or math.isinf(bound):
                return None
            below = math.floor(bound)
            if bound == below:
                return tuple(distinct[below].tolist())
            if bound - below < RIGHT_ABOVE:
                return next_key(tuple(distinct[below].tolist()))
            gap = distinct[below : below + 1], distinct[below + 1 : below + 2]
            return tuple(middle_keys(*gap)[0].tolist())

        if isinstance(rule, Threshold):
            cut = key(rule.cut)
            if cut is None:
                return KeyRuns(self.width, () if rule.above else ((None, None),))
            return KeyRuns(self.width, ((cut, None) if rule.above else (None, cut),))
        if isinstance(rule, Point):
            at = key(rule.value)
            return KeyRuns(self.width, () if at is None else ((at, next_key(at)),))
        if not isinstance(rule, IntervalUnion):
            raise InvalidParameter(f"{type(rule).__name__} is no rule about ranks.")
        return KeyRuns(self.width, tuple((key(low), key(high)) for low, high in rule.intervals))

    def _draw(
        self,
        points: ArrayLike,
        X: ArrayLike,
        y: Integers,
        rate: Fraction | float,
        source: Source,
    ) -> Hypothesis:
        places, rows = check_tables(points, X)
        check_rows(len(rows), y)
        distinct, ranks = self.ranked(places, None if points is X else rows)
        among = ranks if points is X else np.arange(float(len(distinct)))
        return self.named(self.concept._draw(among, ranks, y, rate, source), distinct)

    def _best(self, X: ArrayLike, y: Integers, weights: NDArray[Any]) -> Hypothesis:
        distinct, ranks = self.ranked(check_table(X, self.width))
        return self.named(self.concept._best(ranks, y, weights), distinct)


@claim("KEYS")
def comparing(model: Any, columns: Columns | None) -> Any:
    """Return the model for rows with these columns: one of keys, where columns are ordered.

    Parameters
    ----------
    model : classifier, Pipeline or ConceptClass
        What was asked for.
    columns : Columns, or None
        What was declared.

    Raises
    ------
    InvalidParameter
        If columns are ordered, and others are not, or the model does more than compare.
    """
    ordered = [] if columns is None else columns.ordered
    concept = model.concept if isinstance(model, Keyed) else model
    if columns is None or not ordered:
        return concept
    if len(ordered) < len(columns.columns) or not isinstance(concept, COMPARING):
        names = ", ".join(columns.columns[place].name for place in ordered)
        raise InvalidParameter(
            f"columns {names} are declared as ordered, so that they can only be compared: that is "
            "enough for concept_class=Thresholds(), Intervals(), UnionOfIntervals(k) or Points(), "
            "if all columns are ordered. Declare them otherwise, or take one of these classes."
        )
    return Keyed(concept, len(columns))


def _from(table: Floats, end: Key, *, open_end: bool) -> NDArray[np.bool_]:
    """Tell which keys are at or above an end; ``open_end`` for all of them if there is none."""
    if end is None:
        return np.full(len(table), open_end)
    return _at_or_above(table, np.array([end]))


def _at_or_above(table: Floats, ends: Floats) -> NDArray[np.bool_]:
    """Tell which keys are at or above an end: the one for all, or each its own."""
    above, equal = np.zeros(len(table), dtype=bool), np.ones(len(table), dtype=bool)
    for column, words in zip(table.T, ends.T, strict=True):
        above |= equal & (column > words)
        equal &= column == words
    return above | equal
