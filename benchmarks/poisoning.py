"""What if some of the queries come from another distribution?

    python benchmarks/poisoning.py [--seeds 10]

writes benchmarks/results/poisoning.json. A threshold at 0.4 on [0, 1], 20,000 rows, epsilon 3,
400,000 queries; a share of them is asked by one client, all between 0.40 and 0.45, to drag the
boundary. The error is that of the other queries, in the last tenth. Phases grow by default. Five
predictors: with the default prior, and votes alone, each keeping every query or at most 1 % of a
phase from one client; and votes alone whose rows come from a trusted source (fresh=True; it labels
a row for each answer).
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from cumae.concepts import Thresholds
from cumae.predictors import EverlastingPredictor

RESULTS = Path(__file__).parent / "results"
ROWS, QUERIES, BATCH, CUT = 20_000, 400_000, 2_000, 0.4
VOTES: dict[str, Any] = {"prior": False}
OPTIONS: dict[str, dict[str, Any]] = {
    "prior": {},
    "prior, 1 % of a client": {"client_cap": 0.01},
    "votes alone": VOTES,
    "votes alone, 1 % of a client": VOTES | {"client_cap": 0.01},
    "votes alone, fresh rows": VOTES | {"fresh": True},
}
SHARES = [0.0, 0.01, 0.05, 0.2]


def error(name: str, share: float, seed: int) -> float:
    generator = np.random.default_rng(seed)
    rows = generator.random((ROWS, 1))
    oracle = EverlastingPredictor(
        Thresholds("above"), epsilon=3.0, delta=1e-6, columns=[(0, 1)], **OPTIONS[name]
    ).fit(rows, rows[:, 0] >= CUT)
    wrong, honest = 0, 0
    for start in range(0, QUERIES, BATCH):
        asked = generator.random((BATCH, 1))
        bad = generator.random(BATCH) < share
        asked[bad] = CUT + 0.05 * asked[bad]
        more: dict[str, Any] = {}
        if "client_cap" in OPTIONS[name]:
            more["clients"] = np.where(bad, -1, generator.integers(0, 1000, BATCH))
        if "fresh" in OPTIONS[name]:
            oracle.add_unlabelled(generator.random((BATCH, 1)))
        answers = oracle.predict(asked, **more)
        if start >= 0.9 * QUERIES:
            wrong += int(np.count_nonzero((answers != (asked[:, 0] >= CUT)) & ~bad))
            honest += int(np.count_nonzero(~bad))
    return wrong / honest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    seeds = asked.seeds
    found = []
    for name in OPTIONS:
        for share in SHARES:
            errors = Parallel(n_jobs=asked.jobs, backend="multiprocessing")(
                delayed(error)(name, share, seed) for seed in range(seeds)
            )
            line = {
                "predictor": name,
                "share": share,
                "error": round(float(np.mean(errors)), 4),
                "sd": round(float(np.std(errors, ddof=1)), 4) if seeds > 1 else None,
            }
            print(line, flush=True)
            found.append(line)
    result = {"python": platform.python_version(), "seeds": seeds, "lines": found}
    (RESULTS / "poisoning.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
