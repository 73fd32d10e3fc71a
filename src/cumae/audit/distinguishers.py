"""Rules that guess the world from what was seen, learnt on one half of the runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
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


def by_classes(seen: Floats, worlds: NDArray[np.int64]) -> Score:
    """Train on all numbers, and on how often exactly each of them was seen in both worlds.

    For many things of which each may tell something by its size or by being this one and no other,
    alone or together with others. Two halves of the runs count for each other: a run that was
    counted itself would tell its world.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.audit.distinguishers import by_classes
    >>> worlds = np.repeat([0, 1], 40)
    >>> seen = np.column_stack([np.tile(range(40), 2), np.where(worlds == 0, 9, [7, 12] * 40)])
    >>> score = by_classes(seen.astype(float), worlds)
    >>> score(np.array([[3.0, 9.0]])) < score(np.array([[3.0, 7.0], [3.0, 12.0]]))
    array([ True,  True])
    """
    varying = np.ptp(seen, axis=0) > 0
    varying[0] = True
    known = seen[:, varying]
    first = np.arange(len(known)) % 2 == 0
    counted = np.empty_like(known)
    for part in (first, ~first):
        counted[part] = _by_columns(known[~part], worlds[~part])(known[part])
    model = HistGradientBoostingClassifier(
        min_samples_leaf=5, early_stopping=False, max_leaf_nodes=8, max_iter=50, random_state=0
    )
    model.fit(np.column_stack([known, counted]), worlds)
    counts = _by_columns(known, worlds)

    def score(rows: Floats) -> Floats:
        found = rows[:, varying]
        return np.asarray(model.decision_function(np.column_stack([found, counts(found)])))

    return score


def _by_columns(seen: Floats, worlds: NDArray[np.int64]) -> Score:
    """Compare as ``by_likelihood`` does, each column for itself; one score for each."""
    scores = [by_likelihood(column[:, None], worlds) for column in seen.T]
    return lambda rows: np.column_stack(
        [score(column[:, None]) for score, column in zip(scores, rows.T, strict=True)]
    )


def _key(row: Floats) -> tuple[float, ...]:
    return tuple(row.tolist())
