"""The calibration of benchmarks/planning.py: curves of what privacy cost, for the package."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from _planning_cells import (
    CALIBRATING,
    DELTA,
    EPSILONS,
    LEARNERS,
    PREDICTORS,
    Cell,
    Task,
    split,
)
from _planning_tables import SHAPES
from sklearn.isotonic import IsotonicRegression

from cumae.planning.forecasts import VOTES, context, strength
from cumae.planning.outlooks import outlook
from cumae.planning.routes import ROUTES, Situation

SHIPPED = Path(__file__).parents[1] / "src" / "cumae" / "planning" / "forecasts.json"
TAILS = (0.1, 0.05, 0.02, 0.0)  # share of the cells beyond each end of an interval
STEP = 0.25  # between knots, in powers of ten
NEAR, WIDE = 0.3, 0.45  # how near cells count for a knot: for ends of intervals, for the others
MOST_BEHIND = 0.05  # what counts at most, so that a few tables do not decide
CLOSE = 0.02  # what counts as close to a cost
TIE = 1e-9


def share(holds: Any) -> float:
    return round(float(np.mean(holds)), 3)


def situation_of(cell: Cell) -> Situation:
    """Return the public facts of a cell, which are the same for all seeds."""
    return _situation((*cell[:3], 0), cell.epsilon)


@cache
def _situation(task: tuple[Any, ...], epsilon: float) -> Situation:
    split.cache_clear()
    return split(Task(*task)).situation(epsilon)


@cache
def facts_of(cell: Cell) -> dict[str, Any]:
    """Return what the plan of the cell's estimator says, for routes whose noise is told there."""
    if cell.route not in VOTES:
        return {}
    return dict(outlook(ROUTES[cell.route], situation_of(cell)).facts)


def twin(cell: Cell) -> Cell:
    """Return the same model without privacy."""
    route = "kernel" if cell.route == "everlasting" and cell.table not in SHAPES else cell.route
    return cell._replace(route=route, epsilon=math.inf)


def means(done: dict[Cell, dict[str, Any]]) -> dict[Cell, float]:
    """Return accuracies on the mean over seeds, as cells with the seed -1."""
    found: dict[Cell, list[float]] = defaultdict(list)
    for cell, line in done.items():
        if "accuracy" in line:
            found[cell._replace(seed=-1)].append(line["accuracy"])
    return {cell: float(np.mean(values)) for cell, values in found.items()}


