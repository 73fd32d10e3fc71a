"""How well published models learn from wide tables, in which a few columns matter, or all of them.

    python -m benchmarks.wide

writes ``benchmarks/results/wide.json``: the share of right answers about 2,000 new rows, at epsilon
1 and delta 1e-6, for tables of uniform columns. In the first kind three columns decide, in the
second all of them do, a little each. ``cumae.planning`` has the same figures (``wide.json``), which
tell its routes how much they lose where columns are many and rows are few. It takes about five
minutes on one core.

    python -m benchmarks.wide --sifted

writes ``benchmarks/results/sifted.json``: the same of the kernel classifier, with and without
public rows, at 3,000 rows of 300 columns of which five decide, and of 100 of which 30 do.
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
from sklearn.linear_model import LogisticRegression

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
ROUTES: dict[str, Callable[[Any], Any]] = {
    "kernel": lambda columns: PrivateKernelClassifier(1.0, 1e-6, columns=columns),
    "booster": lambda columns: PrivateBooster(1.0, 1e-6, columns=columns),
    "logistic": lambda columns: PrivateLogisticRegression(1.0, 1e-6, columns=columns),
    "trees": lambda columns: PrivateBooster(1.0, columns=columns),
}
WIDEST = 100
ENOUGH = 100  # rows for each column, from which on nothing is added
PLANNER = Path(__file__).parents[1] / "src" / "cumae" / "planning" / "wide.json"
RESULTS = Path(__file__).parent / "results" / "wide.json"
SIFTED = Path(__file__).parent / "results" / "sifted.json"
SHAPES = ((300, 5), (100, 30))  # columns, and how many of them decide
PUBLIC, STEEP = 2_000, 8.0


def table(
    n_rows: int, width: int, deciding: int, seed: int, steep: float = 4.0
) -> tuple[Any, Any, float]:
    """Return rows, labels, and the share of labels that the best rule gets right."""
    coins = np.random.default_rng(seed)
    X = coins.random((n_rows + NEW, width))
    signs = np.where(np.arange(deciding) % 2, -1.0, 1.0)
    score = (X[:, :deciding] - 0.5) @ signs * np.sqrt(12.0 / deciding) * steep
    y = (coins.random(len(X)) < 1 / (1 + np.exp(-score))).astype(int)
    return X, y, float(np.mean((score > 0) == y))


def measured(n_rows: int, width: int, kind: str) -> dict[str, Any]:
    """Return the share of right answers of each route, on the mean over seeds."""
    deciding = DECIDING if kind == "few" else width
    best: list[float] = []
    right: dict[str, list[float]] = {name: [] for name in ROUTES}
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


def for_the_planner(tables: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what each route loses against the best rule, by rows for each column.

    Below ``ENOUGH`` the widest tables count alone: what trees lose also depends on the rows.
    """
    tables = [
        one for one in tables if one["columns"] == WIDEST or one["rows"] / one["columns"] >= ENOUGH
    ]
    ratios = sorted({min(ENOUGH, one["rows"] / one["columns"]) for one in tables})
    routes: dict[str, Any] = {}
    for name in ROUTES:
        routes[name] = {}
        for kind in ("few", "all"):
            lost: dict[float, list[float]] = {ratio: [] for ratio in ratios}
            for one in tables:
                if one["kind"] == kind:
                    ratio = min(ENOUGH, one["rows"] / one["columns"])
                    lost[ratio].append(one["best"] - one[name])
            found = [round(float(np.mean(lost[ratio])), 3) for ratio in ratios]
            routes[name][kind] = np.maximum.accumulate(found[::-1])[::-1].tolist()
    return {"knots": [round(float(np.log10(ratio)), 3) for ratio in ratios], "routes": routes}


def sifted(width: int, deciding: int, public: int) -> dict[str, Any]:
    """Return the share of right answers of the kernel classifier, for each seed."""
    right, best, plain, seconds = [], [], [], []
    for seed in range(SEEDS):
        X, y, rule = table(3_000 + PUBLIC, width, deciding, seed, STEEP)
        known, new = slice(0, 3_000), slice(3_000 + PUBLIC, None)
        model = PrivateKernelClassifier(1.0, 1e-6, columns=[(0, 1)] * width)
        began = time.process_time()
        model.fit(X[known], y[known], X[3_000 : 3_000 + public] if public else None)
        seconds.append(time.process_time() - began)
        right.append(round(model.score(X[new], y[new]), 4))
        plain.append(LogisticRegression(max_iter=500).fit(X[known], y[known]).score(X[new], y[new]))
        best.append(rule)
    return {
        "rows": 3_000,
        "columns": width,
        "deciding": deciding,
        "public": public,
        "kernel": right,
        "logistic_without_privacy": round(float(np.mean(plain)), 3),
        "best": round(float(np.mean(best)), 3),
        "cpu_seconds": round(float(np.mean(seconds)), 1),
    }


def main_sifted() -> None:
    """Measure what finds few columns of many, print and write."""
    found = []
    for width, deciding in SHAPES:
        for public in (PUBLIC, 0):
            found.append(sifted(width, deciding, public))
            print(json.dumps(found[-1]), flush=True)
    told = {"command": "python -m benchmarks.wide --sifted", "seeds": SEEDS, "tables": found}
    SIFTED.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--sifted", action="store_true", help="find few columns of many")
    if parser.parse_args().sifted:
        main_sifted()
        return
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
    PLANNER.write_text(json.dumps(for_the_planner(found), indent=1) + "\n", encoding="utf-8")
    RESULTS.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
