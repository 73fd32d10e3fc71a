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
PIP = ["--disable-pip-version-check", "--quiet", "--no-compile", "--prefer-binary"]


def main() -> int:
    """Make those that are missing; return the number of failures."""
    home = ROOT / ".venv" / "clients"
    home.mkdir(parents=True, exist_ok=True)
    failures = 0
    with (home / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests and make may both come by
        for wanted in sorted(LISTS.glob("*.txt")):
            failures += not made(wanted, home / wanted.stem)
    return failures


def made(wanted: Path, folder: Path) -> bool:
    """Make one environment, unless it is there; tell whether it is there now."""
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
        print(f"pip could not install {wanted.stem}:\n{found.stderr[-2_000:]}", file=sys.stderr)
        return False
    stamp.write_text(digest, encoding="utf-8")
    return True


if __name__ == "__main__":
    sys.exit(main())
