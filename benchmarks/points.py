"""Which values that some rows share are found, and is one of them learnt?

    python benchmarks/points.py [--runs 20]

makes 20,000 rows without labels, of which 20 values have 60 rows each and all others are single,
and lets `StabilityHistogram` at epsilon 1, delta 1e-6 find them: among numbers, long numbers and
names. Then `GenericLearner` with `Points` learns one of them from 1,000 labelled rows, with this
sanitizer and with the two that were there before. `RandomSets` learns it without a delta, from
labelled rows alone. Results go to benchmarks/results/points.json.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cumae import GenericLearner, PrivateLearner
from cumae.concepts import Points, RandomSets
from cumae.sanitizers import StabilityHistogram

RESULTS = Path(__file__).parent / "results"
EPSILON, DELTA = 1.0, 1e-6
ROWS, VALUES, SHARED = 20_000, 20, 60
KINDS: dict[str, Callable[[int], Any]] = {
    "numbers": lambda number: float(7 * number),
    "numbers of 30 digits": lambda number: 10**30 + number,
    "names": lambda number: f"name {number:07d}",
}


def rows_of(make: Callable[[int], Any], seed: int) -> tuple[list[Any], list[Any]]:
    """Return rows without labels, and the values that 60 of them share."""
    numbers = np.random.default_rng(seed).permutation(10**6)[: ROWS - VALUES * SHARED + VALUES]
    shared = [make(int(number)) for number in numbers[:VALUES]]
    single = [make(int(number)) for number in numbers[VALUES:]]
    return shared * SHARED + single, shared


def found_all(make: Callable[[int], Any], runs: int) -> dict[str, Any]:
    """Count the runs in which every shared value is found, and those with a value too many."""
    complete = extra = 0
    for seed in range(runs):
        rows, shared = rows_of(make, seed)
        found = set(StabilityHistogram(EPSILON, DELTA).sanitize(rows).tolist())
        complete += set(shared) <= found
        extra += bool(found - set(shared))
    return {"runs": runs, "all_found": complete, "others_found": extra}


def learnt(make: Callable[[int], Any], sanitizer: str, runs: int) -> int:
    """Count the runs in which the value of 500 of 1,000 labelled rows is the published point."""
    right = 0
    for seed in range(runs):
        rows, shared = rows_of(make, seed)
        labelled = [shared[0]] * 500 + rows[-500:]
        X = np.array(rows + labelled, dtype=object).reshape(-1, 1)
        y = [-1] * len(rows) + [1] * 500 + [0] * 500
        learner = GenericLearner(Points(), EPSILON, DELTA, sanitizer)
        right += learner.fit(X, y).hypothesis_.value == shared[0]  # type: ignore[attr-defined]
    return int(right)


def improper(make: Callable[[int], Any], labels: int, runs: int) -> float:
    """Return the mean accuracy of random sets on other rows of the same kind."""
    scores = []
    for seed in range(runs):
        rows, shared = rows_of(make, seed)
        half, half_y = labels // 2, [1] * (labels // 2) + [0] * (labels // 2)
        learner = PrivateLearner(RandomSets.draw(0.1, 0.01), EPSILON)
        learner.fit([shared[0]] * half + rows[-half:], half_y)
        tested = [shared[0]] * 2_000 + rows[-half - 2_000 : -half]
        scores.append(learner.score(tested, [1] * 2_000 + [0] * 2_000))
    return round(float(np.mean(scores)), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description="Values that some rows share.")
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    start, lines = time.perf_counter(), []
    warnings.simplefilter("ignore")
    for kind, make in KINDS.items():
        line: dict[str, Any] = {"values": kind, **found_all(make, runs)}
        line["learnt"] = {"histogram": learnt(make, "histogram", runs)}
        if kind == "numbers":  # the others take no text and no more than 12 digits
            line["learnt"] |= {how: learnt(make, how, runs) for how in ("stable", "quantiles")}
        line["random_sets"] = {str(n): improper(make, n, runs) for n in (200, 400, 1_000)}
        lines.append(line)
        print(json.dumps(line), flush=True)
    asked = {"rows": ROWS, "values": VALUES, "rows_of_a_value": SHARED, "runs": runs}
    seconds = round(time.perf_counter() - start, 1)
    found = {"asked": asked, "epsilon": EPSILON, "delta": DELTA, "lines": lines, "seconds": seconds}
    (RESULTS / "points.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
