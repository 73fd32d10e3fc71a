"""Dask, Ray and Spark, on their own workers: the law, killed workers, and the same model.

A script runs in an environment of its own for each (``make engines``), and shuts all down at its
end. Dask is in the environment of the tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import NO_ENGINE
from tools import environments, make_engines

pytestmark = pytest.mark.claim("PIECES")
HERE = Path(__file__).parent
SCRIPT = HERE / "engines_script.py"
LONGEST = 900.0  # seconds, on a machine that does much else
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_IMPORT_WARNING": "1"}
WITHOUT = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def python_of(engine: str) -> str:
    """Return the Python of an engine's environment; skip, and name it, if there is none."""
    if engine == "dask":
        return sys.executable
    folder = make_engines.HOME / engine
    if not environments.is_made(HERE / f"{engine}.txt", folder):
        pytest.skip(f"{NO_ENGINE}{engine}: make engines")
    return str(folder / "bin" / "python")


@pytest.mark.parametrize(
    "engine",
    [
        "dask",
        "ray",
        pytest.param("spark", marks=pytest.mark.debian("openjdk-17-jre-headless")),
    ],
)
def test_an_engine_keeps_the_law_although_workers_die(engine: str, tmp_path: Path) -> None:
    run = [python_of(engine), str(SCRIPT), engine]
    done = subprocess.run(
        run,
        cwd=tmp_path,
        env=os.environ | QUIET | WITHOUT,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    # An engine may print a line of its own at any time.
    (line,) = (one for one in done.stdout.splitlines() if one.startswith("{"))
    found = json.loads(line)
    assert found["law"]
    # A worker dies while it reads, and another one while it keeps pieces: each is added once.
    assert found["died"]
    assert found["killed"] == 1
    assert found["model after a death"]
    assert found["model of files"]
    assert found["its own frames"]
    assert found["payments"] == 1
    # Neither errors nor the output of workers show a cell.
    assert found["failed"].startswith("WorkerFailed: a worker of ")
    assert "KeyError in piece 0 of 2" in found["failed"]
    assert "InvalidData: X has a missing value (NaN) in row 1234, column dose" in found["missing"]
    assert "31.4159" not in done.stdout + done.stderr
