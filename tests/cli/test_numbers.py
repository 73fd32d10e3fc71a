"""A number instead of classes on the command line: fit, show, predict, score and plan."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import cumae
from cumae import PrivateKernelRegressor, PrivateLinearRegression
from cumae.cli.app import ExitCode
from tests.census import PRICE, run

SCHEMA = """\
[columns]
age = {low = 17, high = 90}
education = ["HS-grad", "Some college, no degree", 'Doctorate ("PhD")']
"""
TARGET = ["--label", "hours", "--range", "0,99"]


@pytest.fixture
def numbers(folder: Path) -> Path:
    """Write rows with a number that is there in each of them."""
    for name in ("adult.csv", "test.csv"):
        frame = pd.read_csv(folder / name)
        hours = 20 + 0.4 * frame["age"] + 20 * frame["education"].str.startswith("Doc")
        frame = frame[["age", "education"]].assign(hours=hours.round(1))
        frame.to_csv(folder / f"hours_{name}", index=False)
    (folder / "hours.toml").write_text(SCHEMA, encoding="utf-8")
    return folder


def fit(*more: str) -> tuple[int, str]:
    done = run("fit", "hours_adult.csv", *TARGET, *PRICE, "--schema", "hours.toml", *more)
    return done.exit_code, done.stdout + done.stderr


def test_a_number_is_fitted_shown_asked_and_scored(numbers: Path) -> None:
    assert fit("-o", "hours.json")[0] == 0
    model = cumae.load(numbers / "hours.json")
    assert isinstance(model, PrivateKernelRegressor)
    assert model.guarantee_.within(3.0, 1e-6)
    shown = run("show", "hours.json").stdout
    assert "a number from 0 to 99" in shown
    assert "mean: " in shown
    assert json.loads(run("show", "hours.json", "--json").stdout)["range"] == [0, 99]
    asked = run("predict", "hours.json", "hours_test.csv", "-o", "a.csv", "--interval", "0.9")
    assert asked.exit_code == 0, asked.stderr
    answers = pd.read_csv(numbers / "a.csv")
    assert list(answers)[-3:] == ["answer", "answer low", "answer high"]
    queries = pd.read_csv(numbers / "hours_test.csv").drop(columns="hours")
    assert answers["answer"].tolist() == pytest.approx(model.predict(queries).tolist())
    assert (answers["answer low"] < answers["answer high"]).all()
    judging = ["score", "hours.json", "hours_test.csv", "--label", "hours", "--exact", "--new-rows"]
    assert "R2: 0." in run(*judging).stdout
    found = json.loads(run(*judging, "--json").stdout)
    assert found["r2"] > 0.6
    assert set(found["inside"]) == {"0.5", "0.9", "0.95"}


def test_lines_with_a_range_that_is_found(numbers: Path) -> None:
    args = ["fit", "hours_adult.csv", "--label", "hours", "--range", "auto", "--model", "linear"]
    done = run(*args, *PRICE, "--schema", "hours.toml", "-o", "lines.json")
    assert done.exit_code == 0, done.stderr
    model = cumae.load(numbers / "lines.json")
    assert isinstance(model, PrivateLinearRegression)
    assert "standard error" in run("show", "lines.json").stdout
    found = json.loads(run("show", "lines.json", "--json").stdout)
    assert found["slopes"]["age"][0] == pytest.approx(0.4, abs=0.15)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--classes", "a,b"], "one of --classes"),
        (["--goal", "ranking"], "about classes"),
        (["--model", "booster"], "no model of a number"),
        (["--link", "probit"], "identity or log"),
        (["--max-queries", "5"], "about classes"),
        (["--algorithm", "learner"], "about classes"),
    ],
)
@pytest.mark.usefixtures("numbers")
def test_options_about_classes_are_refused(more: list[str], said: str) -> None:
    code, text = fit(*more, "-o", "no.json")
    assert code == ExitCode.USAGE
    assert said in text


def test_what_is_no_number_is_refused_by_row(numbers: Path) -> None:
    text = (numbers / "hours_adult.csv").read_text().splitlines()
    text[4] = text[4].rpartition(",")[0] + ",many"
    (numbers / "hours_adult.csv").write_text("\n".join(text))
    code, said = fit("-o", "no.json")
    assert code == ExitCode.REFUSED
    assert "(line 5), column hours" in said
    assert "many" not in said
    assert not (numbers / "no.json").exists()


@pytest.mark.usefixtures("numbers")
def test_a_dry_run_and_a_plan_pay_nothing() -> None:
    code, said = fit("-o", "no.json", "--dry-run")
    assert code == 0
    assert "Nothing was paid" in said
    args = ["plan", "--rows", "2000", "--schema", "hours.toml", "--range", "0,99", *PRICE]
    planned = run(*args)
    assert planned.exit_code == 0, planned.stderr
    assert "PrivateLinearRegression can be fitted" in planned.stdout
    assert "R2 .50" in planned.stdout


@pytest.mark.usefixtures("numbers")
def test_numbers_and_classes_are_not_mixed_up(folder: Path) -> None:
    assert fit("-o", "hours.json")[0] == 0
    score = ["score", "hours.json", "hours_test.csv", "--label", "hours", "--new-rows"]
    assert "no noisy score" in run(*score, "--epsilon", "1").stderr
    assert "gives no chances" in run("predict", "hours.json", "hours_test.csv", "--chances").stderr
    wrong = run("predict", "model.json", "queries.csv", "--interval", "0.5")
    assert "predicts no number" in wrong.stderr
