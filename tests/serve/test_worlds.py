"""Two worlds that differ in one row or one question: who watches all addresses sees the same bytes.

Coins and clocks are fixed. What an answer says differs between worlds, and is not among the pages
of others.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cumae
from cumae.randomness import SeededSource, SystemSource
from cumae.serve import app
from cumae.serve.app import Server
from cumae.serve.models import House
from cumae.serve.pages import operating
from cumae.serve.pages.desk import PageDesk
from cumae.serve.pages.site import Site
from cumae.serve.settings import ModelSettings, Settings
from tests.oracles import ROWS, SHARED
from tests.serve.served import v2

NOW = 2_000_000_000.0
PAGES = ["/", "/models/oracle", "/models/oracle/ask", "/models/oracle/label", "/admin", "/why"]
TWINS = ["/index.json", "/models/oracle.json", "/models/oracle/ask.json", "/admin.json", "/models"]
TWINS += ["/metrics", "/v2/models/oracle", "/v2/models/oracle/ready", "/v1/models/oracle", "/ping"]
TWINS += ["/openapi.json", "/v2/models/nothing", "/models/nothing.json"]
QUESTIONS = np.linspace(0, 1, 40).tolist()
Calls = list[tuple[str, str, Any, str]]


async def called(asgi: Any, method: str, path: str, body: Any, accept: str) -> bytes:
    """Return all that a request gets: status, headers and body."""
    sent = b"" if body is None else json.dumps(body).encode()
    headers = [(b"host", b"localhost"), (b"accept", accept.encode())]
    headers += [(b"content-length", str(len(sent)).encode())]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "scheme": "http",
        "client": ("127.0.0.1", 1),
    }
    found: list[bytes] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": sent, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        found.append(repr(sorted(message.get("headers", []))).encode())
        found.append(str(message.get("status", "")).encode() + message.get("body", b""))

    await asgi(scope, receive, send)
    return b"\n".join(found)


def watched() -> Calls:
    """Return requests of somebody who looks at all pages."""
    html = [("GET", path, None, "text/html") for path in PAGES]
    index = ("POST", "/v2/repository/index", None, "*/*")
    return [*html, *(("GET", path, None, "application/json") for path in TWINS), index]


def seen(
    folder: Path, first: tuple[float, int], questions: list[Any], leaks: bool = False
) -> list[bytes]:
    """Return what somebody sees who loads all pages before and after others ask.

    Parameters
    ----------
    folder : Path
        Where the oracle is.
    first : pair of float and int
        The first row and its label.
    questions : list
        What others ask.
    leaks : bool
        Whether the server has a planted bug: it counts answers of one class as refusals.
    """
    with pytest.MonkeyPatch.context() as patch:
        coins = SeededSource(1)
        patch.setattr(SystemSource, "words", lambda _, count: coins.words(count))
        patch.setattr(app, "time", SimpleNamespace(monotonic=lambda: 0.0))
        disk = SimpleNamespace(disk_usage=lambda _: SimpleNamespace(free=1, total=2))
        patch.setattr(operating, "shutil", disk)
        rows = ROWS.copy()
        labels = (rows[:, 0] > 0.3).astype(int)
        rows[0, 0], labels[0] = first
        folder.mkdir()
        made = cumae.EverlastingPredictor(cumae.concepts.Thresholds(), **SHARED)
        made.fit(rows, labels).save_to(folder / "oracle.db")
        settings = Settings((ModelSettings(str(folder / "oracle.db")),)).checked()
        server = Server(settings, House(settings.models))
        if leaks:
            _plant(server)
        return asyncio.run(_watching(server, questions))


async def _watching(server: Server, questions: list[Any]) -> list[bytes]:
    """Watch, let others ask until the phase changes, and watch again."""
    desk = PageDesk(server, SeededSource(2), lambda: NOW)
    asgi = Site(server, desk).app()
    found: list[bytes] = []
    async with server.lifespan(None):
        found += [await called(asgi, *call) for call in watched()]
        for part in range(11):
            body = v2([[one] for one in questions], id=f"{part}")
            reply = await called(asgi, "POST", "/v2/models/oracle/infer", body, "*/*")
            assert b"outputs" in reply
        desk.looks._found.clear()  # as a minute later
        found += [await called(asgi, *call) for call in watched()]
    return found


def _plant(server: Server) -> None:
    answers = server.answers

    async def counted(*given: Any) -> Any:
        found = await answers(*given)
        server.metrics.refusals["planted"] += int((np.asarray(found) == 0).sum())
        return found

    server.answers = counted  # type: ignore[assignment, method-assign]


@pytest.mark.claim("PAGES")
def test_pages_of_two_worlds_are_the_same_bytes(tmp_path: Path) -> None:
    base = seen(tmp_path / "base", (0.9, 1), QUESTIONS)
    for name, first, last in (("row", (0.1, 1), 0.99), ("question", (0.9, 1), 0.01)):
        assert seen(tmp_path / name, first, [*QUESTIONS[:-1], last]) == base
    unusable = seen(tmp_path / "cell", (0.9, 1), [*QUESTIONS[:-1], None])
    assert unusable == base
    assert b'"phase": 2' in base[-len(TWINS) - 1 + TWINS.index("/models/oracle.json")]
    assert b'rows_total{model="oracle"} 440' in base[-len(TWINS) - 1 + TWINS.index("/metrics")]


@pytest.mark.claim("PAGES")
def test_a_planted_count_of_answers_shows_in_the_pages(tmp_path: Path) -> None:
    one, other = (
        seen(tmp_path / name, (0.9, 1), [*QUESTIONS[:-1], last], leaks=True)
        for name, last in (("one", 0.99), ("other", 0.01))
    )
    assert one != other
