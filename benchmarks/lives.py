"""Is anything given twice? Histories of real processes with kills, signals, copies and restores.

    python -m benchmarks.lives --sqlite 1000 --postgres 200 [--seed 0] [--jobs 2]
    python -m benchmarks.lives --sqlite 1 --seed 17 --tell
    python -m benchmarks.lives --sqlite 50 --plant name_and_mark_are_not_read

The first writes benchmarks/results/lives.json. Run it in the folder of the repository, because
histories and their judge are those of the tests (tests/real). A seed decides what is done. When a
signal that comes at a time arrives is up to the machine, so that a seed that failed may have to be
repeated. ``--plant`` lets the store have a bug (tests/real/plants.py), which must be found.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.real.files import FileHistory
from tests.real.history import played, warm_up
from tests.real.plants import PLANTS
from tests.real.replicas import ReplicaHistory
from tests.servers import PostgresServer

RESULT = Path(__file__).parent / "results" / "lives.json"


def run(seeds: range, *, shared: bool, tell: bool) -> tuple[Counter[str], dict[int, list[str]]]:
    """Run histories; return counts, and what was wrong with each seed."""
    counts: Counter[str] = Counter()
    failures: dict[int, list[str]] = {}
    server = PostgresServer() if shared else None
    try:
        for seed in seeds:
            if server is None:
                history, wrong = played(FileHistory, seed)
            else:
                history, wrong = played(ReplicaHistory, seed, server)
            counts += history.counts + history.judge.counts
            if wrong:
                failures[seed] = wrong
                print(f"seed {seed}: {wrong}", file=sys.stderr, flush=True)
            if tell:
                print("\n".join(history.told))
    finally:
        if server is not None:
            server.remove()
    return counts, failures


def run_all(seeds: range, jobs: int, *, shared: bool, tell: bool) -> dict[str, Any]:
    """Run histories in several processes; return what is to be written."""
    if not seeds:
        return {}
    before = os.times()
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("fork")) as pool:
        parts = [seeds[start::jobs] for start in range(jobs)]
        found = list(pool.map(partial(run, shared=shared, tell=tell), parts))
    after = os.times()
    counts = sum((part for part, _ in found), Counter())
    return {
        "histories": len(seeds),
        "first_seed": seeds[0],
        "failures": {seed: wrong for _, part in found for seed, wrong in part.items()},
        "cpu_seconds": round(sum(after[:4]) - sum(before[:4])),
        "counts": dict(sorted(counts.items())),
    }


def commit() -> str:
    """Return the commit that is checked out, with a plus if something was changed."""
    words = ["git", "describe", "--always", "--abbrev=12", "--dirty=+"]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lives", description=__doc__)
    parser.add_argument("--sqlite", type=int, default=0, help="histories of files")
    parser.add_argument("--postgres", type=int, default=0, help="histories of replicas")
    parser.add_argument("--seed", type=int, default=0, help="of the first history")
    parser.add_argument("--jobs", type=int, default=1, help="processes that run histories")
    parser.add_argument("--plant", choices=[plant.__name__ for plant in PLANTS])
    parser.add_argument("--tell", action="store_true", help="print what happens")
    parser.add_argument("--result", type=Path, default=RESULT)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    warm_up()
    with pytest.MonkeyPatch.context() as patch:
        for plant in PLANTS:
            if plant.__name__ == given.plant:
                plant(patch)
        result: dict[str, Any] = {"commit": commit(), "plant": given.plant}
        for name, count in (("sqlite", given.sqlite), ("postgres", given.postgres)):
            seeds = range(given.seed, given.seed + count)
            shared = name == "postgres"
            result[name] = run_all(seeds, given.jobs, shared=shared, tell=given.tell)
    text = json.dumps(result, indent=1)
    print(text)
    if given.plant is None:
        given.result.write_text(text + "\n", encoding="utf-8")
    elif not any(result[name].get("failures") for name in ("sqlite", "postgres")):
        sys.exit(f"{given.plant} was not found")


if __name__ == "__main__":
    main()
