"""How long fits take, and how much memory: fits the rates of ``cumae.effort`` to measured fits.

For each kind of work a few estimators are fitted to made-up tables of several sizes. Time is that
of the processor, so that other programs on the machine hardly matter; the first fit of each kind
compiles, and is not counted. Memory is the peak of what Python and numpy allocate in a second fit,
the table not included. Then each rate is chosen so that the largest factor by which a forecast is
off is as small as possible. Run it with one thread, write the printed rates into ``RATES``, and run
it with ``--check`` to see by what factors they are off, for other estimators as well:

    OMP_NUM_THREADS=1 python benchmarks/plan_costs.py --measure
    OMP_NUM_THREADS=1 python benchmarks/plan_costs.py --check
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from cumae import (
    EverlastingPredictor,
    PrivateBooster,
    PrivateKernelClassifier,
    PrivateLearner,
    PrivateLogisticRegression,
    QueryRelease,
    effort,
)
from cumae.concepts import Thresholds
from cumae.effort import FIXED, RATES, Rate

RESULT = Path(__file__).parent / "results" / "plan_costs.json"


def declared(width: int) -> list[tuple[int, int]]:
    return [(0, 1)] * width


# For each kind that is fitted: what is fitted, and to how many rows and columns.
MEASURED: dict[str, tuple[Callable[[int], Any], tuple[int, ...], tuple[int, ...]]] = {
    "draws": (
        lambda width: PrivateLearner(epsilon=1.0, columns=declared(width)),
        (1_000, 16_000, 128_000),
        (2, 8, 24),
    ),
    "trees": (
        lambda width: PrivateBooster(1.0, columns=declared(width)),
        (1_000, 8_000, 64_000),
        (2, 8, 24),
    ),
    "posteriors": (
        lambda width: PrivateKernelClassifier(3.0, 1e-6, columns=declared(width)),
        (1_500, 3_000),
        (2, 8, 24),
    ),
    "sums": (
        lambda width: PrivateKernelClassifier(3.0, 1e-6, columns=declared(width)),
        (32_000, 64_000),
        (2, 8),
    ),
    "one column": (
        lambda _: QueryRelease(Thresholds(), 1.0, 1e-6, max_queries=100),
        (2_000, 16_000, 128_000),
        (1,),
    ),
    "small trees": (
        lambda width: QueryRelease(
            DecisionTreeClassifier(max_depth=4), 1.0, 1e-6, 100, columns=declared(width)
        ),
        (2_000, 8_000, 32_000),
        (2, 8, 24),
    ),
}
# Estimators that no rate is fitted to: how far off are their forecasts?
CHECKED: dict[str, tuple[Callable[[int], Any], tuple[int, ...], tuple[int, ...]]] = {
    "logistic regression": (
        lambda width: PrivateLogisticRegression(1.0, 1e-6, columns=declared(width)),
        (3_000, 64_000),
        (2, 8),
    ),
    "booster with a start": (
        lambda width: PrivateBooster(1.0, 1e-6, columns=declared(width)),
        (3_000, 32_000),
        (4,),
    ),
    "everlasting, trees and prior": (
        lambda width: EverlastingPredictor(epsilon=1.0, columns=declared(width)),
        (4_000, 16_000),
        (4, 12),
    ),
    "everlasting, thresholds": (
        lambda _: EverlastingPredictor(Thresholds(), 1.0),
        (4_000, 64_000),
        (1,),
    ),
}


def table(rows: int, width: int) -> tuple[Any, Any]:
    X = np.random.default_rng(7).random((rows, width))
    return X, (X[:, 0] > 0.4).astype(int)


def measure(make: Callable[[int], Any], rows: int, width: int) -> dict[str, Any]:
    """Fit twice: once for the time, and once for the memory."""
    X, y = table(rows, width)
    began = time.process_time()
    make(width).fit(X, y)
    seconds = time.process_time() - began
    tracemalloc.start()
    make(width).fit(X, y)
    _, memory = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {"rows": rows, "columns": width, "seconds": round(seconds, 4), "memory": memory}


def forecast(make: Callable[[int], Any], rows: int, width: int) -> Any:
    options = {"trial": False} if hasattr(type(make(width)), "remaining_") else {}
    return make(width).plan(rows, width, **options)


def units(make: Callable[[int], Any], rows: int, width: int, kind: str) -> tuple[float, float]:
    """Return how many steps and numbers of one kind a fit has: what it would take at rate 1."""
    alone = {name: Rate(0.0, float(name == kind), float(name == kind)) for name in RATES}
    with patch.object(effort, "RATES", alone), patch.object(effort, "FIXED", 0):
        found = forecast(make, rows, width)
    return found.seconds, found.memory


def others(
    make: Callable[[int], Any], rows: int, width: int, rates: dict[str, Rate]
) -> tuple[float, float]:
    """Return what the kinds take whose rates are known by now."""
    known = {name: rates.get(name, Rate(0.0, 0.0, 0.0)) for name in RATES}
    with patch.object(effort, "RATES", known), patch.object(effort, "FIXED", 0):
        found = forecast(make, rows, width)
    return found.seconds, found.memory


def best_line(steps: Any, known: Any, seconds: Any) -> tuple[float, float]:
    """Return start and step of a line whose largest factor off is the smallest."""
    tried = []
    for start in (0.0, *np.geomspace(1e-3, max(seconds), 60)):
        for step in np.geomspace(1e-13, 1.0, 400):
            off = np.abs(np.log((known + start + step * steps) / seconds))
            tried.append((off.max(), start, step))
    _, start, step = min(tried)
    return float(start), float(step)


def fit_rates(found: dict[str, list[dict[str, Any]]]) -> dict[str, Rate]:
    """Fit the kinds one after another; what earlier ones take is taken off first."""
    rates: dict[str, Rate] = {"measured": Rate(0.0, 1.0, 24.0)}
    for kind, (make, _, _) in MEASURED.items():
        rows = found[kind] + (found["posteriors"] if kind == "sums" else [])  # the same estimator
        sizes = [(row["rows"], row["columns"]) for row in rows]
        known = np.array([others(make, *size, rates) for size in sizes])
        own = np.array([units(make, *size, kind) for size in sizes])
        seconds = np.array([row["seconds"] for row in rows])
        start, step = best_line(own[:, 0], known[:, 0], seconds)
        memory = np.array([row["memory"] for row in rows])
        more = memory > 2 * known[:, 1]  # else another kind holds most of it
        number = np.median((memory[more] - FIXED) / own[more, 1]) if more.any() else 8.0
        rates[kind] = Rate(*(float(f"{value:.2g}") for value in (start, step, number)))
    return rates


def measure_all(wanted: Any) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for kind, (make, many_rows, widths) in wanted.items():
        make(widths[0]).fit(*table(2_000, widths[0]))  # compiles
        found[kind] = []
        for width, rows in itertools.product(widths, many_rows):
            found[kind].append(measure(make, rows, width))
            print(kind, found[kind][-1], flush=True)
    return found


def compare(found: dict[str, list[dict[str, Any]]], wanted: Any) -> list[dict[str, Any]]:
    """Return by what factors the shipped rates are off."""
    rows = []
    for kind, measured in found.items():
        make = wanted[kind][0]
        for row in measured:
            told = forecast(make, row["rows"], row["columns"])
            rows.append(
                {
                    "kind": kind,
                    **row,
                    "told_seconds": round(told.seconds, 4),
                    "told_memory": told.memory,
                    "seconds_off": round(told.seconds / row["seconds"], 2),
                    "memory_off": round(told.memory / row["memory"], 2),
                }
            )
    return rows


def share_within(rows: list[dict[str, Any]], name: str, factor: float) -> float:
    return float(np.mean([1 / factor <= row[name] <= factor for row in rows]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true", help="measure, before rates are fitted")
    parser.add_argument("--check", action="store_true", help="compare the rates in the package")
    warnings.simplefilter("ignore")
    asked = parser.parse_args()
    if asked.measure:
        found = measure_all(MEASURED)
        RESULT.write_text(json.dumps({"measured": found}, indent=1) + "\n", encoding="utf-8")
    stored = json.loads(RESULT.read_text(encoding="utf-8"))
    if not asked.check:
        for kind, rate in fit_rates(stored["measured"]).items():
            print(f'    "{kind}": Rate({rate.start:g}, {rate.step:g}, {rate.number:g}),')
        return
    checked = measure_all(CHECKED)
    rows = compare(stored["measured"], MEASURED) + compare(checked, CHECKED)
    summary = {
        f"{name} within {factor}": share_within(rows, name, factor)
        for name in ("seconds_off", "memory_off")
        for factor in (2.0, 3.0)
    }
    machine = f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}"
    result = {"machine": machine, "measured": stored["measured"], "summary": summary, "rows": rows}
    RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
