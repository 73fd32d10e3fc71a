"""How well routes rank rare outcomes, and how they do on wide tables, for the planner.

    python benchmarks/rare.py

fits routes that publish to made-up tables: outcomes of several shares, several numbers of rows and
columns, epsilon 1 and delta 1e-6. It writes ``src/cumae/planning/rankings.json``: for each route,
which part of the AUC above 0.5 of a logistic regression without privacy it kept, by the number of
rows of the rarer class; that regression's own AUC; and how far each route was behind the best one
in accuracy, by rows for each column, where three columns matter and where all do.
"""

from __future__ import annotations

import json
import math
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from cumae.planning.routes import ROUTES, Situation

RESULT = Path(__file__).parents[1] / "src" / "cumae" / "planning" / "rankings.json"
NAMES = ("kernel", "booster", "trees", "logistic")
SHARES, ROWS, WIDTHS = (0.02, 0.06, 0.25), (400, 800, 2_000, 4_000, 10_000, 20_000), (6, 16)
WIDE, WIDE_ROWS = (15, 40, 80), (1_000, 2_000, 3_000, 6_000, 12_000)
TESTED = 6_000
KNOTS = [round(0.75 + 0.25 * step, 2) for step in range(15)]  # log10 of rows of the rarer class
WIDE_KNOTS = [round(1 + 0.2 * step, 2) for step in range(11)]  # log10 of rows for a column


def table(rows: int, width: int, share: float, mattering: int, size: float, seed: int) -> Any:
    """Return rows in [-1, 1] and labels; lines, one bend and one product decide about them."""
    coins = np.random.default_rng([seed, rows, width])
    X = coins.uniform(-1, 1, (rows + TESTED, width))
    weights = np.zeros(width)
    weights[:mattering] = coins.choice([-1, 1], mattering) * coins.uniform(0.5, 1.0, mattering)
    score = X @ weights + 0.7 * np.abs(X[:, 0]) + 0.7 * X[:, 0] * X[:, 1]
    score *= size / score.std()
    low, high = -40.0, 40.0
    for _ in range(60):  # the shift with which the share is right
        middle = (low + high) / 2
        mean = float(np.mean(1 / (1 + np.exp(-(score + middle)))))
        low, high = (middle, high) if mean < share else (low, middle)
    y = (coins.random(len(X)) < 1 / (1 + np.exp(-(score + low)))).astype(int)
    return X[:rows], y[:rows], X[rows:], y[rows:]


def fitted(name: str, situation: Situation, X: Any, y: Any, seed: int) -> Any:
    """Return a fitted route."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ROUTES[name].estimator(situation).set_params(random_state=seed).fit(X, y)


def rank_cells() -> list[dict[str, Any]]:
    """Measure areas under the ROC curve."""
    found = []
    for rows in ROWS:
        for share in SHARES:
            for width in WIDTHS:
                for seed in range(3 if rows <= 4_000 else 1):
                    size = (0.9, 1.2, 1.6)[(seed + width) % 3]
                    X, y, X_test, y_test = table(rows, width, share, width // 2, size, seed)
                    if len(set(y.tolist())) < 2:
                        continue
                    plain = LogisticRegression().fit(X, y).decision_function(X_test)
                    usual = float(roc_auc_score(y_test, plain))
                    facts = Situation(rows, n_features=width, columns=[(-1, 1)] * width)
                    facts = replace(facts, goal="ranking")
                    line: dict[str, Any] = {"rare": rows * min(share, 1 - share), "usual": usual}
                    for name in NAMES:
                        model = fitted(name, facts, X, y, seed)
                        line[name] = float(roc_auc_score(y_test, model.decision_function(X_test)))
                    found.append(line)
    return found


def wide_cells() -> list[dict[str, Any]]:
    """Measure accuracies on wide tables, where three columns matter, and where all do."""
    found = []
    for rows in WIDE_ROWS:
        for width in WIDE:
            for mattering in (3, width):
                X, y, X_test, y_test = table(rows, width, 0.5, mattering, 3.0, 0)
                facts = Situation(rows, n_features=width, columns=[(-1, 1)] * width)
                line: dict[str, Any] = {"each": rows / width, "mattering": mattering}
                for name in NAMES:
                    model = fitted(name, facts, X, y, 0)
                    line[name] = float((model.predict(X_test) == y_test).mean())
                found.append(line)
    return found


def smooth(places: list[float], values: list[float], knots: list[float]) -> list[list[float]]:
    """Return means and spreads around each knot, weighted by how close a cell is."""
    near = np.exp(-(((np.array(knots)[:, None] - np.array(places)) / 0.25) ** 2) / 2)
    near /= near.sum(axis=1, keepdims=True)
    mean = near @ np.array(values)
    spread = np.sqrt((near * (np.array(values) - mean[:, None]) ** 2).sum(axis=1))
    return [[round(float(one), 4) for one in part] for part in (mean, spread)]


def main() -> None:
    started = time.process_time()
    ranked, wide = rank_cells(), wide_cells()
    places = [math.log10(line["rare"]) for line in ranked]
    usual = smooth(places, [line["usual"] for line in ranked], KNOTS)
    kept = {}
    for name in NAMES:
        parts = [(line[name] - 0.5) / max(line["usual"] - 0.5, 0.05) for line in ranked]
        mean, spread = smooth(places, [float(np.clip(one, 0, 1.2)) for one in parts], KNOTS)
        kept[name] = {
            "kept": np.maximum.accumulate(mean).round(4).tolist(),
            "spread": spread,
        }
    across = [math.log10(line["each"]) for line in wide]
    behind = {}
    for name in NAMES:
        lost = [max(line[one] for one in NAMES) - line[name] for line in wide]
        behind[name] = smooth(across, lost, WIDE_KNOTS)[0]
    found = {
        "command": "python benchmarks/rare.py",
        "seconds": round(time.process_time() - started),
        "tables": len(ranked),
        "wide_tables": len(wide),
        "rows": [ROWS[0], ROWS[-1]],
        "knots": KNOTS,
        "usual": usual[0],
        "usual_spread": usual[1],
        "routes": kept,
        "wide_knots": WIDE_KNOTS,
        "wide_behind": behind,
    }
    RESULT.write_text(json.dumps(found) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
