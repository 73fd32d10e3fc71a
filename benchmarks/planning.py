"""Does the planner choose the right route, and does privacy cost what it forecasts?

    python benchmarks/planning.py measure [--minutes 60] [--data FOLDER]

fits routes of ``cumae.planning`` to tables, with several numbers of rows and several epsilons, with
2,000 public rows and without, and measures accuracy on 5,000 other rows. Infinite epsilon, or the
plain estimator for routes of votes, is the same model without privacy. A cell is one fit. Each is
a line in the file of --cells as soon as it is there, and is not run again, so that a run which was
stopped can go on.
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
from dataclasses import dataclass
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
from cumae.planning.forecasts import VOTES, context, strength
from cumae.planning.outlooks import outlook
from cumae.planning.routes import ROUTES, Situation

CELLS = Path(tempfile.gettempdir()) / "cumae_planning.jsonl"
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
        found.append((rows > 50_000, Task(name, size_of(name, rows), public, 0)))
        if rows <= 1_000:
            found.append((3, Task(name, rows, public, 1)))
    for name, rows, public in product(CALIBRATING, CALIBRATING_SIZES, (False, True)):
        if rows <= 10_000 or name in LARGE:
            found.append((2 * (rows > 10_000), Task(name, size_of(name, rows), public, 7)))
    order = np.random.default_rng(0).permutation(len(found))
    return [task for _, task in sorted((found[place] for place in order), key=lambda one: one[0])]


def cells(found: Iterable[Task]) -> Iterator[Cell]:
    for task in found:
        routes = list(LEARNERS)
        known = task.table in (*JUDGED, *LARGE)
        if known and task.rows in VOTED and not task.public and task.seed != 1:
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
        lines["behind"].append(float(np.average(behind, weights=weights)))
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


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure routes, for the planner.")
    parser.add_argument("what", choices=["measure", "calibrate"])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--data", help=f"folder with cardio.csv.gz (default: ${ELSEWHERE})")
    parser.add_argument("--cells", type=Path, default=CELLS, help="file of cells that are done")
    asked = parser.parse_args()
    if asked.data:
        os.environ[ELSEWHERE] = asked.data
    if asked.what == "measure":
        run(asked.cells, asked.minutes)
    else:
        calibrate(read(asked.cells))


if __name__ == "__main__":
    main()
