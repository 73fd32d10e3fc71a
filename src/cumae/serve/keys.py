"""Keys of clients: 256 random bits each, of which a file keeps a hash and a public name."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import json
import os
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cumae.errors import InvalidParameter, StoreFailed
from cumae.randomness import SYSTEM

ROLES = ("ask", "label", "look", "admin")
FORMAT = 1
SECRET_WORDS = 4  # of 64 bits
NAME_BYTES = 6
WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
KEY = re.compile(rb"cumae_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
MODE = 0o600
OTHERS = 0o077


@dataclass(frozen=True)
class AccessKey:
    """The stored facts about a key.

    Parameters
    ----------
    name : str
        Its public part, by which it is found.
    hash : str
        The hash of its secret part.
    client : str
        Who has it. Several keys may belong to one client.
    roles : tuple of str
        What it may do: ``ask``, ``label``, ``look`` and ``admin``, which may do everything.
    models : tuple of str, or None
        The models it may be used for; None for all.
    created : str
        The day it was made.
    expires : str, or None
        The first day on which it is refused, in UTC.
    rate : float, or None
        Rows a second that it may ask for, on average.
    answers : int, or None
        Rows that it may ask for in all.
    revoked : bool
        Whether it is refused for ever.
    """

    name: str
    hash: str
    client: str
    roles: tuple[str, ...]
    models: tuple[str, ...] | None = None
    created: str = ""
    expires: str | None = None
    rate: float | None = None
    answers: int | None = None
    revoked: bool = False

    def is_valid(self, today: dt.date) -> bool:
        """Return whether it may be used on a day."""
        return not self.revoked and (
            self.expires is None or today < dt.date.fromisoformat(self.expires)
        )


def hash_of(secret: bytes) -> str:
    """Return what is kept of the secret part of a key."""
    return hashlib.sha256(b"cumae access key\0" + secret).hexdigest()


NO_HASH = hash_of(b"")  # of no key: what an unknown name is compared with


def parsed(given: bytes) -> tuple[str, str] | None:
    """Return the name of a key and the hash of its secret; None if it is no key."""
    match = KEY.fullmatch(given)
    return None if match is None else (match[1].decode(), hash_of(match[2]))


def fits(key: AccessKey | None, hashed: str) -> bool:
    """Return whether a secret is that of a key; it takes as long if there is no such key."""
    same = hmac.compare_digest(NO_HASH if key is None else key.hash, hashed)
    return same and key is not None


def new_key(client: str, roles: tuple[str, ...], **more: Any) -> tuple[AccessKey, str]:
    """Return a new key, and its text, which is shown once and kept nowhere.

    Parameters
    ----------
    client : str
        Who gets it; empty for its own name.
    roles : tuple of str
        What it may do.
    **more : object
        Other fields of :class:`AccessKey`.
    """
    name = SYSTEM.words(1).tobytes()[:NAME_BYTES].hex()
    secret = base64.urlsafe_b64encode(SYSTEM.words(SECRET_WORDS).tobytes()).rstrip(b"=")
    today = dt.datetime.now(dt.UTC).date().isoformat()
    key = checked(AccessKey(name, hash_of(secret), client or name, roles, created=today, **more))
    return key, f"cumae_{name}_{secret.decode()}"


def checked(key: AccessKey) -> AccessKey:
    """Return a key whose fields make sense; refuse others."""
    if not WORD.fullmatch(key.client):
        raise InvalidParameter(
            "a client is named by up to 64 letters, digits, dots, underscores and hyphens."
        )
    strange = [role for role in key.roles if role not in ROLES]
    if strange or not key.roles:
        raise InvalidParameter(f"roles are some of {', '.join(ROLES)}.")
    if key.rate is not None and not 0 < key.rate < float("inf"):
        raise InvalidParameter(f"rate={key.rate!r}: give rows a second, above 0.")
    if key.answers is not None and key.answers < 1:
        raise InvalidParameter(f"answers={key.answers!r}: give 1 or more.")
    if key.expires is not None:
        try:
            dt.date.fromisoformat(key.expires)
        except ValueError:
            raise InvalidParameter("expires is a day, such as 2030-12-31.") from None
    return key


class KeyFile:
    """A file with keys, which only its owner can read.

    Parameters
    ----------
    path : Path
        Where it is.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> list[AccessKey]:
        """Return all keys in it."""
        content = read_own(self.path)
        try:
            if content["format"] != FORMAT:
                raise StoreFailed(f"{self.path} has a format that this version does not know.")
            return [checked(_key(one)) for one in content["keys"]]
        except (KeyError, TypeError, InvalidParameter) as error:
            raise StoreFailed(f"{self.path} is no file of keys, or was damaged.") from error

    def add(self, key: AccessKey) -> None:
        """Add a key; make the file if there is none."""
        keys = self.read() if self.path.exists() else []
        self._write([*keys, key])

    def revoke(self, name: str) -> None:
        """Mark a key as revoked."""
        keys = self.read()
        if name not in {key.name for key in keys}:
            raise InvalidParameter(f"there is no key {name!r} in {self.path}.")
        self._write([replace(key, revoked=True) if key.name == name else key for key in keys])

    def _write(self, keys: list[AccessKey]) -> None:
        write_own(self.path, {"format": FORMAT, "keys": [asdict(key) for key in keys]})


def _key(given: dict[str, Any]) -> AccessKey:
    models = given.get("models")
    tuples = {"roles": tuple(given["roles"]), "models": None if models is None else tuple(models)}
    return AccessKey(**{**given, **tuples})


def read_own(path: Path) -> Any:
    """Return what a file of JSON holds; refuse one that others can read."""
    try:
        with path.open(encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_mode & OTHERS:
                raise StoreFailed(f"others can read or write {path}: chmod 600 {path}.")
            return json.load(file)
    except FileNotFoundError:
        raise InvalidParameter(f"there is no file {path}; `cumae keys new` makes one.") from None
    except (OSError, ValueError) as error:
        raise StoreFailed(f"{path} cannot be read, or was damaged.") from error


def write_own(path: Path, content: Any) -> None:
    """Write a file of JSON in one step, durably, readable by its owner only."""
    new = path.with_name(f".{path.name}.new")
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, MODE), "w") as file:
            os.fchmod(file.fileno(), MODE)
            json.dump(content, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise StoreFailed(f"{path} cannot be written.") from error
