"""The declared form of cells that are written as text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from cumae.data.texts.dates import refuse_format
from cumae.errors import InvalidParameter
from cumae.remembering import remembered

LONGEST_TEXT = 400  # characters of a number, or of a date
SPACES, QUOTES = " \u00a0\u2009\u202f", "'\u2019"  # each of these stands for all beside it
MARKS = {".": r"\.", ",": ",", " ": f"[{SPACES}]", "'": f"[{QUOTES}]", "_": "_"}
DECIMALS = (".", ",")


@dataclass(frozen=True)
class Written:
    """The form of cells as text. Cells that are numbers or dates by their type need none of it.

    Parameters
    ----------
    decimal : {".", ","}
        What stands before the fraction of a number.
    thousands : {"", ".", ",", " ", "'", "_"}
        What may stand between groups of three digits. A space stands for all kinds of it.
    format : str, or None
        The format of dates, such as ``"%d.%m.%Y"``; None for 2024-12-31 or 2024-12-31T12:30.
    encoding, separator : str, or None
        Those of the CSV file, for queries in files. Tables in memory need none.
    """

    decimal: str = "."
    thousands: str = ""
    format: str | None = None
    encoding: str | None = None
    separator: str | None = None

    def to_dict(self) -> dict[str, str]:
        """Return what differs from plain text, as values that JSON can hold."""
        given = ((entry.name, getattr(self, entry.name)) for entry in fields(self))
        return {name: value for name, value in given if value != getattr(PLAIN, name)}

    @classmethod
    def declared(cls, name: str, given: Mapping[str, Any], kind: str) -> Written:
        """Return what the entries of a declaration say.

        Parameters
        ----------
        name : str
            The column, for messages.
        given : dict from str to object
            Those of the entries ``decimal``, ``thousands`` and ``format`` that were given.
        kind : str
            What the column holds.

        Raises
        ------
        InvalidParameter
            If an entry does not fit the column, or is none of those that can be read.
        """
        for entry in given:
            wanted = "dates" if entry == "format" else "numbers"
            if kind != wanted:
                raise InvalidParameter(
                    f"columns[{name!r}] holds {kind}; {entry} is for {wanted} alone."
                )
        usual = "," if given.get("thousands") == "." else PLAIN.decimal  # they go together
        found = cls(**{"decimal": usual, **given})
        if found.format is not None:
            refuse_format(name, found.format)
        marks = (found.decimal, found.thousands)
        right = found.decimal in DECIMALS and found.thousands in ("", *MARKS)
        if not right or marks[0] == marks[1]:
            raise InvalidParameter(
                f"columns[{name!r}] has decimal={marks[0]!r} and thousands={marks[1]!r}; decimal "
                "is '.' or ',', and thousands is another one of '.', ',', ' ', \"'\" and '_'."
            )
        return found


PLAIN = Written()
ENTRIES = ("decimal", "thousands", "format")  # that a declaration may have


@remembered(64)
def _number(decimal: str, thousands: str) -> re.Pattern[str]:
    """Return the pattern of a number, with a group for each part of it."""
    point, mark = MARKS[decimal], MARKS.get(thousands)
    grouped = "" if mark is None else rf"[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+|"
    return re.compile(
        rf"\s*([+-]?)(?:({grouped}[0-9]+)(?:{point}([0-9]*))?|{point}([0-9]+))"
        r"([eE][+-]?[0-9]+)?\s*"
    )


def number_in(text: str, written: Written = PLAIN) -> float:
    """Return the number that a text says, or NaN.

    Examples
    --------
    >>> from cumae.data.texts import Written, number_in
    >>> german = Written(decimal=",", thousands=".")
    >>> [number_in(text, german) for text in ("1.234,5", "1234,5", "1.5", "-2e3")]
    [1234.5, 1234.5, nan, -2000.0]
    """
    match = None
    if len(text) <= LONGEST_TEXT:
        match = _number(written.decimal, written.thousands).fullmatch(text)
    if match is None:
        return math.nan
    if written.decimal == "." and not written.thousands:
        return float(text)
    sign, whole, fraction, alone, power = match.groups("")
    digits = whole if whole.isdigit() else "".join(filter(str.isdigit, whole))
    return float(f"{sign}{digits or '0'}.{fraction or alone or '0'}{power}")
