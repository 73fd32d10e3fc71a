"""Two servers on one oracle in PostgreSQL, behind a proxy: they answer as one, and one may die."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import signal
import socket
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oracles import Where, everlasting
from tests.serve.served import Forked, Got, ask, v2
from tests.servers import PostgresServer, new_schema

pytestmark = [pytest.mark.claim("REPLICAS"), pytest.mark.debian("postgresql")]
PHASE = 4_000  # answers, so that all requests of the tests are of one phase
LOST = (OSError, http.client.HTTPException)


class Proxy(socketserver.ThreadingTCPServer):
    """Gives each connection to the next of several servers that can be reached, as bytes."""

    def __init__(self, *ports: int) -> None:
        super().__init__(("127.0.0.1", 0), Passing)
        self.ports, self.turns = list(ports), itertools.count()
        self.port = int(self.server_address[1])
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.shutdown()
        self.server_close()  # which waits for the connections
        self._thread.join(10)


class Passing(socketserver.BaseRequestHandler):
    """One connection through the proxy."""

    server: Proxy

    def handle(self) -> None:
        with contextlib.suppress(OSError), self._reached() as there:
            back = threading.Thread(target=_pass, args=(there, self.request))
            back.start()
            _pass(self.request, there)
            back.join()

    def _reached(self) -> socket.socket:
        ports, turn = list(self.server.ports), next(self.server.turns)
        for place in range(len(ports)):
            with contextlib.suppress(OSError):
                return socket.create_connection(("127.0.0.1", ports[(turn + place) % len(ports)]))
        raise ConnectionError


def _pass(source: socket.socket, target: socket.socket) -> None:
    """Pass bytes on until there are no more."""
    with contextlib.suppress(OSError):
        while piece := source.recv(65_536):
            target.sendall(piece)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


@pytest.fixture(scope="module")
def where(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Where:
    """Return where the oracle is."""
    made = new_schema(postgres, tmp_path_factory.mktemp("replicas"))
    made.save(everlasting(growth=PHASE / 400))
    return made


@pytest.fixture(scope="module")
def config(where: Where) -> Path:
    """Return the settings of replicas of one oracle."""
    path = where.key_folder.parent / "serve.toml"
    path.write_text(
        f'port = 0\n[[models]]\nname = "oracle"\npath = "{where.address}"\nkeys = "{where.keys}"\n'
    )
    return path


@pytest.fixture(scope="module")
def replicas(config: Path) -> Iterator[list[Forked]]:
    """Return two servers."""
    made = [Forked("--config", str(config)) for _ in range(2)]
    yield made
    for one in made:
        one.stop(signal.SIGKILL)


def answers_of(where: Where) -> int:
    return int(where.status().totals.answers)


def until_answered(port: int, name: str, rows: list[list[float]]) -> Got:
    """Ask, as often as it takes, with one id."""
    for _ in range(200):
        with contextlib.suppress(*LOST):
            got = ask(port, "POST", "/v2/models/oracle/infer", v2(rows, id=name))
            if got.status == 200:
                return got
            assert got.status in (429, 503), got
    raise AssertionError("no answer")


def test_replicas_tell_the_same_and_large_requests_of_one_id_are_one(
    replicas: list[Forked], where: Where
) -> None:
    """Twins at both replicas at once share all parts, and another one spends nothing."""
    rows = [[place / 2_500] for place in range(1_500)]
    found: list[Got] = []
    twins = [
        threading.Thread(target=lambda one=one: found.append(one.infer(rows, id="twin")))
        for one in replicas
    ]
    for twin in twins:
        twin.start()
    for twin in twins:
        twin.join()
    assert {one.status for one in found} == {200}
    assert found[0].json["outputs"] == found[1].json["outputs"]
    assert answers_of(where) == len(rows)
    for place, other in enumerate((rows[:1_024], [*rows, [0.5]])):
        assert replicas[place].infer(other, id="twin").status == 409
    assert answers_of(where) == len(rows)
    for path in ("/models/oracle", "/v2/models/oracle"):
        told = [one.ask("GET", path) for one in replicas]
        assert told[0].status == 200
        assert told[0].body == told[1].body


def test_replicas_answer_as_one_and_one_may_die(
    replicas: list[Forked], config: Path, where: Where
) -> None:
    """One is killed and one is stopped while four clients ask; each request is answered once."""
    before, proxy = answers_of(where), Proxy(*(one.port for one in replicas))
    asked = {f"{client} {n}": [[n / 50]] * (1 + n % 3) for client in range(4) for n in range(50)}
    found: dict[str, Got] = {}
    failed: list[BaseException] = []

    def client(number: int) -> None:
        try:
            for name, rows in asked.items():
                if name.startswith(f"{number} "):
                    found[name] = until_answered(proxy.port, name, rows)
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            failed.append(error)

    def wait_for(count: int) -> None:
        while len(found) < count and any(one.is_alive() for one in clients):
            clients[0].join(0.01)

    clients = [threading.Thread(target=client, args=(number,)) for number in range(4)]
    for one in clients:
        one.start()
    wait_for(40)
    assert replicas[0].stop(signal.SIGKILL) == -signal.SIGKILL
    wait_for(80)
    replicas.append(Forked("--config", str(config)))  # it begins while the other one answers
    proxy.ports = [replicas[1].port, replicas[2].port]
    wait_for(120)
    assert replicas[1].stop() == 0
    for one in clients:
        one.join()
    proxy.close()
    assert not failed
    assert len(found) == len(asked) == 200
    rows = sum(map(len, asked.values()))
    assert answers_of(where) == before + rows  # no answer twice, and none lost
    for name, cells in asked.items():
        assert until_answered(replicas[2].port, name, cells).body == found[name].body
    assert answers_of(where) == before + rows
    refused = replicas[2].infer([[0.123]], id="0 0")
    assert (refused.status, refused.json["code"]) == (409, "id_reused")
