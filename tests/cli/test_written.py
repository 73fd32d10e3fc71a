"""Files as other countries and programs write them: declared in the schema, never guessed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cumae import Columns
from cumae.errors import InvalidParameter
from tests.census import run
from tests.oracles import oracle

SCHEMA = """\
[file]
encoding = "cp1252"
separator = ";"
decimal = ","
thousands = "."
format = "%d.%m.%Y"
[columns]
weight = {low = 0, high = 5000}
born = {first = 1920-01-01, last = 2020-01-01}
sex = {codes = {1 = "male", 2 = "female"}}
town = {categories = ["K\\u00f6ln", "Ulm"]}
"""
FIT = ["--label", "ill", "--classes", "no,yes", "--epsilon", "1", "--delta", "1e-6"]
FIT += ["--schema", "schema.toml", "--route", "publish", "--model", "logistic"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    write(tmp_path / "data.csv")
    return tmp_path


def write(path: Path, fifth: str = "1.234,5;31.12.1980;1;K\u00f6ln;yes", count: int = 400) -> None:
    rows = ["1.234,5;31.12.1980;1;K\u00f6ln;yes", "70,25;01.02.1955;2;Ulm;no"] * (count // 2)
    rows[4] = fifth
    path.write_bytes("\n".join(["weight;born;sex;town;ill", *rows, ""]).encode("cp1252"))


def test_days_in_the_schema_may_be_written_as_the_cells_are(folder: Path) -> None:
    text = SCHEMA.replace("1920-01-01", '"01.01.1920"').replace("2020-01-01", '"2020-01-01"')
    (folder / "schema.toml").write_text(text, encoding="utf-8")
    done = run("fit", "data.csv", *FIT, "-o", "m.json", "--dry-run")
    assert done.exit_code == 0, done.stderr
    (folder / "schema.toml").write_text(text.replace("01.01.1920", "31.02.1920"), encoding="utf-8")
    done = run("fit", "data.csv", *FIT, "-o", "m.json", "--dry-run")
    assert done.exit_code == 3
    assert "write 2000-01-31, or as the entry format says" in " ".join(done.stderr.split())


def test_a_german_file_is_learnt_and_asked_as_the_schema_says(folder: Path) -> None:
    done = run("fit", "data.csv", *FIT, "-o", "m.json")
    assert done.exit_code == 0, done.stderr
    assert '"cp1252"' in (folder / "m.json").read_text()
    answered = run("predict", "m.json", "data.csv", "-o", "a.csv")
    assert "400 of 400 queries are answered" in answered.stderr
    assert "K\u00f6ln" in (folder / "a.csv").read_text(encoding="utf-8")
    assert (
        run("score", "m.json", "data.csv", "--label", "ill", "--exact", "--new-rows").exit_code == 0
    )
    known = json.loads((folder / "m.json").read_text())
    assert "sex=female" in str(Columns.from_dict(known["fitted"]["columns_"]["value"]).names)


@pytest.mark.parametrize(
    ("fifth", "said"),
    [
        ("1.5;31.12.1980;1;Ulm;no", "column weight: no number of the form 1.234,5"),
        ("1,5;1980-12-31;1;Ulm;no", "column born: no date of the form %d.%m.%Y"),
        ("1,5;31.02.1980;1;Ulm;no", "column born: no date of the form %d.%m.%Y"),
    ],
)
def test_a_cell_that_is_written_otherwise_is_named(folder: Path, fifth: str, said: str) -> None:
    write(folder / "data.csv", fifth)
    done = run("fit", "data.csv", *FIT, "-o", "m.json")
    assert done.exit_code == 3
    assert f"row 5 (line 6), {said}" in " ".join(done.stderr.split())


def test_rows_after_a_refused_one_are_not_read(folder: Path) -> None:
    write(folder / "data.csv", "x;31.12.1980;1;Ulm;no", 4_000)
    with (folder / "data.csv").open("ab") as file:
        file.write(b'"a quote that nobody closes')  # would be refused if it were read
    done = run("fit", "data.csv", *FIT, "-o", "m.json")
    assert "row 5 (line 6), column weight" in " ".join(done.stderr.split())


def test_a_model_is_not_written_to_a_file_of_another_kind(folder: Path) -> None:
    done = run("fit", "no such file.csv", *FIT, "-o", "d.pkl")
    assert done.exit_code == 2
    assert "must end in .json" in " ".join(done.stderr.replace("\u2502", " ").split())


def test_two_digits_of_a_year_are_in_the_century_from_the_first_day_on() -> None:
    form = {"first": "1920-01-01", "last": "2019-12-31", "format": "%d %b %y"}
    columns = Columns({"born": form}, ["born"], 1)
    assert columns.encode([["1 jan 20"], ["2 Jan 20"], ["1 Jan 19"]]).ravel().tolist() == [
        0,
        1,
        36160,
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"low": 0, "high": 9, "decimal": ";"},
        {"low": 0, "high": 9, "decimal": ",", "thousands": ","},
        {"low": 0, "high": 9, "format": "%Y"},
        {"since": "2000-01-01", "format": "%d.%Y"},
        {"codes": {1: "male", 2: "male"}},
    ],
)
def test_a_form_that_cannot_be_read_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter, match="x"):
        Columns({"x": wrong}, ["x"], 1)


def loaded(*commands: list[str]) -> tuple[set[str], str]:
    """Run commands in a process of their own; return what it has loaded then, and what it said."""
    code = "import json, sys\nfrom cumae.cli import app\nfor words in json.loads(sys.argv[1]):\n"
    code += " try:\n  app(words)\n except SystemExit:\n  pass\nprint('LOADED', *sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(commands)],
        capture_output=True,
        text=True,
        check=True,
    )
    said, _, names = done.stdout.partition("LOADED")
    return set(names.split()), " ".join((said + done.stderr).split())


HEAVY = {"sklearn", "numba", "scipy.stats", "cumae.predictors", "cumae.learners"}
ABSENT = ["none.csv", "none.json", "none.db"]


def test_help_and_files_that_are_not_there_load_next_to_nothing(folder: Path) -> None:
    """All commands in one process: what one of them loads is there at the end."""
    score = ["score", "none.json", "data.csv", "--label", "ill", "--exact", "--new-rows"]
    plan = ["plan", "none.csv", "--epsilon", "1", "--delta", "1e-6"]
    commands = [
        ["--help"],
        *([name, "--help"] for name in ("fit", "plan", "predict", "score", "show", "status")),
        ["fit", "none.csv", *FIT, "-o", "m.json"],
        ["fit", "data.csv", *FIT[:-6], "--schema", "none.toml", "-o", "m.json"],
        ["predict", "none.json", "data.csv"],
        score,
        plan,
        ["show", "none.json"],
        ["schema", "none.csv"],
        ["schema", "data.csv", "--encoding", "cp1252"],
        *([name, "none.db"] for name in ("status", "verify")),
        *([name, "none.db", "--yes"] for name in ("restore", "destroy")),
        ["backup", "none.db", "copy.db"],
        ["serve", "none.db"],
    ]
    found, told = loaded(*commands)
    assert found.isdisjoint(HEAVY | {"numpy", "pandas", "cumae.store", "cumae.planning"})
    absent = [words for words in commands if set(words) & {*ABSENT, "none.toml"}]
    assert told.count("there is no file none.") == len(absent)


def test_commands_load_what_they_need(folder: Path) -> None:
    stored, _ = oracle(folder)
    found, told = loaded(["status", str(stored)], ["verify", str(stored)])
    assert "Recomputed: epsilon" in told
    assert found.isdisjoint(HEAVY | {"pandas", "cumae.planning"})
    write(folder / "data.csv", "x;31.12.1980;1;Ulm;no")
    found, told = loaded(["show", "data.csv"])
    assert "data.csv is neither a model nor an oracle of cumae" in told
    assert found.isdisjoint(HEAVY | {"cumae.planning"})
    for more in (["-o", "m.json"], ["--route", "everlasting", "--model", "tree", "-o", "new.db"]):
        found, told = loaded(["fit", "data.csv", *FIT, *more])
        assert "row 5 (line 6), column weight" in told
        assert found.isdisjoint(HEAVY | {"cumae.planning"})
