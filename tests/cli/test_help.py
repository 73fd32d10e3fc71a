"""Every command explains itself: its example runs, a shell completes it, and it starts quickly."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import typer.main

from cumae.cli import app
from cumae.cli.app import ExitCode
from tests.census import run

ROOT = Path(__file__).parents[2]
COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def examples_of(command: str) -> list[list[str]]:
    """Return the words of each example in the help of a command."""
    shown = run(command, "--help").stdout
    (found,) = re.findall(r"Example: cumae (.*?)\s*$", shown, re.MULTILINE)
    return [shlex.split(words) for words in found.split(", cumae ")]


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("demo", "serve")])
def test_the_examples_in_every_help_run(folder: Path, command: str) -> None:
    """Those of the demo and of the server have tests of their own."""
    for words in examples_of(command):
        assert words[0] == command
        if any("://" in word for word in words):
            continue  # an address needs a server
        for option, name in pairwise(words):
            if option in ("-o", "--plot"):
                (folder / name).unlink(missing_ok=True)
        done = run(*words)
        assert done.exit_code == ExitCode.OK, done.output


def test_the_page_about_the_command_line_names_every_command_option_and_exit_code() -> None:
    page = (ROOT / "docs" / "command_line.md").read_text(encoding="utf-8")
    for command in COMMANDS:
        assert f"`cumae {command}" in page
    for code in ExitCode:
        assert f"| {code.value} | {code.meaning}" in page
    for command in ("plan", "schema", "fit", "predict", "score", "show"):
        for option in re.findall(r"--[a-z][a-z-]+", run(command, "--help").stdout):
            assert option in page or option == "--help", (command, option)


@pytest.mark.parametrize("command", ["plan", "schema", "fit", "predict", "score", "show"])
def test_a_shell_completes_commands_and_options(command: str) -> None:
    def completed(line: str) -> set[str]:
        words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
        env = {"_CUMAE_COMPLETE": "complete_bash", **words}
        from typer.testing import CliRunner

        return set(CliRunner().invoke(app, [], env=env, prog_name="cumae").stdout.split())

    assert command in completed(f"cumae {command[:2]}")
    if command == "fit":
        assert completed("cumae fit --route ever") == {"everlasting"}
        assert completed("cumae fit --model ker") == {"kernel"}


def test_what_is_quick_loads_nothing_heavy(tmp_path: Path) -> None:
    """The help of all commands, and a draft from a header."""
    (tmp_path / "rows.csv").write_text("age,ill\n1,no\n", encoding="utf-8")
    code = (
        "import sys; from typer.testing import CliRunner; from cumae.cli import app\n"
        "for words in (['--help'], ['fit', '--help'], ['schema', 'rows.csv']):\n"
        "    assert CliRunner().invoke(app, words).exit_code == 0\n"
        "print(*sys.modules)"
    )
    run_it = [sys.executable, "-c", code]
    found = subprocess.run(run_it, check=True, capture_output=True, text=True, cwd=tmp_path)
    heavy = {"sklearn", "numba", "pandas", "pyarrow", "scipy.stats", "matplotlib"}
    assert heavy.isdisjoint(found.stdout.split())
