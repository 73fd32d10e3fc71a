"""Attacks on the server by those who may reach it: on its reader of HTTP, on sizes and on types."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import json
import socket
import struct
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.tree import DecisionTreeClassifier

import cumae
from tests.oracles import SHARED, everlasting
from tests.serve.served import InThread, raw, v2

BIG = 2**60
DAYS = (dt.date(2020, 1, 1), dt.date(2022, 1, 1))
COLUMNS: dict[str, Any] = {
    "key": [BIG, BIG + 1],
    "flag": [False, True],
    "day": DAYS,
    "age": (0, 1, "missing"),
    "job": ["nurse", "Bäcker", None],
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    """Return a server with one column, 300 columns, and an oracle for each kind of column."""
    folder = tmp_path_factory.mktemp("attacked")
    everlasting(growth=10.0).save_to(folder / "oracle.db")
    rng = np.random.default_rng(3)
    half = rng.random(4_000) < 0.5
    frame = pd.DataFrame(
        {
            "key": BIG + half,
            "flag": half,
            "day": [DAYS[one] for one in half.astype(int)],
            "age": half * 0.8 + 0.1,
            "job": np.where(half, "nurse", "Bäcker"),
        }
    )
    tree = DecisionTreeClassifier(max_depth=1)
    given = {**SHARED, "shard_size": 40}
    for name, column in COLUMNS.items():  # each decides alone
        columns = {name: column, "noise": (0, 1)}
        table = frame[[name]].assign(noise=rng.random(4_000))
        one = cumae.EverlastingPredictor(tree, columns=columns, **given)
        one.fit(table, half.astype(int)).save_to(folder / f"{name}.db")
    wide = rng.random((4_000, 300)) < 0.5
    broad = cumae.EverlastingPredictor(tree, columns=[(0, 1)] * 300, **given)
    broad.fit(wide.astype(float), wide[:, 250].astype(int)).save_to(folder / "wide.db")
    with InThread(*sorted(folder.glob("*.db"))) as running:
        yield running


def charged(server: InThread, model: str = "oracle") -> int:
    return int(server.house.models[model].model.answered_)


HEAD = b"POST /v2/models/oracle/infer HTTP/1.1\r\nHost: localhost\r\n"
BODY = json.dumps(v2([[0.9]])).encode()
SIZED = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


def chunked(head: bytes, after: bytes, extension: bytes = b"") -> bytes:
    pieces = b"%x%b\r\n%b\r\n0\r\n%b\r\n" % (len(BODY), extension, BODY, after)
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + pieces


# --- HTTP


def test_what_follows_a_body_in_pieces_is_no_header(server: InThread) -> None:
    """Else a client behind a proxy could name somebody else after the proxy has looked."""
    for trailer in (b"Origin: https://elsewhere.example\r\n", b"Authorization: a\r\n" * 2):
        told = raw(server.port, chunked(HEAD + b"Connection: close\r\n", trailer))
        assert told.startswith(b"HTTP/1.1 200"), told[:80]
        assert raw(server.port, chunked(HEAD + trailer, b"")).startswith(b"HTTP/1.1 40")


def test_requests_in_a_row_are_answered_in_a_row(server: InThread) -> None:
    before = charged(server)
    last = SIZED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
    told = raw(server.port, SIZED * 20 + last)
    assert told.count(b"HTTP/1.1 200 OK") == 21
    assert charged(server) == before + 21
    spoiled = SIZED + HEAD + b"Content-Length: 1\r\n\r\n{" + SIZED
    told = raw(server.port, spoiled)
    assert told.count(b"HTTP/1.1 200 OK") == told.count(b"HTTP/1.1 400 ") == 1  # and it is closed
    assert charged(server) == before + 22


HEADS = {
    "many small headers": (b"GET /v2 HTTP/1.1\r\n" + b"A:b\r\n" * 20_000 + b"\r\n", 400),
    "many trailers": (chunked(HEAD, b"A: b\r\n" * 20_000), 400),
    "a method in small letters": (b"get /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "HTTP/2 at once": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "a tunnel": (b"CONNECT a:443 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "an address of bytes": (b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "lines without a return": (b"GET /v2 HTTP/1.1\nHost: localhost\n\n", 400),
    "a body packed on its way": (chunked(HEAD + b"Transfer-Encoding: gzip\r\n", b""), 400),
    "a body packed in one line": (
        chunked(HEAD, b"").replace(b"Encoding: chunked", b"Encoding: gzip, chunked"),
        415,
    ),
    "a piece of no size": (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    "a piece of negative size": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n-5\r\nabc", 400),
    "a piece of 2^64": (HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400),
    "two hosts": (b"GET /v2 HTTP/1.1\r\nHost: localhost\r\nHost: b\r\n\r\n", 400),
}


@pytest.mark.parametrize("case", HEADS)
def test_strange_heads_are_refused_and_the_server_goes_on(server: InThread, case: str) -> None:
    sent, status = HEADS[case]
    before = charged(server)
    told = raw(server.port, sent, wait=5)
    if case == "many trailers":  # the request before them is whole, and may be answered
        assert told.startswith((b"HTTP/1.1 400", b"HTTP/1.1 200"))
        assert told.count(b"HTTP/1.1 ") <= 2
        return
    assert told.startswith(b"HTTP/1.1 %d " % status), told[:80]
    assert set(json.loads(told.partition(b"\r\n\r\n")[2])) == {"error", "code"}
    assert charged(server) == before
    assert server.ask("GET", "/v2/health/ready").status == 200


def test_a_client_may_wait_until_it_may_send(server: InThread) -> None:
    head = SIZED.partition(b"\r\n\r\n")[0]
    told = raw(server.port, head + b"\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n" + BODY)
    assert told.startswith(b"HTTP/1.1 100 ")
    assert told.count(b"HTTP/1.1 200 ") == 1


def test_who_sends_half_a_body_and_leaves_is_charged_nothing(server: InThread) -> None:
    before = charged(server)
    for sent in (SIZED[:-5], chunked(HEAD, b"")[:-8], HEAD[:-4]):
        with socket.create_connection(("127.0.0.1", server.port)) as line:
            line.sendall(sent)
    assert server.infer([[0.5]]).status == 200
    assert charged(server) == before + 1


def test_ids_in_body_and_header_are_one_or_refused(server: InThread) -> None:
    before = charged(server)
    path = "/v2/models/oracle/infer"
    assert server.ask("POST", path, v2([[0.4]]), Idempotency_Key="k").status == 200
    assert server.ask("POST", path, v2([[0.4]], id="k")).status == 200
    assert server.ask("POST", path, v2([[0.4]], id="k"), Idempotency_Key="k").status == 200
    assert charged(server) == before + 1
    assert server.ask("POST", path, v2([[0.4]], id="k"), Idempotency_Key="l").status == 400
    assert server.ask("POST", path, v2([[0.4]]), Idempotency_Key="l" * 257).status == 400
    assert server.ask("POST", path, v2([[0.3]]), Idempotency_Key="k").status == 409
    assert charged(server) == before + 1


# --- sizes


def cpu(work: Any) -> float:
    """Return the seconds of CPU that this process, in which the server is, takes for something."""
    began = time.process_time()
    work()
    return time.process_time() - began


def test_many_packed_parts_cost_no_more_than_one(server: InThread) -> None:
    """Each part was copied with all that follow it: 16 MB of them took minutes."""
    empty = gzip.compress(b"")
    path, packed = "/v2/models/oracle/infer", {"Content_Encoding": "gzip"}
    sent = empty * 400_000  # 8 MB
    took = cpu(lambda: server.ask("POST", path, sent, **packed))
    assert server.ask("POST", path, sent, **packed).status == 400
    assert took < 5
    middle = len(BODY) // 2
    parts = gzip.compress(BODY[:middle]) + gzip.compress(BODY[middle:])
    assert server.ask("POST", path, parts, **packed).status == 200
    assert server.ask("POST", path, parts[:-1], **packed).status == 400


def test_a_parquet_file_that_unpacks_to_much_is_refused_before_it_does(server: InThread) -> None:
    table = pa.table({"x0": ["a" * 70_000_000]})
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", use_dictionary=False)
    assert len(file.getvalue()) < 1_000_000
    typed = {"Content_Type": "application/vnd.apache.parquet"}
    got = server.ask("POST", "/invocations", file.getvalue(), **typed)
    assert got.status == 413
    small = io.BytesIO()
    pq.write_table(pa.table({"x0": [0.9]}), small)
    got = server.ask("POST", "/models/oracle/invocations", small.getvalue(), **typed)
    assert got.json == {"predictions": [1]}


FAR = [  # the second one of each is 2020-01-01
    pa.array([2**30, 18_262], type=pa.date32()),
    pa.array([2**60, 1_577_836_800_000_000], type=pa.timestamp("us")),
]


@pytest.mark.claim("SERVE")
def test_a_strange_cell_of_a_file_is_unusable_and_not_refused(server: InThread) -> None:
    """A refusal counts nothing, and so would tell the cell to those who see counts."""
    before = charged(server, "day")
    for column in (*FAR, pa.array([None, "b"])):
        file = io.BytesIO()
        pq.write_table(pa.table({"day": column, "noise": [0.5, 0.5]}), file)
        typed = {"Content_Type": "application/vnd.apache.parquet"}
        got = server.ask("POST", "/models/day/invocations", file.getvalue(), **typed)
        assert got.status == 200, got
        assert got.json["predictions"][0] == -1
    lines = b"day,noise\n" + b"x" * 200_000 + b",0.5\n2022-01-01,0.5\n"
    got = server.ask("POST", "/models/day/invocations", lines, Content_Type="text/csv")
    assert got.json == {"predictions": [-1, 1]}
    assert charged(server, "day") == before + 8


# --- types


def columns_of(name: str, datatype: str, values: list[Any]) -> dict[str, Any]:
    """Return a request with one tensor for each of two columns."""
    shape = [len(values), 1]
    first = {"name": name, "shape": shape, "datatype": datatype, "data": values}
    noise = {"name": "noise", "shape": shape, "datatype": "FP64", "data": [0.5] * len(values)}
    return {"inputs": [first, noise]}


SAME: list[tuple[str, str, list[Any], list[int]]] = [
    ("key", "INT64", [BIG, BIG + 1], [0, 1]),
    ("key", "UINT64", [BIG, BIG + 1], [0, 1]),
    ("flag", "BOOL", [False, True], [0, 1]),
    ("flag", "INT64", [0, 1], [0, 1]),
    ("day", "BYTES", ["2020-01-01", "2022-01-01"], [0, 1]),
    ("day", "BYTES", ["2020-01-01T00:00:00", "2022-01-01"], [0, 1]),
    ("day", "BYTES", ["never", "2022-01-01"], [-1, 1]),
    ("age", "FP32", [0.1, 0.9], [0, 1]),
    ("age", "FP64", [float("inf"), 0.9], [-1, 1]),
    ("job", "BYTES", ["Bäcker", "nurse"], [0, 1]),
]


@pytest.mark.parametrize("case", SAME, ids=str)
def test_cells_of_all_types_arrive_as_they_were_sent(
    server: InThread, case: tuple[str, str, list[Any], list[int]]
) -> None:
    """Each answer counts, as rows and in bytes as well; whole numbers keep all their digits."""
    name, datatype, values, answers = case
    before = charged(server, name)
    given = columns_of(name, datatype, values)
    body = json.dumps(given).encode()
    got = server.ask("POST", f"/v2/models/{name}/infer", body).json["outputs"][0]["data"]
    rows = json.dumps({"instances": [{name: one, "noise": 0.5} for one in values]}).encode()
    told = server.ask("POST", f"/v1/models/{name}:predict", rows).json["predictions"]
    assert got == told == answers
    assert charged(server, name) == before + 2 * len(values)
    if datatype in ("INT64", "UINT64", "BOOL"):
        packed = struct.pack({"INT64": "<2q", "UINT64": "<2Q", "BOOL": "<2?"}[datatype], *values)
        del given["inputs"][0]["data"]
        given["inputs"][0]["parameters"] = {"binary_data_size": len(packed)}
        head = json.dumps(given).encode()
        named = {"Inference_Header_Content_Length": str(len(head))}
        got = server.ask("POST", f"/v2/models/{name}/infer", head + packed, **named)
        assert got.json["outputs"][0]["data"] == answers


def test_strange_texts_and_missing_cells_are_answered_and_counted(server: InThread) -> None:
    before = charged(server, "job"), charged(server, "age")
    jobs: list[Any] = ["\ud800", None, 5, True, "a" * 1_000_000, [], {}, float("nan"), 10**400]
    rows = [{"job": one, "noise": 0.5} for one in jobs]
    got = server.ask("POST", "/v1/models/job:predict", json.dumps({"instances": rows}).encode())
    assert set(got.json["predictions"]) <= {0, 1, -1}
    ages: list[Any] = [None, "0.9", True, [], -1e308, 10**400]
    rows = [{"age": one, "noise": 0.5} for one in ages]
    got = server.ask("POST", "/v1/models/age:predict", json.dumps({"instances": rows}).encode())
    assert set(got.json["predictions"]) <= {0, 1, -1}
    after = charged(server, "job"), charged(server, "age")
    assert after == (before[0] + len(jobs), before[1] + len(ages))


def test_three_hundred_columns_of_zeros_and_ones(server: InThread) -> None:
    rows = np.zeros((3, 300))
    rows[1, 250] = 1
    rows[2, 7] = np.nan
    body = json.dumps({"instances": rows.tolist()}).encode()  # with NaN
    assert server.ask("POST", "/v1/models/wide:predict", body).json["predictions"] == [0, 1, -1]
    tensor: dict[str, Any] = {"name": "rows", "shape": [3, 300], "datatype": "BOOL"}
    packed = np.nan_to_num(rows).astype(np.uint8).tobytes()
    tensor["parameters"] = {"binary_data_size": len(packed)}
    head = json.dumps({"inputs": [tensor]}).encode()
    named = {"Inference_Header_Content_Length": str(len(head))}
    got = server.ask("POST", "/v2/models/wide/infer", head + packed, **named)
    assert got.json["outputs"][0]["data"] == [0, 1, 0]
    before = charged(server, "wide")
    for width in (299, 301):
        body = json.dumps(v2([[0.5] * width])).encode()
        assert server.ask("POST", "/v2/models/wide/infer", body).status == 400
    assert charged(server, "wide") == before


def test_random_bytes_at_the_socket_stop_nothing(server: InThread) -> None:
    rng = np.random.default_rng(11)
    for _ in range(30):
        place, size = rng.integers(0, len(SIZED), 2)
        sent = bytearray(SIZED)
        sent[place : place + size % 9] = rng.bytes(int(size % 9))
        told = raw(server.port, bytes(sent) + b"\r\n", wait=0.05)
        assert b"HTTP/1.1 500" not in told
    assert server.infer([[0.5]]).status == 200
