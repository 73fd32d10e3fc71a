"""Settings of the server: from the command line, or from one TOML file."""

from __future__ import annotations

import ipaddress
import re
import tomllib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cumae.errors import InvalidParameter, listed
from cumae.serve.keys import ROLES

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
STEP = re.compile(r"(\d+(?:\.\d+)?)(ms|s)")
MEGABYTE = 2**20


@dataclass(frozen=True)
class ModelSettings:
    """One oracle or published model.

    Parameters
    ----------
    path : str
        Its file, or its address.
    name : str
        The name under which it is asked; that of the file by default.
    keys : str, or None
        What keeps the keys of an oracle, as in ``cumae.open``.
    schedule : str
        The step of the times at which answers are given, such as 10ms; empty for at once.
    audit, evaluation : str, or None
        What ``cumae audit --json`` and ``cumae score --json`` wrote about it, for its page.
    """

    path: str
    name: str = ""
    keys: str | None = None
    schedule: str = ""
    audit: str | None = None
    evaluation: str | None = None

    @property
    def tick(self) -> float:
        """The step of the schedule in seconds; 0 if there is none."""
        if not self.schedule:
            return 0.0
        match = STEP.fullmatch(self.schedule)
        seconds = float(match[1]) * (0.001 if match[2] == "ms" else 1.0) if match else 0.0
        if not 0.001 <= seconds <= 60:
            raise InvalidParameter(
                f"schedule={self.schedule!r} is no step such as '10ms' or '1s', up to a minute."
            )
        return seconds

    @property
    def named(self) -> ModelSettings:
        """The same with a name."""
        name = self.name or (
            "oracle" if "://" in self.path else Path(self.path).name.partition(".")[0]
        )
        if not NAME.fullmatch(name) or name.endswith(".json"):
            raise InvalidParameter(
                f"name={name!r}: name a model by up to 100 letters, digits, dots, underscores and "
                "hyphens, without .json at the end."
            )
        return replace(self, name=name)


@dataclass(frozen=True)
class Settings:
    """All settings of a server.

    Parameters
    ----------
    models : tuple of ModelSettings
        What is served. The first one answers where an address names no model.
    host, port : str, int
        Where it listens; port 0 takes any that is free.
    access : str, or None
        The file of access keys. Without one, programs on this machine may ask, and nobody else.
    tls_cert, tls_key : str, or None
        Files for TLS.
    behind_proxy : bool
        Whether a proxy is in front, which has TLS.
    proxies : tuple of str
        Networks of proxies whose header about people is believed.
    people_header : str
        That header; empty for none.
    people_roles : tuple of str
        What these people may do.
    most_packed, most_unpacked : int
        Most bytes of a body as it comes, and after it was unpacked.
    most_rows : int
        Most rows of a request.
    body_seconds : float
        How long a client may take to send a body.
    drain_seconds : int
        How long a stop waits for clients.
    backups : str, or None
        The folder into which backups are written that somebody asks for on the page for operators.
    """

    models: tuple[ModelSettings, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8080
    access: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    behind_proxy: bool = False
    proxies: tuple[str, ...] = ()
    people_header: str = ""
    people_roles: tuple[str, ...] = field(default=("ask", "look"))
    most_packed: int = 16 * MEGABYTE
    most_unpacked: int = 64 * MEGABYTE
    most_rows: int = 100_000
    body_seconds: float = 30.0
    drain_seconds: int = 20
    backups: str | None = None

    @property
    def is_local(self) -> bool:
        """True if only this machine can reach the address."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def checked(self) -> Settings:
        """Return the same, if it is safe and makes sense.

        Raises
        ------
        InvalidParameter
            If it is not; the message says what to do.
        """
        if not self.models:
            raise InvalidParameter("give an oracle or a model to serve: cumae serve oracle.db")
        models = tuple(one.named for one in self.models)
        names = [one.name for one in models]
        if len(set(names)) < len(names):
            raise InvalidParameter(
                "two models have the same name; name them in a file of settings (--config)."
            )
        for one in models:
            _ = one.tick
        self._check_door()
        if not 0 <= self.port < 2**16:
            raise InvalidParameter(f"port={self.port!r}: give a number from 0 to 65535.")
        for name in ("most_packed", "most_unpacked", "most_rows", "body_seconds", "drain_seconds"):
            if not getattr(self, name) > 0:
                raise InvalidParameter(f"{name}={getattr(self, name)!r}: give a number above 0.")
        return replace(self, models=models)

    def _check_door(self) -> None:
        """Refuse settings by which strangers could ask, or listen."""
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidParameter("TLS needs two files, tls_cert and tls_key.")
        if not self.is_local and self.tls_cert is None and not self.behind_proxy:
            raise InvalidParameter(
                f"host={self.host!r} is reached from other machines: give tls_cert and tls_key, or "
                "--behind-proxy if a proxy in front of it has TLS."
            )
        outside = not self.is_local or self.behind_proxy
        if outside and self.access is None and not self.people_header:
            raise InvalidParameter(
                "strangers may reach this server: give a file of access keys (`cumae keys new "
                "access.json`), with --access."
            )
        if self.people_header and not self.proxies:
            raise InvalidParameter(
                "people_header needs proxies: the networks from which it is believed."
            )
        if not set(self.people_roles) <= set(ROLES):
            raise InvalidParameter(f"people_roles are some of {', '.join(ROLES)}.")


def from_toml(path: str) -> Settings:
    """Return the settings of a file.

    Parameters
    ----------
    path : str
        A TOML file with the names of :class:`Settings`, and a table ``[[models]]`` for each model.

    Raises
    ------
    InvalidParameter
        If it cannot be read, or has a name that there is not.
    """
    try:
        with Path(path).open("rb") as file:
            given = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError):
        raise InvalidParameter(f"config={path!r} cannot be read as TOML.") from None
    tables = given.pop("models", [])
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
        raise InvalidParameter("models are tables: [[models]]")
    models = tuple(_made(ModelSettings, one) for one in tables)
    for one in models:
        if not one.path:
            raise InvalidParameter("each of [[models]] needs a path.")
    settings: Settings = replace(_made(Settings, given), models=models)
    return settings


def _made(kind: type[Any], given: dict[str, Any]) -> Any:
    """Return settings from a table whose values have the types of the defaults."""
    known = {one.name: one for one in fields(kind) if one.name != "models"}
    strange = sorted(given.keys() - known.keys())
    if strange:
        raise InvalidParameter(
            f"there is no setting {listed(strange)}; there are {', '.join(sorted(known))}."
        )
    found: dict[str, Any] = {"path": ""} if kind is ModelSettings else {}
    for name, value in given.items():
        wanted = str(known[name].type)
        if not _fits(wanted, value):
            raise InvalidParameter(f"the setting {name} must be of the kind {wanted}.")
        found[name] = tuple(value) if isinstance(value, list) else value
    return kind(**found)


def _fits(wanted: str, value: Any) -> bool:
    if wanted == "bool":
        return isinstance(value, bool)
    if wanted in ("int", "float"):
        kinds = (int,) if wanted == "int" else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool)
    if wanted.startswith("tuple"):
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    return isinstance(value, str)


def check_no_password(address: str) -> None:
    """Refuse an address with a password on the command line, which others see there.

    Parameters
    ----------
    address : str
        A file, or an address.
    """
    if "://" in address and (urlsplit(address).password or "password=" in address):
        raise InvalidParameter(
            "others on this machine can read a password on the command line; put the address into "
            "a file of settings (--config), or the password into ~/.pgpass."
        )
