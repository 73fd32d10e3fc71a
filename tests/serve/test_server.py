"""The server over real sockets: statuses, ids, limits, and what does not leave it."""

from __future__ import annotations

import gzip
import json
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cumae
from cumae.concepts import Thresholds
from cumae.predictors.stateful import counter_of
from cumae.serve.access import Limits
from cumae.serve.asking import OracleThread
from cumae.serve.errors import Refused
from cumae.serve.keys import KeyFile, new_key
from cumae.serve.settings import ModelSettings
from tests.oracles import SHARED, everlasting
from tests.serve.served import InThread, ask, raw, v2

MARK = "quokka"  # a text that must not be seen anywhere
MARKED = 0.7318462951


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an oracle, a published model and a release with few answers."""
    made = tmp_path_factory.mktemp("served")
    everlasting().save_to(made / "oracle.db")
    everlasting(client_cap=0.5).save_to(made / "capped.db")
    x = np.random.default_rng(0).random((2_000, 1))
    y = (x[:, 0] > 0.5).astype(int)
    few = cumae.QueryRelease(Thresholds(), max_queries=5, epsilon=50.0, columns=[(0, 1)])
    few.fit(x, y).save_to(made / "few.db")
    frame = pd.DataFrame({"age": x[:, 0], "job": np.where(y, "nurse", "baker")})
    columns = {"age": (0, 1), "job": ["nurse", "baker"]}
    booster = cumae.PrivateBooster(50.0, columns=columns, classes=("no", "yes"))
    booster.fit(frame, np.where(y, "yes", "no")).save(made / "model.json")
    return made


@pytest.fixture(scope="module")
def keys(folder: Path) -> dict[str, str]:
    """Return keys by what they are for."""
    file, found = KeyFile(folder / "access.json"), {}
    wanted: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
        "ask": ("ward", ("ask",), {}),
        "other": ("clinic", ("ask",), {}),
        "label": ("ward", ("label",), {}),
        "look": ("desk", ("look",), {}),
        "admin": ("chief", ("admin",), {}),
        "model": ("ward", ("ask", "look"), {"models": ("model",)}),
        "slow": ("slow", ("ask",), {"rate": 2.0}),
        "short": ("short", ("ask",), {"answers": 3}),
        "old": ("old", ("ask",), {"expires": "2020-01-01"}),
    }
    for name, (client, roles, more) in wanted.items():
        key, found[name] = new_key(client, roles, **more)
        file.add(key)
    return found


@pytest.fixture(scope="module")
def server(folder: Path, keys: dict[str, str]) -> Iterator[InThread]:
    """Return a server with keys."""
    paths = [folder / name for name in ("oracle.db", "capped.db", "few.db", "model.json")]
    with InThread(*paths, access=str(folder / "access.json"), most_rows=20_000) as running:
        yield running


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def infer(
    server: InThread, key: str, rows: list[list[Any]], model: str = "oracle", **more: Any
) -> Any:
    return server.infer(rows, model, headers=bearer(key), **more)


def answered(server: InThread, model: str = "oracle") -> int:
    return int(server.house.models[model].model.answered_)


def test_all_protocols_give_the_same_answers(server: InThread, keys: dict[str, str]) -> None:
    rows: list[list[Any]] = [[0.1], [0.9], [None]]
    port, key = server.port, bearer(keys["ask"])
    assert infer(server, keys["ask"], rows).json["outputs"][0]["data"] == [0, 1, -1]
    told = ask(port, "POST", "/v1/models/oracle:predict", {"instances": rows}, key).json
    assert told == {"predictions": [0, 1, -1]}
    for path in ("/invocations", "/models/oracle/invocations"):
        typed = {**key, "Content-Type": "application/json; charset=utf-8"}
        assert ask(port, "POST", path, {"inputs": rows}, typed).json == told
    head = v2(rows)
    del head["inputs"][0]["data"]
    head["inputs"][0]["parameters"] = {"binary_data_size": 24}
    head["parameters"] = {"binary_data_output": True}
    text = json.dumps(head).encode()
    body = gzip.compress(text + np.array([0.1, 0.9, np.nan]).tobytes())
    more = {"Inference-Header-Content-Length": str(len(text)), "Content-Encoding": "gzip"}
    got = ask(port, "POST", "/v2/models/oracle/versions/1/infer", body, {**key, **more})
    size = int(got.header("inference-header-content-length") or 0)
    assert np.frombuffer(got.body[size:], "<i8").tolist() == [0, 1, -1]
    assert got.header("content-encoding") is None


def test_columns_with_names_and_texts(server: InThread, keys: dict[str, str]) -> None:
    key, port = bearer(keys["ask"]), server.port
    told = ask(port, "GET", "/v2/models/model", None, key).json
    assert [one["datatype"] for one in told["inputs"]] == ["FP64", "BYTES"]
    assert told["outputs"][0]["datatype"] == "BYTES"
    records = [{"job": "nurse", "age": 0.9}, {"age": 0.1, "job": "baker"}]
    got = ask(port, "POST", "/v1/models/model:predict", {"instances": records}, key)
    assert got.json["predictions"] == ["yes", "no"]
    wrong = [{"job": "nurse", MARK: 1}]
    got = ask(port, "POST", "/v1/models/model:predict", {"instances": wrong}, key)
    assert got.status == 400
    assert MARK.encode() not in got.body


STATUSES = [
    (401, "POST", "/v2/models/oracle/infer", "", {}),
    (401, "POST", "/v2/models/oracle/infer", "", {"Authorization": "Bearer " + MARK}),
    (401, "POST", "/v2/models/oracle/infer", "", {"Authorization": "Basic " + MARK}),
    (401, "POST", "/v2/models/oracle/infer", "old", {}),
    (403, "POST", "/v2/models/oracle/infer", "look", {}),
    (403, "POST", "/v2/models/oracle/infer", "model", {}),
    (403, "POST", "/v2/models/" + MARK + "/infer", "model", {}),
    (403, "GET", "/metrics", "ask", {}),
    (403, "GET", "/models", "ask", {}),
    (403, "POST", "/models/oracle/labels", "ask", {}),
    (404, "GET", "/" + MARK, "", {}),
    (404, "GET", "/v2/models/" + MARK, "ask", {}),
    (404, "POST", "/v2/models/oracle/versions/2/infer", "ask", {}),
    (404, "GET", "/v2/models/oracle/config", "ask", {}),
    (404, "GET", "/v2/models/oracle/stats", "ask", {}),
    (404, "GET", "/v2/models/oracle%2Finfer", "ask", {}),
    (405, "GET", "/v2/models/oracle/infer", "ask", {}),
    (405, "DELETE", "/v2", "ask", {}),
    (415, "POST", "/v2/models/oracle/infer", "ask", {"Content-Encoding": "br"}),
    (415, "POST", "/invocations", "ask", {"Content-Type": "text/" + MARK}),
    (400, "POST", "/v2/models/oracle/infer", "ask", {"Upgrade": "h2c", "Connection": "Upgrade"}),
    (400, "POST", "/v2/models/oracle/infer", "ask", {"Inference-Header-Content-Length": MARK}),
    (400, "POST", "/v1/models/oracle:predict", "ask", {"Content-Encoding": "gzip"}),
]


@pytest.mark.parametrize(("status", "method", "path", "key", "headers"), STATUSES)
def test_refusals_have_one_shape_and_echo_nothing(
    server: InThread,
    keys: dict[str, str],
    status: int,
    method: str,
    path: str,
    key: str,
    headers: dict[str, str],
) -> None:
    before = answered(server)
    named = {**(bearer(keys[key]) if key else {}), **headers}
    body = json.dumps({**v2([[MARKED]], id=MARK), "instances": [[MARKED]]}).encode()
    got = ask(server.port, method, path, body if method == "POST" else None, named)
    assert got.status == status
    assert set(got.json) == {"error", "code"}
    assert got.header("content-type") == "application/json"
    assert got.header("cache-control") == "no-store"
    assert MARK not in str(got)
    assert str(MARKED) not in str(got)
    assert answered(server) == before


def test_open_paths_need_no_key(server: InThread) -> None:
    assert server.ask("GET", "/").json == {"status": "alive"}
    assert server.ask("GET", "/v2/health/live").json == {"live": True}
    assert server.ask("GET", "/v2/health/ready").json == {"ready": True}
    assert server.ask("GET", "/ping").status == 200
    assert server.ask("GET", "/version").body.decode() == cumae.__version__
    assert server.ask("HEAD", "/v2").body == b""


def test_the_index_lists_what_a_key_is_for(server: InThread, keys: dict[str, str]) -> None:
    for key, names in [("ask", ["oracle", "capped", "few", "model"]), ("model", ["model"])]:
        got = ask(server.port, "POST", "/v2/repository/index", b"", bearer(keys[key]))
        assert [one["name"] for one in got.json] == names
        assert {one["state"] for one in got.json} == {"READY"}


@pytest.mark.claim("SERVE")
def test_an_id_is_answered_once_in_any_form(server: InThread, keys: dict[str, str]) -> None:
    rows = [[0.2], [0.8]]
    before = answered(server)
    first = infer(server, keys["ask"], rows, id="one")
    assert infer(server, keys["ask"], rows, id="one").json == first.json
    head = v2(rows, id="one")
    del head["inputs"][0]["data"]
    head["inputs"][0]["parameters"] = {"binary_data_size": 16}
    text = json.dumps(head).encode()
    named = {**bearer(keys["ask"]), "Inference-Header-Content-Length": str(len(text))}
    body = text + struct.pack("<2d", 0.2, 0.8)
    again = ask(server.port, "POST", "/v2/models/oracle/infer", body, named)
    assert again.json == first.json
    assert answered(server) == before + 2
    other = infer(server, keys["ask"], [[0.3]], id="one")
    assert (other.status, other.json["code"]) == (409, "id_reused")
    # The id of somebody else's request tells nothing about it.
    assert infer(server, keys["other"], [[0.3]], id="one").status == 200
    assert answered(server) == before + 3


def test_other_protocols_take_an_id_from_a_header(server: InThread, keys: dict[str, str]) -> None:
    before = answered(server)
    named = {**bearer(keys["ask"]), "Idempotency-Key": "two"}
    for _ in range(2):
        path = "/v1/models/oracle:predict"
        assert ask(server.port, "POST", path, {"instances": [[0.4]]}, named).status == 200
    assert answered(server) == before + 1


def test_who_hangs_up_gets_the_same_answer_later(server: InThread, keys: dict[str, str]) -> None:
    before = answered(server)
    body = json.dumps(v2([[0.6]], id="left")).encode()
    head = (
        "POST /v2/models/oracle/infer HTTP/1.1\r\nHost: a\r\nContent-Length: "
        f"{len(body)}\r\nAuthorization: Bearer {keys['ask']}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        line.sendall(head.encode() + body)
    until = time.monotonic() + 20
    while answered(server) == before and time.monotonic() < until:
        time.sleep(0.01)
    assert infer(server, keys["ask"], [[0.6]], id="left").status == 200
    assert answered(server) == before + 1


def test_a_key_is_the_client_of_an_oracle_that_caps_clients(
    server: InThread, keys: dict[str, str]
) -> None:
    assert infer(server, keys["ask"], [[0.1], [0.9]], "capped").status == 200
    assert answered(server, "capped") == 2


def test_a_finite_budget_that_is_gone_is_no_reason_to_retry(
    server: InThread, keys: dict[str, str]
) -> None:
    assert infer(server, keys["ask"], [[0.1]] * 5, "few").status == 200
    got = infer(server, keys["ask"], [[0.1]], "few")
    assert (got.status, got.json["code"]) == (403, "budget_exhausted")


def test_an_oracle_that_is_busy_holds_up_no_look_at_it(
    server: InThread, keys: dict[str, str]
) -> None:
    """How many answers of a finite budget are left is a secret of a group that is under way."""
    begun, ended = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        ended.wait(20)

    counter = counter_of(server.house.models["few"].model)
    busy = threading.Thread(target=lambda: counter.alone(hold))
    busy.start()
    begun.wait()
    for path in ("/models", "/models/few"):
        assert ask(server.port, "GET", path, None, bearer(keys["look"])).status == 200
    assert infer(server, keys["ask"], [[0.1]] * 2_000).status == 200
    assert busy.is_alive()
    ended.set()
    busy.join()


def test_limits_of_keys(server: InThread, keys: dict[str, str], folder: Path) -> None:
    assert infer(server, keys["slow"], [[0.1]] * 10).status == 200
    got = infer(server, keys["slow"], [[0.1]])
    assert (got.status, got.json["code"]) == (429, "too_many")
    assert 1 <= int(got.header("retry-after") or 0) <= 5
    # What the envelope spoils counts for nothing.
    assert infer(server, keys["short"], [[0.1, 0.2]]).status == 400
    assert infer(server, keys["short"], [[0.1]] * 3).status == 200
    got = infer(server, keys["short"], [[0.1]])
    assert (got.status, got.json["code"]) == (403, "limit_reached")
    name = keys["short"].split("_")[1]
    assert json.loads((folder / "access.json.used").read_text())[name] == 3


def test_servers_that_share_a_file_of_keys_share_its_limits(tmp_path: Path) -> None:
    key, _ = new_key("ward", ("ask",), answers=640)
    path = tmp_path / "access.json.used"
    both = [Limits(path), Limits(path)]
    for place in range(630):
        both[place % 2].take(key, 1)
    both[0].give_back(key, 1)
    assert sum(one.used(key.name) for one in both) >= 629
    for one in both:
        one.close()
    assert json.loads(path.read_text())[key.name] == 629
    again = Limits(path)
    again.take(key, 11)
    with pytest.raises(Refused, match="has used"):
        again.take(key, 1)
    assert again.used(key.name) == 640


def test_a_key_is_revoked_while_the_server_runs(
    server: InThread, folder: Path, keys: dict[str, str]
) -> None:
    file = KeyFile(folder / "access.json")
    key, text = new_key("gone", ("ask",))
    file.add(key)
    time.sleep(1.1)
    assert infer(server, text, [[0.1]], "model").status == 400  # two columns, but let in
    file.revoke(key.name)
    time.sleep(1.1)
    assert infer(server, text, [[0.1]], "model").status == 401


@pytest.mark.claim("SERVE")
def test_labels_come_later(server: InThread, keys: dict[str, str]) -> None:
    body = v2([[0.29]])
    body["inputs"].append({"name": "query_ids", "shape": [1], "datatype": "BYTES", "data": ["a17"]})
    path = "/v2/models/oracle/infer"
    assert ask(server.port, "POST", path, body, bearer(keys["ask"])).status == 200

    def label(given: Any, key: str = "label") -> Any:
        return ask(server.port, "POST", "/models/oracle/labels", given, bearer(keys[key]))

    assert label({"query_ids": ["a17"], "labels": [0]}).json == {"labels": 1}
    # Nobody labels the queries of another client, or learns that there are any.
    mine = label({"query_ids": ["a17"], "labels": [0]}, "admin")
    none = label({"query_ids": ["a18"], "labels": [0]}, "admin")
    assert mine.status == none.status == 400
    assert mine.body == none.body
    assert b"a17" not in mine.body
    assert label({"instances": [[0.31]], "labels": [1]}).json == {"labels": 1}
    wrongs: tuple[Any, ...] = (
        {"query_ids": ["a17"], "labels": [7]},
        {"query_ids": ["a17"], "labels": [MARK]},
        {"query_ids": [], "labels": []},
        {"instances": [[1, 2]], "labels": [1]},
        {"labels": [1]},
        [],
    )
    for wrong in wrongs:
        got = label(wrong)
        assert got.status == 400
        assert MARK not in str(got)


def test_sizes_are_limited_packed_and_unpacked(server: InThread, keys: dict[str, str]) -> None:
    key, path = bearer(keys["ask"]), "/v2/models/oracle/infer"
    bomb = gzip.compress(bytes(200_000_000), 9)
    got = ask(server.port, "POST", path, bomb, {**key, "Content-Encoding": "gzip"})
    assert (got.status, got.json["code"]) == (413, "too_large")
    assert infer(server, keys["ask"], [[0.1]] * 20_001).status == 413
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nAuthorization: {key['Authorization']}\r\n"
    told = raw(server.port, f"{head}Content-Length: 99999999999\r\n\r\n".encode())
    assert b" 413 " in told.split(b"\r\n")[0]
    chunk = b"100000\r\n" + bytes(2**20) + b"\r\n"
    told = raw(server.port, f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunk * 20)
    assert told == b"" or b" 413 " in told.split(b"\r\n")[0]


REQUEST = "POST /v2/models/oracle/infer HTTP/1.1\r\nHost: a\r\n"
SMUGGLED = [
    "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    "Content-Length: +5\r\n\r\nabcde",
    "Content-Length: 5, 5\r\n\r\nabcde",
    "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "Content-Length : 5\r\n\r\nabcde",
    " folded: 1\r\n\r\n",
    "X\0Y: 1\r\n\r\n",
    "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n",
]


@pytest.mark.parametrize("rest", SMUGGLED)
def test_requests_that_can_be_read_in_two_ways_are_refused(server: InThread, rest: str) -> None:
    got = raw(server.port, (REQUEST + rest).encode(), wait=5)
    head, _, body = got.partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 400", b"HTTP/1.1 401"))
    assert b"connection: close" in head.lower()
    assert got.count(b"HTTP/1.1 ") == 1
    assert set(json.loads(body)) == {"error", "code"}


def test_a_head_does_not_grow_for_ever(server: InThread) -> None:
    for sent in (b"GET /" + b"a" * 200_000, b"GET / HTTP/1.1\r\nA: " + b"a" * 200_000):
        assert raw(server.port, sent, wait=5).startswith(b"HTTP/1.1 400")


def test_idle_connections_and_slow_clients_stop_nobody(
    server: InThread, keys: dict[str, str]
) -> None:
    lines: list[socket.socket] = []
    try:
        lines += [socket.create_connection(("127.0.0.1", server.port)) for _ in range(1_000)]
        slow = socket.create_connection(("127.0.0.1", server.port))
        lines.append(slow)
        key = bearer(keys["ask"])["Authorization"]
        slow.sendall(f"{REQUEST}Authorization: {key}\r\nContent-Length: 100\r\n\r\n{{".encode())
        assert infer(server, keys["ask"], [[0.1]]).status == 200
    finally:
        for line in lines:
            line.close()


def test_large_requests_are_cut_and_single_ones_come_between(
    server: InThread, keys: dict[str, str]
) -> None:
    before = answered(server)
    rows = np.random.default_rng(3).random((10_000, 1)).tolist()
    found: list[Any] = []
    large = threading.Thread(
        target=lambda: found.append(infer(server, keys["ask"], rows, id="large"))
    )
    large.start()
    singles = 0
    while large.is_alive():
        assert infer(server, keys["ask"], [[0.1]]).status == 200
        singles += 1
    large.join()
    assert singles >= 2
    assert len(found[0].json["outputs"][0]["data"]) == 10_000
    assert answered(server) == before + 10_000 + singles


def test_many_requests_of_some_rows_hold_up_no_single_ones(
    server: InThread, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They wait together while the oracle is busy; then each group has one of them at most."""
    groups, begun, ended = [], threading.Event(), threading.Event()
    found = OracleThread._found

    def noted(self: OracleThread, calls: list[Any]) -> list[Any]:
        groups.append(sorted(len(call.X) for call in calls))
        return found(self, calls)

    def hold() -> None:
        begun.set()
        ended.wait(20)

    monkeypatch.setattr(OracleThread, "_found", noted)
    served = server.house.models["oracle"]
    busy = threading.Thread(target=lambda: counter_of(served.model).alone(hold))
    busy.start()
    begun.wait()
    asked = [[[0.1]] * count for count in (1, 500, 500, 1, 500, 1)]
    threads = [threading.Thread(target=infer, args=(server, keys["ask"], rows)) for rows in asked]
    for one in threads:
        one.start()
    engine: Any = served._engine
    while engine._waiting < 1_503:
        time.sleep(0.01)
    ended.set()
    for one in (*threads, busy):
        one.join()
    assert sum(map(sum, groups)) == 1_503
    assert all(group[:-1] == [1] * (len(group) - 1) for group in groups), groups


