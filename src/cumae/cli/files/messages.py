"""What commands say while they work: lines on standard error, so that results stay apart."""

from __future__ import annotations

import contextlib
import textwrap
import warnings
from collections.abc import Iterator

import typer

from cumae.progress import plain_lines

WIDTH = 100


def say(text: str) -> None:
    """Print a line on standard error; if nobody reads it any more, the work goes on."""
    with contextlib.suppress(OSError):
        typer.echo(text, err=True)


def paragraph(text: str, hanging: str = "") -> str:
    """Return a text in lines of at most 100 letters; all but the first begin with ``hanging``."""
    return textwrap.fill(
        text, WIDTH, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False
    )


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Print warnings as plain lines, and progress as plain lines where there is no terminal."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        typer.secho(paragraph(f"Warning: {message}"), fg=typer.colors.YELLOW, err=True)

    with warnings.catch_warnings(), plain_lines():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
