"""How well is a table of many dense columns learnt, of which all go together?

    python benchmarks/dense.py [--seeds 2] [--sizes 10000]

makes tables like the embeddings of a neural network: 384 columns, turned and mixed from as many
hidden numbers whose variances fall as 1 / k or as k to the power of -0.7. The log odds are a line
of the 40 strongest of them. It fits ``PrivateLogisticRegression`` with 2,000 public rows and
without, and scikit-learn's logistic regression without privacy, and judges them by 5,000 other
rows. Epsilon is 1, delta 1e-6. Accuracies go to benchmarks/results/dense.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from cumae.learners import PrivateLogisticRegression

RESULTS = Path(__file__).parent / "results" / "dense.json"
WIDTH, STRONGEST, STEEP, FARTHEST = 384, 40, 3.0, 5.0
POWERS = (1.0, 0.7)
PUBLIC, NEW = 2_000, 5_000


def table(rows: int, power: float, seed: int) -> tuple[Any, Any, float]:
    """Return rows, labels, and the share of labels that the best rule gets right."""
    fixed, coins = np.random.default_rng(99), np.random.default_rng(seed)
    order = np.arange(1, WIDTH + 1)
    turn = np.linalg.qr(fixed.standard_normal((WIDTH, WIDTH)))[0]
    mix = np.sqrt(order**-power)[:, None] * turn.T
    line = fixed.standard_normal(WIDTH) * (order <= STRONGEST) * order**-0.25
    hidden = coins.standard_normal((rows, WIDTH))
    score = hidden @ (STEEP * line / np.linalg.norm(line))
    labels = (coins.random(rows) < 1 / (1 + np.exp(-score))).astype(int)
    columns = hidden @ mix / np.sqrt((mix**2).sum(axis=0))
    return np.clip(columns, -FARTHEST, FARTHEST), labels, float(np.mean((score > 0) == labels))


def measured(rows: int, power: float, seeds: int) -> dict[str, Any]:
    """Return the share of right answers of each model, for each seed."""
    found: dict[str, list[float]] = {"public": [], "no_public": [], "no_privacy": [], "best": []}
    spent = []
    for seed in range(seeds):
        X, y, best = table(rows + PUBLIC + NEW, power, seed)
        private, public, new = slice(rows), slice(rows, rows + PUBLIC), slice(rows + PUBLIC, None)
        for name, shown in (("public", X[public]), ("no_public", None)):
            model = PrivateLogisticRegression(
                1.0, 1e-6, columns=[(-FARTHEST, FARTHEST)] * WIDTH, random_state=seed
            )
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X[private], y[private], shown)
            spent.append(time.process_time() - began)
            found[name].append(round(float(model.score(X[new], y[new])), 4))
        plain = LogisticRegression(C=0.01, max_iter=200).fit(X[private], y[private])
        found["no_privacy"].append(round(float(plain.score(X[new], y[new])), 4))
        found["best"].append(round(best, 4))
    means = {name: round(float(np.mean(values)), 3) for name, values in found.items()}
    cpu = round(float(np.mean(spent)), 1)
    return {"rows": rows, "power": power, "means": means, "seeds": found, "cpu_seconds": cpu}


def main() -> None:
    parser = argparse.ArgumentParser(description="Tables of many dense columns.")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000])
    asked = parser.parse_args()
    tables = []
    for rows in asked.sizes:
        for power in POWERS:
            tables.append(measured(rows, power, asked.seeds))
            print(json.dumps(tables[-1]), flush=True)
    command = " ".join(["python benchmarks/dense.py", *sys.argv[1:]])
    told = {"command": command, "columns": WIDTH, "epsilon": 1.0, "delta": 1e-6, "tables": tables}
    RESULTS.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
