"""``cumae audit`` finds a planted leak, leaves what leaks nothing alone, and says so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cumae.audit import Attack, Claimed, Game, catalogue
from cumae.cli import app
from cumae.cli.app import ExitCode
from cumae.errors import InvalidData
from cumae.store.driver import thefts


class Answers:
    """Answers with its first row, or always with 0."""

    def __init__(self, leak: bool) -> None:
        self.leak = leak
        self.row = 0.0

    def train(self, X: Any, y: Any) -> None:
        self.row = X[0][0]

    def ask(self, X: Sequence[Any]) -> list[float]:
        return [self.row if self.leak else 0.0] * len(X)

    def published(self) -> None:
        return None


def play(game: Game) -> float:
    game.train(([[0.0]], [0]), ([[1.0]], [0]))
    return float(game.ask([[0.0]]).answers[0])


def safe(epsilon: float, delta: float) -> Attack:
    claimed = Claimed(epsilon, delta, rho=0.3)
    return Attack("Safe, a row", partial(Answers, leak=False), play, claimed)


def leaky(epsilon: float, delta: float) -> Attack:
    if epsilon < 0.5:
        raise InvalidData("there are 2 shards; more are needed.")
    claimed = Claimed(epsilon, delta, rho=0.3)
    return Attack("Leaky, a row", partial(Answers, leak=True), play, claimed)


@pytest.fixture(autouse=True)
def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue, "SOURCES", {"Safe": [safe], "Leaky": [leaky]})
    monkeypatch.setattr(thefts, "ATTACKS", {})


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["audit", "--runs", "200", *arguments])


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("|")[1:-1]]


def said(result: Result) -> list[str]:
    """Return the lines on standard error, but for those that slow machines have of progress."""
    return [line for line in result.stderr.splitlines() if not line.startswith("attacks: ")]


def test_a_leak_is_exit_code_1_and_says_what_to_do() -> None:
    """100 of 100 runs are told apart in both worlds: epsilon is above 2.9."""
    result = run("Leaky", "--delta", "0.01")
    assert result.exit_code == int(ExitCode.CHECK_FAILED) == 1
    rows = result.stdout.splitlines()
    assert cells(rows[2])[:2] == ["Leaky, a row", "epsilon at delta 0.01"]
    assert [row.split("|")[-2].strip() for row in rows[2:4]] == ["BROKEN", "BROKEN"]
    assert float(cells(rows[2])[3]) > 2.9
    assert "BROKEN: a measured bound is above its claim" in result.stderr
    assert "SECURITY.md" in result.stderr


def test_a_claim_that_covers_the_leak_is_not_broken() -> None:
    """With delta .99 nearly anything may be said, but rho is broken still: it knows no delta."""
    result = run("Leaky", "--delta", "0.99")
    verdicts = [row.split("|")[-2].strip() for row in result.stdout.splitlines()[2:4]]
    assert verdicts == ["cannot tell", "BROKEN"]
    assert result.exit_code == ExitCode.CHECK_FAILED


def test_no_leak_is_exit_code_0_with_a_table_and_a_plot() -> None:
    result = run("safe")
    assert result.exit_code == ExitCode.OK, result.output
    assert not said(result)
    rows = result.stdout.splitlines()
    assert cells(rows[2])[:2] == ["Safe, a row", "epsilon at delta 1e-06"]
    assert cells(rows[2])[-1] == "not broken"
    assert "Safe, a row, spending twice what it claims, planted" in rows[4]
    assert "Safe, a row: chances of false alarms and misses" in result.stdout
    assert "false alarms  " in result.stdout
    assert "All bounds together are right with a chance of at least 0.95" in result.stdout


def test_everything_is_audited_without_a_name_and_one_leak_is_enough() -> None:
    result = run()
    assert result.exit_code == ExitCode.CHECK_FAILED
    assert result.stdout.count("| Safe, a row ") == result.stdout.count("| Leaky, a row ") == 2
    assert result.stdout.count("a row, spending twice") == 4
    assert result.stdout.count("|      0.975 |") == 8
    assert "Leaky, a row: chances" in result.stdout  # the strongest attack is drawn


def test_a_name_given_twice_counts_once() -> None:
    assert run("safe", "SAFE").stdout.count("| Safe, a row ") == 2


def test_the_list_plays_nothing() -> None:
    result = run("--list")
    assert (result.exit_code, result.stdout) == (0, "Safe, a row\nLeaky, a row\n")
    assert run("--list", "Leaky").stdout == "Leaky, a row\n"


def test_an_attack_has_the_name_that_the_list_shows() -> None:
    assert run("leaky, A row", "--list").stdout == "Leaky, a row\n"


def test_what_cannot_be_attacked_is_left_out_and_named(tmp_path: Path) -> None:
    """Unless it was asked for by name."""
    file = tmp_path / "a.json"
    result = run("--epsilon", "0.1", "--json", str(file))
    assert result.exit_code == ExitCode.OK
    assert "| Safe, a row" in result.stdout
    assert "Leaky" not in result.stdout
    reason = (
        "an attack on Leaky, impossible at epsilon 0.1 and delta 1e-06: there are 2 shards; more "
        "are needed."
    )
    assert said(result) == [f"Left out: {reason}"]
    assert json.loads(file.read_text())["left_out"] == [reason]


def test_too_few_runs_are_no_verdict() -> None:
    """Whatever is seen in 10 runs, a bound on epsilon is below 0.7."""
    result = run("safe", "--runs", "20")
    verdicts = [row.split("|")[-2].strip() for row in result.stdout.splitlines()[2:4]]
    assert verdicts == ["cannot tell", "cannot tell"]


def test_files(tmp_path: Path) -> None:
    """They are written when a bound is broken, too."""
    names = {name: tmp_path / f"audit.{name}" for name in ("md", "svg", "json")}
    result = run(
        *("--report", str(names["md"]), "--plot", str(names["svg"])),
        *("--json", str(names["json"]), "--epsilon", "2"),
    )
    assert result.exit_code == ExitCode.CHECK_FAILED
    table = result.stdout.split("\n\n", maxsplit=1)[0]
    page = names["md"].read_text(encoding="utf-8")
    assert table in page
    assert "- epsilon: 2.0\n- delta: 1e-06\n- runs: 200\n- seconds: 300.0\n" in page
    assert names["svg"].read_text(encoding="utf-8").count("<g ") == 4  # with planted bugs
    found = json.loads(names["json"].read_text(encoding="utf-8"))
    settings = found["settings"]
    assert settings["cumae"] == metadata.version("cumae")
    assert (settings["epsilon"], settings["runs"], settings["names"]) == (2.0, 200, "all")
    safe, missed, leaky, caught = found["audits"]
    assert (safe["verdict"], leaky["verdict"]) == ("not broken", "BROKEN")
    assert (missed["verdict"], caught["verdict"]) == ("not caught", "caught")
    assert safe["could_have_proven"] == caught["could_have_proven"]
    assert 2.0 < safe["could_have_proven"]["epsilon"] < 4.0
    assert safe["claimed_at_most"] == {"epsilon": 2.0, "delta": 1e-6, "rho": 0.3, "mu": None}
    assert leaky["verdicts"] == {"epsilon": "BROKEN", "rho": "BROKEN"}
    assert safe["runs"] == leaky["runs"] == 100
    assert safe["measured_at_least"]["epsilon"] == 0.0
    assert leaky["measured_at_least"]["epsilon"] > 2.0


def test_one_file_alone(tmp_path: Path) -> None:
    assert run("safe", "--json", str(tmp_path / "a.json")).exit_code == ExitCode.OK
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["Nobody"], ExitCode.USAGE, "Safe; Leaky"),
        (["Leeky"], ExitCode.USAGE, "did you mean 'Leaky'?"),
        (["Leaky, a raw"], ExitCode.USAGE, "did you mean 'Leaky, a row'?"),
        (["Leaky", "--epsilon", "0.1"], ExitCode.REFUSED, "epsilon 0.1 and delta 1e-06: there"),
        (["--runs", "3"], ExitCode.USAGE, "20"),
        (["--report", "no/such/folder/a.md"], ExitCode.USAGE, "no folder"),
        (["--confidence", "1"], ExitCode.USAGE, "1 is not between 0 and 1"),
        (["--seconds", "0"], ExitCode.USAGE, "0 is not above 0"),
        (["--seconds", "nan"], ExitCode.USAGE, "nan is not above 0"),
        (["--epsilon", "0"], ExitCode.USAGE, "0 is not a finite number above 0"),
        (["--epsilon", "inf"], ExitCode.USAGE, "inf is not a finite number above 0"),
        (["--delta", "1"], ExitCode.USAGE, "1 is not from 0 to less than 1"),
        (["--jobs", "0"], ExitCode.USAGE, "0 is not 1 or more, or -1"),
        ([""], ExitCode.USAGE, "Safe; Leaky"),
        (["--plot", "audit.png"], ExitCode.USAGE, "audit.svg"),
        (["--list", "--json", "audit.json"], ExitCode.USAGE, "plays nothing"),
    ],
)
def test_bad_options(arguments: list[str], code: ExitCode, said: str) -> None:
    result = CliRunner().invoke(app, ["audit", *arguments], env={"COLUMNS": "300", "TERM": "dumb"})
    assert result.exit_code == code
    assert result.stdout == ""
    assert said in result.stderr


def test_the_help_explains_the_numbers() -> None:
    env = {"COLUMNS": "500", "TERM": "dumb"}
    text = " ".join(CliRunner().invoke(app, ["audit", "--help"], env=env).stdout.split())
    assert "proves a lower bound" in text
    assert "no sign that the claim is loose" in text