def test_parts_of_a_large_request_are_answered_once(tmp_path: Path) -> None:
    x = np.random.default_rng(4).random((5_000, 1))
    made = cumae.EverlastingPredictor(Thresholds(), **SHARED)
    made.fit(x, (x[:, 0] > 0.3).astype(int)).save_to(tmp_path / "oracle.db")
    rows = x[:2_500].tolist()
    with InThread(tmp_path / "oracle.db") as running:
        first = running.infer(rows, id="large")
        assert running.infer(rows, id="large").body == first.body
        assert answered(running) == 2_500
        rows[2_000] = [0.5]
        assert running.infer(rows, id="large").status == 409
        assert answered(running) == 2_500


def test_metrics_and_facts_tell_public_counts(server: InThread, keys: dict[str, str]) -> None:
    infer(server, keys["ask"], [[MARKED]], id=MARK)
    got = ask(server.port, "GET", "/metrics", None, bearer(keys["look"]))
    assert got.status == 200
    text = got.body.decode()
    assert re.search(
        r'cumae_requests_total\{route="/v2/models/\{name\}/infer",status="200"\} \d', text
    )
    assert 'cumae_ready{model="oracle"} 1' in text
    assert MARK not in text
    facts = ask(server.port, "GET", "/models/oracle", None, bearer(keys["look"])).json
    assert facts["answered"] == answered(server)
    assert facts["guarantee"]["epsilon"] == SHARED["epsilon"]


