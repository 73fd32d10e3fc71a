"""Say how good a model is, by test rows that stay private.

Shows: evaluate gives accuracy, areas and figures of two groups with intervals, for one epsilon, and
an account keeps to what the rows may cost together. Takes about five seconds.
"""

from __future__ import annotations

import numpy as np

from cumae import Budget, PrivateLogisticRegression
from cumae.datasets import load_health_survey
from cumae.evaluation import evaluate


def main() -> None:
    survey = load_health_survey()
    rows, labels = survey.data, survey.target
    learn, test = slice(0, 20_000), slice(20_000, 40_000)

    account = Budget(epsilon=1.5, delta=1e-6)
    model = PrivateLogisticRegression(1.0, 1e-6, columns=survey.bounds, budget=account)
    model.fit(rows[learn], labels[learn])

    sex = np.where(rows["Sex"][test] == 1, "male", "female")
    found = evaluate(
        model,
        rows[test],
        labels[test],
        epsilon=0.5,
        trained_on=False,  # none of these people was in the training rows
        groups=sex,
        group_names=["female", "male"],
        budget=account,
    )
    print(found)
    print(f"epsilon left: {account.remaining[0]:.2f}")


if __name__ == "__main__":
    main()
