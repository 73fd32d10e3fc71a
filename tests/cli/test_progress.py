"""Progress of long work: plain lines where there is no terminal, and nothing about quick work."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from cumae import progress
from cumae.cli.files import checks, tables
from cumae.cli.files.csv_text import CsvForm
from cumae.cli.files.messages import say
from cumae.progress import Progress, plain_lines
from tests.census import FIT, fill, run


def test_lines_come_only_where_they_are_wanted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with plain_lines(), Progress("training", 2) as bar:
        bar.advance()  # too quick for a line
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    with Progress("training", 2) as bar:
        bar.advance()  # nobody asked for lines
    with plain_lines(), Progress("training", 2, shown=False) as bar:
        bar.advance()
    assert capsys.readouterr().err == ""
    with plain_lines(), Progress("training", 2_000) as bar, Progress("reading", None) as other:
        bar.advance(1_000)
        other.advance(7)
    assert capsys.readouterr().err == "training: 1,000 of 2,000\nreading: 7\n"


def test_reading_and_checking_a_large_file_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fill(tmp_path, 70))
    whole = tables.read_table_file("adult.csv", CsvForm())
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr(tables, "CHUNK_ROWS", 30)
    monkeypatch.setattr(checks, "BLOCK_ROWS", 40)
    words = ["--schema", "schema.toml", "--model", "curves", "-o", "m.json", "--dry-run"]
    done = run("fit", "adult.csv", *FIT, *words)
    assert done.exit_code == 0, done.stderr
    for line in ("reading adult.csv: rows: 30", "reading adult.csv: rows: 60"):
        assert line in done.stderr
    assert "checking adult.csv: rows: 40 of 70" in done.stderr
    parts = tables.read_table_file("adult.csv", CsvForm())
    for name in whole.names:
        assert parts.cells(name).tolist() == whole.cells(name).tolist()


def test_work_goes_on_when_nobody_reads_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `cumae fit ... 2>&1 | head`: what was begun is finished and written."""

    class Gone(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    monkeypatch.setattr(sys, "stderr", Gone())
    say("Reading ...")
    with plain_lines(), Progress("training", 2) as bar:
        bar.advance()
