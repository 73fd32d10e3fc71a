"""Locks on files, which keep other processes away."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from cumae.claims import claim


@claim("BUDGET", "STORE")
def alone(locked: Callable[[], FileLock], work: Callable[[], None]) -> None:
    """Run something while nobody else has the lock of a file.

    The lock is let go of when this ends, however it ends, and whoever keeps the error: no context
    manager has it, whose end an interrupt could skip.

    Parameters
    ----------
    locked : callable
        Opens the file, and returns its lock, which nobody has yet.
    work : callable
        What runs meanwhile.
    """
    here = False
    while not here:
        lock = locked()
        try:
            lock.take()
            here = lock.is_on_file  # not if it was replaced meanwhile: then the new one is locked
            if here:
                work()
        finally:
            try:
                lock.close()
            except BaseException:  # interrupted right here: others must not wait for ever
                lock.close()
                raise


@claim("BUDGET", "STORE")
class FileLock:
    """A lock that ends when it is closed or forgotten: an interrupt may come at any line.

    Parameters
    ----------
    path : Path
        The file to lock.
    flags : int
        As in ``os.open``.
    """

    file: int | None = None

    def __init__(self, path: Path, flags: int) -> None:
        self._path, self._process = path, os.getpid()
        self.file = os.open(path, flags, 0o600)

    def take(self, *, wait: bool = True) -> None:
        """Take it; wait until nobody else has it, or raise ``BlockingIOError``."""
        import fcntl  # noqa: PLC0415 - Windows has none, and accounts in memory do not need it

        how = fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB
        fcntl.flock(self.file, how)  # type: ignore[arg-type]  # it is open

    @property
    def is_on_file(self) -> bool:
        """True if the file of this name is still the one that is locked."""
        if self.file is None:
            return False
        try:
            return os.path.samestat(os.fstat(self.file), self._path.stat())
        except FileNotFoundError:
            return False

    @property
    def closed(self) -> bool:
        """True if it was released here."""
        return self.file is None

    def close(self) -> None:
        """Let go of it, for processes as well that were forked meanwhile and have it, too."""
        import fcntl  # noqa: PLC0415

        try:
            if self.file is not None and os.getpid() == self._process:
                fcntl.flock(self.file, fcntl.LOCK_UN)
        finally:
            self.__del__()

    def __del__(self) -> None:
        file, self.file = self.file, None
        if file is not None:
            os.close(file)
