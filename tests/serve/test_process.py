"""The server as a process: signals, crashes, a second one, and what can be seen of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import cumae
from cumae import store
from tests.oracles import everlasting
from tests.serve.served import InProcess, ask, raw, v2

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
    served = InProcess(str(oracle), "--port", "0")
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


def test_kill_loses_no_answer_and_a_retry_is_free(oracle: Path) -> None:
    served = InProcess(str(oracle), "--port", "0")
    first = [served.infer([[cell / 7]], id=str(cell)).body for cell in range(7)]
    assert served.stop(signal.SIGKILL) == -signal.SIGKILL
    again = InProcess(str(oracle), "--port", "0")
    before = used(oracle)
    assert [again.infer([[cell / 7]], id=str(cell)).body for cell in range(7)] == first
    assert used(oracle) == before
    assert again.infer([[0.5]], id="0").status == 409
    assert again.stop(signal.SIGINT) == 0


def test_a_second_process_is_refused_with_a_sentence(oracle: Path) -> None:
    served = InProcess(str(oracle), "--port", "0")
    try:
        second = InProcess(str(oracle), "--port", "0")
        assert second.stop() == 3
        assert "Error: " in second.told and "open" in second.told
        assert "Traceback" not in second.told
        taken = InProcess(str(oracle), "--port", str(served.port))
        assert taken.stop() == 3
        assert "cannot listen" in taken.told
        assert served.infer([[0.5]]).status == 200
    finally:
        assert served.stop() == 0


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
    seen += Path(f"/proc/{served.process.pid}/cmdline").read_bytes()
    seen += Path(f"/proc/{served.process.pid}/comm").read_bytes()
    limits = Path(f"/proc/{served.process.pid}/limits").read_text()
    assert limits.split("Max core file size")[1].split()[:2] == ["0", "0"]
    assert served.stop() == 0
    seen += served.told.encode()
    for file in tmp_path.rglob("*"):
        seen += file.read_bytes() if file.is_file() and ".keys" not in str(file) else b""
    for mark in (MARK, MARK.lower(), str(MARKED), "0.73184"):
        assert mark.encode() not in seen
    assert "Traceback" not in served.told


def test_the_memory_of_the_process_cannot_be_dumped() -> None:
    code = (
        "import ctypes; from cumae.serve.running import no_dumps; no_dumps(); "
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


def test_unsafe_settings_are_refused_before_anything_opens(tmp_path: Path) -> None:
    (tmp_path / "strange.toml").write_text("nonsense = 1\n")
    (tmp_path / "typed.toml").write_text('port = "80"\n')
    code = (
        "import json, sys\nfrom typer.testing import CliRunner\nfrom cumae.cli import app\n"
        "for words in json.load(sys.stdin):\n"
        "    found = CliRunner().invoke(app, ['serve', *words])\n"
        "    print(json.dumps([found.exit_code, found.output]))\n"
    )
    given = json.dumps([words for words, _ in REFUSED])
    run = [sys.executable, "-c", code]
    found = subprocess.run(
        run, input=given, capture_output=True, text=True, check=True, cwd=tmp_path, env=os.environ
    )
    told = [json.loads(line) for line in found.stdout.splitlines()]
    for (words, part), (status, output) in zip(REFUSED, told, strict=True):
        assert status == 3, words
        assert part in " ".join(output.split()), words
        assert "secretword" not in output
    assert not list(tmp_path.glob("*.db*"))


def test_all_settings_come_from_one_file(oracle: Path, tmp_path: Path) -> None:
    config = tmp_path / "serve.toml"
    config.write_text(
        f'port = 0\nmost_rows = 2\n[[models]]\npath = "{oracle}"\nname = "wards"\n'
        'schedule = "5ms"\n'
    )
    served = InProcess("--config", str(config))
    assert served.infer([[0.5]], "wards").status == 200
    assert served.infer([[0.5]] * 3, "wards").status == 413
    assert served.infer([[0.5]], "oracle").status == 404
    assert served.stop() == 0


def test_tls_is_spoken_where_files_are_given(oracle: Path, tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subject = ["-subj", "/CN=localhost", "-days", "2", "-nodes"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", *subject]
    subprocess.run([*made, "-keyout", key, "-out", cert], check=True, capture_output=True)
    served = InProcess(
        *(str(oracle), "--port", "0", "--tls-cert", str(cert), "--tls-key", str(key))
    )
    url = f"https://localhost:{served.port}/v2/health/ready"
    words = ["curl", "--silent", "--noproxy", "*", "--cacert", str(cert), url]
    got = subprocess.run(words, capture_output=True, text=True, check=True)
    assert json.loads(got.stdout) == {"ready": True}
    assert served.stop() == 0
