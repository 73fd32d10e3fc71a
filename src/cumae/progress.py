"""A progress bar for long work."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress


class Progress:
    """Shows on standard error how much of some work is done.

    Parameters
    ----------
    what : str
        What is being done.
    total : int of 0 or more
        How many pieces there are.
    shown : bool or None
        True or False; None shows it on a terminal only.

    Examples
    --------
    >>> from cumae.progress import Progress
    >>> with Progress("training", 2, shown=False) as bar:
    ...     bar.advance()
    """

    def __init__(self, what: str, total: int, shown: bool | None = None) -> None:
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not (sys.stderr.isatty() if shown is None else shown),
        )
        self._task = self._bar.add_task(what, total=total)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def advance(self, pieces: int = 1) -> None:
        """Count pieces as done."""
        self._bar.advance(self._task, pieces)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()
