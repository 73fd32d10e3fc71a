"""``cumae fit`` checks all that can fail, then pays once, and writes a model or an oracle."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pandas as pd
import pytest

import cumae
from cumae import PrivateBooster, PrivateKernelClassifier, PrivateLogisticRegression, QueryRelease
from cumae.cli.app import ExitCode
from cumae.learners import Learner
from tests.census import COLUMNS, FIT, answers_in, people, run

FITTING = ["fit", "adult.csv", *FIT, "--schema", "schema.toml"]


@pytest.fixture
def never_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a fit fail that pays: refusals must come before it."""

    def paid(*_: object, **__: object) -> None:
        raise AssertionError("paid")

    monkeypatch.setattr(Learner, "_learn", paid, raising=True)
    for kind in (PrivateKernelClassifier, PrivateBooster, PrivateLogisticRegression, QueryRelease):
        monkeypatch.setattr(kind, "fit", paid)
    monkeypatch.setattr(cumae.EverlastingPredictor, "fit", paid)


def test_a_model_is_json_and_python_reads_it(folder: Path) -> None:
    model = PrivateKernelClassifier.load(folder / "model.json")
    assert model.classes_.tolist() == ["<=50K", ">50K"]
    assert model.guarantee_.within(3.0, 1e-6)
    queries = pd.read_csv(folder / "queries.csv", dtype=str, keep_default_na=False)
    queries = queries.replace("?", "")
    assert run("predict", "model.json", "queries.csv", "-o", "a.csv").exit_code == 0
    assert model.predict(queries).tolist() == answers_in(folder / "a.csv")


def test_the_file_of_a_private_classifier_is_read_as_the_model_in_it(folder: Path) -> None:
    inner = json.loads((folder / "model.json").read_text())
    outer = {"kind": "PrivateClassifier", "route": "kernel", "why": "", "n_queries": None}
    (folder / "outer.json").write_text(json.dumps(outer | {"model": inner}))
    found = cumae.PrivateClassifier.load(folder / "outer.json")
    assert found.model_.to_dict() == inner
    shown = run("show", "outer.json").stdout.replace("outer.json", "model.json")
    assert shown == run("show", "model.json").stdout
    (folder / "outer.json").write_text(json.dumps(outer))
    assert run("show", "outer.json").exit_code == ExitCode.REFUSED


@pytest.mark.parametrize("model", ["kernel", "logistic", "curves", "booster"])
def test_every_published_model_can_be_fitted_shown_and_asked(folder: Path, model: str) -> None:
    done = run(*FITTING, "--model", model, "-o", "new.json", "--public", "census.csv", "--json")
    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["published"]
    assert told["guarantee"]["epsilon"] <= 3.0
    assert told["public_rows"] == 300
    shown = run("show", "new.json")
    assert shown.exit_code == 0, shown.stderr
    assert "Promise: (epsilon = " in shown.stdout
    assert "Claims:" not in shown.stdout
    assert "Claims:" in run("show", "new.json", "--full").stdout
    assert json.loads(run("show", "new.json", "--json").stdout)["kind"] == told["kind"]
    done = run(
        "score", "new.json", "test.csv", "--label", "income", "--exact", "--new-rows", "--json"
    )
    assert json.loads(done.stdout)["accuracy"] > 0.7


def test_ridges_can_be_asked_by_votes(folder: Path) -> None:
    more = ["--route", "release", "--max-queries", "60", "--model", "ridge"]
    done = run(*FITTING, *more, "-o", "new.db")
    assert done.exit_code == 0, done.stderr
    done = run("predict", "new.db", "queries.csv", "-o", "a.csv")
    assert "The oracle has 0 answers left" in done.stderr
    assert set(answers_in(folder / "a.csv")) <= {"<=50K", ">50K"}


