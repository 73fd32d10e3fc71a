"""Does the planner choose the right route, and does privacy cost what it forecasts?

    python benchmarks/planning.py [measure] [calibrate] [try] [judge] [--minutes 60] [--data FOLDER]

runs these four steps, or some of them. The first fits routes of ``cumae.planning`` to tables, with
several numbers of rows and several epsilons, with 2,000 public rows and without, and measures
accuracy on 5,000 other rows. Infinite epsilon, or the plain estimator for routes of votes, is the
same model without privacy. A cell is one fit. Each is a line in the file of --cells as soon as it
is there, and is not run again, so that a run which was stopped can go on.

The second makes the file of forecasts that the package ships, from the tables of ``CALIBRATING``
alone. The third lets the planner forecast accuracies from a public sample of 500 labelled rows of
each table of ``JUDGED``, and fits the same routes. The last compares what the planner says about
the tables of ``JUDGED`` with what was measured, and writes benchmarks/results/planning.json.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _planning_cells import (
    CALIBRATING,
    CELLS,
    DELTA,
    EPSILONS,
    JUDGED,
    LEARNERS,
    PUBLIC,
    SIZES,
    SMALL,
    TESTED,
    Cell,
    Task,
    cells,
    read,
    right,
    run,
    size_of,
    split,
    tasks,
)
from _planning_tables import SHAPES
from _table import Table
from sklearn.isotonic import IsotonicRegression
from tables import ELSEWHERE, REAL

from cumae.planning.advice import advise
from cumae.planning.forecasts import VOTES, context, strength
from cumae.planning.outlooks import outlook
from cumae.planning.routes import ROUTES, Situation
from cumae.planning.simulation import Sample, simulate

RESULT = Path(__file__).parent / "results" / "planning.json"
SHIPPED = Path(__file__).parents[1] / "src" / "cumae" / "planning" / "forecasts.json"
TRIALS = Path(tempfile.gettempdir()) / "cumae_planning_trials.jsonl"
SAMPLE = 500  # labelled public rows
FITS = 3  # of few rows, whose mean is compared with the forecast
SIMULATED = ("kernel", "trees", "logistic", "learner")  # the booster is close to the regression
TAILS = (0.1, 0.05, 0.02, 0.0)  # share of the cells beyond each end of an interval
STEP = 0.25  # between knots, in powers of ten
NEAR, WIDE = 0.3, 0.5  # how near cells count for a knot, and for the most likely cost
CLOSE = 0.02  # what counts as close to a cost
TIE = 1e-9


# Calibration: what the package ships


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
        situation = situation_of(cell)
        found.append(
            cell._asdict()
            | {
                "context": context(situation),
                "strength": strength(ROUTES[cell.route], situation, facts_of(cell)),
                "cost": known[twin(cell)] - accuracy,
                "behind": max(*others, accuracy) - accuracy if sum(others) > 0 else math.nan,
            }
        )
    return found


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
        weights = near(reached, knot, WIDE)
        lines["likely"].append(most_likely(cost, weights))
        weights = near(reached, knot, NEAR)
        for name, part in (("low", tail), ("high", 1 - tail)):
            lines[name].append(quantile(cost, weights, part))
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
    groups: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for one in found:
        groups[one["route"]][one["context"]].append(one)
    return {
        route: {
            name: curves(lines, tail)
            for name, lines in sorted(contexts.items())
            if any(not math.isnan(one["behind"]) for one in lines)
        }
        for route, contexts in groups.items()
    }


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
        "chosen_within_one_point": share([one["behind"] <= 0.01 + TIE for one, _ in chosen]),
        "mean_points_behind_best": round(
            100 * float(np.mean([one["behind"] for one, _ in chosen])), 2
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


# Judgement, on tables that the calibration did not see


def judged(done: dict[Cell, dict[str, Any]]) -> list[dict[str, Any]]:
    """Let the planner choose for each table, size, epsilon and number of public rows."""
    known = means(done)
    whole = {(*cell[:4], cell.epsilon): cell for cell in known if cell.table in JUDGED}
    lines = []
    for cell in whole.values():
        if cell.epsilon == math.inf or any(
            cell._replace(route=route) not in known for route in LEARNERS
        ):
            continue  # not all of it was measured
        accuracy = {route: known[cell._replace(route=route)] for route in LEARNERS}
        situation = replace(situation_of(cell), n_queries=None)
        advice = advise(situation, [ROUTES[route] for route in LEARNERS], search=False)
        costs = {}
        for route in LEARNERS:
            plain = known.get(cell._replace(route=route, epsilon=math.inf))
            expected = advice[route].expected
            if plain is not None and expected is not None:
                told = (expected.likely, expected.low, expected.high)
                costs[route] = [plain - accuracy[route], *told]
        chosen = advice.prospects[0].route.name
        best = max(accuracy, key=lambda route: accuracy[route])
        line: dict[str, Any] = {"table": cell.table, "rows": cell.rows, "public": cell.public}
        line |= {"epsilon": cell.epsilon, "chosen": chosen, "best": best}
        line |= {"accuracy": accuracy[chosen], "best_accuracy": accuracy[best], "costs": costs}
        lines.append(line)
    return sorted(lines, key=lambda one: (JUDGED.index(one["table"]), *list(one.values())[1:4]))


def verdict(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return in which share of the grid each promise of the planner held."""
    behind = np.array([one["best_accuracy"] - one["accuracy"] for one in lines])
    chosen = np.array(
        [one["costs"][one["chosen"]] for one in lines if one["chosen"] in one["costs"]]
    )
    every = np.array([cost for one in lines for cost in one["costs"].values()])
    found: dict[str, Any] = {"cells": len(lines), "cells_with_a_cost": len(chosen)}
    found["chosen_within_one_point"] = share(behind <= 0.01 + TIE)
    found["mean_points_behind_best"] = round(100 * float(behind.mean()), 2)
    for name, costs in (("chosen", chosen), ("all_routes", every)):
        if not len(costs):
            continue
        found[f"cost_of_{name}_within_two_points"] = share(
            np.abs(costs[:, 0] - costs[:, 1]) <= 0.02 + TIE
        )
        found[f"cost_of_{name}_within_interval"] = share(
            (costs[:, 0] >= costs[:, 2] - TIE) & (costs[:, 0] <= costs[:, 3] + TIE)
        )
    return found


