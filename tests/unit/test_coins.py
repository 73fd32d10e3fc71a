"""The coins of the suite: fixed by a test's name, unless it is marked."""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from cumae.randomness import integers

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
SUITE = """
    import pytest
    from cumae.randomness import integers

    @pytest.fixture(scope="module")
    def before():
        return integers(2**64)

    def test_first(before, record_property):
        record_property("drawn", (before, integers(2**64)))

    def test_second(record_property):
        record_property("drawn", integers(2**64))

    @pytest.mark.{mark}
    def test_marked(record_property):
        record_property("drawn", integers(2**64))
    """


def draws(pytester: pytest.Pytester, mark: str) -> dict[str, Any]:
    """Return what the tests of a small suite drew."""
    pytester.makeconftest((ROOT / "conftest.py").read_text(encoding="utf-8"))
    pytester.makeini("[pytest]\nmarkers =\n  statistical\n  system_coins\n")
    pytester.makepyfile(test_small=SUITE.format(mark=mark), test_other=SUITE.format(mark=mark))
    reports = pytester.inline_run("-p", "no:cacheprovider").getreports("pytest_runtest_logreport")
    found = [report for report in reports if report.when == "call"]
    assert all(report.passed for report in found)
    return {report.nodeid: report.user_properties[0][1] for report in found}


@pytest.mark.parametrize("mark", ["statistical", "system_coins"])
def test_the_name_of_a_test_decides_its_coins(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    monkeypatch.delenv("CUMAE_COINS", raising=False)
    first, again = draws(pytester, mark), draws(pytester, mark)
    for name, drawn in first.items():
        assert (drawn == again[name]) == ("marked" not in name)
    monkeypatch.setenv("CUMAE_COINS", "7")
    others = draws(pytester, mark)
    assert len({*first.values(), *others.values()}) == 12  # of six tests, in two suites


def _child_draws(queue: Any) -> None:
    queue.put(integers(2**64))


def test_a_forked_process_does_not_repeat_them() -> None:
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child_draws, args=(queue,))
    child.start()
    drawn = queue.get(timeout=60)
    child.join()
    assert drawn != integers(2**64)
