"""Markdown as hosts of repositories read it, made fit for the builder of the site."""

from __future__ import annotations

import re

ITEM = re.compile(r"( *)(?:[-*]|\d+\.) ")
FENCE = re.compile(r"^( *```\w+) .*$", re.MULTILINE)  # tests read the words behind the language
NARROW = re.compile(r" {2,3}\S")  # an indent that is less than the builder wants
HEADER = re.compile(r"^(Claim|Status|Relation|Assumptions): (.*)$", re.MULTILINE)


def fitted(text: str) -> str:
    """Return a page whose lists begin after an empty line and are indented by fours."""
    lines: list[str] = []
    fenced, listed, shift = False, False, ""
    for line in FENCE.sub(r"\1", text).split("\n"):
        begins = line.lstrip().startswith("```") and not fenced
        item = None if fenced else ITEM.match(line)
        before = lines[-1] if lines else ""
        if item and before.strip() and not ITEM.match(before) and not before.startswith(" "):
            lines.append("")
        if begins or not fenced:  # what is inside a block of code moves with its beginning
            listed = bool(item) or (listed and (line.startswith(" ") or not line.strip()))
            narrow = NARROW.match(line) if listed else None
            shift = " " * (5 - narrow.end()) if narrow else ""
        lines.append(f"{shift}{line}" if line.strip() else line)
        fenced ^= line.lstrip().startswith("```")
    return "\n".join(lines)


def proof(text: str) -> str:
    """Return the page of a claim with its facts as a list, and its code without hashes."""
    text = HEADER.sub(r"- **\1.** \2", text)
    text = text.replace("\nCode:\n", "\n\n## Code\n\n", 1)
    text = re.sub(r"^# (\w+: .*)\n", r"# \1\n\n", text)
    return re.sub(r" sha256:[0-9a-f]+$", "", text, flags=re.MULTILINE)
