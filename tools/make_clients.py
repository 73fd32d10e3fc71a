"""Make an environment for each inference client that the tests of the server ask with.

They can share none with cumae, nor with each other. Each is made once, under ``.venv/clients``, and
anew when its list of packages changes. A client that cannot be installed is a failure.

    python -m tools.make_clients
"""

from __future__ import annotations

import sys
from pathlib import Path

from tools.environments import made

ROOT = Path(__file__).resolve().parents[1]
LISTS = ROOT / "tests" / "serve" / "clients"
HOME = ROOT / ".venv" / "clients"


def main() -> int:
    """Make those that are missing; return the number of failures."""
    return sum(not made(wanted, HOME / wanted.stem) for wanted in sorted(LISTS.glob("*.txt")))


if __name__ == "__main__":
    sys.exit(main())
