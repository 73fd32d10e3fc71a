"""The command of the demo, and the charts that it draws; tests/browser runs it as a whole."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from cumae.charts import HEIGHT, TOP, Chart, Series, picture, svg
from cumae.cli import app
from cumae.cli.app import ExitCode


@pytest.mark.parametrize("epsilon", ["-1", "0", "much", "nan"])
def test_an_epsilon_that_makes_no_sense_is_refused_at_once(epsilon: str) -> None:
    result = CliRunner().invoke(app, ["demo", "--epsilon", epsilon])
    assert (result.exit_code, result.stdout) == (ExitCode.USAGE, "")


def test_the_first_words_come_before_anything_heavy_is_loaded() -> None:
    code = "import sys, cumae.cli; print(*sys.modules)"
    run = [sys.executable, "-c", code]
    loaded = subprocess.run(run, check=True, capture_output=True, text=True).stdout.split()
    assert {"sklearn", "numba", "pandas", "scipy.stats"}.isdisjoint(loaded)


def _chart(key: str = "key") -> Chart:
    return Chart(
        key,
        "A title",
        "A description.",
        "across",
        "up",
        (Series("a < b", ((1.0, 0.0), (10.0, 5.0), (100.0, 10.0))),),
        wide=(1.0, 100.0),
        high=(0.0, 10.0),
        ticks=((1.0, "1"),),
        levels=((0.0, "0"),),
        logarithmic="x",
        marks=((2.0, "first"), (2.1, "second")),
    )


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
    drawn = picture([_chart(), _chart("other")])
    assert "prefers-color-scheme: dark" in drawn
    assert set(re.findall(r"https?://[^\"' ]+", drawn)) == {"http://www.w3.org/2000/svg"}


def test_words_of_marks_that_are_close_stand_in_two_rows() -> None:
    rows = re.findall(r'y="([\d.]+)" class="note"', svg(_chart()))
    assert len(set(rows)) == 2
