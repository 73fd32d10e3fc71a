"""What does the server cost? CPU and rates of durable answers, beside an echo and MLServer.

    python -m benchmarks.serve [--rounds 3] [--seconds 3] [--targets echo,thresholds,...]
    python -m benchmarks.serve --soak 1800

The first writes benchmarks/results/serve.json. All targets take turns in one run. Rates and times
are those of the machine at that moment; the CPU of the server's process for each request (of
/proc/PID/stat) hardly depends on what else runs. The echo is the same application, which reads and
checks the same request and replies without asking an oracle; the wide one has the columns of the
survey, and shows what the server adds to a request of 10,000 rows. Thresholds and votes answer by
votes alone, in phases of 320,000 and 160,000 answers, so that hardly a change of phases falls into
the figures. ``prior`` is the default for thresholds: a phase has 10,000 answers, and the training
of the next phases counts. MLServer (in the environment of the tests, tools/make_clients.py) has a
trivial tree of scikit-learn, and nothing durable.

The second asks one oracle from 16 connections for so many seconds, and compares the memory of the
server over that time, and the ledger with the answers that came. Its phases do not grow, because
an oracle keeps the queries of its phase: what is left to grow is the server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import uvloop
from sklearn.tree import DecisionTreeClassifier

from cumae import EverlastingPredictor, store
from cumae.concepts import Thresholds
from cumae.datasets import load_health_survey
from cumae.serve.models import House
from cumae.serve.running import bound, server_of
from cumae.serve.settings import ModelSettings, Settings

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "serve.json"
MLSERVER = ROOT / ".venv" / "clients" / "mlserver" / "bin"
CONNECTIONS = (1, 16, 64)
TICKS = os.sysconf("SC_CLK_TCK")
TARGETS = ("echo", "wide_echo", "thresholds", "prior", "votes", "survey", "mlserver")
BATCH_ROWS = 10_000


def request(name: str, rows: np.ndarray[Any, Any], *, binary: bool = False) -> bytes:
    """Return the bytes of a request."""
    one: dict[str, Any] = {"name": "rows", "shape": list(rows.shape), "datatype": "FP64"}
    head: dict[str, Any] = {"inputs": [one]}
    more, data = "", b""
    if binary:
        data = rows.tobytes()
        one["parameters"] = {"binary_data_size": len(data)}
        head["parameters"] = {"binary_data_output": True}
        more = f"Inference-Header-Content-Length: {len(json.dumps(head))}\r\n"
    else:
        one["data"] = rows.ravel().tolist()
    body = json.dumps(head).encode() + data
    lines = f"POST /v2/models/{name}/infer HTTP/1.1\r\nHost: localhost\r\n{more}"
    kind = "Content-Type: application/json\r\n"
    return f"{lines}{kind}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def keep_asking(port: int, sent: bytes, until: float, times: list[float]) -> None:
    """Ask over one connection until a time; collect how long each answer took."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.monotonic() < until:
        began = time.monotonic()
        writer.write(sent)
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " not in head[:16]:
            raise RuntimeError(head[:16].decode())
        length = next(
            int(line.partition(b":")[2])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        )
        await reader.readexactly(length)
        times.append(time.monotonic() - began)
    writer.close()


def load(port: int, sent: bytes, connections: int, seconds: float) -> list[float]:
    """Ask from several connections; return how long each answer took."""
    times: list[float] = []

    async def all_of_them() -> None:
        until = time.monotonic() + seconds
        await asyncio.gather(*(keep_asking(port, sent, until, times) for _ in range(connections)))

    uvloop.run(all_of_them())
    return times


def cpu(pid: int) -> float:
    """Return the seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory(pid: int) -> int:
    """Return the kilobytes that a process has in memory."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(text.split("VmRSS:")[1].split()[0])


