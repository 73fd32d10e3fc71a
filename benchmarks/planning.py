"""Does the planner choose the right route, and does privacy cost what it forecasts?

    python benchmarks/planning.py measure [--minutes 60] [--data FOLDER]
    python benchmarks/planning.py calibrate
    python benchmarks/planning.py try [--minutes 60]
    python benchmarks/planning.py judge

The first fits routes of ``cumae.planning`` to tables, with several numbers of rows and several
epsilons, with 2,000 public rows and without, and measures accuracy on 5,000 other rows. Infinite
epsilon, or the plain estimator for routes of votes, is the same model without privacy. A cell is
one fit. Each is a line in the file of --cells as soon as it is there, and is not run again, so that
a run which was stopped can go on.

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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from _table import Table
from sklearn.isotonic import IsotonicRegression
from sklearn.tree import DecisionTreeClassifier
from tables import ELSEWHERE, REAL, load

from cumae.concepts import ConceptClass, Intervals, Rectangles, Thresholds
from cumae.data import Columns
from cumae.planning.advice import advise
from cumae.planning.forecasts import VOTES, context, strength
from cumae.planning.outlooks import outlook
from cumae.planning.routes import ROUTES, Situation
from cumae.planning.simulation import Sample, simulate

RESULT = Path(__file__).parent / "results" / "planning.json"
CELLS = Path(tempfile.gettempdir()) / "cumae_planning.jsonl"
TRIALS = Path(tempfile.gettempdir()) / "cumae_planning_trials.jsonl"
SAMPLE = 500  # labelled public rows
TIE = 1e-9
PUBLIC, TESTED, QUERIES = 2_000, 5_000, 1_000
DELTA = 1e-6
SIZES = (300, 1_000, 10_000, 100_000)
EPSILONS = (0.5, 1.0, 3.0)
POWERS = (0.0, 0.25, 0.5)  # of the width, by which the strength is divided
STEP, NEAR = 0.25, 0.2  # between knots, and how near cells count for one, in powers of ten
SHIPPED = Path(__file__).parents[1] / "src" / "cumae" / "planning" / "forecasts.json"
# With public rows, a PrivateLearner draws as a SemiPrivateLearner does, and is measured for both.
LEARNERS = ("kernel", "booster", "trees", "logistic", "learner")
PREDICTORS = ("gaussian", "student", "everlasting")


# Tables of concept classes, beside those of tables.py: exact ones are judged, noisy ones calibrate


@dataclass(frozen=True)
class Shape:
    """A made-up table whose rule is a concept of a class; some labels are wrong."""

    concept: ConceptClass
    low: tuple[float, ...]
    high: tuple[float, ...]
    wrong: float

    def table(self, name: str, count: int, seed: int) -> Table:
        coins = np.random.default_rng(seed)
        x = coins.random((count, len(self.low)))
        inside = np.all((x >= self.low) & (x < self.high), axis=1)
        chance = np.where(inside, 1 - self.wrong, self.wrong)
        labels = (coins.random(count) < chance).astype(np.int64)
        names = [f"x{place}" for place in range(x.shape[1])]
        return Table(
            pd.DataFrame(x, columns=names),
            labels,
            dict.fromkeys(names, (0, 1)),
            name,
            chances=np.column_stack([1 - chance, chance]),
        )


SHAPES = {
    "exact threshold": Shape(Thresholds(), (0.37,), (1.0,), 0.0),
    "exact box": Shape(Rectangles(), (0.2, 0.3), (0.75, 0.9), 0.0),
    "noisy threshold": Shape(Thresholds(), (0.58,), (1.0,), 0.1),
    "noisy interval": Shape(Intervals(), (0.15,), (0.55,), 0.15),
    "noisy box": Shape(Rectangles(), (0.05, 0.4), (0.7, 1.0), 0.1),
    "exact interval": Shape(Intervals(), (0.3,), (0.8,), 0.0),
}
JUDGED = (
    *("exact threshold", "exact box", "linear", "pairs", "switches", "rare"),
    *("survey", "adult", "credit default"),
)
CALIBRATING = (
    *("noisy threshold", "noisy interval", "noisy box", "exact interval", "poll", "curves"),
    *("tariff", "additive", "diamonds", "triples", "fraud", "depots", "tails"),
    *("flights", "cardio"),
)
CALIBRATING_SIZES = (300, 1_000, 3_000, 10_000, 40_000)
# Time is bounded: the most rows, and the routes of votes, are measured for some tables and sizes.
LARGE = ("noisy threshold", "noisy box", "poll", "additive", "fraud", "cardio")
VOTED = (1_000, 10_000)


class Task(NamedTuple):
    """Rows of a table; all routes and all epsilons share them."""

    table: str
    rows: int
    public: bool
    seed: int


class Cell(NamedTuple):
    """One fit; an infinite epsilon is the same model without privacy."""

    table: str
    rows: int
    public: bool
    seed: int
    route: str
    epsilon: float


@dataclass(frozen=True)
class Split:
    private: Table
    public: Table | None
    tested: Table
    concept: ConceptClass | None

    def situation(self, epsilon: float) -> Situation:
        columns = self.private.declared | self.private.guesses
        return Situation(
            len(self.private.labels),
            n_public=0 if self.public is None else PUBLIC,
            n_queries=QUERIES,
            n_features=self.private.rows.shape[1],
            columns=columns,
            concept_class=self.concept,
            epsilon=epsilon,
            delta=DELTA,
        )


def size_of(name: str, asked: int) -> int:
    """Return how many rows can be learnt from, if so many are asked for."""
    return asked if name not in REAL else min(asked, len(load(name).labels) - PUBLIC - TESTED)


@cache
def split(task: Task) -> Split:
    """Return the same rows for all routes; a made-up table has other rows for each seed."""
    count = task.rows + PUBLIC + TESTED
    shape = SHAPES.get(task.table)
    table = (
        shape.table(task.table, count, task.seed) if shape else load(task.table, count, task.seed)
    )
    order = np.random.default_rng(task.seed).permutation(len(table.labels))
    return Split(
        table.take(order[PUBLIC + TESTED : count]),
        table.take(order[:PUBLIC]) if task.public else None,
        table.take(order[PUBLIC : PUBLIC + TESTED]),
        shape.concept if shape else None,
    )


def right(table: Table, found: Any) -> float:
    """Return the share of right answers; where chances are known, what it is on the mean."""
    found = np.asarray(found, dtype=np.int64)
    if table.chances is None:
        return float(np.mean(found == table.labels[: len(found)]))
    return float(np.mean(table.chances[np.arange(len(found)), np.maximum(found, 0)] * (found >= 0)))


def plain_accuracy(given: Split) -> float:
    """Return the accuracy of the estimator that votes by default, on all rows and not private."""
    columns = Columns.of(given.private.rows, given.private.declared | given.private.guesses)
    model = DecisionTreeClassifier(max_depth=4, random_state=0)
    model.fit(np.nan_to_num(columns.read(given.private.rows)), given.private.labels)
    return right(given.tested, model.predict(np.nan_to_num(columns.read(given.tested.rows))))


def measure(cell: Cell) -> dict[str, Any]:
    """Fit one route, and return its accuracy."""
    given = split(Task(*cell[:4]))
    start = time.process_time()
    if cell.route in PREDICTORS and cell.epsilon == math.inf:
        accuracy = plain_accuracy(given)
    else:
        model = ROUTES[cell.route].build(given.situation(cell.epsilon))
        model.set_params(random_state=cell.seed)
        rows = given.private.rows, given.private.labels
        asked = given.tested
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if cell.route in PREDICTORS:
                model.fit(*rows)
                asked = asked.take(slice(0, QUERIES if cell.route == "gaussian" else TESTED))
            else:
                model.fit(*rows, None if given.public is None else given.public.rows)
            accuracy = right(asked, model.predict(asked.rows))
    return cell._asdict() | {
        "accuracy": round(accuracy, 5),
        "one_class": round(max(right(given.tested, np.full(TESTED, label)) for label in (0, 1)), 5),
        "best_possible": given.tested.bayes,
        "width": given.situation(1.0).width,
        "features": given.private.rows.shape[1],
        "seconds": round(time.process_time() - start, 2),
    }


# Which cells there are


def tasks() -> list[Task]:
    """Return all tasks: the ones that say most first, second seeds last."""
    found = []
    for name, rows, public in product(JUDGED, SIZES, (False, True)):
        found.append((2 * (rows > 50_000), Task(name, size_of(name, rows), public, 0)))
        if rows <= 1_000:
            found.append((4, Task(name, rows, public, 1)))
    for first, name in enumerate(CALIBRATING):
        for place, rows in enumerate(CALIBRATING_SIZES):
            if rows <= 10_000 or name in LARGE:  # with public rows and without, in turns
                public = (first + place) % 2 == 0
                task = Task(name, size_of(name, rows), public, 7)
                found.append((3 if rows > 10_000 else 1, task))
    order = np.random.default_rng(0).permutation(len(found))
    return [task for _, task in sorted((found[place] for place in order), key=lambda one: one[0])]


def cells(found: Iterable[Task]) -> Iterator[Cell]:
    for task in found:
        routes = list(LEARNERS)
        if task.table in LARGE and task.rows in VOTED and not task.public:
            routes += PREDICTORS
        for route, epsilon in product(routes, (math.inf, *EPSILONS)):
            yield Cell(*task, route, epsilon)


def read(path: Path) -> dict[Cell, dict[str, Any]]:
    """Return the cells of a file."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {Cell(*(line[name] for name in Cell._fields)): line for line in lines}


