"""A small table, an everlasting predictor for it, and a spy on its releases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cumae import EverlastingPredictor
from cumae.concepts import ConceptClass, Thresholds
from cumae.mechanisms import Coins, Majority
from cumae.predictors.everlasting import phases

N = 400
X = np.random.default_rng(0).random((N, 1))
Y = (X[:, 0] > 0.4).astype(int)
ABOVE = Thresholds("above")


def oracle(estimator: Any = ABOVE, **changes: Any) -> EverlastingPredictor:
    given: dict[str, Any] = {"epsilon": 5.0, "shard_size": 10, "growth": 1.0, "random_state": 3}
    if isinstance(estimator, ConceptClass) and "columns" not in changes:
        given["prior"] = False
    return EverlastingPredictor(estimator, **(given | changes))


class Spy:
    """Records the vote counts and the noisy counts of every release, phase by phase."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.votes: list[NDArray[Any]] = []
        self.noisy: list[NDArray[Any]] = []
        release = Majority.release

        def spied(majority: Majority, votes: Any, coins: Coins) -> Any:
            noisy = release(majority, votes, coins)
            self.votes.append(np.array(votes))
            self.noisy.append(noisy)
            return noisy

        monkeypatch.setattr(Majority, "release", spied)

    def take(self) -> tuple[NDArray[Any], NDArray[Any]]:
        found = np.concatenate(self.votes), np.concatenate(self.noisy)
        self.votes, self.noisy = [], []
        return found


def rows_of_phases(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[float], Any, int]]:
    """Return a list that gets rows, weights and full weight of each phase when it has its rows."""
    seen: list[tuple[list[float], Any, int]] = []
    train, init = phases.PhaseSetup.train, phases.PhaseTraining.__init__

    def spied_train(self: Any, recipe: Any) -> Any:
        if not seen:  # the first phase
            rows = recipe.rows.take(np.arange(recipe.rows.n_rows))
            seen.append((rows.ravel().tolist(), recipe.weights, recipe.full_weight))
        return train(self, recipe)

    def spied_init(self: Any, setup: Any, number: int, given: Any, *others: Any) -> None:
        rows, weights = given.table(setup.reader)
        if given.to_label is not None:  # the training labels these
            own = given.to_label.rows.all()
            none = np.zeros((len(own), setup.rules.n_classes), dtype=np.int64)
            rows, weights = (
                first if second is None else np.concatenate([first, second])
                for first, second in ((own, rows), (none, weights))
            )
        seen.append((rows.ravel().tolist(), weights, given.full_weight))
        init(self, setup, number, given, *others)

    monkeypatch.setattr(phases.PhaseSetup, "train", spied_train)
    monkeypatch.setattr(phases.PhaseTraining, "__init__", spied_init)
    return seen
