"""The process of the server: its socket, its signals, its limits and its end."""

from __future__ import annotations

import os
import resource
import signal
import socket
import ssl
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from cumae.errors import InvalidParameter
from cumae.serve.app import Server
from cumae.serve.errors import error_body
from cumae.serve.keys import KeyFile
from cumae.serve.models import House
from cumae.serve.pages.site import Site
from cumae.serve.quiet_log import LOGGER, begin, no_dumps
from cumae.serve.settings import Settings

IDLE_SECONDS = 75  # for which a connection is kept without the whole head of a request
MOST_HEAD = 2**16  # bytes of an address and its headers
BACKLOG = 2_048


class StrictProtocol(HttpToolsProtocol):
    """HTTP/1.1 as uvicorn reads it, with limits, and with the one shape of all errors."""

    _head = 0  # bytes of the head of a request
    _in_head = True
    _head_timer: Any = None
    _full_timer: Any = None  # while a client does not take what it asked for

    def connection_made(self, transport: Any) -> None:
        """Begin a connection, which must ask something in time."""
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """End it."""
        self._unwatch()
        self._stop_waiting()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._head, self._in_head = 0, True

    def on_url(self, url: bytes) -> None:
        """Take a part of the address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; what follows a body in pieces is none, and is left out."""
        self._count(len(name) + len(value) + len(": \r\n"))
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer."""
        self._unwatch()
        self._in_head = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Take bytes; the head of a request may neither grow for ever nor last for ever."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._in_head and not self.transport.is_closing():
            self._head += len(data)
            if self._head > MOST_HEAD:
                self.send_400_response("")
            elif self._head_timer is None:
                self._watch()

    def pause_writing(self) -> None:
        """Wait for a client that takes nothing, but not for ever: what it leaves is in memory."""
        super().pause_writing()
        self._full_timer = self.loop.call_later(IDLE_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on to write."""
        self._stop_waiting()
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that asks nothing, also if it has not taken all of its last reply."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def send_400_response(self, _: str) -> None:
        """Refuse what is no request."""
        body = error_body("this is no request of HTTP/1.1", "bad_request")
        head = (
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()

    def _count(self, size: int) -> None:
        self._head += size
        if self._head > MOST_HEAD:
            raise ValueError("too long")  # the parser ends, and the request is refused

    def _watch(self) -> None:
        self._head_timer = self.loop.call_later(IDLE_SECONDS, self.timeout_keep_alive_handler)

    def _stop_waiting(self) -> None:
        if self._full_timer is not None:
            self._full_timer.cancel()
            self._full_timer = None

    def _unwatch(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def run(settings: Settings) -> None:
    """Serve until a signal comes; then answer what waits, and close all oracles.

    Parameters
    ----------
    settings : Settings
        What is served, and how.

    Raises
    ------
    CumaeError
        If the settings are unsafe, the address is taken, or an oracle cannot be opened.
    """
    settings = settings.checked()
    no_dumps()
    many_files()
    begin()
    tls = _tls(settings)
    if settings.access is not None:
        KeyFile(Path(settings.access)).read()  # before an oracle is opened
    stopped: list[int] = []
    servers: list[uvicorn.Server] = []

    def stop(number: int, _: FrameType | None) -> None:
        stopped.append(number)
        for server in servers:
            server.should_exit = True

    # uvicorn takes signals from its own start to its end, and sends itself each again when it has
    # ended, which shall not kill: the exit code of a stop that closed all is 0. One that comes
    # just before its start must not be lost.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_DFL:  # a terminal that is closed; not nohup
        signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    listening = bound(settings)
    try:
        house = House(settings.models, freeze=True)
        try:
            servers.append(server_of(settings, house, tls))
            if not stopped:
                _serve(servers[0], house, listening, is_tls=bool(tls))
        finally:
            house.close()
    finally:
        listening.close()
    LOGGER.info("stopped; all oracles are closed")


def _serve(server: uvicorn.Server, house: House, listening: socket.socket, *, is_tls: bool) -> None:
    host, port = listening.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    names, scheme = ", ".join(house.models), "https" if is_tls else "http"
    LOGGER.info("serving %s at %s://%s:%d", names, scheme, shown, port)
    warnings.simplefilter("ignore")  # from now on they may tell what an oracle drew
    server.run(sockets=[listening])


def server_of(settings: Settings, house: House, tls: dict[str, Any]) -> uvicorn.Server:
    """Return what serves a house; ``run(sockets=[...])`` begins.

    Parameters
    ----------
    settings : Settings
        Its settings, checked.
    house : House
        Its models, open.
    tls : dict
        Settings of TLS, as uvicorn names them.
    """
    config = uvicorn.Config(
        Site(Server(settings, house)).app(),
        http=StrictProtocol,
        loop="uvloop",
        ws="none",
        lifespan="on",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=settings.drain_seconds,
        **tls,
    )
    return uvicorn.Server(config)


def bound(settings: Settings) -> socket.socket:
    """Return a socket that listens, or say why there can be none.

    Parameters
    ----------
    settings : Settings
        They have its address.
    """
    made = None
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, proto)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
    except OSError as error:
        if made is not None:
            made.close()
        raise InvalidParameter(
            f"cannot listen at {settings.host} port {settings.port}: {error.strerror}."
        ) from None
    return made


def _tls(settings: Settings) -> dict[str, Any]:
    """Return uvicorn's settings of TLS; refuse files that cannot be read before anything opens."""
    if settings.tls_cert is None or settings.tls_key is None:
        return {}
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(settings.tls_cert, settings.tls_key)
    except (OSError, ssl.SSLError):
        raise InvalidParameter(
            "the files of TLS cannot be read: give a certificate and its key, as PEM."
        ) from None
    return {"ssl_certfile": settings.tls_cert, "ssl_keyfile": settings.tls_key}


def many_files() -> None:
    """Allow as many connections as the system does."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
