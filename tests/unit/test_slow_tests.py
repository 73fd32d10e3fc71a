"""The list of slow tests: one rule writes it, no name in it is stale, and it marks the tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import slow_tests

# pytest's own words; the words before and after them are no durations.
LOG = """
.......... [100%]
============================= slowest durations =============================
6.00s call     tests/unit/test_a.py::test_long[x [1] y]
2.00s setup    tests/unit/test_a.py::test_long[other]
0.50s call     docs/page.md::page.md
0.50s call     src/cumae/module.py::cumae.module.f
0.40s call     tests/unit/test_house.py::test_rule
0.30s call     tests/unit/test_a.py::test_short
0.30s teardown tests/unit/test_b.py::test_short
3 passed in 10.00s
"""


@pytest.mark.parametrize(
    ("share", "slow"),
    [
        (
            0.05,
            ["docs/page.md", "src/cumae/module.py", "tests/unit/test_a.py::test_long", "test_b"],
        ),
        (0.1, ["docs/page.md", "src/cumae/module.py", "tests/unit/test_a.py::test_long"]),
        (0.2, ["tests/unit/test_a.py::test_long"]),
        (1.0, []),
    ],
)
def test_all_others_take_their_share_of_the_time(share: float, slow: list[str]) -> None:
    found = slow_tests.slow_tests(LOG, share)
    assert found == [name.replace("test_b", "tests/unit/test_b.py::test_short") for name in slow]


def test_a_file_that_shares_what_is_slow_counts_as_a_whole() -> None:
    log = """
    5.00s setup    tests/unit/test_c.py::test_first
    0.01s call     tests/unit/test_c.py::test_second
    1.00s call     tests/unit/test_d.py::test_quick
    """
    assert slow_tests.slow_tests(log, share=0.2) == ["tests/unit/test_c.py"]


def test_the_share_does_not_depend_on_how_busy_the_machine_is() -> None:
    busy = re.sub(r"[\d.]+(?=s )", lambda seconds: f"{7 * float(seconds[0]):.2f}", LOG)
    assert "42.00s call" in busy
    assert slow_tests.slow_tests(busy) == slow_tests.slow_tests(LOG)


def test_every_name_of_the_list_is_a_test() -> None:
    listed = slow_tests.listed()
    assert listed == sorted(set(listed))
    assert [name for name in listed if name.startswith(slow_tests.NEVER_SLOW)] == []
    assert slow_tests.stale(listed) == [], "remove these lines from tests/slow.txt"


def test_names_of_no_test_are_found(tmp_path: Path) -> None:
    (tmp_path / "page.md").touch()
    (tmp_path / "test_a.py").write_text(
        "def test_is_here(): ...\nTestMachine = ...\n", encoding="utf-8"
    )
    here = ["page.md", "test_a.py::test_is_here", "test_a.py::TestMachine::runTest"]
    gone = ["other.md", "test_a.py::test_is", "test_b.py::test_is_here"]
    assert slow_tests.stale([*here, *gone], tmp_path) == gone


def test_what_is_listed_is_marked(request: pytest.FixtureRequest) -> None:
    listed = set(slow_tests.listed())
    for item in request.session.items:
        marked = item.get_closest_marker("slow") is not None
        assert marked == bool(listed.intersection(slow_tests.names_of(item.nodeid))), item.nodeid
