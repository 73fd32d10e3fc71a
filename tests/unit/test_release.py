"""A release: public names, numbers of formats, and the files that stand beside the code."""

from __future__ import annotations

import datetime as dt
import difflib
import importlib
import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import yaml

import cumae
from cumae.codec import FORMAT, TEXT_FORMATS
from cumae.serve import keys, openapi
from tools import components, matrix, public_names

ROOT = Path(__file__).resolve().parents[2]
STABILITY = (ROOT / "docs" / "stability.md").read_text(encoding="utf-8")


def test_public_names_and_parameters_are_those_of_the_list() -> None:
    listed = (ROOT / "tests" / "public_names.txt").read_text(encoding="utf-8").splitlines()
    changed = [*difflib.unified_diff(listed, [*public_names.lines()], lineterm="", n=0)][2:]
    assert changed == [], "docs/stability.md says what may change; CONTRIBUTING, how to list it"


def test_a_name_or_a_parameter_that_disappears_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = [*public_names.lines()]
    assert "cumae.PrivateClassifier.plan(n_samples, n_features, n_public=, *, n_unlabelled=)" in (
        whole
    )
    monkeypatch.setattr(cumae.Budget, "spend", lambda self: None)
    monkeypatch.setattr(cumae, "__all__", [one for one in cumae.__all__ if one != "load"])
    gone = set(whole) - set(public_names.lines())
    assert any(line.startswith("cumae.load(") for line in gone)
    assert any(line.startswith("cumae.Budget.spend(") for line in gone)


def formats() -> dict[str, tuple[str, str]]:
    """Return the rows of the page's table, by where the number stands in the code."""
    rows = re.findall(r"^\| [^|]+ \| (\d+) \| ([^|]+) \| `([\w.]+)` \|$", STABILITY, re.MULTILINE)
    return {where: (number, read) for number, read, where in rows}


def test_numbers_of_formats_are_those_of_the_page() -> None:
    assert formats() == {
        "cumae.codec.FORMAT": (str(FORMAT), f"1 to {FORMAT}"),
        "cumae.codec.TEXT_FORMATS": (str(TEXT_FORMATS[-1]), ", ".join(map(str, TEXT_FORMATS))),
        "cumae.serve.keys.FORMAT": (str(keys.FORMAT), "1"),
        "cumae.serve.openapi.WIRE_FORMAT": (str(openapi.WIRE_FORMAT), "1"),
    }
    for where in formats():
        module, _, name = where.rpartition(".")
        assert hasattr(importlib.import_module(module), name)


def test_every_older_format_has_files_that_the_tests_open() -> None:
    stored = ROOT / "tests" / "stored"
    assert {int(path.name[7:8]) for path in stored.glob("format_*")} == set(range(1, FORMAT))
    page = (ROOT / "docs" / "explanations" / "store_inside.md").read_text(encoding="utf-8")
    assert f"`meta` holds the format of the file, which is {FORMAT}" in page


def test_the_citation_is_valid_and_of_this_version() -> None:
    check = [sys.executable, "-m", "check_jsonschema"]
    schema = ["--builtin-schema", "vendor.citation-file-format"]
    words = [*check, *schema, "--disable-formats", "*", str(ROOT / "CITATION.cff")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    cited: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cited["version"] == cumae.__version__
    assert cited["license"] == project["license"]
    assert dt.date.fromisoformat(cited["date-released"]).year >= 2026
    assert len(cited["references"]) == 4


def test_the_changelog_has_this_version_and_what_comes_after_it() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE)[:2] == ["Unreleased", cumae.__version__]


def test_security_names_versions_and_a_way_to_report() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert f"| {cumae.__version__[:3]} " in text
    assert {"## Supported versions", "## Reporting"} <= set(text.splitlines())
    assert "SECURITY.md#reporting" in (ROOT / "CODE_OF_CONDUCT.md").read_text(encoding="utf-8")


def test_the_licence_of_every_package_that_cumae_uses_fits() -> None:
    found = components.components()
    assert [(one.name, components.unusable(one.licence)) for one in found] == [
        (one.name, "") for one in found
    ]
    assert {"numpy", "apsw", "psycopg", "starlette", "pyarrow"} <= {one.name for one in found}
    # Each name that stands for several licences is still what the package says.
    for name, licence in components.READ.items():
        assert components.licence_of(metadata.distribution(name)) == licence


@pytest.mark.parametrize(
    "licence", ["", "GPL-3.0-only", "AGPL-3.0-or-later", "MIT AND GPL-2.0-only", "Proprietary"]
)
def test_a_licence_that_does_not_fit_is_found(licence: str) -> None:
    assert components.unusable(licence)


def test_the_bill_of_materials_is_whole_and_the_same_each_time(tmp_path: Path) -> None:
    first, second = tmp_path / "a.json", tmp_path / "b.json"
    assert [components.main(["sbom", "-o", str(one)]) for one in (first, second)] == [0, 0]
    assert first.read_bytes() == second.read_bytes()
    bill = json.loads(first.read_text(encoding="utf-8"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", bill["serialNumber"])
    refs = [bill["metadata"]["component"]["bom-ref"], *(c["bom-ref"] for c in bill["components"])]
    assert len(set(refs)) == len(refs)
    assert {one["ref"] for one in bill["dependencies"]} == set(refs)
    assert {each for one in bill["dependencies"] for each in one["dependsOn"]} <= set(refs)
    assert all(re.fullmatch(r"pkg:pypi/[a-z0-9-]+@\S+", ref) for ref in refs)
    hashed = [one for one in bill["components"] if one.get("properties")]
    assert len(hashed) > 0.9 * len(bill["components"])


def test_the_matrix_covers_every_declared_python_and_names_those_that_are_not_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    made: list[str] = []
    monkeypatch.setattr(matrix, "FOLDER", tmp_path)
    monkeypatch.setattr(matrix, "python_of", lambda one: None if one == "3.12" else f"p{one}")

    def make(name: str, *_: str) -> Path:
        made.append(name)
        return Path(name)

    monkeypatch.setattr(matrix, "make", make)
    monkeypatch.setattr(matrix, "passes", lambda name, _: name != "3.13")
    assert matrix.main([]) == 1
    assert made == ["oldest", "3.11", "3.13"]
    lines = capsys.readouterr().out.splitlines()
    assert "Python 3.12: not found: not tested" in lines
    assert "Python 3.13: FAILS" in lines
    assert "Python 3.11 with oldest versions: passes" in lines
    assert all((ROOT / test).exists() for test in matrix.TESTS)
