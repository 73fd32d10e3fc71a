"""One line for people who wait while loops are compiled, which happens once on each machine.

numba compiles a loop when it is first used, and keeps the result in a cache on disk. Which loops a
program needs follows from the kinds of its models and tables, and in rare cases from a cell that is
unusable or very large, whose shard another loop trains. The line says that something is compiled
and not what, and goes to the standard error of whoever holds the rows.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from numba.core.event import Listener, register

PATIENCE = 1.0  # seconds of compiling after which the line is printed
LINE = "cumae compiles some loops. This happens once on each machine and takes a few seconds.\n"


class Announcer(Listener):
    """Prints the line on standard error, once, when compiling has taken longer than a second.

    Loops that are found in the cache do not count, and neither does the code of others.
    """

    def __init__(self) -> None:
        self._open = 0  # a loop may need another one, which is compiled within
        self._since = self._spent = 0.0
        self._announced = False
        self._timer: threading.Timer | None = None

    def on_start(self, event: Any) -> None:
        """Start measuring."""
        if not _is_ours(event) or self._announced:
            return
        self._open += 1
        if self._open == 1:
            self._since = time.monotonic()
            self._timer = threading.Timer(max(0.0, PATIENCE - self._spent), self._tell)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        """Stop measuring."""
        if not _is_ours(event) or not self._open:
            return
        self._open -= 1
        if self._open == 0:
            self._spent += time.monotonic() - self._since
            if self._timer is not None:
                self._timer.cancel()

    def _tell(self) -> None:
        if not self._announced and sys.stderr is not None:
            self._announced = True
            sys.stderr.write(LINE)
            sys.stderr.flush()


def _is_ours(event: Any) -> bool:
    return str(event.data["dispatcher"].py_func.__module__).startswith("cumae.")


def announce() -> None:
    """Let this process print the line if it compiles for long."""
    register("numba:compile", Announcer())  # type: ignore[no-untyped-call]
