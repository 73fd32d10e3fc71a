"""A newcomer in a real terminal goes from a CSV file to answers; and what a crash leaves."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import cumae
from cumae import store
from cumae.cli.app import ExitCode
from tests.census import (
    CLASSES,
    FIT,
    LABEL,
    answers_in,
    commands_in,
    completed,
    fill,
    people,
    run,
    without_label,
)

BIN = Path(sys.executable).parent
PATIENCE = 300.0  # seconds for one command on a busy machine


class Terminal:
    """A shell in a pseudo-terminal."""

    def __init__(self, folder: Path) -> None:
        env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "TERM": "xterm", "PS1": "$ "}
        env |= {"COLUMNS": "120", "LINES": "40"}
        self.child, self.screen = pty.fork()
        if self.child == 0:  # pragma: no cover
            os.chdir(folder)
            os.execve("/bin/sh", ["sh"], env)  # noqa: S606

    def type(self, line: str) -> tuple[int, str]:
        """Run a command; return its exit code and all that the screen showed."""
        os.write(self.screen, f"{line}; echo EXIT $?\n".encode())
        shown, end = "", time.monotonic() + PATIENCE
        while not (found := re.search(r"EXIT (\d+)\r?\n", shown)):
            assert time.monotonic() < end, shown
            if select.select([self.screen], [], [], 1.0)[0]:
                shown += os.read(self.screen, 65_536).decode("utf-8", "replace")
        return int(found[1]), shown

    def close(self) -> None:
        os.write(self.screen, b"exit\n")
        os.waitpid(self.child, 0)
        os.close(self.screen)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    fill(tmp_path, 4_000).joinpath("schema.toml").unlink()
    found = Terminal(tmp_path)
    yield found
    found.close()


def test_five_commands_from_a_csv_file_to_answers(terminal: Terminal, tmp_path: Path) -> None:
    """They are those of the README; in between, the marked lines are completed in an editor."""
    commands = commands_in("README.md")
    assert commands == commands_in("docs/command_line.md")
    assert [line.split()[1] for line in commands] == ["schema", "plan", "fit", "show", "predict"]
    drafted, planned, fitted, shown, asked = commands
    code, screen = terminal.type(drafted)
    assert (code, "Complete the 6 lines" in screen) == (0, True), screen
    draft = completed((tmp_path / "schema.toml").read_text(encoding="utf-8"))
    (tmp_path / "schema.toml").write_text(draft, encoding="utf-8")
    for command, told in {
        planned: "less than a usual model without privacy",
        fitted: "It may be published.",
        shown: "log odds of >50K",
        asked: "60 of 60 queries are answered",
    }.items():
        code, screen = terminal.type(command)
        assert (code, told in " ".join(screen.split())) == (0, True), screen
    right = [row[-1] for row in people(60, 3)]
    found = answers_in(tmp_path / "answers.csv")
    assert sum(one == other for one, other in zip(found, right, strict=True)) > 36
    # Nothing is overwritten, and a mistake is one red line.
    code, screen = terminal.type(fitted)
    assert (code, "\x1b[31mError: model.json is there already" in screen) == (3, True), screen


def test_the_same_from_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing cells are nulls there, and types tell about numbers."""
    monkeypatch.chdir(fill(tmp_path))
    for name in ("adult", "queries", "census"):
        table = pd.read_csv(f"{name}.csv", na_values=["?"])
        table["citizen"] = table["citizen"] == "yes"
        table.to_parquet(f"{name}.parquet")
    done = run("schema", "adult.parquet", "--label", LABEL, "-o", "draft.toml")
    draft = Path("draft.toml").read_text(encoding="utf-8")
    assert "citizen          = {boolean = true}" in draft
    assert "age              = {numbers = true}" in draft
    assert "Complete the 3 lines" in done.stderr
    public = ["--public", "census.parquet"]
    words = ["schema", "adult.parquet", "--label", LABEL, *public, "-o", "schema.toml", "--force"]
    assert run(*words).exit_code == 0
    price = ["--epsilon", "3", "--delta", "1e-6", "--schema", "schema.toml"]
    assert run("plan", "adult.parquet", "--label", LABEL, *price).exit_code == 0
    done = run("fit", "adult.parquet", *FIT, *public, "--schema", "schema.toml", "-o", "model.json")
    assert done.exit_code == 0, done.stderr
    assert run("show", "model.json").exit_code == 0
    done = run("predict", "model.json", "queries.parquet", "-o", "answers.parquet")
    assert done.exit_code == 0, done.stderr
    found = pd.read_parquet("answers.parquet")["answer"]
    assert (found == pd.Series([row[-1] for row in people(60, 3)])).sum() > 40
    # The same queries as text.
    done = run("predict", "model.json", "queries.csv", "-o", "answers.csv")
    assert done.exit_code == 0, done.stderr
    assert answers_in(tmp_path / "answers.csv") == found.tolist()


def test_the_same_through_pipes(folder: Path) -> None:
    """A real pipe in a real shell, whose reader leaves early."""
    line = (
        f"gzip -c adult.csv | {BIN}/cumae fit - --label {LABEL} --classes '{CLASSES}' --epsilon 3 "
        f"--delta 1e-6 --schema schema.toml --public census.csv -o - > piped.json && "
        f"cat queries.csv | {BIN}/cumae predict piped.json - | head -n 3"
    )
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 3
    assert "\x1b" not in done.stdout + done.stderr  # plain lines where there is no terminal
    assert "Traceback" not in done.stderr
    assert "Fitting " in done.stderr
    assert folder.joinpath("piped.json").stat().st_size > 1_000


def test_an_oracle_answers_after_kill_9(folder: Path) -> None:
    Path("many.csv").write_text(without_label(people(20_000, 5)), encoding="utf-8")
    asking = subprocess.Popen(
        [BIN / "cumae", "predict", "oracle.db", "many.csv", "-o", "many.out.csv"],
        stderr=subprocess.PIPE,
    )
    end = time.monotonic() + PATIENCE
    while store.status("oracle.db").totals.answers == 0:  # until it has given some
        assert asking.poll() is None, asking.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
    asking.send_signal(signal.SIGKILL)
    asking.communicate()
    assert asking.returncode == -signal.SIGKILL
    assert not Path("many.out.csv").exists()  # no half of a file
    for left in Path().glob(".many.out.csv.*.part"):
        left.unlink()
    before = store.status("oracle.db").totals.answers
    assert before > 0
    done = run("predict", "oracle.db", "queries.csv", "-o", "answers.csv")
    assert done.exit_code == 0, done.stderr
    assert set(answers_in(folder / "answers.csv")) == set(CLASSES.split(","))
    assert cumae.open("oracle.db").answered_ == before + 60
    assert run("verify", "oracle.db").exit_code == ExitCode.OK


def test_what_a_fit_that_is_killed_leaves(folder: Path) -> None:
    """No model, no half of one, and nothing that stops the next attempt."""
    words = ["fit", "adult.csv", *FIT, "--schema", "schema.toml", "-o", "new.json"]
    fitting = subprocess.Popen([BIN / "cumae", *words], stderr=subprocess.PIPE, text=True)
    assert fitting.stderr is not None
    for line in fitting.stderr:
        if line.startswith("Fitting"):
            break
    fitting.kill()
    fitting.communicate()
    assert not Path("new.json").exists()
    for left in folder.glob(".new.json.*.part"):
        assert left.stat().st_size == 0
        left.unlink()
    assert run(*words, "--public", "census.csv").exit_code == 0
