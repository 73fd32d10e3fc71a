"""How fast should phases grow, and how large should shards be? A simulation of thresholds.

    python benchmarks/schedule.py [--seeds 4]

writes benchmarks/results/schedule.json. It repeats what EverlastingPredictor does with
``Thresholds("above")`` and declared bounds from 0 to 1, without its machinery: the same shards,
the same rule of a shard, votes, noise and margins; a million answers each. delta is 1e-6.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.ensembles.growing.representatives import ABOVE, EVERYTHING, NOTHING, gaps
from cumae.privacy import calibrate_gaussian

RESULTS = Path(__file__).parent / "results"
ANSWERS, CHUNK, MOST = 1_000_000, 100_000, 1_000_000
EPSILON = 1.0
# Standard deviation of the noise for one answer; for R answers it is this times the root of R.
UNIT = calibrate_gaussian(EPSILON, 1e-6, 10_000) / 100

Table = NDArray[Any]
DRAWS: dict[str, Callable[[np.random.Generator, int], Table]] = {
    "uniform": lambda generator, count: generator.random(count),
    "beta(2, 5)": lambda generator, count: generator.beta(2, 5, count),
    "a fifth of the bounds": lambda generator, count: 0.05 + 0.2 * generator.random(count),
    "exponential": lambda generator, count: np.minimum(generator.exponential(0.1, count), 1),
}


def cuts(column: Table, signed: Table, starts: Table, coin: Table, *, bounds: bool) -> Table:
    """Return the cut of each shard, in order, as representatives.py chooses it."""
    kinds, lows, highs = gaps(column, signed, starts, above=True, below=False)
    inner, first, last = (lows + highs) / 2, lows / 2, (highs + 1) / 2
    if not bounds:
        inner, first, last = np.where(coin, lows + 1e-12, highs), lows, highs + 1e-12
    found = np.where(kinds == ABOVE, inner, 0.0)
    found = np.where(kinds == EVERYTHING, np.where(coin, -1.0, first), found)
    return np.sort(np.where(kinds == NOTHING, np.where(coin, 2.0, last), found))


def errors(
    rows: int, growth: float, size: Callable[[float], int], draw: str, *, seed: int, bounds: bool
) -> tuple[float, float]:
    """Return the share of wrong answers: of all, and of the last chunk.

    ``size`` gets the number of rows for each unit of noise.
    """
    generator = np.random.default_rng(seed)
    cut = np.quantile(DRAWS[draw](generator, 20_001), generator.uniform(0.2, 0.8))
    asked = DRAWS[draw](generator, rows)
    signed = np.where(asked >= cut, 1, -1)
    wrong: list[Table] = []
    done = 0
    while done < ANSWERS:
        n_rows = len(asked)
        releases = max(n_rows, min(math.ceil(growth * n_rows), MOST))
        scale = UNIT * math.sqrt(releases)
        n_shards = max(1, n_rows // size(n_rows / scale))
        order, starts = generator.permutation(n_rows), np.arange(n_shards + 1) * n_rows // n_shards
        coin = generator.random(n_shards) < 0.5
        found = cuts(asked[order], signed[order], starts, coin, bounds=bounds)
        asked = DRAWS[draw](generator, releases)
        votes = np.searchsorted(found, asked, side="right")
        noisy = np.rint(votes + generator.normal(0, scale, releases)).astype(np.int64)
        wrong.append((2 * noisy > n_shards) != (asked >= cut))
        signed = 2 * np.clip(noisy, 0, n_shards) - n_shards
        done += releases
    all_of_them = np.concatenate(wrong)[:ANSWERS]
    return float(all_of_them.mean()), float(all_of_them[-CHUNK:].mean())


def aimed(smallest: int, noise: float) -> Callable[[float], int]:
    """Return the rule of the class: so much noise per vote, and so many rows at least."""
    return lambda unit: max(smallest, int(noise * unit))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=4)
    seeds = range(parser.parse_args().seeds)
    result: dict[str, Any] = {"epsilon": EPSILON, "answers": ANSWERS, "seeds": len(seeds)}

    def add(part: str, name: str, *what: Any, bounds: bool = True) -> None:
        found = np.array([errors(*what, seed=seed, bounds=bounds) for seed in seeds])
        mean, spread = found.mean(axis=0), found.std(axis=0, ddof=1)
        cell = {"all": mean[0], "last": mean[1], "sd of all": spread[0]}
        result.setdefault(part, {})[name] = {key: round(float(cell[key]), 4) for key in cell}
        print(part, name, result[part][name], flush=True)
        (RESULTS / "schedule.json").write_text(json.dumps(result, indent=1) + "\n")

    for rows in (1000, 5000, 20_000):
        for growth in (1.0, 1.2, 1.4, 1.6, 2.0, 3.0):
            add("growth", f"{rows} rows, {growth}", rows, growth, aimed(3, 0.12), "uniform")
        for smallest in (1, 2, 3, 4, 6, 10):
            name = f"{rows} rows, {smallest} at least"
            add("smallest shard", name, rows, 1.6, aimed(smallest, 0.12), "uniform")
    for draw in DRAWS:
        for rows in (1000, 20_000):
            for smallest, noise in ((2, 0.12), (3, 0.0), (3, 0.12), (4, 0.12), (6, 0.12)):
                name = f"{rows} rows, {smallest} at least, noise {noise:g}"
                add(draw, name, rows, 1.6, aimed(smallest, noise), draw)
            name = f"{rows} rows, 3 at least, noise 0.12, no bounds"
            add(draw, name, rows, 1.6, aimed(3, 0.12), draw, bounds=False)


if __name__ == "__main__":
    main()
