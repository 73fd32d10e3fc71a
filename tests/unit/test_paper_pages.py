"""One page for each paper: all of its theorems and algorithms, with figures of the benchmark."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

import cumae
from cumae.cli.models.algorithms import ALGORITHMS
from cumae.theorems import THEOREMS

ROOT = Path(__file__).parents[2]
PAGES = {number: ROOT / "docs" / f"paper_{number}.md" for number in range(1, 5)}
WHICH = runpy.run_path(str(ROOT / "benchmarks" / "which.py"))
papers = pytest.mark.parametrize("number", PAGES)


@papers
def test_a_page_names_all_theorems_of_its_paper_and_no_others(number: int) -> None:
    rows = re.findall(
        r"^\| ([A-Z]\w+ [A-Z]?[\d.]+) \| `([\w.]+)` \|", text_of(number), re.MULTILINE
    )
    stated = [
        (one.name, f"{one.function.__module__.split('.')[-1]}.{one.function.__name__}")
        for one in THEOREMS
        if one.paper == number
    ]
    assert rows == stated


def test_every_algorithm_of_the_command_line_is_on_a_page() -> None:
    pages = "".join(map(text_of, PAGES))
    for name, known in ALGORITHMS.items():
        assert f"`{known.kind}" in pages, name


@papers
def test_names_in_the_tables_are_names_of_cumae(number: int) -> None:
    """The classes that pages send to exist, and each page has examples that run."""
    page = text_of(number)
    imported = set(re.findall(r"^>>> from cumae import (.+)$", page, re.MULTILINE))
    names = {name.strip() for line in imported for name in line.split(",")}
    assert names
    assert names <= set(cumae.__all__)
    for name in re.findall(r"`(\w+(?:Learner|Predictor|Boost|Release|Reduction|BBL))[`(]", page):
        assert name in cumae.__all__, name


@papers
def test_figures_are_those_of_the_benchmark(number: int) -> None:
    result = json.loads(WHICH["RESULT"].read_text(encoding="utf-8"))
    assert WHICH["with_tables"](text_of(number), result) == text_of(number)
    assert f"<!-- figures {number} -->" in text_of(number)


def test_every_case_has_five_seeds_and_three_sizes() -> None:
    result = json.loads(WHICH["RESULT"].read_text(encoding="utf-8"))
    assert result["sizes"] == [1_000, 10_000, 100_000]
    assert {len(case["runs"]) for case in result["cases"].values()} == {5}


def test_tables_follow_the_runs() -> None:
    paper, law, size, name = "1, points", "points", 1_000, "RandomSets, labels alone"
    case = {"runs": [{"accuracy": 0.5}, {"accuracy": 0.7}, {"refused": "too few"}]}
    made = {"sizes": [size], "cases": {f"{paper}; {law}; {size}; {name}": case}}
    assert f"| {name} | .600 |" in WHICH["tables"](made)[paper]
    refused = {"sizes": [size], "cases": {f"{paper}; {law}; {size}; {name}": {"runs": [{"a": 1}]}}}
    assert f"| {name} | refused |" in WHICH["tables"](refused)[paper]


def text_of(number: int) -> str:
    return PAGES[number].read_text(encoding="utf-8")
