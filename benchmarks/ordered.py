"""Are thresholds on names, dates and long integers answered as well as on numbers?

    python benchmarks/ordered.py [--seeds 5] [--rows 20000]

fits EverlastingPredictor and GenericBBL with Thresholds to made-up rows of one column at epsilon 3,
delta 1e-6, asks 2,000 queries, and writes benchmarks/results/ordered.json: the share of right
answers. Names, dates and integers near 10^30 are declared as ordered. Numbers are floats; for them
EverlastingPredictor is fitted twice, without a prior, as ordered values are, and with the prior
that it trains by default, which no ordered column can have because a prior is published.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cumae import EverlastingPredictor, GenericBBL
from cumae.concepts import Thresholds

RESULTS = Path(__file__).parent / "results"
EPSILON, DELTA, QUERIES = 3.0, 1e-6, 2_000
FIRST = dt.datetime(1950, 1, 1, tzinfo=dt.UTC)


def name(number: float) -> str:
    """Return a made-up name, of 3 to 11 letters, whose order is that of the number."""
    digits = int(number * 26**11)
    letters = [chr(97 + digits // 26**place % 26) for place in reversed(range(11))]
    return "".join(letters)[: 3 + digits % 9]


KINDS: dict[str, tuple[Any, Callable[[float], Any]]] = {
    "numbers": (None, float),
    "names": ([{"ordered": "text"}], name),
    "dates with zones": (
        [{"ordered": "dates"}],
        lambda number: FIRST + dt.timedelta(days=25_000 * number),
    ),
    "integers near 10^30": ([{"ordered": "numbers"}], lambda number: 10**30 + int(number * 10**9)),
}


def right(predictor: Any, make: Callable[[float], Any], rows: int, seed: int) -> float:
    """Return the share of right answers to queries like the rows."""
    drawn = np.random.default_rng(seed).random(rows + QUERIES).tolist()
    values = [make(number) for number in drawn]
    cut = make(0.4)
    labels = np.array([int(value >= cut) for value in values])
    table = [[value] for value in values]
    predictor.fit(table[:rows], labels[:rows])
    return float(np.mean(predictor.predict(table[rows:]) == labels[rows:]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Thresholds on ordered values.")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=20_000)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    start, lines = time.perf_counter(), []
    shared: dict[str, Any] = {"epsilon": EPSILON, "delta": DELTA}
    makers: dict[str, Callable[..., Any]] = {
        "EverlastingPredictor": lambda **more: EverlastingPredictor(
            concept_class=Thresholds(), prior=False, **shared, **more
        ),
        "EverlastingPredictor, default prior": lambda **more: EverlastingPredictor(
            concept_class=Thresholds(), **shared, **more
        ),
        "GenericBBL": lambda **more: GenericBBL(Thresholds(), **shared, **more),
    }
    for kind, (columns, make) in KINDS.items():
        for title, maker in makers.items():
            if "prior" in title and columns is not None:
                continue
            runs = [
                right(maker(columns=columns, random_state=seed), make, asked.rows, seed)
                for seed in range(asked.seeds)
            ]
            figures = {"mean": round(float(np.mean(runs)), 4), "least": round(min(runs), 4)}
            lines.append({"values": kind, "predictor": title, **figures})
            print(json.dumps(lines[-1]), flush=True)
    seconds = round(time.perf_counter() - start, 1)
    found = {"rows": asked.rows, "seeds": asked.seeds, **shared, "lines": lines, "seconds": seconds}
    (RESULTS / "ordered.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
