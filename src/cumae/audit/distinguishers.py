"""How to guess the world from what was seen: rules that are learnt on one half of the runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cumae.arrays import Floats

Score = Callable[[Floats], Floats]  # one row of numbers for each run; higher speaks for world 1
Distinguisher = Callable[[Floats, NDArray[np.int64]], Score]


def first_number(rows: Floats) -> Floats:
    """Score each run by its first number as it is: the adversary has done its sum already."""
    return np.asarray(rows[:, 0])


def by_likelihood(seen: Floats, worlds: NDArray[np.int64]) -> Score:
    """Compare how often exactly this was seen in both worlds; for views with few values.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.audit.distinguishers import by_likelihood
    >>> score = by_likelihood(np.array([[0.0], [0.0], [3.0], [0.0]]), np.array([0, 0, 1, 1]))
    >>> score(np.array([[0.0], [3.0]])).round(2).tolist()
    [-0.51, 1.1]
    """
    counts = [Counter(map(_key, seen[worlds == world])) for world in (0, 1)]

    def score(rows: Floats) -> Floats:
        keys = [_key(row) for row in rows]
        # Half a run more for each, so that something never seen has a finite ratio.
        found = [np.log((counts[1][key] + 0.5) / (counts[0][key] + 0.5)) for key in keys]
        return np.array(found)

    return score


def by_training(seen: Floats, worlds: NDArray[np.int64]) -> Score:
    """Train a logistic regression to tell the worlds apart."""
    model: Any = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(seen, worlds)
    return lambda rows: np.asarray(model.decision_function(rows), dtype=np.float64)


def _key(row: Floats) -> tuple[float, ...]:
    return tuple(row.tolist())
