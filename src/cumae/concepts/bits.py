"""Conjunctions and parities of columns that hold 0 and 1.

Both classes are finite and public, so the candidates of ``choose`` are all of their concepts,
whichever points there are. One table of counts, with a cell for each combination of the columns,
gives the scores of all concepts at once.
"""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.concepts.base import ConceptClass, Hypothesis
from cumae.data import check_rows, check_table, check_tables, check_tuple
from cumae.errors import InvalidData, InvalidParameter
from cumae.parameters import check_count, check_flag
from cumae.randomness import Source, integers, weighted_choice

MOST_LITERALS = 13  # columns of conjunctions: 3^13 are 1.6 million
MOST_BITS = 20  # columns of parities: 2^20 are a million


def check_bits(X: ArrayLike, n_features: int | None = None) -> NDArray[np.bool_]:
    """Return a table of 0 and 1 as booleans; an error names a row and a column.

    Parameters
    ----------
    X : array-like
        Rows.
    n_features : int, or None
        Number of columns that are needed.
    """
    table = check_table(X, n_features)
    wrong = np.argwhere((table != 0) & (table != 1))
    if len(wrong):
        row, column = wrong[0].tolist()
        raise InvalidData(
            f"X holds something else than 0 and 1 in row {row}, column {column}; declare "
            "categories, so that each becomes a column of 0 and 1, or use Stumps.",
            columns=[column],
            rows=[row],
        )
    return np.asarray(table == 1)


def _check_columns(columns: tuple[int, ...], n_features: int, name: str) -> None:
    check_tuple(columns, name)
    rising = all(a < b for a, b in itertools.pairwise(columns))
    if not rising or not all(0 <= check_count(c, name) < n_features for c in columns):
        raise InvalidParameter(f"{name}={columns!r} are no columns of {n_features}, in order.")


@dataclass(frozen=True, repr=False)
class Conjunction(Hypothesis):
    """The rule that labels 1 the rows with 1 in some columns and 0 in others; or no row.

    Parameters
    ----------
    n_features : int of 1 or more
        Number of columns.
    ones, zeros : tuple of int
        Columns that must be 1, and columns that must be 0, in order.
    nowhere : bool
        Whether no row has label 1.

    Examples
    --------
    >>> from cumae.concepts import Conjunction
    >>> rule = Conjunction(3, ones=(0,), zeros=(2,))
    >>> rule.predict([[1, 1, 0], [1, 1, 1], [0, 1, 0]]).tolist()
    [1, 0, 0]
    >>> print(rule)
    label 1 where column 0 is 1 and column 2 is 0, else 0
    """

    n_features: int
    ones: tuple[int, ...] = ()
    zeros: tuple[int, ...] = ()
    nowhere: bool = False

    def __post_init__(self) -> None:
        check_count(self.n_features, "n_features", least=1)
        _check_columns(self.ones, self.n_features, "ones")
        _check_columns(self.zeros, self.n_features, "zeros")
        check_flag(self.nowhere, "nowhere")
        if set(self.ones) & set(self.zeros):
            raise InvalidParameter("a column is among ones and zeros; give nowhere=True.")

    def predict(self, X: ArrayLike) -> Integers:
        table = check_bits(X, self.n_features)
        right = table[:, list(self.ones)].all(axis=1) & ~table[:, list(self.zeros)].any(axis=1)
        return np.asarray(right & (not self.nowhere), dtype=np.int64)

    def _fields(self) -> dict[str, Any]:
        plain = {"ones": list(self.ones), "zeros": list(self.zeros)}
        return {"n_features": int(self.n_features), **plain, "nowhere": bool(self.nowhere)}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Conjunction:
        ones, zeros = tuple(fields["ones"]), tuple(fields["zeros"])
        return cls(fields["n_features"], ones, zeros, fields["nowhere"])

    def __str__(self) -> str:
        if self.nowhere or not (self.ones or self.zeros):
            return f"label {int(not self.nowhere)} everywhere"
        literals = sorted([(c, 1) for c in self.ones] + [(c, 0) for c in self.zeros])
        return f"label 1 where {' and '.join(f'column {c} is {v}' for c, v in literals)}, else 0"


