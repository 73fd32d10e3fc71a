"""Guesses about columns from public rows, for drafts of schema files."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.cli.files.csv_text import MISSING_TEXTS
from cumae.cli.files.drafts import COMPLETE, LEFT_OUT, toml_text
from cumae.cli.files.tables import TableFile
from cumae.data.readings import canonical, days_since, is_missing, numbers_in_text

MOST_CATEGORIES = 60  # that a draft lists
WIDEST_GRID = 1_000  # steps of a range of whole numbers
WORDS_OF_TRUTH = ({"true", "false"}, {"yes", "no"})


def guesses(public: TableFile) -> dict[str, tuple[str, str]]:
    """Return for each column of public rows what a schema would say, and a remark."""
    kinds = zip(public.names, public.rows.kinds, strict=True)
    return {name: _guess(public.cells(name), kind) for name, kind in kinds}


def _guess(cells: NDArray[Any], kind: str) -> tuple[str, str]:  # noqa: PLR0911
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
