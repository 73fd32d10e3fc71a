"""A server that is asked for long: flat memory, a ledger of what was answered, and slow clients."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cumae
from cumae import store
from tests.oracles import ROWS, everlasting
from tests.serve.served import InThread, v2

CLIENTS = 8
PHASE = len(ROWS)  # answers
WARM, MEASURED = 3, 3  # phases
MOST_GROWTH = (
    40_000  # bytes over all measured phases: 33 for each answer would be a leak of one row
)
KINDS = 4  # of requests, in turn


def request(number: int, port: int, name: str = "") -> bytes:
    """Return one of several kinds of requests for one answer."""
    body = v2([[number % 97 / 97]]) if number % KINDS else v2([[None]])
    if name or number % KINDS == 1:
        body["id"] = name or f"{number:08d}"
    content = json.dumps(body).encode()
    head = f"POST /v2/models/oracle/infer HTTP/1.1\r\nHost: localhost:{port}\r\n"
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


async def answered(reader: Any) -> bool:
    """Read a reply; tell whether it has an answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    await reader.readexactly(int(length))
    return bool(head.startswith(b"HTTP/1.1 200 "))


async def asked(line: Any, sent: bytes) -> bool:
    """Send a request over a connection; tell whether it was answered."""
    line[1].write(sent)
    return await answered(line[0])


async def ended(line: Any) -> None:
    line[1].close()
    await line[1].wait_closed()


async def client(port: int, numbers: range) -> int:
    """Ask over one connection, wrongly at times, hang up once and come again; count answers."""
    count, line = 0, await asyncio.open_connection("127.0.0.1", port)
    for place, number in enumerate(numbers):
        sent = request(number, port)
        if place == len(numbers) // 2:
            sent = request(number, port, f"left {number}")
            left = await asyncio.open_connection("127.0.0.1", port)
            left[1].write(sent)
            await ended(left)  # the answer is kept
        if place % 10 == 0:
            wrong = await asyncio.open_connection("127.0.0.1", port)
            assert not await asked(wrong, sent.replace(b'"FP64"', b'"FP65"'))
            await ended(wrong)
        count += await asked(line, sent)
    await ended(line)
    return count


async def phase(port: int, first: int) -> int:
    """Ask as much as a phase answers, from several connections; return how many answers came."""
    numbers = [range(first + place, first + PHASE, CLIENTS) for place in range(CLIENTS)]
    return sum(await asyncio.gather(*(client(port, own) for own in numbers)))


def test_memory_is_flat_and_the_ledger_has_what_was_acknowledged(tmp_path: Path) -> None:
    """Sizes are compared at the ends of phases, because an oracle keeps the queries of a phase."""
    everlasting().save_to(tmp_path / "oracle.db")
    sizes, acknowledged = [], 0
    with InThread(tmp_path / "oracle.db") as running:
        for number in range(WARM + MEASURED):
            if number == WARM - 1:
                tracemalloc.start()
            acknowledged += asyncio.run(phase(running.port, number * PHASE))
            gc.collect()
            if tracemalloc.is_tracing():
                sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert running.house.models["oracle"].model.phase_ == WARM + MEASURED
    assert acknowledged == (WARM + MEASURED) * PHASE
    totals = store.status(tmp_path / "oracle.db").totals
    assert (totals.answers, totals.charged) == (acknowledged, 0)
    # What leaks grows with each phase; something may be loaded once, in any of them.
    assert np.median(np.diff(sizes)) * MEASURED < MOST_GROWTH, sizes


def test_who_takes_no_reply_is_left_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each of many connections would hold a large reply in memory for ever."""
    monkeypatch.setattr("cumae.serve.running.IDLE_SECONDS", 0.5)
    x = np.random.default_rng(0).random((500, 1))
    model = cumae.PrivateBooster(50.0, columns=[(0, 1)])
    model.fit(x, (x[:, 0] > 0.5).astype(int)).save(tmp_path / "model.json")
    rows = json.dumps({"instances": [0.5] * 50_000}).encode()
    line = "POST /v1/models/model:predict HTTP/1.1\r\nHost: localhost\r\n"
    with InThread(tmp_path / "model.json") as running:
        running.listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8_192)
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
        slow.connect(("127.0.0.1", running.port))
        slow.sendall(f"{line}Content-Length: {len(rows)}\r\n\r\n".encode() + rows)
        connections = running.server.server_state.connections
        until = time.monotonic() + 30
        seen = 0
        while time.monotonic() < until and (not seen or connections):
            seen = max(seen, len(connections))
            time.sleep(0.02)
        assert seen == 1
        assert not connections
        assert running.infer([[0.5]], "model").status == 200
        slow.close()


def test_many_slow_clients_stop_nobody(tmp_path: Path) -> None:
    """They send byte after byte, in all parts of a request, and are answered in the end."""
    everlasting().save_to(tmp_path / "oracle.db")
    count = 100
    with InThread(tmp_path / "oracle.db") as running:
        sent = [request(number, running.port) for number in range(count)]
        lines = [socket.create_connection(("127.0.0.1", running.port)) for _ in sent]
        for turn in range(40):
            for place, (line, content) in enumerate(zip(lines, sent, strict=True)):
                begin = turn * len(content) // 40
                line.sendall(content[begin : (turn + 1) * len(content) // 40])
                if place == turn:
                    assert running.infer([[0.5]]).status == 200
        for line in lines:
            assert line.recv(13) == b"HTTP/1.1 200 "
            line.close()
    assert store.status(tmp_path / "oracle.db").totals.answers == count + 40
