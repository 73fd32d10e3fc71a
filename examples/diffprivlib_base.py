"""A classifier of another library as the base of LabelBoost.

diffprivlib 0.6 needs an older scikit-learn than cumae's own tests use, so give it an environment:

    python -m venv peer
    peer/bin/pip install scikit-learn==1.6.1 diffprivlib==0.6.6 .
    peer/bin/python examples/diffprivlib_base.py
"""

from __future__ import annotations

import numpy as np
from diffprivlib.models import GaussianNB

from cumae.concepts import Thresholds
from cumae.learners import Adapter, LabelBoost


def main() -> None:
    x = np.random.default_rng(0).random((4_000, 1))
    truth = (x[:, 0] > 0.4).astype(int)
    labels = np.where(np.arange(len(x)) < 800, truth, -1)  # four of five rows have no label
    base = Adapter(GaussianNB(epsilon=1.0, bounds=(0, 1)), epsilon=1.0)
    learner = LabelBoost(base, Thresholds(), epsilon=2.0).fit(x, labels)
    print(learner.guarantee_)
    print(f"accuracy on all rows, which are not private here: {learner.score(x, truth):.3f}")


if __name__ == "__main__":
    main()
