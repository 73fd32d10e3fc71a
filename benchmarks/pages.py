"""How long do people wait? The start of a server, its first pages, and the demo up to its server.

    python -m benchmarks.pages [--demo]

It writes benchmarks/results/pages.json. Without ``--demo`` it serves an oracle of 20,000 rows of
the bundled survey and a published model. With it, the whole demo runs, and once more over what it
left. Times are those of the machine at that moment: let nothing else run.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from cumae import EverlastingPredictor, PrivateKernelClassifier
from cumae.datasets import load_health_survey

RESULT = Path(__file__).parent / "results" / "pages.json"
ADDRESS = re.compile(r" at (http://\S+)$")
ROWS, ROUNDS = 20_000, 3
PAGES = ("/", "/models/model", "/models/oracle", "/models/model/ask", "/admin")
GOALS = {"start": 3.0, "first page": 1.0, "demo": 45.0}


def load(address: str) -> float:
    """Return how many seconds a page takes."""
    request = urllib.request.Request(  # noqa: S310 - of this machine
        address, headers={"Accept": "text/html"}
    )
    began = time.perf_counter()
    with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310 - of this machine
        if b"<h1>" not in reply.read():
            raise ValueError(address)
    return time.perf_counter() - began


def make(folder: Path) -> None:
    """Write an oracle and a model."""
    survey = load_health_survey()
    X, y = survey.data[:ROWS], survey.target[:ROWS]
    columns = {name: (low, high, 1) for name, (low, high) in survey.bounds.items()}
    EverlastingPredictor(epsilon=1.0, delta=1e-6, columns=columns).fit(X, y).save_to(
        folder / "oracle.db"
    )
    model = PrivateKernelClassifier(1.0, 1e-6, columns=columns).fit(X, y)
    model.save(folder / "model.json")


def served(folder: Path) -> dict[str, float]:
    """Return seconds of a start, and of the first look at each page."""
    command = [sys.executable, "-m", "cumae", "serve", "--port", "0", "oracle.db", "model.json"]
    began = time.perf_counter()
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        lines = iter(process.stderr or ())
        found = next(one for one in map(ADDRESS.search, map(str.strip, lines)) if one)
        load(f"{found[1]}/why")
        times = {"start": time.perf_counter() - began, "cpu of the start": cpu(process.pid)}
        for path in PAGES:
            times[path] = load(found[1] + path)
        process.send_signal(signal.SIGTERM)
        process.communicate()
    return times


def cpu(process: int) -> float:
    """Return the CPU seconds of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def demo(folder: Path) -> float:
    """Return seconds of the demo, until its server has ended."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "cumae", "demo", "--no-serve", "--output", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began


def main() -> None:
    """Measure, and write what was found."""
    given = argparse.ArgumentParser()
    given.add_argument("--demo", action="store_true")
    with_demo = given.parse_args().demo
    found = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    about = {"machine": platform.platform(), "cores": os.cpu_count(), "goals": GOALS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if with_demo:
            times = [demo(folder / "demo") for _ in range(2)]
            found["demo"] = {**about, "load": os.getloadavg()[0], "first": times[0]}
            found["demo"]["again"] = times[1]
        else:
            make(folder)
            rounds = [served(folder) for _ in range(ROUNDS)]
            least = {key: min(one[key] for one in rounds) for key in rounds[0]}
            found["pages"] = {**about, "load": os.getloadavg()[0], "rounds": ROUNDS, **least}
    RESULT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    sys.stdout.write(RESULT.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
