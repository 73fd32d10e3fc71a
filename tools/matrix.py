"""Run some quick tests with other versions: each declared Python, and the oldest dependencies.

An environment for each version of Python in pyproject.toml that this machine has, with the versions
of requirements.lock; and one more with the oldest Python, where every dependency that
pyproject.toml declares has the oldest version that it allows. Versions of Python that are not found
are named at the end. The environments stay in .venv/matrix, so that a second run is quick.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".venv" / "matrix"
TOOLS = (
    *("hypothesis", "mpmath", "mypy", "opendp", "pandas-stubs", "pytest", "pytest-cov"),
    *("pytest-xdist", "pyyaml", "scipy-stubs"),
)
TESTS = (
    "tests/unit/test_import.py",  # every exported name
    "tests/unit/test_codec.py",  # laws of what is stored, for every class
    "tests/unit/test_learners_thresholds.py",  # a learner
    "tests/unit/test_store_oracles.py",  # oracles in files
)
OLDEST = "oldest"


def declared(project: str) -> list[str]:
    """Return the versions of Python that a project declares, the oldest first.

    Examples
    --------
    >>> declared(
    ...     '"Programming Language :: Python :: 3.9", "Programming Language :: Python :: 3.10"'
    ... )
    ['3.9', '3.10']
    """
    found = re.findall(r'"Programming Language :: Python :: (\d+\.\d+)"', project)
    return sorted(found, key=lambda one: [int(part) for part in one.split(".")])


def python_of(version: str) -> str | None:
    """Return a command that runs this version of Python, if the machine has one."""
    homes = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for command in (f"python{version}", *map(str, reversed(homes))):
        asked = [command, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        try:
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            continue
        if done.stdout.strip() == version:
            return command
    return None


def locked(lock: str) -> str:
    """Return the versions of a lock without hashes, as constraints.

    Examples
    --------
    >>> print(
    ...     locked("a==1.0 \\\\\\n    --hash=sha256:12\\nb[x]==2 ; python_version < '3.12' \\\\\\n")
    ... )
    a==1.0
    b==2 ; python_version < '3.12'
    """
    lines = (line.rstrip(" \\") for line in lock.splitlines() if "==" in line and line[0] != " ")
    return "\n".join(re.sub(r"\[.*?\]", "", line, count=1) for line in lines)


def run(*words: object) -> None:
    """Run a command; raise if it fails."""
    subprocess.run([str(word) for word in words], cwd=ROOT, check=True)


def make(name: str, python: str, version: str) -> Path:
    """Make one environment, and return its Python."""
    uv = FOLDER / "uv" / "bin" / "uv"
    if not uv.exists():
        run(sys.executable, "-m", "venv", FOLDER / "uv")
        run(FOLDER / "uv" / "bin" / "pip", "install", "--quiet", "uv")
    home, wanted = FOLDER / name, FOLDER / f"{name}.txt"
    if name == OLDEST:
        lowest = ("--resolution", "lowest-direct", "--python-version", version)
        run(uv, "pip", "compile", "-q", "pyproject.toml", "--extra", "all", *lowest, "-o", wanted)
    else:
        wanted.write_text(locked((ROOT / "requirements.lock").read_text("utf-8")), "utf-8")
    own = home / "bin" / "python"
    if not own.exists():
        run(uv, "venv", "-q", "--python", python, home)
    needed = ("-r", wanted) if name == OLDEST else (".[all]", "-c", wanted)
    run(uv, "pip", "install", "-q", "--python", own, *needed, *TOOLS)
    run(uv, "pip", "install", "-q", "--python", own, "--no-deps", "-e", ".")
    return own


def passes(name: str, python: Path) -> bool:
    """Run the tests in one environment, and tell whether they pass."""
    words = [str(python), "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", *TESTS]
    print(f"== {name}", flush=True)
    compiled = {"NUMBA_CACHE_DIR": str(FOLDER / f"{name}-compiled")}  # of this numba, apart
    done = subprocess.run(words, cwd=ROOT, check=False, env={**os.environ, **compiled})
    return done.returncode == 0


def main(words: list[str] | None = None) -> int:
    """Run the command line, and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", help=f"one environment: a version of Python, or {OLDEST}")
    given = parser.parse_args(words)
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    versions = declared(text)
    least = tomllib.loads(text)["project"]["requires-python"]
    if least != f">={versions[0]}":
        raise SystemExit(f"requires-python is {least}, but the classifiers begin at {versions[0]}.")
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines, failed = [], False
    for name, version in [(OLDEST, versions[0]), *((one, one) for one in versions)]:
        if given.only not in (None, name):
            continue
        python = python_of(version)
        good = python is not None and passes(name, make(name, python, version))
        failed |= python is not None and not good
        words_for = "passes" if good else "FAILS" if python else "not found: not tested"
        lines.append(f"Python {version}{' with oldest versions' * (name == OLDEST)}: {words_for}")
    print("\n".join(lines))
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
