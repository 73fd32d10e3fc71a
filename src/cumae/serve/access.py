"""Who asks, whether they may, and how much: all of it is decided before an oracle is asked."""

from __future__ import annotations

import contextlib
import datetime as dt
import fcntl
import ipaddress
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cumae.claims import claim
from cumae.errors import CumaeError, InvalidParameter
from cumae.serve.errors import Refused
from cumae.serve.keys import AccessKey, KeyFile, fits, parsed, read_own, write_own

LOOK_SECONDS = 1.0  # after which a changed file of keys is read again
BLOCK = 64  # parts of a limit of answers
BEARER = b"bearer "
MOST_NAME = 128
SEE = "see"  # the right that comes with each role: to see what a model promises
LOCAL_HOSTS = (b"localhost", b"127.0.0.1", b"[::1]")


class Who(NamedTuple):
    """Somebody who asks.

    Parameters
    ----------
    client : str
        The name that stands for them in an oracle.
    roles : frozenset of str
        What they may do.
    models : tuple of str, or None
        For which models; None for all.
    key : AccessKey, or None
        Their key.
    """

    client: str
    roles: frozenset[str]
    models: tuple[str, ...] | None = None
    key: AccessKey | None = None

    def may(self, role: str) -> bool:
        """Return whether they may do something; who may do anything may see what is public."""
        return role in self.roles or "admin" in self.roles or (role == SEE and bool(self.roles))

    def sees(self, model: str) -> bool:
        """Return whether a model is one of theirs."""
        return self.models is None or model in self.models


def no_key() -> Refused:
    """Return the refusal of somebody whom nobody knows."""
    return Refused(401, "no_key", "give a valid key: Authorization: Bearer cumae_...")


def not_allowed() -> Refused:
    """Return the refusal of what a key is not for."""
    return Refused(403, "not_allowed", "this key is not for this")


class Door:
    """Lets in those who may ask.

    Parameters
    ----------
    keys : Path, or None
        The file of keys; None lets everybody in who reaches this address.
    proxies : list of str
        Addresses from which the header of a proxy is believed.
    people_header : str
        The header in which a proxy names people; empty for none.
    people_roles : tuple of str
        What these may do.
    behind_proxy : bool
        Whether other names than those of this machine may be asked for.
    """

    def __init__(
        self,
        keys: Path | None,
        *,
        proxies: tuple[str, ...] = (),
        people_header: str = "",
        people_roles: tuple[str, ...] = ("ask", "look"),
        behind_proxy: bool = False,
    ) -> None:
        self._file = None if keys is None else KeyFile(keys)
        self._networks = [_network(one) for one in proxies]
        self._header = people_header.lower().encode()
        self._people = frozenset(people_roles)
        self._open = Who("local", frozenset({"ask", "label", "look"}))
        self._local_only = keys is None and not behind_proxy
        self._known: dict[str, AccessKey] = {}
        self._seen: Any = None
        self._looked = -math.inf
        if self._file is not None:
            self._known = {key.name: key for key in self._file.read()}

    @claim("SERVE")
    def who(self, headers: dict[bytes, bytes], client: Any) -> Who:
        """Return who asks; refuse strangers.

        Parameters
        ----------
        headers : dict of bytes to bytes
            Headers of the request.
        client : tuple, or None
            The address from which it came.
        """
        given = headers.get(b"authorization")
        if self._file is not None and given is not None:
            if given[: len(BEARER)].lower() != BEARER:
                raise no_key()
            return self._by_key(given[len(BEARER) :].strip())
        if b"origin" in headers:  # a page in a browser, which sends what its reader does not see
            raise Refused(403, "not_allowed", "pages of other addresses cannot ask without a key")
        if self._header and self._header in headers and self._is_proxy(client):
            return self._person(headers[self._header])
        if self._file is None and not self._header:
            if self._local_only and _host(headers) not in LOCAL_HOSTS:
                raise Refused(403, "not_allowed", "without keys ask for localhost")
            return self._open
        raise no_key()

    @claim("SERVE")
    def _by_key(self, given: bytes) -> Who:
        self._look_again()
        name, hashed = parsed(given) or ("", "")
        if not fits(self._known.get(name), hashed):
            raise no_key()
        return self.holder(name)

    def holder(self, name: str) -> Who:
        """Return who has a key, as long as it is valid; who names it was let in by it before.

        Parameters
        ----------
        name : str
            The public name of the key.
        """
        self._look_again()
        key = self._known.get(name)
        if key is None or not key.is_valid(dt.datetime.now(dt.UTC).date()):
            raise no_key()
        return Who(key.client, frozenset(key.roles), key.models, key)

    @property
    def keys(self) -> KeyFile | None:
        """The file of keys; None if there is none."""
        return self._file

    def _look_again(self) -> None:
        """Read the file again if it has changed; if it cannot be read, nobody has a key."""
        now = time.monotonic()
        if self._file is None or now < self._looked + LOOK_SECONDS:
            return
        self._looked = now
        try:
            found = self._file.path.stat()
            seen = (found.st_mtime_ns, found.st_ino, found.st_size, found.st_mode)
            if seen != self._seen:
                self._known = {key.name: key for key in self._file.read()}
                self._seen = seen
        except (CumaeError, OSError):
            self._known, self._seen = {}, None

    def _is_proxy(self, client: Any) -> bool:
        if not client:
            return False
        try:
            address = ipaddress.ip_address(client[0])
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None) or address
        return any(mapped in network for network in self._networks)

    def _person(self, name: bytes) -> Who:
        if not 0 < len(name) <= MOST_NAME or not name.isascii() or not name.decode().isprintable():
            raise no_key()
        return Who(f"person/{name.decode()}", self._people)


