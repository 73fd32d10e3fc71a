"""What is declared about the columns of a table, without looking at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Floats
from cumae.data.cells import numbers, places_of_values, read_columns
from cumae.data.containers import bare_columns, cells_of_columns, names_of, width_of
from cumae.errors import InvalidData, InvalidParameter

Bounds: TypeAlias = tuple[float, ...]  # (low, high), or (low, high, step) for a grid of values
Declared: TypeAlias = Mapping[Any, Any] | Sequence[Any] | None

FLAT = "Reshape your data: a flat list is a single column; for a single row give X.reshape(1, -1)."


@dataclass(frozen=True)
class Column:
    """One column: its name, and its bounds or its categories where they are declared."""

    name: str
    bounds: Bounds | None = None
    categories: tuple[Any, ...] | None = None

    @property
    def encoded(self) -> list[tuple[str, Bounds | None]]:
        """Names and bounds of the numbers that stand for it."""
        if self.categories is None:
            return [(self.name, self.bounds)]
        return [(f"{self.name}={category}", (0.0, 1.0, 1.0)) for category in self._marked]

    @property
    def _marked(self) -> tuple[Any, ...]:
        """The categories that have an indicator of their own."""
        categories = self.categories or ()
        return categories[1:] if len(categories) == 2 else categories

    @property
    def known(self) -> dict[Any, int] | None:
        """The places of the categories; None for a column of numbers."""
        return None if self.categories is None else places_of_values(self.categories)

    def spread(self, read: NDArray[Any]) -> Floats:
        """Return numbers as they are, and an indicator for each category in the place of codes."""
        if self.categories is None:
            return read.reshape(-1, 1)
        first = len(self.categories) - len(self._marked)
        return np.asarray(read[:, None] == np.arange(first, len(self.categories)), dtype=float)


class Columns:
    """Turns rows of a real table into numbers, by declarations alone.

    A numeric column is used as it is. A column of text becomes one column of 0 and 1 for each
    declared category (for two categories, for the second only); what was not declared, and a
    missing text, counts as none of them. Nothing is ever learnt from the rows.

    Parameters
    ----------
    declared : dict, list or None
        For each column, by name or position: ``(low, high)``, or ``(low, high, step)`` where
        only low, low + step, ... occur; or a list of categories; or None. A list of these goes by
        position. Columns that are not named are numeric without bounds.
    names : list of str or None
        Names of the columns, or None where they have none.
    n_features : int
        Number of columns.

    Examples
    --------
    >>> from cumae.learners import Columns
    >>> columns = Columns({"age": (18, 99), "job": ["farmer", "baker", "nurse"]}, ["age", "job"], 2)
    >>> columns.encode([[40, "baker"], [50, "poet"]]).tolist()
    [[40.0, 0.0, 1.0, 0.0], [50.0, 0.0, 0.0, 0.0]]
    >>> columns.names
    ['age', 'job=farmer', 'job=baker', 'job=nurse']
    """

    def __init__(self, declared: Declared, names: Sequence[str] | None, n_features: int) -> None:
        self.original_names = None if names is None else [str(name) for name in names]
        wanted = _by_position(declared, self.original_names, n_features)
        titles = self.original_names or [str(place) for place in range(n_features)]
        self.columns = [_column(title, wanted.get(i)) for i, title in enumerate(titles)]
        encoded = [pair for column in self.columns for pair in column.encoded]
        self.names = [name for name, _ in encoded]
        self.bounds = [bounds for _, bounds in encoded]
        # What part of the rows an indicator marks if all categories are alike.
        self.shares = [
            None if column.categories is None else 1 / len(column.categories)
            for column in self.columns
            for _ in column.encoded
        ]

    @classmethod
    def of(cls, X: ArrayLike, declared: Declared = None) -> Columns:
        """Take the names and the number of columns from a table, and nothing else."""
        return cls(declared, names_of(X), width_of(X))

    def __len__(self) -> int:
        """Return the number of columns after encoding."""
        return len(self.names)

    def encode(self, X: ArrayLike) -> Floats:
        """Return the rows as numbers; an error names a row and a column, never a value."""
        names, width = names_of(X), width_of(X)
        if names is not None and self.original_names is not None and names != self.original_names:
            raise InvalidData(
                "X has other columns, or another order of columns, than the rows of fit; select "
                f"{self.original_names!r}."
            )
        if width != len(self.columns):
            flat = width == 1 and names is None
            raise InvalidData(
                f"X has {width} features, but Learner is expecting "
                f"{len(self.columns)} features as input." + (f" {FLAT}" if flat else "")
            )
        table = self.read(X)
        if np.isnan(table).any():
            for column, cells in zip(self.columns, cells_of_columns(X), strict=True):
                self._refuse(column, cells)
        return table

    def read(self, X: ArrayLike, *, plain: bool = False) -> Floats:
        """Return the rows as numbers, without any error: NaN for what is missing or no number.

        Each cell is read by itself. ``X`` must have the columns that were declared. With ``plain``,
        objects of unusual types cannot be read, as in private rows.
        """
        kind = X.dtype.kind if isinstance(X, np.ndarray) and X.ndim == 2 else "O"
        if kind in "biuf" and self.numbers_only:
            with np.errstate(all="ignore"):
                return np.array(X, dtype=np.float64)  # the same, but faster
        return self.read_columns(bare_columns(X), plain=plain)

    def read_columns(
        self, columns: Sequence[Any], places: Any = slice(None), *, plain: bool = False
    ) -> Floats:
        """As ``read``, for some rows of bare columns."""
        found = read_columns(
            columns, [column.known for column in self.columns], places, plain=plain
        )
        parts = [column.spread(read) for column, read in zip(self.columns, found, strict=True)]
        return np.hstack(parts) if parts else np.zeros((0, 0))

    @property
    def numbers_only(self) -> bool:
        """Whether there are no categories, so that rows of floats are encoded already."""
        return all(column.categories is None for column in self.columns)

    def _refuse(self, column: Column, cells: NDArray[Any]) -> None:
        """Say what is wrong with a numeric column, if anything is."""
        if column.categories is not None:
            return
        if cells.dtype.kind == "c":
            raise InvalidData(
                f"Complex data not supported: column {column.name}; give real numbers."
            )
        unread, missing = np.isnan(numbers(cells)), np.asarray(pd.isna(cells))
        if np.any(unread & ~missing):
            raise InvalidData(
                f"column {column.name} holds something that is no number. If it is text, declare "
                f'what can occur: columns={{{self._key(column)}: ["one", "another"]}}.'
            )
        if unread.any():
            raise InvalidData(
                f"X has a missing value (NaN) in row {int(np.argmax(unread))}, column "
                f"{column.name}; fill or drop it."
            )

    def _key(self, column: Column) -> str:
        """Return how a declaration names a column."""
        return column.name if self.original_names is None else repr(column.name)

    @property
    def titles(self) -> list[str]:
        """Names as a sentence shows them, which numbers alone could not."""
        return (
            self.names
            if self.original_names is not None
            else [f"column {name}" for name in self.names]
        )

    @property
    def numeric(self) -> list[int]:
        """Places of the encoded columns that can have more than two values."""
        return [
            place
            for place, declared in enumerate(self.bounds)
            if declared is None or len(declared) == 2 or declared[1] - declared[0] > declared[2]
        ]

    def name_in(self, text: str) -> str:
        """Put names in the place of column numbers in what a hypothesis prints."""
        for place in reversed(range(len(self.titles))):
            text = text.replace(f"column {place} ", f"{self.titles[place]} ")
        return text

    def need_bounds(self) -> list[Bounds]:
        """Return the bounds of all encoded columns; where one is missing, say what to write."""
        for column in self.columns:
            if column.categories is None and column.bounds is None:
                raise InvalidParameter(
                    f"column {column.name} has no declared bounds. Write "
                    f"columns={{{self._key(column)}: "
                    "(low, high)}, from what is known without the rows, or give public rows "
                    "as X_public."
                )
        return [bounds for bounds in self.bounds if bounds is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "names": self.original_names,
            "columns": [
                {
                    "bounds": None if column.bounds is None else list(column.bounds),
                    "categories": None if column.categories is None else list(column.categories),
                }
                for column in self.columns
            ],
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Columns:
        """Rebuild what ``to_dict`` returned."""
        declared = [
            tuple(column["bounds"]) if column["bounds"] is not None else column["categories"]
            for column in plain["columns"]
        ]
        return cls(
            [list(d) if isinstance(d, list) else d for d in declared],
            plain["names"],
            len(declared),
        )


def _by_position(
    declared: Declared, names: Sequence[str] | None, n_features: int
) -> dict[int, Any]:
    if declared is None:
        return {}
    if not isinstance(declared, Mapping):
        given: Any = declared
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise InvalidParameter(
                f"columns is a {type(declared).__name__}; give a dict such as {{'age': (18, 99)}}, "
                "or a list with one declaration for each column."
            )
        if len(declared) != n_features:
            raise InvalidParameter(
                f"columns declares {len(declared)} columns, but X has {n_features}; give one "
                "declaration for each, or a dict of those you want to declare."
            )
        return dict(enumerate(declared))
    places = {} if names is None else {name: i for i, name in enumerate(names)}
    wanted = {}
    for key, value in declared.items():
        # A data frame may be named by numbers, too: a name goes before a place.
        place = places.get(str(key), key)
        if not isinstance(place, int) or not 0 <= place < n_features:
            unnamed = "; X has no names, so give places" if names is None else ""
            raise InvalidParameter(f"columns declares {key!r}, which is no column of X{unnamed}.")
        wanted[place] = value
    return wanted


def _column(name: str, declaration: Any) -> Column:
    if declaration is None:
        return Column(name)
    if isinstance(declaration, list):
        if len(declaration) < 2 or len(set(declaration)) < len(declaration):
            raise InvalidParameter(
                f"columns[{name!r}] lists fewer than two categories, or one of them twice."
            )
        plain = [c.item() if isinstance(c, np.generic) else c for c in declaration]
        if any(np.ndim(category) or isinstance(category, dict | set) for category in plain):
            raise InvalidParameter(f"columns[{name!r}] has a category that is no single value.")
        return Column(name, categories=tuple(plain))
    try:
        bounds = tuple(float(value) for value in declaration)
    except (TypeError, ValueError):
        bounds = ()
    # The width must be a float, too.
    usual = len(bounds) in (2, 3) and bool(np.all(np.isfinite((*bounds, bounds[1] - bounds[0]))))
    if not usual or not bounds[0] < bounds[1] or (len(bounds) == 3 and not bounds[2] > 0):
        raise InvalidParameter(
            f"columns[{name!r}] is no declaration; give (low, high), (low, high, step), or a list "
            "of categories."
        )
    return Column(name, bounds=bounds)