@pytest.mark.claim("SERVE")
def test_answers_are_as_long_as_each_other(server: InThread, keys: dict[str, str]) -> None:
    lengths = set()
    for cell in (0.01, 0.99, None):
        got = infer(server, keys["ask"], [[cell]])
        lengths.add((len(got.body), tuple(name for name, _ in got.headers)))
    assert len(lengths) == 1


def test_without_keys_only_this_machine_asks_and_no_page_in_a_browser(folder: Path) -> None:
    with InThread(folder / "model.json") as open_server:
        rows = [{"age": 0.9, "job": "nurse"}]
        path, body = "/v1/models/model:predict", {"instances": rows}
        assert open_server.ask("POST", path, body).status == 200
        for headers in ({"Origin": "https://elsewhere.example"}, {"Host": "elsewhere.example"}):
            assert ask(open_server.port, "POST", path, body, headers).status == 403
        # Nobody is believed to be somebody else.
        got = ask(open_server.port, "POST", path, body, {"X-Forwarded-For": "10.0.0.1"})
        assert got.status == 200


def test_people_are_believed_from_declared_proxies_alone(folder: Path) -> None:
    path, body = "/v1/models/model:predict", {"instances": [{"age": 0.9, "job": "nurse"}]}
    named = {"X-Forwarded-User": "anna"}
    for proxies, status in [(("127.0.0.0/8",), 200), (("10.0.0.0/8",), 401)]:
        more: dict[str, Any] = {"people_header": "X-Forwarded-User", "proxies": proxies}
        with InThread(folder / "model.json", **more) as running:
            assert ask(running.port, "POST", path, body, named).status == status
            assert ask(running.port, "POST", path, body).status == 401
            twice = f"{REQUEST}X-Forwarded-User: a\r\nX-Forwarded-User: b\r\n\r\n"
            assert raw(running.port, twice.encode(), wait=5).startswith(b"HTTP/1.1 400")


