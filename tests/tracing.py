"""Code that runs at every line of other code, by Python's tracer."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Self


class Traced:
    """A context in which ``trace`` is called for every line; it returns what traces the frame."""

    def __enter__(self) -> Self:
        sys.settrace(self.trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def trace(self, frame: FrameType, event: str, _: Any) -> Any:
        raise NotImplementedError
