"""How fast do stacked models vote? One run; ratios against loops and bare numpy in the same run.

    python benchmarks/votes.py

writes benchmarks/results/votes.json. Times are wall times, the best of several taken in turns with
what they are compared with, because machines are shared. Compiled code runs once before it is
timed. Stacked models use all cores that the process may use; so does numpy's matrix product.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import time
import tracemalloc
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from cumae.concepts import IntervalUnion, Rectangle, Stump, Threshold
from cumae.ensembles.ensemble import count_votes
from cumae.ensembles.voters.stacking import Voters, stack

RESULTS = Path(__file__).parent / "results"
MODELS, QUERIES, COLUMNS, MILLION, LOOPED = 5_000, 10_000, 20, 1_000_000, 40


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def in_turns(repeats: int, *calls: Callable[[], object]) -> list[float]:
    """Return the best time of each call; they take turns, so that all see the same machine."""
    times = [[seconds(call) for call in calls] for _ in range(repeats)]
    return [min(column) for column in zip(*times, strict=True)]


def rows(n: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, COLUMNS))
    y = (X[:, 0] + X[:, 1] * X[:, 2] + generator.normal(size=n) / 2 > 0).astype(np.int64)
    return X, y


def trees(count: int) -> list[Any]:
    return [DecisionTreeClassifier(max_depth=4).fit(*rows(100, i)) for i in range(count)]


def loop(models: Sequence[Any], X: NDArray[np.float64]) -> NDArray[np.int64]:
    votes = np.zeros(len(X), dtype=np.int64)
    for model in models:
        votes += model.predict(X)
    return votes


def against_loop(models: Sequence[Any], X: NDArray[np.float64]) -> dict[str, Any]:
    start = time.perf_counter()
    voters = stack(models, 2)
    stacking = time.perf_counter() - start
    count_votes(voters, X, 2)  # compile
    stacked, slow = in_turns(3, lambda: count_votes(voters, X, 2), lambda: loop(models, X))
    differ = loop(models, X) != count_votes(voters, X, 2)[:, 1]
    return {
        "models": len(models),
        "queries": len(X),
        "columns": X.shape[1],
        "stack_s": round(stacking, 3),
        "loop_s": round(slow, 3),
        "stacked_s": round(stacked, 4),
        "times_faster": round(slow / stacked, 1),
        "rows_that_differ": int(np.sum(differ)),
    }


def linear() -> dict[str, Any]:
    X, _ = rows(QUERIES, 1)
    some = [LogisticRegression().fit(*rows(100, i)) for i in range(200)]
    models = [some[i % len(some)] for i in range(MODELS)]
    voters = stack(models, 2)
    W = np.ascontiguousarray(np.vstack([model.coef_ for model in models]).T)
    kept = np.empty((QUERIES, MODELS))
    count_votes(voters, X, 2)  # compile
    mine, product, into = in_turns(
        9,
        lambda: count_votes(voters, X, 2),
        lambda: X @ W,
        lambda: np.matmul(X, W, out=kept),
    )
    return {
        "models": MODELS,
        "fitted_models": len(some),  # each is used several times, to save time before voting
        "queries": QUERIES,
        "columns": COLUMNS,
        "votes_s": round(mine, 4),
        "product_s": round(product, 4),
        "product_into_kept_memory_s": round(into, 4),
        "times_product": round(mine / product, 2),
        "times_product_into_kept_memory": round(mine / into, 2),
        "target_times_product": 2,
    }


def against_search(rules: Sequence[Any], cuts: NDArray[np.float64]) -> dict[str, Any]:
    x = np.random.default_rng(2).normal(size=MILLION)
    X, ordered = x.reshape(-1, 1), np.sort(cuts)
    voters = stack(rules, 2)
    count_votes(voters, X, 2)  # compile
    mine, search = in_turns(
        7, lambda: count_votes(voters, X, 2), lambda: np.searchsorted(ordered, x)
    )
    return {
        "models": len(rules),
        "queries": MILLION,
        "votes_s": round(mine, 4),
        "searchsorted_s": round(search, 4),
        "times_searchsorted": round(mine / search, 2),
        "target_times_searchsorted": 3,
    }


def memory(voters: Sequence[Voters]) -> dict[str, Any]:
    """Measure what a million queries take, besides themselves and what is returned."""
    X = np.random.default_rng(3).normal(size=(MILLION, COLUMNS))
    count_votes(voters, X[:QUERIES], 2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took = seconds(lambda: count_votes(voters, X, 2))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    tracemalloc.start()
    votes = count_votes(voters, X, 2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {
        "models": sum(map(len, voters)),
        "queries": MILLION,
        "columns": COLUMNS,
        "votes_s": round(took, 2),
        "returned_mb": round(votes.nbytes / 2**20, 1),
        "resident_growth_mb": round(grown, 1),
        "traced_peak_mb": round(peak / 2**20, 1),
    }


def loops() -> dict[str, Any]:
    """Time models that are asked one by one, against asking each about the whole batch at once.

    They are asked in blocks of 4,096 rows, so that no query can change the rounding of another one;
    and so a single query costs a whole block.
    """
    found: dict[str, Any] = {"models": LOOPED, "queries": QUERIES, "columns": COLUMNS}
    X, _ = rows(QUERIES, 1)
    kinds = {
        "nearest_neighbours": KNeighborsClassifier(),
        "support_vectors": SVC(),
        "naive_bayes": GaussianNB(),
        "logistic_of_arctan": make_pipeline(FunctionTransformer(np.arctan), LogisticRegression()),
        "neural_network": MLPClassifier((20,), max_iter=20),
        "boosted_trees": HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=5),
        "random_forest": RandomForestClassifier(20),
    }
    for name, kind in kinds.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # twenty rounds are few
            models = [clone(kind).fit(*rows(50, i)) for i in range(LOOPED)]
        voters = stack(models, 2, np.full((1, COLUMNS), 0.5))
        mine, bare, single, bare_single = in_turns(
            3,
            lambda v=voters: count_votes(v, X, 2),  # type: ignore[misc]
            lambda m=models: loop(m, X),  # type: ignore[misc]
            lambda v=voters: count_votes(v, X[:1], 2),  # type: ignore[misc]
            lambda m=models: loop(m, X[:1]),  # type: ignore[misc]
        )
        found[name] = {
            "throughput_of_bare_loop": round(bare / mine, 2),
            "single_query_times_bare": round(single / bare_single, 1),
        }
    return {**found, "target_throughput": 0.5}


def main() -> None:
    generator = np.random.default_rng(4)
    cuts = generator.normal(size=(MODELS, 2))
    ends = np.sort(cuts, axis=1)
    result: dict[str, Any] = {
        "command": "python benchmarks/votes.py",
        "python": platform.python_version(),
        "cores": len(os.sched_getaffinity(0)),
    }
    # First of all, while the peak of resident memory is still low.
    models = trees(MODELS)
    result["memory_trees_depth_4"] = memory(stack(models[:2_000], 2))
    X = generator.normal(size=(QUERIES, COLUMNS))
    result["trees_depth_4"] = {**against_loop(models, X), "target_times_faster": 8}
    result["linear"] = linear()
    result["loops"] = loops()
    result["thresholds"] = against_search([Threshold(float(c)) for c in cuts[:, 0]], cuts[:, 0])
    rules: dict[str, tuple[list[Any], int]] = {
        "intervals": ([IntervalUnion(((float(a), float(b)),)) for a, b in ends], 1),
        "rectangles_2_columns": (
            [
                Rectangle((float(a), float(c)), (float(b), float(d)))
                for (a, b), (c, d) in zip(ends, ends[::-1], strict=True)
            ],
            2,
        ),
        "rectangles_3_columns": (
            [
                Rectangle((float(a), float(c), None), (float(b), float(d), float(b)))
                for (a, b), (c, d) in zip(ends, ends[::-1], strict=True)
            ],
            3,
        ),
        "stumps": (
            [Stump(i % COLUMNS, float(c), above=i % 2 == 0) for i, c in enumerate(cuts[:, 0])],
            COLUMNS,
        ),
    }
    for name, (hypotheses, columns) in rules.items():
        result[name] = against_loop(hypotheses, generator.normal(size=(QUERIES, columns)))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "votes.json").write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
