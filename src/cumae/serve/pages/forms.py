"""Forms that are made of declared columns, and checks of what was filled in.

A check sees what somebody typed before it becomes a question: nothing of it is spent or kept. What
it says names rows and columns, and repeats nothing.
"""

from __future__ import annotations

import csv
import datetime as dt
import heapq
import io
import math
from typing import Any, NamedTuple

import numpy as np

from cumae.data import Column
from cumae.serve.bodies import Sent
from cumae.serve.errors import bad, too_large
from cumae.serve.models import Served
from cumae.serve.pages.facts import named
from cumae.serve.protocol.forms import RowsAsked, asked

SEPARATORS = (",", ";", "\t")
MOST_PROBLEMS = 20  # that are named
USERS, QUERIES = "user_ids", "query_ids"
MOST_ID = 256  # characters


class Option(NamedTuple):
    """One of the values that can be chosen.

    Parameters
    ----------
    place : str
        What the form sends.
    text : str
        What is read.
    """

    place: str
    text: str


class Field(NamedTuple):
    """A field of a form, for one column.

    Parameters
    ----------
    name : str
        What the form calls it: no name of a column stands in code.
    column : Column
        What was declared.
    kind : str
        "number", "choice", "date" or "text".
    lowest, highest, step : str
        What a number or a date may be; empty for no limit.
    options : list of Option
        What can be chosen.
    hint : str
        What may be filled in, in a few words.
    """

    name: str
    column: Column
    kind: str
    lowest: str = ""
    highest: str = ""
    step: str = ""
    options: tuple[Option, ...] = ()
    hint: str = ""

    @property
    def title(self) -> str:
        """The name of the column."""
        return self.column.name

    @property
    def required(self) -> bool:
        """True if it must be filled in."""
        return not self.column.missing


def fields_of(served: Served) -> list[Field]:
    """Return a field for each column of a model."""
    return [
        _field(f"c{place}", column, is_number=served.form.numeric[place])
        for place, column in enumerate(named(served))
    ]


def _field(name: str, column: Column, *, is_number: bool) -> Field:
    if column.categories is not None:
        options = tuple(
            Option(str(at), str(one)) for at, one in enumerate(column.readable_categories)
        )
        return Field(name, column, "choice", options=options, hint="choose one")
    if column.kind == "booleans":
        options = (Option("1", "yes"), Option("0", "no"))
        return Field(name, column, "choice", options=options, hint="yes or no")
    if column.since is not None:
        ends = ("", "")
        if column.bounds is not None:
            first, last = (column.day(end).date().isoformat() for end in column.bounds[:2])
            ends = first, last
        hint = f"a day from {ends[0]} to {ends[1]}" if ends[0] else "a day"
        return Field(name, column, "date", *ends, hint=hint)
    if column.order is not None or not (is_number or column.declared or column.bounds):
        order = "" if column.order is None else column.order.kind
        return Field(name, column, "text", hint=order or "a text or a number")
    if column.bounds is None:
        return Field(name, column, "number", step="any", hint="a number")
    low, high, *step = (f"{one:g}" if one < 1e6 else f"{one:.0f}" for one in column.bounds)
    each = step[0] if step else "any"
    hint = f"{low} to {high}" + (f", in steps of {each}" if step and each != "1" else "")
    return Field(name, column, "number", low, high, each, hint=hint)


class Problem(NamedTuple):
    """Something that cannot be asked as it is.

    Parameters
    ----------
    row : int
        Its row, from 1 on; 0 in a form for one question.
    field : str
        The name of the field; empty if it is not about one.
    text : str
        What to do about it.
    """

    row: int
    field: str
    text: str

    @property
    def sentence(self) -> str:
        """The whole sentence."""
        return f"Row {self.row}: {self.text}" if self.row else self.text


class Checked(NamedTuple):
    """The cells that were filled in, as a question.

    Parameters
    ----------
    question : RowsAsked
        The rows.
    problems : list of Problem
        What is wrong with them; the first ones.
    n_wrong : int
        How many cells are.
    """

    question: RowsAsked
    problems: list[Problem]
    n_wrong: int


def one_question(served: Served, given: Sent) -> Checked:
    """Return the question of a form with a field for each column."""
    record: dict[str, Any] = {}
    problems: list[Problem] = []
    for field in fields_of(served):
        text = given.get(field.name).strip()
        cell, good = _cell(field, text, _numbers(field.column, [text])[0])
        record[field.title] = cell
        if not good:
            problems.append(Problem(0, field.name, _wish(field)))
    ids: list[list[str] | None] = []
    for name in (QUERIES, USERS):
        one = given.get(name).strip()
        ids.append([one] if one else None)
        if len(one) > MOST_ID or (name == USERS and served.names_users and not one):
            problems.append(Problem(0, name, f"an id has 1 to {MOST_ID} characters."))
    rows = served.form.from_records([record])
    return Checked(
        asked(rows, *ids) if not problems else RowsAsked(rows, 1), problems, len(problems)
    )


