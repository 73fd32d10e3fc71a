"""The declaration of one column, and the numbers that its cells become by that alone."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.arrays import Floats
from cumae.codec import cell_from_json, cell_to_json
from cumae.data.readings import (
    Encoding,
    canonical,
    is_missing,
    number_said,
    places_of_values,
    read_cells,
)
from cumae.data.texts import LARGEST_WORD, MAX_BYTES, PLAIN, Order, Written, as_cells_are
from cumae.data.texts.written import ENTRIES as WRITTEN_ENTRIES
from cumae.errors import InvalidParameter

Bounds: TypeAlias = tuple[float, ...]  # (low, high), or (low, high, step) for a grid of values

INDICATOR: Bounds = (0.0, 1.0, 1.0)
MISSING_SHARE = 0.1  # a guess: in how many rows a cell is missing that may be
MISSING = "missing"  # the last entry of a declaration that allows missing cells
FORMS = (
    "give (low, high), (low, high, step), a list of categories, bool, a day such as "
    'datetime.date(2000, 1, 1), or (first day, last day); add "missing" to a tuple, or None to a '
    "list, for a column that may have missing cells"
)
SIDES = ("yes", "no")  # of a boolean
DAYS = ("first", "last", "since")
ENTRIES = {"low", "high", "step", "categories", "since", "boolean", "missing"}
ENTRIES |= {"ordered", "max_bytes", "numbers", "codes", "first", "last", *SIDES, *WRITTEN_ENTRIES}


@dataclass(frozen=True)
class Column:
    """One column: its name, and what was declared about it.

    Parameters
    ----------
    name : str
        Its name, or its place as text.
    bounds : tuple of float, or None
        (low, high), or (low, high, step); of dates, in days. None if no range is known.
    categories : tuple, or None
        The values that can occur, for a column of categories.
    since : date, or None
        The day from which dates are counted, for a column of dates.
    boolean : bool
        Whether it holds true and false.
    missing : bool
        Whether cells may be missing.
    declared : bool
        Whether anything was declared. Text that says a number is read as one only then.
    labels : tuple of str, or None
        What each category stands for, if the categories are codes.
    written : Written
        How its cells are written as text.
    order : Order, or None
        How its cells are compared, for a column of ordered values.
    truth : pair of tuples, or None
        The codes of yes and those of no, for a boolean that is written by codes of its own.
    whole : bool
        Whether its type, which was fixed before rows were read, holds whole numbers only.
    """

    name: str
    bounds: Bounds | None = None
    categories: tuple[Any, ...] | None = None
    since: dt.datetime | None = None
    boolean: bool = False
    missing: bool = False
    declared: bool = False
    labels: tuple[str, ...] | None = None
    written: Written = PLAIN
    order: Order | None = None
    truth: tuple[tuple[Any, ...], tuple[Any, ...]] | None = None
    whole: bool = False

    @property
    def kind(self) -> str:
        """The kind of its cells: ordered values, categories, dates, booleans or numbers."""
        if self.order is not None:
            return "ordered"
        if self.categories is not None:
            return "categories"
        if self.since is not None:
            return "dates"
        return "booleans" if self.boolean else "numbers"

    @property
    def encoded(self) -> list[tuple[str, Bounds | None]]:
        """Names and bounds of the columns of numbers that stand for it."""
        if self.order is not None:
            words = range(self.order.n_words)
            return [(f"{self.name} key {word}", (0.0, LARGEST_WORD)) for word in words]
        absent: list[tuple[str, Bounds | None]] = []
        if self.missing:
            absent = [(f"{self.name} {MISSING}", INDICATOR)]
        if self.categories is None:
            return [(self.name, self.bounds), *absent]
        marked = self.readable_categories[len(self.readable_categories) - len(self._marked) :]
        return [*[(f"{self.name}={category}", INDICATOR) for category in marked], *absent]

    @property
    def readable_categories(self) -> tuple[Any, ...]:
        """The categories as people read them: the labels of codes, or what was declared."""
        return self.labels or self.categories or ()

    def day(self, days: float) -> dt.datetime:
        """Return a number of days as a date, within what dates can be.

        Parameters
        ----------
        days : float
            Days since ``since``.
        """
        since = self.since or dt.datetime(1970, 1, 1)  # noqa: DTZ001 - as those of tables
        ends = dt.datetime.min, dt.datetime.max  # noqa: DTZ901 - dates of tables have no zone
        low, high = ((end - since).total_seconds() for end in ends)
        return since + dt.timedelta(seconds=round(min(max(days * 86_400, low), high - 1)))

    @property
    def shares(self) -> list[float | None]:
        """A guess, for each encoded column of 0 and 1, of how many rows have a 1; None for others.

        It is for scales, where no rows may be looked at.
        """
        if self.order is not None:
            return [None] * self.order.n_words
        if self.categories is not None:
            return [1 / (len(self.categories) + self.missing)] * len(self.encoded)
        return [None, *[MISSING_SHARE] * self.missing]

    @property
    def _marked(self) -> tuple[Any, ...]:
        """The categories that have an indicator of their own."""
        categories = self.categories or ()
        return categories[1:] if len(categories) == 2 else categories

    @property
    def is_open(self) -> bool:
        """True if it holds numbers or dates whose range is not known."""
        return self.categories is None and self.bounds is None and self.order is None

    @property
    def range_form(self) -> str:
        """The text to write to declare its range."""
        form = "low, high" if self.since is None else "first_day, last_day"
        return f'({form}, "missing")' if self.missing else f"({form})"

    @property
    def stand_in(self) -> float:
        """The number that replaces a missing one: the middle of the range, or 0 without one."""
        if self.bounds is None:
            return 0.0
        low, high, *step = self.bounds
        return low + (high - low) // 2 // step[0] * step[0] if step else low / 2 + high / 2

    def in_whole_numbers(self, most: float) -> Column:
        """Return the same column, with a step of 1 if it has a range of numbers and no step.

        Parameters
        ----------
        most : float
            How many whole numbers there may be in the range.
        """
        if self.kind != "numbers" or self.bounds is None or len(self.bounds) == 3:
            return self
        low, high = math.ceil(self.bounds[0]), math.floor(self.bounds[1])
        fits = low < high < low + most
        return replace(self, bounds=(float(low), float(high), 1.0)) if fits else self

    def within(self, bounds: Bounds) -> Column:
        """Return the same column with a range."""
        return replace(self, bounds=bounds)

    def read(self, cells: NDArray[Any]) -> Floats:
        """Return the numbers that stand for cells, each read by itself; NaN for what is unusable.

        A missing cell is unusable, unless it was declared that cells may be missing. No cell of a
        column of categories is unusable: what was not declared counts as none of them.
        """
        return read_cells(cells, self.encoding)

    @property
    def encoding(self) -> Encoding:
        """The way its cells are read."""
        count = len(self.categories or ())
        marked = tuple(range(count - len(self._marked), count))
        return Encoding(
            self.kind,
            self.known,
            marked,
            self.since,
            self.declared,
            self.missing,
            self.stand_in,
            self.written,
            self.order,
        )

    @property
    def known(self) -> dict[Any, int]:
        """The places of the categories, by their values and by what these look like as text.

        So the category 3 is found in a list, where it is a number, and in a CSV file that was read
        as text. A category such as "3.0" is also found as the number that it says, unless another
        one says the same. The codes of a boolean have the place 1 for yes, and 0 for no.
        """
        if self.truth is not None:
            known = {code: 1 - side for side, codes in enumerate(self.truth) for code in codes}
        else:
            known = places_of_values(self.categories or ())
        said = [(number_said(value), place) for value, place in known.items() if type(value) is str]
        numbers = [number for number, _ in said]
        alone = {number: place for number, place in said if numbers.count(number) == 1}
        alone.pop(None, None)
        return alone | {canonical(value): place for value, place in known.items()} | known

    def made_up(self, spread: Floats) -> NDArray[Any]:
        """Return cells within what is declared, in raw form, from numbers between 0 and 1.

        Parameters
        ----------
        spread : array of float
            Where in its range each cell lies.

        Returns
        -------
        array
            Cells as a table would hold them; where they may be missing, a tenth of them is.
        """
        if self.order is not None:
            return self.order.made_up(spread)
        listed = self.categories
        if self.truth is not None:
            listed = (self.truth[1][0], self.truth[0][0])
        if listed is not None:
            known = np.array([*listed, None], dtype=object)[:-1]
            cells = np.asarray(known[(spread * len(known)).astype(int)])
            if self.missing:
                cells[spread >= 0.9] = None
            return cells
        bounds = (-2.0, 2.0) if self.bounds is None else self.bounds
        low, high, *step = bounds
        values = low + spread * (high - low)
        if step:
            values = low + np.floor(spread * (1 + (high - low) // step[0])) * step[0]
        if self.missing:
            values = np.where(spread >= 0.9, np.nan, values)
        if self.since is None:
            return np.asarray(values)
        origin = np.datetime64(self.since, "ms")
        steps = np.where(np.isnan(values), 0.0, values * 86_400_000).astype("timedelta64[ms]")
        return np.where(np.isnan(values), np.datetime64("NaT"), origin + steps)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        categories = self.categories
        more: dict[str, Any] = {} if self.labels is None else {"labels": list(self.labels)}
        if self.written != PLAIN:
            more["written"] = self.written.to_dict()
        if self.order is not None:
            more["order"] = {"kind": self.order.kind, "max_bytes": self.order.max_bytes}
        if self.truth is not None:
            more["truth"] = [[cell_to_json(code) for code in codes] for codes in self.truth]
        return {
            "name": self.name,
            "bounds": None if self.bounds is None else list(self.bounds),
            "categories": None if categories is None else [cell_to_json(c) for c in categories],
            "since": None if self.since is None else self.since.isoformat(),
            "boolean": self.boolean,
            "missing": self.missing,
            "declared": self.declared,
            **more,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Column:
        """Rebuild what ``to_dict`` returned."""
        bounds, categories, since = plain["bounds"], plain["categories"], plain["since"]
        yes, no = (tuple(map(cell_from_json, codes)) for codes in plain.get("truth", ((), ())))
        return cls(
            plain["name"],
            None if bounds is None else tuple(bounds),
            None if categories is None else tuple(map(cell_from_json, categories)),
            None if since is None else dt.datetime.fromisoformat(since),
            plain["boolean"],
            plain["missing"],
            plain["declared"],
            None if plain.get("labels") is None else tuple(plain["labels"]),
            Written(**plain.get("written", {})),
            Order(**plain["order"]) if "order" in plain else None,
            (yes, no) if yes else None,
        )


def declared_column(name: str, given: Any) -> Column:  # noqa: PLR0911 - one line a form
    """Return what a declaration says about a column.

    Parameters
    ----------
    name : str
        Name of the column.
    given : object
        The declaration, in one of the forms of :class:`~cumae.Columns`.

    Raises
    ------
    InvalidParameter
        If it has none of these forms.
    """
    if given is None:
        return Column(name)
    if isinstance(given, Column):
        return replace(given, name=name)
    if isinstance(given, Mapping):
        return _from_entries(name, given)
    if isinstance(given, list):
        return _of_categories(name, given)
    if given is bool:
        return Column(name, INDICATOR, boolean=True, declared=True)
    if given in (int, float):
        return Column(name, declared=True)
    if isinstance(given, dt.date | np.datetime64):
        return Column(name, since=_day(name, given), declared=True)
    entries = tuple(given) if isinstance(given, Sequence | np.ndarray) else (given,)
    if not entries:
        raise InvalidParameter(f"columns[{name!r}] is no declaration; {FORMS}.")
    missing = isinstance(given, tuple) and entries[-1:] == (MISSING,)
    return replace(_in_range(name, entries[:-1] if missing else entries), missing=missing)


def _from_entries(name: str, given: Mapping[Any, Any]) -> Column:  # noqa: C901 - one line a form
    """Read a declaration of the form {"low": 0, "high": 9, "missing": True}."""
    wrong = sorted(str(entry) for entry in given if entry not in ENTRIES)
    if wrong:
        raise InvalidParameter(
            f"columns[{name!r}] has the entry {wrong[0]!r}; the entries are {sorted(ENTRIES)!r}."
        )
    missing = given.get("missing", False)
    if not isinstance(missing, bool | np.bool_):
        raise InvalidParameter(f"columns[{name!r}] has missing={missing!r}; give True or False.")
    apart = {"missing", *WRITTEN_ENTRIES}
    form = given.get("format")
    rest = {
        entry: as_cells_are(value, form) if entry in DAYS else value
        for entry, value in given.items()
        if entry not in apart
    }
    if set(rest) == {"codes"}:
        found = _of_codes(name, rest["codes"])
    elif set(rest) == {"first", "last"}:
        found = _between_days(name, (rest["first"], rest["last"]))
    elif {"ordered"} <= set(rest) <= {"ordered", "max_bytes"}:
        found = _of_order(name, rest["ordered"], rest.get("max_bytes", MAX_BYTES), bool(missing))
    elif set(rest) == {"categories"}:
        found = declared_column(name, list(rest["categories"]))
    elif set(rest) == {"since"}:
        found = declared_column(name, _day(name, rest["since"]))
    elif rest and set(rest) <= {"boolean", *SIDES}:
        found = _of_truth(name, rest)
    elif not rest or rest == {"numbers": True}:
        found = declared_column(name, float)
    elif {"low", "high"} <= set(rest) <= {"low", "high", "step"}:
        bounds = [rest[entry] for entry in ("low", "high", "step") if entry in rest]
        found = _in_range(name, tuple(bounds))
    else:
        raise InvalidParameter(f"columns[{name!r}] is no declaration; {FORMS}.")
    how = {entry: given[entry] for entry in WRITTEN_ENTRIES if entry in given}
    written = Written.declared(name, how, found.kind)
    return replace(found, missing=found.missing or bool(missing), written=written)


def _of_order(name: str, kind: Any, max_bytes: Any, missing: bool) -> Column:
    """Read the kind of ordered values, and how long their keys may be."""
    if missing:
        raise InvalidParameter(
            f"columns[{name!r}] is ordered, and a missing cell has no place in an order; leave out "
            '"missing": rows without a value are then not used.'
        )
    try:
        return Column(name, declared=True, order=Order(kind, max_bytes))
    except InvalidParameter as error:
        raise InvalidParameter(f"columns[{name!r}]: {error}") from None


def _of_codes(name: str, given: Any) -> Column:
    """Read codes with what they stand for: {1: "male", 2: "female"}."""
    labels = tuple(given.values()) if isinstance(given, Mapping) else ()
    right = labels and all(isinstance(label, str) and label.strip() for label in labels)
    if not right or len(set(labels)) < len(labels):
        raise InvalidParameter(
            f"columns[{name!r}] has codes without a label for each; give a dict such as "
            '{1: "male", 2: "female"}, in which no label stands twice.'
        )
    return replace(_of_categories(name, list(given)), labels=labels)


def _of_truth(name: str, given: Mapping[Any, Any]) -> Column:
    """Read a boolean, which may be written by codes: {"yes": "J", "no": ["N", "-"]}."""
    if set(given) == {"boolean"}:
        return declared_column(name, bool if given["boolean"] else float)
    sides = [given.get(side, []) for side in SIDES]
    sides = [side if isinstance(side, list) else [side] for side in sides]
    codes = [code for side in sides for code in side]
    right = all(isinstance(code, str | int | float) and not is_missing(code) for code in codes)
    if not (right and all(sides) and len(set(codes)) == len(codes) and given.get("boolean", True)):
        raise InvalidParameter(
            f"columns[{name!r}] has yes and no, which must be codes that are all different: "
            '{"yes": "J", "no": "N"}, say, or a list of codes for each.'
        )
    yes, no = map(tuple, sides)
    return Column(name, INDICATOR, boolean=True, declared=True, truth=(yes, no))


def _of_categories(name: str, given: list[Any]) -> Column:
    values = [c.item() if isinstance(c, np.generic) else c for c in given]
    values = [c.to_pydatetime() if isinstance(c, pd.Timestamp) else c for c in values]
    known = [category for category in values if not is_missing(category)]
    missing = len(known) < len(values)
    # Others could not be stored, which would be seen only when all is paid.
    if not all(isinstance(category, str | int | float | dt.date) for category in known):
        raise InvalidParameter(
            f"columns[{name!r}] has a category that is no text, number, date, or true or false."
        )
    if len(set(known)) + missing < max(2, len(values)):
        raise InvalidParameter(
            f"columns[{name!r}] lists fewer than two categories, or one of them twice."
        )
    return Column(name, categories=tuple(known), missing=missing, declared=True)


def _in_range(name: str, entries: tuple[Any, ...]) -> Column:
    if not entries:  # of ("missing",)
        return Column(name, declared=True)
    if isinstance(entries[0], dt.date | np.datetime64):
        return _between_days(name, entries)
    try:
        bounds = tuple(float(value) for value in entries)
    except (TypeError, ValueError):
        bounds = ()
    # The width must be a float, too.
    usual = len(bounds) in (2, 3) and bool(np.all(np.isfinite((*bounds, bounds[1] - bounds[0]))))
    if not usual or (len(bounds) == 3 and not bounds[2] > 0):
        raise InvalidParameter(f"columns[{name!r}] is no declaration; {FORMS}.")
    if not bounds[0] < bounds[1]:
        raise InvalidParameter(
            f"columns[{name!r}] is {entries!r}, whose lower bound is not below the upper one; "
            "give (low, high)."
        )
    return Column(name, bounds, declared=True)


def _between_days(name: str, entries: tuple[Any, ...]) -> Column:
    first = _day(name, entries[0])
    if len(entries) == 1:
        return Column(name, since=first, declared=True)
    if len(entries) != 2:
        raise InvalidParameter(f"columns[{name!r}] is no declaration; {FORMS}.")
    last = _day(name, entries[1])
    if not first < last:
        raise InvalidParameter(
            f"columns[{name!r}] has a first day that is not before the last one; give "
            "(first, last)."
        )
    days = (last - first) / dt.timedelta(days=1)
    return Column(name, (0.0, days), since=first, declared=True)


def _day(name: str, given: Any) -> dt.datetime:
    """Return a declared day as a time without a zone."""
    try:
        found = given.astype("datetime64[us]").item() if isinstance(given, np.datetime64) else given
        found = dt.datetime.fromisoformat(found) if isinstance(found, str) else found
        if not isinstance(found, dt.datetime):
            found = dt.datetime(found.year, found.month, found.day)  # noqa: DTZ001
        if found.tzinfo is not None:
            found = found.astimezone(dt.UTC).replace(tzinfo=None)
    except (AttributeError, TypeError, ValueError) as error:
        raise InvalidParameter(
            f"columns[{name!r}] has a day that cannot be read; write 2000-01-31, or as the entry "
            "format says, or give datetime.date(2000, 1, 31)."
        ) from error
    return found
