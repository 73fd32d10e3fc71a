"""Drafts of schema files, from a header and from public rows; never from private ones."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

COMPLETE = "COMPLETE"  # marks a line of a draft that its reader must complete
LEFT_OUT = "leave out"
WHOLE = "whole numbers"  # what a column can hold by a type that was fixed before rows were there
FORMS = (
    "{low = 0, high = 120}, {low = 0, high = 120, step = 1}, {numbers = true}, "
    '{categories = ["A", "B"]}, {boolean = true}, {yes = "J", no = "N"}, {since = 2020-01-01}, '
    '{first = 2020-01-01, last = 2024-12-31}, {codes = {1 = "A", 2 = "B"}}, {ordered = "text"}, or '
    '"leave out"; with missing = true where cells may be missing'
)
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
#   {{numbers = true}}                   numbers of unknown range; finding it costs epsilon
#   {{categories = ["A", "B"]}}          the values that can occur; others count as unknown
#   {{boolean = true}}                   true and false, yes and no, 1 and 0; or by other codes:
#                                      {{yes = "J", no = ["N", "-"]}}
#   {{since = 2020-01-01}}               dates such as 2020-12-31, counted from a day; or
#                                      {{first = 2020-01-01, last = 2024-12-31}}
#   {{codes = {{1 = "male", 2 = "female"}}}}  codes, and what they stand for
#   {{ordered = "text"}}                 values that are only compared, for --model thresholds,
#                                      intervals or points; or "numbers", "dates", "ids"; with
#                                      max_bytes = 128 if a text may have more than 64 bytes
#   "leave out"                        nothing is learnt from this column (a name, an id)
# and add missing = true where cells may be missing: {{low = 0, high = 120, missing = true}}
#
# Numbers such as 1.234,5 have decimal = "," and thousands = "." as well, and dates such as
# 31.12.2024 have format = "%d.%m.%Y". For all columns at once, write before [columns]:
#   [file]
#   encoding = "cp1252"
#   decimal = ","

{file}[columns]
"""


def draft(
    data: str,
    names: Sequence[str],
    kinds: Sequence[str],
    public: str | None = None,
    guessed: Mapping[str, tuple[str, str]] | None = None,
    file: Mapping[str, str | None] | None = None,
) -> tuple[str, int]:
    """Return a schema file as text, and how many of its lines must be completed.

    Parameters
    ----------
    data : str
        The file of private rows, for the head.
    names, kinds : sequence of str
        Its columns without the label, and what they can hold by their types.
    public : str, or None
        The file of public rows, for the head.
    guessed : dict from str to a pair of str, or None
        What public rows say about columns, with a remark.
    file : dict from str to str, or None
        What is known about the whole file, for ``[file]``.
    """
    width = min(24, max(map(len, map(toml_key, names)), default=0))
    lines, waiting = [], 0
    for name, kind in zip(names, kinds, strict=True):
        value, why = (guessed or {}).get(name) or _from_type(kind)
        waiting += value.startswith(f'"{COMPLETE}"')
        line = f"{toml_key(name):<{width}} = {value}"
        lines.append(f"{line}  # {why}" if why else line)
    source = "Drafted from the header alone (of Parquet, with its types)."
    if public is not None:
        source = f"Drafted from the header, and from the public rows of {public}."
    wanted = "Check each line. These are the forms:"
    if waiting:
        wanted = f"Complete each line that has {COMPLETE}, by one of these forms, and check others:"
    known = [f"{key} = {toml_text(text)}" for key, text in (file or {}).items() if text]
    whole = "\n".join(["[file]", *known, "", ""]) if known else ""
    head = HEAD.format(data=" ".join(data.split()), source=source, lines=wanted, file=whole)
    return head + "\n".join(lines) + "\n", waiting


def _from_type(kind: str) -> tuple[str, str]:
    """Return what the type of a column says, and a remark."""
    if kind == "numbers":
        return "{numbers = true}", "give its range if it is known: that is free"
    if kind == WHOLE:
        return "{numbers = true}", "whole numbers: {low = 0, high = 1, step = 1}, say; that is free"
    if kind == "booleans":
        return "{boolean = true}", ""
    if kind == "dates":
        return f'"{COMPLETE}"', "dates: {since = 2020-01-01}, say"
    return f'"{COMPLETE}"', ""


def toml_key(name: str) -> str:
    """Return a name as a key of TOML.

    Examples
    --------
    >>> from cumae.cli.files.drafts import toml_key
    >>> toml_key("age"), toml_key("hours per week")
    ('age', '"hours per week"')
    """
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_text(name)


def toml_text(text: str) -> str:
    """Return a text as TOML writes it; JSON writes nearly all of it in the same way."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
