"""Declarations about the columns of a table, without looking at it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.data.cells import columns_at
from cumae.data.containers import bare_columns, cells_of_columns, names_of, select, width_of
from cumae.data.declared import Bounds, Column
from cumae.data.kinds import (
    NOUNS,
    TO_FILL_IN,
    Problems,
    key_of,
    kinds_of,
    missing_line,
    whole_types,
)
from cumae.data.readings import missing_cells, read_columns
from cumae.data.rows import table_of
from cumae.errors import InvalidData, InvalidParameter

Declared: TypeAlias = Mapping[Any, Any] | Sequence[Any] | None

WRITTEN = {  # what to declare about text, by what a column holds
    "booleans": " Other codes are declared as {'yes': 'J', 'no': 'N'}, say.",
    "numbers": " Numbers such as 1.234,5 need the entry 'decimal': ',' in their declaration.",
    "dates": " Dates such as 31.12.2024 need the entry 'format': '%d.%m.%Y' in their declaration.",
}
FLAT = "Reshape your data: a flat list is a single column; for a single row give X.reshape(1, -1)."


class Columns:
    """The declared columns of a table, by which its rows are turned into numbers.

    A number is used as it is, and true and false as 1 and 0. A date becomes the number of days
    since a declared day. A column of categories becomes one column of 0 and 1 for each declared
    category (for two categories, for the second only); what was not declared counts as none of
    them. A column that may have missing cells has one more column of 0 and 1, which marks them;
    among numbers and dates, the middle of the range stands in for a missing one. Nothing is ever
    learnt from the rows.

    Parameters
    ----------
    declared : dict, list or None
        For each column, by name or position, one of these; a list of these goes by position:

        - ``(low, high)`` for numbers, or ``(low, high, step)`` if only low, low + step and so on
          occur;
        - a list of categories, with None among them if cells may be missing;
        - ``bool`` for true and false;
        - a ``datetime.date`` for dates and times, counted in days from that day, or
          ``(first day, last day)``;
        - ``float`` or None for numbers whose range is not known;
        - any of these tuples with ``"missing"`` as the last entry, if cells may be missing;
        - a dict such as ``{"low": 0, "high": 9, "missing": True}``, ``{"categories": [...]}``,
          ``{"boolean": True}``, ``{"since": "2000-01-01"}``,
          ``{"first": "2000-01-01", "last": "2024-12-31"}`` or, for numbers whose range is not
          known, ``{"numbers": True}``;
        - a dict of codes and what they stand for: ``{"codes": {1: "male", 2: "female"}}``, or of
          the codes of yes and no: ``{"yes": "J", "no": ["N", "-"]}``;
        - a dict such as ``{"ordered": "text"}`` for values that are only compared, in predictors
          with a concept class of one column: texts by their code points, ``"numbers"`` (integers
          and decimals of any length), ``"dates"`` (also times, with zones or without) or ``"ids"``
          (UUIDs). ``"max_bytes"`` is the length of the longest text or number, 64 if it is left
          out. Several such columns are compared one after the other.

        A number may be written in several ways: the cell "1.0" is the category "1", and "0.0" is
        false. A text that begins with zeros, such as 007, is a code and no number.

        A dict may also say how cells are written as text, which is never guessed from cells:
        ``"decimal": ","`` and ``"thousands": "."`` for numbers such as 1.234,5, and
        ``"format": "%d.%m.%Y"`` for dates such as 31.12.2024. In a format, ``%Y`` (or ``%y``: two
        digits, in the hundred years from that of the first day on), ``%m`` (or ``%b`` and ``%B``:
        English names), ``%d``, ``%H``, ``%I`` with ``%p``, ``%M``, ``%S`` and ``%f`` are known.
    names : list of str or None
        Names of the columns, or None where they have none.
    n_features : int
        Number of columns.
    kinds : list of str or None
        What each column can hold by its type: "numbers", "booleans", "text", "dates", "durations",
        "bytes", "objects", or "" where the type does not say. A declaration that does not fit is
        refused. Only columns of numbers, of booleans or of "" need none.

    Examples
    --------
    >>> import datetime as dt
    >>> from cumae.learners import Columns
    >>> declared = {
    ...     "age": (18, 98, "missing"),
    ...     "job": ["farmer", "baker", "nurse"],
    ...     "seen": dt.date(2020, 1, 1),
    ... }
    >>> columns = Columns(declared, ["age", "job", "seen"], 3)
    >>> columns.encode([[40, "baker", "2020-01-03"], [None, "poet", dt.date(2020, 1, 1)]]).tolist()
    [[40.0, 0.0, 0.0, 1.0, 0.0, 2.0], [58.0, 1.0, 0.0, 0.0, 0.0, 0.0]]
    >>> columns.names
    ['age', 'age missing', 'job=farmer', 'job=baker', 'job=nurse', 'seen']
    """

    def __init__(
        self,
        declared: Declared,
        names: Sequence[str] | None,
        n_features: int,
        kinds: Sequence[str] | None = None,
    ) -> None:
        self.original_names = None if names is None else [str(name) for name in names]
        wanted = _by_position(declared, self.original_names, n_features)
        titles = self.original_names or [str(place) for place in range(n_features)]
        problems = Problems(self.original_names is None)
        found = [problems.read(title, wanted.get(place)) for place, title in enumerate(titles)]
        if kinds is not None:
            found = [
                problems.compare(column, kind) for column, kind in zip(found, kinds, strict=True)
            ]
        problems.refuse()
        self._set(found)

    def _set(self, columns: list[Column]) -> None:
        self.columns = columns
        encoded = [pair for column in columns for pair in column.encoded]
        self.names = [name for name, _ in encoded]
        self.bounds = [bounds for _, bounds in encoded]
        self.shares = [share for column in columns for share in column.shares]

    @classmethod
    def of(cls, X: Any, declared: Declared = None) -> Columns:
        """Take the names, types and number of columns from a table, and nothing else.

        Parameters
        ----------
        X : array, list, data frame or RowSource
            The table.
        declared : dict, list or None
            What is known about the columns, as for the constructor.
        """
        X = table_of(X)
        found = cls(declared, names_of(X), width_of(X), kinds_of(X))
        pairs = zip(found.columns, whole_types(X), strict=True)
        return found._with([replace(column, whole=whole) for column, whole in pairs])

    def __len__(self) -> int:
        """Return the number of columns after encoding."""
        return len(self.names)

    def arrange(self, X: Any, owner: str = "Learner") -> Any:
        """Return a table with its columns in the order of fit; refuse one with other columns.

        Parameters
        ----------
        X : table
            Rows. If both they and the rows of fit have names, columns may come in any order.
        owner : str
            The class that needs them, for messages.
        """
        X = table_of(X)
        names, width = names_of(X), width_of(X)
        known = self.original_names
        if names is not None and known is not None and names != known:
            lacking = [name for name in known if name not in names]
            strange = [name for name in names if name not in known]
            if lacking or strange or len(names) != len(known):
                raise InvalidData(
                    "X has other columns than the rows of fit:"
                    + (f" {lacking!r} are not there." if lacking else "")
                    + (f" {strange!r} were not there." if strange else "")
                    + f" Select {known!r}.",
                    columns=[*lacking, *strange],
                )
            return select(X, known)
        if width != len(self.columns):
            flat = width == 1 and names is None
            raise InvalidData(
                f"X has {width} features, but {owner} is expecting "
                f"{len(self.columns)} features as input." + (f" {FLAT}" if flat else "")
            )
        return X

    def encode(self, X: Any, first: int = 0) -> Floats:
        """Return the rows as numbers; an error names a row and a column, never a value.

        Parameters
        ----------
        X : table
            Rows.
        first : int
            The number of the first of them, for messages.
        """
        X = self.arrange(X)
        table = self.read(X)
        if np.isnan(table).any():
            self._refuse(cells_of_columns(X), first)
        return table

    def read(self, X: Any, *, ordinary: bool = False) -> Floats:
        """Return the rows as numbers, without any error: NaN for what is missing or no number.

        Each cell is read by itself.

        Parameters
        ----------
        X : array or DataFrame
            Rows with the columns that were declared.
        ordinary : bool
            Whether objects of unusual types cannot be read, as in private rows.
        """
        kind = X.dtype.kind if isinstance(X, np.ndarray) and X.ndim == 2 else "O"
        if kind in "biuf" and self.numbers_only:
            with np.errstate(all="ignore"):
                return np.array(X, dtype=np.float64)  # the same, but faster
        return self.read_columns(bare_columns(X), ordinary=ordinary)

    def read_columns(
        self, columns: Sequence[Any], places: Any = slice(None), *, ordinary: bool = False
    ) -> Floats:
        """As ``read``, for some rows of bare columns.

        Parameters
        ----------
        columns : sequence of arrays
            The columns of a table, one array for each.
        places : slice or array of int
            The rows that are read.
        ordinary : bool
            As for ``read``.
        """
        how = [column.encoding for column in self.columns]
        cells = columns_at(columns, places, ordinary=ordinary)
        for place in self.ordered:  # whose cells are read as they came: nothing may be rounded
            (cells[place],) = columns_at([columns[place]], places, ordinary=False)
        parts = read_columns(cells, how)
        return np.hstack(parts) if parts else np.zeros((0, 0))

    @property
    def ordered(self) -> list[int]:
        """Places of the columns of ordered values."""
        return [place for place, column in enumerate(self.columns) if column.order is not None]

    @property
    def only_ordered(self) -> bool:
        """True if all columns hold ordered values."""
        return 0 < len(self.ordered) == len(self.columns)

    @property
    def key_bytes(self) -> list[int]:
        """Bytes of the keys of the columns of ordered values."""
        orders = [column.order for column in self.columns if column.order is not None]
        return [order.key_bytes for order in orders]

    def readable_key(self, words: Sequence[float]) -> str:
        """Return what a key stands for, where all columns are ordered.

        Parameters
        ----------
        words : sequence of float
            The numbers of the key, of one column after the other.
        """
        parts, first = [], 0
        for column in self.columns:
            if column.order is None:
                raise AssertionError("a key needs ordered columns")
            parts.append(column.order.readable(words[first : first + column.order.n_words]))
            first += column.order.n_words
        return ", ".join(parts)

    @claim("KEYS")
    def refuse_ordered(self) -> None:
        """Refuse columns of ordered values, for learners, before anything is paid; and say why."""
        names = [self.columns[place].name for place in self.ordered]
        if names:
            raise InvalidParameter(
                f"columns {', '.join(names)} are declared as ordered. A learner publishes its cut, "
                "and among values of any length no learner can find one privately: the cut would "
                "be the value of a row. Take EverlastingPredictor or QueryRelease, which answer "
                "and publish no cut; or PrivateLearner(Thresholds()), which draws a cut from all "
                "keys of max_bytes bytes if all columns are ordered; or declare what is known "
                "without the rows, such as (low, high) or categories; or declare nothing, and give "
                "public values to SemiPrivateLearner (X_public)."
            )

    @property
    def numbers_only(self) -> bool:
        """True if floats stand for themselves in all columns, so that they need no encoding."""
        return all(column.kind == "numbers" and not column.missing for column in self.columns)

    def _refuse(self, table: Iterable[NDArray[Any]], first: int) -> None:
        """Raise an error that says what is wrong with the cells; all columns with missing ones."""
        lacking: list[tuple[Column, int]] = []
        for column, cells in zip(self.columns, table, strict=True):
            unread = np.isnan(column.read(cells)[:, 0])
            if not unread.any():
                continue
            missing = missing_cells(cells, text=column.declared)
            if np.any(unread & ~missing) or cells.dtype.kind == "c":
                self._refuse_column(column, cells, first + int(np.argmax(unread & ~missing)))
            lacking.append((column, first + int(np.argmax(unread))))
        if not lacking:
            return
        lines = [missing_line(column, self.key(column.name)) for column, _ in lacking]
        places = ", ".join(f"row {row}, column {column.name}" for column, row in lacking)
        each = "it" if len(lacking) == 1 else "them; each column is named with its first one"
        raise InvalidData(
            f"X has a missing value (NaN) in {places}; fill or drop {each}, or declare at fit that "
            f"cells may be missing: columns={{{', '.join(lines)}}}.",
            columns=[column.name for column, _ in lacking],
            rows=[row for _, row in lacking],
        )

    def _refuse_column(self, column: Column, cells: NDArray[Any], row: int) -> None:
        if cells.dtype.kind == "c":
            raise InvalidData(
                f"Complex data not supported: column {column.name}; give real numbers.",
                columns=[column.name],
                rows=[row],
            )
        hint = f"if it is text, declare what can occur: columns={{{self.key(column.name)}: "
        hint += f"{TO_FILL_IN}}}."
        if column.declared:
            hint = f"mend those cells; bad_rows finds them.{WRITTEN.get(column.kind, '')}"
        wrong = f"something that is no {NOUNS[column.kind]}"
        if column.truth is not None:
            wrong = "something that is none of the declared codes"
        elif column.kind == "booleans":
            wrong = "something that is neither true nor false, yes nor no, 1 nor 0"
        text = f"column {column.name} holds {wrong}, first in row {row}; {hint}"
        raise InvalidData(text, columns=[column.name], rows=[row])

    @property
    def titles(self) -> list[str]:
        """Names of the encoded columns for sentences: "column 0" and so on if X has no names."""
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
        """Replace column numbers by names in what a hypothesis prints.

        Parameters
        ----------
        text : str
            Text that names columns by numbers, such as ``column 0``.
        """
        for place in reversed(range(len(self.titles))):
            text = text.replace(f"column {place} ", f"{self.titles[place]} ")
        return text

    def at_least(self, place: int, cut: float) -> str:
        """Say that an encoded column is at least a cut, as people read its cells.

        Parameters
        ----------
        place : int
            The encoded column.
        cut : float
            The cut; of dates, in days.

        Examples
        --------
        >>> import datetime
        >>> from cumae import Columns
        >>> declared = {"age": (17, 90), "sex": ["m", "f"], "since": datetime.date(2020, 1, 1)}
        >>> columns = Columns(declared, ["age", "sex", "since"], 3)
        >>> [columns.at_least(place, cut) for place, cut in ((0, 40.5), (1, 0.5), (2, 366.0))]
        ['age >= 40.5', 'sex is f', 'since >= 2021-01-01']
        """
        column, within = [
            (column, i) for column in self.columns for i in range(len(column.encoded))
        ][place]
        title = column.name if self.original_names is not None else f"column {column.name}"
        n_marked = len(column.encoded) - column.missing
        if column.since is not None and within == 0:
            return f"{title} >= {column.day(math.ceil(cut)):%Y-%m-%d}"
        if not 0 < cut <= 1 or (column.kind == "numbers" and within == 0):
            return f"{self.titles[place]} >= {cut:.6g}"
        if within >= n_marked:
            return f"{title} is missing"
        value = "true" if column.boolean else column.readable_categories[within - n_marked]
        return f"{title} is {value}"

    def need_bounds(self) -> list[Bounds]:
        """Return the bounds of all encoded columns; where one is missing, say what to write."""
        for column in self.columns:
            if column.is_open:
                raise InvalidParameter(
                    f"column {column.name} has no declared bounds. Write "
                    f"columns={{{self.key(column.name)}: {column.range_form}}}, from what is known "
                    "without the rows, or give public rows as X_public."
                )
        return [bounds for bounds in self.bounds if bounds is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return {
            "names": self.original_names,
            "columns": [column.to_dict() for column in self.columns],
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Columns:
        """Rebuild what ``to_dict`` returned.

        Parameters
        ----------
        plain : dict
            Plain values, as ``to_dict`` returned them.
        """
        found = object.__new__(cls)
        found.original_names = plain["names"]
        found._set([Column.from_dict(column) for column in plain["columns"]])
        return found

    @property
    def open(self) -> list[int]:
        """Places of the encoded columns whose range is not known."""
        return [place for place, bounds in enumerate(self.bounds) if bounds is None]

    def key(self, name: str) -> str:
        """Return how a declaration names a column.

        Parameters
        ----------
        name : str
            Name of the column.
        """
        return key_of(name, self.original_names is None)

    def fill(self, table: Floats) -> None:
        """Write the middle of the range into encoded rows where a number is missing.

        Rows that were encoded before a range was known have 0 there.

        Parameters
        ----------
        table : array of float
            Encoded rows, which are changed in place.
        """
        place = 0
        for column in self.columns:
            if column.categories is None and column.missing:
                table[table[:, place + 1] == 1, place] = column.stand_in
            place += len(column.encoded)

    def within(self, ranges: Sequence[Bounds]) -> Columns:
        """Return the same columns; those without a range get these ranges, in their order.

        Parameters
        ----------
        ranges : sequence of pairs of float
            The least and the largest value of each column without a range.
        """
        left = iter(ranges)
        return self._with(
            [column.within(next(left)) if column.is_open else column for column in self.columns]
        )

    def in_whole_numbers(self, whole: Sequence[bool], most: float) -> Columns:
        """Return the same columns; those of whole numbers have a step of 1 within their ranges.

        Parameters
        ----------
        whole : sequence of bool
            For each column, whether it holds whole numbers; what was declared goes before it.
        most : float
            How many of them there may be in a range.

        Examples
        --------
        >>> from cumae import Columns
        >>> columns = Columns([(0, 1), (0.5, 9.5), (0, 100)], None, 3)
        >>> columns.in_whole_numbers([True, True, True], 10).bounds
        [(0.0, 1.0, 1.0), (1.0, 9.0, 1.0), (0.0, 100.0)]
        """
        pairs = zip(self.columns, whole, strict=True)
        return self._with(
            [column.in_whole_numbers(most) if is_so else column for column, is_so in pairs]
        )

    def _with(self, columns: list[Column]) -> Columns:
        found = object.__new__(Columns)
        found.original_names = self.original_names
        found._set(columns)
        return found


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
