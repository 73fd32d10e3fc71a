"""What is declared about the columns of a table, without looking at it."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from cumae.arrays import Floats
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
        shown = self.categories[1:] if len(self.categories) == 2 else self.categories
        return [(f"{self.name}={category}", (0.0, 1.0, 1.0)) for category in shown]


class Columns:
    """Turns rows of a real table into numbers, by declarations alone.

    A numeric column is used as it is. A column of text becomes one column of 0 and 1 for each
    declared category (for two categories, for the second only); what was not declared, and a
    missing text, counts as none of them. Nothing is ever learnt from the rows.

    Parameters
    ----------
    declared
        For each column, by name or position: ``(low, high)``, or ``(low, high, step)`` where
        only low, low + step, ... occur; or a list of categories; or None. A list of these goes by
        position. Columns that are not named are numeric without bounds.
    names
        Names of the columns, or None where they have none.
    n_features
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
        self.given = None if names is None else [str(name) for name in names]
        wanted = _by_position(declared, self.given, n_features)
        titles = self.given or [str(place) for place in range(n_features)]
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
        names = names_of(X)
        if names is not None and self.given is not None and names != self.given:
            raise InvalidData(
                "X has other columns, or another order of columns, than the rows of fit; select "
                f"{self.given!r}."
            )
        if width_of(X) != len(self.columns):
            flat = np.ndim(X) == 1
            raise InvalidData(
                f"X has {width_of(X)} features, but Learner is expecting "
                f"{len(self.columns)} features as input." + (f" {FLAT}" if flat else "")
            )
        parts = [
            _encode(column, self._key(column), values)
            for column, values in zip(self.columns, cells_of_columns(X), strict=True)
        ]
        return np.hstack(parts) if parts else np.zeros((length_of(X), 0))

    def _key(self, column: Column) -> str:
        """Return how a declaration names a column."""
        return column.name if self.given is None else repr(column.name)

    @property
    def titles(self) -> list[str]:
        """Names as a sentence shows them, which numbers alone could not."""
        return self.names if self.given is not None else [f"column {name}" for name in self.names]

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
            "names": self.given,
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


def names_of(X: ArrayLike) -> list[str] | None:
    """Return the names of a data frame's columns; None for what has no names."""
    columns = getattr(X, "columns", None)
    return None if columns is None else [str(name) for name in columns]


def width_of(X: ArrayLike) -> int:
    """Return the number of columns; a flat list is one column."""
    _refuse_sparse(X)
    shape = getattr(X, "shape", None)
    if shape is None:
        shape = _array(X).shape
    if len(shape) not in (1, 2):
        raise InvalidData(f"X has {len(shape)} dimensions; give rows and columns.")
    if len(shape) == 2 and shape[1] == 0:
        raise InvalidData(
            f"X has 0 feature(s) (shape=({shape[0]}, 0)) while a minimum of 1 is required."
        )
    return int(shape[1]) if len(shape) == 2 else 1


def _refuse_sparse(X: ArrayLike) -> None:
    if issparse(X):
        raise InvalidData("X is sparse; give a dense table, such as X.toarray().")


def length_of(X: ArrayLike) -> int:
    """Return the number of rows."""
    _refuse_sparse(X)
    rows: Any = X if hasattr(X, "__len__") else _array(X)
    return len(rows)


def cells_of_columns(X: ArrayLike) -> list[NDArray[Any]]:
    """Return the columns one by one, so that each keeps a type of its own."""
    if getattr(X, "columns", None) is not None:
        frame: Any = X
        return [_cells(frame.iloc[:, i]) for i in range(frame.shape[1])]
    table = _array(X)
    return list(table.reshape(len(table), width_of(table)).T)


def _cells(series: Any) -> NDArray[Any]:
    if hasattr(series, "cat"):
        # Not through pandas: a missing cell would turn whole numbers into floats.
        values = np.full(len(series.cat.categories) + 1, np.nan, dtype=object)
        values[:-1] = series.cat.categories.to_numpy(dtype=object)
        return np.asarray(values[series.cat.codes.to_numpy()])  # the code of a missing cell is -1
    # Of types of its own pandas makes floats as soon as one cell is missing: keep each cell.
    if not isinstance(series.dtype, np.dtype) or series.dtype.kind == "O":
        return np.asarray(series.to_numpy(dtype=object, na_value=np.nan))
    return np.asarray(series)


def stacked(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Return the rows of both; where types differ each cell keeps its own."""
    if first.dtype != second.dtype:
        first, second = first.astype(object), second.astype(object)
    return np.concatenate([first, second])


def _array(X: ArrayLike) -> NDArray[Any]:
    if isinstance(X, np.ndarray):
        return X
    array = None
    # Numpy would give a list one type, so that one cell could change how all others are read.
    with contextlib.suppress(ValueError):
        array = np.asarray(X, dtype=None if hasattr(X, "__array__") else object)
    if array is None or array.ndim == 0:
        raise InvalidData("X is no regular table; give rows of the same length.")
    return array


def _encode(column: Column, key: str, values: NDArray[Any]) -> Floats:
    if column.categories is not None:
        text = values.astype(object)
        shown = column.categories[1:] if len(column.categories) == 2 else column.categories
        marks = [_equal(text, category) for category in shown]
        return np.column_stack(marks).astype(np.float64)
    if values.dtype.kind == "c":
        raise InvalidData(f"Complex data not supported: column {column.name}; give real numbers.")
    if values.dtype.kind not in "biufO" or (
        values.dtype.kind == "O" and any(isinstance(cell, str) for cell in values)
    ):
        raise InvalidData(
            f"column {column.name} holds something that is no number. If it is text, declare what "
            f'can occur: columns={{{key}: ["one", "another"]}}.'
        )
    numbers = None
    with contextlib.suppress(TypeError, ValueError, OverflowError):  # their text carries values
        numbers = values.astype(np.float64).reshape(-1, 1)  # cell by cell, if they are objects
    if numbers is None:
        raise InvalidData(f"column {column.name} holds something that is no number.")
    missing = np.flatnonzero(np.isnan(numbers))
    if len(missing):
        raise InvalidData(
            f"X has a missing value (NaN) in row {int(missing[0])}, column {column.name}; fill or "
            "drop it."
        )
    return numbers


def _equal(cells: NDArray[Any], category: Any) -> NDArray[np.bool_]:
    """Tell which cells are the category, each for itself; what cannot be compared is not."""
    with contextlib.suppress(TypeError, ValueError):
        return np.asarray(cells == category, dtype=bool)
    marks = np.zeros(len(cells), dtype=bool)
    for place, cell in enumerate(cells):
        with contextlib.suppress(TypeError, ValueError):
            marks[place] = bool(cell == category)
    return marks


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
