"""Files and standard input as bytes, and what is in them: CSV or Parquet, packed by gzip or not."""

from __future__ import annotations

import contextlib
import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

from cumae.errors import InvalidData, InvalidParameter

STANDARD = "-"  # standard input, or standard output
GZIP, PARQUET, SQLITE = b"\x1f\x8b", b"PAR1", b"SQLite format 3\0"


def title(path: str) -> str:
    """Return how messages name a file."""
    return "standard input" if path == STANDARD else path


@contextlib.contextmanager
def opened_file(path: str) -> Iterator[io.BufferedReader]:
    """Open a file, or standard input for ``-``; what gzip packed is unpacked on the way.

    Raises
    ------
    InvalidData
        If the file cannot be read, now or while it is open, or was written by ``fit``.
    """
    try:
        with _raw(path) as raw:
            refuse_no_table(raw, path)
            if raw.peek(2)[:2] != GZIP:
                yield raw
                return
            with gzip.GzipFile(fileobj=raw) as unpacked:
                yield io.BufferedReader(unpacked)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        raise InvalidData(f"{title(path)} was packed by gzip, and is damaged or cut off.") from None
    except OSError as error:
        raise InvalidData(_why(path, error)) from None


def need_files(*paths: str | None) -> None:
    """Refuse files that are not there, before anything is loaded that takes long; skip None."""
    for path in paths:
        if path is not None and path != STANDARD and "://" not in path and not Path(path).exists():
            raise InvalidData(f"there is no file {path}.")


def _raw(path: str) -> io.BufferedReader:
    if path == STANDARD:
        return io.BufferedReader(sys.stdin.buffer)  # type: ignore[arg-type]
    return Path(path).open("rb")


def _why(path: str, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"there is no file {path}."
    if isinstance(error, IsADirectoryError):
        return f"{path} is a folder; give a file, or a folder of *.parquet files."
    return f"{title(path)} cannot be read: {error.strerror or type(error).__name__}."


def refuse_no_table(stream: io.BufferedReader, path: str) -> None:
    """Refuse a file by its first bytes that is an oracle, an account or a model."""
    begins = stream.peek(len(SQLITE))
    if begins.startswith(SQLITE):
        raise InvalidData(f"{title(path)} is an oracle or an account, and no table of rows.")
    if begins.startswith(b'{"'):
        raise InvalidData(
            f"{title(path)} is a file of JSON, such as a model, and no table of rows."
        )


def is_parquet(stream: io.BufferedReader) -> bool:
    """Tell by its first bytes whether a stream holds a Parquet file."""
    return stream.peek(4)[:4] == PARQUET


def is_sqlite(path: str) -> bool:
    """Tell by its first bytes whether a file is one of SQLite, as oracles and accounts are."""
    with Path(path).open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


def refuse_private_as_public(data: str | None, public: str | None) -> None:
    """Refuse a file of private rows that is also given as public rows."""
    if data is None or public is None:
        return
    if public == STANDARD:
        raise InvalidParameter("public rows are read from a file; only DATA may be standard input.")
    with contextlib.suppress(OSError):  # whoever opens it says what is wrong
        if data != STANDARD and Path(data).samefile(public):
            raise InvalidParameter(
                f"{public} is the file of private rows, and cannot be public as well: what is read "
                "from public rows is not protected."
            )


def refuse_twice(data: str, unlabelled: str | None) -> None:
    """Refuse rows without labels that are those of the labelled file, or share standard input."""
    if unlabelled is None:
        return
    if unlabelled == STANDARD:
        raise InvalidParameter(
            "rows without labels are read from a file; only DATA may be standard input."
        )
    with contextlib.suppress(OSError):  # whoever opens it says what is wrong
        if data != STANDARD and Path(data).samefile(unlabelled):
            raise InvalidParameter(
                f"{unlabelled} is DATA itself. Each person must be in one of both files only: "
                "the promise is about one row."
            )
