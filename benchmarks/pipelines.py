"""How long a user's own Pipeline takes in an everlasting oracle, and how often it is right.

    python -m benchmarks.pipelines

writes ``benchmarks/results/pipelines.json``. The table has 22,000 rows, two columns of numbers and
three of text; epsilon is 1 and delta 1e-6; 2,000 queries are asked. It takes two minutes on an idle
core, most of them for the forest.
"""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from cumae import EverlastingPredictor, PrivateKernelClassifier

ROWS, QUERIES = 22_000, 2_000
JOBS, WARDS, SEXES = ["baker", "nurse", "farmer", "clerk", "teacher"], list("ABCDEFGH"), ["m", "f"]
COLUMNS: dict[str, Any] = {
    "age": (18, 98),
    "income": (0, 200),
    "job": JOBS,
    "ward": WARDS,
    "sex": SEXES,
}
RESULTS = Path(__file__).parent / "results" / "pipelines.json"


def table(count: int, coins: np.random.Generator) -> tuple[pd.DataFrame, Any]:
    """Return rows and labels: a linear rule with noise."""
    job, ward, sex = (coins.integers(0, n, count) for n in (5, 8, 2))
    age, income = coins.integers(18, 99, count).astype(float), coins.gamma(2.0, 20.0, count)
    score = 0.04 * (age - 55) + 0.02 * (income - 40) + 0.5 * sex
    score += np.array([1.2, -1.0, 0.5, -0.5, 0.0])[job] + np.linspace(-1, 1, 8)[ward]
    found = {"age": age, "income": income}
    for name, names, places in (("job", JOBS, job), ("ward", WARDS, ward), ("sex", SEXES, sex)):
        found[name] = np.array(names, dtype=object)[places]
    return pd.DataFrame(found), (coins.random(count) < 1 / (1 + np.exp(-score))).astype(int)


def pipeline(model: Any) -> Any:
    """Return the Pipeline of a user."""
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    numbers = StandardScaler(), ["age", "income"]
    return make_pipeline(make_column_transformer((encoder, ["job", "ward", "sex"]), numbers), model)


def measured(name: str, model: Any, rows: Any, asked: Any) -> dict[str, Any]:
    """Return CPU seconds, and shares of right answers, with privacy and without."""
    (X, y), (queries, right) = rows, asked
    plain = pipeline(model).fit(X, y).score(queries, right)
    began = time.process_time()
    oracle = EverlastingPredictor(pipeline(model), epsilon=1.0, delta=1e-6, columns=COLUMNS)
    oracle.fit(X, y)
    fitted = time.process_time()
    answers = oracle.predict(queries)
    return {
        "model": name,
        "without_privacy": round(plain, 3),
        "right": round(float(np.mean(answers == right)), 3),
        "fit_seconds": round(fitted - began, 1),
        "answer_seconds": round(time.process_time() - fitted, 2),
        "shards": oracle.n_shards_,
        "trust": oracle.trust_,
    }


def main() -> None:
    """Measure, print and write."""
    coins = np.random.default_rng(0)
    rows, asked = table(ROWS, coins), table(QUERIES, coins)
    warnings.simplefilter("ignore")
    published = PrivateKernelClassifier(1.0, 1e-6, columns=COLUMNS).fit(*rows).score(*asked)
    found = []
    for name, model in (
        ("LogisticRegression", LogisticRegression()),
        ("HistGradientBoostingClassifier", HistGradientBoostingClassifier()),
        ("RandomForestClassifier", RandomForestClassifier()),
    ):
        found.append(measured(name, model, rows, asked))
        print(json.dumps(found[-1]), flush=True)
    told = {
        "command": "python -m benchmarks.pipelines",
        "rows": ROWS,
        "queries": QUERIES,
        "published_kernel": round(published, 3),
        "models": found,
    }
    RESULTS.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
