"""The audit of EverlastingPredictor's options: planted bugs that it must find."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from cumae.audit import Attack, Game, audit
from cumae.audit.attacks.everlasting import (
    capped_query,
    fresh_query,
    fresh_row,
    growing,
    labelled_row,
    query,
    shard_sizes,
    user,
)
from cumae.audit.attacks.predictors import MARKED, UNMARKED
from cumae.audit.attacks.priors import prior_label, prior_row, renewed_row
from cumae.errors import InvalidParameter
from cumae.predictors import EverlastingPredictor
from cumae.predictors.answering.calls import Asked, ProposedAnswers
from cumae.predictors.everlasting.keeping import Admission
from cumae.predictors.everlasting.prior import Prior
from cumae.predictors.everlasting.state import EverlastingState, PhasePrepared

pytestmark = pytest.mark.usefixtures("trials_remembered")

PROMISE: dict[str, Any] = {"epsilon": 1.0, "delta": 0.05}


def is_found(attack: Attack, runs: int) -> bool:
    """Tell whether a planted bug is found."""
    return audit(attack, runs=runs, progress=False).broken


def is_soon_found(attack: Attack, runs: int) -> bool:
    """Tell whether a planted bug is found, most often in a third of the runs.

    An attack that sees nothing is taken for one that finds the bug with chance 5 % at most, by both
    tries together.
    """
    if audit(attack, runs=runs // 3, confidence=0.99, progress=False).broken:
        return True
    return audit(attack, runs=runs, confidence=0.96, progress=False).broken


def test_a_user_whose_queries_are_all_kept_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = Admission.decide

    def all_kept(self: Admission, count: int, users: Any, clients: Any) -> Any:
        return decide(self, count, users, clients)._replace(kept=np.ones(count, dtype=bool))

    attack = user(**PROMISE)
    monkeypatch.setattr(Admission, "decide", all_kept)
    assert is_found(attack, 60)


class Forgets(EverlastingPredictor):
    """Knows the users of a batch only."""

    def predict(self, X: Any, **more: Any) -> Any:
        self._state_.admission = Admission(one_per_user=True)
        return super().predict(X, **more)


@pytest.mark.parametrize("owns_a_row", [False, pytest.param(True, marks=pytest.mark.audit)])
def test_a_user_who_is_forgotten_is_found(owns_a_row: bool) -> None:
    assert is_soon_found(user(Forgets, **PROMISE, owns_a_row=owns_a_row), 200)


@pytest.mark.parametrize("owns_a_row", [False, True])
def test_the_row_of_a_user_is_marked_too(owns_a_row: bool) -> None:
    fitted = []

    class Watched(EverlastingPredictor):
        def fit(self, X: Any, y: Any, **more: Any) -> Any:
            fitted.append(X[0, 0])
            return super().fit(X, y, **more)

    attack = user(Watched, **PROMISE, owns_a_row=owns_a_row)
    for world in (0, 1):
        fitted.clear()
        attack.play(Game(attack.make(), world))
        assert fitted == [MARKED if owns_a_row and world else UNMARKED]


class CapsByValue(EverlastingPredictor):
    """Does not count some queries of a client, by what they ask."""

    def _answers(self, part: Asked, *rest: Any) -> ProposedAnswers:
        nobody = self._state_.hide.known_as(-1)
        pairs = zip(part.rows[:, 0], part.clients or [], strict=True)
        counted = [nobody if cell > 0.5 else client for cell, client in pairs]
        return super()._answers(part._replace(clients=counted), *rest)


def test_a_cap_that_looks_at_values_is_found() -> None:
    assert is_found(capped_query(CapsByValue, **PROMISE), 60)


class Stretches(EverlastingPredictor):
    """Makes eight rows of each, so that fewer have to be supplied."""

    def add_unlabelled(self, X: Any) -> Any:
        return super().add_unlabelled(np.repeat(X, 8, axis=0))


def test_rows_without_labels_that_are_copied_are_found() -> None:
    assert is_found(fresh_row(Stretches, **PROMISE), 200)


class Learns(EverlastingPredictor):
    """Takes queries for fresh rows, too."""

    def _answers(self, part: Asked, *rest: Any) -> ProposedAnswers:
        if part.rows[0, 0] > 0.5:
            self._state_.waiting._parts.insert(0, part.rows[:1].repeat(8, axis=0))
        return super()._answers(part, *rest)


def test_queries_that_leave_a_trace_beside_fresh_rows_are_found() -> None:
    assert is_found(fresh_query(Learns, **PROMISE), 200)


@pytest.mark.parametrize("made", [partial(prior_row, against=1), prior_label])
def test_a_prior_with_a_budget_of_its_own_is_found(
    monkeypatch: pytest.MonkeyPatch, made: Any
) -> None:
    fit = Prior.fit

    def generous(self: Any, *given: Any) -> None:
        self.learner.set_params(epsilon=30.0)
        fit(self, *given)

    attack = made(**PROMISE)
    monkeypatch.setattr(Prior, "fit", generous)
    assert is_soon_found(attack, 300)


@pytest.mark.audit
def test_a_later_prior_with_a_budget_of_its_own_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    learn = Prior.learn

    def generous(self: Any, *given: Any) -> None:
        self.learner.set_params(epsilon=30.0)
        learn(self, *given)

    attack = renewed_row(against=1, **PROMISE)
    monkeypatch.setattr(Prior, "learn", generous)
    assert is_soon_found(attack, 300)


class KeepsLabelled(EverlastingState):
    """Keeps labelled rows for the next phase, too, in many copies."""

    def prepare(self, event: PhasePrepared) -> None:
        parts, phase = self.labelled.parts, self.following
        super().prepare(event)
        if self.following is not phase:
            for rows, own in parts:
                at = self.labelled.n_rows
                self.labelled.put(at, rows[:1].repeat(40, 0), own[:1].repeat(40, 0))


class LabelsTwice(EverlastingPredictor):
    """Has a state that keeps labelled rows."""

    def fit(self, X: Any, y: Any, **more: Any) -> Any:
        super().fit(X, y, **more)
        self._state_.__class__ = KeepsLabelled
        return self


class LabelsCopied(EverlastingPredictor):
    """Makes forty rows of each that has a label."""

    def add_labelled(self, X: Any, y: Any, **more: Any) -> Any:
        return super().add_labelled(np.repeat(X, 40, axis=0), np.repeat(y, 40), **more)


@pytest.mark.parametrize("planted", [LabelsTwice, LabelsCopied])
def test_labelled_rows_that_are_used_twice_are_found(planted: Any) -> None:
    assert is_soon_found(labelled_row(planted, **PROMISE), 200)


class GrowsByValue(EverlastingPredictor):
    """Lets a phase grow by what is asked."""

    def _answers(self, part: Asked, *rest: Any) -> ProposedAnswers:
        rules = self._state_.rules
        if (part.rows > 0.5).any():
            schedule = replace(rules.schedule, growth=1.0)
            setup = replace(self._state_.setup, rules=replace(rules, schedule=schedule))
            self._state_.setup = setup
        return super()._answers(part, *rest)


def test_a_schedule_that_looks_at_values_is_found() -> None:
    assert is_found(growing(GrowsByValue, **PROMISE), 60)


class SizesByRows(EverlastingPredictor):
    """Makes shards larger where rows hold large values."""

    def fit(self, X: Any, y: Any, **more: Any) -> Any:
        self.shard_size = 8 if (X > 0.5).any() else "auto"
        return super().fit(X, y, **more)


def test_a_shard_size_that_was_chosen_by_the_rows_is_found() -> None:
    assert is_found(shard_sizes(SizesByRows, **PROMISE), 60)
    assert not is_found(shard_sizes(**PROMISE), 60)


# Moves that fail


class NothingFresh(EverlastingPredictor):
    """Has another name for it."""

    def add_unlabelled(self, X: Any) -> Any:
        raise AttributeError("add_rows is its name now")


def test_a_row_that_never_arrives_is_no_attack() -> None:
    with pytest.raises(InvalidParameter, match=r"move 2 .* failed in every run.*add_rows"):
        is_found(fresh_row(NothingFresh, **PROMISE), 20)


class Forgetful(EverlastingPredictor):
    """Answers one phase."""

    def predict(self, X: Any, **more: Any) -> Any:
        answers = super().predict(X, **more)
        if self.phase_ > 1:
            raise RuntimeError("phases are over")
        return answers


def test_an_attack_whose_last_question_always_fails_is_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"move 3 .* failed in every run.*phases are over"):
        is_found(query(Forgetful, **PROMISE), 20)
