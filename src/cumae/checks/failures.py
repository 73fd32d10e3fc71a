"""An estimator that fails in every way on marked rows, for the law that nobody must notice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin

from cumae.estimators import own_clone


class Panic(BaseException):
    """A panic of an extension in Rust, which is no ``Exception``."""


# Numbers that no usual row holds, and what is raised for a row that begins with one.
FAILURES: dict[float, type[BaseException]] = {
    0.7071067811865476: Panic,
    0.5772156649015329: SystemExit,
    0.6931471805599453: GeneratorExit,
    0.9159655941772190: StopIteration,
    0.3678794411714423: MemoryError,
}


class FailingOnMarks(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped bases
    """Another estimator that fails if a table holds a marked row, to be fitted or to be labelled.

    Parameters
    ----------
    estimator : classifier
        The learner.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> FailingOnMarks:
        _fail(X)
        self.model_ = own_clone(self.estimator).fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict(self, X: Any) -> Any:
        _fail(X)
        return self.model_.predict(X)


def _fail(X: Any) -> None:
    first = X.iloc[:, 0].to_numpy() if hasattr(X, "iloc") else np.asarray(X)[:, 0]
    for mark, kind in FAILURES.items():
        if np.any(first == mark):
            raise kind


def with_failures(table: Any, places: Any) -> Any:
    """Return a copy of a table in which some rows begin with a mark, each with its own.

    Parameters
    ----------
    table : array or DataFrame
        Rows whose first column holds numbers.
    places : sequence of int
        Where the marks go, as many as there are.
    """
    if isinstance(table, pd.DataFrame):
        found = table.copy()
        found.iloc[places, 0] = list(FAILURES)
        return found
    changed = np.array(table, dtype=np.float64)
    changed[places, 0] = list(FAILURES)
    return changed
