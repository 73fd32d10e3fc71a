"""A folder with private rows, public rows, queries, a schema, a model and oracles of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.census import FIT, fill, run


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fit once for all tests: a model, an everlasting oracle, and one for 100 queries."""
    folder = fill(tmp_path_factory.mktemp("prepared"))
    before = Path.cwd()
    os.chdir(folder)
    try:
        for out, more in {
            "model.json": ["--model", "kernel"],
            "oracle.db": ["--route", "everlasting"],
            "release.db": ["--route", "release", "--max-queries", "100"],
        }.items():
            done = run("fit", "adult.csv", *FIT, "--schema", "schema.toml", "-o", out, *more)
            assert done.exit_code == 0, done.stderr
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def folder(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a copy of the folder, in which commands run."""
    copy = tmp_path / "work"
    shutil.copytree(prepared, copy)
    monkeypatch.chdir(copy)
    yield copy
    left = [path.name for path in copy.rglob("*.part")]
    assert not left  # what is written beside is gone in the end
