"""Servers for tests: in a thread of this process, or in a process of their own."""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, NamedTuple, Self

import uvicorn

from cumae.cli import main
from cumae.serve import quiet_log
from cumae.serve.models import House
from cumae.serve.running import bound, server_of
from cumae.serve.settings import ModelSettings, Settings

SECONDS = 60


class Got(NamedTuple):
    """A reply."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        return next((value for one, value in self.headers if one.lower() == name), None)


def ask(
    port: int, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> Got:
    """Ask once, over a connection of its own."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        line.request(method, path, content, headers or {})
        reply = line.getresponse()
        return Got(reply.status, reply.getheaders(), reply.read())
    finally:
        line.close()


def raw(port: int, sent: bytes, *, wait: float = SECONDS) -> bytes:
    """Send bytes, and return all that comes until the server closes or is silent for a while."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), timeout=wait) as line:
        try:
            line.sendall(sent)
            while piece := line.recv(65_536):
                found += piece
        except (TimeoutError, ConnectionResetError):
            pass
    return found


def v2(rows: list[list[Any]], **more: Any) -> dict[str, Any]:
    """Return the JSON of a request of the Open Inference Protocol."""
    flat = [cell for row in rows for cell in row]
    shape = [len(rows), len(rows[0])]
    return {"inputs": [{"name": "rows", "shape": shape, "datatype": "FP64", "data": flat}], **more}


class InThread:
    """A server in this process, on a real socket.

    Parameters
    ----------
    paths : list of Path
        What it serves.
    estimators : dict from str to object, or None
        As for ``House``.
    **more
        Other settings.
    """

    def __init__(
        self,
        *paths: Path | ModelSettings,
        estimators: dict[str, Any] | None = None,
        **more: Any,
    ) -> None:
        models = tuple(
            one if isinstance(one, ModelSettings) else ModelSettings(str(one)) for one in paths
        )
        settings = replace(Settings(models=models, port=0, drain_seconds=5), **more).checked()
        quiet_log.begin()
        self.listening = bound(settings)
        self.port = self.listening.getsockname()[1]
        self.house = House(settings.models, estimators=estimators)
        self.server = server_of(settings, self.house, {})
        self.thread = threading.Thread(
            target=self.server.run, kwargs={"sockets": [self.listening]}, daemon=True
        )
        self.thread.start()
        until = time.monotonic() + SECONDS
        while not self.server.started and time.monotonic() < until:
            time.sleep(0.01)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Got:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return ask(self.port, method, path, body, named)

    def infer(self, rows: list[list[Any]], model: str = "oracle", **more: Any) -> Got:
        headers = more.pop("headers", {})
        return ask(self.port, "POST", f"/v2/models/{model}/infer", v2(rows, **more), headers)

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join(SECONDS)
        assert not self.thread.is_alive()


class InProcess:
    """``cumae serve`` in a process of its own, by the command that people type.

    Parameters
    ----------
    *words : str
        Its arguments.
    """

    def __init__(self, *words: str) -> None:
        self.told, self.port = "", 0
        self._stderr = self._start(words)
        for line in self._stderr:
            self.told += line
            if match := re.search(r" at https?://\S+:(\d+)$", line.strip()):
                self.port = int(match[1])
                return

    def _start(self, words: tuple[str, ...]) -> IO[str]:
        """Begin, and return what it writes for the log."""
        run = [sys.executable, "-m", "cumae", "serve", *words]
        self._process = subprocess.Popen(run, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        return self._process.stderr

    @property
    def pid(self) -> int:
        return int(self._process.pid)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Got:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return ask(self.port, method, path, body, named)

    def infer(self, rows: list[list[Any]], model: str = "oracle", **more: Any) -> Got:
        return self.ask("POST", f"/v2/models/{model}/infer", v2(rows, **more))

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it; return its exit code."""
        if self._is_alive():
            os.kill(self.pid, number)
        if not self._stderr.closed:  # else it was ended before
            self.told += self._stderr.read()
            self._stderr.close()
        return self._ended()

    def _is_alive(self) -> bool:
        return self._process.poll() is None

    def _ended(self) -> int:
        return int(self._process.wait(SECONDS))


def served(log: Connection, words: tuple[str, ...]) -> None:
    """Serve in this process, as the command does."""
    with log:
        os.dup2(log.fileno(), 2)
    sys.argv = ["cumae", "serve", *words]
    main()


class Forked(InProcess):
    """The same, forked from a process that has loaded its modules: a start costs a second less.

    What a start does beside loading, its exit code and its signals are those of the command.
    """

    target = staticmethod(served)

    def _start(self, words: tuple[str, ...]) -> IO[str]:
        """Fork it, and return what it writes for the log."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(
            ["cumae.cli.app", "cumae.serve.running", "tests.serve.served"]
        )
        reader, writer = context.Pipe(duplex=False)
        self._forked = context.Process(target=self.target, args=(writer, words))
        self._forked.start()
        writer.close()
        with reader:
            return os.fdopen(os.dup(reader.fileno()), encoding="utf-8")

    @property
    def pid(self) -> int:
        assert self._forked.pid is not None
        return self._forked.pid

    def _is_alive(self) -> bool:
        return self._forked.is_alive()

    def _ended(self) -> int:
        self._forked.join(SECONDS)
        assert self._forked.exitcode is not None
        return self._forked.exitcode


def served_and_stopped(log: Connection, words: tuple[str, ...]) -> None:
    """Serve, and send the signal when the address was told, and uvicorn takes none yet."""
    run = uvicorn.Server.run

    def later(self: Any, **given: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        run(self, **given)

    uvicorn.Server.run = later  # type: ignore[method-assign, assignment]
    served(log, words)


class StoppedAtOnce(Forked):
    """One that gets SIGTERM as it starts."""

    target = staticmethod(served_and_stopped)
