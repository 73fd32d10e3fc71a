"""Connections to PostgreSQL: safe against listeners, and silent about passwords."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cumae.claims import claim
from cumae.errors import StoreFailed

CONNECTION = {
    "application_name": "cumae",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}


def connected(address: str) -> psycopg.Connection[Any]:
    """Return a connection; refuse one that others could read or change."""
    with failing(without_password(address)):
        given: dict[str, Any] = {**CONNECTION, **conninfo_to_dict(address)}
        made = psycopg.connect(make_conninfo(**given), autocommit=True)
    try:
        verified = made.pgconn.ssl_in_use and sslmode_of(made) == "verify-full"
        refuse_open_wire(made.info.host, made.info.hostaddr, verified=verified)
    except BaseException:
        made.close()
        raise
    return made


@claim("REPLICAS")
def refuse_open_wire(host: str, address: str, *, verified: bool) -> None:
    """Refuse a connection that leaves this machine unless TLS has shown who answers there.

    Others could say "committed", or lead two replicas to two copies of the tables.

    Parameters
    ----------
    host, address : str
        Where the connection goes.
    verified : bool
        Whether it is encrypted, and the server has proved its name by a certificate.
    """
    local = host.startswith(("/", "@"))
    local = local or bool(address and ipaddress.ip_address(address).is_loopback)
    if not verified and not local:
        raise StoreFailed(
            f"the connection to {host} is not encrypted, or it was not checked that it is this "
            "server, so that somebody in between could acknowledge a debit that was never written; "
            "add ?sslmode=verify-full to the address."
        )


def sslmode_of(connection: psycopg.Connection[Any]) -> str:
    """Return how TLS was asked for, by the address, the environment or a service file."""
    found = {option.keyword: option.val for option in connection.pgconn.info}
    return (found.get(b"sslmode") or b"").decode()


def without_password(address: str) -> str:
    """Return an address without its password.

    Examples
    --------
    >>> from cumae.store.homes.connections import without_password
    >>> without_password("postgresql://anna:secret@db.example/oracles?sslmode=verify-full")
    'postgresql://anna@db.example/oracles'
    """
    try:
        given = conninfo_to_dict(address)
    except psycopg.Error:
        return "postgresql://..."
    who = f"{given['user']}@" if "user" in given else ""
    port = f":{given['port']}" if "port" in given else ""
    return f"postgresql://{who}{given.get('host', '')}{port}/{given.get('dbname', '')}"


@contextmanager
def failing(name: str) -> Iterator[None]:
    """Let all that PostgreSQL may raise become ``StoreFailed``."""
    try:
        yield
    except (psycopg.Error, OSError) as error:
        raise StoreFailed(
            f"{name} cannot be read or written ({type(error).__name__}). Check the address, the "
            "server and the rights of the role, and open it again."
        ) from error
