"""The application that all commands join: version, exit codes and how errors are printed."""

from __future__ import annotations

import traceback
from enum import IntEnum
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from cumae import __version__
from cumae.errors import CumaeError


class ExitCode(IntEnum):
    """Exit codes of every ``cumae`` command."""

    OK = 0
    CHECK_FAILED = 1
    USAGE = 2
    REFUSED = 3
    INTERNAL = 4

    @property
    def meaning(self) -> str:
        """The meaning in plain words, as shown by ``cumae --help``."""
        return {
            ExitCode.OK: "all is well",
            ExitCode.CHECK_FAILED: "a check that you asked for said no",
            ExitCode.USAGE: "the command line is wrong",
            ExitCode.REFUSED: "cumae refused, and said why",
            ExitCode.INTERNAL: "an error inside cumae",
        }[self]


class ErrorPrinter(TyperGroup):
    """Turns errors into one line on standard error and an exit code.

    A ``CumaeError`` was written for the reader and is shown. The text of any other exception may
    hold private values, so that only ``--debug`` shows it.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):  # the reader of a pipe may leave
            raise
        except CumaeError as error:
            _print_error(f"Error: {error}")
            raise typer.Exit(ExitCode.REFUSED) from None
        except Exception as error:
            if hasattr(error, "exit_code"):  # typer's own, about the command line
                raise
            if ctx.params.get("debug"):
                typer.echo("".join(traceback.format_exception(error)), err=True)
            _print_error("Internal error. Run `cumae --debug ...` to see where; it may show data.")
            raise typer.Exit(ExitCode.INTERNAL) from None


def _print_error(message: str) -> None:
    line = " ".join(message.split())
    typer.secho(line, fg=typer.colors.RED, err=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cumae {__version__}")
        raise typer.Exit


_EXIT_CODES = "Exit codes: " + "; ".join(f"{code.value} {code.meaning}" for code in ExitCode) + "."

app = typer.Typer(
    cls=ErrorPrinter,
    name="cumae",
    help="Learn and predict under differential privacy.",
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode="markdown",  # paragraphs of docstrings flow
    pretty_exceptions_enable=False,  # they print local variables, which hold private rows
)


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Show where an internal error comes from; may show data."),
    ] = False,
) -> None:
    """Learn and predict under differential privacy."""


def main() -> None:
    """Run the ``cumae`` command."""
    app()
