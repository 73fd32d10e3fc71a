"""What are a few labels worth that come later?

    python benchmarks/labels.py [--seeds 3] [--only NAME ...]

writes benchmarks/results/labels.json. Everlasting prediction on the survey with trees of depth 4,
delta 1e-6. After each batch of queries a share of them gets its right label (``add_labels``).

* "prior": 1,000 rows at epsilon 1, the defaults, 1,000,000 answers. Labels renew the prior.
* "votes alone": 20,000 rows at epsilon 3, ``prior=False``, phases that do not grow, 100,000
  answers. They drift to one class.

Accuracy is that of each tenth of the answers.
"""

from __future__ import annotations

import argparse
import json
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from everlasting import DELTA, SURVEY_COLUMNS, survey
from sklearn.tree import DecisionTreeClassifier

from cumae import EverlastingPredictor, InvalidParameter

RESULTS = Path(__file__).parent / "results"
SHARES = (0.0, 0.01)
BATCH = 2_000
PARTS: dict[str, tuple[int, int, dict[str, Any]]] = {  # rows, answers, parameters
    "prior": (1_000, 1_000_000, {"epsilon": 1.0, "columns": SURVEY_COLUMNS}),
    "votes alone": (20_000, 100_000, {"epsilon": 3.0, "prior": False, "growth": 1.0}),
}


def run(name: str, share: float, seed: int) -> list[float]:
    """Return the accuracy of each tenth of the answers."""
    rows, answers, options = PARTS[name]
    generator = np.random.default_rng(seed)
    X, y, draw = survey(rows, generator)
    oracle = EverlastingPredictor(DecisionTreeClassifier(max_depth=4), delta=DELTA, **options)
    oracle.fit(X, y)
    found = []
    while oracle.answered_ < answers:
        asked, right = draw(BATCH)
        ids = (oracle.answered_ + np.arange(BATCH)).tolist()
        found.append(float(np.mean(oracle.predict(asked, query_ids=ids) == right)))
        for place in np.flatnonzero(generator.random(BATCH) < share):
            with suppress(InvalidParameter):  # it has become a row of the next phase already
                oracle.add_labels([ids[place]], right[[place]])
    tenths: list[float] = np.mean(np.reshape(found, (10, -1)), axis=1).round(4).tolist()
    return tenths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    asked = parser.parse_args()
    lines = []
    for name in asked.only:
        for share in SHARES:
            curves = [run(name, share, seed) for seed in range(asked.seeds)]
            mean = np.round(np.mean(curves, axis=0), 4).tolist()
            lines.append({"part": name, "share": share, "accuracy": mean, "curves": curves})
            print(name, share, mean, flush=True)
    result = {"python": platform.python_version(), "seeds": asked.seeds, "lines": lines}
    (RESULTS / "labels.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
