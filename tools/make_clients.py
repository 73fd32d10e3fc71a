"""Make an environment for each inference client that the tests of the server ask with.

They can share none with cumae, nor with each other. Each is made once, under ``.venv/clients``, and
anew when its list of packages changes. A client that cannot be installed is a failure.

    python tools/make_clients.py
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LISTS = ROOT / "tests" / "serve" / "clients"
HOME = ROOT / ".venv" / "clients"
PIP = ["--disable-pip-version-check", "--quiet", "--no-compile", "--prefer-binary"]


def main() -> int:
    """Make those that are missing; return the number of failures."""
    return sum(not made(wanted, HOME / wanted.stem) for wanted in sorted(LISTS.glob("*.txt")))


def made(wanted: Path, folder: Path) -> bool:
    """Make one environment, unless it is there; tell whether it is there now.

    Tests that run beside ``make`` wait here for one that is being made.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = folder / ".made-of"
        digest = hashlib.sha256(wanted.read_bytes()).hexdigest()
        if stamp.exists() and stamp.read_text(encoding="utf-8") == digest:
            return True
        print(f"Setting up the client {wanted.stem}; this happens once.", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        run = [str(folder / "bin" / "pip"), "install", *PIP, "-r", str(wanted)]
        found = subprocess.run(run, capture_output=True, text=True, check=False)
        if found.returncode:
            told = found.stderr[-2_000:]
            print(f"pip could not install {wanted.stem}:\n{told}", file=sys.stderr)
            return False
        stamp.write_text(digest, encoding="utf-8")
        return True


if __name__ == "__main__":
    sys.exit(main())