def costs(done: dict[Cell, dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return, for each private cell, its strength, what privacy cost, and what was better."""
    found, known = [], means(done)
    for cell, accuracy in known.items():
        if cell.table not in names or cell.epsilon == math.inf or twin(cell) not in known:
            continue
        others = [known.get(cell._replace(route=route), math.nan) for route in LEARNERS]
        lost = max(*others, accuracy) - accuracy if sum(others) > 0 else math.nan
        found.append(
            cell._asdict()
            | place_of(cell)
            | {
                "cost": known[twin(cell)] - accuracy,
                "lost": lost,
                "behind": min(lost, MOST_BEHIND) if lost >= 0 else math.nan,
            }
        )
        if cell.route in PREDICTORS:
            beside = cell._replace(route="kernel")
            found[-1] |= {
                "beside": beside._asdict() | place_of(beside),
                "behind": min(known.get(beside, math.nan) - accuracy, MOST_BEHIND),
            }
    return found


def place_of(cell: Cell) -> dict[str, Any]:
    """Return on which curve a cell is, and where."""
    situation = situation_of(cell)
    reached = strength(ROUTES[cell.route], situation, facts_of(cell))
    return {"context": context(situation), "strength": reached}


def falling(values: Sequence[float]) -> list[float]:
    """Return the falling curve that is nearest to the values."""
    fitted = IsotonicRegression(increasing=False).fit_transform(np.arange(len(values)), values)
    return [round(float(value), 4) for value in fitted]


def quantile(values: Any, weights: Any, share: float) -> float:
    order = np.argsort(values)
    total = np.cumsum(weights[order]) - weights[order] / 2
    return float(np.interp(share * weights.sum(), total, values[order]))


def most_likely(values: Any, weights: Any) -> float:
    """Return the value that most others are close to: within about two points."""
    places = np.linspace(values.min(), values.max(), 401)
    near_by = np.exp(-(((values[:, None] - places) / CLOSE) ** 2) / 2)
    return float(places[np.argmax(weights @ near_by)])


def curves(found: list[dict[str, Any]], tail: float) -> dict[str, list[float]]:
    """Return what privacy cost around each strength, which falls, and how far it was behind."""
    reached = np.log10([max(one["strength"], 1e-3) for one in found])
    cost, behind = (np.array([one[name] for one in found]) for name in ("cost", "behind"))
    compared = ~np.isnan(behind)  # where all routes were measured
    knots = np.arange(np.floor(4 * reached.min()) / 4, reached.max() + STEP, STEP)
    lines: dict[str, list[float]] = {name: [] for name in ("low", "likely", "high", "behind")}
    for knot in knots:
        weights = near(reached, knot, NEAR)
        for name, part in (("low", tail), ("high", 1 - tail)):
            lines[name].append(quantile(cost, weights, part))
        weights = near(reached, knot, WIDE)
        lines["likely"].append(most_likely(cost, weights))
        lines["behind"].append(float(np.average(behind[compared], weights=weights[compared])))
    rounded_knots = [round(float(knot), 3) for knot in knots]
    lines = {name: falling(lines[name]) for name in ("low", "likely", "high")} | {
        "behind": [round(value, 4) for value in lines["behind"]]
    }
    lines["likely"] = np.clip(lines["likely"], lines["low"], lines["high"]).tolist()
    return {"knots": rounded_knots} | lines


def near(reached: Any, knot: float, width: float) -> Any:
    return np.exp(-(((reached - knot) / width) ** 2) / 2) + 1e-9


def calibrated(found: list[dict[str, Any]], tail: float) -> dict[str, Any]:
    """Return curves for each route and context.

    Routes of votes were measured on fewer tables. So how far they are behind is how far they are
    behind the kernel classifier on these tables, and how far that is behind on all.
    """
    known: dict[str, Any] = {}
    for routes in (LEARNERS, PREDICTORS):
        groups: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
        for one in (one for one in found if one["route"] in routes):
            groups[one["route"]][one["context"]].append(one | beside_kernel(known, one))
        for route in (route for route in routes if route in groups):
            known[route] = {
                name: curves(lines, tail)
                for name, lines in sorted(groups[route].items())
                if any(not math.isnan(one["behind"]) for one in lines)
            }
    return known


def beside_kernel(known: dict[str, Any], one: dict[str, Any]) -> dict[str, float]:
    """Return how far a cell of votes is behind, by what the kernel classifier did beside it."""
    if "beside" not in one:
        return {}
    led = (read_curves(known, one["beside"]) or {}).get("behind", math.nan)
    return {"behind": float(np.maximum(0.0, one["behind"] + led))}  # NaN stays what it is


def read_curves(known: dict[str, Any], one: dict[str, Any]) -> dict[str, float] | None:
    """Return what curves say about a cell."""
    line = known.get(one["route"], {}).get(one["context"])
    if line is None:
        return None
    place = math.log10(max(one["strength"], 1e-3))
    return {name: float(np.interp(place, line["knots"], line[name])) for name in list(line)[1:]}


def left_out(found: list[dict[str, Any]], tail: float) -> dict[str, float]:
    """Return how good forecasts are for a table that was left out of the calibration."""
    every, chosen = [], []
    for name in {one["table"] for one in found}:
        known = calibrated([one for one in found if one["table"] != name], tail)
        groups = defaultdict(list)
        for one in (one for one in found if one["table"] == name):
            told = read_curves(known, one)
            if told is not None:
                every.append((one, told))
                if one["route"] in LEARNERS:
                    groups[one["rows"], one["public"], one["epsilon"]].append((one, told))
        whole = [lines for lines in groups.values() if len(lines) == len(LEARNERS)]
        chosen += [min(lines, key=lambda pair: pair[1]["behind"]) for lines in whole]
    return {
        "within_two_points": close_costs(every),
        "within_interval": share(
            [told["low"] <= one["cost"] <= told["high"] for one, told in every]
        ),
        "cost_of_chosen_within_two_points": close_costs(chosen),
        "chosen_within_one_point": share([one["lost"] <= 0.01 + TIE for one, _ in chosen]),
        "mean_points_behind_best": round(
            100 * float(np.mean([one["lost"] for one, _ in chosen])), 2
        ),
    }


def close_costs(pairs: list[tuple[dict[str, Any], dict[str, float]]]) -> float:
    return share([abs(told["likely"] - one["cost"]) <= 0.02 + TIE for one, told in pairs])


def calibrate(done: dict[Cell, dict[str, Any]]) -> None:
    """Write the file that the package ships; the interval holds for tables that are left out."""
    found = costs(done, CALIBRATING)
    tried = {tail: left_out(found, tail) for tail in TAILS}
    print("Tables that are left out, by the share beyond each end:", tried)
    wide = [tail for tail in TAILS if tried[tail]["within_interval"] >= 0.8]
    tail = wide[0] if wide else TAILS[-1]
    rows = [one["rows"] for one in found]
    text = json.dumps(
        {
            "command": "python benchmarks/planning.py calibrate",
            "tables": sorted({one["table"] for one in found}),
            "rows": [min(rows), max(rows)],
            "epsilon": [min(EPSILONS), max(EPSILONS)],
            "delta": DELTA,
            "cells": len(found),
            "tail": tail,
            "left_out": tried[tail],
            "routes": calibrated(found, tail),
        }
    )
    SHIPPED.write_text(text.replace('"routes": {', '"routes": {\n').replace("}, ", "},\n") + "\n")