def make(target: str, folder: Path) -> np.ndarray[Any, Any]:
    """Make the oracle of a target; return a row to ask."""
    path = folder / f"{target}.db"
    if target in ("echo", "thresholds", "prior", "soak"):
        x = np.random.default_rng(0).random((200_000, 1))
        more: dict[str, Any] = {"growth": 1.0} if target == "soak" else {}
        more |= {"prior": False} if target in ("echo", "thresholds") else {}
        made = EverlastingPredictor(Thresholds(), epsilon=1.0, columns=[(0, 1)], **more)
        made.fit(x, (x[:, 0] > 0.3).astype(int)).save_to(path)
        return x
    survey = load_health_survey()
    count = 5_000 if target == "wide_echo" else 100_000
    X, y = survey.data[:count], survey.target[:count]
    more = {"prior": False}
    if target == "survey":
        more = {"columns": [survey.bounds[name] for name in X.columns]}
    made = EverlastingPredictor(DecisionTreeClassifier(max_depth=4), epsilon=1.0, **more)
    table = np.asarray(X, dtype=np.float64)
    made.fit(table, y).save_to(path)
    return table


class Running:
    """A target in a process of its own."""

    def __init__(self, target: str, folder: Path) -> None:
        self.name, self.folder = target, folder
        words = [sys.executable, "-m", "benchmarks.serve", "--run", target, str(folder)]
        self.port = 0
        if target == "mlserver":
            self.rows = np.random.default_rng(0).random((BATCH_ROWS, 21))
            words, self.port = [str(MLSERVER / "mlserver"), "start", str(folder)], 18_091
            _prepare_mlserver(folder, self.port)
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.rows = make(target, folder)
        log = (folder / f"{target}.log").open("w", encoding="utf-8")
        self.process = subprocess.Popen(words, stdout=log, stderr=log, cwd=ROOT)
        self._wait()
        self.single = request("model", self.rows[:1])

    def _wait(self) -> None:
        told = self.folder / f"{self.name}.port"
        until = time.monotonic() + 300
        while time.monotonic() < until:
            try:
                self.port = self.port or int(told.read_text(encoding="utf-8"))
                load(self.port, request("model", self.rows[:1]), 1, 0.01)
            except (OSError, ValueError, RuntimeError, asyncio.IncompleteReadError):
                time.sleep(0.3)
                continue
            return
        raise TimeoutError(self.name)

    def measured(self, connections: int, seconds: float) -> dict[str, float]:
        """Return CPU in microseconds for each answer, the rate, and times in milliseconds."""
        before, began = cpu(self.process.pid), time.monotonic()
        times = load(self.port, self.single, connections, seconds)
        used, took = cpu(self.process.pid) - before, time.monotonic() - began
        p50, p99 = np.quantile(times, [0.5, 0.99]) * 1e3
        return {
            "cpu_us": 1e6 * used / len(times),
            "rate": len(times) / took,
            "p50_ms": float(p50),
            "p99_ms": float(p99),
        }

    def batch(self, *, binary: bool) -> float:
        """Return the milliseconds of CPU of a request with many rows."""
        sent = request("model", self.rows[:BATCH_ROWS], binary=binary)
        load(self.port, sent, 1, 0.01)
        before = cpu(self.process.pid)
        count = len(load(self.port, sent, 1, 2.0))
        return 1e3 * (cpu(self.process.pid) - before) / count

    def stop(self) -> int:
        """End it; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120)


def _prepare_mlserver(folder: Path, port: int) -> None:
    code = (
        "import joblib, numpy as np, sys\nfrom sklearn.tree import DecisionTreeClassifier\n"
        "x = np.random.default_rng(0).random((1000, 21))\n"
        "joblib.dump(DecisionTreeClassifier(max_depth=4).fit(x, x[:, 0] > 0.3), sys.argv[1])"
    )
    subprocess.run([str(MLSERVER / "python"), "-c", code, str(folder / "m.joblib")], check=True)
    settings: dict[str, Any] = {
        "debug": False,
        "http_port": port,
        "grpc_port": port + 1,
        "metrics_port": port + 2,
    }
    settings |= {"parallel_workers": 0, "host": "127.0.0.1"}
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    model = {"name": "model", "implementation": "mlserver_sklearn.SKLearnModel"}
    model["parameters"] = {"uri": "./m.joblib"}  # type: ignore[assignment]
    (folder / "model-settings.json").write_text(json.dumps(model), encoding="utf-8")


def serve(target: str, folder: Path) -> None:
    """Serve a target in this process; the echo replies without asking."""
    model = ModelSettings(str(folder / f"{target}.db"), name="model")
    settings = Settings(models=(model,), port=0).checked()
    listening = bound(settings)
    house = House(settings.models, freeze=True)
    if target in ("echo", "wide_echo"):

        async def echo(question: Any, *_: Any) -> Any:
            return np.zeros(question.n_rows, dtype=np.int64)

        house.models["model"].ask = echo  # type: ignore[method-assign, assignment]
    told = folder / f"{target}.port"
    told.write_text(str(listening.getsockname()[1]), encoding="utf-8")
    signal.signal(signal.SIGTERM, lambda *_: None)
    server_of(settings, house, {}).run(sockets=[listening])


def compare(targets: list[str], rounds: int, seconds: float) -> dict[str, Any]:
    """Return figures of all targets, which take turns."""
    with tempfile.TemporaryDirectory() as place:
        running = []
        found: dict[str, Any] = {}
        try:
            for target in targets:
                folder = Path(place, target)
                folder.mkdir()
                running.append(Running(target, folder))
                print(f"{target} is ready", flush=True)
            cells: dict[tuple[str, int], list[dict[str, float]]] = {}
            for _ in range(rounds):
                for connections in CONNECTIONS:
                    for one in running:
                        cell = one.measured(connections, seconds)
                        cells.setdefault((one.name, connections), []).append(cell)
            for (name, connections), several in cells.items():
                medians = {
                    what: round(statistics.median(cell[what] for cell in several), 2)
                    for what in several[0]
                }
                found.setdefault(name, {})[str(connections)] = medians
                print(name, connections, medians, flush=True)
            keep({"targets": found, **machine()})  # if what follows is cut off
            for one in running:
                if one.name == "wide_echo":
                    batches = {
                        form: round(min(one.batch(binary=form == "binary") for _ in range(3)), 2)
                        for form in ("json", "binary")
                    }
                    found[one.name][f"{BATCH_ROWS} rows, cpu_ms"] = batches
        finally:
            for one in running:
                one.stop()
    return found


def machine() -> dict[str, Any]:
    """Return where figures come from."""
    load = round(os.getloadavg()[0], 1)
    return {"load_average": load, "machine": f"{os.cpu_count()} cores, {platform.machine()}"}


def keep(made: dict[str, Any]) -> None:
    """Write figures down, beside others."""
    known = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    RESULT.write_text(json.dumps(known | made, indent=1) + "\n", encoding="utf-8")


def soak(seconds: float) -> dict[str, Any]:
    """Return how memory and ledger stand after asking for long."""
    with tempfile.TemporaryDirectory() as place:
        one = Running("soak", Path(place))
        load(one.port, one.single, 16, 10)
        path = Path(place, "soak.db")
        before, used = memory(one.process.pid), store.status(path).totals.answers
        sizes, phases, count, until = [], [], 0, time.monotonic() + seconds
        while time.monotonic() < until:
            count += len(load(one.port, one.single, 16, min(30.0, until - time.monotonic())))
            sizes.append(memory(one.process.pid))
            phases.append(store.status(path).totals.phase)
        after = store.status(path).totals.answers
        code = one.stop()
        told = {"answers": count, "recorded": after - used, "exit_code": code, "phases": phases}
        return {**told, "seconds": seconds, "kb_before": before, "kb_after": sizes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--soak", type=float)
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.run:
        serve(asked.run[0], Path(asked.run[1]))
        return
    if asked.soak:
        found = soak(asked.soak)
        print(found)
        keep({"soak": found})
    else:
        found = compare(asked.targets.split(","), asked.rounds, asked.seconds)
        keep({"targets": found, **machine()})


if __name__ == "__main__":
    main()
