"""Ask what will work before anything is spent, then take the best route.

Shows: plan compares all routes for a number of rows and an epsilon. PrivateClassifier takes the
one that is forecast to be the best. Takes about ten seconds.
"""

from __future__ import annotations

from cumae import PrivateClassifier
from cumae.datasets import load_health_survey
from cumae.planning import plan


def main() -> None:
    survey = load_health_survey()
    columns = {name: (low, high, 1) for name, (low, high) in survey.bounds.items()}

    # A plan needs no rows: their number and what is declared about the columns is enough.
    for n_rows in (300, 3_000, 30_000):
        advice = plan(n_rows, columns=columns, epsilon=1.0, delta=1e-6)
        print(f"{n_rows:,} rows: {advice.sentence}")

    model = PrivateClassifier(epsilon=1.0, delta=1e-6, columns=columns)
    model.fit(survey.data[:30_000], survey.target[:30_000])
    rows, labels = survey.data[100_000:120_000], survey.target[100_000:120_000]
    print(f"taken: {model.route_}, a {type(model.model_).__name__}")
    print(f"right answers for people it has not seen: {model.score(rows, labels):.1%}")
    print(f"right answers by guessing: {1 - labels.mean():.1%}")
    print(model.guarantee_)


if __name__ == "__main__":
    main()