@dataclass(frozen=True, repr=False)
class Parity(Hypothesis):
    """The rule that labels 1 the rows with 1 in an odd number of some columns.

    Parameters
    ----------
    n_features : int of 1 or more
        Number of columns.
    columns : tuple of int
        The columns that are counted, in order.

    Examples
    --------
    >>> from cumae.concepts import Parity
    >>> Parity(3, (0, 2)).predict([[1, 1, 0], [1, 1, 1], [0, 1, 0]]).tolist()
    [1, 0, 0]
    """

    n_features: int
    columns: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_count(self.n_features, "n_features", least=1)
        _check_columns(self.columns, self.n_features, "columns")

    def predict(self, X: ArrayLike) -> Integers:
        table = check_bits(X, self.n_features)
        return np.asarray(table[:, list(self.columns)].sum(axis=1) % 2, dtype=np.int64)

    def _fields(self) -> dict[str, Any]:
        return {"n_features": int(self.n_features), "columns": list(self.columns)}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Parity:
        return cls(fields["n_features"], tuple(fields["columns"]))

    def __str__(self) -> str:
        if not self.columns:
            return "label 0 everywhere"
        if len(self.columns) == 1:
            return f"label 1 where column {self.columns[0]} is 1, else 0"
        listed = ", ".join(f"column {column}" for column in self.columns)
        return f"label 1 where an odd number of {listed} is 1, else 0"


@claim("BITS", "CHOOSE")
class BitClass(ConceptClass):
    """A finite class over columns of 0 and 1, whose candidates are all of its concepts.

    Of several best hypotheses ``erm`` takes the first of its list.
    """

    label_boost_k: ClassVar[int | None] = 1  # candidates are public, whichever points there are
    needs_points: ClassVar[bool] = False
    most_columns: ClassVar[int]

    @abstractmethod
    def n_concepts(self, n_features: int) -> int:
        """Return the number of concepts on so many columns.

        Parameters
        ----------
        n_features : int of 1 or more
            Number of columns.
        """

    @abstractmethod
    def _scores(self, gain: NDArray[Any], base: int, n_features: int) -> NDArray[Any]:
        """Return the score of each concept.

        Parameters
        ----------
        gain : array of whole numbers
            Rows with label 1 less rows with label 0 in each cell of the table of combinations;
            column 0 is the first bit of a cell's number.
        base : int
            Rows with label 0.
        n_features : int of 1 or more
            Number of columns.
        """

    @abstractmethod
    def _concept(self, place: int, n_features: int) -> Hypothesis:
        """Return the concept at a place of the list."""

    def check_width(self, n_features: int) -> int:
        """Refuse more columns than can be listed.

        Parameters
        ----------
        n_features : int of 1 or more
            Number of columns.
        """
        if check_count(n_features, "n_features", least=1) > self.most_columns:
            raise InvalidData(
                f"X has {n_features} columns of 0 and 1, and {type(self).__name__} takes "
                f"{self.most_columns} at most; select some."
            )
        return n_features

    def vc_dimension(self, n_features: int) -> int:
        """Return the number of columns: so many rows can be labelled in every way."""
        return self.check_width(n_features)

    def n_candidates(self, points: ArrayLike) -> int:
        return self.n_concepts(self.check_width(check_bits(points).shape[1]))

    def _table(
        self, X: ArrayLike, y: Integers, weights: NDArray[Any]
    ) -> tuple[NDArray[Any], int, int]:
        """Return what each cell gains with label 1, what label 0 has everywhere, and the width."""
        table = check_bits(X)
        check_rows(len(table), y)
        width = self.check_width(table.shape[1])
        cells = table @ (1 << np.arange(width)[::-1])
        gain = np.zeros(1 << width, dtype=weights.dtype)
        np.add.at(gain, cells, np.where(y == 1, weights, -weights))
        return gain, sum(weights[y == 0].tolist()), width

    def _draw(
        self,
        points: ArrayLike,
        X: ArrayLike,
        y: Integers,
        rate: Fraction | float,
        source: Source,
    ) -> Hypothesis:
        _, rows = check_tables(points, X)  # of the same columns, and that is all
        gain, base, width = self._table(rows, y, np.ones(len(y), dtype=np.int64))
        scores = self._scores(gain, base, width)
        levels, counts = np.unique(scores, return_counts=True)
        level = weighted_choice(levels, rate, counts=counts, source=source)
        place = integers(int(counts[level]), source=source)
        return self._concept(int(np.flatnonzero(scores == levels[level])[place]), width)

    def _best(self, X: ArrayLike, y: Integers, weights: NDArray[Any]) -> Hypothesis:
        gain, base, width = self._table(X, y, weights)
        return self._concept(int(np.argmax(self._scores(gain, base, width))), width)


