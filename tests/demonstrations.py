"""One short run of the demo, for all tests that look at what it says and what it writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from cumae.cli import app
from cumae.cli.app import ExitCode

# A quarter of the survey, and two phases: the same way, in a third of the time.
SHORT = ("--rows", "60000", "--questions", "20000", "--seconds", "1")


@dataclass(frozen=True)
class Demonstration:
    """What the demo printed, and the folder with its page."""

    said: str
    folder: Path


def demonstrate(folder: Path) -> Demonstration:
    result = CliRunner().invoke(app, ["demo", *SHORT, "--output", str(folder)])
    assert result.exit_code == ExitCode.OK, result.output
    return Demonstration(result.stdout, folder)
