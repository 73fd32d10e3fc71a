"""The pages of claims, as they lie beside the package or in its source."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

import cumae

ID = re.compile(r"[A-Z][A-Z0-9]{1,19}")
PACKAGE = Path(cumae.__file__).parent
PLACES = (PACKAGE / "proofs", PACKAGE.parents[1] / "proofs")
PARTS = ("Assum", "Code:", "1. ", "2. ", "3. ", "4. ", "5. ", "6. ", "7. ", "8. ", "9. ")
MARKS = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|(?<![\w*])\*([^*\s][^*]*)\*|\[([^\]]+)\]\([^)\s]+\)")
HEADING, LIST = "heading", "list"


class Part(NamedTuple):
    """A paragraph, a heading or a list.

    Parameters
    ----------
    kind : str
        "heading", "list", "code" or "text".
    lines : list of str
        Its text, or the entries of the list.
    """

    kind: str
    lines: list[str]


def proof(name: str) -> str | None:
    """Return the page of a claim; None if there is none.

    Parameters
    ----------
    name : str
        The id of the claim.
    """
    if ID.fullmatch(name):
        for place in PLACES:
            file = place / f"{name}.md"
            if file.is_file():
                return file.read_text(encoding="utf-8")
    return None


def parts(text: str) -> list[Part]:
    r"""Return a page of a claim part by part.

    Examples
    --------
    >>> from cumae.serve.pages.proofs import parts
    >>> parts("# EXP: a title\n\nA line\nand more.\n\n- one\n- two")
    [Part(kind='heading', lines=['EXP: a title']), Part(kind='text', lines=['A line and ...
    """
    found: list[Part] = []
    for block in re.split(r"\n\s*\n|(?<=\n)(?=#)", text.strip()):
        lines = block.strip("\n").split("\n")
        if lines[0].startswith("#"):
            found.append(Part(HEADING, [lines[0].lstrip("# ")]))
            lines = lines[1:]
        if lines and lines[0].startswith("- "):
            found.append(Part(LIST, _joined(lines, "- ")))
        elif lines and lines[0].startswith(("    ", "```")):
            found.append(Part("code", ["\n".join(lines)]))
        elif lines:
            found += _of_text(lines)
    return found


def _of_text(lines: list[str]) -> list[Part]:
    """Return a block of text, with a list at its end if there is one."""
    first = next((at for at, line in enumerate(lines) if line.startswith("- ")), len(lines))
    found = [Part("text", _joined(lines[:first], "Claim: ", "Status: ", "Relation: ", *PARTS))]
    if first < len(lines):
        found.append(Part(LIST, _joined(lines[first:], "- ")))
    return found


def inline(text: str) -> Markup:
    """Return a line with its code, its emphasis and its links, all of its text escaped.

    Examples
    --------
    >>> from cumae.serve.pages.proofs import inline
    >>> inline("*a* `b < c` [d](e.md)")
    Markup('<em>a</em> <code>b &lt; c</code> d')
    """
    pieces = MARKS.split(text)
    made = [escape(pieces[0])]
    for code, strong, weak, link, after in zip(*(pieces[at::5] for at in range(1, 6)), strict=True):
        for kind, held in (("code", code), ("b", strong), ("em", weak), ("", link)):
            if held is not None:
                made.append(f"<{kind}>{escape(held)}</{kind}>" if kind else escape(held))
        made.append(escape(after))
    return Markup("".join(made))  # noqa: S704 - escaped above


def _joined(lines: list[str], *starts: str) -> list[str]:
    """Return lines, with those that go on joined to the one before."""
    found: list[str] = []
    for line in lines:
        if found and not line.startswith(starts):
            found[-1] += " " + line.strip()
        else:
            found.append(line.removeprefix("- ").strip())
    return found
