"""Debian packages for tests: installed when allowed, else recorded, skipped loudly, or fatal.

`make test PACKAGES=no` leaves the machine alone, and `make quick` always does.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import conftest
from tools import debian_packages

if TYPE_CHECKING:
    from collections.abc import Sequence

pytest_plugins = ["pytester"]


class FakeDebian:
    """A machine with some packages installed and some installable, and a log of its commands."""

    def __init__(self, *, installed: set[str], available: set[str], lists_fresh: bool) -> None:
        self.installed = installed
        self.available = available
        self.lists_fresh = lists_fresh
        self.log: list[str] = []

    def __call__(self, command: Sequence[str]) -> tuple[int, str]:
        self.log.append(" ".join(command[:2]))
        if command[0] == "dpkg-query":
            return (0, "installed") if command[-1] in self.installed else (1, "")
        if command[:2] == ["apt-get", "update"]:
            self.lists_fresh = True
            return 0, ""
        wanted = set(command) - set(debian_packages.INSTALL)
        if not self.lists_fresh or not wanted <= self.available:
            return 100, ""
        self.installed |= wanted
        return 0, ""


def test_missing_packages_are_installed_when_allowed() -> None:
    machine = FakeDebian(installed={"make"}, available={"strace"}, lists_fresh=True)
    missing = debian_packages.provide(["make", "strace"], may_install=True, runner=machine)
    assert missing == []
    assert machine.log.count("apt-get install") == 1


def test_a_line_names_what_is_going_to_be_installed(capsys: pytest.CaptureFixture[str]) -> None:
    class Watched(FakeDebian):
        said_before = ""

        def __call__(self, command: Sequence[str]) -> tuple[int, str]:
            if command[:2] == debian_packages.INSTALL[:2]:
                self.said_before += capsys.readouterr().out
            return super().__call__(command)

    machine = Watched(installed={"make"}, available={"strace", "chromium"}, lists_fresh=True)
    debian_packages.provide(["make", "strace", "chromium"], may_install=True, runner=machine)
    assert machine.said_before.count("\n") == 1
    assert "tests need: strace chromium;" in machine.said_before
    assert "PACKAGES=no" in machine.said_before
    assert capsys.readouterr().out == ""


def test_stale_package_lists_are_refreshed_once() -> None:
    machine = FakeDebian(installed=set(), available={"strace"}, lists_fresh=False)
    assert debian_packages.provide(["strace"], may_install=True, runner=machine) == []
    assert machine.log[1:4] == ["apt-get install", "apt-get update", "apt-get install"]


def test_nothing_is_installed_without_permission_or_need() -> None:
    machine = FakeDebian(installed={"make"}, available={"strace"}, lists_fresh=True)
    assert debian_packages.provide(["strace"], may_install=False, runner=machine) == ["strace"]
    assert debian_packages.provide(["make"], may_install=True, runner=machine) == []
    assert set(machine.log) == {"dpkg-query --show"}


@pytest.mark.parametrize(("ci", "code"), [("true", 1), ("", 0)])
def test_what_stays_missing_is_recorded_and_loud(
    ci: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CI", ci)
    machine = FakeDebian(installed={"make"}, available=set(), lists_fresh=True)
    record = tmp_path / "record.json"
    arguments = ["make", "no-such-package", "--record", str(record)]
    assert debian_packages.main(arguments, runner=machine) == code
    assert json.loads(record.read_text())["missing"] == ["no-such-package"]
    assert "*** MISSING DEBIAN PACKAGES: no-such-package" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [record]


@pytest.mark.parametrize("ci", ["true", ""])
def test_a_machine_that_is_to_be_left_alone_is(
    ci: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda command: f"/bin/{command}")
    arguments = ["strace", "--record", str(tmp_path / "record.json")]
    machine = FakeDebian(installed=set(), available={"strace"}, lists_fresh=True)
    assert debian_packages.main([*arguments, "--install", "no"], runner=machine) == 0
    assert set(machine.log) == {"dpkg-query --show"}
    told = capsys.readouterr()
    assert told.out == ""
    assert "strace: their tests will be SKIPPED, and named at the end" in told.err
    assert debian_packages.main(arguments, runner=machine) == 0  # it could have been installed
    assert machine.installed == {"strace"}


def test_nothing_missing_is_quiet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = FakeDebian(installed={"make"}, available=set(), lists_fresh=True)
    arguments = ["make", "--record", str(tmp_path / "record.json")]
    assert debian_packages.main(arguments, runner=machine) == 0
    assert capsys.readouterr().err == ""


def test_the_real_runner_sees_what_is_installed() -> None:
    if shutil.which("dpkg-query") is None:
        assert debian_packages.missing_packages(["dpkg"], debian_packages.run) == ["dpkg"]
    else:
        asked = ["dpkg", "no-such-package-at-all"]
        missing = debian_packages.missing_packages(asked, debian_packages.run)
        assert missing == ["no-such-package-at-all"]
    assert debian_packages.run(["no-such-command-at-all"]) == (127, "")


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A small suite with the real conftest and one test that needs a package."""
    monkeypatch.delenv("CI", raising=False)
    pytester.makeconftest(Path(conftest.__file__).read_text(encoding="utf-8"))
    pytester.makeini("[pytest]\nmarkers = debian(package): needs it\n")
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.debian("strace")
        def test_traces():
            assert False, "it ran"

        def test_plain():
            pass
        """
    )
    return pytester


def record(
    suite: pytest.Pytester, packages: list[str], missing: list[str], *, declined: bool = False
) -> None:
    path = suite.path / conftest.RECORD
    path.parent.mkdir()
    debian_packages.write_record(path, packages, missing, declined=declined)


def test_a_missing_package_skips_with_a_loud_line(suite: pytest.Pytester) -> None:
    record(suite, ["strace"], missing=["strace"])
    result = suite.runpytest()
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["[*][*][*] SKIPPED for *test_traces (needs strace) [*][*][*]"])


def test_ci_skips_nothing(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    record(suite, ["strace"], missing=["strace"])
    suite.runpytest().assert_outcomes(passed=1, failed=1)


@pytest.mark.parametrize("ci", ["true", ""])
def test_what_was_declined_is_skipped_and_named(
    ci: str, suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", ci)
    record(suite, ["strace"], missing=["strace"], declined=True)
    result = suite.runpytest()
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["[*][*][*] SKIPPED for *test_traces (needs strace) [*][*][*]"])


def test_a_present_package_runs(suite: pytest.Pytester) -> None:
    record(suite, ["strace"], missing=[])
    suite.runpytest().assert_outcomes(passed=1, failed=1)


def test_without_a_record_everything_runs(suite: pytest.Pytester) -> None:
    suite.runpytest().assert_outcomes(passed=1, failed=1)


def test_a_package_that_the_makefile_does_not_list_is_an_error(suite: pytest.Pytester) -> None:
    record(suite, [], missing=[])
    result = suite.runpytest()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*add strace to the Makefile*"])
