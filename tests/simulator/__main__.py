"""Runs histories: ``python -m tests.simulator --histories 1000 --seed 0``."""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from pathlib import Path

from tests.simulator.history import played
from tests.simulator.scheduler import simulated


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.simulator", description=__doc__)
    parser.add_argument("--histories", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first history")
    parser.add_argument("--result", type=Path, help="a JSON file to write")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    steps: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    failures: dict[int, list[str]] = {}
    began = time.process_time()
    with simulated():
        for seed in range(given.seed, given.seed + given.histories):
            wrong, own_steps, own_ends = played(seed)
            steps += own_steps
            ends += own_ends
            if wrong:
                failures[seed] = wrong
    seconds = round(time.process_time() - began, 1)
    result = {
        "histories": given.histories,
        "first_seed": given.seed,
        "cpu_seconds": seconds,
        "failures": failures,
        "steps": dict(sorted(steps.items())),
        "operations": dict(sorted(ends.items())),
    }
    text = json.dumps(result, indent=1)
    print(text)
    if given.result is not None:
        given.result.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
