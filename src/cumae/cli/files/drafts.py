"""Drafts of schema files, from a header and from public rows; never from private ones."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.cli.files.schemas import COMPLETE, LEFT_OUT, toml_key, toml_text
from cumae.cli.files.tables import MISSING_TEXTS, TableFile
from cumae.data.readings import canonical, days_since, is_missing, numbers_in_text

MOST_CATEGORIES = 60  # that a draft lists
WIDEST_GRID = 1_000  # steps of a range of whole numbers
WORDS_OF_TRUTH = ({"true", "false"}, {"yes", "no"})
HEAD = """\
# What the columns of {data} hold, for `cumae fit --schema`.
#
# {source}
# Nothing here was read from private rows. What a column holds decides how all of its cells are
# read. If private rows decided it, one person's cell would change what is learnt about everybody,
# and that would tell about this person.
#
# {lines}
#   {{low = 0, high = 120}}              numbers and their range, by what is known without the rows;
#                                      step = 1 if there are whole numbers only
#   {{numbers = true}}                   numbers whose range nobody knows; finding it costs epsilon
#   {{categories = ["A", "B"]}}          the values that can occur; others count as unknown
#   {{boolean = true}}                   true and false, yes and no, 1 and 0
#   {{since = 2020-01-01}}               dates such as 2020-12-31, counted from a day; or
#                                      {{first = 2020-01-01, last = 2024-12-31}}
#   "leave out"                        nothing is learnt from this column (a name, an id)
# and add missing = true where cells may be missing: {{low = 0, high = 120, missing = true}}

[columns]
"""


def draft(
    data: str, names: Sequence[str], kinds: Sequence[str], public: TableFile | None
) -> tuple[str, int]:
    """Return a schema file as text, and how many of its lines must be completed.

    Parameters
    ----------
    data : str
        The file of private rows, for the head.
    names, kinds : sequence of str
        Its columns without the label, and what they can hold by their types.
    public : TableFile, or None
        Public rows.
    """
    width = min(24, max(map(len, map(toml_key, names)), default=0))
    lines, waiting = [], 0
    for name, kind in zip(names, kinds, strict=True):
        if public is not None and name in public.names:
            (known,) = public.kinds([name])
            value, why = _from_public(public.cells(name), known)
        else:
            value, why = _from_type(kind)
        waiting += value.startswith(f'"{COMPLETE}"')
        line = f"{toml_key(name):<{width}} = {value}"
        lines.append(f"{line}  # {why}" if why else line)
    source = "Drafted from the header and the types of the columns alone."
    if public is not None:
        source = f"Drafted from the header, and from the public rows of {public.name}."
    wanted = "Check each line. These are the forms:"
    if waiting:
        wanted = f"Complete each line that has {COMPLETE}, by one of these forms, and check others:"
    head = HEAD.format(data=data, source=source, lines=wanted)
    return head + "\n".join(lines) + "\n", waiting


def _from_type(kind: str) -> tuple[str, str]:
    """Return what the type of a column says, and a remark."""
    if kind == "numbers":
        return "{numbers = true}", "give its range if it is known: that is free"
    if kind == "booleans":
        return "{boolean = true}", ""
    if kind == "dates":
        return f'"{COMPLETE}"', "dates: {since = 2020-01-01}, say"
    return f'"{COMPLETE}"', ""


def _from_public(cells: NDArray[Any], kind: str) -> tuple[str, str]:  # noqa: PLR0911
    """Return what public cells say about a column, and a remark."""
    gone = [is_missing(cell) or str(cell).strip() in MISSING_TEXTS for cell in cells]
    known = [cell for cell, is_gone in zip(cells.tolist(), gone, strict=True) if not is_gone]
    missing = ", missing = true" if any(gone) else ""
    if not known:
        return f'"{COMPLETE}"', "all public cells are missing"
    texts = sorted({str(canonical(cell)).strip() for cell in known})
    if len(texts) == 1:
        return f'"{LEFT_OUT}"', "the public rows have a single value"
    if kind == "booleans" or {text.lower() for text in texts} in WORDS_OF_TRUTH:
        return f"{{boolean = true{missing}}}", ""
    found = numbers_in_text(np.array(known, dtype=object))
    if np.isfinite(found).all():
        return f"{{{_range(found)}{missing}}}", "the range of the public rows"
    days = days_since(np.array(known, dtype=object), dt.datetime(1970, 1, 1))  # noqa: DTZ001
    if np.isfinite(days).all():
        low, high = (dt.date(1970, 1, 1) + dt.timedelta(days=float(d)) for d in _ends(days))
        high += dt.timedelta(days=1)
        return f"{{first = {low}, last = {high}{missing}}}", "the range of the public rows"
    if len(texts) > MOST_CATEGORIES:
        many = f"{len(texts)} different values among the public rows; leave it out?"
        return f'"{COMPLETE}"', many
    listed = ", ".join(map(toml_text, texts))
    return f"{{categories = [{listed}]{missing}}}", ""


def _ends(found: NDArray[Any]) -> tuple[float, float]:
    return float(found.min()), float(found.max())


def _range(found: NDArray[Any]) -> str:
    low, high = _ends(found)
    grid = bool((found == np.round(found)).all()) and high - low <= WIDEST_GRID
    return f"low = {canonical(low)}, high = {canonical(high)}" + (", step = 1" if grid else "")