def _host(headers: dict[bytes, bytes]) -> bytes:
    """Return the host that is asked for, without its port."""
    host = headers.get(b"host", b"localhost").lower()
    if host.startswith(b"["):
        return host.partition(b"]")[0] + b"]"
    return host.partition(b":")[0]


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise InvalidParameter(f"proxies: {text!r} is no address of a network.") from None


class Limits:
    """Counts rows for each key, before an oracle is asked for them.

    Answers of a limit are taken from the file block by block, each of which is written down before
    it is used. So servers that share the file share the limits, and a crash costs a block.

    Parameters
    ----------
    path : Path, or None
        Where limits of answers are written down; None where no key has one.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._debts: dict[str, tuple[float, float]] = {}  # rows above the rate, and when
        self._written = self._read()
        self._left: dict[str, int] = {}  # of what this server has taken

    @claim("SERVE")
    def take(self, key: AccessKey | None, n_rows: int) -> None:
        """Count rows; refuse them if that is too much."""
        if key is None or (key.rate is None and key.answers is None):
            return
        if key.rate is not None:
            self._take_rate(key.name, key.rate, n_rows)
        if key.answers is not None:
            self._take_answers(key.name, key.answers, n_rows)

    def _take_rate(self, name: str, rate: float, n_rows: int) -> None:
        """Refuse as long as earlier rows are more than the rate allows by now."""
        now = time.monotonic()
        debt, since = self._debts.get(name, (0.0, now))
        debt = max(0.0, debt - rate * (now - since))
        if debt > rate:  # the rows of a second may come at once
            wait = math.ceil((debt - rate) / rate)
            raise Refused(429, "too_many", "this key asks for more than its rate", max(1, wait))
        self._debts[name] = (debt + n_rows, now)

    def _take_answers(self, name: str, most: int, n_rows: int) -> None:
        needed = n_rows - self._left.get(name, 0)
        if needed > 0:
            with self._alone():
                used = self._written.get(name, 0)
                if used + needed > most:
                    raise Refused(
                        403, "limit_reached", "this key has used the answers that it was given"
                    )
                block = min(most - used, max(needed, most // BLOCK))
                self._write({name: used + block})
            self._left[name] = self._left.get(name, 0) + block
        self._left[name] -= n_rows

    def used(self, name: str) -> int:
        """Return how many rows of its limit a key has used, as this server knows."""
        return self._written.get(name, 0) - self._left.get(name, 0)

    def give_back(self, key: AccessKey | None, n_rows: int) -> None:
        """Undo what was counted for a request that the oracle refused without a charge."""
        if key is not None and key.answers is not None:
            self._left[key.name] = self._left.get(key.name, 0) + n_rows

    def close(self) -> None:
        """Give back what was taken and not used."""
        if any(self._left.values()):
            with self._alone():
                self._write({name: self.used(name) for name in self._left})
            self._left.clear()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other servers out, and read what they have written."""
        if self._path is None:
            yield
            return
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            self._written = self._read()
            yield
        finally:
            os.close(folder)

    def _read(self) -> dict[str, int]:
        if self._path is None or not self._path.exists():
            return {}
        return {str(name): int(used) for name, used in read_own(self._path).items()}

    def _write(self, numbers: dict[str, int]) -> None:
        self._written |= numbers
        if self._path is not None:
            write_own(self._path, self._written)
