"""How well published models learn from wide tables, in which a few columns matter, or all of them.

    python -m benchmarks.wide

writes ``benchmarks/results/wide.json``: the share of right answers about 2,000 new rows, at epsilon
1 and delta 1e-6, for tables of uniform columns. In the first kind three columns decide, in the
second all of them do, a little each. ``cumae.planning`` has the same figures (``wide.json``), which
tell its routes how much they lose where columns are many and rows are few. It takes about five
minutes on one core.
"""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from cumae.learners import PrivateBooster, PrivateKernelClassifier, PrivateLogisticRegression

NEW = 2_000
SEEDS = 2
SIZES = (
    (1_000, 10),
    (1_000, 30),
    (1_000, 100),
    (2_000, 100),
    (3_000, 100),
    (3_000, 30),
    (8_000, 100),
)
DECIDING = 3
ROUTES = {
    "kernel": lambda columns: PrivateKernelClassifier(1.0, 1e-6, columns=columns),
    "booster": lambda columns: PrivateBooster(1.0, 1e-6, columns=columns),
    "logistic": lambda columns: PrivateLogisticRegression(1.0, 1e-6, columns=columns),
    "trees": lambda columns: PrivateBooster(1.0, columns=columns),
}
RESULTS = Path(__file__).parent / "results" / "wide.json"


def table(n_rows: int, width: int, deciding: int, seed: int) -> tuple[Any, Any, float]:
    """Return rows, labels, and the share of labels that the best rule gets right."""
    coins = np.random.default_rng(seed)
    X = coins.random((n_rows + NEW, width))
    signs = np.where(np.arange(deciding) % 2, -1.0, 1.0)
    score = (X[:, :deciding] - 0.5) @ signs * np.sqrt(12.0 / deciding) * 4.0
    y = (coins.random(len(X)) < 1 / (1 + np.exp(-score))).astype(int)
    return X, y, float(np.mean((score > 0) == y))


def measured(n_rows: int, width: int, kind: str) -> dict[str, Any]:
    """Return the share of right answers of each route, on the mean over seeds."""
    deciding = DECIDING if kind == "few" else width
    best, right = [], {name: [] for name in ROUTES}
    for seed in range(SEEDS):
        X, y, rule = table(n_rows, width, deciding, seed)
        best.append(rule)
        for name, made in ROUTES.items():
            model = made([(0, 1)] * width)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X[:n_rows], y[:n_rows])
            right[name].append(model.score(X[n_rows:], y[n_rows:]))
    found = {name: round(float(np.mean(values)), 3) for name, values in right.items()}
    return {
        "rows": n_rows,
        "columns": width,
        "kind": kind,
        "best": round(np.mean(best), 3),
        **found,
    }


def main() -> None:
    """Measure, print and write."""
    began, found = time.process_time(), []
    for n_rows, width in SIZES:
        for kind in ("few", "all"):
            found.append(measured(n_rows, width, kind))
            print(json.dumps(found[-1]), flush=True)
    told = {
        "command": "python -m benchmarks.wide",
        "seeds": SEEDS,
        "tables": found,
        "cpu_seconds": round(time.process_time() - began),
    }
    RESULTS.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
