"""Oracles over names and long numbers, from files to answers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cumae.cli.app import ExitCode
from tests.census import answers_in, run

pytestmark = pytest.mark.claim("KEYS")

FITTING = ["fit", "guests.csv", "--label", "second", "--classes", "0,1", "--schema", "order.toml"]
FITTING += ["--epsilon", "8", "--delta", "1e-6"]


@pytest.fixture
def guests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with rows whose label follows from the name, queries and a schema."""
    generator = np.random.default_rng(0)
    lines = ["name,number,second"]
    for _ in range(1_500):
        name = "".join(chr(97 + code) for code in generator.integers(0, 26, 6))
        lines.append(f"{name},{10**30 + int(generator.integers(10**6))},{int(name >= 'm')}")
    (tmp_path / "guests.csv").write_text("\n".join(lines) + "\n")
    asked = ["abe", "hal", "ron", "zoe", "x" * 13]
    queries = [f"{name},{10**30}" for name in asked]
    (tmp_path / "queries.csv").write_text("\n".join(["name,number", *queries]) + "\n")
    schema = 'name = {ordered = "text", max_bytes = 12}\nnumber = {ordered = "numbers"}\n'
    (tmp_path / "order.toml").write_text("[columns]\n" + schema)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_oracle_over_names_answers_and_counts_what_is_too_long(guests: Path) -> None:
    done = run(*FITTING, "--model", "thresholds", "-o", "oracle.db")
    assert done.exit_code == 0, done.stderr
    done = run("predict", "oracle.db", "queries.csv", "-o", "answers.csv")
    assert done.exit_code == 0, done.stderr
    assert answers_in(guests / "answers.csv") == ["0", "0", "1", "1", ""]


@pytest.mark.parametrize("name", ["agnostic", "bbl", "query", "universal"])
def test_algorithms_by_name_answer_about_names(guests: Path, name: str) -> None:
    more = ["--max-queries", "5"] if name in ("agnostic", "query") else []
    words = ["--algorithm", name, "--concept", "thresholds", *more, "-o", "oracle.db"]
    done = run(*FITTING, *words)
    assert done.exit_code == 0, done.stderr
    (guests / "queries.csv").write_text("name,number\nabe,1\nzoe,1\n")
    done = run("predict", "oracle.db", "queries.csv", "-o", "answers.csv")
    assert done.exit_code == 0, done.stderr
    assert answers_in(guests / "answers.csv") == ["0", "1"]


@pytest.mark.claim("UNIVERSE")
def test_a_learner_draws_its_cut_from_all_keys_of_the_declared_width(guests: Path) -> None:
    schema = 'name = {ordered = "text", max_bytes = 12}\nnumber = "leave out"\n'
    (guests / "order.toml").write_text("[columns]\n" + schema)
    words = ["--algorithm", "learner", "--concept", "thresholds", "-o", "model.json"]
    done = run(*FITTING, *words)
    assert done.exit_code == 0, done.stderr
    shown = run("show", "model.json").stdout
    assert "1 from '" in shown or "1 below '" in shown
    (guests / "queries.csv").write_text("name,number\nabe,1\nzoe,1\n")
    done = run("predict", "model.json", "queries.csv", "-o", "answers.csv")
    assert done.exit_code == 0, done.stderr
    assert answers_in(guests / "answers.csv") == ["0", "1"]


def test_rows_of_text_are_selected_and_learnt_from(guests: Path) -> None:
    """Labels are bought for a third of the names; the rule holds for the others."""
    generator = np.random.default_rng(1)
    names = ["".join(chr(97 + code) for code in generator.integers(0, 26, 6)) for _ in range(3_000)]
    (guests / "people.csv").write_text("\n".join(["name", *names]) + "\n")
    words = ["--labels", "1000", "--label", "second", "-o", "some.csv", "--rest", "rest.csv"]
    assert run("select", "people.csv", *words).exit_code == 0
    header, *drawn = (guests / "some.csv").read_text().splitlines()
    told = [f"{line}{int(line.rstrip(',') >= 'm')}" for line in drawn]
    (guests / "labelled.csv").write_text("\n".join([header, *told]) + "\n")
    (guests / "order.toml").write_text('[columns]\nname = {ordered = "text", max_bytes = 8}\n')
    fitting = ["fit", "labelled.csv", *FITTING[2:], "--algorithm", "learner"]
    done = run(*fitting, "--concept", "thresholds", "-o", "model.json")
    assert done.exit_code == 0, done.stderr
    done = run("predict", "model.json", "rest.csv", "-o", "answers.csv")
    assert done.exit_code == 0, done.stderr
    rest = (guests / "rest.csv").read_text().splitlines()[1:]
    answers = answers_in(guests / "answers.csv")
    right = [(one >= "m") == (said == "1") for one, said in zip(rest, answers, strict=True)]
    assert np.mean(right) > 0.9


def test_what_would_publish_a_name_is_refused(guests: Path) -> None:
    for more in (["-o", "model.json"], ["--model", "kernel", "-o", "model.json"]):
        done = run(*FITTING, *more)
        assert done.exit_code == ExitCode.REFUSED
        assert "ordered" in done.stderr
    assert not (guests / "model.json").exists()


def test_a_training_row_that_is_too_long_is_named(guests: Path) -> None:
    with (guests / "guests.csv").open("a") as file:
        file.write("secretsecretsecret,1,0\n")
    done = run(*FITTING, "--model", "intervals", "-o", "oracle.db")
    assert done.exit_code == ExitCode.REFUSED
    assert "name" in done.stderr
    assert "secret" not in done.stderr
