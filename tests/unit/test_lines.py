"""Lines of code: the tool counts what is code, for the package and each package inside."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools import lines

MODULE = '''\
"""A docstring
of two lines."""

from __future__ import annotations

# A comment.
import os
from pathlib import (
    Path,  # of the import
)

TEXT = """a text
that is no docstring

with a blank line"""


class Thing:
    """A docstring."""

    # A comment.
    value = 1  # and another one

    def of(self) -> "Thing":
        """A longer

        docstring.
        """
        import json

        "a text on its own"
        return Thing(
            os, Path, json

        )


def short(): "a docstring"
'''
CODE = {12, 13, 15, 18, 22, 24, 31, 32, 33, 35, 38}


def test_it_finds_the_lines_of_code() -> None:
    assert lines.code_lines(MODULE) == CODE
    assert lines.code_lines('"""A docstring."""\n') == lines.code_lines("") == set()
    assert lines.code_lines('x = "ä"; import os\n') == {1}


def test_it_counts_packages(tmp_path: Path) -> None:
    package = tmp_path / "thing"
    for name in ("__init__.py", "a.py", "inner/__init__.py", "inner/b.py", "inner/more/c.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text('"""A docstring."""\n\nx = 1\n', encoding="utf-8")
    (package / "notes.txt").write_text("x = 1\n", encoding="utf-8")
    expected = {"thing": 5, "thing.inner": 3, "thing.inner.more": 1}
    assert lines.count(package) == expected
    file = tmp_path / "lines.json"
    run = [sys.executable, lines.__file__, str(package), "--json", str(file)]
    told = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    assert [line.split() for line in told.splitlines()] == [
        ["thing", "5"],
        ["inner", "3"],
        ["more", "1"],
    ]
    assert json.loads(file.read_text(encoding="utf-8")) == expected


@pytest.mark.parametrize("name", ["cumae.store", "cumae.predictors.everlasting"])
def test_it_counts_this_package(name: str) -> None:
    path = lines.SOURCE.parent.joinpath(*name.split("."))
    everything = sum(
        len(file.read_text(encoding="utf-8").splitlines()) for file in path.rglob("*.py")
    )
    assert 0.2 * everything < lines.count(path)[path.name] < 0.9 * everything