def test_the_planner_chooses_by_public_facts(folder: Path) -> None:
    done = run(*FITTING, "-o", "new.json", "--dry-run")
    assert "it is likely to be the most accurate" in " ".join(done.stderr.split())
    assert "Promise: (epsilon = " in done.stdout
    assert "Claims:" not in done.stdout
    assert "Claims:" in run(*FITTING, "-o", "new.json", "--dry-run", "--full").stdout
    facts = json.loads(run(*FITTING, "-o", "new.db", "--dry-run", "--json").stdout)
    assert facts["kind"] == "EverlastingPredictor"
    assert facts["outlook"]["guarantee"]["epsilon"] == 3.0
    more = ["--max-queries", "5", "--model", "ridge"]
    facts = json.loads(run(*FITTING, *more, "-o", "new.db", "--dry-run", "--json").stdout)
    assert facts["kind"] == "QueryRelease"


def test_pure_privacy_takes_a_model_of_its_own(folder: Path) -> None:
    words = ["fit", "adult.csv", "--label", "income", "--classes", "<=50K,>50K"]
    price = ["--epsilon", "1", "--delta", "0", "--schema", "schema.toml"]
    done = run(*words, *price, "-o", "new.json", "--json")
    told = json.loads(done.stdout)
    assert (told["published"], told["guarantee"]["delta"]) == (True, 0)
    dry = run(*words, *price, "--route", "publish", "-o", "other.json", "--dry-run", "--json")
    assert json.loads(dry.stdout)["kind"] == "PrivateBooster"


def test_classes_that_are_whole_numbers_are_numbers(folder: Path) -> None:
    rows = [[*row[:-1], str(int(row[-1] == ">50K"))] for row in people(300, 1)]
    pd.DataFrame(rows, columns=COLUMNS).to_csv("numbers.csv", index=False)
    words = ["--label", "income", "--classes", "0,1", "--epsilon", "9", "--delta", "1e-6"]
    done = run(
        "fit",
        "numbers.csv",
        *words,
        "--schema",
        "schema.toml",
        "-o",
        "new.json",
        "--model",
        "curves",
    )
    assert done.exit_code == 0, done.stderr
    assert Learner.load("new.json").classes_.tolist() == [0, 1]
    done = run("score", "new.json", "numbers.csv", "--label", "income", "--exact", "--new-rows")
    assert done.exit_code == 0, done.stderr


@pytest.mark.usefixtures("never_paid")
@pytest.mark.parametrize(
    ("more", "code", "told"),
    [
        (["-o", "model.json"], 3, "model.json is there already"),
        (["-o", "no/folder/m.json"], 3, "there is no folder no/folder"),
        (["-o", "oracle.db", "--route", "everlasting"], 3, "never overwritten"),
        (["-o", "oracle.db", "--route", "everlasting", "--force"], 3, "never overwritten"),
        (["-o", "postgresql://host/oracles"], 3, "fit writes files"),
        (["-o", "m.json", "--keys", "vault"], 2, "a published model has no keys"),
        (["-o", "m.db", "--keys", "no-such-command"], 3, "the command for keys did not run"),
        (["-o", "m.db", "--keys", "false"], 3, "the command for keys failed"),
        (["-o", "m.db", "--keys", "echo epoch-1"], 3, "has keys already"),
        (["-o", "m.db", "--keys", "folder:oracle.db.keys"], 3, "exists already"),
        (["-o", "m.db", "--keys", "folder:no/keys"], 3, "cannot be made"),
        (["-o", "m.db", "--route", "publish"], 2, "a published model is JSON"),
        (["-o", "-", "--route", "release"], 3, "cannot go to standard output"),
        (["-o", "m.json", "--classes", "<=50K,rich"], 3, "the label is none of the classes"),
        (["-o", "m.json", "--classes", "<=50K"], 3, "must list at least two labels"),
        (["-o", "m.json", "--classes", "a,a"], 3, "must list at least two labels"),
        (["-o", "m.json", "--label", "salary"], 3, "has no column salary, which --label names"),
        (["-o", "m.json", "--model", "kernl"], 2, "did you mean kernel?"),
        (["-o", "m.json", "--model", "tree"], 2, "is no model of publish"),
        (["-o", "m.json", "--epsilon", "0"], 2, "is not a finite number above 0"),
        (["-o", "m.json", "--epsilon", "nan"], 2, "is not a finite number above 0"),
        (["-o", "m.json", "--delta", "1"], 2, "is not from 0 to less than 1"),
        (["-o", "m.json", "--route", "teleport"], 2, "teleport"),
        (["-o", "m.json", "--public", "queries.csv", "--dry-run"], 0, ""),
        (["-o", "m.json", "--public", "other.csv"], 3, "other.csv has no column age"),
        (["-o", "m.json", "--public", "./adult.csv"], 3, "cannot be public as well"),
        (["-o", "m.json", "--dry-run"], 0, ""),
        (["-o", "new.db", "--route", "everlasting", "--dry-run"], 0, ""),
        (["-o", "new.db", "--route", "release", "--dry-run"], 0, ""),
    ],
)
def test_what_is_refused_is_refused_before_it_is_paid(
    folder: Path, more: list[str], code: int, told: str
) -> None:
    Path("other.csv").write_text("x\n1\n", encoding="utf-8")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = run(*FITTING, *more)
    assert done.exit_code == code, done.output
    assert told in " ".join(done.output.split())
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.usefixtures("never_paid")
def test_a_folder_that_cannot_be_written_is_refused(folder: Path) -> None:
    if os.geteuid() == 0:  # root may write everywhere but here
        done = run(*FITTING, "-o", "/proc/model.json")
    else:
        (folder / "closed").mkdir(mode=0o500)
        done = run(*FITTING, "-o", "closed/model.json")
    assert done.exit_code == ExitCode.REFUSED
    assert "cannot be written" in done.stderr


