"""Which settings of PrivateBooster and PrivateLogisticRegression win, and which do not?

    python benchmarks/study.py [--seeds 5] [--data FOLDER]

writes benchmarks/results/study.json. Splits and tables are those of benchmarks/learners.py; all
runs are at epsilon 1, with 2,000 public rows.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import Any

from joblib import Parallel
from learners import DELTA, EPSILON, RESULTS, Table, measure

from cumae.concepts import Trees
from cumae.learners import PrivateBooster, PrivateLogisticRegression


def boost(table: Table, X: Any, y: Any, public: Any, **settings: Any) -> Any:
    return PrivateBooster(EPSILON, columns=table.columns, **settings).fit(X, y, public)


def logistic(table: Table, X: Any, y: Any, public: Any, **settings: Any) -> Any:
    model = PrivateLogisticRegression(EPSILON, DELTA, columns=table.columns, **settings)
    return model.fit(X, y, public)


TREES = [
    {"n_rounds": rounds, "learning_rate": rate}
    for rounds, rate in ((2, 0.5), (3, 0.5), (5, 0.5), (10, 0.25), (20, 0.1), (20, 0.2), (20, 0.3))
]
QUESTIONS: list[tuple[str, Any, tuple[int, ...], list[dict[str, Any]]]] = [
    ("rounds and rates of pure trees", boost, (1_000, 3_000, 25_000), [{}, *TREES]),
    (
        "depth of pure trees",
        boost,
        (3_000, 25_000),
        [{"concept_class": Trees(depth)} for depth in (1, 2, 3)],
    ),
    (
        "cuts of a column",
        boost,
        (3_000, 25_000),
        [{"n_cuts": count} for count in (3, 7, 15)],
    ),
    (
        "trees after a start",
        boost,
        (25_000,),
        [
            {"delta": DELTA, "n_rounds": rounds, "learning_rate": rate}
            for rounds, rate in ((0, 0.1), (10, 0.05), (10, 0.1), (10, 0.3))
        ],
    ),
    (
        "lines and bins",
        logistic,
        (1_000, 3_000, 25_000),
        [{"bins": bins} for bins in (None, 4, 16, "auto")],
    ),
    (
        "gradient steps",
        logistic,
        (1_000, 3_000, 25_000),
        [{"n_steps": steps} for steps in (1, 4, 16, 64)],
    ),
]


def main() -> None:
    parser = argparse.ArgumentParser(description="Settings that win, and settings that do not.")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--data", type=Path, help="folder with adult.csv.gz")
    chosen = parser.parse_args()
    pool = Parallel(n_jobs=2, backend="multiprocessing")
    tables: dict[str, Path | None] = {"survey": None}
    if chosen.data is not None:
        tables["adult"] = chosen.data
    found: dict[str, list[dict[str, Any]]] = {}
    for question, model, sizes, settings in QUESTIONS:
        found[question] = []
        for name, folder in tables.items():
            for rows in sizes:
                for setting in settings:
                    run = measure(pool, folder, partial(model, **setting), rows, chosen.seeds)
                    shown = {key: str(value) for key, value in setting.items()}
                    found[question].append({"table": name, "setting": shown, **run})
                    print(question, name, rows, shown, run["accuracy"], run["standard_error"])
    (RESULTS / "study.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
