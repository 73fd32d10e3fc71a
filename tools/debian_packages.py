"""Install the Debian packages that tests need, or record which of them are missing.

``make test`` calls this with the Makefile's DEBIAN_PACKAGES. Root with apt-get installs what is
missing, after a line that names it. Anybody else is told loudly, and the record lets
``tests/conftest.py`` skip the tests marked ``@pytest.mark.debian("package")``. With CI=true a
missing package is a failure. ``make test PACKAGES=no`` installs nothing, and skips these tests even
with CI=true, because somebody asked for it.
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
        print(
            f"Installing Debian packages that tests need: {' '.join(missing)}; "
            "PACKAGES=no would install nothing.",
            flush=True,
        )
        code, _ = runner([*INSTALL, *missing])
        if code != 0:  # on a fresh machine the package lists may be empty or old
            runner(["apt-get", "update"])
            runner([*INSTALL, *missing])
        missing = missing_packages(missing, runner)
    return missing


def write_record(
    path: Path, packages: Sequence[str], missing: Sequence[str], *, declined: bool = False
) -> None:
    """Write the record in one step, so that a run beside this one never reads half of it.

    ``declined`` says that PACKAGES=no was given, so that missing packages are no failure in CI.
    """
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    record = {"packages": list(packages), "missing": list(missing), "declined": declined}
    fresh.write_text(json.dumps(record))
    fresh.replace(path)


def main(arguments: Sequence[str] | None = None, *, runner: Runner = run) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="*")
    parser.add_argument("--record", type=Path, required=True, help="where to say what is missing")
    parser.add_argument("--install", choices=["yes", "no"], default="yes", help="PACKAGES of make")
    options = parser.parse_args(arguments)
    declined = options.install == "no"
    may_install = not declined and os.geteuid() == 0 and shutil.which("apt-get") is not None
    missing = provide(options.packages, may_install=may_install, runner=runner)
    write_record(options.record, options.packages, missing, declined=declined)
    if not missing:
        return 0
    failed = os.environ.get("CI") == "true" and not declined
    consequence = (
        "CI=true, so this is a failure"
        if failed
        else "their tests will be SKIPPED, and named at the end"
    )
    print(f"*** MISSING DEBIAN PACKAGES: {' '.join(missing)}: {consequence} ***", file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
