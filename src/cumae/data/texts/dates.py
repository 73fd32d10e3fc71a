"""Dates in a declared format, such as ``%d.%m.%Y``.

Python's ``strptime`` knows the names of months in the language of the machine, so that the same
text would be another date elsewhere. Here they are English everywhere.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from typing import Any

from cumae.errors import InvalidParameter
from cumae.remembering import remembered

MONTHS = "january february march april may june july august september october november december"
NAMES = {name: place for place, name in enumerate(MONTHS.split(), 1)}
SHORT_NAMES = {name[:3]: place for name, place in NAMES.items()}
FORMS = {  # what stands for each letter of a format
    "Y": "[0-9]{4}",
    "y": "[0-9]{2}",
    "m": "[0-9]{1,2}",
    "d": "[0-9]{1,2}",
    "B": "|".join(NAMES),
    "b": "|".join(SHORT_NAMES),
    "H": "[0-9]{1,2}",
    "I": "[0-9]{1,2}",
    "p": "am|pm",
    "M": "[0-9]{1,2}",
    "S": "[0-9]{1,2}",
    "f": "[0-9]{1,6}",
}
DIGITS = "mdHIMS"  # with one digit or two; with two where another number follows at once
CENTURY = 100


def refuse_format(name: str, given: object) -> None:
    """Refuse a format that stands for no date.

    Parameters
    ----------
    name : str
        The column, for the message.
    given : object
        The format.
    """
    letters = re.findall("%(.?)", given) if isinstance(given, str) else []
    known = {letter for letter in letters if letter in FORMS}
    year, month = known & {"Y", "y"}, known & {"m", "b", "B"}
    once = len(letters) - letters.count("%") == len(known) and len(year) == 1 and len(month) <= 1
    whole = once and bool(month or "d" not in known)
    halves = ("I" in known) == ("p" in known) and not {"H", "I"} <= known
    if not (whole and halves):
        raise InvalidParameter(
            f"columns[{name!r}] has format={given!r}, which is no format of dates; write each part "
            "once: %Y (or %y, two digits), %m (or %b, %B: names in English), %d, and for times "
            "%H, %I with %p, %M, %S, %f. An example is '%d.%m.%Y'."
        )


@remembered(64)
def _compiled(form: str) -> re.Pattern[str]:
    """Return the pattern of a format, with a group for each of its letters."""
    parts = re.split("%(.)", form)
    texts, letters = parts[::2], parts[1::2]
    found = re.escape(texts[0])
    for place, (letter, after) in enumerate(zip(letters, texts[1:], strict=True)):
        pattern = FORMS.get(letter, "%")
        if letter in DIGITS and not after and place + 1 < len(letters):
            pattern = "[0-9]{2}"
        found += (f"(?P<{letter}>{pattern})" if letter in FORMS else pattern) + re.escape(after)
    return re.compile(found, re.IGNORECASE | re.ASCII)


def moment_in(text: str, form: str, since: dt.datetime) -> dt.datetime:
    """Return the moment that a text tells in a format.

    Parameters
    ----------
    text : str
        The text, without spaces around it.
    form : str
        The format. A year of two digits is one of the hundred years that begin with the year of
        ``since``.
    since : datetime
        The day from which dates are counted.

    Raises
    ------
    ValueError
        If the text has another form, or there is no such day.

    Examples
    --------
    >>> import datetime as dt
    >>> from cumae.data.texts import moment_in
    >>> moment_in("31.12.2024", "%d.%m.%Y", dt.datetime(2000, 1, 1))
    datetime.datetime(2024, 12, 31, 0, 0)
    >>> moment_in("3 Mar 45", "%d %b %y", dt.datetime(1920, 1, 1))
    datetime.datetime(1945, 3, 3, 0, 0)
    """
    match = _compiled(form).fullmatch(text)
    if match is None:
        raise ValueError(form)
    found = {letter: part.lower() for letter, part in match.groupdict().items()}
    if "Y" in found:
        year = int(found["Y"])
    else:
        year = since.year + (int(found["y"]) - since.year) % CENTURY
    month = NAMES.get(found.get("B", "")) or SHORT_NAMES.get(found.get("b", ""))
    hour = int(found.get("H", 0))
    if "I" in found:
        hour = int(found["I"])
        if not 1 <= hour <= 12:
            raise ValueError(form)
        hour = hour % 12 + 12 * (found["p"] == "pm")
    clock = (int(found.get("M", 0)), int(found.get("S", 0)), int(found.get("f", "0").ljust(6, "0")))
    day = (year, month or int(found.get("m", 1)), int(found.get("d", 1)))
    return dt.datetime(*day, hour, *clock)  # noqa: DTZ001 - declared days have no zone


def as_cells_are(given: Any, form: Any) -> Any:
    """Return a declared day that is written in the format of its cells; other values as they are.

    Parameters
    ----------
    given : object
        The day. A text is taken as 2000-01-31 first.
    form : object
        The format, or None. One with two digits of a year does not say which century is meant.

    Examples
    --------
    >>> from cumae.data.texts import as_cells_are
    >>> as_cells_are("31.12.2024", "%d.%m.%Y"), as_cells_are("2024-12-31", "%d.%m.%Y")
    (datetime.datetime(2024, 12, 31, 0, 0), '2024-12-31')
    """
    if isinstance(given, str) and isinstance(form, str) and "%Y" in form:
        with contextlib.suppress(ValueError):
            dt.datetime.fromisoformat(given)
            return given
        with contextlib.suppress(ValueError):
            return moment_in(given, form, dt.datetime(1, 1, 1))  # noqa: DTZ001 - of two digits
    return given
