"""Write tests/slow.txt, the list of the tests that ``make quick`` leaves out.

``make slow`` runs all tests, and gives this program what pytest says with ``--durations=0``. The
quickest tests that together take a tenth of the time of all are kept; the rest are slow. A share
does not depend on how fast or busy a machine is. A test counts with all of its parameters, and a
page or a module of the package with all of its examples. A file of tests whose set-up takes longer
than the tests counts as a whole, because the first test pays for what all of them share.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SLOW = ROOT / "tests" / "slow.txt"
SHARE = 0.1  # of the time of all tests, for those that are not slow
# Rules that a change breaks most easily are checked each time.
NEVER_SLOW = ("tests/unit/test_house.py", "tests/test_claims.py")
DURATION = re.compile(r"^\s*([\d.]+)s (setup|call|teardown) +(\S.*)$", re.MULTILINE)


def names_of(test: str) -> tuple[str, str]:
    """Return the names under which a test may be listed: its own without parameters, its file's."""
    name = test.partition("[")[0]
    return name, name.partition("::")[0]


def slow_tests(log: str, share: float = SHARE) -> list[str]:
    """Return the names of slow tests, by the durations in what pytest said."""
    durations = [
        (float(number), step, *names_of(test)) for number, step, test in DURATION.findall(log)
    ]
    set_up: dict[str, float] = defaultdict(float)  # less what the tests themselves take
    for duration, step, _, file in durations:
        set_up[file] += duration if step == "setup" else -duration
    seconds: dict[str, float] = defaultdict(float)
    for duration, _, test, file in durations:
        whole = set_up[file] > 0 or not file.startswith("tests/")
        seconds[file if whole else test] += duration
    left = share * sum(seconds.values())
    slow = []
    for name in sorted(seconds, key=lambda name: seconds[name]):
        left -= seconds[name]
        if left < 0 and not name.startswith(NEVER_SLOW):
            slow.append(name)
    return sorted(slow)


def listed() -> list[str]:
    """Return the names in the list."""
    return SLOW.read_text(encoding="utf-8").splitlines()


def stale(names: list[str], root: Path = ROOT) -> list[str]:
    """Return the names of the list that belong to no file, or to nothing in it."""
    found = []
    for name in names:
        path, *inside = name.split("::")
        file = root / path
        text = file.read_text(encoding="utf-8") if file.is_file() else None
        if text is None or (inside and not _defines(text, inside[0])):
            found.append(name)
    return found


def _defines(text: str, name: str) -> bool:
    """Tell whether a file has a function, a class or a variable of this name."""
    return re.search(rf"^(def |class )?{name}\b", text, re.MULTILINE) is not None


if __name__ == "__main__":
    slow = slow_tests(sys.stdin.read())
    if not slow:
        raise SystemExit("No durations were given; pytest shows them with --durations=0.")
    SLOW.write_text("\n".join(slow) + "\n", encoding="utf-8")
    print(f"{SLOW.relative_to(ROOT)} lists {len(slow)} slow tests.")
