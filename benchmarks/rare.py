"""Does the planner take a route that can rank rare outcomes, and say so where none can?

    python benchmarks/rare.py [measure] [calibrate] [judge] [count] [hold] [--minutes 45]

runs these five steps, or some of them. The first fits routes to made-up tables whose sizes are
drawn at random: 300 to 30,000 rows, 4 to 30 columns, an outcome of 1 to 50 %, epsilon 0.5 to 3. It
measures the area under the ROC curve (AUC), and which part of the cost of a guess the answers save,
for several costs. Each table is a line in the file of --cells as soon as it is there, so that a run
which was stopped can go on. The second makes the file of forecasts that the package ships,
``src/cumae/planning/rare.json``. The third asks the planner about other tables, of which 2 % are
positive, fits what it chooses with ``goal="ranking"`` and all other routes, and writes
benchmarks/results/rare.json. The fourth fits the logistic route with and without the goal to 4,000
rows of further tables, and adds what it finds there. The last holds the forecasts that are shipped
against the file of --cells: after a change of the learners, `measure` into a new file, and `hold`
tells whether they are still honest.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _rare_cells import DELTA, NAMES, VOTES, WEIGHED, fitted, made, read, run, situation
from sklearn.linear_model import LogisticRegression

from cumae.planning.advice import advise
from cumae.planning.goals import ranked
from cumae.planning.rare import USUAL, USUAL_WIDTH, measured, reached
from cumae.planning.routes import ROUTES

SHIPPED = Path(__file__).parents[1] / "src" / "cumae" / "planning" / "rare.json"
RESULT = Path(__file__).parent / "results" / "rare.json"
CELLS = Path(tempfile.gettempdir()) / "cumae_rare.jsonl"
KNOTS = [round(1.0 + 0.25 * step, 2) for step in range(15)]  # log10 of the strength
POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the number of columns, by which a strength is divided
NEAR = 0.25  # how near cells count for a knot
NEAR_SHARE = 0.5  # the same for the log odds of shares, where each table has one
TAIL = 0.1
SEEDS, FIRST_SEED = 20, 10_000  # of tables that the calibration does not see
SIZES = (800, 4_000, 20_000)
FURTHER, FIRST_FURTHER, FITS = 40, 20_000, 2  # tables of the last step, and fits to each
PUBLIC = 500  # rows without labels, for one more fit
PLAIN, SHOWN = "logistic regression, not private", f"logistic with {PUBLIC} public rows"
WIDTH, MATTERING, SIZE, SHARE = 8, 4, 1.0, 0.02


# Calibration


def place(cell: dict[str, Any], name: str, power: float) -> float:
    """Return where a cell is on the curves of a route."""
    share = cell["share"]
    reached = cell["rows"] if name == USUAL else cell[f"{name}, strength"]
    wide = (cell["width"] / USUAL_WIDTH) ** power
    return math.log10(max(4 * share * (1 - share) * reached / wide, 1e-6))


def nearness(places: Any, knot: float, width: float) -> Any:
    found = np.exp(-(((np.asarray(places) - knot) / width) ** 2) / 2) + 1e-12
    return found / found.sum()


def ends(values: Any, weights: Any) -> list[float]:
    """Return the value below which a tenth lies, the mean, and the value above which a tenth is."""
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    low, high = (values[order][np.searchsorted(below, part)] for part in (TAIL, 1 - TAIL))
    return [float(low), float(weights @ values), float(high)]


def curves(cells: list[dict[str, Any]], name: str, goal: str, power: float) -> dict[str, Any]:
    """Return what was measured around each knot."""
    figures = [cell[name if name == USUAL else f"{name}, {goal}"] for cell in cells]
    places = [place(cell, name, power) for cell in cells]
    saved = np.array([one["saved"] for one in figures], dtype=np.float64)
    same = np.array([one["constant"] for one in figures], dtype=np.float64)
    auc = None
    if name not in VOTES:
        areas = np.array([one["auc"] for one in figures])
        lines = np.array([ends(areas, nearness(places, knot, NEAR)) for knot in KNOTS]).T
        auc = np.maximum.accumulate(lines, axis=1).round(4).tolist()
    tables = np.zeros((4, len(KNOTS), len(WEIGHED)))
    for row, knot in enumerate(KNOTS):
        for column in range(len(WEIGHED)):
            weights = nearness(places, knot, NEAR)
            values, flags = saved[:, min(column, saved.shape[1] - 1)], same[:, 0]
            if name in VOTES:  # which were asked with equal costs alone
                weights = weights * by_share(cells, WEIGHED[column])
                weights /= weights.sum()
            else:
                flags = same[:, column]
            tables[:3, row, column] = ends(values, weights)
            tables[3, row, column] = weights @ flags
    return {
        "auc": auc,
        "saved": tables[:3].round(4).tolist(),
        "constant": tables[3].round(3).tolist(),
    }


def by_share(cells: list[dict[str, Any]], weighed: float) -> Any:
    """Return how near the shares of cells are; a share above a half is as its complement."""
    share = min(weighed, 1 - weighed)
    odds = [math.log(cell["share"] / (1 - cell["share"])) for cell in cells]
    return nearness(odds, math.log(share / (1 - share)), NEAR_SHARE)


def unexplained(cells: list[dict[str, Any]], power: float) -> float:
    """Return how far areas are from their curves, on the mean over routes."""
    off = []
    for name in NAMES:
        line = curves(cells, name, "ranking", power)["auc"][1]
        told = np.interp([place(cell, name, power) for cell in cells], KNOTS, line)
        off.append(np.mean((told - [cell[f"{name}, ranking"]["auc"] for cell in cells]) ** 2))
    return float(np.sqrt(np.mean(off)))


def calibrate(cells: list[dict[str, Any]]) -> None:
    """Write the file that the package ships."""
    tried = {power: round(unexplained(cells, power), 5) for power in POWERS}
    power = min(tried, key=lambda one: tried[one])
    routes: dict[str, Any] = {USUAL: {"accuracy": curves(cells, USUAL, "accuracy", power)}}
    for name in NAMES:
        goals = {goal: curves(cells, name, goal, power) for goal in ("accuracy", "ranking", "cost")}
        same = {goal for goal in goals if goals[goal] == goals["accuracy"]} - {"accuracy"}
        routes[name] = {goal: lines for goal, lines in goals.items() if goal not in same}
    for name in VOTES:
        asked = [cell for cell in cells if f"{name}, accuracy" in cell]
        if asked:
            routes[name] = {"accuracy": curves(asked, name, "accuracy", power)}
    sizes = [cell["rows"] for cell in cells]
    found = {
        "command": "python benchmarks/rare.py measure calibrate",
        "cells": len(cells),
        "seconds": round(sum(cell["seconds"] for cell in cells)),
        "rows": [min(sizes), max(sizes)],
        "delta": DELTA,
        "width_power": power,
        "unexplained_auc": tried,
        "knots": KNOTS,
        "weighed": WEIGHED,
    }
    text = json.dumps(found)[:-1] + ', "routes": {\n'
    text += ",\n".join(f'"{name}": {json.dumps(lines)}' for name, lines in routes.items())
    SHIPPED.write_text(text + "\n}}\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


# Judgement, on tables that the calibration did not see


def judged(rows: int, seed: int) -> dict[str, Any]:
    """Let the planner choose for one table, and fit all routes."""
    table = made(rows, WIDTH, SHARE, MATTERING, SIZE, seed)
    plain = LogisticRegression().fit(table.X, table.y).decision_function(table.asked)
    line: dict[str, Any] = {"rows": rows, "seed": seed, "positive": int(table.y.sum())}
    line[PLAIN] = round(ranked(plain, table.truth), 4)
    for name in NAMES:
        model = fitted(name, situation(rows, WIDTH, 1.0, "ranking"), table, seed)
        line[name] = round(ranked(model.decision_function(table.asked), table.truth), 4)
    coins = np.random.default_rng([seed, 1])
    shown = coins.uniform(-1, 1, (PUBLIC, WIDTH))
    model = fitted("logistic", situation(rows, WIDTH, 1.0, "ranking"), table, seed, shown)
    line[SHOWN] = round(ranked(model.decision_function(table.asked), table.truth), 4)
    return line


def judge() -> None:
    """Write what was found, and print means."""
    started, found = time.process_time(), []
    lines = []
    for rows in SIZES:
        facts = situation(rows, WIDTH, 1.0, "ranking", share=SHARE)
        advice = advise(facts, [ROUTES[name] for name in NAMES], search=False)
        if advice.best is None or advice.best.reached is None:
            raise RuntimeError(f"nothing is forecast for {rows} rows.")
        some = [judged(rows, FIRST_SEED + seed) for seed in range(SEEDS)]
        names = (PLAIN, *NAMES, SHOWN)
        means = {name: round(float(np.mean([one[name] for one in some])), 4) for name in names}
        chosen = advice.best.route.name
        told = advice.best.reached
        best = max(NAMES, key=lambda name: means[name])
        found.append(
            {
                "rows": rows,
                "chosen": chosen,
                "mean_auc": means[chosen],
                "standard_error": round(
                    float(np.std([one[chosen] for one in some], ddof=1)) / math.sqrt(SEEDS), 4
                ),
                "best_route": best,
                "behind_best": round(means[best] - means[chosen], 4),
                "forecast": [round(part, 3) for part in (told.value, told.low, told.high)],
                "forecast_of_usual": round(told.usual or 0.5, 3),
                "within_forecast": sum(told.low <= one[chosen] <= told.high for one in some),
                "cautions": advice.cautions,
                "means": means,
            }
        )
        lines += some
    whole = {
        "command": "python benchmarks/rare.py judge",
        "seconds": round(time.process_time() - started),
        "tables": f"{SEEDS} for each size, {WIDTH} columns, {SHARE:.0%} positive, epsilon 1",
        "calibrated_with": measured()["cells"],
        "sizes": found,
    }
    print(json.dumps(whole, indent=1))
    write(whole, lines)


def write(whole: dict[str, Any], lines: list[dict[str, Any]]) -> None:
    """Write the result, with a line for each table."""
    text = json.dumps(whole, indent=1)[:-2] + ',\n "grid": [\n  '
    RESULT.write_text(text + ",\n  ".join(map(json.dumps, lines)) + "\n ]\n}\n", encoding="utf-8")


def count() -> None:
    """Add what it is worth to the logistic route that classes are counted first."""
    areas: dict[str, list[float]] = {"accuracy": [], "ranking": []}
    for seed in range(FIRST_FURTHER, FIRST_FURTHER + FURTHER):
        table = made(SIZES[1], WIDTH, SHARE, MATTERING, SIZE, seed)
        for goal, found in areas.items():
            facts = situation(SIZES[1], WIDTH, 1.0, goal)
            for again in range(FITS):
                model = fitted("logistic", facts, table, seed + 100_000 * again)
                found.append(ranked(model.decision_function(table.asked), table.truth))
    told = {
        goal: {
            "mean_auc": round(float(np.mean(found)), 4),
            "standard_error": round(float(np.std(found, ddof=1)) / math.sqrt(len(found)), 4),
        }
        for goal, found in areas.items()
    }
    print(json.dumps(told, indent=1))
    whole = json.loads(RESULT.read_text(encoding="utf-8"))
    lines = whole.pop("grid")
    whole["logistic by goal"] = {"rows": SIZES[1], "tables": FURTHER, "fits": FITS, **told}
    write(whole, lines)


def hold(cells: list[dict[str, Any]]) -> None:
    """Add how far forecasts of ranking are from what routes reached on measured tables."""
    found: dict[str, Any] = {}
    for name in NAMES:
        pairs = []
        for cell in cells:
            sizes = (cell["rows"], cell["width"], cell["epsilon"])
            facts = situation(*sizes, "ranking", share=cell["share"])
            plan = ROUTES[name].estimator(facts).plan(*sizes[:2])
            told = reached(ROUTES[name], facts, plan.facts)
            if told is not None:
                area = cell[f"{name}, ranking"]["auc"]
                pairs.append((told.value, area, told.low <= area <= told.high))
        forecast, auc, inside = np.array(pairs, dtype=np.float64).mean(axis=0)
        found[name] = {
            "forecast": round(float(forecast), 3),
            "mean_auc": round(float(auc), 3),
            "within_forecast": round(float(inside), 2),
        }
    print(json.dumps(found, indent=1))
    whole = json.loads(RESULT.read_text(encoding="utf-8"))
    lines = whole.pop("grid")
    whole["forecasts held"] = {"tables": len(cells), **found}
    write(whole, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure routes on rare outcomes.")
    steps = ["measure", "calibrate", "judge", "count", "hold"]
    parser.add_argument("what", nargs="*", choices=[*steps, []], default=[])
    parser.add_argument("--minutes", type=float, default=45)
    parser.add_argument("--tables", type=int, default=600)
    parser.add_argument("--cells", type=Path, default=CELLS, help="file of cells that are done")
    asked = parser.parse_args()
    for step in asked.what or steps:
        if step == "measure":
            run(asked.cells, asked.tables, asked.minutes)
        elif step == "calibrate":
            calibrate(read(asked.cells))
        elif step == "judge":
            judge()
        elif step == "count":
            count()
        else:
            hold(read(asked.cells))


if __name__ == "__main__":
    main()
