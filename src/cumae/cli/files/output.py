"""Files that commands write: checked before the work, written beside, and renamed at the end."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from cumae.cli.files.source import STANDARD, is_sqlite
from cumae.errors import InvalidParameter, StoreFailed

DANGEROUS = re.compile(r"[=+\-@\t\r]")  # a spreadsheet may run a cell that begins so
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
LEAST_FREE = 64 << 20  # bytes on the disk


class Output:
    """A file that a command will write, or standard output for ``-``.

    What is written goes to a file beside it, and takes its name when it is complete. So a command
    that is broken off leaves no half of a file.

    Parameters
    ----------
    path : str
        Where to.
    force : bool
        Whether a file that is there already is replaced.
    private : bool
        True if only its owner may read it, from the first byte on; else it has the rights of any
        new file.

    Raises
    ------
    InvalidParameter
        If there is a file already, or if none can be written.
    """

    def __init__(self, path: str, *, force: bool, private: bool = False) -> None:
        self.path, self._force = path, force
        self._beside: Path | None = None
        if path != STANDARD:
            check_free(path, force=force)
            self._beside = _beside(Path(path), private=private)

    def __enter__(self) -> Self:
        return self

    def write(self, content: bytes) -> None:
        """Write everything; the file then has its name."""
        with self.stream() as stream:
            stream.write(content)

    @contextlib.contextmanager
    def stream(self) -> Iterator[IO[bytes]]:
        """Return what to write to; at the end of the block the file gets its name."""
        if self._beside is None:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
            return
        try:
            with self._beside.open("wb") as raw:
                if self.path.endswith(".gz"):
                    with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
                        yield packed  # type: ignore[misc]
                else:
                    yield raw
                raw.flush()
                os.fsync(raw.fileno())
            self._rename()
        except OSError as error:
            raise StoreFailed(f"{self.path} cannot be written: {error.strerror}.") from None

    @contextlib.contextmanager
    def rehearsal(self) -> Iterator[IO[bytes]]:
        """Return what to write to before anything is paid: nobody sees it, but it takes the room.

        What cannot be written, or finds no room on the disk, fails here.
        """
        try:
            with open(self._beside or os.devnull, "wb") as raw:  # noqa: PTH123 - devnull is a text
                yield raw
                raw.flush()
        except OSError as error:
            raise InvalidParameter(f"{self.path} cannot be written: {error.strerror}.") from None

    def _rename(self) -> None:
        """Give the file its name; one that somebody else made there meanwhile is left alone."""
        assert self._beside is not None  # noqa: S101
        if self._force:
            self._beside.replace(self.path)
            self._beside = None
            return
        try:
            Path(self.path).hardlink_to(self._beside)
        except FileExistsError:
            kept, self._beside = self._beside, None
            raise StoreFailed(
                f"{self.path} was made by somebody else meanwhile; what belongs there is in {kept}."
            ) from None
        except OSError:  # a file system without links
            self._beside.replace(self.path)
            self._beside = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._beside is not None:
            self._beside.unlink(missing_ok=True)


def _beside(path: Path, *, private: bool) -> Path:
    """Make an empty file beside another one, for its owner alone or with the usual rights."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise InvalidParameter(f"{path} cannot be written: {error.strerror}.") from None
    if not private:
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(handle, 0o666 & ~mask)
    os.close(handle)
    return Path(name)


def check_free(path: str, *, force: bool) -> None:
    """Refuse a file that is there, a folder that is not, and a disk that is nearly full.

    Parameters
    ----------
    path : str
        Where something will be written.
    force : bool
        Whether a file that is there already may be replaced.
    """
    folder = Path(path).parent
    if not folder.is_dir():
        raise InvalidParameter(f"there is no folder {folder} for {path}.")
    if Path(path).is_dir():
        raise InvalidParameter(f"{path} is a folder; give the name of a file.")
    if Path(path).exists() and not force:
        raise InvalidParameter(f"{path} is there already; give another name, or --force.")
    with contextlib.suppress(OSError):  # nothing is there, or nobody may read it
        if Path(path).is_file() and is_sqlite(path):
            raise InvalidParameter(
                f"{path} is an oracle or an account, which is never overwritten, because what it "
                "has spent would be forgotten. Give another name, or end it with `cumae destroy`."
            )
    usage = shutil.disk_usage(folder)
    if usage.total and usage.free < LEAST_FREE:
        raise InvalidParameter(f"the disk of {path} has less than 64 MB left; make room first.")


def check_new_oracle(path: str) -> None:
    """Refuse a place where no new oracle can be made, before anything is read.

    Parameters
    ----------
    path : str
        Where it will be.
    """
    if path == STANDARD:
        raise InvalidParameter("an oracle is a file, and cannot go to standard output.")
    if "://" in path:
        raise InvalidParameter("fit writes files; in Python, save_to takes addresses as well.")
    for taken in (path, f"{path}.keys"):
        if Path(taken).exists():
            raise InvalidParameter(
                f"{taken} is there already, and an oracle is never overwritten, because what it "
                "has spent would be forgotten. Give another name, or end it with `cumae destroy`."
            )
    check_free(path, force=False)
    _beside(Path(path), private=True).unlink()


def check_keys(path: str, keys: str | None) -> None:
    """Refuse what cannot keep the keys of a new oracle, before anything is paid.

    It takes seconds to load, so rows that may be refused come before it.

    Parameters
    ----------
    path : str
        Where the oracle will be.
    keys : str, or None
        What will keep its keys, as in ``save_to``.
    """
    from cumae.store import check_new_keys  # noqa: PLC0415 - refuses if packages are not there

    check_new_keys(path, keys)


def safe_cell(cell: str) -> str:
    """Return a cell that no spreadsheet takes for a formula: an apostrophe goes before it.

    Numbers stay numbers.

    Examples
    --------
    >>> from cumae.cli.files.output import safe_cell
    >>> safe_cell("=1+2"), safe_cell("-1.5"), safe_cell("baker")
    ("'=1+2", '-1.5', 'baker')
    """
    if DANGEROUS.match(cell) and not NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def safe_row(cells: Sequence[Any]) -> list[str]:
    """Return cells as texts that are safe in a spreadsheet; nothing for a missing one."""
    return [safe_cell("" if cell is None or cell != cell else str(cell)) for cell in cells]  # noqa: PLR0124
