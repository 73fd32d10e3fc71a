"""Figures on pages come from committed results, and are rounded as they are shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import figures

PAGES = [figures.ROOT / "README.md", *sorted((figures.ROOT / "docs").rglob("*.md"))]
# Pages on which each figure has a line; on others, each figure of a block that has a comment.
COMPLETE = ("README.md", "learners.md", "learners_inside.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_are_those_of_the_results(page: Path) -> None:
    assert figures.problems(page, complete=page.name in COMPLETE) == []


BLOCK = """\
# A page

It is right for .713 of the rows, twice as often as 35.6 % of them, at epsilon 0.5.

<!-- from results.json
.713 = /survey/0/accuracy
35.6 % = percent of /survey/1/accuracy
-->
"""


@pytest.mark.parametrize(
    ("shown", "instead", "told"),
    [
        ("", "", []),
        (".713 of", ".714 of", [".713 stands in a comment", ".714 comes from no file"]),
        (".713 = ", ".713 = error of ", [".713 is shown, and error of /survey/0/accuracy"]),
        (
            "/survey/0",
            "/survey/7",
            ["has no /survey/7/accuracy", ".713 comes from no file"],
        ),
        ("twice", "2.5 times", ["2.5 comes from no file"]),
        ("35.6 % = percent of /survey/1/accuracy", "set: 35.6", []),
        ("as often", "as `often`", []),
    ],
)
def test_a_wrong_figure_is_found(
    shown: str, instead: str, told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    results = {"survey": [{"accuracy": 0.71349}, {"accuracy": 0.356}]}
    (tmp_path / "results.json").write_text(json.dumps(results))
    page = tmp_path / "page.md"
    page.write_text(BLOCK.replace(shown, instead, 1) if shown else BLOCK)
    found = figures.problems(page, complete=True)
    assert len(found) == len(told), found
    assert all(any(one in line for line in found) for one in told), found
