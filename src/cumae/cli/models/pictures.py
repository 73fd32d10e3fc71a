"""Pictures that commands write."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer

from cumae.cli.files.messages import say
from cumae.cli.files.output import Output
from cumae.extras import PLOT, needing

PICTURES = (".svg", ".png", ".pdf")


def draw_to(path: str, draw: Callable[[], Any], *, force: bool) -> None:
    """Draw a figure into a file.

    Parameters
    ----------
    path : str
        Where to; its end says in which format.
    draw : callable
        Returns a matplotlib figure.
    force : bool
        Whether a file that is there already is replaced.
    """
    with picture_file(path, force=force) as write:
        write(draw())


@contextlib.contextmanager
def picture_file(path: str, *, force: bool) -> Iterator[Callable[[Any], None]]:
    """Return what writes a figure to a file, after all that can be wrong with it was checked.

    Parameters
    ----------
    path : str
        Where to; its end says in which format.
    force : bool
        Whether a file that is there already is replaced.
    """
    if Path(path).suffix.lower() not in PICTURES:
        raise typer.BadParameter(
            f"name it {Path(path).stem}.svg, .png or .pdf.", param_hint="--plot"
        )
    with Output(path, force=force) as output:
        with needing(*PLOT):
            import matplotlib as mpl  # noqa: PLC0415
        mpl.use("agg")  # without a window

        def write(figure: Any) -> None:
            content = io.BytesIO()
            figure.savefig(content, format=Path(path).suffix[1:].lower())
            output.write(content.getvalue())
            say(f"Drawn to {path}.")

        yield write
