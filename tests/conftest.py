"""What the whole suite shares: a fixture, and hooks.

The hooks skip, loudly, what needs a Debian package that this machine lacks. They mark the tests
that tests/slow.txt lists.
"""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.oracles import Where
from tests.servers import PostgresServer, new_schema
from tests.states import throw_coins
from tests.trials import remember_trials, train_little
from tools import slow_tests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

# A busy machine is no bug: examples may take their time. CUMAE_COINS has others (see conftest.py).
settings.register_profile("cumae", deadline=None, derandomize="CUMAE_COINS" not in os.environ)
settings.load_profile("cumae")

# Written by tools/debian_packages.py on `make test`. Without it nothing is skipped.
RECORD = ".venv/debian-packages.json"
# Programs that the environments of inference clients run.
collect_ignore_glob = ["serve/clients/*", "engines/engines_script.py"]
LACKING = "there is no Debian package "  # begins the reason of a test that is skipped for it
NO_ENGINE = "no environment for "  # begins the reason of a test of an engine that is not there
# Files that repeat the same calls thousands of times. Tracing makes them two to three times slower,
# and the lines that they reach are reached by other tests.
UNTRACED = {
    "test_audit_batches",
    "test_audit_models",
    "test_audit_options",
    "test_audit_predictors",
    "test_audit_tables",
    "test_concepts_columns",
    "test_laws_have_teeth",
    "test_leaks_between_queries",
    "test_learners_extremes",
    "test_learners_laws",
    "test_learners_sklearn",
    "test_predictors_batch_law",
    "test_predictors_batches",
    "test_predictors_extremes",
    "test_predictors_sklearn",
    "test_predictors_state_of_all",
    "test_privacy_interleaving",
    "test_privacy_laws",
    "test_privacy_numbers",
    "test_tables",
}


@pytest.fixture
def coins(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return what throws the coins of the operating system anew, from a seed."""
    return partial(throw_coins, monkeypatch)


@pytest.fixture
def trials_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let predictors try out a model on made-up rows once, and not in every run of an audit."""
    remember_trials(monkeypatch)


@pytest.fixture(scope="module")
def trials_known() -> dict[bytes, bool]:
    """Return what the tests of a file remember of trials together."""
    return {}


@pytest.fixture
def trials_shared(monkeypatch: pytest.MonkeyPatch, trials_known: dict[bytes, bool]) -> None:
    """Let predictors try out a model once in all tests of a file that want it."""
    remember_trials(monkeypatch, trials_known)


@pytest.fixture
def little_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let trials of sizes and default priors be small: see ``train_little``."""
    train_little(monkeypatch)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Return a running PostgreSQL server."""
    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture
def in_postgres(postgres: PostgresServer, tmp_path: Path) -> Where:
    """Return a schema of its own for an oracle, and a key folder."""
    return new_schema(postgres, tmp_path)


@pytest.fixture(params=["file", pytest.param("postgresql", marks=pytest.mark.debian("postgresql"))])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Where:
    """Return where an oracle may live: in a file, and in PostgreSQL."""
    if request.param == "file":
        return Where(tmp_path / "oracle.db", None, tmp_path / "oracle.db.keys")
    found: Where = request.getfixturevalue("in_postgres")
    return found


@pytest.hookimpl(tryfirst=True)  # pytest's own hook selects by markers
def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    path = config.rootpath / RECORD
    record = json.loads(path.read_text()) if path.exists() else None
    slow = set(slow_tests.listed())
    for item in items:
        if slow.intersection(slow_tests.names_of(item.nodeid)):
            item.add_marker("slow")
        page = item.path.suffix == ".md"  # it shows what tests reach, too
        if page or item.path.stem in UNTRACED or item.get_closest_marker("statistical"):
            item.add_marker("no_cover")
        for marker in item.iter_markers("debian"):
            (package,) = marker.args
            if record is None:
                continue
            if package not in record["packages"]:
                raise pytest.UsageError(f"{item.nodeid}: add {package} to the Makefile's list")
            may_skip = record.get("declined", False) or os.environ.get("CI") != "true"
            if package in record["missing"] and may_skip:
                item.add_marker(pytest.mark.skip(reason=f"{LACKING}{package}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # From reports, which come back from the processes that run the tests side by side.
    for report in terminalreporter.stats.get("skipped", []):
        *_, engine = str(report.longrepr[2]).partition(NO_ENGINE)
        if engine:
            line = f"{report.nodeid} ({engine})"
            terminalreporter.write_line(
                f"*** SKIPPED for lack of an engine: {line} ***", red=True, bold=True
            )
        *_, package = str(report.longrepr[2]).partition(LACKING)
        if package:
            line = f"{report.nodeid} (needs {package})"
            terminalreporter.write_line(
                f"*** SKIPPED for lack of a Debian package: {line} ***", red=True, bold=True
            )