def from_csv(served: Served, text: str, most_rows: int) -> Checked:
    """Return the question of a table with a line of names.

    Parameters
    ----------
    served : Served
        The model.
    text : str
        The table, with commas, semicolons or tabs between cells.
    most_rows : int
        Most rows of a request.
    """
    names, lines = _table(text, served.form.titles, most_rows)
    fields = {field.title: field for field in fields_of(served)}
    ids = [name for name in (QUERIES, USERS) if name in names and name not in fields]
    lacking = sum(name not in names for name in fields)
    strange = len(names) - (len(fields) - lacking) - len(ids)
    if lacking or strange or len(set(names)) < len(names):
        raise bad(
            f"the first line must name the columns of the model, each once: {lacking} are missing, "
            f"and {strange} are unknown"
        )
    places = {name: place for place, name in enumerate(names)}

    def cells(name: str) -> list[str]:
        place = places[name]
        return [line[place].strip() if place < len(line) else "" for line in lines]

    columns: dict[str, list[Any]] = {}
    wrong: list[tuple[int, Field]] = []
    for title, field in fields.items():
        texts = cells(title)
        read = _read_once(field, texts)
        columns[title] = [read[text][0] for text in texts]
        bad_ones = {text for text, (_, good) in read.items() if not good}
        if bad_ones:
            wrong += [(row, field) for row, one in enumerate(texts, 1) if one in bad_ones]
    problems = [
        Problem(row, "", _wish(field))
        for row, field in heapq.nsmallest(MOST_PROBLEMS, wrong, key=lambda one: one[0])
    ]
    named_by = {name: cells(name) for name in ids}
    rows = served.form.from_columns(columns)
    question = asked(rows, named_by.get(QUERIES), named_by.get(USERS))
    return Checked(question, problems, len(wrong))


def _read_once(field: Field, texts: list[str]) -> dict[str, tuple[Any, bool]]:
    """Return what each text of a column stands for; each is read once, and all at once."""
    distinct = list(dict.fromkeys(texts))
    numbers = _numbers(field.column, distinct)
    return {
        text: _cell(field, text, number, from_table=True)
        for text, number in zip(distinct, numbers, strict=True)
    }


def _table(text: str, titles: list[str], most_rows: int) -> tuple[list[str], list[list[str]]]:
    """Return the names and the lines of a table, whose separator its names tell."""
    first = text.lstrip("\n\r").partition("\n")[0]
    known = set(titles)

    def fitting(separator: str) -> int:
        found = next(csv.reader([first], delimiter=separator), [])
        return len(known.intersection(one.strip() for one in found))

    separator = max(SEPARATORS, key=fitting)
    lines: list[list[str]] = []
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        for line in reader:
            if any(cell.strip() for cell in line) or (line and len(titles) == 1 and lines):
                lines.append(line)
            if len(lines) > most_rows + 1:
                raise too_large("more rows than this server takes in one request")
    except csv.Error:
        raise bad("this is no table that can be read") from None
    if len(lines) < 2:
        raise bad("give a line with the names of the columns, and a line for each question")
    return [name.strip() for name in lines[0]], lines[1:]


def _cell(field: Field, text: str, number: float, *, from_table: bool = False) -> tuple[Any, bool]:
    """Return what a model gets for a text, and whether it is what was declared.

    Parameters
    ----------
    field : Field
        Its field.
    text : str
        The text.
    number : float
        The number for which the column takes it; NaN for one that it cannot use.
    from_table : bool
        Whether it stands in a table, as the column is written, and not in a field of a form.
    """
    column = field.column
    if not text:
        return None, column.missing
    if field.kind == "choice":
        return (text, _is_known(column, text, number)) if from_table else _chosen(field, text)
    if field.kind == "number":
        by_declaration = from_table and column.declared
        return _within(column, number if by_declaration else _float(text))
    if field.kind == "date":
        written = text if from_table else _day(column, text)
        return written, _within(column, number if from_table else _numbers(column, [written])[0])[1]
    return text, column.order is None or not math.isnan(number)


def _numbers(column: Column, texts: list[str]) -> list[float]:
    """Return the numbers that stand for texts; NaN for one that cannot be used."""
    if column.kind == "numbers" and not column.declared:
        return [math.nan] * len(texts)
    found: list[float] = column.read(np.array(texts, dtype=object))[:, 0].tolist()
    return found


def _chosen(field: Field, text: str) -> tuple[Any, bool]:
    column = field.column
    place = int(text) if text.isascii() and text.isdigit() else -1
    if text not in {one.place for one in field.options}:
        return None, False
    if column.categories is not None:
        return column.categories[place], True
    if column.truth is not None:
        return column.truth[1 - place][0], True
    return bool(place), True


def _is_known(column: Column, text: str, number: float) -> bool:
    if column.categories is None:
        return not math.isnan(number)
    return text in {
        str(one) for one in (*column.categories, *column.readable_categories, *column.known)
    }


def _within(column: Column, number: float) -> tuple[Any, bool]:
    if not math.isfinite(number):
        return None, False
    if column.bounds is None:
        return number, True
    low, high, *step = column.bounds
    fits = low <= number <= high
    if fits and step and column.since is None:
        fits = math.isclose((number - low) / step[0], round((number - low) / step[0]), abs_tol=1e-9)
    return number, fits


def _float(text: str) -> float:
    try:
        return float(text) if len(text) < 400 and text.isascii() else math.nan
    except ValueError:
        return math.nan


def _day(column: Column, text: str) -> str:
    """Return a day of a form as its column is written."""
    if column.written.format is None:
        return text
    try:
        return dt.date.fromisoformat(text).strftime(column.written.format)
    except ValueError:
        return text


def _wish(field: Field) -> str:
    """Return what a field must hold."""
    wanted = "one of its declared values" if field.kind == "choice" else field.hint
    return f"{field.title} must be {wanted}{' or empty' if field.column.missing else ''}."
