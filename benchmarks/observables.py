"""What does a holder of the disk see of contents, without keys? Lives of oracles in two worlds.

    python -m benchmarks.observables [--examples 200] [--case NAME ...] [--jobs 2]

Writes benchmarks/results/observables.json: for each predictor and each estimator, how many pairs of
worlds were compared, how many things were seen in each, and where worlds looked different. Run it
in the folder of the repository, because worlds and lives are those of the tests
(tests/observables).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import tempfile
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

from hypothesis import HealthCheck, Phase, given, seed, settings

from cumae.ensembles import blocks
from tests.observables.cases import CASES
from tests.observables.lives import examples, law

RESULT = Path(__file__).parent / "results" / "observables.json"


def run(name: str, n_examples: int) -> dict[str, Any]:
    """Compare pairs of worlds for one predictor; return counts."""
    warnings.simplefilter("ignore")
    blocks.BLOCK_ROWS = 64  # as in tests; what is stored does not depend on it
    case, counts, reasons = CASES[name], Counter[str](), Counter[str]()
    shown: dict[str, str] = {}
    steps_taken: Counter[str] = Counter()
    started = time.perf_counter()

    with tempfile.TemporaryDirectory() as folder:

        @seed(crc32(name.encode()))
        @settings(
            max_examples=n_examples,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(examples(case))
        def compare(example: Any) -> None:
            steps, world, changes = example
            counts["pairs"] += 1
            steps_taken.update(step for step, _ in steps)
            try:
                seen = law(case, steps, [world, world.changed(changes)], Path(folder))
                counts["sights"] += seen
            except AssertionError as error:
                counts["different"] += 1
                reason = _kind(str(error))
                reasons[reason] += 1
                shown.setdefault(reason, f"{steps} {changes}: {error}")

        compare()
    return {
        "case": name,
        **{key: counts[key] for key in ("pairs", "sights", "different")},
        "steps": dict(steps_taken),
        "reasons": dict(reasons.most_common()),
        "first": shown,
        "seconds": round(time.perf_counter() - started, 1),
    }


def _kind(message: str) -> str:
    """Return what differs, without numbers and names."""
    where, _, why = message.rpartition("; ")
    where = re.sub(r'\["[0-9a-f]{32}", \d+, ', "[", where.partition("at sight ")[2])
    what, _, _ = where.partition(" is ")
    return re.sub(r"\d+", "#", f"{what.partition(': ')[2]} {why.partition(': ')[0]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--case", action="append", default=[], choices=list(CASES))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--result", type=Path, default=RESULT)
    given_ = parser.parse_args()
    names = given_.case or list(CASES)
    context = multiprocessing.get_context("spawn")
    found = []
    with ProcessPoolExecutor(given_.jobs, context) as pool:
        for done in pool.map(partial(run, n_examples=given_.examples), names):
            found.append(done)
            told = {key: done[key] for key in ("case", "pairs", "sights", "different", "seconds")}
            print(told, done["reasons"], flush=True)
    totals = {key: sum(done[key] for done in found) for key in ("pairs", "sights", "different")}
    given_.result.write_text(json.dumps({**totals, "cases": found}, indent=1) + "\n")
    print(totals)


if __name__ == "__main__":
    main()
