"""What pip says while the environment is made goes to a log, and is shown when pip fails.

The Debian package for venv is installed after a line that says so, and not with PACKAGES=no.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Stands for an interpreter: it makes an environment whose pip only talks.
PYTHON = """#!/usr/bin/env bash
if [[ $1 = -c ]]; then exit 0; fi
if [[ -e without-venv ]]; then exit 1; fi
mkdir -p .venv/bin
printf '#!/usr/bin/env bash\\necho "WARNING: of pip, for $*" >&2\\nexit ${PIP_FAILS:-0}\\n' \\
    > .venv/bin/pip
chmod +x .venv/bin/pip
"""

# Stands for apt-get: it brings venv, and leaves a trace.
APT_GET = """#!/usr/bin/env bash
echo "apt-get $*"
rm without-venv
"""


def made(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "make_environment", folder / "tools")
    for name in ("pyproject.toml", "requirements.lock"):
        (folder / name).touch()
    python = folder / "python"
    python.write_text(PYTHON, encoding="utf-8")
    python.chmod(0o755)
    return subprocess.run(
        [folder / "tools" / "make_environment"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHON": str(python), **environment},
    )


def test_warnings_of_pip_go_to_a_log(tmp_path: Path) -> None:
    run = made(tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.count("\n") == 1
    assert ".venv/pip.log" in run.stdout
    log = (tmp_path / ".venv" / "pip.log").read_text(encoding="utf-8")
    assert log.count("WARNING: of pip") == 2
    assert "--require-hashes" in log
    assert (tmp_path / ".venv" / ".ready").exists()


def test_a_failure_of_pip_is_shown(tmp_path: Path) -> None:
    run = made(tmp_path, PIP_FAILS="1")
    assert run.returncode == 1
    assert "WARNING: of pip" in run.stderr
    assert ".venv/pip.log" in run.stderr
    assert not (tmp_path / ".venv" / ".ready").exists()


def made_without_venv(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Let root make an environment on a machine that has apt-get, but lacks python3-venv."""
    commands = folder / "commands"
    commands.mkdir()
    for name, text in (("apt-get", APT_GET), ("id", "#!/usr/bin/env bash\necho 0\n")):
        (commands / name).write_text(text, encoding="utf-8")
        (commands / name).chmod(0o755)
    (folder / "without-venv").touch()
    return made(folder, PATH=f"{commands}:{os.environ['PATH']}", **environment)


def test_a_line_names_the_debian_package_before_it_is_installed(tmp_path: Path) -> None:
    run = made_without_venv(tmp_path, PACKAGES="yes")
    assert run.returncode == 0
    _, announced, done = run.stdout.splitlines()
    assert announced.startswith("Installing the Debian package python3-venv")
    assert "PACKAGES=no" in announced
    assert done == "apt-get install --yes python3-venv"


def test_a_machine_that_is_to_be_left_alone_is(tmp_path: Path) -> None:
    run = made_without_venv(tmp_path, PACKAGES="no")
    assert run.returncode == 1
    assert "apt-get" not in run.stdout
    assert "install python3-venv and try again" in run.stderr
    assert (tmp_path / "without-venv").exists()
