"""Figures on pages come from committed results, and are rounded as they are shown."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from tools import figures

PAGES = [figures.ROOT / "README.md", *sorted((figures.ROOT / "docs").rglob("*.md"))]
# The list of theorems is written by tools/theorems.py and compared by tests/unit/test_theorems.py:
# of this page, only blocks with comments are read. On all others, each figure needs its line.
GENERATED = "theorems.md"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_figures_are_those_of_the_results(page: Path) -> None:
    assert figures.problems(page, complete=page.name != GENERATED) == []


def test_beliefs_are_those_that_epsilon_allows() -> None:
    """A belief p becomes p e^epsilon / (p e^epsilon + 1 - p) at most."""
    page = (figures.ROOT / "docs/explanations/epsilon.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| ([\d.]+) % \|(.*)\|$", page, re.MULTILINE)
    assert [before for before, _ in lines] == ["1", "10", "50"]
    for before, after in lines:
        chance = float(before) / 100
        for epsilon, shown in zip((0.1, 1, 3, 10), after.split("|"), strict=True):
            more = chance * math.exp(epsilon)
            assert figures.rounded(100 * more / (more + 1 - chance), shown.split()[0])


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
        (
            "35.6 % = percent of /survey/1/accuracy",
            "35.6 % = least percent accuracy of /survey; 35.6 % = least percent curacy of /survey",
            [],
        ),
        (
            ".713 = /survey/0/accuracy",
            ".713 = /survey/0/accuracy minus /survey/1/accuracy",
            [".713 is"],
        ),
        ("/survey/0/accuracy", "/survey/accuracy=0.71349/accuracy", []),
        ("/survey/0/accuracy", "/survey/accuracy=1/accuracy", ["has no /survey/", ".713 comes"]),
        (".713 = /survey/0/accuracy", ".713 = largest accuracy of /survey", []),
        ("/survey/0/accuracy", "/survey/0/accuracy by /survey/0/accuracy", [".713 is shown"]),
        (".713 of", ".713 (Theorem 3.3, Definitions 2.1 and 2.6) of", []),
        (".713 of", ".713 (Page 3.3) of", ["3.3 comes from no file"]),
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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It took 2.5 s.\n\n<!-- set: 2.5 -->\n", []),
        ("It took 2.5 s.\n\n<!-- set: 2.4 -->\n", ["2.5 comes from no file, in 'It took 2.5 s.'"]),
        ("<!-- figures 1 -->\n\n| .5 |\n\n<!-- end -->\n", []),
        ("Right: .5 (`tests/unit/test_figures.py::test_figures_without_a_file`).\n", []),
        (
            "Right: .5 (`tests/unit/test_figures.py::test_nothing`).\n",
            ["there is no `tests/unit/test_figures.py::test_nothing`"],
        ),
    ],
)
def test_figures_without_a_file(text: str, found: list[str], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    assert figures.problems(page, complete=True) == found
