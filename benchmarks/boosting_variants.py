"""Ways to boost privately that PrivateBooster does not take, beside the one that it takes.

    python benchmarks/boosting_variants.py [--seeds 10] [--data FOLDER]

writes benchmarks/results/boosting_variants.json. Epsilon 1, 2,000 public rows for cuts; splits and
tables are those of benchmarks/learners.py. The variants exist here only: they draw from the same
mechanisms at the same cost, but have no proof page. All but the last two are pure.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel
from learners import DELTA, EPSILON, RESULTS, Table, measure
from numpy.typing import NDArray
from scipy.special import logit

from cumae.concepts import Tree, TreeCuts, Trees
from cumae.learners import Columns, PrivateLogisticRegression
from cumae.learners.boosting import keep
from cumae.learners.cuts import quantile_cuts
from cumae.mechanisms import LaplaceNoise
from cumae.randomness import SYSTEM, integers, permutation

Leaf = Callable[[NDArray[np.float64]], NDArray[Any]]


class Sum:
    """A start, if there is one, and what trees add to it."""

    def __init__(self, columns: Columns, start: Any = None) -> None:
        self.columns, self.start = columns, start
        self.parts: list[Leaf] = []

    def scores(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        total = np.zeros(len(table)) if self.start is None else self.start.log_odds(table)
        return np.asarray(sum((part(table) for part in self.parts), start=total))

    def predict(self, X: Any) -> NDArray[np.int64]:
        return (self.scores(self.columns.encode(X)) > 0).astype(np.int64)


def votes(tree: Tree, rate: float) -> Leaf:
    return lambda table: rate * (2.0 * tree.predict(table) - 1.0)


def leaf_values(
    tree: Tree, X: NDArray[np.float64], y: NDArray[np.int64], epsilon: float, rate: float
) -> Leaf:
    """Give each leaf the log odds of its noisy counts; a replaced row moves two counts by one."""
    leaves = 2**tree.depth
    counts = np.bincount(_leaf(tree, X) * 2 + y, minlength=2 * leaves)
    noisy = LaplaceNoise(epsilon, sensitivity=2).release(counts).reshape(leaves, 2)
    share = np.clip((noisy[:, 1] + 5) / np.maximum(noisy.sum(axis=1) + 10, 10), 0.05, 0.95)
    return lambda table: rate * logit(share)[_leaf(tree, table)]


def _leaf(tree: Tree, table: NDArray[np.float64]) -> NDArray[np.int64]:
    numbered = [
        Tree(tree.columns, tree.cuts, tuple(int(i >> bit & 1) for i in range(2**tree.depth)))
        for bit in range(tree.depth)
    ]
    return np.asarray(sum(part.predict(table) << bit for bit, part in enumerate(numbered)))


def random_tree(cuts: TreeCuts) -> Tree:
    """Draw three cuts without a look at any row."""
    places = [int(place) for place in integers(len(cuts), 3)]
    columns = tuple(int(cuts.column[place]) for place in places)
    return Tree(columns, tuple(float(cuts.value[place]) for place in places), (0, 0, 0, 0))


def boost(
    table: Table, X: Any, y: Any, public: Any, *, variant: str, rounds: int, rate: float
) -> Sum:
    columns = Columns.of(X, table.columns)
    rows, shown = columns.encode(X), columns.encode(public)
    pairs = quantile_cuts(shown, 7)
    start, epsilon = None, EPSILON
    if variant.startswith("start"):
        # The rest of the budget goes to the trees; simple sums, which flatters neither.
        part = 0.7 if variant == "start with a share of the budget" else 1.0
        start = PrivateLogisticRegression(part, DELTA, columns=table.columns, curves=6)
        start.fit(X, y, public)
        epsilon = EPSILON - part
    model = Sum(columns, start)
    if epsilon == 0:
        return model
    order = permutation(len(rows))
    for block in np.array_split(order, rounds):
        cuts = TreeCuts(pairs, len(columns))
        if variant == "column sampling":
            chosen = set(permutation(len(columns))[: len(columns) // 2].tolist())
            cuts = TreeCuts([pair for pair in pairs if pair[0] in chosen], len(columns))
        here, labels = rows[block], y[block]
        if variant == "random trees, noisy leaves":
            model.parts.append(leaf_values(random_tree(cuts), here, labels, epsilon, rate))
            continue
        kept = keep(model.scores(here), labels, SYSTEM)
        if variant == "no filtering":
            kept = np.ones(len(here), dtype=bool)
        share = epsilon / 2 if variant == "noisy leaves" else epsilon
        tree: Any = Trees(2).choose(cuts, cuts.bin(here[kept]), labels[kept], share)
        if variant == "noisy leaves":
            model.parts.append(leaf_values(tree, here[kept], labels[kept], share, rate))
        else:
            model.parts.append(votes(tree, rate))
    return model


SETTINGS = [
    ("as PrivateBooster does", 20, 0.2),
    ("no filtering", 20, 0.2),
    ("column sampling", 20, 0.2),
    ("noisy leaves", 20, 0.2),
    ("noisy leaves", 10, 0.5),
    ("random trees, noisy leaves", 20, 0.5),
    ("random trees, noisy leaves", 100, 0.3),
    ("start with a share of the budget", 10, 0.05),
    ("start alone", 10, 0.05),
]


def main() -> None:
    parser = argparse.ArgumentParser(description="Ways to boost that were not taken.")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--data", type=Path, help="folder with adult.csv.gz")
    chosen = parser.parse_args()
    pool = Parallel(n_jobs=2, backend="multiprocessing")
    tables: dict[str, Path | None] = {"survey": None}
    if chosen.data is not None:
        tables["adult"] = chosen.data
    found = []
    for name, folder in tables.items():
        for rows in (3_000, 25_000):
            for variant, rounds, rate in SETTINGS:
                model = partial(boost, variant=variant, rounds=rounds, rate=rate)
                run = measure(pool, folder, model, rows, chosen.seeds)
                setting = {"table": name, "variant": variant, "rounds": rounds, "rate": rate}
                found.append(setting | run)
                print(name, rows, variant, rounds, rate, run["accuracy"], run["standard_error"])
    text = json.dumps(found, indent=1) + "\n"
    (RESULTS / "boosting_variants.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