def run(path: Path, minutes: float) -> None:
    """Run what is not done, and write each cell down as soon as it is there."""
    done = read(path)
    left = [cell for cell in dict.fromkeys(cells(tasks())) if cell not in done]
    end = time.monotonic() + 60 * minutes
    with path.open("a", encoding="utf-8") as file:
        for place, cell in enumerate(left, 1):
            if time.monotonic() > end:
                print(f"{len(left) - place + 1} cells are left")
                return
            try:
                found = measure(cell)
            except (ValueError, TypeError) as why:  # refusals are ValueErrors
                found = cell._asdict() | {"refused": f"{type(why).__name__}: {why}"}
            file.write(json.dumps(found) + "\n")
            file.flush()
            if place % 50 == 0:
                print(f"[{place}/{len(left)}]", flush=True)
            if place < len(left) and left[place][:4] != cell[:4]:
                split.cache_clear()


# Calibration: what the package ships


def situation_of(cell: Cell) -> Situation:
    """Return the public facts of a cell."""
    return _situation(cell[:4], cell.epsilon)


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


def costs(done: dict[Cell, dict[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return, for each private cell, its strength and what privacy cost."""
    found = []
    for cell, line in done.items():
        if cell.table not in names or cell.epsilon == math.inf or "accuracy" not in line:
            continue
        open_cells = [cell._replace(route=route, epsilon=math.inf) for route in LEARNERS]
        known = [done[one]["accuracy"] for one in open_cells if "accuracy" in done.get(one, {})]
        if len(known) < len(LEARNERS) or "accuracy" not in done.get(twin(cell), {}):
            continue
        situation = situation_of(cell)
        found.append(
            cell._asdict()
            | {
                "context": context(situation),
                "width": situation.width,
                "strength": strength(ROUTES[cell.route], situation, facts_of(cell)),
                "cost": done[twin(cell)]["accuracy"] - line["accuracy"],
                "behind": max(known) - line["accuracy"],
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


def curves(found: list[dict[str, Any]], power: float) -> dict[str, list[float]]:
    """Return quantiles of the cost around each strength; they fall with it."""
    reached = np.log10([max(one["strength"], 1e-3) / one["width"] ** power for one in found])
    cost, behind = (np.array([one[name] for one in found]) for name in ("cost", "behind"))
    knots = np.arange(np.floor(4 * reached.min()) / 4, reached.max() + STEP, STEP)
    lines: dict[str, list[float]] = {name: [] for name in ("low", "likely", "high", "behind")}
    for knot in knots:
        weights = np.exp(-(((reached - knot) / NEAR) ** 2) / 2) + 1e-9
        for name, share in (("low", 0.1), ("likely", 0.5), ("high", 0.9)):
            lines[name].append(quantile(cost, weights, share))
        lines["behind"].append(quantile(behind, weights, 0.5))
    return {"knots": [round(float(knot), 3) for knot in knots]} | {
        name: falling(values) for name, values in lines.items()
    }


def calibrated(found: list[dict[str, Any]], power: float) -> dict[str, Any]:
    groups: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for one in found:
        groups[one["route"]][one["context"]].append(one)
    return {
        route: {name: curves(lines, power) for name, lines in sorted(contexts.items())}
        for route, contexts in groups.items()
    }


def off(found: list[dict[str, Any]], power: float) -> float:
    """Return by how much forecasts are off for a table that is left out, on the mean."""
    errors = []
    for name in {one["table"] for one in found}:
        known = calibrated([one for one in found if one["table"] != name], power)
        for one in (one for one in found if one["table"] == name):
            line = known.get(one["route"], {}).get(one["context"])
            if line is not None:
                reached = math.log10(max(one["strength"], 1e-3) / one["width"] ** power)
                errors.append(
                    abs(float(np.interp(reached, line["knots"], line["likely"])) - one["cost"])
                )
    return float(np.mean(errors))


def calibrate(done: dict[Cell, dict[str, Any]]) -> None:
    """Write the file that the package ships."""
    found = costs(done, CALIBRATING)
    errors = {power: off(found, power) for power in POWERS}
    print("Mean error by power of the width:", {k: round(v, 4) for k, v in errors.items()})
    power = min(errors, key=lambda one: errors[one])
    rows = [one["rows"] for one in found]
    text = json.dumps(
        {
            "command": "python benchmarks/planning.py calibrate",
            "tables": sorted({one["table"] for one in found}),
            "rows": [min(rows), max(rows)],
            "epsilon": [min(EPSILONS), max(EPSILONS)],
            "delta": DELTA,
            "cells": len(found),
            "width_power": power,
            "routes": calibrated(found, power),
        }
    )
    SHIPPED.write_text(text.replace('"routes": {', '"routes": {\n').replace("}, ", "},\n") + "\n")


# Judgement, on tables that the calibration did not see


def means(done: dict[Cell, dict[str, Any]]) -> dict[Cell, float]:
    """Return accuracies on the mean over seeds, as cells with the seed -1."""
    found: dict[Cell, list[float]] = defaultdict(list)
    for cell, line in done.items():
        if "accuracy" in line:
            found[cell._replace(seed=-1)].append(line["accuracy"])
    return {cell: float(np.mean(values)) for cell, values in found.items()}


def judged(done: dict[Cell, dict[str, Any]]) -> list[dict[str, Any]]:
    """Let the planner choose for each table, size, epsilon and number of public rows."""
    known = means(done)
    whole = {(*cell[:4], cell.epsilon): cell for cell in known if cell.table in JUDGED}
    lines = []
    for cell in whole.values():
        private = {route: known.get(cell._replace(route=route)) for route in LEARNERS}
        plain = {
            route: known.get(cell._replace(route=route, epsilon=math.inf)) for route in LEARNERS
        }
        if cell.epsilon == math.inf or None in private.values() or None in plain.values():
            continue  # not all of it was measured
        situation = replace(situation_of(cell._replace(seed=0)), n_queries=None)
        advice = advise(situation, [ROUTES[route] for route in LEARNERS], search=False)
        chosen = advice.prospects[0].route.name
        best = max(private, key=lambda route: private[route])
        line = {"table": cell.table, "rows": cell.rows, "public": cell.public}
        line |= {"epsilon": cell.epsilon, "chosen": chosen, "best": best}
        line |= {"accuracy": private[chosen], "best_accuracy": private[best]}
        line["costs"] = {}
        for route in LEARNERS:
            expected = advice[route].expected
            if expected is not None:
                cost = plain[route] - private[route]
                line["costs"][route] = [cost, expected.likely, expected.low, expected.high]
        lines.append(line)
    return sorted(lines, key=lambda one: (JUDGED.index(one["table"]), *list(one.values())[1:4]))


def verdict(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return in which share of the grid each promise of the planner held."""
    behind = np.array([one["best_accuracy"] - one["accuracy"] for one in lines])
    chosen = np.array([one["costs"][one["chosen"]] for one in lines])
    every = np.array([cost for one in lines for cost in one["costs"].values()])
    found = {"cells": len(lines), "chosen_within_one_point": share(behind <= 0.01 + TIE)}
    found["mean_points_behind_best"] = round(100 * float(behind.mean()), 2)
    for name, costs in (("chosen", chosen), ("all_routes", every)):
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
    """Return all trials, in a random order of tables, sizes and epsilons."""
    found = list(product(JUDGED, SIZES, EPSILONS))
    order = np.random.default_rng(1).permutation(len(found))
    return [
        Trial(name, size_of(name, rows), epsilon, route)
        for name, rows, epsilon in (found[place] for place in order)
        for route in LEARNERS
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
    model = ROUTES[trial.route].build(situation).set_params(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(given.private.rows, given.private.labels, shown.rows)
        accuracy = right(given.tested, model.predict(given.tested.rows))
    figures = {"accuracy": accuracy}
    if forecast is not None:
        figures |= {"forecast": forecast.accuracy, "low": forecast.low, "high": forecast.high}
    return trial._asdict() | {name: round(value, 5) for name, value in figures.items()}


def verdict_on_samples(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how often forecasts of accuracy held, and how good the routes are that they choose."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        groups[line["table"], line["rows"], line["epsilon"]].append(line)
    whole = [found for found in groups.values() if len(found) == len(LEARNERS)]
    chosen = [max(found, key=lambda one: one["forecast"]) for found in whole]
    best = [max(one["accuracy"] for one in found) for found in whole]
    errors = np.array([one["forecast"] - one["accuracy"] for one in chosen])
    every = np.array([one["forecast"] - one["accuracy"] for found in whole for one in found])
    behind = np.array(best) - [one["accuracy"] for one in chosen]
    inside = [one["low"] <= one["accuracy"] <= one["high"] for one in chosen]
    return {
        "cells": len(whole),
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
    parser.add_argument("what", choices=["measure", "calibrate", "try", "judge"])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--data", help=f"folder with cardio.csv.gz (default: ${ELSEWHERE})")
    parser.add_argument("--cells", type=Path, default=CELLS, help="file of cells that are done")
    parser.add_argument("--trials", type=Path, default=TRIALS, help="file of trials that are done")
    asked = parser.parse_args()
    if asked.data:
        os.environ[ELSEWHERE] = asked.data
    if asked.what == "measure":
        run(asked.cells, asked.minutes)
    elif asked.what == "try":
        run_trials(asked.trials, asked.minutes)
    elif asked.what == "calibrate":
        calibrate(read(asked.cells))
    else:
        judge(read(asked.cells), read_trials(asked.trials))


if __name__ == "__main__":
    main()
