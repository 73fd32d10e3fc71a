"""Everything that a GenericBBL must remember."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.predictors.bbl.phases import Labelled, RunningPhase, TrainBest, train_best
from cumae.predictors.bbl.rules import BBLRules
from cumae.predictors.state import State
from cumae.predictors.stateful import Fitted
from cumae.predictors.waiting import FreshRows


@claim("BBL")
@dataclass(repr=False)  # a message must not show what it holds
class BBLState(State):
    """Everything that a ``GenericBBL`` must remember.

    Parameters
    ----------
    fitted : Fitted
        What fit fixed.
    rules : BBLRules
        All public numbers.
    phase : RunningPhase
        The phase that answers.
    following : Labelled, or None
        The next phase, once its labels were drawn.
    waiting : FreshRows
        Supplied rows that wait to be labelled.
    answered : int
        Answers given since fit.
    """

    kind = "GenericBBL"

    fitted: Fitted
    rules: BBLRules
    phase: RunningPhase
    following: Labelled | None = None
    waiting: FreshRows = field(default_factory=FreshRows)
    answered: int = 0

    @property
    def train(self) -> TrainBest:
        """What makes an ensemble of a recipe."""
        return trains(self.fitted, self.rules)

    def keep(self, rows: Floats, weights: Any, ids: tuple[Any, Any]) -> None:
        del weights, ids
        self.phase.kept.keep(self.phase.asked - len(rows), rows)

    def use(self) -> tuple[Floats, Integers] | None:
        scored, self.phase.scored = self.phase.scored, None
        return scored

    def prepare(self, following: Labelled, taken: int) -> None:
        self.waiting.take(taken)  # first: rows may be lost, but are never used twice
        self.following = following

    def enter(self, phase: RunningPhase) -> None:
        self.following = None  # first: nothing may be trained on its rows again
        self.phase = phase

    def to_facts(self) -> dict[str, Any]:
        return {
            "fitted": self.fitted.to_facts(),
            "rules": self.rules.to_facts(),
            "phase": self.phase.to_facts(),
            "following": None if self.following is None else self.following.to_facts(),
            "waiting": self.waiting.all(),
            "answered": self.answered,
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any], estimator: Any) -> BBLState:
        fitted = Fitted.from_facts(facts["fitted"], estimator)
        rules = BBLRules.from_facts(facts["rules"], fitted.model)
        phase = RunningPhase.from_facts(facts["phase"], trains(fitted, rules), fitted.source)
        found = cls(fitted, rules, phase, answered=facts["answered"])
        if facts["following"] is not None:
            found.following = Labelled.from_facts(facts["following"])
        if facts["waiting"] is not None:
            found.waiting.append(facts["waiting"])
        return found


def trains(fitted: Fitted, rules: BBLRules) -> TrainBest:
    """Return what makes an ensemble of a recipe."""
    given = fitted.parameters
    return partial(train_best, rules=rules, n_jobs=given["n_jobs"], progress=given["progress"])