@claim("BITS", "CHOOSE")
class Conjunctions(BitClass):
    """All conjunctions of columns of 0 and 1, plain or negated, of up to 13 columns.

    There are 3^d + 1 of d columns: each column must be 0, must be 1, or is ignored; and one rule
    labels no row 1. The candidates of ``choose`` are all of them, and ``points`` play no part. Of
    several best hypotheses ``erm`` takes the first one of this list: nowhere, then by the first
    column, which must be 0, must be 1, or is ignored; among these by the second one, and so on.

    Examples
    --------
    >>> from cumae.concepts import Conjunctions
    >>> rows = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> print(Conjunctions().erm(rows, [0, 0, 1, 0]))
    label 1 where column 0 is 1 and column 1 is 0, else 0
    >>> Conjunctions().n_candidates(rows), Conjunctions().n_dichotomies(rows)
    (10, 10)
    """

    most_columns = MOST_LITERALS

    def vc_dimension(self, n_features: int) -> int:
        """Return the number of columns, but 2 for a single one."""
        return max(2, super().vc_dimension(n_features))

    def n_concepts(self, n_features: int) -> int:
        return int(3**n_features + 1)

    def n_dichotomies(self, X: ArrayLike) -> int:
        """Count the labellings: each is the set of rows in a smallest subcube around them."""
        table = check_bits(X)
        width = self.check_width(table.shape[1])
        cells = table @ (1 << np.arange(width)[::-1])
        # Bits that are 1 in all, and in some, of the rows of each subcube.
        all_ones = np.full(1 << width, -1, dtype=np.int64)
        some_ones = np.zeros(1 << width, dtype=np.int64)
        there = np.zeros(1 << width, dtype=np.int64)
        all_ones[cells] = some_ones[cells] = cells
        there[cells] = 1
        within, touched, held = (
            _subcubes(values, how, width)
            for values, how in (
                (all_ones, np.bitwise_and),
                (some_ones, np.bitwise_or),
                (there, np.bitwise_or),
            )
        )
        hulls = np.unique((within << width | touched)[held == 1])
        return 1 + len(hulls)

    def _scores(self, gain: NDArray[Any], base: int, n_features: int) -> NDArray[Any]:
        sums = _subcubes(gain, np.add, n_features)
        return np.concatenate([np.zeros(1, dtype=sums.dtype), sums]) + base

    def _concept(self, place: int, n_features: int) -> Hypothesis:
        if place == 0:
            return Conjunction(n_features, nowhere=True)
        digits = list(_digits(place - 1, n_features))
        zeros, ones = (
            tuple(column for column, digit in enumerate(digits) if digit == value)
            for value in (0, 1)
        )
        return Conjunction(n_features, ones, zeros)


@claim("BITS", "CHOOSE")
class Parities(BitClass):
    """All parities of up to 20 columns of 0 and 1: label 1 if an odd number of some of them is 1.

    There are 2^d of d columns. The candidates of ``choose`` are all of them, and ``points`` play no
    part. Of several best hypotheses ``erm`` takes the first one in the order of numbers whose first
    bit is column 0.

    Examples
    --------
    >>> from cumae.concepts import Parities
    >>> rows = [[0, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 0]]
    >>> print(Parities().erm(rows, [0, 1, 1, 0]))
    label 1 where an odd number of column 0, column 1 is 1, else 0
    >>> Parities().n_dichotomies(rows)
    8
    """

    most_columns = MOST_BITS

    def n_concepts(self, n_features: int) -> int:
        return int(2**n_features)

    def n_dichotomies(self, X: ArrayLike) -> int:
        """Return 2 to the rank of the rows over the field of two elements."""
        table = check_bits(X)
        width = self.check_width(table.shape[1])
        basis: list[int] = []
        for cell in np.unique(table @ (1 << np.arange(width)[::-1])).tolist():
            for vector in basis:  # each with a first bit of its own
                cell = min(cell, cell ^ vector)  # noqa: PLW2901
            if cell:
                basis = sorted([*basis, cell], reverse=True)
        return int(2 ** len(basis))

    def _scores(self, gain: NDArray[Any], base: int, n_features: int) -> NDArray[Any]:
        # The sum of gains where a parity is 1 is half of the total less its Walsh coefficient.
        found = gain.copy()
        for column in range(n_features):
            pairs = found.reshape(-1, 2, 1 << column)
            low, high = pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]
            found = np.stack([low, high], axis=1).reshape(-1)
        return np.asarray((found[0] - found) // 2 + base)

    def _concept(self, place: int, n_features: int) -> Hypothesis:
        bits = range(n_features)
        return Parity(n_features, tuple(c for c in bits if place >> (n_features - 1 - c) & 1))


@claim("BITS")
def _subcubes(values: NDArray[Any], how: np.ufunc, width: int) -> NDArray[Any]:
    """Return what joining the cells of each subcube gives, in the order of conjunctions.

    Parameters
    ----------
    values : array
        One for each cell of the cube.
    how : ufunc
        How two cells are joined, such as ``np.add``.
    width : int
        Number of columns.
    """
    found = values.reshape((2,) * width)
    for axis in range(width):
        both = how.reduce(found, axis=axis, keepdims=True)
        found = np.concatenate([found, both], axis=axis)
    return found.reshape(-1)


def _digits(number: int, width: int) -> Iterator[int]:
    """Yield the digits of a number to the base of three, the first one first."""
    for place in reversed(range(width)):
        yield number // 3**place % 3
