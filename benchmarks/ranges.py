"""What does it cost in accuracy if nobody declares the ranges of the columns?

    python benchmarks/ranges.py [--seeds 5] [--sizes 5000 20000]

fits private learners at epsilon 1, delta 1e-6 to credit card defaults, the census and a made-up
hospital, once with declared ranges and once with all of them open, and writes
benchmarks/results/ranges.json: accuracy on the other rows, and seconds of a fit.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _made_up_tables import hospital
from _table import Table
from tables import adult, credit_default

from cumae import PrivateBooster, PrivateLogisticRegression

RESULTS = Path(__file__).parent / "results"
TABLES: dict[str, Callable[[], Table]] = {
    "credit default": credit_default,
    "adult": adult,
    "hospital": partial(hospital, 30_000),
}
TESTED = 9_000  # rows, at most


def learner(name: str, columns: Any, seed: int) -> Any:
    if name == "booster":
        return PrivateBooster(1.0, 1e-6, columns=columns, random_state=seed)
    return PrivateLogisticRegression(1.0, 1e-6, curves=6, columns=columns, random_state=seed)


def opened(table: Table) -> dict[str, Any]:
    """Return the declarations without the ranges of numbers; dates keep their first day."""
    found: dict[str, Any] = {}
    for name, declared in table.declared.items():
        if isinstance(declared, list):
            found[name] = declared
        elif hasattr(declared[0], "year"):
            found[name] = declared[0]
        elif declared[-1] == "missing":
            found[name] = ("missing",)
    return found


def fitted(name: str, table: Table, size: int, columns: Any, seed: int) -> tuple[float, float]:
    given = table.some(size + TESTED, seed)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = learner(name, columns, seed).fit(given.rows[:size], given.labels[:size])
    seconds = time.perf_counter() - start
    return model.score(given.rows[size:], given.labels[size:]), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description="Declared and undeclared ranges.")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="*", default=[5_000, 20_000])
    asked = parser.parse_args()
    lines = []
    for title, load in TABLES.items():
        table = load()
        for name in ("logistic", "booster"):
            for size in asked.sizes:
                line: dict[str, Any] = {"table": title, "learner": name, "rows": size}
                for how, columns in (("declared", table.declared), ("open", opened(table))):
                    runs = [fitted(name, table, size, columns, s) for s in range(asked.seeds)]
                    accuracies, seconds = zip(*runs, strict=True)
                    line[how] = round(float(np.mean(accuracies)), 4)
                    line[f"{how}_runs"] = [round(float(one), 4) for one in accuracies]
                    line[f"{how}_seconds"] = round(float(np.median(seconds)), 2)
                print(line, flush=True)
                lines.append(line)
    result = {"command": f"python benchmarks/ranges.py --seeds {asked.seeds}", "lines": lines}
    (RESULTS / "ranges.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
