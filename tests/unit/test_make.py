"""Commands of the Makefile: what they would run, and who else runs the same."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]


def made(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make as somebody would in a shell, and not within the make that runs the tests."""
    outer = ("MAKE", "MFLAGS", "PACKAGES")
    environment = {name: text for name, text in os.environ.items() if not name.startswith(outer)}
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, env=environment, check=False, capture_output=True, text=True
    )


def would_run(*arguments: str) -> list[str]:
    """Return the commands that make would run on a machine without an environment."""
    run = made("--dry-run", "READY=no-such-file", *arguments)
    assert run.returncode == 0, run.stderr
    return run.stdout.replace("\\\n", " ").splitlines()


def lines_with(words: str, lines: list[str]) -> list[str]:
    return [line for line in lines if words in line]


def test_quick_never_installs_packages() -> None:
    for given in ([], ["PACKAGES=yes"]):
        lines = would_run("quick", *given)
        assert lines_with("debian_packages", lines) == []
        (environment,) = lines_with("tools/make_environment", lines)
        assert 'PACKAGES="no"' in environment


def test_quick_runs_all_checks_and_leaves_out_slow_tests() -> None:
    quick, test = would_run("quick"), would_run("test")
    for check in ("ruff check", "ruff format --check", "mypy", "lint-imports"):
        (line,) = lines_with(f".venv/bin/{check}", quick)
        assert lines_with(f".venv/bin/{check}", test) == [line]
    (tests,) = lines_with("/pytest", quick)
    (all_tests,) = lines_with("/pytest", test)
    assert '-m "not audit and not slow and not debian"' in tests
    assert " -m " not in all_tests


def test_packages_are_installed_for_all_tests_unless_declined() -> None:
    for given, packages in (([], "yes"), (["PACKAGES=no"], "no")):
        lines = would_run("test", *given)
        (debian,) = lines_with("debian_packages.py", lines)
        assert f"--install {packages} " in debian
        environments = lines_with("tools/make_environment", lines)
        assert environments
        assert all(f'PACKAGES="{packages}"' in line for line in environments)


@pytest.mark.parametrize("answer", ["never", ""])
def test_a_wrong_answer_about_packages_is_refused(answer: str) -> None:
    run = made("--dry-run", "test", f"PACKAGES={answer}")
    assert run.returncode != 0
    assert f"PACKAGES={answer}: give yes" in run.stderr


def test_help_lists_the_short_loop() -> None:
    (line,) = lines_with("quick ", made("help").stdout.splitlines())
    assert re.match(r"quick +Run the checks, and the tests that are not slow", line)


def test_hooks_before_a_commit_are_the_checks_of_make() -> None:
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert local["repo"] == "local"  # nothing is downloaded
    hooks = local["hooks"]
    for hook in hooks:
        assert (hook["language"], hook["pass_filenames"]) == ("system", False)
    checks = lines_with(".venv/bin/", would_run("lint", "types", "imports"))
    assert [hook["entry"] for hook in hooks] == checks
