"""The tutorials: a newcomer types what a page says, in an empty folder."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cumae.cli import app

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
PAGES = ("first_model", "first_oracle", "first_server", "hospital")
BLOCK = re.compile(r"^```(python|sh|text|toml) ?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PATIENCE = 120.0  # seconds until a server answers, on a busy machine
LENIENT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Reader:
    """Somebody who types what a page says."""

    def __init__(self) -> None:
        self.names: dict[str, object] = {}
        self.servers: list[subprocess.Popen[bytes]] = []

    def python(self, code: str) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(compile(code, "page", "exec"), self.names)  # noqa: S102 - a page of ours
        return said.getvalue()

    def sh(self, line: str) -> str:
        words = shlex.split(line)
        if words[-1] == "&":
            self.start(words[:-1])
            return ""
        if words[0] == "cumae":
            done = CliRunner().invoke(app, words[1:])
            assert done.exit_code == 0, done.output
            return done.stdout or done.output  # some commands speak to standard error alone
        return subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout

    def start(self, words: list[str]) -> None:
        command = [str(Path(sys.executable).parent / words[0]), *words[1:]]
        self.servers.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
        port = words[words.index("--port") + 1]
        end = time.monotonic() + PATIENCE
        while True:
            ready = f"http://127.0.0.1:{port}/v2/health/ready"
            with contextlib.suppress(OSError), urllib.request.urlopen(ready):
                return
            assert time.monotonic() < end, "the server does not answer"
            assert self.servers[-1].poll() is None, "the server has ended"
            time.sleep(0.05)

    def stop(self) -> None:
        for server in self.servers:
            server.send_signal(signal.SIGTERM)
            assert server.wait(PATIENCE) == 0


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    monkeypatch.chdir(tmp_path)
    one = Reader()
    yield one
    one.stop()


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_says_works(name: str, reader: Reader) -> None:
    said = ""
    for kind, file, text in BLOCK.findall((FOLDER / f"{name}.md").read_text(encoding="utf-8")):
        if kind == "python":
            said = reader.python(text)
        elif kind == "sh":
            (line,) = text.splitlines()
            said = reader.sh(line)
        elif kind == "toml":
            Path(file).write_text(text, encoding="utf-8")
        else:
            assert doctest.OutputChecker().check_output(text, f"{said.strip()}\n", LENIENT), said


def test_all_tutorials_are_read() -> None:
    assert {one.stem for one in FOLDER.glob("*.md")} == {*PAGES, "index"}
