"""Learn from 500 labels and 20,000 rows without a label; labels and rows are private.

Shows: GenericLearner sees from the unlabelled rows where rows lie, and so finds a rule that the
labels alone do not show. Takes about ten seconds.
"""

from __future__ import annotations

import numpy as np

from cumae import GenericLearner, PrivateLearner
from cumae.concepts import Intervals


def main() -> None:
    # Made up: doses between 40 and 120 help. Few people were asked whether theirs did.
    dose = np.random.default_rng(0).lognormal(4, 1, (20_500, 1))
    helped = ((dose[:, 0] >= 40) & (dose[:, 0] < 120)).astype(int)
    asked = np.arange(len(dose)) < 500
    labels = np.where(asked, helped, -1)  # -1: no label

    # The range is what is known without the rows, so it is wide.
    columns = [(0, 100_000)]
    with_all = GenericLearner(Intervals(), epsilon=1.0, columns=columns).fit(dose, labels)
    with_labels = PrivateLearner(Intervals(), epsilon=1.0, columns=columns)
    with_labels.fit(dose[asked], helped[asked])

    print("the rule that was made up: label 1 in [40, 120), else 0")
    for name, model in (("with all rows", with_all), ("with labels alone", with_labels)):
        print(f"{name}: {model}")
        print(f"{name}: {model.score(dose, helped):.1%} right")
    print(f"by guessing: {1 - helped.mean():.1%} right")
    print(with_all.guarantee_)


if __name__ == "__main__":
    main()
