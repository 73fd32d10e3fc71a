"""Fits on the command line to rows that stay where workers read them."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import cumae
from cumae.cli.app import ExitCode
from tests.census import FIT, run

ON = ["--engine", "processes://local", "--schema", "schema.toml", "--model", "kernel"]


@pytest.fixture
def parts(folder: Path) -> Path:
    """Write the private rows as a folder of two Parquet files."""
    rows = pd.read_csv(folder / "adult.csv")
    (folder / "parts").mkdir()
    for place, part in enumerate((rows[: len(rows) // 2], rows[len(rows) // 2 :])):
        part.to_parquet(folder / "parts" / f"{place}.parquet", row_group_size=500)
    return folder


def test_a_folder_is_fitted_by_processes(parts: Path) -> None:
    done = run("fit", "parts", *FIT, *ON, "-o", "there.json", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["guarantee"]["epsilon"] <= 3.0
    model, here = cumae.load(parts / "there.json"), cumae.load(parts / "model.json")
    queries = pd.read_csv(parts / "test.csv").drop(columns="income")
    assert (model.predict(queries) == here.predict(queries)).mean() > 0.8


@pytest.mark.parametrize(
    "more",
    [
        ["--route", "publish"],
        ["--max-queries", "10"],
        ["--concept", "trees"],
        ["--set", "a=1"],
        ["--separator", ";"],
        ["--encoding", "latin-1"],
        ["--goal", "ranking"],
        ["--public", "test.csv"],
        ["--dry-run"],
    ],
    ids=lambda more: more[0],
)
def test_an_option_that_no_engine_heeds_is_refused(parts: Path, more: list[str]) -> None:
    done = run("fit", "parts", *FIT, *ON, "-o", "there.json", *more)
    assert done.exit_code == ExitCode.USAGE
    assert "leave out" in done.stderr
    assert not (parts / "there.json").exists()
