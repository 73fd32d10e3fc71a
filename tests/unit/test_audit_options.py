"""The audit of EverlastingPredictor's options: planted bugs that it must find."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cumae.audit import Attack, audit
from cumae.audit.everlasting import capped_query, fresh_row, prior_row, user
from cumae.predictors import EverlastingPredictor
from cumae.predictors.priors import Prior
from cumae.predictors.retained import Admission

PROMISE = {"epsilon": 1.0, "delta": 0.05}


def is_found(attack: Attack, runs: int) -> bool:
    """Tell whether a planted bug is found."""
    return audit(attack, runs=runs, progress=False).broken


def test_a_user_whose_queries_are_all_kept_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def admit(self: Any, count: int, users: Any, clients: Any) -> Any:
        return np.ones(count, dtype=bool)

    attack = user(**PROMISE)
    monkeypatch.setattr(Admission, "admit", admit)
    assert is_found(attack, 60)


class CapsByValue(EverlastingPredictor):
    """Gives the first places of a client to its largest query."""

    def _answer(self, table: Any, usable: Any, users: Any, clients: Any) -> Any:
        places = np.flatnonzero(np.equal(clients, clients[0]))
        kept = table.copy()
        kept[places[:32]] = table[places].max()
        return super()._answer(kept, usable, users, clients)


def test_a_cap_that_looks_at_values_is_found() -> None:
    assert is_found(capped_query(CapsByValue, **PROMISE), 60)


class Stretches(EverlastingPredictor):
    """Makes eight rows of each, so that fewer have to be supplied."""

    def add_unlabelled(self, X: Any) -> Any:
        return super().add_unlabelled(np.repeat(X, 8, axis=0))


def test_rows_without_labels_that_are_used_again_are_found() -> None:
    assert is_found(fresh_row(Stretches, **PROMISE), 200)


def test_a_prior_with_a_budget_of_its_own_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = Prior.fit

    def generous(self: Any, *given: Any) -> None:
        self.learner.set_params(epsilon=30.0)
        fit(self, *given)

    attack = prior_row(**PROMISE)
    monkeypatch.setattr(Prior, "fit", generous)
    assert is_found(attack, 300)
