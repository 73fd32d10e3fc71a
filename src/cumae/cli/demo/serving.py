"""The end of the demo: both models on a server of this machine, pages for people, and a client."""

from __future__ import annotations

import datetime as dt
import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cumae.cli.demo.steps import Attacked, Interviews
from cumae.errors import StoreFailed

ASKED = 10
SECONDS = 60
MODEL, ORACLE = "model", "oracle"
PAGES = (
    "/",
    f"/models/{MODEL}",
    f"/models/{ORACLE}",
    f"/models/{MODEL}/ask",
    f"/models/{ORACLE}/ask",
    "/admin",
    "/why",
)
ADDRESS = re.compile(r" at (http://127\.0\.0\.1:\d+)$")


def write_settings(folder: Path, attacked: Sequence[Attacked]) -> None:
    """Write what the server needs: its settings, and the audits for the pages of the models.

    Parameters
    ----------
    folder : Path
        The folder of the demo.
    attacked : sequence of Attacked
        The attacks on the model, and those on the oracle.
    """
    today = dt.datetime.now(dt.UTC).date().isoformat()
    for name, found in zip((MODEL, ORACLE), attacked, strict=True):
        audits = [one.to_dict() for one in (*found.audits, *found.planted)]
        found_all = {"settings": {"date": today}, "audits": audits, "left_out": []}
        (folder / f"{name}-audit.json").write_text(json.dumps(found_all), encoding="utf-8")
    tables = [
        f'[[models]]\npath = "{name}.{end}"\naudit = "{name}-audit.json"\n'
        for name, end in ((MODEL, "json"), (ORACLE, "db"))
    ]
    (folder / "serve.toml").write_text("port = 0\n\n" + "\n".join(tables), encoding="utf-8")


@contextmanager
def serving(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run ``cumae serve`` over the folder of a demo; end it at the end.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    (Popen, str)
        The process, and its address.
    """
    command = [sys.executable, "-m", "cumae", "serve", "--config", "serve.toml"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, _address(process)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            process.communicate()


def _address(process: subprocess.Popen[str]) -> str:
    said = ""
    assert process.stderr is not None  # noqa: S101 - for the type checker
    for line in process.stderr:
        said += line
        if found := ADDRESS.search(line.strip()):
            return found[1]
    raise StoreFailed(f"the server did not start:\n{said}")


def ask_both(address: str, interviews: Interviews) -> dict[str, list[int]]:
    """Ask both models about the same people by the Open Inference Protocol, as a program would.

    Parameters
    ----------
    address : str
        The address of the server.
    interviews : Interviews
        The survey.

    Returns
    -------
    dict of str to list of int
        The answers of each model.
    """
    rows = interviews.questions.iloc[:ASKED].to_numpy(dtype=float)
    given = {"name": "rows", "shape": list(rows.shape), "datatype": "FP64"}
    body = {"id": "demo", "inputs": [{**given, "data": rows.ravel().tolist()}]}
    found = {}
    for name in (MODEL, ORACLE):
        sent = json.dumps(body).encode()
        reply = _read(f"{address}/v2/models/{name}/infer", sent, {})
        found[name] = list(json.loads(reply)["outputs"][0]["data"])
    return found


def check_pages(address: str) -> int:
    """Load every page of the server; return how many there are.

    Parameters
    ----------
    address : str
        The address of the server.

    Raises
    ------
    StoreFailed
        If one of them is not a page.
    """
    for path in PAGES:
        page = _read(address + path, None, {"Accept": "text/html"}).decode()
        if "<h1>" not in page:
            raise StoreFailed(f"{path} is no page.")
    return len(PAGES)


def _read(address: str, sent: bytes | None, headers: dict[str, Any]) -> bytes:
    request = urllib.request.Request(address, sent, headers)  # noqa: S310 - of this machine
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=SECONDS) as reply:
        found: bytes = reply.read()
    return found
