"""Does everlasting prediction stay right? Accuracy against queries answered, and speed.

    python benchmarks/everlasting.py [--seeds 10] [--only NAME ...] [--jobs 2] [--again]

writes benchmarks/results/everlasting.json and .png. Seeds that are in the JSON already are kept
unless --again is given, so that parts can be run one after the other; each part says how many
seeds it has. delta is 1e-6 everywhere. "hard labels" are the same runs with the sign of each
margin instead of the margin, to show what margins are good for.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.linear_model import RidgeClassifier
from sklearn.tree import DecisionTreeClassifier
from tables import load

from cumae.concepts import Rectangles, Thresholds
from cumae.datasets import HEALTH_SURVEY_BOUNDS, load_health_survey
from cumae.ensembles.trainer import train_one_by_one
from cumae.learners import PrivateKernelClassifier
from cumae.predictors import EverlastingPredictor
from cumae.predictors.everlasting.margins import MarginTrainer, weights_of_labels

mpl.use("Agg")

from matplotlib import pyplot as plt

RESULTS = Path(__file__).parent / "results"
DELTA = 1e-6

Table = NDArray[Any]
Problem = tuple[Any, Table, Callable[[int], tuple[Any, Table]]]  # rows, labels, draw queries


class HardLabels(EverlastingPredictor):
    """Keeps labels instead of margins."""

    def _release(self, table: Any, state: Any, spent: Any, coins: Any) -> Any:
        labels, weights, memo = super()._release(table, state, spent, coins)
        return labels, np.where(weights > 0, state.phase.ensemble.n_shards, 0), memo


@dataclass(frozen=True)
class Part:
    """One line of the benchmark: what is learnt, how, and what is to be reached."""

    problem: Callable[[int, np.random.Generator], Problem]
    rows: int
    queries: int
    chunk: int  # queries of one point of the curve
    options: dict[str, Any]
    goal: str
    hard: bool = False
    beside: bool = False  # the best published learner on all rows stands beside it

    def run(self, seed: int) -> list[float]:
        """Return the accuracy of each chunk of queries."""
        generator = np.random.default_rng(seed)
        X, y, draw = self.problem(self.rows, generator)
        kind = HardLabels if self.hard else EverlastingPredictor
        oracle = kind(delta=DELTA, **self.options).fit(X, y)
        curve = []
        for start in range(0, self.queries, self.chunk):
            asked, right = draw(min(self.chunk, self.queries - start))
            curve.append(round(float(np.mean(oracle.predict(asked) == right)), 5))
        return curve

    def published(self, seed: int) -> float:
        """Return the accuracy of the kernel classifier on all rows of a seed, on 20,000 queries."""
        X, y, draw = self.problem(self.rows, np.random.default_rng(seed))
        columns, epsilon = self.options["columns"], self.options["epsilon"]
        asked, right = draw(20_000)
        model = PrivateKernelClassifier(epsilon, DELTA, columns=columns).fit(X, y)
        return round(float(np.mean(model.predict(asked) == right)), 5)


def labelled(rule: Callable[[Table], Table], width: int) -> Any:
    """Return a problem whose rows are uniform in a cube."""

    def problem(rows: int, generator: np.random.Generator) -> Problem:
        def draw(count: int) -> tuple[Table, Table]:
            X = generator.random((count, width))
            return X, rule(X).astype(np.int64)

        return *draw(rows), draw

    return problem


def thresholds(rows: int, generator: np.random.Generator) -> Problem:
    """Thresholds from 0.2 to 0.8, drawn for each seed."""
    cut = generator.uniform(0.2, 0.8)
    problem: Problem = labelled(lambda X: X[:, 0] >= cut, 1)(rows, generator)
    return problem


def boxes(rows: int, generator: np.random.Generator) -> Problem:
    """Boxes with sides from 0.4 to 0.7, drawn for each seed."""
    sides = generator.uniform(0.4, 0.7, 2)
    lows = generator.uniform(0, 1 - sides)
    problem: Problem = labelled(lambda X: np.all((lows <= X) & (lows + sides > X), axis=1), 2)(
        rows, generator
    )
    return problem


def linear(rows: int, generator: np.random.Generator) -> Problem:
    """Halfspaces through the origin, with normal rows in ten columns."""
    normal = generator.normal(size=10)

    def draw(count: int) -> tuple[Table, Table]:
        X = generator.normal(size=(count, 10))
        return X, (X @ normal > 0).astype(np.int64)

    return *draw(rows), draw


def survey(rows: int, generator: np.random.Generator) -> Problem:
    """The survey that comes with cumae; queries are drawn from the rows that are left."""
    X, y = load_health_survey(return_X_y=True, as_frame=False)
    order = generator.permutation(len(y))
    rest = order[rows:]

    def draw(count: int) -> tuple[Table, Table]:
        places = generator.choice(rest, count)
        return X[places], y[places]

    return X[order[:rows]], y[order[:rows]], draw


def adult(rows: int, generator: np.random.Generator) -> Problem:
    """Incomes of adults, as a data frame with texts and missing cells."""
    table = load("adult")
    order = generator.permutation(len(table.labels))
    rest = order[rows:]

    def draw(count: int) -> tuple[Any, Table]:
        places = generator.choice(rest, count)
        return table.rows.iloc[places], table.labels[places]

    return table.rows.iloc[order[:rows]], table.labels[order[:rows]], draw


def _thresholds(rows: int, epsilon: float, goal: str, **more: Any) -> Part:
    options = {"estimator": Thresholds("above"), "epsilon": epsilon, "columns": [(0, 1)], **more}
    return Part(thresholds, rows, 2_000_000, 100_000, options, goal)


def _few(rows: int, goal: str) -> Part:
    part = _thresholds(rows, 1.0, goal, prior=False)
    return replace(part, queries=1_000_000)


EVEN = {"growth": 1.0, "prior": False}
RIDGE = RidgeClassifier(alpha=10.0, fit_intercept=False)
PARTS = {
    "thresholds 1000 eps 1": _few(1000, "mean at least .945, last chunk .965"),
    "thresholds 1000 eps 1, prior": replace(
        _thresholds(1000, 1.0, "mean at least .98"), queries=1_000_000
    ),
    "thresholds 5000 eps 1": _few(5000, "mean at least .974, last chunk .987"),
    "thresholds 20000 eps 1": _few(20_000, "mean at least .985, last chunk .99"),
    "thresholds 20000 eps 1 growth 1": _thresholds(20_000, 1.0, "last chunk at least .95", **EVEN),
    "thresholds 20000 eps 3 growth 1": _thresholds(20_000, 3.0, "last chunk at least .98", **EVEN),
    "thresholds 80000 eps 1 growth 1": _thresholds(80_000, 1.0, "last chunk at least .975", **EVEN),
    "linear 30000 eps 3": Part(
        linear,
        30_000,
        1_000_000,
        100_000,
        {"estimator": RIDGE, "epsilon": 3.0, "prior": False},
        "last chunk at least .95",
    ),
    "boxes 50000 eps 3": Part(
        boxes,
        50_000,
        1_000_000,
        100_000,
        {"estimator": Rectangles(), "epsilon": 3.0, "columns": [(0, 1)] * 2},
        "last chunk at least .95",
    ),
    "boxes 50000 eps 3, votes alone": Part(
        boxes,
        50_000,
        1_000_000,
        100_000,
        {"estimator": Rectangles(), "epsilon": 3.0, "prior": False, "columns": [(0, 1)] * 2},
        "last chunk at least .95",
    ),
    "linear 100000 eps 3": Part(
        linear,
        100_000,
        1_000_000,
        100_000,
        {
            "estimator": RIDGE,
            "epsilon": 3.0,
            "prior": False,
            "growth": 1.0,
            "shard_size": 6,  # votes of linear models get steeper with the root of it only
        },
        "last chunk at least .965",
    ),
    "boxes 200000 eps 3": Part(
        boxes,
        200_000,
        2_000_000,
        200_000,
        {"estimator": Rectangles(), "epsilon": 3.0, **EVEN},
        "first and last chunk (a chunk is a phase) at least .94",
    ),
    "survey 177000 eps 3": Part(
        survey,
        177_000,
        1_000_000,
        100_000,
        {
            "estimator": DecisionTreeClassifier(max_depth=4),
            "epsilon": 3.0,
            "prior": False,
            "shard_size": 40,  # larger shards and growing phases lose less from phase to phase
            "growth": 1.3,
        },
        "mean at least .68, last chunk at most .01 below the first",
    ),
}
NEAR = "mean at most half a point below the published learner on all rows"
TREES = DecisionTreeClassifier(max_depth=4)
SURVEY_COLUMNS = [(low, high, 1) for low, high in HEALTH_SURVEY_BOUNDS.values()]
PARTS |= {
    f"survey 177000 eps {epsilon:g}, prior": Part(
        survey,
        177_000,
        1_000_000,
        100_000,
        {"estimator": TREES, "epsilon": epsilon, "columns": SURVEY_COLUMNS},
        NEAR,
        beside=True,
    )
    for epsilon in (1.0, 3.0)
}
PARTS["adult 34000 eps 1, prior"] = Part(
    adult,
    34_000,
    1_000_000,
    100_000,
    {"estimator": TREES, "epsilon": 1.0, "columns": load("adult").declared},
    NEAR,
    beside=True,
)
PARTS |= {
    f"{name}, hard labels": Part(
        part.problem,
        part.rows,
        part.queries,
        part.chunk,
        part.options,
        "shows the drift",
        hard=True,
    )
    for name, part in PARTS.items()
    if (part.options.get("growth") == 1.0 or name == "survey 177000 eps 3") and "prior" not in name
}


def summary(
    part: Part, curves: dict[str, list[float]], published: dict[str, float]
) -> dict[str, Any]:
    values = np.array(list(curves.values()))
    sizes = np.full(values.shape[1], part.chunk)
    sizes[-1] = part.queries - part.chunk * (len(sizes) - 1)
    overall = values @ sizes / part.queries

    def shown(numbers: Table) -> list[float | None]:
        spread = round(float(np.std(numbers, ddof=1)), 4) if len(numbers) > 1 else None
        return [round(float(np.mean(numbers)), 4), spread]

    return {
        "rows": part.rows,
        "queries": part.queries,
        "queries_per_chunk": part.chunk,
        "goal": part.goal,
        "seeds": len(values),
        "accuracy_mean_and_sd": {
            "first chunk": shown(values[:, 0]),
            "last chunk": shown(values[:, -1]),
            "all": shown(overall),
        },
        "mean_of_each_chunk": np.round(values.mean(axis=0), 4).tolist(),
        "curves": curves,
        **({"published": published} if part.beside else {}),
    }


def rate(work: Callable[[], Any], count: int) -> float:
    """Return answers a second, the best of three."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return round(count / min(times))


