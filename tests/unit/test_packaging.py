"""What is shipped: the wheel holds the data, the lock holds hashes and names no index."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
DATA = "cumae/datasets/data/brfss_highbp.csv.gz"
FORECASTS = "cumae/planning/forecasts.json"


def test_the_bundled_data_are_in_the_wheel_and_the_source_distribution(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert {DATA, FORECASTS, "cumae/py.typed"} <= set(archive.namelist())
        assert {name.split("/")[0].split("-")[0] for name in archive.namelist()} == {"cumae"}
    (source,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{DATA}", "LICENSE", "requirements.lock", "tools/claims.py"} <= names


def test_the_lock_has_hashes_and_no_index() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    requirements = re.split(r"\n(?=\S)", lock.strip())
    assert len(requirements) > 40
    for requirement in requirements:
        assert re.match(r"[a-z0-9.-]+==\S+", requirement), requirement
        assert "--hash=sha256:" in requirement
    assert "://" not in lock
    assert "index" not in lock


def test_continuous_integration_runs_exactly_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    lines = script.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if "make" in line] == ["exec make test"]
