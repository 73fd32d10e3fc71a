"""All that a holder of disk, backups and terminal sees: every write, every file, every line."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from cumae.checks.observables import Sight

if TYPE_CHECKING:
    from collections.abc import Iterator

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
# What Python and matplotlib write for themselves, once.
OWN_CACHES = re.compile(r"__pycache__|/dev/null|\.hypothesis|fontlist")
TEMPORARY = re.compile(r"tmp[a-z0-9_]{8}")
HEARD = {
    "os.rename": 2,
    "os.remove": 1,
    "os.mkdir": 1,
    "os.rmdir": 1,
    "os.link": 2,
    "os.symlink": 2,
    "os.truncate": 1,
    "tempfile.mkstemp": 1,
    "tempfile.mkdtemp": 1,
    "subprocess.Popen": 1,
}
_WATCHES: list[SightRecorder] = []


def digest(content: bytes) -> str:
    """Return a short name for bytes."""
    return hashlib.blake2b(content, digest_size=6).hexdigest()


class WatchedFile(apsw.VFSFile):
    """Tells what SQLite writes."""

    def __init__(self, disk: WatchedDisk, name: Any, flags: list[int]) -> None:
        super().__init__("unix", name, flags)
        full = name.filename() if hasattr(name, "filename") else name
        self.disk, self.name = disk, disk.watch.name_of(full or "a file without a name")

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self.disk.tell(f"write of {self.name} at {offset}", (len(data), digest(data)))
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self.disk.tell(f"truncation of {self.name}", size)
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self.disk.tell(f"sync of {self.name}", flags)
        super().xSync(flags)


class WatchedDisk(apsw.VFS):
    """A file system that tells what is written, and that may die at any write."""

    def __init__(self, watch: SightRecorder) -> None:
        self.watch = watch
        self.dies_in: int | None = None
        super().__init__("watched", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> WatchedFile:  # noqa: N802
        return WatchedFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self.tell(f"removal of {self.watch.name_of(filename)}", syncdir)
        super().xDelete(filename, syncdir)

    def xRandomness(self, numbytes: int) -> bytes:  # noqa: N802
        return bytes(numbytes)  # salts of the write-ahead log

    def tell(self, what: str, seen: Any) -> None:
        """Write a sight down, unless the process was killed before."""
        if self.dies_in is not None:
            self.dies_in -= 1
            if self.dies_in < 0:
                raise apsw.IOError("killed")
        self.watch.see(what, seen)


class SightRecorder:
    """Writes down all that is seen in a folder and on the terminal.

    Parameters
    ----------
    folder : Path
        Where the oracle lives; the same path in all worlds.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.seen = folder, list[Sight]()
        self.unread: tuple[str, ...] = ("-shm",)  # files of which only the size is looked at
        self._thread = threading.get_ident()

    def see(self, what: str, seen: Any) -> None:
        """Write a sight down. What other threads do comes at a time of its own."""
        if threading.get_ident() == self._thread:
            self.seen.append(Sight(what, seen))

    def name_of(self, path: Any) -> str:
        """Return a name without the folder, and without letters that were drawn for it."""
        found = str(path)
        if Path(found).is_relative_to(self.folder):
            found = str(Path(found).relative_to(self.folder))
        return TEMPORARY.sub("tmp", found)

    @contextmanager
    def watching(self) -> Iterator[WatchedDisk]:
        """Let everything be seen; yield the disk."""
        disk = WatchedDisk(self)
        apsw.randomness(0)  # SQLite takes new coins from the disk
        _WATCHES.append(self)
        try:
            yield disk
        finally:
            _WATCHES.remove(self)
            disk.unregister()
            apsw.randomness(0)

    def hear(self, event: str, given: tuple[Any, ...]) -> None:
        """Write down what Python does to files."""
        if event == "open":
            path, mode, flags = given
            writes = bool(set(mode or "") & set("wax+")) or (flags or 0) & WRITING
            if writes and isinstance(path, str | bytes | os.PathLike):
                self._heard("opening", [os.fsdecode(path)], flags)
        elif event in HEARD:
            self._heard(event, list(map(str, given[: HEARD[event]])), None)

    def _heard(self, event: str, paths: list[str], more: Any) -> None:
        if any(OWN_CACHES.search(path) for path in paths) or _compiles():
            return
        size = None
        with suppress(OSError):
            size = os.stat(paths[0]).st_size  # noqa: PTH116 - a Path costs more
        self.see(f"{event} of {' to '.join(map(self.name_of, paths))}", (more, size))

    def look_around(self) -> None:
        """See names, sizes and bytes of all files, and what the process is called."""
        for path in sorted(self.folder.rglob("*")):
            mode = f"{path.stat().st_mode:o}"
            content = path.read_bytes() if path.is_file() else b""
            whole = "" if path.name.endswith(self.unread) else digest(content)
            self.see(f"file {self.name_of(path)}", (mode, len(content), whole))
        self.see("process", Path("/proc/self/comm").read_text() + str(sys.argv))
        threads = [re.sub(r"\d+", "", thread.name) for thread in threading.enumerate()]
        self.see("threads", sorted(threads))


def _compiles() -> bool:
    """Tell whether numba writes what it compiled, once on each machine."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("numba."):
            return True
        frame = frame.f_back
    return False


def _hook(event: str, given: tuple[Any, ...]) -> None:
    for watch in _WATCHES:
        watch.hear(event, given)


sys.addaudithook(_hook)
