"""Thresholds over all keys of a declared width, which learners draw a public cut from.

A learner publishes its cut. Over an order without an end no private learner finds one; over the
keys of a declared width there are finitely many, and the exponential mechanism draws among all of
them. No list is needed: all cuts between two neighbouring rows have one score.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts.base import ConceptClass, Hypothesis
from cumae.concepts.keyed import Key, KeyRuns
from cumae.concepts.thresholds import Thresholds
from cumae.data import WORD_BYTES, check_rows, check_table
from cumae.errors import InvalidParameter
from cumae.parameters import check_count
from cumae.randomness import Source, integers, weighted_choice

MOST_BITS = 1_000  # of a key: the number of cuts between two rows is within floats
SIDES = {"both": (True, False), "above": (True,), "below": (False,)}  # whether label 1 is above


@claim("UNIVERSE")
class KeyCuts(ConceptClass):
    """All thresholds over keys of a declared width, for any rows.

    ``PrivateLearner`` makes it of ``Thresholds`` where columns are declared as ordered. There is a
    cut at each key, and one above all keys, for each side that label 1 may be on.

    Parameters
    ----------
    concept : Thresholds
        Says on which sides of a cut label 1 may be.
    key_bytes : sequence of int
        Bytes of a key in each column; columns are compared one after the other.

    Examples
    --------
    >>> from cumae.concepts import Thresholds
    >>> from cumae.concepts.universe import KeyCuts
    >>> cuts = KeyCuts(Thresholds("above"), [1])
    >>> cuts.n_candidates([])
    257
    >>> rows = [[float(number * 256**5)] for number in (3, 4, 90)]
    >>> rule = cuts.choose([], rows, [0, 1, 1], epsilon=200.0)
    >>> rule.predict(rows).tolist()
    [0, 1, 1]
    """

    needs_points: ClassVar[bool] = False
    label_boost_k: ClassVar[int | None] = None

    def __init__(self, concept: ConceptClass, key_bytes: Any) -> None:
        if not isinstance(concept, Thresholds):
            raise InvalidParameter(
                f"{type(concept).__name__} cannot be drawn from all keys of a width; Thresholds "
                "can."
            )
        self.concept: Thresholds = concept
        self.key_bytes = tuple(check_count(size, "key_bytes", least=1) for size in key_bytes)
        if 8 * sum(self.key_bytes) > MOST_BITS:
            raise InvalidParameter(
                f"keys of {sum(self.key_bytes):,} bytes are too long to draw a cut from; declare "
                f"max_bytes so that all columns together have {MOST_BITS // 8} at most."
            )

    def __hash__(self) -> int:
        return hash((KeyCuts, self.concept, self.key_bytes))

    def vc_dimension(self, n_features: int) -> int:
        """Return the VC dimension of the class on one column."""
        if n_features != len(self._radices):
            raise InvalidParameter(f"{n_features} numbers are no key of {len(self._radices)}.")
        return self.concept.vc_dimension(1)

    def n_dichotomies(self, X: ArrayLike) -> int:
        numbers = np.array(self._numbers(check_table(X, len(self._radices))), dtype=object)
        ranks = np.unique(numbers, return_inverse=True)[1] if len(numbers) else numbers
        return self.concept.n_dichotomies(ranks.astype(np.int64))

    def n_candidates(self, points: ArrayLike) -> int:
        """Return how many cuts there are, on all sides; points play no part."""
        del points
        return len(self._sides) * (self.n_keys + 1)

    @property
    def n_keys(self) -> int:
        """Number of keys."""
        return math.prod(self._radices)

    @property
    def _sides(self) -> tuple[bool, ...]:
        return SIDES[self.concept.polarity]

    @property
    def _radices(self) -> list[int]:
        """Number of values of each number of a key: the last one of a column may be short."""
        found = []
        for size in self.key_bytes:
            whole, rest = divmod(size, WORD_BYTES)
            found += [256**WORD_BYTES] * whole + ([256**rest] if rest else [])
        return found

    @property
    def _units(self) -> list[int]:
        """The size of one step of each number of a key, as keys are carried."""
        return [256**WORD_BYTES // radix for radix in self._radices]

    @claim("UNIVERSE")
    def _numbers(self, table: Floats) -> list[int]:
        """Return keys as whole numbers, which have the same order."""
        radices, units = self._radices, self._units
        found = []
        for row in table.tolist():
            number = 0
            for word, radix, unit in zip(row, radices, units, strict=True):
                number = number * radix + int(word) // unit
            found.append(number)
        return found

    @claim("UNIVERSE")
    def _key(self, number: int) -> Key:
        """Return the key that is a whole number; None for the one above all keys."""
        if number == self.n_keys:
            return None
        words = []
        for radix, unit in zip(reversed(self._radices), reversed(self._units), strict=True):
            number, step = divmod(number, radix)
            words.append(float(step * unit))
        return tuple(reversed(words))

    @claim("UNIVERSE")
    def _rule(self, number: int, *, above: bool) -> KeyRuns:
        """Return the rule of a cut."""
        cut, width = self._key(number), len(self._radices)
        if cut is None:
            return KeyRuns(width, () if above else ((None, None),))
        return KeyRuns(width, ((cut, None) if above else (None, cut),))

    @claim("UNIVERSE")
    def _draw(
        self,
        points: ArrayLike,
        X: ArrayLike,
        y: Integers,
        rate: Fraction | float,
        source: Source,
    ) -> Hypothesis:
        del points  # all keys are candidates
        table = check_table(X, len(self._radices))
        check_rows(len(table), y)
        numbers, right = self._stretches(table, y)
        sides = self._sides
        # A stretch holds the cuts above one row and up to the next one: they label all rows alike.
        firsts = [0, *(number + 1 for number in numbers)]
        counts = np.diff(np.array([*firsts, self.n_keys + 1], dtype=object))
        scores = [right if above else len(y) - right for above in sides]
        drawn = weighted_choice(
            np.concatenate(scores), rate, counts=np.tile(counts, len(sides)), source=source
        )
        side, stretch = divmod(drawn, len(counts))
        number = firsts[stretch] + integers(int(counts[stretch]), source=source)
        return self._rule(number, above=sides[side])

    def _best(self, X: ArrayLike, y: Integers, weights: NDArray[Any]) -> Hypothesis:
        """Return the first cut of the best stretch: of several, the first one."""
        table = check_table(X, len(self._radices))
        numbers, gained = self._stretches(table, y, weights)
        sides = self._sides
        # The other side gains what this one loses.
        total = int(weights.sum())
        scores = [gained if above else total - gained for above in sides]
        place = int(np.argmax(np.concatenate(scores)))
        side, stretch = divmod(place, len(gained))
        first = 0 if stretch == 0 else numbers[stretch - 1] + 1
        return self._rule(first, above=sides[side])

    @claim("UNIVERSE")
    def _stretches(
        self, table: Floats, y: Integers, weights: NDArray[Any] | None = None
    ) -> tuple[list[int], NDArray[Any]]:
        """Return the distinct keys in order, and what a cut in each stretch gets right.

        With label 1 above the cut: rows, or their weights.
        """
        order = np.lexsort(table.T[::-1])
        ordered = table[order]
        new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))[: len(ordered)]
        weights = np.ones(len(y), dtype=np.int64) if weights is None else weights
        # Moving the cut above a row loses it if its label is 1, and gains it if it is 0.
        signed = np.where(y == 1, -weights, weights)[order]
        first = np.where(y == 1, weights, 0).sum()
        sums = np.cumsum(signed)[np.append(new[1:], True)[: len(ordered)]]
        return self._numbers(ordered[new]), np.append(first, first + sums)
