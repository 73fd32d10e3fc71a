"""How well are queries answered, how should shards be cut, and what does a large batch take?

    python benchmarks/query_release.py [--seeds 5] [--sizes 10 20 40 80]

writes benchmarks/results/query_release.json and .png. The survey comes with cumae; epsilon 1,
delta 1e-6 unless said otherwise. Each seed draws rows to learn from and queries from the rest. The
shard sizes beside "auto" show how far its rule is from the best one; they read the test rows, so
they are no way to choose a size.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import time
import warnings
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from cumae import PrivateBooster, QueryRelease, TooFewRows, UniversalQueryRelease
from cumae.datasets import HEALTH_SURVEY_BOUNDS, load_health_survey

mpl.use("Agg")

from matplotlib import pyplot as plt

RESULTS = Path(__file__).parent / "results"
DELTA = 1e-6
JOBS = 2
MODELS: dict[str, Any] = {
    "trees of depth 4": DecisionTreeClassifier(max_depth=4),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
}
# rows, queries, epsilon
SETTINGS = [
    (100_000, 1_000, 1.0),
    (100_000, 100, 1.0),
    (100_000, 10_000, 1.0),
    (100_000, 1_000, 3.0),
    (30_000, 1_000, 1.0),
    (10_000, 1_000, 3.0),
]
SIZES = [10, 20, 40, 80]


def drawn(rows: int, queries: int, seed: int) -> tuple[NDArray[Any], ...]:
    X, y = load_health_survey(return_X_y=True, as_frame=False)
    order = np.random.default_rng(seed).permutation(len(y))
    here, there = order[:rows], order[rows : rows + queries]
    return X[here], y[here], X[there], y[there]


def accuracy(name: str, rows: int, queries: int, epsilon: float, size: int | str, seed: int) -> Any:
    X, y, asked, right = drawn(rows, queries, seed)
    n_shards = size if size == "auto" else rows // int(size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TooFewRows)
        release = QueryRelease(MODELS[name], epsilon, DELTA, queries, n_shards=n_shards)
        release.fit(X, y)
    right_share = float(np.mean(release.predict(asked) == right))
    return right_share, release.n_shards_, release.noise_per_vote_


def settings(seeds: int, tried: list[int]) -> list[dict[str, Any]]:
    found = []
    for name in MODELS:
        for rows, queries, epsilon in SETTINGS:
            if name != "trees of depth 4" and (rows, queries, epsilon) != SETTINGS[0]:
                continue
            sizes: list[int | str] = ["auto", *tried] if name == "trees of depth 4" else ["auto"]
            for size in sizes:
                runs = Parallel(n_jobs=JOBS, backend="multiprocessing")(
                    delayed(accuracy)(name, rows, queries, epsilon, size, seed)
                    for seed in range(seeds)
                )
                values = [run[0] for run in runs]
                line = {
                    "model": name,
                    "rows": rows,
                    "queries": queries,
                    "epsilon": epsilon,
                    "size": size,
                    "shards": runs[0][1],
                    "noise_per_vote": round(runs[0][2], 4),
                    "accuracy": round(float(np.mean(values)), 4),
                    "sd": round(float(np.std(values, ddof=1)), 4) if seeds > 1 else None,
                }
                print(line, flush=True)
                found.append(line)
    return found


def students(seed: int) -> dict[str, float]:
    """Answers of the release, of a student of them, and of a published private model."""
    X, y, asked, right = drawn(100_000, 20_000, seed)
    universal = UniversalQueryRelease(MODELS["trees of depth 4"], 1.0, DELTA, 1_000)
    universal.fit(X, y)
    first = np.mean(universal.predict(asked[:1_000]) == right[:1_000])
    later = np.mean(universal.predict(asked[1_000:]) == right[1_000:])
    booster = PrivateBooster(epsilon=1.0, delta=DELTA, columns=list(HEALTH_SURVEY_BOUNDS.values()))
    published = np.mean(booster.fit(X, y).predict(asked) == right)
    return {
        "first 1,000": float(first),
        "student, 19,000 more": float(later),
        "PrivateBooster, for comparison": float(published),
    }


def batch() -> dict[str, Any]:
    """Time and memory of a million queries in one call, above the fitted predictor."""
    X, y, asked, _ = drawn(100_000, 100_000, 0)
    release = QueryRelease(MODELS["trees of depth 4"], 1.0, DELTA, 2_000_000, n_shards=2_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TooFewRows)
        release.fit(X, y)
    release.predict(asked[:1000])  # compiled code is loaded
    many = np.tile(asked, (10, 1))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    answers = release.predict(many)
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "queries": len(answers),
        "shards": release.n_shards_,
        "seconds": round(seconds, 2),
        "peak_mb_above_before": round((after - before) / 1024, 1),
        "queries_mb": round(many.nbytes / 2**20, 1),
    }


def plot(found: list[dict[str, Any]]) -> None:
    figure, axes = plt.subplots(figsize=(7, 4.5))
    for rows, queries, epsilon in SETTINGS:
        lines = [
            line
            for line in found
            if (line["rows"], line["queries"], line["epsilon"]) == (rows, queries, epsilon)
            and line["model"] == "trees of depth 4"
        ]
        fixed = [line for line in lines if line["size"] != "auto"]
        auto = next(line for line in lines if line["size"] == "auto")
        label = f"{rows:,} rows, {queries:,} queries, epsilon {epsilon:g}"
        (drawn_line,) = axes.plot(
            [line["size"] for line in fixed], [line["accuracy"] for line in fixed], label=label
        )
        axes.plot(rows / auto["shards"], auto["accuracy"], "o", color=drawn_line.get_color())
    axes.set(xscale="log", xlabel="rows of a shard (dot: auto)", ylabel="accuracy")
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(RESULTS / "query_release.png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    given = parser.parse_args()
    seeds = given.seeds
    large = batch()
    print(large, flush=True)
    taught = [students(seed) for seed in range(seeds)]
    means = {name: round(float(np.mean([run[name] for run in taught])), 4) for name in taught[0]}
    print(means, flush=True)
    found = settings(seeds, given.sizes)
    result = {
        "python": platform.python_version(),
        "seeds": seeds,
        "delta": DELTA,
        "million_queries": large,
        "students": means,
        "release": found,
    }
    (RESULTS / "query_release.json").write_text(json.dumps(result, indent=1) + "\n")
    plot(found)


if __name__ == "__main__":
    main()
