"""The server's own log: when it begins and ends, and where errors come from; never what was asked.

Messages of exceptions may hold anything, so that only their type and their place in the code are
written.
"""

from __future__ import annotations

import ctypes
import logging
import resource
import sys
import traceback
from pathlib import Path

from cumae.claims import claim
from cumae.randomness import SYSTEM

LOGGER = logging.getLogger("cumae.serve")
PR_SET_DUMPABLE = 4  # Linux's number
QUIET = ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "starlette")


@claim("SERVE")
class PlaceFormatter(logging.Formatter):
    """Writes a line of the server as it is, and of anything else its type and place alone."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        when = self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z")
        if record.name == LOGGER.name:
            return f"{when} {record.getMessage()}"
        error = record.exc_info[1] if record.exc_info else None
        text = "a message" if error is None else place_of(error)
        return f"{when} {record.name}: {record.levelname.lower()}: {text}"


@claim("SERVE")
def place_of(error: BaseException) -> str:
    """Return the type of an error, and the last lines of code that it passed."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    lines = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames]
    return f"{type(error).__name__} at {' < '.join(reversed(lines)) or 'no place'}"


@claim("SERVE")
def log_internal(error: BaseException) -> str:
    """Write down an error inside the server; return the number under which it stands there."""
    number = SYSTEM.words(1).tobytes().hex()[:12]
    LOGGER.error("internal error %s: %s", number, place_of(error))
    return number


def begin() -> None:
    """Send the log to standard error, and silence what others would write."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PlaceFormatter())
    LOGGER.handlers, LOGGER.propagate = [handler], False
    LOGGER.setLevel(logging.INFO)
    for name in QUIET:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.ERROR)


def no_dumps() -> None:
    """Forbid dumps of the memory: they would hold rows, models and keys."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # A limit does not hold for dumps that the system gives to a program.
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
