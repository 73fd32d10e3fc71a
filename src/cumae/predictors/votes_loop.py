"""Models that are asked one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from cumae.concepts.validation import Integers
from cumae.errors import InvalidParameter
from cumae.predictors.quiet import warnings_raise
from cumae.predictors.votes_base import Voters, class_of, shares

CELLS = 2**20  # of a table that a model is given in one go: 8 MB


@dataclass(frozen=True, eq=False)
class LoopVoters(Voters):
    """Any fitted models, asked one by one through joblib.

    A row for which a model raises or warns is a vote for class 0, and so is an answer that is no
    class. Where a model raises or warns in a batch, the batch is halved until the row is found.
    Each model gets a copy of the rows, so that none can change what the next one sees.

    Parameters
    ----------
    models
        Anything with a ``predict`` that treats each row by itself.
    n_classes
        Number of classes.
    """

    models: Sequence[Any]
    n_classes: int

    def __len__(self) -> int:
        return len(self.models)

    def count(self, X: Any) -> Integers:
        parts = self.parts(effective_n_jobs(None))
        votes = np.zeros((len(X), self.n_classes), dtype=np.int64)
        for counted in Parallel()(delayed(count_part)(part, X) for part in parts):
            votes += counted
        return votes

    def count_here(self, X: Any) -> Integers:
        votes = np.zeros((len(X), self.n_classes), dtype=np.int64)
        step = max(1, CELLS // max(1, X.shape[1]))
        for start in range(0, len(X), step):
            rows = _some(X, start, start + step)
            places = np.arange(start, start + len(rows))
            for model in self.models:
                votes[places, _votes_of(model, rows, self.n_classes)] += 1
        return votes

    def parts(self, n: int) -> list[Voters]:
        runs = shares(len(self.models), n)
        return [LoopVoters(self.models[part], self.n_classes) for part in runs]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Refuse: there are no arrays for models of any kind."""
        kinds = sorted({type(model).__name__ for model in self.models})
        raise InvalidParameter(
            f"models of type {', '.join(kinds)} have no array form, so they cannot be stored; use "
            "decision trees, linear models (scaled columns included) or a concept class."
        )


def count_part(part: Voters, X: Any) -> Integers:
    """Count votes in a worker."""
    return part.count_here(X)


def _some(X: Any, start: int, stop: int) -> Any:
    return X.iloc[start:stop] if hasattr(X, "iloc") else X[start:stop]


def _votes_of(model: Any, rows: Any, n_classes: int) -> Integers:
    """Return the vote of one model for each row."""
    found = _ask(model, rows, n_classes)
    if found is not None:
        return found
    if len(rows) == 1:
        return np.zeros(1, dtype=np.int64)
    middle = len(rows) // 2
    halves = (_some(rows, 0, middle), _some(rows, middle, len(rows)))
    return np.concatenate([_votes_of(model, half, n_classes) for half in halves])


def _ask(model: Any, rows: Any, n_classes: int) -> Integers | None:
    """Return the votes for a batch; None if the model raises or warns."""
    try:
        with warnings_raise():
            answer = np.asarray(model.predict(rows.copy()))
            return _classes(answer, n_classes) if answer.shape == (len(rows),) else None
    except Exception:  # noqa: BLE001 - whatever a model raises may depend on a private row
        return None


def _classes(answer: NDArray[Any], n_classes: int) -> Integers:
    if answer.dtype.kind in "biuf":
        known = (answer > 0) & (answer < n_classes) & (answer == np.floor(answer))
        return np.where(known, answer, 0).astype(np.int64)
    return np.array([class_of(label, n_classes) for label in answer], dtype=np.int64)