def test_a_schedule_gives_answers_at_ticks(tmp_path: Path) -> None:
    everlasting().save_to(tmp_path / "oracle.db")
    step = 0.1
    timed = ModelSettings(str(tmp_path / "oracle.db"), schedule="100ms")
    with InThread(timed) as running:
        running.infer([[0.5]])
        times = []
        for _ in range(5):
            assert running.infer([[0.5]]).status == 200
            times.append(time.monotonic() % step)
    assert sorted(times)[2] < 0.6 * step  # soon after a tick, on a machine that is not too busy


def test_a_store_that_fails_makes_the_server_unready(tmp_path: Path) -> None:
    everlasting().save_to(tmp_path / "oracle.db")
    with InThread(tmp_path / "oracle.db") as running:
        assert running.infer([[0.5]]).status == 200
        # Another life takes the keys, as a copy of the file elsewhere would.
        key = tmp_path / "oracle.db.keys" / "home.key"
        key.write_bytes(key.read_bytes()[::-1])
        status = 200
        for _ in range(20):
            got = running.infer([[0.5]] * 50)
            status = got.status
            if status != 200:
                break
        assert (status, got.json["code"]) == (503, "unwell")
        assert str(tmp_path) not in str(got)
        ready = running.ask("GET", "/v2/health/ready")
        assert (ready.status, ready.json["ready"]) == (503, False)
        assert running.infer([[0.5]]).status == 503


