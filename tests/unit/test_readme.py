"""The README: its example runs and prints what it shows, and it points to things that exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import cumae
from cumae.datasets import load_health_survey

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_LINES = 130
FIRST_SCREEN = 45  # lines


def test_it_is_short() -> None:
    assert len(README.splitlines()) < MOST_LINES
    assert README[: README.index("print(model.guarantee_)")].count("\n") < FIRST_SCREEN


def test_the_first_example_prints_what_is_shown(tmp_path: Path) -> None:
    """It is run as a newcomer would: pasted into a file, in an empty folder."""
    ((code, shown),) = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL)
    assert len(code.replace("\n\n", "\n").splitlines()) == 7
    script = tmp_path / "first.py"
    script.write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    (right, *promise), (other, *said) = shown.splitlines(), done.stdout.splitlines()
    assert promise == said
    told, found = (float(re.findall(r"[\d.]+%", line)[0][:-1]) for line in (right, other))
    committed = json.loads((ROOT / "benchmarks/results/readme.json").read_text(encoding="utf-8"))
    assert told == round(100 * committed["private"], 1)
    assert abs(told - found) < 1.0  # points; the noise of a fit moves it by a tenth


def test_what_it_compares_with_is_true() -> None:
    """Guessing, and gradient boosting without privacy on the same rows."""
    survey = load_health_survey()
    X, y = survey.data, survey.target
    guessing, boosted = map(float, re.findall(r"(\d\d\.\d) %", README)[:2])
    assert guessing == round(100 * (1 - y[25_000:].mean()), 1)
    model = HistGradientBoostingClassifier(random_state=0).fit(X[:25_000], y[:25_000])
    assert abs(boosted - 100 * model.score(X[25_000:], y[25_000:])) < 0.3


def _links(page: Path) -> list[tuple[Path, str]]:
    found = re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text("utf-8"))
    return [((page.parent / path).resolve() if path else page, part) for path, part in found]


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/index.md", "docs/demo.md"]
)
def test_links_lead_somewhere(page: str) -> None:
    for path, part in _links(ROOT / page):
        assert path.exists(), path
        if part:
            heads = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            names = [re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads]
            assert part in names, (path, part)


def test_every_name_of_its_table_can_be_imported() -> None:
    table = README.split("## What to take")[1].split("\n## ")[0]
    names = re.findall(r"`([A-Z]\w+)`", table)
    assert len(names) >= 9
    assert [name for name in names if not hasattr(cumae, name)] == []


def test_its_extras_are_those_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = re.findall(r"extras: ([\w, ]+)", README)[0].split(", ")
    assert {*listed, "all"} == set(project["optional-dependencies"])
