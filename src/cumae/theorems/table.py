"""The list of all theorems, as Markdown and on the page ``docs/theorems.md``."""

from __future__ import annotations

import textwrap

from cumae.theorems import (  # noqa: F401 - each of them states theorems
    active,
    everlasting,
    generic,
    label_boost,
    public_data,
    query_release,
    vc,
)
from cumae.theorems.stated import Theorem, stated

WIDTH = 100

THEOREMS: tuple[Theorem, ...] = stated()


def listing() -> str:
    """Return all theorems as Markdown, in the order of the papers, with their examples.

    Examples
    --------
    >>> from cumae.theorems import listing
    >>> print(listing())
    ## Paper 1
    <BLANKLINE>
    **Observation 3.2.** Where two concepts of a class differ: ...
    """
    parts = []
    for paper in sorted({theorem.paper for theorem in THEOREMS}):
        parts.append(f"## Paper {paper}")
        for theorem in THEOREMS:
            if theorem.paper == paper:
                text = f"**{theorem.name}.** {theorem}"
                parts.append(textwrap.fill(text, WIDTH, break_long_words=False))
    return "\n\n".join(parts)
