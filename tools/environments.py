"""Environments beside the one of the tests, for packages that cannot or need not share it.

Each is made once from a list of packages, and anew when the list changes.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

PIP = ["--disable-pip-version-check", "--quiet", "--no-compile", "--prefer-binary"]


def made(wanted: Path, folder: Path, *, beside: bool = False) -> bool:
    """Make one environment, unless it is there; tell whether it is there now.

    Tests that run beside ``make`` wait here for one that is being made. With ``beside`` it has all
    packages of the environment that this runs in as well, and none of them twice.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_made(wanted, folder):
            return True
        print(f"Setting up {folder.parent.name}/{wanted.stem}; this happens once.", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=not beside)
        if beside:
            shared = sysconfig.get_path("purelib")
            site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
            line = f"import site; site.addsitedir({shared!r})\n"
            (site / "shared.pth").write_text(line, encoding="utf-8")
        run = [str(folder / "bin" / "python"), "-m", "pip", "install", *PIP, "-r", str(wanted)]
        found = subprocess.run(run, capture_output=True, text=True, check=False)
        if found.returncode:
            told = found.stderr[-2_000:]
            print(f"pip could not install {wanted.stem}:\n{told}", file=sys.stderr)
            return False
        _stamp(folder).write_text(_digest(wanted), encoding="utf-8")
        return True


def is_made(wanted: Path, folder: Path) -> bool:
    """Tell whether an environment is there, and of this list of packages."""
    stamp = _stamp(folder)
    return stamp.exists() and stamp.read_text(encoding="utf-8") == _digest(wanted)


def _stamp(folder: Path) -> Path:
    return folder / ".made-of"


def _digest(wanted: Path) -> str:
    return hashlib.sha256(wanted.read_bytes()).hexdigest()
