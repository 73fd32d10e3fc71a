"""Rare outcomes on the command line, in the words of somebody who has 800 patients."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cumae.cli.app import ExitCode
from cumae.cli.models.goals import numbers_of
from cumae.errors import InvalidParameter
from tests.census import run

PRICE = ["--epsilon", "1", "--delta", "1e-6"]
CLASSES = ["--classes", "no,died"]
SHARE = ["--class-shares", "died=0.0275"]
RANKING = [*CLASSES, *SHARE, "--goal", "ranking"]


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def ward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with 800 made-up patients, of whom 2.75 % died."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(-1, 1, (800, 8)).round(3), columns=list("abcdefgh"))
    table["outcome"] = np.where(np.arange(800) % 40 == 7, "died", "no")
    table.to_csv("ward.csv", index=False)
    lines = [f'"{name}" = {{low = -1, high = 1}}' for name in "abcdefgh"]
    Path("schema.toml").write_text("[columns]\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


FIT = ["fit", "ward.csv", "--label", "outcome", "--schema", "schema.toml", *PRICE]
PLAN = ["plan", "ward.csv", "--label", "outcome", "--schema", "schema.toml", *PRICE]


@pytest.mark.usefixtures("ward")
def test_plan_and_fit_say_before_the_payment_that_no_route_can_rank() -> None:
    planned = run(*PLAN, *RANKING)
    assert planned.exit_code == 0, planned.stderr
    assert "AUC about" in planned.stdout
    dry = run(*FIT, *RANKING, "-o", "model.json", "--dry-run")
    assert not Path("model.json").exists()
    paid = run(*FIT, *RANKING, "-o", "model.json")
    assert paid.exit_code == 0, paid.stderr
    for done in (planned, dry, paid):
        text = words(done.output).partition("Fitting")[0]
        assert "No route can rank with so few rows: 800, of which 2.75 % are died." in text
        assert "where guessing has 0.5, and a usual model without privacy has 0.7" in text
        assert "Every row is likely to get the same answer: no." in text
        assert "points" not in text
    shown = run("show", "model.json").stdout
    assert "Goal: ranking." in shown


@pytest.mark.usefixtures("ward")
def test_a_model_that_was_named_is_warned_about_as_well() -> None:
    for more in (["--model", "curves"], ["--model", "booster"], ["--model", "kernel"]):
        done = run(*FIT, *CLASSES, *SHARE, *more, "-o", "model.json", "--dry-run", "--json")
        told = json.loads(done.stdout)["advice"]["cautions"]
        assert any("No route can rank" in line for line in told)
        assert any("same answer: no" in line for line in told)
        assert "Careful: Every row is likely to get the same answer: no." in words(done.stderr)


@pytest.mark.usefixtures("ward")
def test_a_model_that_costs_more_than_always_saying_no_is_said_to() -> None:
    """Twenty times the cost, and the best that so few rows allow is worse than no model."""
    costs = ["--class-shares", "died=0.03", "--costs", "died=20"]
    planned = run(*PLAN, *CLASSES, *costs)
    dry = run(*FIT, *CLASSES, *costs, "-o", "m.json", "--dry-run")
    said = "Careful: Always saying no is likely to cost less than the best route: 0.6 for each row"
    for done in (planned, dry):
        assert said in words(done.output)
    many = run("plan", "--rows", "30000", "--columns", "8", *PRICE, *CLASSES, *costs)
    assert "likely to cost less" not in many.output


@pytest.mark.usefixtures("ward")
def test_costs_and_thresholds_are_stored_and_shown() -> None:
    done = run(*FIT, *CLASSES, *SHARE, "--costs", "died=20", "--model", "curves", "-o", "m.json")
    assert done.exit_code == 0, done.stderr
    shown = words(run("show", "m.json").stdout)
    assert "the class of least expected cost. Cost to miss a row: died: 20." in shown
    done = run(*FIT, *CLASSES, "--threshold", "0.05", "--model", "booster", "-o", "t.json")
    assert done.exit_code == 0, done.stderr
    assert "Answers: died if its chance is 0.05 or more." in run("show", "t.json").stdout
    facts = json.loads(run("show", "t.json", "--json").stdout)
    assert facts["answers"]["threshold"] == 0.05


@pytest.mark.usefixtures("ward")
def test_without_shares_it_says_what_it_assumes() -> None:
    for done in (run(*PLAN, *CLASSES), run(*FIT, *CLASSES, "-o", "m.json", "--dry-run")):
        assert "Classes are taken to be of equal size" in words(done.output)
        assert "one answer to everybody gets 50.0 %" in words(done.output)
        assert "less than a usual model without privacy" in words(done.output)
        assert "If classes are of equal size, it has about" in words(done.output)
        assert "privacy is likely to cost" not in words(done.output)
        assert "With 3 % in one class, say, no route could rank so few rows." in words(done.output)


def test_a_plan_for_costs_compares_costs() -> None:
    rows = ["--rows", "20000", "--columns", "8"]
    done = run("plan", *rows, *PRICE, *CLASSES, *SHARE, "--costs", "died=20")
    assert done.exit_code == 0, done.stderr
    assert "cost of a row about" in done.stdout
    assert "always saying no costs 0.55, and a usual model without" in words(done.stdout)
    found = json.loads(run("plan", *rows, *PRICE, *CLASSES, *RANKING[2:], "--json").stdout)
    best = found["prospects"][0]["reached"]
    assert best["goal"] == "ranking"
    assert 0.6 < best["value"] <= best["usual"] < 0.9
    done = run("plan", *rows, *PRICE, *CLASSES, *SHARE, "--plot", "p.svg")
    assert done.exit_code == ExitCode.REFUSED
    assert "say nothing about rare classes" in words(done.stderr)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--costs", "dead=20"], "the classes are no, died"),
        (["--costs", "died"], "must name classes and numbers"),
        (["--costs", "died=many"], "'many' is no number"),
        (["--class-shares", "died=2.75"], "such as 0.03 for 3 %"),
        (["--goal", "cost"], "without costs"),
        (["--costs", "died=2", "--threshold", "0.1"], "give one"),
    ],
)
def test_what_cannot_be_meant_is_refused(wrong: list[str], message: str) -> None:
    done = run("plan", "--rows", "500", "--columns", "3", *PRICE, *CLASSES, *wrong)
    assert done.exit_code == ExitCode.REFUSED
    assert message in words(done.stderr)


@pytest.mark.usefixtures("ward")
def test_an_oracle_cannot_follow_costs_and_says_so() -> None:
    more = ["--route", "everlasting", "--costs", "died=20", "-o", "o.db", "--dry-run"]
    done = run(*FIT, *CLASSES, *more)
    assert done.exit_code == ExitCode.REFUSED
    assert "--costs is given, and EverlastingPredictor cannot follow it" in words(done.stderr)


def test_numbers_of_classes_are_read_as_classes_are() -> None:
    assert numbers_of("1=20", "--costs", [0, 1]) == {1: 20.0}
    assert numbers_of('"a,b=c"=2, d=3', "--costs", ["a,b=c", "d"]) == {"a,b=c": 2.0, "d": 3.0}
    with pytest.raises(InvalidParameter, match="must name classes"):
        numbers_of("", "--costs", [0, 1])
