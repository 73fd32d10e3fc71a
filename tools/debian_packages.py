"""Install the Debian packages that tests need, or record which of them are missing.

``make test`` calls this with the Makefile's DEBIAN_PACKAGES. Root with apt-get installs what is
missing. Anybody else is told loudly, and the record lets ``tests/conftest.py`` skip the tests
marked ``@pytest.mark.debian("package")``. With CI=true a missing package is a failure.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

Runner = Callable[[Sequence[str]], tuple[int, str]]

INSTALL = ["apt-get", "install", "--yes", "--no-install-recommends"]


def run(command: Sequence[str]) -> tuple[int, str]:
    """Run a command; return its exit code (127 if there is no such command) and its output."""
    if shutil.which(command[0]) is None:
        return 127, ""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def missing_packages(packages: Sequence[str], runner: Runner) -> list[str]:
    """Return those of the packages that are not installed."""
    asked = ["dpkg-query", "--show", "--showformat=${db:Status-Status}"]
    return [package for package in packages if runner([*asked, package]) != (0, "installed")]


def provide(packages: Sequence[str], *, may_install: bool, runner: Runner) -> list[str]:
    """Install what is missing if that is allowed; return what is still missing."""
    missing = missing_packages(packages, runner)
    if missing and may_install:
        code, _ = runner([*INSTALL, *missing])
        if code != 0:  # on a fresh machine the package lists may be empty or old
            runner(["apt-get", "update"])
            runner([*INSTALL, *missing])
        missing = missing_packages(missing, runner)
    return missing


def write_record(path: Path, packages: Sequence[str], missing: Sequence[str]) -> None:
    """Write the record in one step, so that a run beside this one never reads half of it."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(json.dumps({"packages": list(packages), "missing": list(missing)}))
    fresh.replace(path)


def main(arguments: Sequence[str] | None = None, *, runner: Runner = run) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="*")
    parser.add_argument("--record", type=Path, required=True, help="where to say what is missing")
    options = parser.parse_args(arguments)
    may_install = os.geteuid() == 0 and shutil.which("apt-get") is not None
    missing = provide(options.packages, may_install=may_install, runner=runner)
    write_record(options.record, options.packages, missing)
    if not missing:
        return 0
    in_ci = os.environ.get("CI") == "true"
    consequence = "CI=true, so this is a failure" if in_ci else "their tests will be SKIPPED"
    print(f"*** MISSING DEBIAN PACKAGES: {' '.join(missing)}: {consequence} ***", file=sys.stderr)
    return int(in_ci)


if __name__ == "__main__":
    raise SystemExit(main())
