"""The server as a process: signals, crashes, a second one, and what can be seen of it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import cumae
from cumae import store
from cumae.cli import app
from cumae.errors import InvalidParameter
from cumae.serve.running import bound
from cumae.serve.settings import ModelSettings, Settings
from tests.oracles import everlasting
from tests.serve.served import Forked, InProcess, StoppedAtOnce, ask, raw, v2

MARK = "quokkamark"
MARKED = 0.7318462951


@pytest.fixture
def oracle(tmp_path: Path) -> Path:
    path = tmp_path / "oracle.db"
    everlasting(growth=1.5).save_to(path)
    return path


def used(path: Path) -> int:
    return int(store.status(path).totals.used)


def test_sigterm_answers_what_waits_and_charges_nothing_more(oracle: Path) -> None:
    served = Forked(str(oracle), "--port", "0")
    found: list[Any] = []

    def some() -> None:
        for cell in range(20):
            try:
                found.append(served.infer([[cell / 20]], id=str(cell)).status)
            except OSError:
                return

    threads = [threading.Thread(target=some) for _ in range(2)]
    for one in threads:
        one.start()
    while len(found) < 10:
        threads[0].join(0.01)
    assert served.stop() == 0
    for one in threads:
        one.join()
    assert set(found) <= {200, 503}
    told = [line.partition(" ")[2] for line in served.told.splitlines() if "T" in line[:12]]
    assert told[-1] == "stopped; all oracles are closed"
    # Both threads ask with the same ids: each is charged once, and the stop charges nothing.
    assert store.status(oracle).totals.charged == 0
    assert 5 <= used(oracle) <= 20


def test_a_signal_that_comes_as_the_server_starts_is_not_lost(oracle: Path) -> None:
    running = StoppedAtOnce(str(oracle), "--port", "0")
    running._forked.join(60)
    assert not running._forked.is_alive()
    assert running.stop() == 0
    assert "stopped; all oracles are closed" in running.told
    assert store.status(oracle).totals.charged == used(oracle) == 0


def certificate(folder: Path) -> tuple[Path, Path]:
    """Return the files of a certificate for this machine, and of its key."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subject = ["-subj", "/CN=localhost", "-days", "2", "-nodes"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", *subject]
    subprocess.run([*made, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


def test_kill_loses_no_answer_and_a_retry_is_free(oracle: Path, tmp_path: Path) -> None:
    """After it another server goes on, with TLS and all settings from a file, and it alone."""
    served = Forked(str(oracle), "--port", "0")
    first = [served.infer([[cell / 7]], id=str(cell)).json["outputs"] for cell in range(7)]
    assert served.stop(signal.SIGKILL) == -signal.SIGKILL
    cert, key = certificate(tmp_path)
    config = tmp_path / "serve.toml"
    config.write_text(
        f'port = 0\nmost_rows = 2\ntls_cert = "{cert}"\ntls_key = "{key}"\n'
        f'[[models]]\npath = "{oracle}"\nname = "wards"\nschedule = "5ms"\n'
    )
    again = Forked("--config", str(config))
    before = used(oracle)

    def infer(rows: list[list[float]], model: str, **more: Any) -> tuple[int, Any]:
        url = f"https://localhost:{again.port}/v2/models/{model}/infer"
        words = ["curl", "--silent", "--noproxy", "*", "--cacert", str(cert), "--data", "@-", url]
        told = json.dumps(v2([list(row) for row in rows], **more))
        words += ["--write-out", "\n%{http_code}"]
        got = subprocess.run(words, input=told, capture_output=True, text=True, check=True)
        body, _, status = got.stdout.rpartition("\n")
        return int(status), json.loads(body)

    for cell in range(7):
        status, told = infer([[cell / 7]], "wards", id=str(cell))
        assert (status, told["outputs"]) == (200, first[cell])
    assert used(oracle) == before
    assert infer([[0.5]], "wards", id="0")[0] == 409
    assert infer([[0.5]] * 3, "wards")[0] == 413
    assert infer([[0.5]], "oracle")[0] == 404
    second = Forked(str(oracle), "--port", "0")
    assert second.stop() == 3
    assert "Error: " in second.told
    assert "Traceback" not in second.told
    assert infer([[0.5]], "wards")[0] == 200
    assert again.stop(signal.SIGINT) == 0


def test_an_address_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = Settings(models=(ModelSettings("oracle.db"),), port=port).checked()
        with pytest.raises(InvalidParameter, match="cannot listen"):
            bound(settings)


@pytest.mark.claim("SERVE")
def test_nothing_that_is_asked_can_be_seen_in_any_channel(oracle: Path, tmp_path: Path) -> None:
    """Marked values go through every route, right and wrong, and are looked for everywhere."""
    model = tmp_path / "model.json"
    rows = [[cell / 100] for cell in range(100)] * 20
    labels = [int(cell[0] > 0.5) for cell in rows]
    cumae.PrivateBooster(20.0, columns=[(0, 1)]).fit(rows, labels).save(model)
    served = InProcess(str(oracle), str(model), "--port", "0")
    routes = json.loads(served.ask("GET", "/openapi.json").body)["paths"]
    bodies = [
        v2([[MARKED], [MARKED]], id=MARK),
        v2([[MARK], [MARKED]]),
        {"instances": [[MARKED], [MARK]], "query_ids": [MARK, MARK + "2"]},
        {"inputs": [[MARKED]], "labels": [MARK]},
        {"query_ids": [MARK], "labels": [MARK]},
        {"dataframe_records": [{MARK: MARKED}]},
        {MARK: MARKED},
        MARK,
    ]
    headers = {"Authorization": f"Bearer {MARK}", "Idempotency-Key": MARK, MARK: MARK}
    kinds = ["application/json", "text/csv", MARK]
    seen = b""
    for path in routes:
        for name in ("oracle", "model", MARK):
            here = path.replace("{name}", name).replace("{version}", "1") + f"?{MARK}={MARKED}"
            for place, body in enumerate(bodies):
                named = {**headers, "Content-Type": kinds[place % 3]}
                for method in ("POST", "GET"):
                    got = ask(served.port, method, here, body, named)
                    own = [f'"id": "{MARK}"'.encode()]  # an answer has the id of its request
                    seen += str(got.headers).encode() + got.body.replace(own[0], b"")
                    assert got.status != 500
    seen += raw(served.port, f"{MARK} {MARKED}\r\n\r\n".encode(), wait=5)
    seen += served.ask("GET", "/metrics").body + served.ask("GET", "/models").body
    seen += Path(f"/proc/{served.pid}/cmdline").read_bytes()
    seen += Path(f"/proc/{served.pid}/comm").read_bytes()
    limits = Path(f"/proc/{served.pid}/limits").read_text()
    assert limits.split("Max core file size")[1].split()[:2] == ["0", "0"]
    assert served.stop(signal.SIGHUP) == 0
    assert "stopped; all oracles are closed" in served.told
    seen += served.told.encode()
    for file in tmp_path.rglob("*"):
        seen += file.read_bytes() if file.is_file() and ".keys" not in str(file) else b""
    for mark in (MARK, MARK.lower(), str(MARKED), "0.73184"):
        assert mark.encode() not in seen
    assert "Traceback" not in served.told


def test_the_memory_of_the_process_cannot_be_dumped() -> None:
    code = (
        "import ctypes; from cumae.serve.quiet_log import no_dumps; no_dumps(); "
        "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "0"


REFUSED = [
    (["oracle.db", "--host", "0.0.0.0"], "tls_cert"),  # noqa: S104 - it is refused
    (["oracle.db", "--host", "0.0.0.0", "--behind-proxy"], "--access"),  # noqa: S104
    (["oracle.db", "--behind-proxy"], "--access"),
    (["oracle.db", "--tls-cert", "a.pem"], "two files"),
    (["oracle.db", "--schedule", "10"], "10ms"),
    (["postgresql://me:secretword@host/db"], "password"),
    (["oracle.db", "oracle.db"], "same name"),
    (["oracle.db", "--config", "a.toml"], "no others"),
    (["--config", "a.toml"], "cannot be read"),
    (["--config", "strange.toml"], "no setting nonsense"),
    (["--config", "typed.toml"], "port"),
    ([], "cumae serve oracle.db"),
]


@pytest.mark.parametrize(("words", "part"), REFUSED)
def test_unsafe_settings_are_refused_before_anything_opens(
    words: list[str], part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("oracle.db", "a.pem"):  # files that are not there are refused before
        (tmp_path / name).touch()
    (tmp_path / "a.toml").write_text("no = settings\n")
    (tmp_path / "strange.toml").write_text("nonsense = 1\n")
    (tmp_path / "typed.toml").write_text('port = "80"\n')
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, ["serve", *words])
    assert found.exit_code == 3
    assert part in " ".join(found.output.split())
    assert "secretword" not in found.output
    assert [one.name for one in tmp_path.glob("*.db*")] == ["oracle.db"]
    assert not (tmp_path / "oracle.db").read_bytes()
