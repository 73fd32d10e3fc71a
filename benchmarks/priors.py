"""What are a prior and declared bounds worth to everlasting prediction?

    python benchmarks/priors.py [--seeds 3]

writes benchmarks/results/priors.json, with and without a prior, at delta 1e-6:

* "bounds": the error of 200,000 answers about thresholds, with and without declared bounds;
* "classes": accuracy of tenths of 100,000 answers about the four classes of the made-up table
  ``segments``, from 20,000 rows at epsilon 3, trees of depth 4;
* "survey": accuracy of tenths of 200,000 answers about the survey, from 20,000 rows at epsilon 3,
  trees of depth 4 in phases that do not grow, and the share of answers 1.
"""

from __future__ import annotations

import argparse
import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
from everlasting import DELTA, SURVEY_COLUMNS, survey, thresholds
from sklearn.tree import DecisionTreeClassifier
from tables import load

from cumae import EverlastingPredictor
from cumae.concepts import Thresholds

RESULTS = Path(__file__).parent / "results"
BATCH = 2_000
SIZES = ((20_000, 3.0), (1_000, 1.0))  # rows, epsilon
WAYS: tuple[tuple[str, dict[str, Any]], ...] = (("prior", {}), ("votes alone", {"prior": False}))


def tenths(found: list[Any]) -> list[float]:
    """Return the mean of each tenth of the batches."""
    means: list[float] = np.mean(np.reshape(found, (10, -1)), axis=1).round(5).tolist()
    return means


def bounds(seed: int, declared: bool, rows: int, epsilon: float, options: dict[str, Any]) -> float:
    """Return the error of 200,000 answers about thresholds."""
    X, y, draw = thresholds(rows, np.random.default_rng(seed))
    columns = [(0, 1)] if declared else None
    given: dict[str, Any] = {"epsilon": epsilon, "columns": columns, **options}
    oracle = EverlastingPredictor(Thresholds("above"), delta=DELTA, **given).fit(X, y)
    wrong = 0
    for _ in range(200_000 // BATCH):
        asked, right = draw(BATCH)
        wrong += int(np.sum(oracle.predict(asked) != right))
    return wrong / 200_000


def classes(seed: int, options: dict[str, Any]) -> dict[str, Any]:
    """Return accuracies of tenths of answers about four classes, and that of the prior."""
    table = load("segments", 120_000, seed)
    known, asked = table.take(np.arange(20_000)), table.take(np.arange(20_000, 120_000))
    given = {"columns": table.declared, "classes": table.classes, **options}
    model = DecisionTreeClassifier(max_depth=4)
    oracle = EverlastingPredictor(model, epsilon=3.0, delta=DELTA, **given)
    oracle.fit(known.rows, known.labels)
    prior = getattr(oracle, "prior_", None)
    alone = None if prior is None else float(prior.score(asked.rows, asked.labels))
    parts = [asked.take(np.arange(at, at + BATCH)) for at in range(0, 100_000, BATCH)]
    found = [float(np.mean(oracle.predict(part.rows) == part.labels)) for part in parts]
    return {"accuracy": tenths(found), "prior_alone": alone}


def on_survey(seed: int, options: dict[str, Any]) -> dict[str, Any]:
    """Return accuracies of tenths of answers about the survey, and their shares of answers 1."""
    X, y, draw = survey(20_000, np.random.default_rng(seed))
    given = {"columns": SURVEY_COLUMNS, "growth": 1.0, **options}
    model = DecisionTreeClassifier(max_depth=4)
    oracle = EverlastingPredictor(model, epsilon=3.0, delta=DELTA, **given).fit(X, y)
    found, ones = [], []
    for _ in range(200_000 // BATCH):
        asked, right = draw(BATCH)
        answers = oracle.predict(asked)
        found.append(float(np.mean(answers == right)))
        ones.append(float(np.mean(answers == 1)))
    return {"accuracy": tenths(found), "share_of_ones": tenths(ones)}


def mean_of(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the means over runs of each figure that they have."""
    return {
        name: None if runs[0][name] is None else np.mean([one[name] for one in runs], 0).round(5)
        for name in runs[0]
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(parser.parse_args().seeds)
    result: dict[str, Any] = {"python": platform.python_version(), "seeds": len(seeds)}
    result["bounds"] = {
        f"{'declared' if declared else 'no'} bounds, {rows} rows, {name}": float(
            np.mean([bounds(seed, declared, rows, epsilon, options) for seed in seeds])
        )
        for rows, epsilon in SIZES
        for declared in (True, False)
        for name, options in WAYS
    }
    for part, run in (("classes", classes), ("survey", on_survey)):
        result[part] = {name: mean_of([run(seed, more) for seed in seeds]) for name, more in WAYS}
        print(part, result[part], flush=True)
    text = json.dumps(result, indent=1, default=lambda array: array.tolist())
    (RESULTS / "priors.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
