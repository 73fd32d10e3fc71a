"""Make an environment for each engine whose packages are too large for that of the tests.

It has Ray or Spark beside all packages of the environment that this runs in. Each is made once,
under ``.venv/engines``, and anew when its list of packages changes. Dask is in the environment of
the tests. Spark needs Java, which ``tools/debian_packages.py`` installs.

    python -m tools.make_engines
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.environments import made

ROOT = Path(__file__).resolve().parents[1]
LISTS = ROOT / "tests" / "engines"
HOME = ROOT / ".venv" / "engines"


def main() -> int:
    """Make those that are missing, side by side; return the number of failures."""
    with ThreadPoolExecutor() as pool:
        lists = sorted(LISTS.glob("*.txt"))
        done = pool.map(lambda wanted: made(wanted, HOME / wanted.stem, beside=True), lists)
        return sum(not one for one in done)


if __name__ == "__main__":
    sys.exit(main())
