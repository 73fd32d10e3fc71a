"""Progress of long work: a bar on a terminal, and plain lines elsewhere where they are wanted."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from contextvars import ContextVar
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

SECONDS_BETWEEN_LINES = 1.0

_LINES: ContextVar[bool] = ContextVar("lines", default=False)


@contextlib.contextmanager
def plain_lines() -> Iterator[None]:
    """Let progress that is shown on terminals appear as plain lines elsewhere.

    A line comes at most once a second, so that quick work has none.

    Examples
    --------
    >>> from cumae.progress import Progress, plain_lines
    >>> with plain_lines(), Progress("training", 2) as bar:
    ...     bar.advance()
    """
    token = _LINES.set(True)
    try:
        yield
    finally:
        _LINES.reset(token)


class Progress:
    """Shows on standard error how much of some work is done.

    Parameters
    ----------
    what : str
        What is being done.
    total : int or None
        How many pieces there are; None if nobody knows.
    shown : bool or None
        True or False; None shows it on a terminal only, or as ``plain_lines`` says.

    Examples
    --------
    >>> from cumae.progress import Progress
    >>> with Progress("training", 2, shown=False) as bar:
    ...     bar.advance()
    """

    def __init__(self, what: str, total: int | None, shown: bool | None = None) -> None:
        terminal = sys.stderr.isatty()
        self._lines = shown is None and not terminal and _LINES.get()
        self._what, self._total, self._done = what, total, 0
        self._last_line = time.monotonic()
        # One that is not shown would take longer to make than a small model to train.
        self._bar = _bar(what, total) if (terminal if shown is None else shown) else None

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def advance(self, pieces: int = 1) -> None:
        """Count pieces as done."""
        if self._bar is not None:
            self._bar.advance(self._bar.task_ids[0], pieces)
        self._done += pieces
        if self._lines and time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            whole = "" if self._total is None else f" of {self._total:,}"
            with contextlib.suppress(OSError):  # whoever read it may be gone; the work goes on
                print(f"{self._what}: {self._done:,}{whole}", file=sys.stderr, flush=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _bar(what: str, total: int | None) -> RichProgress:
    bar = RichProgress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    bar.add_task(what, total=total)
    return bar
