"""The figures of the README's first example: python benchmarks/readme.py."""

from __future__ import annotations

import json
from pathlib import Path

from sklearn.ensemble import HistGradientBoostingClassifier

from cumae import PrivateKernelClassifier
from cumae.datasets import load_health_survey

TRAIN = 25_000
RESULT = Path(__file__).parent / "results" / "readme.json"


def main() -> None:
    survey = load_health_survey()
    X, y = survey.data, survey.target
    model = PrivateKernelClassifier(epsilon=1.0, delta=1e-6, columns=survey.bounds)
    model.fit(X[:TRAIN], y[:TRAIN])
    boosted = HistGradientBoostingClassifier(random_state=0).fit(X[:TRAIN], y[:TRAIN])
    found = {
        "rows": TRAIN,
        "private": model.score(X[TRAIN:], y[TRAIN:]),
        "guessing": 1 - y[TRAIN:].mean(),
        "boosting_without_privacy": boosted.score(X[TRAIN:], y[TRAIN:]),
        "command": "python benchmarks/readme.py",
    }
    RESULT.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