def speed() -> dict[str, Any]:
    """Batches within a phase, one call each."""
    generator = np.random.default_rng(0)
    X, y, draw = thresholds(20_000, generator)
    asked, _ = draw(1_000_000)
    given: dict[str, Any] = {
        "columns": [(0, 1)],
        "growth": 200.0,
        "max_rows": 10**7,
        "shard_size": 10,
    }
    found: dict[str, dict[str, Any]] = {}
    for name, prior in (("thresholds", False), ("thresholds, prior", None)):
        oracle = EverlastingPredictor(Thresholds("above"), 3.0, DELTA, prior=prior, **given)
        oracle.fit(X, y).predict(asked[:1000])
        answers = rate(partial(oracle.predict, asked), len(asked))
        found[name] = {"answers_a_second": answers}
    X, y, draw = survey(177_000, generator)
    oracle = EverlastingPredictor(
        DecisionTreeClassifier(max_depth=4), 3.0, DELTA, prior=False, growth=3.0, max_rows=10**6
    )
    oracle.fit(X, y)
    asked, _ = draw(100_000)
    votes = oracle._state_.phase.ensemble.votes
    oracle.predict(asked[:1000])
    answers = rate(lambda: oracle.predict(asked), len(asked))
    counts = rate(lambda: votes(asked), len(asked))
    found["trees of depth 4"] = {
        "shards": oracle.n_shards_,
        "answers_a_second": answers,
        "vote_counts_a_second": counts,
        "share": round(answers / counts, 3),
    }
    found["training trees of depth 4"] = training(X, y)
    return found


