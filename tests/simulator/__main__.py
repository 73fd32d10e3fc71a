"""Runs histories: ``python -m tests.simulator --histories 1000 --seed 0``."""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from pathlib import Path

from tests.simulator.history import played, warm_up
from tests.simulator.scheduler import simulated


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
    began = time.process_time()
    warm_up()
    with simulated():
        for seed in range(given.seed, given.seed + given.histories):
            wrong, own_steps, own_ends = played(seed, swarm, print if given.tell else None)
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
