"""Runs histories: ``python -m tests.simulator --histories 1000 --seed 0``."""

from __future__ import annotations

import argparse
import json
import subprocess
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

from tests.simulator.history import played, warm_up
from tests.simulator.scheduler import simulated

WRITTEN = 1_000  # histories after which the result is written again


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.simulator", description=__doc__)
    parser.add_argument("--histories", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first history")
    parser.add_argument("--result", type=Path, help="a JSON file to write")
    parser.add_argument("--swarm", default="{}", help="what seeds do not decide, as JSON")
    parser.add_argument("--tell", action="store_true", help="print each step")
    given = parser.parse_args()
    swarm = json.loads(given.swarm)
    warnings.simplefilter("ignore")
    steps: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    failures: dict[int, list[str]] = {}
    began, commit = time.process_time(), _commit()

    def result(count: int) -> str:
        found: dict[str, Any] = {
            "commit": commit,
            "histories": count,
            "first_seed": given.seed,
            "cpu_seconds": round(time.process_time() - began, 1),
            "failures": failures,
            "steps": dict(sorted(steps.items())),
            "operations": dict(sorted(ends.items())),
        }
        return json.dumps(found, indent=1) + "\n"

    warm_up()
    with simulated():
        for count in range(1, given.histories + 1):
            seed = given.seed + count - 1
            wrong, own_steps, own_ends = played(seed, swarm, print if given.tell else None)
            steps += own_steps
            ends += own_ends
            if wrong:
                failures[seed] = wrong
            if given.result is not None and (count % WRITTEN == 0 or count == given.histories):
                given.result.write_text(result(count), encoding="utf-8")
    print(result(given.histories), end="")


def _commit() -> str:
    run = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
