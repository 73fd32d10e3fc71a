"""A halfspace as a hypothesis, and the tables that it labels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Floats, Integers
from cumae.codec import cell_from_json, cell_to_json
from cumae.concepts.base import Hypothesis, text
from cumae.concepts.kernels.halfspaces_exact import dot_product, exact_rows, without_fractions
from cumae.data import check_number, check_table, check_tuple
from cumae.errors import InvalidData, InvalidParameter

Number: TypeAlias = int | float


@dataclass(frozen=True, repr=False)
class Halfspace(Hypothesis):
    """The rule that labels 1 where normal . x is at least the offset.

    Floats stand for the exact numbers that they are, and the comparison is exact: rounding
    decides nothing. Where floats are too coarse for a gap, normal and offset are whole numbers.

    Parameters
    ----------
    normal : tuple of float or int
        A number for each column.
    offset : float or int
        The least value of normal . x with label 1.

    Examples
    --------
    >>> from cumae.concepts import Halfspace
    >>> Halfspace((1.0, -2.0), 0.5).predict([[0, 0], [1, 0.25], [3, 1]]).tolist()
    [0, 1, 1]
    >>> print(Halfspace((1.0, -2.0), 0.5))
    label 1 where 1.0 x0 - 2.0 x1 >= 0.5, else 0
    """

    normal: tuple[Number, ...]
    offset: Number

    def __post_init__(self) -> None:
        check_tuple(self.normal, "normal")
        given: list[Any] = [*self.normal, self.offset]
        for value in given:
            if not isinstance(value, int):  # integers may be longer than any float
                check_number(value, "a number of a halfspace", finite=len(given) > 2)
        if len(given) == 1 or math.inf in map(abs, self.normal):
            raise InvalidParameter("this is no halfspace; give a finite number for each column.")

    def predict(self, X: ArrayLike) -> Integers:
        return self.labels(halfspace_table(X, len(self.normal)))

    def labels(self, rows: Floats) -> Integers:
        """Return the labels of rows that were checked before.

        Parameters
        ----------
        rows : array of float
            A table with the columns of the normal.
        """
        if not any(self.normal):
            return np.full(len(rows), int(self.offset <= 0))
        labels, sure = self._rounded(rows)
        if not sure.all():
            *normal, offset = without_fractions([*map(Fraction, (*self.normal, self.offset))])
            exact, scale = exact_rows(rows[~sure])
            labels[~sure] = [dot_product(normal, row) >= offset * scale for row in exact]
        return labels

    def _rounded(self, rows: Floats) -> tuple[Integers, NDArray[np.bool_]]:
        """Return labels by float arithmetic, and which of them are right for sure."""
        numbers = _nearby((*self.normal, self.offset))
        normal, offset = np.array(numbers[:-1]), numbers[-1]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            products = rows * normal
            values = products.sum(axis=1)
            size = np.abs(products).sum(axis=1) + abs(offset)
            # At most 6 roundings of 2^-53 each, and 3 underflows; what overflows stays open.
            margin = 2.0**-50 * size + 2.0**-1000
            sure = (np.abs(values - offset) > margin) & np.isfinite(size)
        if len(normal) == 1:  # an ordered column, in which infinite values have their place
            sure |= np.isinf(rows[:, 0]) | math.isinf(offset)
        return np.asarray(values >= offset, dtype=np.int64), sure

    def _fields(self) -> dict[str, Any]:
        # Whole numbers may be longer than Python writes in decimals.
        numbers = [
            cell_to_json(value) if isinstance(value, float) else hex(value)
            for value in (*self.normal, self.offset)
        ]
        return {"normal": numbers[:-1], "offset": numbers[-1]}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Halfspace:
        numbers = [
            int(value, 16) if isinstance(value, str) else float(cell_from_json(value))
            for value in (*fields["normal"], fields["offset"])
        ]
        return cls(tuple(numbers[:-1]), numbers[-1])

    def __str__(self) -> str:
        if not any(self.normal):
            return f"label {int(self.offset <= 0)} everywhere"
        terms = [
            (value, f"{text(abs(value))} x{i}") for i, value in enumerate(self.normal) if value
        ]
        left = ("-" if terms[0][0] < 0 else "") + terms[0][1]
        left += "".join(f" {'-' if value < 0 else '+'} {term}" for value, term in terms[1:])
        return f"label 1 where {left} >= {text(self.offset)}, else 0"

    def __repr__(self) -> str:
        normal = "".join(f"{text(value)}, " for value in self.normal)
        return f"Halfspace(({normal.strip()}), {text(self.offset)})"


def _nearby(numbers: Sequence[Number]) -> list[float]:
    """Return floats in the same proportion, each rounded once; NaN if that cannot be."""
    if all(isinstance(value, float) for value in numbers) or math.inf in map(abs, numbers):
        return [float(value) for value in numbers]
    ratios = [Fraction(value) for value in numbers]
    largest = max(abs(value) for value in ratios)
    near = [float(value / largest) for value in ratios]
    fits = all(
        abs(value) > 2.0**-900 or not exact for value, exact in zip(near, ratios, strict=True)
    )
    return near if fits else [math.nan] * len(near)


def halfspace_table(X: ArrayLike, columns: int | None = None) -> Floats:
    """Return a table of one to three columns; with two or more, all numbers must be finite."""
    table = check_table(X, columns)
    check_shape(table, X, "X")
    return table


def check_shape(table: Floats, X: ArrayLike, name: str) -> None:
    """Refuse a table with more columns than halfspaces take, or an infinite value in several.

    Parameters
    ----------
    table : array of float
        What was read from ``X``.
    X : array-like
        The table as it was given, for the names of its columns.
    name : str
        What it is called in the message.
    """
    if table.shape[1] not in (1, 2, 3):
        raise InvalidData(
            f"X has {table.shape[1]} columns; halfspaces take 1, 2 or 3: select some, or use "
            "Projections."
        )
    if table.shape[1] > 1 and not np.isfinite(table).all():
        row, column = (int(i) for i in np.argwhere(~np.isfinite(table))[0])
        names = getattr(X, "columns", range(table.shape[1]))
        raise InvalidData(
            f"{name} has an infinite value in row {row}, column {names[column]}; a boundary across "
            "several columns needs finite ones.",
            columns=[str(names[column])],
            rows=[row],
        )
