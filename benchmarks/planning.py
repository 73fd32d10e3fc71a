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
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from _planning_cells import (
    CELLS,
    DELTA,
    JUDGED,
    LEARNERS,
    PUBLIC,
    TESTED,
    Cell,
    cells,
    read,
    run,
    tasks,
)
from _planning_curves import TIE, calibrate, means, share, situation_of
from _planning_trials import (
    KNOWN,
    SAMPLE,
    TRIALS,
    Trial,
    chosen_trials,
    read_trials,
    rules_and_truth,
    run_trials,
    verdict_on_samples,
)
from tables import ELSEWHERE

from cumae.planning.advice import advise
from cumae.planning.routes import ROUTES

RESULT = Path(__file__).parent / "results" / "planning.json"


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
        line["seeds"] = sum(cell._replace(route=chosen, seed=seed) in done for seed in range(3))
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


def judge(done: dict[Cell, dict[str, Any]], trials: dict[Trial, dict[str, Any]]) -> None:
    """Write what was found, and print how often each promise held."""
    lines = judged(done)
    with_sample = [one for one in trials.values() if one["table"] in JUDGED]
    checked = [one for one in trials.values() if one["table"] not in JUDGED]
    known = [cell for cell in dict.fromkeys(cells(tasks())) if cell in done]
    planned = len(dict.fromkeys(cells(tasks())))
    sizes = by(lines, "rows")
    found = {
        "command": "python benchmarks/planning.py judge",
        "delta": DELTA,
        "public_rows": PUBLIC,
        "tested": TESTED,
        "measured_cells": len(known),
        "left_out_cells": planned - len(known),
        "without_sample": verdict(lines)
        | {
            "sizes_alike": {  # the largest size has fewer cells that were measured
                name: share([one[name] for one in sizes.values()])
                for name in ("chosen_within_one_point", "cost_of_chosen_within_two_points")
            }
        }
        | {"by_rows": sizes, "by_table": by(lines, "table")},
    }
    if with_sample:
        found["with_sample"] = (
            {"sample": SAMPLE}
            | verdict_on_samples(with_sample)
            | {"by_rows": by_rows(with_sample), "tables_not_judged": verdict_on_samples(checked)}
        )
        rules = {name: rules_and_truth(tables) for name, tables in KNOWN.items()}
        rules["all"] = {
            name: pair for group in list(rules.values()) for name, pair in group.items()
        }
        off = {name: points_off(pairs) for name, pairs in rules.items()}
        found["rules"] = off | {"truth_and_rules": rules["all"]}
    text = json.dumps(found, indent=1)[:-2]
    for name, values in (("grid", lines), ("trials", with_sample)):
        text += (
            f',\n "{name}": [\n  ' + ",\n  ".join(map(json.dumps, map(rounded, values))) + "\n ]"
        )
    RESULT.write_text(text + "\n}\n", encoding="utf-8")
    print(json.dumps(found, indent=1))
    print(table(lines, with_sample))


def by_rows(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the verdicts on trials of each size."""
    sizes = dict.fromkeys(band(one["rows"]) for one in trials)
    return {
        size: verdict_on_samples([one for one in trials if band(one["rows"]) == size])
        for size in sizes
    }


def points_off(pairs: dict[str, list[float]]) -> dict[str, Any]:
    """Return by how many points rules of samples are surer than the truth."""
    errors = 100 * np.array([drawn - truth for truth, drawn in pairs.values()])
    return {
        "samples": len(errors),
        "mean_points_off": round(float(errors.mean()), 2),
        "mean_points_off_either_way": round(float(np.abs(errors).mean()), 2),
    }


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
