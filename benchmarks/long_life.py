"""What becomes of everlasting prediction in a long life? Error and memory over millions of answers.

    python benchmarks/long_life.py [--only NAME ...] [--seeds 1]

writes benchmarks/results/long_life.json and .png. Two kinds of lives, each for thresholds, boxes
and a linear rule in ten columns, at delta 1e-6 and with declared bounds:

* "defaults": 10,000,000 answers, phases grow up to 1,000,000 rows;
* "small": 100 phases of at most as many rows as there were at first, so that the boundary wanders.

Thresholds and boxes run with the default prior and without one, the linear rule (ridge regressions
of six rows and more) without one. A life that is in the JSON already is kept unless --again is
given.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from everlasting import DELTA, RIDGE, Problem, boxes, linear, thresholds

from cumae.concepts import Rectangles, Thresholds
from cumae.predictors import EverlastingPredictor

mpl.use("Agg")

from matplotlib import pyplot as plt

RESULTS = Path(__file__).parent / "results"
ANSWERS, PHASES, BATCH = 10_000_000, 100, 50_000


@dataclass(frozen=True)
class Life:
    """What is learnt, from how many rows, and how long it is asked."""

    problem: Callable[[int, np.random.Generator], Problem]
    rows: int
    options: dict[str, Any]
    small: bool = False  # whether phases do not grow

    def done(self, oracle: EverlastingPredictor) -> bool:
        return oracle.phase_ > PHASES if self.small else oracle.answered_ >= ANSWERS

    def run(self, seed: int) -> dict[str, Any]:
        """Return the error of each phase, or of each million answers; memory and time."""
        generator = np.random.default_rng(seed)
        X, y, draw = self.problem(self.rows, generator)
        start = time.perf_counter()
        more: dict[str, Any] = {"max_rows": self.rows} if self.small else {}
        oracle = EverlastingPredictor(delta=DELTA, **self.options, **more).fit(X, y)
        before = megabytes()
        errors: dict[int, list[float]] = {}
        batch = min(BATCH, self.rows // 4)
        while not self.done(oracle):
            asked, right = draw(batch)
            place = oracle.phase_ if self.small else oracle.answered_ // 1_000_000 + 1
            errors.setdefault(place, []).append(float(np.mean(oracle.predict(asked) != right)))
        return {
            "seed": seed,
            "errors": [round(float(np.mean(found)), 5) for found in errors.values()],
            "phases": oracle.phase_,
            "answers": oracle.answered_,
            "shards": oracle.n_shards_,
            "prior": oracle.prior_ is not None,
            "megabytes_after_fit": before,
            "megabytes": megabytes(),
            "seconds": round(time.perf_counter() - start, 1),
        }


def megabytes() -> int:
    """Return the largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


THRESHOLDS = {"estimator": Thresholds("above"), "epsilon": 1.0, "columns": [(0, 1)]}
BOXES = {"estimator": Rectangles(), "epsilon": 3.0, "columns": [(0, 1)] * 2}
LINEAR = {"estimator": RIDGE, "epsilon": 3.0, "prior": False}
VOTES = {"prior": False}
LIVES = {
    "thresholds 1000 eps 1": Life(thresholds, 1_000, THRESHOLDS),
    "thresholds 1000 eps 1, votes alone": Life(thresholds, 1_000, THRESHOLDS | VOTES),
    "boxes 50000 eps 3": Life(boxes, 50_000, BOXES),
    "boxes 50000 eps 3, votes alone": Life(boxes, 50_000, BOXES | VOTES),
    "linear 30000 eps 3, votes alone": Life(linear, 30_000, LINEAR),
}
LIVES |= {
    f"{name}, small": Life(life.problem, life.rows, life.options, small=True)
    for name, life in {
        "thresholds 20000 eps 1": Life(thresholds, 20_000, THRESHOLDS),
        "thresholds 20000 eps 1, votes alone": Life(thresholds, 20_000, THRESHOLDS | VOTES),
        "boxes 50000 eps 3": Life(boxes, 50_000, BOXES),
        "boxes 50000 eps 3, votes alone": Life(boxes, 50_000, BOXES | VOTES),
        "linear 30000 eps 3, votes alone": Life(linear, 30_000, LINEAR),
    }.items()
}


def alone(name: str, seed: int) -> dict[str, Any]:
    """Run a life in a process of its own, so that memory is its own."""
    with get_context("spawn").Pool(1) as pool:
        return pool.apply(run, (name, seed))


def run(name: str, seed: int) -> dict[str, Any]:
    return LIVES[name].run(seed)


def plot(lives: dict[str, Any]) -> None:
    figure, pair = plt.subplots(1, 2, figsize=(12, 4.5))
    for name, runs in lives.items():
        small = LIVES[name].small
        errors = np.array([found["errors"] for found in runs])
        places = np.arange(1, errors.shape[1] + 1)
        pair[int(small)].plot(places, 100 * errors.mean(axis=0), label=name.removesuffix(", small"))
    pair[0].set(xlabel="million answers", ylabel="error in %", title="defaults")
    pair[1].set(xlabel="phase", ylabel="error in %", title="phases that do not grow")
    for axes in pair:
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(RESULTS / "long_life.png", dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", nargs="*", help="lives whose name contains one of these")
    parser.add_argument("--again", action="store_true")
    asked = parser.parse_args()
    path = RESULTS / "long_life.json"
    result: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"lives": {}}
    result |= {"python": platform.python_version(), "delta": DELTA}
    for name in LIVES:
        if asked.only is not None and not any(word in name for word in asked.only):
            continue
        runs = [] if asked.again else result["lives"].get(name, [])
        for seed in range(len(runs), asked.seeds):
            runs.append(alone(name, seed))
            print(name, runs[-1], flush=True)
            result["lives"][name] = runs
            path.write_text(json.dumps(result, indent=1) + "\n")  # what is done is done
    result["lives"] = {name: result["lives"][name] for name in LIVES if name in result["lives"]}
    path.write_text(json.dumps(result, indent=1) + "\n")
    plot(result["lives"])


if __name__ == "__main__":
    main()
