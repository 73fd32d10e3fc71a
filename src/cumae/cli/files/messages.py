"""Messages of commands at work: lines on standard error, so that results stay apart."""

from __future__ import annotations

import contextlib
import textwrap
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from cumae.progress import plain_lines

if TYPE_CHECKING:
    from cumae.privacy import Guarantee

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


def under(label: str, text: str) -> str:
    """Return a label with lines of text beside it, each wrapped on its own."""
    beside = " " * len(label)
    lines = [paragraph(beside + line, beside) for line in text.splitlines()]
    return label + "\n".join(lines).removeprefix(beside)


def promise_lines(guarantee: Guarantee, *, full: bool, indent: str = "") -> str:
    """Return a promise for people: two lines, or with its assumptions and claims."""
    return under(f"{indent}Promise: ", guarantee.full() if full else str(guarantee))


@contextlib.contextmanager
def messages_shown() -> Iterator[None]:
    """Print warnings as plain lines, and progress as plain lines where there is no terminal."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        typer.secho(paragraph(f"Warning: {message}"), fg=typer.colors.YELLOW, err=True)

    with warnings.catch_warnings(), plain_lines():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield
