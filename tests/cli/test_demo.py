"""The demo plans, publishes, answers through a kill, attacks, and says what it promises."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import cumae
from cumae import EverlastingPredictor, PrivateClassifier
from cumae.cli import app
from cumae.cli.app import ExitCode
from cumae.cli.demo.charts import HEIGHT, TOP, Chart, Series, picture, svg
from tests.demonstrations import Demonstration

README = Path(__file__).parents[2] / "README.md"


def test_the_demo_publishes_a_model_and_answers_through_several_phases(
    demonstration: Demonstration,
) -> None:
    said = " ".join(demonstration.said.split())
    found = re.search(
        r"other people: ([\d.]+)% Without privacy: ([\d.]+)%. Guessing: ([\d.]+)%", said
    )
    assert found is not None
    private, best, guessing = map(float, found.groups())
    assert 56 < guessing < 59
    assert private > 71.5
    assert abs(private - best) < 1.5
    model, oracle = re.findall(r"Promise: (.*?RAND)\.", said)
    for promise in (model, oracle):
        epsilon, delta = re.findall(r"epsilon = ([\d.]+), delta = ([\de.-]+)", promise)[0]
        assert 0.8 < float(epsilon) <= 1
        assert float(delta) <= 1e-6
    assert "for one training row: " in model
    assert "for one training row or one query: " in oracle
    answered = re.search(r"Accuracy of 20,000 answers in (\d) phases: ([\d.]+)%", said)
    assert answered is not None
    assert int(answered[1]) >= 2
    assert float(answered[2]) > 70
    assert max(map(len, demonstration.said.splitlines())) <= 100


def test_the_first_process_was_killed_and_another_one_went_on(demonstration: Demonstration) -> None:
    """What was charged is at most what the mark is ahead: 1/256 of a phase."""
    killed = re.search(r"killed after ([\d,]+) answers", demonstration.said)
    assert killed is not None
    assert 10_000 <= int(killed[1].replace(",", "")) < 20_000
    oracle = cumae.open(demonstration.folder / "oracle.db")
    try:
        assert isinstance(oracle, EverlastingPredictor)
        assert 20_000 <= oracle.answered_ < 21_500
        assert oracle.guarantee_.within(1.0, 1e-6)
    finally:
        oracle.close()


def test_the_published_model_is_a_file_of_its_own(demonstration: Demonstration) -> None:
    model = PrivateClassifier.load(demonstration.folder / "model.json")
    assert model.guarantee_.within(1.0, 1e-6)
    text = (demonstration.folder / "model.json").read_text(encoding="utf-8")
    assert json.loads(text)


def test_the_readme_shows_what_is_printed(demonstration: Demonstration) -> None:
    """Figures differ from run to run, and so may the route that is planned."""
    shown = README.read_text(encoding="utf-8").split("prints:\n\n```\n")[1].split("```")[0]
    assert _without_figures(shown) == _without_figures(demonstration.said.split("\nDone")[0])


def _without_figures(text: str) -> str:
    flat = re.sub(r"[\d][\d.,]*", "#", " ".join(text.split()))
    flat = re.sub(r"Plan: .*? Promise:", "Plan: Promise:", flat)
    flat = re.sub(r"(Phase #: # models vote, and noise is added. )+", "Phases. ", flat)
    return re.sub(r"proven under [A-Z, ]+\.", "proven.", flat)


@pytest.mark.parametrize("epsilon", ["-1", "0", "much", "nan"])
def test_an_epsilon_that_makes_no_sense_is_refused_at_once(epsilon: str) -> None:
    result = CliRunner().invoke(app, ["demo", "--epsilon", epsilon])
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")


def test_the_first_words_come_before_anything_heavy_is_loaded() -> None:
    code = "import sys, cumae.cli; print(*sys.modules)"
    run = [sys.executable, "-c", code]
    loaded = subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()
    assert {"sklearn", "numba", "pandas", "scipy.stats"}.isdisjoint(loaded)


def _chart(**options: object) -> Chart:
    series = (Series("a < b", ((1.0, 0.0), (10.0, 5.0), (100.0, 10.0))),)
    given = {"ticks": ((1.0, "1"),), "levels": ((0.0, "0"),), "wide": (1.0, 100.0)}
    given |= {"high": (0.0, 10.0), "series": series, "logarithmic": "x", **options}
    return Chart("key", "A title", "A description.", "across", "up", **given)  # type: ignore[arg-type]


def test_a_chart_puts_points_where_they_belong() -> None:
    chart = _chart()
    left, middle, right = (chart.x(value) for value in (1.0, 10.0, 100.0))
    assert middle == pytest.approx((left + right) / 2)
    assert chart.y(10.0) == TOP
    assert chart.y(0.0) > chart.y(10.0)
    assert chart.y(-3.0) == chart.y(0.0) < HEIGHT  # what lies outside stays at the edge


def test_a_chart_is_named_for_those_who_do_not_see_it_and_escapes_words() -> None:
    drawn = svg(_chart())
    assert 'role="img" aria-labelledby="key-title key-description"' in drawn
    assert "<title " in drawn
    assert "a &lt; b" in drawn
    assert drawn.count("<circle") == 4  # three points, and one in the legend


def test_a_picture_brings_its_own_style_and_nothing_from_outside() -> None:
    drawn = picture([_chart(), _chart(key="other")])
    assert "prefers-color-scheme: dark" in drawn
    assert set(re.findall(r"https?://[^\"' ]+", drawn)) == {"http://www.w3.org/2000/svg"}