def test_force_replaces_a_model_when_the_new_one_is_complete(folder: Path) -> None:
    before = (folder / "model.json").read_bytes()
    done = run(*FITTING, "-o", "model.json", "--force", "--model", "logistic")
    assert done.exit_code == 0, done.stderr
    assert (folder / "model.json").read_bytes() != before
    assert stat.S_IMODE((folder / "model.json").stat().st_mode) == 0o666 & ~_mask()


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_fit_that_fails_leaves_the_old_model(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (folder / "model.json").read_bytes()

    def broken(*_: object) -> None:
        raise RuntimeError("row 7 has 4711")

    monkeypatch.setattr(PrivateKernelClassifier, "_learn_within", broken)
    done = run(*FITTING, "-o", "model.json", "--force", "--model", "kernel")
    assert done.exit_code == ExitCode.INTERNAL
    assert "4711" not in done.output
    assert (folder / "model.json").read_bytes() == before


def test_a_file_that_appears_meanwhile_is_left_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = PrivateKernelClassifier.to_dict

    def slow(self: PrivateKernelClassifier) -> dict[str, object]:
        Path("new.json").write_text("of somebody else", encoding="utf-8")
        return real(self)

    monkeypatch.setattr(PrivateKernelClassifier, "to_dict", slow)
    done = run(*FITTING, "-o", "new.json", "--public", "census.csv", "--model", "kernel")
    assert done.exit_code == ExitCode.REFUSED
    assert Path("new.json").read_text(encoding="utf-8") == "of somebody else"
    (kept,) = folder.glob(".new.json.*.part")
    assert kept.name in done.stderr
    assert PrivateKernelClassifier.load(kept).classes_.tolist() == ["<=50K", ">50K"]
    kept.unlink()


def test_from_standard_input_to_standard_output(folder: Path) -> None:
    given = (folder / "adult.csv").read_bytes()
    words = ["fit", "-", *FIT, "--schema", "schema.toml", "--public", "census.csv", "-o", "-"]
    done = run(*words, "--model", "curves", given=given)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["kind"] == "PrivateLogisticRegression"
    assert "Promise: (epsilon = " in done.stderr


def test_a_dry_run_tells_the_owner_which_cells_do_not_fit(folder: Path) -> None:
    rows = people(50, 1)
    rows[3][2] = "Kindergarten"
    rows[7][0] = "120"
    pd.DataFrame(rows, columns=COLUMNS).to_csv("odd.csv", index=False)
    done = run("fit", "odd.csv", *FIT, "--schema", "schema.toml", "-o", "m.json", "--dry-run")
    assert done.exit_code == 0, done.stderr
    for line in (
        "education: none of the declared categories in 1 rows, first in odd.csv, row 4 (line 5)",
        "age: outside its declared bounds in 1 rows, first in odd.csv, row 8 (line 9)",
    ):
        assert line in done.stderr
    assert "Kindergarten" not in done.output
    assert "owner of the rows alone" in done.stderr


def test_warnings_are_plain_lines(folder: Path) -> None:
    pd.DataFrame(people(20, 1), columns=COLUMNS).to_csv("few.csv", index=False)
    more = ["--schema", "schema.toml", "-o", "m.json", "--model", "curves", "--epsilon", "0.5"]
    done = run("fit", "few.csv", *FIT, *more)
    assert "Warning: 20 rows with" in done.stderr
    assert ".py:" not in done.stderr


def test_a_plan_needs_no_rows_and_reads_none(folder: Path) -> None:
    price = ["--epsilon", "3", "--delta", "1e-6"]
    done = run("plan", "--rows", "1500", "--schema", "schema.toml", *price, "--why")
    assert done.exit_code == 0, done.stderr
    assert "less than a usual model without privacy" in " ".join(done.stdout.split())
    assert "Cannot run: " in done.stdout
    assert "semi: Publish a SemiPrivateLearner: refused." in done.stdout
    assert "X_public is --public" in done.stdout
    done = run("plan", "--rows", "300", "--columns", "5", *price)
    assert "Ranges stand in the file of --schema." in " ".join(done.stdout.split())
    assert "From Python, but not by `cumae fit`:" in done.stdout
    assert "publish a student" not in done.stdout.partition("\n\n")[0]
    done = run("plan", "--rows", "0", "--columns", "5", *price)
    assert done.stdout.startswith("No route can run. n_labelled=0")
    assert "takes the best route" not in done.stdout
    rows = people(1_500, 99)  # other people: the same plan
    pd.DataFrame(rows, columns=COLUMNS).to_csv("others.csv", index=False)
    words = ["--label", "income", "--schema", "schema.toml", *price, "--json"]
    plans = [json.loads(run("plan", name, *words).stdout) for name in ("adult.csv", "others.csv")]
    for one in plans:
        for found in one["prospects"]:
            del found["outlook"]["seconds"]  # which are measured
    assert plans[0] == plans[1]
    assert plans[0]["prospects"][0]["outlook"]["guarantee"]["epsilon"] <= 3.0
    done = run("plan", "--rows", "3000", "--columns", "3", *price, "--plot", "plan.svg")
    assert "<svg" in Path("plan.svg").read_text(encoding="utf-8"), done.stderr
    for wrong in (["--rows", "9", "adult.csv"], [], ["--rows", "9", "--simulate"]):
        assert run("plan", *wrong, *price).exit_code == ExitCode.USAGE
    assert run("plan", "--rows", "9", *price).exit_code == ExitCode.REFUSED
    assert run("plan", "adult.csv", "--label", "income", *price).exit_code == ExitCode.REFUSED


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--epsilon", "50", "--delta", "1e-6"], "epsilon = 50 hardly protects anybody"),
        (["--epsilon", "1", "--delta", "0.5"], "delta = 0.5 is not below 1 divided by the number"),
    ],
)
def test_a_promise_that_says_little_is_warned_of(given: list[str], said: str) -> None:
    told = run("plan", "--rows", "2000", "--columns", "2", *given)
    assert told.exit_code == 0
    assert said in " ".join(told.stderr.split())
    right = run("plan", "--rows", "2000", "--columns", "2", "--epsilon", "1", "--delta", "1e-6")
    assert "Warning" not in right.stderr
    assert "a route is likely to be behind three models" in " ".join(right.stdout.split())
