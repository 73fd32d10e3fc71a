"""Does the trial on made-up tables find how large the shards of an estimator must be?

    python benchmarks/shards.py [--seeds 2]

writes benchmarks/results/shards.json. 13,000 rows of the survey, delta 1e-6: the votes of
QueryRelease for 1,000 queries at epsilon 1 and 5, and those of the first phase of
EverlastingPredictor without a prior at epsilon 1 and 5. For each estimator and size there is the
accuracy on rows that nobody trained on, beside the size that the trial chose, which knows none of
it. "Balanced" is the mean of both classes' accuracies: 57 % of the labels are 0, so shards that
learnt nothing and all say 0 have an accuracy of .57 and a balanced one of .5.

Shards are trained as the classes do it. At most 400 of them are asked about each query; the share
of their votes stands for that of all shards, and normal noise on it gives the chance of the right
answer, as in ``cumae.ensembles.sizing``.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from cumae.data import row_source
from cumae.datasets import load_health_survey
from cumae.ensembles.sizing import count_of_each, try_sizes
from cumae.ensembles.trainer import Trainer
from cumae.predictors.everlasting.margins import MarginTrainer
from cumae.predictors.everlasting.rules import SMALLEST
from cumae.predictors.everlasting.schedule import PhaseSchedule
from cumae.predictors.release.answers import Demand, plan_answers
from cumae.predictors.release.base import SMALL_SHARD

RESULTS = Path(__file__).parent / "results"
ROWS, QUERIES, MODELS, SIZES = 13_000, 1_000, 400, 5
ESTIMATORS: dict[str, Any] = {
    "5 neighbours": KNeighborsClassifier(),
    "15 neighbours": KNeighborsClassifier(15),
    "SVC": SVC(),
    "SVC, scaled": make_pipeline(StandardScaler(), SVC()),
    "tree of depth 4": DecisionTreeClassifier(max_depth=4),
    "the same, leaves of 20": DecisionTreeClassifier(max_depth=4, min_samples_leaf=20),
    "logistic regression, scaled": make_pipeline(
        StandardScaler(), LogisticRegression(max_iter=1000)
    ),
    "naive Bayes": GaussianNB(),
}
PHASES = PhaseSchedule(1.0, 1e-6, 2, None, 10**6, fresh=False, smallest=SMALLEST, fixed=False)


def drawn(seed: int) -> tuple[NDArray[Any], ...]:
    X, y = load_health_survey(return_X_y=True, as_frame=False)
    order = np.random.default_rng(seed).permutation(len(y))
    here, there = order[:ROWS], order[ROWS : ROWS + QUERIES]
    return X[here], y[here], X[there], y[there]


def accuracies(trainer: Trainer, size: int, noise: float, seed: int) -> tuple[float, float]:
    """Return the share of right answers that shards of this size give, plain and balanced."""
    X, y, asked, right = drawn(seed)
    count = min(MODELS, ROWS // size)
    starts = np.arange(count + 1) * size
    targets = trainer.targets(y[: count * size])
    models = trainer.train_many(X[: count * size], targets, starts, np.arange(count))
    votes = count_of_each(models, asked, 2, np.full((1, X.shape[1]), 0.5)) / count
    lead = votes[np.arange(QUERIES), right] - 0.5
    # What 400 shards spread around all of them is taken off, where not all were asked.
    more = (0.25 - lead**2) * (1 / count - 1 / (ROWS // size))
    spread = np.sqrt(np.maximum((noise * size / ROWS) ** 2 - more, 1e-6))
    chances = ndtr(lead / spread)
    balanced = np.mean([chances[right == label].mean() for label in (0, 1)])
    return float(chances.mean()), float(balanced)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    seeds = range(parser.parse_args().seeds)
    kinds: list[tuple[str, type[Trainer], int, float]] = []
    for epsilon in (1.0, 5.0):
        noise = plan_answers("gaussian", Demand(epsilon, 1e-6, QUERIES, 1)).noise
        usual = max(SMALL_SHARD, math.ceil(math.sqrt(ROWS / noise)))
        kinds.append((f"QueryRelease, epsilon {epsilon:g}", Trainer, usual, noise))
    for epsilon in (1.0, 5.0):
        plan = replace(PHASES, epsilon=epsilon)
        noise, usual = plan.noise(ROWS) * plan.shards(ROWS), plan.shard_size(ROWS)
        kinds.append((f"EverlastingPredictor, epsilon {epsilon:g}", MarginTrainer, usual, noise))
    rows, stand_in = row_source(np.zeros((4, 21))), np.full((1, 21), 0.5)
    result: dict[str, Any] = {"rows": ROWS, "queries": QUERIES, "seeds": len(seeds)}
    for kind, trained, usual, noise in kinds:
        for name, estimator in ESTIMATORS.items():
            trainer = trained(estimator, 2)
            start = time.process_time()
            told: dict[str, Any] = {"usual": usual, "n_rows": ROWS, "noise": noise}
            trial = try_sizes(trainer, rows, stand_in, **told, progress=False)
            seconds = time.process_time() - start
            sizes = [usual * 2**step for step in range(SIZES)]
            found = {
                size: np.mean([accuracies(trainer, size, noise, s) for s in seeds], axis=0)
                for size in sizes
            }
            right = {size: round(float(pair[0]), 4) for size, pair in found.items()}
            fair = {size: round(float(pair[1]), 4) for size, pair in found.items()}
            cell = {
                "chosen": trial.size,
                "accuracy": right,
                "balanced": fair,
                "lost against the best": round(max(right.values()) - right[trial.size], 4),
                "lost by the usual size": round(max(right.values()) - right[usual], 4),
                "lost, balanced": round(max(fair.values()) - fair[trial.size], 4),
                "lost by the usual size, balanced": round(max(fair.values()) - fair[usual], 4),
                "trial": {size: round(score, 4) for size, score in trial.scores},
                "seconds of the trial": round(seconds, 2),
            }
            result.setdefault(kind, {"noise": round(noise, 1)})[name] = cell
            print(kind, name, cell, flush=True)
            (RESULTS / "shards.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
