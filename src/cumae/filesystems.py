"""Files by their paths, or by addresses of other file systems, which fsspec opens."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from cumae.errors import InvalidData, shown
from cumae.extras import fsspec

Paths: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True)
class FileAddress:
    """A file.

    Parameters
    ----------
    path : str
        Its path, or its address, such as ``s3://bucket/rows.parquet``.
    options : mapping
        Options of fsspec for the file system, such as keys to it. They travel to workers.
    """

    path: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what a worker makes it of, who may stand in another folder."""
        path = self.path if "://" in self.path else os.path.abspath(self.path)  # noqa: PTH100
        return FileAddress, (path, self.options)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2]

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Return what pyarrow reads the file from, open until the end of the block.

        Raises
        ------
        InvalidData
            If it is not there, or cannot be read.
        """
        if "://" not in self.path:
            yield self.path
            return
        system, path = file_system(self.path, self.options)
        try:
            file = system.open(path, "rb")
        except Exception:  # noqa: BLE001 - each file system has errors of its own
            raise InvalidData(f"{shown(self.path)} is missing or unreadable.") from None
        with file:
            yield file


def places_of_files(paths: Paths, options: Mapping[str, Any]) -> list[FileAddress]:
    """Return the files of a folder by name, or those that are listed.

    Parameters
    ----------
    paths : str, path or list of them
        A file, a list of files, or a folder of ``*.parquet`` files.
    options : mapping
        Options of fsspec for the file system.
    """
    if not isinstance(paths, str | os.PathLike):
        files = [str(path) for path in paths]
    elif "://" in str(paths):
        files = _listed(str(paths), options)
    else:
        folder = Path(paths)
        files = sorted(map(str, folder.glob("*.parquet"))) if folder.is_dir() else [str(folder)]
    if not files:
        raise InvalidData("the folder has no *.parquet file, or the list of files is empty.")
    return [FileAddress(file, options) for file in files]


def _listed(address: str, options: Mapping[str, Any]) -> list[str]:
    """Return the files of a folder on another file system, or the file itself."""
    system, path = file_system(address, options)
    try:
        if system.isfile(path):
            return [address]
        found = system.glob(path.rstrip("/") + "/*.parquet")
    except Exception:  # noqa: BLE001 - each file system has errors of its own
        raise InvalidData(f"{shown(address)} cannot be listed.") from None
    return sorted(system.unstrip_protocol(one) for one in found)


def file_system(address: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the file system of an address, and the path within it.

    Parameters
    ----------
    address : str
        Such as ``s3://bucket/folder``.
    options : mapping
        Options of fsspec for the file system.
    """
    try:
        found = fsspec.core.url_to_fs(address, **options)
    except (ImportError, ValueError) as error:
        raise InvalidData(
            f"{shown(address)}: fsspec knows no such file system, or lacks its package "
            f"({type(error).__name__}), such as s3fs for s3://, gcsfs for gs://, adlfs for abfs://."
        ) from None
    return found[0], str(found[1])
