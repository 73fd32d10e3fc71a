"""Single points: label 1 at one value, or nowhere; and random sets that stand for them."""

from __future__ import annotations

import hashlib
import math
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
from cumae.concepts.finite import FiniteClass
from cumae.concepts.thresholds import single_column
from cumae.data import check_cell, check_column, check_rows, plain_value
from cumae.errors import InvalidParameter
from cumae.parameters import check_count, check_share
from cumae.randomness import Source, integers, source_for, weighted_choice


@dataclass(frozen=True, repr=False)
class Point(Hypothesis):
    """The rule that labels 1 what equals ``value``, or nothing if there is none.

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


# Improper learning of points: a rule need not be a point to be right almost everywhere.

WORD_BYTES = 8  # of the keyed function for each set
KEY_BYTES = 32
MOST_SETS = 10_000


@dataclass(frozen=True, repr=False)
class RandomSet(Hypothesis):
    """The rule that labels 1 a random part of all possible values, by a keyed function.

    Parameters
    ----------
    key : str
        The key, in hexadecimal digits.
    number : int of 0 or more
        Which of the sets of this key it is.
    share : float above 0 and below 1
        The chance of a value to be in the set.

    Examples
    --------
    >>> from cumae.concepts import RandomSet
    >>> labels = RandomSet("00" * 32, 0, 0.25).predict(list(range(1_000)))
    >>> bool(200 < labels.sum() < 300)
    True
    """

    key: str
    number: int
    share: float

    def __post_init__(self) -> None:
        _check_key(self.key)
        check_count(self.number, "number")
        check_share(self.share, "share")

    def predict(self, X: ArrayLike) -> Integers:
        words = _words(check_column(X), self.key, int(self.number) + 1)
        return _below(words[:, -1], self.share)

    def _fields(self) -> dict[str, Any]:
        return {"key": self.key, "number": int(self.number), "share": float(self.share)}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> RandomSet:
        return cls(fields["key"], fields["number"], fields["share"])

    def __str__(self) -> str:
        return f"label 1 in random set {self.number} of all values (a share of {self.share:.3g})"


@claim("IMPROPER")
class RandomSets(FiniteClass):
    """A few random sets of values, one of which can stand for any single value.

    If each value is in a set with chance alpha / 2, then one set in 4 / alpha holds the value to be
    found and little else. So a few sets, and the rule that labels nothing 1, hold a good one,
    for any number of possible values. An exponential mechanism over so few candidates needs a
    number of rows that does not depend on it either. The price is that the rule that is learnt
    labels other values 1, too, at random; rows hold few of them.

    Accuracy is stated for rows whose distribution was fixed before the key was drawn. Privacy does
    not depend on the key.

    Parameters
    ----------
    key : str
        64 hexadecimal digits. :meth:`draw` draws them.
    count : int of 1 or more
        Number of sets.
    share : float above 0 and below 1
        The chance of a value to be in a set.

    Examples
    --------
    >>> from cumae import PrivateLearner
    >>> from cumae.concepts import RandomSets
    >>> sets = RandomSets.draw(alpha=0.1, beta=0.01)
    >>> len(sets.hypotheses)
    186
    >>> names = ["Ada"] * 300 + [f"visitor {number}" for number in range(300)]
    >>> learner = PrivateLearner(sets, epsilon=1.0).fit(names, [1] * 300 + [0] * 300)
    >>> learner.predict(["Ada"]).tolist(), bool(learner.score(names, [1] * 300 + [0] * 300) > 0.85)
    ([1], True)
    """

    def __init__(self, key: str, count: int, share: float) -> None:
        self.key = _check_key(key)
        self.count = check_count(count, "count", least=1)
        self.share = check_share(share, "share")
        if self.count > MOST_SETS:
            raise InvalidParameter(f"count={count!r} is more than {MOST_SETS:,}; give less.")
        rules = [Point(), *(RandomSet(key, number, share) for number in range(count))]
        super().__init__(rules)

    @classmethod
    def draw(
        cls, alpha: float, beta: float = 0.05, *, random_state: int | Source | None = None
    ) -> RandomSets:
        """Draw a key for as many sets as one of them needs to err on at most a share alpha.

        Parameters
        ----------
        alpha : float above 0 and below 1
            The share of rows on which the best set may err.
        beta : float above 0 and below 1
            The chance that no set is as good.
        random_state : int, Source or None
            None in production. A seed, which may be known, makes the same key again.
        """
        error, chance = check_share(alpha, "alpha"), check_share(beta, "beta")
        words = source_for(random_state).words(KEY_BYTES // WORD_BYTES)
        count = math.ceil(4 / error * math.log(1 / chance))
        return cls(words.astype(">u8").tobytes().hex(), count, error / 2)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RandomSets) and self.hypotheses == other.hypotheses

    def __hash__(self) -> int:
        return hash((RandomSets, self.key, self.count, self.share))

    def __repr__(self) -> str:
        return f"RandomSets({self.key!r}, {self.count}, {self.share!r})"

    @claim("IMPROPER")
    def _labels(self, X: ArrayLike, numbers: Any = None) -> Integers:
        words = _words(check_column(X), self.key, self.count)
        inside = _below(words, self.share)
        labels = np.vstack([np.zeros(len(inside), dtype=np.int64), inside.T])
        return labels if numbers is None else labels[np.asarray(numbers, dtype=np.int64)]


@claim("IMPROPER")
def _words(column: NDArray[Any], key: str, count: int) -> NDArray[np.uint64]:
    """Return so many words of 64 bits for each value: the keyed function, one value by itself.

    Equal values have equal words, even if their types differ.
    """
    values = column if column.dtype.kind == "M" else column.tolist()
    begun = hashlib.shake_256(bytes.fromhex(key))
    found = bytearray()
    for value in values:
        function = begun.copy()
        function.update(_written(plain_value(value)))
        found += function.digest(WORD_BYTES * count)
    return np.frombuffer(bytes(found), dtype=">u8").reshape(len(column), count).astype(np.uint64)


def _below(words: NDArray[np.uint64], share: float) -> Integers:
    return (words < np.uint64(int(Fraction(share) * 2**64))).astype(np.int64)


def _written(value: Any) -> bytes:
    """Return a value as bytes, with a letter for its kind in front."""
    if isinstance(value, str):
        return b"s" + value.encode("utf-8", "surrogatepass")
    if isinstance(value, int):
        return b"n" + hex(value).encode()
    if isinstance(value, float):
        return b"n" + value.hex().encode()
    if isinstance(value, np.datetime64):  # in the largest unit that has no part of it left over
        return b"t" + str(np.datetime_as_string(value, unit="auto")).encode()
    return b"t" + str(value.isoformat()).encode()


def _check_key(key: object) -> str:
    known = isinstance(key, str) and len(key) == 2 * KEY_BYTES
    if not isinstance(key, str) or not known or key.strip("0123456789abcdef"):
        raise InvalidParameter(f"key is not made of {2 * KEY_BYTES} hexadecimal digits; draw one.")
    return key
