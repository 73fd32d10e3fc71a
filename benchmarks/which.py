"""Which algorithm of the papers wins on which rows, beside the plain alternative?

    python benchmarks/which.py [--seeds 5] [--sizes 1000 10000 100000] [--only PAPER ...] [--write]

writes benchmarks/results/which.json, case by case: a case that has the wanted seeds already is not
run again. `--write` runs nothing, and writes the tables of docs/paper_1.md to docs/paper_4.md.
Epsilon is 1 and delta 1e-6, or 0 where a learner has none. Made-up rows follow one rule each, which
is drawn for each seed:

- thresholds: one column, uniform in [0, 1], declared as such.
- skewed: the same threshold after exp(12 x): most values are close to the lower end of the declared
  range.
- boxes: two columns, uniform in the unit square; the box holds a third of it.
- points: one column of whole numbers below a million; half of the rows share one value.

Paper 1: a tenth of the rows has labels. Paper 3: a tenth of the labels is flipped. Paper 4: 200
more rows are public, without labels. The accuracy of a run is the share of 2,000 new rows about
which it says what the rule says, without flips; a figure is the mean over seeds.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cumae
from cumae.concepts import Points, RandomSets, Rectangles, Thresholds
from cumae.errors import CumaeError

RESULT = Path(__file__).parent / "results" / "which.json"
PAGES = [Path(__file__).parents[1] / "docs" / f"paper_{number}.md" for number in range(1, 5)]
EPSILON, DELTA = 1.0, 1e-6
LABELLED, FLIPPED, PUBLIC, ASKED = 0.1, 0.1, 200, 2_000
DOMAIN = 256  # cells that stand for the values of a column, where a domain must be listed
Made = tuple[NDArray[Any], NDArray[np.int64]]


@dataclass(frozen=True)
class Law:
    """Where rows come from: their class of rules, declared columns, and how they are drawn."""

    concept: Any
    columns: list[Any]
    draw: Callable[[np.random.Generator], Callable[[int], Made]]


def _threshold(generator: np.random.Generator, *, skew: float = 0.0) -> Callable[[int], Made]:
    cut = generator.uniform(0.2, 0.8)

    def rows(count: int) -> Made:
        x = generator.random((count, 1))
        return (np.exp(skew * x) if skew else x), (x[:, 0] >= cut).astype(np.int64)

    return rows


def _box(generator: np.random.Generator) -> Callable[[int], Made]:
    side = np.sqrt(0.35)
    low = generator.uniform(0.02, 0.98 - side, 2)

    def rows(count: int) -> Made:
        x = generator.random((count, 2))
        return x, ((x >= low) & (x < low + side)).all(axis=1).astype(np.int64)

    return rows


def _point(generator: np.random.Generator) -> Callable[[int], Made]:
    value = int(generator.integers(10**6))

    def rows(count: int) -> Made:
        x = generator.integers(10**6, size=(count, 1)).astype(float)
        x[generator.random(count) < 0.5] = value
        return x, (x[:, 0] == value).astype(np.int64)

    return rows


SKEW = 12.0
LAWS = {
    "thresholds": Law(Thresholds(), [(0, 1)], _threshold),
    "skewed": Law(Thresholds(), [(1, float(np.exp(SKEW)))], partial(_threshold, skew=SKEW)),
    "boxes": Law(Rectangles(), [(0, 1), (0, 1)], _box),
    "points": Law(Points(), [(0, 10**6 - 1, 1)], _point),
}


@dataclass(frozen=True)
class Task:
    """One run: rows with labels, and rows that are asked about."""

    law: Law
    X: NDArray[Any]
    y: NDArray[np.int64]
    asked: NDArray[Any]
    right: NDArray[np.int64]
    more: Callable[[int], Made]

    def score(self, answers: Any) -> float:
        return float(np.mean(np.asarray(answers) == self.right))

    @property
    def plain(self) -> Any:
        return cumae.PrivateLearner(self.law.concept, EPSILON, columns=self.law.columns)

    @property
    def labelled(self) -> int:
        return int(len(self.y) * LABELLED)


# Paper 1: labels of a tenth of the rows


def few(task: Task, learner: Any) -> float:
    """Learn from the rows with labels and those without."""
    y = np.where(np.arange(len(task.y)) < task.labelled, task.y, -1)
    return task.score(learner.fit(task.X, y).predict(task.asked))


def alone(task: Task, learner: Any) -> float:
    """Learn from the rows with labels alone."""
    count = task.labelled
    return task.score(learner.fit(task.X[:count], task.y[:count]).predict(task.asked))


def active(task: Task) -> float:
    base = cumae.GenericLearner(task.law.concept, 2 * EPSILON, columns=task.law.columns)
    learner = cumae.ActiveLearner(base, EPSILON, n_labels=task.labelled)
    places = learner.select(task.X)
    return task.score(learner.fit(task.X, task.y[places]).predict(task.asked))


def boosted(task: Task, kind: Any, share: float) -> float:
    base = cumae.PrivateLearner(task.law.concept, share * EPSILON, columns=task.law.columns)
    return few(task, kind(base, task.law.concept, EPSILON))


# Paper 2: two phases of answers


def oracle(task: Task, predictor: Any) -> float:
    """Return the accuracy in the second phase: the first one saw true labels."""
    predictor.fit(task.X, task.y)
    while predictor.phase_ < 2:
        predictor.predict(task.more(2_000)[0])
    return task.score(predictor.predict(task.asked))


def table(task: Task) -> float:
    """Publish the answers to all cells of a column, and read queries off the list."""
    cells = (np.arange(DOMAIN)[:, None] + 0.5) / DOMAIN
    release = cumae.QueryRelease(task.law.concept, EPSILON, DELTA, DOMAIN)
    learner = cumae.HypothesisLearner(release, domain=cells).fit(task.X, task.y)
    places = np.minimum((task.asked * DOMAIN).astype(int), DOMAIN - 1)
    return task.score(learner.predict((places + 0.5) / DOMAIN))


def published(task: Task, learner: Any) -> float:
    return task.score(learner.fit(task.X, task.y).predict(task.asked))


# Paper 3: a tenth of the labels flipped


def universal(task: Task) -> float:
    release = cumae.UniversalQueryRelease(task.law.concept, EPSILON, DELTA, n_first=500)
    release.fit(task.X, task.y)
    release.predict(task.more(500)[0])
    return task.score(release.predict(task.asked))


# Paper 4: public rows without labels


def semi(task: Task, *, few_public: bool = False) -> float:
    public = task.more(PUBLIC // 10 if few_public else PUBLIC)[0]
    learner = cumae.SemiPrivateLearner(task.law.concept, EPSILON, columns=task.law.columns)
    return task.score(learner.fit(task.X, task.y, public).predict(task.asked))


def reduction(task: Task) -> float:
    """Give the learner dummies for public rows: evenly spaced points of the declared range."""
    base = cumae.SemiPrivateLearner(task.law.concept, EPSILON, columns=task.law.columns)
    low, high = np.array(task.law.columns, dtype=float).T
    dummies = low + (high - low) * np.random.default_rng(0).random((1_000, len(low)))
    learner = cumae.PublicDataReduction(base, dummies, PUBLIC, n_private=4 * len(task.y), one_in=4)
    return published(task, learner)


def kernel(task: Task) -> Any:
    return cumae.PrivateKernelClassifier(EPSILON, DELTA, columns=task.law.columns)


def release(task: Task, kind: Any, **more: Any) -> float:
    if kind is cumae.AgnosticQueryRelease:
        more["columns"] = task.law.columns
    return published(task, kind(task.law.concept, EPSILON, DELTA, ASKED, **more))


Run = Callable[[Task], float]
PAPERS: dict[str, tuple[list[str], dict[str, Run]]] = {
    "1": (
        ["thresholds", "skewed", "boxes"],
        {
            "PrivateLearner, labels alone": lambda task: alone(task, task.plain),
            "PrivateKernelClassifier, labels alone": lambda task: alone(task, kernel(task)),
            "GenericLearner": lambda task: few(
                task, cumae.GenericLearner(task.law.concept, EPSILON, columns=task.law.columns)
            ),
            "LabelBoost": lambda task: boosted(task, cumae.LabelBoost, 0.4),
            "IterLabelBoost": lambda task: boosted(task, cumae.IterLabelBoost, 0.3),
            "ActiveLearner": active,
        },
    ),
    "1, points": (
        ["points"],
        {
            "PrivateLearner, labels alone": lambda task: alone(task, task.plain),
            "GenericLearner with a histogram": lambda task: few(
                task, cumae.GenericLearner(Points(), EPSILON, DELTA)
            ),
            "RandomSets, labels alone": lambda task: alone(
                task, cumae.PrivateLearner(RandomSets.draw(0.1, 0.01), EPSILON)
            ),
        },
    ),
    "2": (
        ["thresholds", "boxes"],
        {
            "PrivateLearner, published": lambda task: published(task, task.plain),
            "EverlastingPredictor": lambda task: oracle(
                task,
                cumae.EverlastingPredictor(
                    concept_class=task.law.concept, epsilon=EPSILON, columns=task.law.columns
                ),
            ),
            "EverlastingPredictor, votes alone": lambda task: oracle(
                task,
                cumae.EverlastingPredictor(
                    concept_class=task.law.concept, epsilon=EPSILON, prior=False
                ),
            ),
            "GenericBBL": lambda task: oracle(
                task,
                cumae.GenericBBL(
                    task.law.concept, EPSILON, columns=task.law.columns, progress=False
                ),
            ),
            "AccuracyBoost": lambda task: published(
                task, cumae.AccuracyBoost(task.plain, blocks=5)
            ),
            "HypothesisLearner of QueryRelease": table,
        },
    ),
    "3": (
        ["thresholds", "boxes"],
        {
            "PrivateLearner, published": lambda task: published(task, task.plain),
            "QueryRelease": lambda task: release(task, cumae.QueryRelease),
            "SubSamp (stability)": lambda task: release(
                task, cumae.QueryRelease, mechanism="stability"
            ),
            "QueryRelease, offline": lambda task: release(
                task, cumae.QueryRelease, mechanism="offline"
            ),
            "AgPrivCl": lambda task: release(task, cumae.AgnosticQueryRelease),
            "UnvPrivCl, later queries": universal,
        },
    ),
    "4": (
        ["thresholds", "skewed", "boxes"],
        {
            "PrivateLearner, declared ranges": lambda task: published(task, task.plain),
            "PrivateKernelClassifier, no public rows": lambda task: published(task, kernel(task)),
            "SSPP, 200 public rows": semi,
            "SSPP, 20 public rows": partial(semi, few_public=True),
            "PublicDataReduction": reduction,
        },
    ),
}


def task_of(paper: str, law: str, size: int, seed: int) -> Task:
    generator = np.random.default_rng([seed, size])
    draw = LAWS[law].draw(generator)
    X, y = draw(size)
    if paper == "3":
        y = y ^ (generator.random(size) < FLIPPED)
    asked, right = draw(ASKED)
    return Task(LAWS[law], X, y, asked, right, draw)


def one(paper: str, law: str, size: int, run: Run, seed: int) -> dict[str, Any]:
    began = time.process_time()
    try:
        found: dict[str, Any] = {"accuracy": round(run(task_of(paper, law, size, seed)), 4)}
    except CumaeError as error:
        found = {"refused": str(error).splitlines()[0][:200]}
    return found | {"seconds": round(time.process_time() - began, 1)}


def told(case: dict[str, Any] | None) -> str:
    """Return a cell of a table: the mean, that all runs were refused, or that there are none."""
    if case is None:
        return "-"
    found = [run["accuracy"] for run in case["runs"] if "accuracy" in run]
    return f"{np.mean(found):.3f}".lstrip("0") if found else "refused"


def tables(result: dict[str, Any]) -> dict[str, str]:
    """Return the table of each paper: an algorithm a line, a law and a size a column."""
    found = {}
    for paper, (laws, runs) in PAPERS.items():
        sizes = result["sizes"]
        heads = [f"{law}, {size:,}" for law in laws for size in sizes]
        lines = ["", f"| | {' | '.join(heads)} |", "| --- |" + " --- |" * len(heads)]
        for name in runs:
            cells = [
                told(result["cases"].get(f"{paper}; {law}; {size}; {name}"))
                for law in laws
                for size in sizes
            ]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        found[paper] = "\n".join([*lines, ""])
    return found


def with_tables(page: str, result: dict[str, Any]) -> str:
    """Return a page with each table between its two marks."""
    for paper, table in tables(result).items():
        marks = rf"(<!-- figures {re.escape(paper)} -->\n).*?(?=<!-- end -->)"
        page = re.sub(marks, rf"\g<1>{table}\n", page, flags=re.DOTALL)
    return page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sizes", nargs="*", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--only", nargs="*", default=list(PAPERS))
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    result = json.loads(RESULT.read_text()) if RESULT.exists() else {"cases": {}}
    if asked.write:
        for path in PAGES:
            path.write_text(with_tables(path.read_text(encoding="utf-8"), result), "utf-8")
        return
    result |= {"python": platform.python_version(), "sizes": asked.sizes}
    result |= {"epsilon": EPSILON, "delta": DELTA}
    warnings.simplefilter("ignore")
    wanted = [
        (paper, law, size, name, run)
        for paper in asked.only
        for law, size in itertools.product(PAPERS[paper][0], asked.sizes)
        for name, run in PAPERS[paper][1].items()
        if not (name.startswith("HypothesisLearner") and law == "boxes")  # cells of one column
    ]
    for seed, (paper, law, size, name, run) in itertools.product(range(asked.seeds), wanted):
        key = f"{paper}; {law}; {size}; {name}"
        runs = result["cases"].setdefault(key, {"runs": []})["runs"]
        if len(runs) > seed:
            continue
        runs.append(one(paper, law, size, run, seed))
        print(key, seed, runs[-1], flush=True)
        RESULT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
