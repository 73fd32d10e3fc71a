"""The file that an account lives in: JSON that is replaced as a whole, one writer at a time."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cumae.claims import claim
from cumae.codec import TEXT_FORMAT, TEXT_FORMATS
from cumae.errors import InvalidParameter
from cumae.locks import FileLock, alone

KIND = "cumae budget"


class AccountFile:
    """The JSON file that an account lives in.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def alone(self, work: Callable[[], None]) -> None:
        """Run something while no other process pays."""
        alone(lambda: FileLock(self.path, os.O_RDWR), work)

    def read(self) -> dict[str, Any]:
        """Return the account."""
        return read_account(self.path)

    def write(self, account: dict[str, Any]) -> None:
        """Replace the account."""
        write_account(self.path, account)


def create_file(path: Path) -> None:
    """Make an empty file for a new account, and refuse if there is a file already."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise InvalidParameter(
            f"path={str(path)!r} exists already; if it holds an account, go on with it by "
            "Budget.load, else give another path."
        ) from None


@claim("BUDGET", "STORE")
def refuse_several_names(path: Path) -> None:
    """Refuse a file with hard links: each name would go on as an account or oracle of its own.

    Links to a path are harmless, because paths are resolved before they are used.

    Raises
    ------
    InvalidParameter
        If the file has more than one name.
    """
    if path.is_file() and path.stat().st_nlink > 1:
        raise InvalidParameter(
            f"path={str(path)!r} has another name, a hard link, under which it could go on a "
            "second time; remove the other name."
        )


@claim("BUDGET")
def write_account(path: Path, account: dict[str, Any]) -> None:
    """Replace the file as a whole; once this returns, the new one survives a loss of power."""
    plain = {"kind": KIND, "format": TEXT_FORMAT, "account": account, "sha256": _digest(account)}
    file, scratch = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 0600
    try:
        with os.fdopen(file, "w", encoding="utf-8") as text:
            text.write(json.dumps(plain, allow_nan=False))
            text.flush()
            os.fsync(text.fileno())
        Path(scratch).replace(path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@claim("BUDGET")
def read_account(path: Path) -> dict[str, Any]:
    """Return what ``write_account`` was given.

    Raises
    ------
    InvalidParameter
        If it is no such file, or one of an unknown format, or was damaged or edited, or has
        another name.
    """
    refuse_several_names(path)
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        known = plain["kind"] == KIND
        digest = _digest(plain.get("account"))
    except (LookupError, RecursionError, TypeError, ValueError):
        known = False
    if not known:
        raise InvalidParameter(
            f"path={str(path)!r} holds no account that save wrote; cumae.load takes any file that "
            "cumae wrote."
        )
    if plain.get("format") not in TEXT_FORMATS:
        raise InvalidParameter(
            f"path={str(path)!r} has a format that this version of cumae does not know; it knows "
            f"{TEXT_FORMAT}. Load it with a newer version."
        )
    account = plain.get("account")
    if not isinstance(account, dict) or plain.get("sha256") != digest:
        raise InvalidParameter(
            f"path={str(path)!r} was damaged or edited after it was saved; its payments cannot be "
            "trusted."
        )
    return account


def _digest(account: Any) -> str:
    text = json.dumps(account, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