def share(holds: Any) -> float:
    return round(float(np.mean(holds)), 3)


# With a public sample: the accuracy itself


class Trial(NamedTuple):
    """A route that is simulated on a public sample, and then fitted with the same public rows."""

    table: str
    rows: int
    epsilon: float
    route: str


def trials() -> list[Trial]:
    """Return all trials, in a random order of tables, sizes and epsilons; the largest size last."""
    found = list(product(JUDGED, SIZES, EPSILONS))
    order = np.random.default_rng(1).permutation(len(found))
    found = sorted((found[place] for place in order), key=lambda one: one[1] > 50_000)
    return [
        Trial(name, size_of(name, rows), epsilon, route)
        for name, rows, epsilon in found
        for route in SIMULATED
    ]


@cache
def sampled(name: str) -> tuple[Table, Sample]:
    """Return a public sample of a table, with rules that it leaves open."""
    # The public rows of a real table are the same for all sizes, and nobody else sees them.
    given = split(Task(name, 300, public=True, seed=0 if name in REAL else 5))
    shown = (given.public or given.tested).take(slice(0, SAMPLE))
    situation = replace(given.situation(1.0), n_public=SAMPLE)
    return shown, Sample.of(situation, shown.rows, shown.labels)


def tried(trial: Trial) -> dict[str, Any]:
    """Return the accuracy of a route as it is forecast, and as it is measured."""
    shown, sample = sampled(trial.table)
    given = replace(split(Task(trial.table, trial.rows, public=True, seed=0)), public=shown)
    situation = replace(given.situation(trial.epsilon), n_public=SAMPLE, n_queries=None)
    forecast = simulate(ROUTES[trial.route], situation, sample)
    found = []
    for seed in range(FITS if trial.rows <= max(SMALL) else 1):
        model = ROUTES[trial.route].build(situation).set_params(random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(given.private.rows, given.private.labels, shown.rows)
            found.append(right(given.tested, model.predict(given.tested.rows)))
    figures = {"accuracy": float(np.mean(found))}
    if forecast is not None:
        figures |= {"forecast": forecast.accuracy, "low": forecast.low, "high": forecast.high}
    return trial._asdict() | {name: round(value, 5) for name, value in figures.items()}


def verdict_on_samples(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how often forecasts of accuracy held, and how good the routes are that they choose."""
    pairs = chosen_trials(lines)
    chosen = [one for one, _ in pairs]
    errors = np.array([one["forecast"] - one["accuracy"] for one in chosen])
    every = np.array([one["forecast"] - one["accuracy"] for one in lines if "forecast" in one])
    behind = np.array([top - one["accuracy"] for one, top in pairs])
    inside = [one["low"] <= one["accuracy"] <= one["high"] for one in chosen]
    return {
        "cells": len(pairs),
        "accuracy_of_chosen_within_two_points": share(np.abs(errors) <= 0.02 + TIE),
        "accuracy_of_all_routes_within_two_points": share(np.abs(every) <= 0.02 + TIE),
        "accuracy_of_chosen_within_interval": share(inside),
        "mean_error": round(float(errors.mean()), 4),
        "chosen_within_one_point": share(behind <= 0.01 + TIE),
        "mean_points_behind_best": round(100 * float(behind.mean()), 2),
    }


def run_trials(path: Path, minutes: float) -> None:
    """Run what is not done, and write each trial down as soon as it is there."""
    done = read_trials(path)
    left = [trial for trial in dict.fromkeys(trials()) if trial not in done]
    end = time.monotonic() + 60 * minutes
    with path.open("a", encoding="utf-8") as file:
        for place, trial in enumerate(left):
            if time.monotonic() > end:
                print(f"{len(left) - place} trials are left")
                return
            file.write(json.dumps(tried(trial)) + "\n")
            file.flush()


def read_trials(path: Path) -> dict[Trial, dict[str, Any]]:
    """Return the trials of a file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found = [json.loads(line) for line in lines]
    return {Trial(*(line[name] for name in Trial._fields)): line for line in found}


def judge(done: dict[Cell, dict[str, Any]], trials: dict[Trial, dict[str, Any]]) -> None:
    """Write what was found, and print how often each promise held."""
    lines = judged(done)
    with_sample = list(trials.values())
    known = [cell for cell in dict.fromkeys(cells(tasks())) if cell in done]
    planned = len(dict.fromkeys(cells(tasks())))
    found = {
        "command": "python benchmarks/planning.py judge",
        "delta": DELTA,
        "public_rows": PUBLIC,
        "tested": TESTED,
        "measured_cells": len(known),
        "left_out_cells": planned - len(known),
        "without_sample": verdict(lines)
        | {"by_rows": by(lines, "rows"), "by_table": by(lines, "table")},
    }
    if with_sample:
        found["with_sample"] = {"sample": SAMPLE} | verdict_on_samples(with_sample)
    text = json.dumps(found, indent=1)[:-2]
    for name, values in (("grid", lines), ("trials", with_sample)):
        text += (
            f',\n "{name}": [\n  ' + ",\n  ".join(map(json.dumps, map(rounded, values))) + "\n ]"
        )
    RESULT.write_text(text + "\n}\n", encoding="utf-8")
    print(json.dumps(found, indent=1))
    print(table(lines, with_sample))


def table(lines: list[dict[str, Any]], trials: list[dict[str, Any]]) -> str:
    """Return counts of what held, for each table and size, as a table of Markdown."""
    text = "| table | rows | route within one point | cost within two points | "
    text += "with a sample: route within one point | accuracy within two points |\n"
    text += "| --- | --- | --- | --- | --- | --- |\n"
    sizes = [(one["table"], one["rows"]) for one in [*lines, *trials]]
    for name, rows in sorted(dict.fromkeys(sizes), key=lambda one: (JUDGED.index(one[0]), one[1])):
        here = [one for one in lines if (one["table"], one["rows"]) == (name, rows)]
        close = [one["best_accuracy"] - one["accuracy"] <= 0.01 + TIE for one in here]
        known = [one["costs"][one["chosen"]] for one in here if one["chosen"] in one["costs"]]
        cheap = [abs(cost[0] - cost[1]) <= 0.02 + TIE for cost in known]
        pairs = chosen_trials(
            [one for one in trials if (one["table"], one["rows"]) == (name, rows)]
        )
        best = [top - one["accuracy"] <= 0.01 + TIE for one, top in pairs]
        told = [abs(one["forecast"] - one["accuracy"]) <= 0.02 + TIE for one, _ in pairs]
        counts = [
            f"{sum(held)} of {len(held)}" if held else "" for held in (close, cheap, best, told)
        ]
        text += f"| {name} | {rows:,} | " + " | ".join(counts) + " |\n"
    return text


def chosen_trials(lines: list[dict[str, Any]]) -> list[tuple[dict[str, Any], float]]:
    """Return the route that the sample chooses in each complete trial, and the best accuracy."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        groups[line["table"], line["rows"], line["epsilon"]].append(line)
    whole = [found for found in groups.values() if len(found) == len(SIMULATED)]
    return [
        (
            max(found, key=lambda one: one.get("forecast", 0.0)),
            max(one["accuracy"] for one in found),
        )
        for found in whole
    ]


def by(lines: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the verdicts on parts of the grid."""
    values = dict.fromkeys(band(one[name]) for one in lines)
    return {value: verdict([one for one in lines if band(one[name]) == value]) for value in values}


def band(value: Any) -> str:
    """Return a table by its name, and a size with those that tables with fewer rows have."""
    return (
        value if isinstance(value, str) else str(min(value, 20_000)) if value < 20_000 else "more"
    )


def rounded(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line with four digits."""
    if "costs" not in line:
        return line
    short = {k: round(v, 4) if isinstance(v, float) else v for k, v in line.items()}
    return short | {
        "costs": {
            route: [round(value, 4) for value in cost] for route, cost in line["costs"].items()
        }
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure routes, for the planner.")
    steps = ["measure", "calibrate", "try", "judge"]
    parser.add_argument("what", nargs="*", choices=[*steps, []], default=[])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--data", help=f"folder with cardio.csv.gz (default: ${ELSEWHERE})")
    parser.add_argument("--cells", type=Path, default=CELLS, help="file of cells that are done")
    parser.add_argument("--trials", type=Path, default=TRIALS, help="file of trials that are done")
    asked = parser.parse_args()
    if asked.data:
        os.environ[ELSEWHERE] = asked.data
    for step in asked.what or steps:
        if step == "measure":
            run(asked.cells, asked.minutes)
        elif step == "calibrate":
            calibrate(read(asked.cells))
        elif step == "try":
            run_trials(asked.trials, asked.minutes)
        else:
            judge(read(asked.cells), read_trials(asked.trials))


if __name__ == "__main__":
    main()