@pytest.mark.parametrize("part", ["_answer", "_take"])
def test_a_writer_that_breaks_off_lets_nobody_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    everlasting().save_to(tmp_path / "oracle.db")

    def fail(*_: object) -> None:
        raise KeyError(MARK)

    with InThread(tmp_path / "oracle.db") as running:
        monkeypatch.setattr(f"cumae.serve.asking.OracleThread.{part}", fail)
        got = running.infer([[0.5]])
        assert (got.status, got.json["code"]) == (503, "unwell")
        assert MARK not in str(got)
        assert running.ask("GET", "/v2/health/ready").status == 503
        assert running.infer([[0.5]]).status == 503


def test_an_error_inside_the_server_tells_a_number_alone(
    server: InThread, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    def fail(*_: object) -> None:
        raise KeyError(MARK)

    monkeypatch.setattr(server.house.models["model"].model, "predict", fail)
    body = {"instances": [{"age": MARKED, "job": MARK}]}
    path = "/v1/models/model:predict"
    got = ask(server.port, "POST", path, body, bearer(keys["ask"]))
    assert (got.status, got.json["code"]) == (500, "internal")
    assert MARK not in str(got)


@pytest.mark.claim("SERVE")
def test_neighbours_look_the_same_from_outside(tmp_path: Path) -> None:
    """Metadata, facts, counts and headers do not depend on a training row or on what is asked."""
    seen = []
    for world in (0, 1):
        folder = tmp_path / str(world)
        folder.mkdir()
        rows = np.random.default_rng(5).random((400, 1))
        labels = (rows[:, 0] > 0.3).astype(int)
        rows[17], labels[17] = (0.9, 0) if world else (0.1, 1)
        made = cumae.EverlastingPredictor(Thresholds(), **SHARED)
        made.fit(rows, labels).save_to(folder / "oracle.db")
        with InThread(folder / "oracle.db") as running:
            cell = [0.95, None][world]
            told = [
                running.infer([[cell]]),
                running.infer([[cell]], id="a"),
                running.infer([[1, 2]]),
            ]
            looks = ["/models", "/models/oracle", "/v2/models/oracle", "/openapi.json", "/nothing"]
            told += [running.ask("GET", path) for path in looks]
            counts = (
                running.ask("GET", "/metrics").body.decode().split("# TYPE cumae_request_sec")[0]
            )
            seen.append([[_seen(one, n < 2) for n, one in enumerate(told)], counts])
    assert seen[0] == seen[1]


def _seen(got: Any, is_answer: bool) -> Any:
    headers = [(name, value) for name, value in got.headers if name != "date"]
    body = re.sub(rb'"at": "[^"]*"', b"a time", got.body)  # of a look at the ledger
    return got.status, headers, len(body) if is_answer else body
