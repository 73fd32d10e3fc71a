"""The demonstration learns a sensible rule and says what it promises."""

from __future__ import annotations

import re

import numpy as np
import pytest
from typer.testing import CliRunner

from cumae.cli import app
from cumae.cli.app import ExitCode
from cumae.cli.demo import SurveyRule, count_right, rules_within


def test_the_demo_beats_guessing_and_prints_its_guarantee() -> None:
    """A rule below 60 % is 10,000 rows behind the best: it is drawn less often than exp(-4000)."""
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == ExitCode.OK, result.output
    ours, guessing = (float(figure) for figure in re.findall(r"([\d.]+)%", result.stdout))
    assert 56 < guessing < 57
    assert ours > 60
    assert "Learned from 202,944 rows" in result.stdout
    assert "SurveyRule: predict high blood pressure if" in result.stdout
    assert re.search(r"epsilon = 1\b.*one labelled training row", result.stdout)


def test_options() -> None:
    result = CliRunner().invoke(app, ["demo", "--epsilon", "0.5", "--rows", "50"])
    assert result.exit_code == ExitCode.OK, result.output
    assert "Learned from 50 rows" in result.stdout
    assert "epsilon = 0.5" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--epsilon", "-1"], ExitCode.REFUSED),
        (["--epsilon", "nan"], ExitCode.REFUSED),
        (["--rows", "0"], ExitCode.USAGE),
        (["--epsilon", "much"], ExitCode.USAGE),
    ],
)
def test_bad_options(arguments: list[str], code: ExitCode) -> None:
    result = CliRunner().invoke(app, ["demo", *arguments])
    assert result.exit_code == code
    assert result.stdout == ""


def test_scores_equal_those_of_the_stumps_one_by_one() -> None:
    generator = np.random.default_rng(3)
    bounds = {"a": (0, 1), "b": (-2, 5), "c": (1, 13)}
    columns = [generator.integers(low, high + 1, size=200) for low, high in bounds.values()]
    labels = generator.integers(0, 2, size=200)
    stumps = rules_within(bounds)
    assert len(stumps) == len(set(stumps)) == 2 * (1 + 7 + 12)
    by_name = dict(zip(bounds, columns, strict=True))
    expected = [np.sum(stump.predict(by_name[stump.column]) == labels) for stump in stumps]
    assert count_right(columns, labels, bounds).tolist() == expected


def test_replacing_a_row_moves_no_score_by_more_than_one() -> None:
    """Also when the new row lies outside the declared bounds."""
    generator = np.random.default_rng(4)
    bounds = {"a": (0, 4)}
    values, labels = generator.integers(0, 5, size=30), generator.integers(0, 2, size=30)
    before = count_right([values], labels, bounds)
    for value in (-100, 0, 3, 10**9):
        for label in (0, 1):
            values[7], labels[7] = value, label
            after = count_right([values], labels, bounds)
            assert np.abs(after - before).max() <= 1


def test_a_stump_reads_as_it_predicts() -> None:
    assert str(SurveyRule("Age", 9, positive_above=True)) == "Age is 9 or more"
    assert str(SurveyRule("Age", 9, positive_above=False)) == "Age is 8 or less"
    values = np.array([8, 9])
    assert SurveyRule("Age", 9, positive_above=True).predict(values).tolist() == [0, 1]
    assert SurveyRule("Age", 9, positive_above=False).predict(values).tolist() == [1, 0]
