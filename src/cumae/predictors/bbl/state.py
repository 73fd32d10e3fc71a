"""Everything that a GenericBBL must remember."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts.candidates.grid import GridRules
from cumae.data import ArrayRows
from cumae.ensembles.split import Split
from cumae.mechanisms import Between, Spent
from cumae.predictors.answering.events import Entered, Event, numbered
from cumae.predictors.bbl.costs import label_draw
from cumae.predictors.bbl.phases import (
    Kept,
    LabelledPhase,
    RunningPhase,
    TrainBest,
    Votes,
    train_best,
)
from cumae.predictors.bbl.rules import BBLRules
from cumae.predictors.recipes import Recipe
from cumae.predictors.state import State
from cumae.predictors.stateful import Fitted
from cumae.predictors.waiting import FreshRows
from cumae.privacy.validation import plain_number
from cumae.randomness import Source


@numbered(21)
@claim("BBL")
@dataclass(frozen=True, repr=False, eq=False)
class LabelsDrawn(Event):
    """The rows of the next phase have labels, and its training has begun.

    Parameters
    ----------
    phase : int
        Number of the next phase.
    used_before : int
        Releases of this phase that are gone.
    labels : array of int
        Drawn labels of its rows.
    order, seeds : array of int
        Which rows belong to which shard, and a seed for each.
    places : array of int
        Rows that will be scored at its end.
    """

    phase: int
    used_before: int
    labels: Integers
    order: Integers
    seeds: Integers
    places: Integers

    def apply(self, state: BBLState) -> None:
        state.prepare(self)

    def entry(self) -> dict[str, Any]:
        return {"event": "prepared", "used": self.used_before}


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
    spent : Spent
        Counters of the phase.
    following : LabelledPhase, or None
        The next phase, once its labels were drawn.
    waiting : FreshRows
        Supplied rows that wait to be labelled.
    candidates : GridRules, or None
        Public candidates of all draws, which never change; None if points define them.
    answered : int
        Answers given since fit.
    """

    kind = "GenericBBL"
    protects_queries = True

    fitted: Fitted
    rules: BBLRules
    phase: RunningPhase
    spent: Spent
    following: LabelledPhase | None = None
    waiting: FreshRows = field(default_factory=FreshRows)
    answered: int = 0
    candidates: GridRules | None = None

    @property
    def rule(self) -> Votes:
        return self.phase.votes

    @property
    def phase_number(self) -> int:
        return self.phase.number

    @property
    def kept(self) -> Kept:
        """Queries that become rows of the next phase."""
        return self.phase.kept

    @property
    def halted(self) -> bool:
        """True if the last "between" answer was given."""
        votes = self.phase.votes
        return isinstance(votes, Between) and self.spent.unclear == votes.max_between

    @property
    def unasked(self) -> int:
        """Answers that the phase has left, if it has not halted."""
        return self.phase.sizes.answers - self.spent.asked

    @property
    def steps(self) -> list[dict[str, Any]]:
        rules, first = self.rules, self.phase_number == 1
        if first:
            draw = rules.given.first_draw(rules.boost, rules.first)
        else:
            draw = label_draw(rules.given.drawn_from, rules.boost, "T", rules.points)
        share = rules.first / rules.given.counts.n_rows if first else rules.query_share
        pays = {"width": draw.width, "shift": draw.shift, "scored": rules.scored, "share": share}
        return [{"step": "entered", **{name: plain_number(pays[name]) for name in pays}}]

    @property
    def train(self) -> TrainBest:
        """The function that makes an ensemble of a recipe."""
        return trains(self.fitted, self.rules)

    def use(self) -> None:
        self.phase.scored = None

    @claim("BBL")
    def next_rows(self) -> tuple[Floats, int]:
        """Return the rows of the next phase, and how many supplied rows are taken for them."""
        if not self.rules.given.fresh:
            return self.phase.kept.rows, 0
        taken = self.phase.sizes.answers
        return self.waiting.first_rows(taken)[self.phase.kept.places], taken

    @claim("BBL")
    def prepare(self, event: LabelsDrawn) -> None:
        """Let rows with labels be those of the next phase."""
        if self.following is not None or self.phase_number >= event.phase:
            return  # it was applied before
        rows, taken = self.next_rows()
        split = Split(event.order, len(event.seeds))
        recipe = Recipe(ArrayRows(rows), event.labels, split, event.seeds)
        following = LabelledPhase(self.rules.sizes(self.phase.sizes), recipe, event.places)
        vars(self).update(waiting=self.waiting.split(taken)[1], following=following)

    def entered(self, source: Source) -> Entered:
        """Train the next phase; return the event with which it answers from now on."""
        if self.following is None:
            raise AssertionError("no phase was drawn")
        phase = self.following.train(self.rules, self.train, source)
        spent = phase.votes.start(source)
        return Entered(replace(self, phase=phase, spent=spent, following=None))

    def to_facts(self) -> dict[str, Any]:
        return {
            "fitted": self.fitted.to_facts(),
            "rules": self.rules.to_facts(),
            "phase": self.phase.to_facts(),
            "spent": self.spent.to_array(),
            "following": None if self.following is None else self.following.to_facts(),
            "waiting": self.waiting.to_facts(),
            "answered": self.answered,
            "cuts": None if self.candidates is None else self.candidates.cuts,
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any], estimator: Any) -> BBLState:
        facts = _with_candidates(facts)
        fitted = Fitted.from_facts(facts["fitted"], estimator)
        rules = BBLRules.from_facts(facts["rules"], fitted.model)
        phase = RunningPhase.from_facts(facts["phase"], trains(fitted, rules))
        following, cuts = facts["following"], facts["cuts"]
        if (cuts is None) != (rules.given.grid is None):
            raise TypeError("a grid without cuts")  # from_arrays says that it is broken
        return cls(
            fitted,
            rules,
            phase,
            phase.votes.check(Spent.from_array(facts["spent"])),
            None if following is None else LabelledPhase.from_facts(following),
            FreshRows.from_facts(facts["waiting"]),
            facts["answered"],
            None if cuts is None else GridRules(fitted.model, cuts),
        )


def _with_candidates(facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts of a state that is older than public candidates as they are written now."""
    given = facts["rules"]["given"]
    if "grid" in given or "cuts" in facts:
        return facts  # a state with one of them needs the other
    rules = {**facts["rules"], "given": {**given, "grid": None}}
    return {**facts, "rules": rules, "cuts": None}


def trains(fitted: Fitted, rules: BBLRules) -> TrainBest:
    """Return what makes an ensemble of a recipe."""
    given = fitted.parameters
    return partial(train_best, rules=rules, n_jobs=given["n_jobs"], progress=given["progress"])
