"""Commands of the Makefile: what they would run, and who else runs the same."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def would_run(*arguments: str) -> list[str]:
    """Return the commands that make would run on a machine without an environment."""
    outer = ("MAKE", "MFLAGS", "PACKAGES")  # of the make that runs the tests
    environment = {name: text for name, text in os.environ.items() if not name.startswith(outer)}
    made = subprocess.run(
        ["make", "--dry-run", "READY=no-such-file", *arguments],
        cwd=ROOT,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return made.stdout.replace("\\\n", " ").splitlines()


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
        assert lines_with(f".venv/bin/{check}", quick) == lines_with(f".venv/bin/{check}", test)
    (tests,) = lines_with("/pytest", quick)
    (all_tests,) = lines_with("/pytest", test)
    assert '-m "not audit and not slow and not debian"' in tests
    assert " -m " not in all_tests


def test_packages_are_installed_for_all_tests_unless_declined() -> None:
    for given, packages in (([], "yes"), (["PACKAGES=no"], "no")):
        lines = would_run("test", *given)
        (debian,) = lines_with("debian_packages.py", lines)
        assert f"--install {packages} " in debian
        assert f'PACKAGES="{packages}"' in lines_with("tools/make_environment", lines)[0]


def test_help_lists_the_short_loop() -> None:
    shown = subprocess.run(
        ["make", "help"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    assert re.search(
        r"^quick +Run the checks, and the tests that are not slow", shown, re.MULTILINE
    )


def test_hooks_before_a_commit_are_the_checks_of_make() -> None:
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert local["repo"] == "local"  # nothing is downloaded
    hooks = local["hooks"]
    for hook in hooks:
        assert (hook["language"], hook["pass_filenames"]) == ("system", False)
    checks = [line for line in would_run("lint", "types", "imports") if "/bin/" in line]
    assert [hook["entry"] for hook in hooks] == checks


def test_a_wrong_answer_about_packages_is_refused() -> None:
    made = subprocess.run(
        ["make", "--dry-run", "test", "PACKAGES=never"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert made.returncode != 0
    assert "PACKAGES=never" in made.stderr
