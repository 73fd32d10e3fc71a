"""A real PostgreSQL server for tests, on a socket in a folder of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from tests.oracles import Where

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))  # where Debian has them
USER = "nobody"  # PostgreSQL refuses to run as root


class PostgresServer:
    """A server that can be stopped, killed and started again; only sockets lead to it.

    Parameters
    ----------
    settings : str
        Lines of postgresql.conf.
    """

    def __init__(self, settings: str = "") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cumae-", dir="/tmp"))
        self.data = self.folder / "data"
        if os.geteuid() == 0:
            shutil.chown(self.folder, USER)
        flags = ["--no-sync", "--auth=trust", "--username=owner", "--encoding=UTF8", "--no-locale"]
        self._run("initdb", "-D", str(self.data), *flags)
        conf = self.data / "postgresql.conf"
        own = (
            f"listen_addresses = ''\nunix_socket_directories = '{self.folder}'\n"
            "max_wal_size = 64MB\nshared_buffers = 16MB\nmax_connections = 40\n"
        )
        conf.write_text(f"{conf.read_text(encoding='utf-8')}\n{own}{settings}\n", encoding="utf-8")
        self.start()

    def _as_user(self) -> dict[str, Any]:
        if os.geteuid() != 0:
            return {}
        return {"user": USER, "group": "nogroup", "extra_groups": []}

    def _run(self, name: str, *words: str) -> None:
        subprocess.run(
            [str(PROGRAMS[-1] / name), *words],
            check=True,
            capture_output=True,
            cwd=self.folder,
            **self._as_user(),
        )

    def start(self) -> None:
        """Start it, and wait until it answers."""
        log = (self.folder / "log").open("ab")
        self.process = subprocess.Popen(
            [str(PROGRAMS[-1] / "postgres"), "-D", str(self.data)],
            stdout=log,
            stderr=log,
            cwd=self.folder,
            **self._as_user(),
        )
        log.close()
        self._wait()

    def _wait(self) -> None:
        """Wait until it answers."""
        until = time.monotonic() + 60
        while True:
            try:
                self.execute("SELECT 1")
            except psycopg.Error:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.05)
            else:
                return

    def address(self, schema: str = "public", database: str = "postgres", user: str = "") -> str:
        """Return an address for ``cumae.open``."""
        who = user or "owner"
        return f"postgresql://{who}@/{database}?host={self.folder}&options=-csearch_path%3D{schema}"

    def execute(self, text: str, schema: str = "public", user: str = "") -> list[Any]:
        """Run a statement; return its rows."""
        with psycopg.connect(self.address(schema, user=user), autocommit=True) as connection:
            cursor = connection.execute(text)
            return cursor.fetchall() if cursor.description else []

    def kill(self) -> None:
        """Kill all of its processes at once, as a loss of power would."""
        listed = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)],
            capture_output=True,
            text=True,
            check=False,
        )
        for process in [self.process.pid, *map(int, listed.stdout.split())]:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.process.wait()
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        time.sleep(0.2)  # until the kernel has taken back their memory

    def kill_session(self, process: int) -> None:
        """Kill the process of a session; all others end, and the server recovers by itself."""
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        time.sleep(0.2)  # until the server has noticed it
        self._wait()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT ends sessions, SIGQUIT is an immediate shutdown."""
        self.process.send_signal(how)
        self.process.wait(60)

    def remove(self) -> None:
        """Stop it, and remove its files."""
        if self.process.poll() is None:
            self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder)


def new_schema(server: PostgresServer, folder: Path) -> Where:
    """Return a schema of its own for an oracle, and a key folder."""
    schema = f"s{uuid.uuid4().hex[:12]}"
    server.execute(f"CREATE SCHEMA {schema}")
    keys = folder / "keys"
    return Where(server.address(schema), f"folder:{keys}", keys, server)
