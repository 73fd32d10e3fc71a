"""Cells of benchmarks/planning.py: one route, fitted to rows of one table, with one epsilon."""

from __future__ import annotations

import json
import math
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _planning_tables import rows_of
from _table import Table
from sklearn.tree import DecisionTreeClassifier
from tables import REAL, load

from cumae.concepts import ConceptClass
from cumae.data import Columns
from cumae.planning.routes import ROUTES, Situation

CELLS = Path(tempfile.gettempdir()) / "cumae_planning.jsonl"
PUBLIC, TESTED, QUERIES = 2_000, 5_000, 1_000
DELTA = 1e-6
SIZES = (300, 1_000, 10_000, 100_000)
EPSILONS = (0.5, 1.0, 3.0)
# With public rows, a PrivateLearner draws as a SemiPrivateLearner does, and is measured for both.
LEARNERS = ("kernel", "booster", "trees", "logistic", "learner")
PREDICTORS = ("gaussian", "student", "everlasting")


JUDGED = (
    *("exact threshold", "exact box", "linear", "pairs", "switches", "rare"),
    *("survey", "adult", "credit default"),
)
CONCEPTS = (
    *("noisy threshold", "noisy interval", "noisy box", "exact interval", "late threshold"),
    *("small box", "deep box"),
)
TOGETHER = (  # columns matter together
    *("triples", "diamonds", "parity", "checkerboard", "gates", "nested", "rings", "orders"),
)
SUMS = (  # columns matter each for itself, more or less
    *("poll", "curves", "tariff", "additive", "fraud", "tails", "flights", "cardio"),
    *("thresholds", "noise", "wealth", "hospital"),
)
CALIBRATING = CONCEPTS + TOGETHER + SUMS
SMALL = (300, 1_000)
# Time is bounded: routes of votes, and many rows, are measured for some tables and sizes.
LARGE = ("noisy threshold", "noisy box", "poll", "additive", "fraud", "cardio")
VOTED = (1_000, 10_000)
WIDE = ("flights", "noise", "hospital")  # tables of many columns, which take long
MANY = (  # tables that are also measured with 10,000 rows
    *("noisy threshold", "noisy box", "exact interval", "gates", "nested", "rings", "orders"),
    *("poll", "additive", "curves", "cardio", "fraud"),
)


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
        rows = self.private.rows
        truths = {str(name): bool for name in rows if rows[name].dtype == np.bool_}  # is public
        columns = self.private.declared | self.private.guesses | truths
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
    table, concept = rows_of(task.table, count, task.seed)
    order = np.random.default_rng(task.seed).permutation(len(table.labels))
    return Split(
        table.take(order[PUBLIC + TESTED : count]),
        table.take(order[:PUBLIC]) if task.public else None,
        table.take(order[PUBLIC : PUBLIC + TESTED]),
        concept,
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
    """Return all tasks: the ones that say most first, most rows and last seeds last."""
    found = []
    for name in CALIBRATING:
        for rows, public in product(SMALL, (False, True)):
            found.append((4 if name in WIDE else 0, Task(name, rows, public, 7)))
        if name in MANY:
            found.append((2, Task(name, 10_000, public=False, seed=7)))
            found.append((4, Task(name, 10_000, public=True, seed=7)))
    for first, name in enumerate(JUDGED):
        for rows, public in product(SMALL, (False, True)):
            found += [(1 if seed == 0 else 5, Task(name, rows, public, seed)) for seed in range(3)]
        for place, public in enumerate((first % 2 == 0, first % 2 == 1)):
            found.append((3, Task(name, 10_000, public, 0)))
            found.append((6 + 2 * place, Task(name, size_of(name, 100_000), public, 0)))
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
