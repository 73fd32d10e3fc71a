"""What the whole suite shares: a fixture, and hooks.

The hooks skip, loudly, what needs a Debian package that this machine lacks.
"""

from __future__ import annotations

import json
import os
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.states import throw_coins
from tests.trials import remember_trials

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# A busy machine is no bug: examples may take their time. CUMAE_COINS has others (see conftest.py).
settings.register_profile("cumae", deadline=None, derandomize="CUMAE_COINS" not in os.environ)
settings.load_profile("cumae")

# Written by tools/debian_packages.py on `make test`. Without it nothing is skipped.
RECORD = ".venv/debian-packages.json"
LACKING = "there is no Debian package "  # begins the reason of a test that is skipped for it
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


def pytest_collection_modifyitems(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    path = config.rootpath / RECORD
    record = json.loads(path.read_text()) if path.exists() else None
    for item in items:
        page = item.path.suffix == ".md"  # it shows what tests reach, too
        if page or item.path.stem in UNTRACED or item.get_closest_marker("statistical"):
            item.add_marker("no_cover")
        for marker in item.iter_markers("debian"):
            (package,) = marker.args
            if record is None:
                continue
            if package not in record["packages"]:
                raise pytest.UsageError(f"{item.nodeid}: add {package} to the Makefile's list")
            if package in record["missing"] and os.environ.get("CI") != "true":
                item.add_marker(pytest.mark.skip(reason=f"{LACKING}{package}"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # From reports, which come back from the processes that run the tests side by side.
    for report in terminalreporter.stats.get("skipped", []):
        *_, package = str(report.longrepr[2]).partition(LACKING)
        if package:
            line = f"{report.nodeid} (needs {package})"
            terminalreporter.write_line(
                f"*** SKIPPED for lack of a Debian package: {line} ***", red=True, bold=True
            )
