"""Chances of trees where an outcome is rare, and thresholds for a wanted sensitivity.

    python benchmarks/calibration.py [chances] [thresholds] [ranks]

fits learners to made-up tables with epsilon 1, and writes means over seeds to
``benchmarks/results/calibration.json``:

- ``chances``: trees without a start, by their votes alone (``before``) and by noisy counts of rows
  that no tree saw: mean chance against the true share, log loss, Brier score, accuracy and AUC;
- ``thresholds``: thresholds for a sensitivity of .9, with rows set aside (several shares), and with
  the same rows for both and the budget divided, one quarter for the counts: the true sensitivity,
  how far it is off, specificity, AUC, and how often the interval holds the truth;
- ``ranks``: AUC of the kernel classifier with 2 % of the rarer class, for both kinds of goals.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from cumae.counting.bins import even_bins
from cumae.counting.table import chosen_noise
from cumae.learners import PrivateBooster, PrivateKernelClassifier, PrivateLogisticRegression
from cumae.learners.thresholds import bin_count, release_counts
from cumae.randomness import SeededSource

RESULT = Path(__file__).parent / "results" / "calibration.json"
WANTED, QUARTER = 0.9, 0.25
TESTED = 6_000  # rows by which a model is judged


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


def means(lines: list[dict[str, float]]) -> dict[str, float]:
    """Return the mean of each figure."""
    return {name: round(float(np.mean([one[name] for one in lines])), 4) for name in lines[0]}


def judged(model: Any, X: Any, y: Any) -> dict[str, float]:
    """Return figures of a model's chances."""
    chance = model.predict_proba(X)[:, 1]
    return {
        "true_share": float(y.mean()),
        "mean_chance": float(chance.mean()),
        "log_loss": float(log_loss(y, chance)),
        "brier": float(brier_score_loss(y, chance)),
        "accuracy": float((model.predict(X) == y).mean()),
        "auc": float(roc_auc_score(y, chance)),
    }


def chances() -> list[dict[str, Any]]:
    """Measure chances of trees on rare and on balanced tables."""
    found = []
    for rows, share, seeds in (
        (400, 0.02, 20),
        (800, 0.02, 20),
        (4_000, 0.02, 10),
        (800, 0.1, 20),
        (4_000, 0.1, 10),
        (400, 0.5, 20),
        (800, 0.5, 20),
        (3_000, 0.5, 10),
    ):
        before, after = [], []
        for seed in range(seeds):
            X, y, X_test, y_test = table(rows, 6, share, 3, 2.5 if share == 0.5 else 1.2, seed)
            model = PrivateBooster(1.0, columns=[(-1, 1)] * 6, random_state=seed).fit(X, y)
            after.append(judged(model, X_test, y_test))
            del model.odds_  # then votes are added up as they were before
            before.append(judged(model, X_test, y_test))
        line = {"rows": rows, "share": share, "seeds": seeds}
        found.append({**line, "before": means(before), "after": means(after)})
    return found


def held_out(share: float, X: Any, y: Any, seed: int) -> tuple[Any, Any]:
    """Return a model and the counts of rows that were set aside."""
    model = PrivateLogisticRegression(
        1.0, 1e-6, columns=[(-1, 1)] * 6, sensitivity=WANTED, held_out=share, random_state=seed
    ).fit(X, y)
    return model, model.score_counts_


def divided(share: float, X: Any, y: Any, seed: int) -> tuple[Any, Any]:
    """Return a model of all rows and counts of all rows, each for its share of epsilon."""
    model = PrivateLogisticRegression(1.0 - share, 1e-6, columns=[(-1, 1)] * 6, random_state=seed)
    model.fit(X, y)
    source = SeededSource(seed)
    shown = model.second_chances(model.made_up_rows(source))
    bins = even_bins(bin_count(len(y)), 0.5, shown)
    noise = chosen_noise(share, 0.0, 1, source)
    return model, release_counts(bins, y, model.second_chances(X), noise)


def thresholds() -> list[dict[str, Any]]:
    """Measure thresholds for a sensitivity."""
    ways = {
        "held out .1": (held_out, 0.1),
        "held out .25": (held_out, QUARTER),
        "held out .5": (held_out, 0.5),
        "budget divided": (divided, QUARTER),
    }
    found = []
    for rows, share, seeds in ((4_000, 0.06, 30), (20_000, 0.02, 12), (20_000, 0.2, 12)):
        for name, (way, part) in ways.items():
            lines = []
            for seed in range(seeds):
                X, y, X_test, y_test = table(rows, 6, share, 3, 1.2, seed)
                model, counts = way(part, X, y, seed)
                chance = model.predict_proba(X_test)[:, 1]
                threshold = counts.threshold(WANTED)
                true = float((chance[y_test == 1] >= threshold).mean())
                figure = counts.sensitivity(threshold)
                slack = 2 * (true * (1 - true) / (y_test == 1).sum()) ** 0.5  # of the test rows
                lines.append(
                    {
                        "sensitivity": true,
                        "off": abs(true - WANTED),
                        "specificity": float((chance[y_test == 0] < threshold).mean()),
                        "auc": float(roc_auc_score(y_test, chance)),
                        "held": float(figure.low - slack <= true <= figure.high + slack),
                        "width": figure.high - figure.low,
                    }
                )
            found.append(
                {"rows": rows, "share": share, "seeds": seeds, "way": name, **means(lines)}
            )
    return found


def ranks() -> list[dict[str, Any]]:
    """Measure how the kernel classifier ranks where 2 % are of the rarer class."""
    found = []
    for rows, width, seeds in ((800, 6, 20), (4_000, 6, 10), (4_000, 16, 10), (20_000, 6, 3)):
        for goal in ("accuracy", "ranking"):
            areas = []
            for seed in range(seeds):
                size = (0.9, 1.2, 1.6)[(seed + width) % 3]
                X, y, X_test, y_test = table(rows, width, 0.02, width // 2, size, seed)
                model = PrivateKernelClassifier(
                    1.0, 1e-6, goal=goal, columns=[(-1, 1)] * width, random_state=seed
                ).fit(X, y)
                areas.append({"auc": roc_auc_score(y_test, model.decision_function(X_test))})
            line = {"rows": rows, "columns": width, "seeds": seeds, "goal": goal}
            found.append({**line, **means(areas)})
    return found


PARTS = {"chances": chances, "thresholds": thresholds, "ranks": ranks}


def main() -> None:
    warnings.simplefilter("ignore")
    kept = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    for name in sys.argv[1:] or PARTS:
        started = time.process_time()
        kept[name] = PARTS[name]()
        kept[f"{name}_seconds"] = round(time.process_time() - started)
        kept["command"] = "python benchmarks/calibration.py"
        RESULT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        print(name, json.dumps(kept[name], indent=1))


if __name__ == "__main__":
    main()
