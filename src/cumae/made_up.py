"""Made-up rows: what stands for a table of which only its size and declarations are known.

They are the same ones each time, and no row of anybody is looked at. Estimators are tried on them
before private rows are used, and plans are made for them where there are no rows at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.data import UNLABELLED, Columns, Declared, RowSource, frame_of
from cumae.errors import InvalidData


class MadeUpRows(RowSource):
    """A table of any size that takes no memory: rows are made up when they are asked for.

    Columns are numbers, unless something else is declared. They have names if a declaration uses
    names.

    Parameters
    ----------
    declared : mapping or sequence, or None
        What is declared about the columns, as in :class:`~cumae.Columns`.
    n_rows, n_features : int
        Size of the table.
    frame : bool
        Whether it is a data frame also without declared names.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.made_up import MadeUpRows
    >>> rows = MadeUpRows({"age": (18, 98)}, 1_000_000, 2)
    >>> rows.n_rows, rows.names
    (1000000, ['age', 'column 1'])
    >>> rows.take(np.arange(2)).shape
    (2, 2)
    """

    def __init__(
        self, declared: Declared, n_rows: int, n_features: int, *, frame: bool = False
    ) -> None:
        self.n_rows, self.n_features = n_rows, n_features
        self.names = _names(declared, n_features)
        if frame and self.names is None:
            self.names = [f"column {place}" for place in range(n_features)]
        self.is_frame = self.names is not None
        self._columns = Columns(declared, self.names, n_features)
        kinds = {"categories": "objects", "dates": "dates", "ordered": "objects"}
        found = [kinds.get(column.kind, "numbers") for column in self._columns.columns]
        if not self.is_frame and set(found) - {"numbers"}:
            found = [""] * n_features  # an array of objects
        self.kinds = found

    def take(self, places: Integers) -> Any:
        spread = [fractions(np.asarray(places), place) for place in range(self.n_features)]
        table = np.column_stack(spread) if spread else np.zeros((len(places), 0))
        return rows_at(self, self._columns, table)

    def select(self, names: list[str]) -> RowSource:
        raise InvalidData(f"the columns {names!r} cannot be chosen from a made-up table.")


def made_up_table(declared: Declared, n_rows: int, n_features: int) -> Any:
    """Return the rows of ``MadeUpRows`` as an array or a data frame."""
    return MadeUpRows(declared, n_rows, n_features).take(np.arange(n_rows))


def few_labels(classes: Any, labelled: int, unlabelled: int) -> list[Any]:
    """Return labels of a few rows that stand for many: one of each kind that there is.

    Parameters
    ----------
    classes : sequence
        The declared classes; whoever gets the labels checks them.
    labelled, unlabelled : int
        Rows with a label and without one.

    Examples
    --------
    >>> from cumae.made_up import few_labels
    >>> few_labels(("no", "yes"), 1000, 20), few_labels((0, 1), 7, 0)
    (['no', -1], [0])
    """
    known = list(classes)[:1] if np.iterable(classes) else []
    return (known or [0]) * (labelled > 0) + [UNLABELLED] * (unlabelled > 0)


def _names(declared: Declared, n_features: int) -> list[str] | None:
    """Return names for the columns if the declarations use names, in the order of these."""
    given = list(declared) if isinstance(declared, Mapping) else []
    named = [str(key) for key in given if not isinstance(key, int)]
    if not named:
        return None
    places = [place for place in range(n_features) if place not in given]
    found = {place: f"column {place}" for place in range(n_features)}
    return [*(found | dict(zip(places, named, strict=False))).values()]


def made_up_labels(size: int, n_classes: int) -> NDArray[np.int64]:
    """Return labels that the first made-up column decides; every class occurs."""
    labels = (fractions(np.arange(size), 0) * n_classes).astype(np.int64)
    labels[:n_classes] = np.arange(n_classes)[:size]
    return labels


def stand_in_row(rows: RowSource, columns: Columns | None) -> Any:
    """Return one made-up row, within what is declared.

    Undeclared numbers are 0.5, of which logarithms, roots and quotients can be taken; undeclared
    texts are such as no row has.
    """
    parts: list[NDArray[Any]] = []
    for place in range(rows.n_features):
        declared = _declared(columns, place)
        if declared is None or declared.is_open:
            text = declared is None and rows.is_text(place)
            parts.append(np.array(["other"], dtype=object) if text else np.array([0.5]))
        else:
            # In the lower half of the range, because those at its upper end may be missing.
            parts.append(declared.made_up(fractions(np.arange(1), place) / 2))
    return _table(parts, rows)


def odd_row(rows: RowSource, columns: Columns) -> Any:
    """Return a row with every oddity that is declared: unknown categories and missing cells."""
    parts = []
    for declared in columns.columns:
        if declared.categories is not None:
            odd = None if declared.missing else "none of the declared categories"
            parts.append(np.array([odd], dtype=object))
        else:
            parts.append(declared.made_up(np.array([1.0 - 2.0**-20])))  # missing, if it may be
    return _table(parts, rows)


def made_up_rows(rows: RowSource, columns: Columns | None, size: int, shift: float) -> Any:
    """Return rows within what is declared, the same ones each time.

    Parameters
    ----------
    rows : RowSource
        A table; its width, names and types of columns are used.
    columns : Columns, or None
        What is declared about them.
    size : int
        How many rows to make up.
    shift : float
        Other numbers from 0 to 1 give other rows.
    """
    spread = [fractions(np.arange(size), place, shift) for place in range(rows.n_features)]
    return rows_at(rows, columns, np.column_stack(spread))


def rows_at(rows: RowSource, columns: Columns | None, spread: NDArray[np.float64]) -> Any:
    """Return rows within what is declared, from numbers that tell where each cell lies.

    Parameters
    ----------
    rows, columns : RowSource and Columns, or None
        As in ``made_up_rows``.
    spread : array of float of shape (n_rows, n_features)
        Numbers from 0 to 1: where each cell lies in the range of its column.
    """
    parts = [
        _made_up_column(spread[:, place], _declared(columns, place), rows, place)
        for place in range(rows.n_features)
    ]
    return _table(parts, rows)


def _table(parts: list[NDArray[Any]], rows: RowSource) -> Any:
    """Return columns as one table, in the form in which the source gives rows."""
    if rows.is_frame:
        return frame_of(rows.names or [], parts)
    if any(part.dtype.kind not in "if" for part in parts):
        return np.column_stack([part.astype(object) for part in parts])
    return np.column_stack(parts).astype(np.float64)


def fractions(rows: Integers, place: int, shift: float = 0.0) -> NDArray[np.float64]:
    """Return numbers spread over 0 to 1, one for each row: multiples of an irrational number.

    Parameters
    ----------
    rows : array of int
        Numbers of the rows.
    place : int
        Number of the column.
    shift : float
        Added to all, modulo 1.
    """
    step = (place + 1) * (np.sqrt(5.0) - 1.0) / 2.0
    return np.asarray(np.modf(step * (rows + 1.0) + shift)[0])


def _declared(columns: Columns | None, place: int) -> Any:
    return None if columns is None else columns.columns[place]


def _made_up_column(
    spread: NDArray[np.float64], declared: Any, rows: RowSource, place: int
) -> NDArray[Any]:
    if declared is not None:
        return np.asarray(declared.made_up(spread))
    if rows.is_text(place):
        known: NDArray[Any] = np.array(["a", "b", "c"], dtype=object)
        return np.asarray(known[(spread * len(known)).astype(int)])
    return np.asarray(4.0 * spread - 2.0)
