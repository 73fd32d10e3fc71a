"""Code that runs at every line of other code, by Python's tracer."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Collection
from types import FrameType
from typing import Any, Self

# Python looks for interrupts when a function begins, after a call, and when a loop goes on. So none
# comes between the last line of a block and the end of a ``with``, or a ``finally`` without a call.
UNDISTURBED = ("with ", "CALLS.objects = outside", "CALLS.objects = before")


class Traced:
    """A context in which ``trace`` is called for every line; it returns what traces the frame."""

    def __enter__(self) -> Self:
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        raise NotImplementedError


class Interrupt(Traced):
    """Raises ``KeyboardInterrupt`` at the n-th line of some files, or as a function begins; once.

    Parameters
    ----------
    files : collection of str
        The files.
    place : int
        Which of all lines and beginnings, in the order in which they run.

    Attributes
    ----------
    fired : bool
        Whether there were so many.
    """

    def __init__(self, files: Collection[str], place: int) -> None:
        self.files, self.left, self.fired = files, place, False

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in self.files:
            return None
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        if event in ("line", "call") and not text.startswith(UNDISTURBED):
            self.left -= 1
            if self.left == 0:
                self.fired = True
                raise KeyboardInterrupt
        return self.trace
