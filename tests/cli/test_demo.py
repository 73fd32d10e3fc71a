"""The demonstration publishes a model, answers for ever, and says what it promises."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cumae.cli import app
from cumae.cli.app import ExitCode

README = Path(__file__).parents[2] / "README.md"


def test_the_demo_publishes_a_model_and_answers_through_several_phases() -> None:
    """Both are right for 72.7 % or more in each of several runs, and would be within a point."""
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == ExitCode.OK, result.output
    said = " ".join(result.stdout.split())
    private, best, guessing, answered = (float(each) for each in re.findall(r"([\d.]+)%", said))
    assert 56 < guessing < 58
    assert min(private, answered) > 71.5
    assert abs(private - best) < 1
    model, oracle = re.findall(r"Promise: (.*?RAND)\.", said)
    for promise in (model, oracle):
        epsilon, delta = re.findall(r"epsilon = ([\d.]+), delta = ([\de.-]+)", promise)[0]
        assert 0.9 < float(epsilon) <= 1
        assert float(delta) <= 1e-6
    assert "for one training row: " in model
    assert "for one training row or one query: " in oracle
    assert "Accuracy of 100,000 answers in 4 phases" in said
    assert max(map(len, result.stdout.splitlines())) <= 100
    # The README shows what is printed; figures differ from run to run.
    shown = README.read_text(encoding="utf-8").split("prints:\n\n```\n")[1].split("```")[0]
    assert _without_figures(result.stdout).startswith(_without_figures(shown))


def _without_figures(text: str) -> str:
    return " ".join(re.sub(r"\d[\d.,]*", "#", text).split())


@pytest.mark.parametrize("epsilon", ["-1", "0", "much", "nan"])
def test_an_epsilon_that_makes_no_sense_is_refused_at_once(epsilon: str) -> None:
    result = CliRunner().invoke(app, ["demo", "--epsilon", epsilon])
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")


def test_the_first_words_come_before_anything_heavy_is_loaded() -> None:
    code = "import sys, cumae.cli; print(*sys.modules)"
    run = [sys.executable, "-c", code]
    loaded = subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()
    assert {"sklearn", "numba", "pandas", "scipy.stats"}.isdisjoint(loaded)
