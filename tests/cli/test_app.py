"""The command's version, exit codes and error printing."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import cumae
from cumae.cli.app import ErrorPrinter, ExitCode, app, options
from cumae.errors import BudgetExhausted, InvalidParameter

PRIVATE = "row 7 has 4711"


@pytest.fixture
def failing() -> typer.Typer:
    """An application built like the real one, with commands that fail in every way."""
    broken = typer.Typer(cls=ErrorPrinter, pretty_exceptions_enable=False)
    broken.callback()(options)

    @broken.command()
    def refuse() -> None:
        raise BudgetExhausted("epsilon=1 is spent;\n  ask for less.")

    @broken.command()
    def crash() -> None:
        raise KeyError(PRIVATE)

    @broken.command()
    def check() -> None:
        raise typer.Exit(ExitCode.CHECK_FAILED)

    @broken.command()
    def count(number: int) -> None:
        raise typer.BadParameter("no such number")

    return broken


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"cumae {cumae.__version__}\n")
    assert cumae.__version__ == metadata.version("cumae")


def test_the_installed_command() -> None:
    command = Path(sys.executable).with_name("cumae")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"cumae {metadata.version('cumae')}\n"


def test_help_names_every_exit_code() -> None:
    result = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "500", "TERM": "dumb"})
    assert result.exit_code == ExitCode.OK
    for code in ExitCode:
        assert f"{code.value} {code.meaning}" in result.stdout


def test_a_refusal_is_one_line_on_standard_error(failing: typer.Typer) -> None:
    result = CliRunner().invoke(failing, ["refuse"])
    assert result.exit_code == int(ExitCode.REFUSED) == 3
    assert result.stdout == ""
    assert result.stderr == "Error: epsilon=1 is spent; ask for less.\n"


def test_a_refusal_is_red_on_a_terminal(failing: typer.Typer) -> None:
    result = CliRunner().invoke(failing, ["refuse"], color=True)
    assert result.stderr.startswith("\x1b[31mError")


def test_an_internal_error_shows_nothing_of_the_data(failing: typer.Typer) -> None:
    result = CliRunner().invoke(failing, ["crash"])
    assert result.exit_code == int(ExitCode.INTERNAL) == 4
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("Internal error")
    assert PRIVATE not in result.stderr


def test_debug_shows_where_an_internal_error_comes_from(failing: typer.Typer) -> None:
    result = CliRunner().invoke(failing, ["--debug", "crash"])
    assert result.exit_code == ExitCode.INTERNAL
    assert "Traceback" in result.stderr
    assert "in crash" in result.stderr


def test_a_failed_check_and_wrong_usage_keep_their_codes(failing: typer.Typer) -> None:
    invoke = CliRunner().invoke
    assert invoke(failing, ["check"]).exit_code == int(ExitCode.CHECK_FAILED) == 1
    assert invoke(failing, ["count", "many"]).exit_code == int(ExitCode.USAGE) == 2
    assert invoke(failing, ["count", "7"]).exit_code == ExitCode.USAGE
    assert invoke(failing, ["no-such-command"]).exit_code == ExitCode.USAGE


def test_an_error_of_ours_is_refused_even_if_it_is_also_a_value_error(
    failing: typer.Typer,
) -> None:
    @failing.command()
    def invalid() -> None:
        raise InvalidParameter("epsilon=-1 is negative")

    assert CliRunner().invoke(failing, ["invalid"]).exit_code == ExitCode.REFUSED


def test_python_runs_the_package_as_the_command() -> None:
    run = [sys.executable, "-m", "cumae", "--version"]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout == f"cumae {cumae.__version__}\n"
