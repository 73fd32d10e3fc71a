"""How far a replaced row moves what is released of columns of all kinds, written out in numbers."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from typing import Any

import numpy as np
import pytest

from cumae.data import Columns
from cumae.learners.kernel.reference import MadeUp, first_edges
from tests.plants import marks_of_missing_cells_are_not_counted

pytestmark = pytest.mark.claim("KERNEL")
NUMBER, TRUTH = [-1.0, 0.25, 1.0], [True, False]
# What is declared, what a cell can hold, in how many bins a row is, and how many of them change at
# most when it is replaced. A single mark is there or not; of two it may be one or the other.
KINDS: dict[str, tuple[Any, list[Any], int, int]] = {
    "numbers": ((-1, 1), NUMBER, 1, 2),
    "steps": ((-1, 1, 0.25), NUMBER, 1, 2),
    "numbers or none": ((-1, 1, "missing"), [*NUMBER, None], 2, 3),
    "dates or none": (
        (dt.date(2020, 1, 1), dt.date(2021, 1, 1), "missing"),
        [dt.date(2020, 1, 1), dt.date(2020, 12, 31), None],
        2,
        3,
    ),
    "two categories": (["a", "b"], ["a", "b"], 1, 1),
    "two categories or none": (["a", "b", None], ["a", "b", None], 1, 2),
    "three categories": (["a", "b", "c"], ["a", "b", "c", "d"], 1, 2),
    "three categories or none": (["a", "b", "c", None], ["a", "b", "c", None, "d"], 1, 2),
    "booleans": (bool, TRUTH, 1, 1),
    "booleans or none": ({"boolean": True, "missing": True}, [*TRUTH, None], 1, 2),
}
TABLES = [[kind] for kind in KINDS] + [
    ["numbers or none", "three categories or none", "booleans"],
    ["numbers or none", "numbers or none", "booleans or none", "numbers"],
]


def moves_are_what_is_written_here(kinds: list[str]) -> None:
    """Compare moves with numbers: 2^12 for a bin, and a squared score of 1.5 of 64^2 a column."""
    declared, cells, bins, changed = zip(*(KINDS[kind] for kind in kinds), strict=True)
    made = MadeUp(Columns(list(declared), None, len(kinds)))
    assert made.n_columns == sum(bins)
    assert made.counts_move == pytest.approx(4_096 * math.sqrt(2 * sum(bins)))
    assert made.longest == 6_144 * sum(bins)
    assert made.products_move == pytest.approx(6_144 * sum(bins) * math.sqrt(2))
    table = made.columns.encode([list(row) for row in itertools.product(*cells)])
    bounds = [made.columns.bounds[place] for place in made.numbers]
    edges = [first_edges(declared or (0.0, 1.0)) for declared in bounds]
    added = np.array([made.counts(row[None], edges) for row in table])
    squares = (added**2).sum(axis=1)
    moved = math.sqrt((squares[:, None] + squares - 2 * added @ added.T).max())
    assert moved == pytest.approx(4_096 * math.sqrt(sum(changed)))
    assert moved <= made.counts_move * (1 + 1e-12)


@pytest.mark.parametrize("kinds", TABLES, ids=", ".join)
def test_moves_of_columns_of_all_kinds_in_numbers(kinds: list[str]) -> None:
    moves_are_what_is_written_here(kinds)


@pytest.mark.parametrize("kinds", [table for table in TABLES if "numbers or none" in table])
def test_planted_marks_that_are_not_counted_are_found(
    kinds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    marks_of_missing_cells_are_not_counted(monkeypatch)
    with pytest.raises(AssertionError):
        moves_are_what_is_written_here(kinds)