def training(X: Table, y: Table, shards: int = 2_000, size: int = 18) -> dict[str, Any]:
    """Shards of a phase, in one loop and one after the other by scikit-learn."""
    trainer = MarginTrainer(DecisionTreeClassifier(max_depth=4), 2)
    rows, weights = X[: shards * size].astype(np.float64), weights_of_labels(y[: shards * size], 2)
    task = (rows, weights, np.arange(shards + 1) * size, np.arange(shards))
    trainer.train_many(*task)  # compiles
    together = rate(lambda: trainer.train_many(*task), shards)
    one_by_one = rate(lambda: train_one_by_one(trainer, *task), shards)
    return {
        "rows_of_a_shard": size,
        "shards_a_second": together,
        "one_by_one": one_by_one,
        "ratio": round(together / one_by_one, 1),
    }


def plot(parts: dict[str, Any]) -> None:
    names = [name for name in parts if "hard" not in name]
    figure, grid = plt.subplots(-(-len(names) // 3), 3, figsize=(12, 9), squeeze=False)
    for axes, name in zip(grid.flat, names, strict=False):
        for title, label in ((name, "margins"), (f"{name}, hard labels", "hard labels")):
            if title not in parts:
                continue
            found = parts[title]
            values = 1 - np.array(list(found["curves"].values()))
            ends = np.minimum(
                np.arange(1, values.shape[1] + 1) * found["queries_per_chunk"], found["queries"]
            )
            mean, spread = values.mean(axis=0), values.std(axis=0)
            axes.plot(ends, mean, label=f"{label}, {len(values)} seeds")
            axes.fill_between(ends, mean - spread, mean + spread, alpha=0.2)
        axes.set(title=name, xlabel="queries answered", ylabel="error")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=7)
    for axes in list(grid.flat)[len(names) :]:
        axes.axis("off")
    figure.tight_layout()
    figure.savefig(RESULTS / "everlasting.png", dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", nargs="*", help="parts whose name contains one of these")
    parser.add_argument("--without", nargs="*", default=[], help="parts to leave out likewise")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--again", action="store_true")
    asked = parser.parse_args()
    path = RESULTS / "everlasting.json"
    result: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"parts": {}}
    result |= {"python": platform.python_version(), "delta": DELTA}

    def wanted(name: str) -> bool:
        chosen = asked.only is None or any(word in name for word in asked.only)
        return chosen and not any(word in name for word in asked.without)

    if wanted("speed"):
        result["speed"] = speed()
        print(result["speed"], flush=True)
    for name, part in PARTS.items():
        if not wanted(name):
            continue
        before = {} if asked.again else result["parts"].get(name, {})
        known, published = before.get("curves", {}), before.get("published", {})
        points = -(-part.queries // part.chunk)  # curves of an earlier setting are not kept
        known = {seed: curve for seed, curve in known.items() if len(curve) == points}
        todo = [seed for seed in range(asked.seeds) if str(seed) not in known]
        for group in (todo[i : i + asked.jobs] for i in range(0, len(todo), asked.jobs)):
            curves = Parallel(n_jobs=asked.jobs)(delayed(part.run)(seed) for seed in group)
            known |= {str(seed): curve for seed, curve in zip(group, curves, strict=True)}
            if part.beside:
                published |= {str(seed): part.published(seed) for seed in group}
            result["parts"][name] = summary(part, known, published)
            print(name, result["parts"][name]["seeds"], "seeds", flush=True)
            print(result["parts"][name]["accuracy_mean_and_sd"], flush=True)
            ordered = {key: result["parts"][key] for key in PARTS if key in result["parts"]}
            result["parts"] = ordered
            path.write_text(json.dumps(result, indent=1) + "\n")  # what is done is done
    if wanted("speed"):
        path.write_text(json.dumps(result, indent=1) + "\n")
    plot(result["parts"])


if __name__ == "__main__":
    main()
