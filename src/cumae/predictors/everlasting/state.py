"""Everything that an everlasting predictor must remember."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.drift import Drift
from cumae.mechanisms import Majority, Spent
from cumae.predictors.answering.calls import AnyStep, StepAhead, StepFreeze
from cumae.predictors.answering.events import Entered, Event, numbered
from cumae.predictors.everlasting.keeping import (
    QUERY_ROWS,
    SUPPLIED_ROWS,
    Admission,
    RowsOfNextPhase,
)
from cumae.predictors.everlasting.phases import (
    NextRows,
    OpenPhase,
    PhaseSetup,
    PhaseTraining,
    ToLabel,
)
from cumae.predictors.everlasting.prior import FULL_WEIGHT, Prior, trust_in
from cumae.predictors.everlasting.renewal import NO_ROWS, LabelledRows, enough
from cumae.predictors.everlasting.rules import EverlastingRules
from cumae.predictors.ids import HiddenIds, as_rows, from_rows
from cumae.predictors.state import State
from cumae.predictors.stateful import Fitted
from cumae.predictors.waiting import FreshRows, KeptRows, Later, first_of
from cumae.randomness import Source

NOTHING_SPENT = Spent()
AHEAD = 128  # answers beside which the next phase is written


@numbered(11)
@claim("EVER", "LATE", "FRESH")
@dataclass(frozen=True, repr=False, eq=False)
class PhasePrepared(Event):
    """The training of the next phase has begun: what is kept by now are its rows.

    Parameters
    ----------
    phase : int
        Number of the next phase.
    spent : Spent
        Counters of the mechanism, with a release for each row that the training labels.
    weights : array of int, or None
        Weights of supplied rows in older files, where they were labelled before.
    taken : int
        How many supplied rows there are among them.
    """

    phase: int
    spent: Spent
    weights: Integers | None = None
    taken: int = 0

    def apply(self, state: EverlastingState) -> None:
        state.prepare(self)

    def entry(self) -> dict[str, Any]:
        return {"event": "prepared", "used": self.spent.asked}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Self:
        """Rebuild it; events of older files also have a split and seeds, which are drawn anew."""
        known = {name: facts[name] for name in facts if name not in ("order", "seeds")}
        return super().from_facts(known)


@claim("EVER", "LATE", "FRESH", "USER")
@dataclass(repr=False)  # a message must not show what it holds
class EverlastingState(State):
    """Everything that an ``EverlastingPredictor`` must remember.

    Parameters
    ----------
    fitted : Fitted
        What fit fixed.
    setup : PhaseSetup
        The rules, the model, and how rows are read.
    prior : Prior, or None
        The published prior.
    trust : float, or None
        How much the votes of the first phase count against it.
    phase : OpenPhase
        The phase that answers.
    admission : Admission
        Who may still supply rows.
    hide : HiddenIds
        What hides ids and the rows of a memo.
    spent : Spent
        Counters of the phase.
    following : PhaseTraining, or None
        The next phase, once its training has begun.
    kept : KeptRows
        Queries that wait for the next phase.
    waiting : FreshRows
        Supplied rows that wait to be labelled.
    labelled : KeptRows
        Rows that came with a label and wait for the next phase; a weight of 1 for the label.
    query_places : dict from bytes to int
        Places of kept queries that may get a label, by their hidden ids; for one that could not be
        read, ``~place``.
    for_prior : LabelledRows
        Rows with labels that wait until they are enough for a better prior.
    answered : int
        Answers given since fit.
    """

    kind = "EverlastingPredictor"
    protects_queries = True

    fitted: Fitted
    setup: PhaseSetup
    prior: Prior | None
    trust: float | None
    phase: OpenPhase
    admission: Admission
    hide: HiddenIds
    spent: Spent = NOTHING_SPENT
    following: PhaseTraining | None = None
    kept: KeptRows = field(default_factory=KeptRows)
    waiting: FreshRows = field(default_factory=FreshRows)
    labelled: KeptRows = field(default_factory=KeptRows)
    query_places: dict[bytes, int] = field(default_factory=dict)
    for_prior: LabelledRows = NO_ROWS
    answered: int = 0

    @property
    def rule(self) -> Majority:
        return self.phase.majority

    @property
    def phase_number(self) -> int:
        return self.phase.number

    @property
    def n_rows(self) -> int:
        """Number of rows that the phase was trained on."""
        return self.phase.n_rows

    @property
    def left(self) -> int:
        return self.phase.majority.max_queries - self.spent.asked

    @property
    def late(self) -> int:
        """Number of the last answers of the phase that are given while the next one trains."""
        return self.phase.late

    @property
    def ahead(self) -> int:
        """Number of these that are given after its training, while it is written in a home."""
        return min(AHEAD, self.phase.late // 2) if self.rules.background else 0

    @property
    def must_freeze(self) -> bool:
        """True if what waits for later phases has to be frozen, so that it is written ahead."""
        following, ahead = self.following, self.ahead
        return following is not None and ahead < self.left <= 2 * ahead and not following.is_frozen

    @property
    @claim("LATE")
    def step_ahead(self) -> AnyStep | None:
        """The step by which something is written ahead that is due now, by counts; else None."""
        following, left = self.following, self.left
        if following is None:
            return None
        if self.must_freeze:
            return StepFreeze(lambda: following.freeze(self.rows_later()))
        if 0 < left == self.ahead and following.is_frozen and not following.is_ahead:
            return StepAhead(following.ahead, left)
        return None

    @property
    def spare(self) -> int:
        return super().spare if self.next_phase_rows.keeps_queries else 0

    @property
    def secret(self) -> bytes:
        return self.hide.key

    @property
    def rules(self) -> EverlastingRules:
        """All public numbers and options."""
        return self.setup.rules

    @functools.cached_property  # each answer asks several times, and rules never change
    def next_phase_rows(self) -> RowsOfNextPhase:
        """Where the rows of the next phase come from."""
        return SUPPLIED_ROWS if self.rules.fresh else QUERY_ROWS

    @property
    def n_kept(self) -> int:
        """Number of queries that wait for the next phase."""
        return self.kept.n_rows

    @property
    def renews(self) -> bool:
        """True if rows with labels train new priors; else they join the shards."""
        return self.prior is not None and self.prior.reads_numbers

    @property
    def n_labelled(self) -> int:
        """Number of rows with a label that join those of the next phase."""
        return 0 if self.renews else self.labelled.n_rows

    @property
    def drift(self) -> Drift | None:
        """An estimate of how far votes alone wander, where a simulation has one."""
        if self.prior is not None or not (self.setup.steady and self.setup.one_column):
            return None
        return self.rules.schedule.drift(self.phase.n_rows)

    @property
    def trust_in_votes(self) -> float:
        """The weight of the votes of this phase against the prior."""
        return trust_in(self.phase.number, self.trust or 0.0, steady=self.setup.steady)

    @property
    def full_weight(self) -> int:
        """The weight of a row whose label is certain, among the queries of this phase."""
        return self.phase.ensemble.n_shards if self.prior is None else FULL_WEIGHT

    @property
    def cap(self) -> int | None:
        """Number of rows that one client may supply during this phase."""
        return self.rules.cap(self.phase.n_rows)

    def given(self) -> dict[str, Any]:
        given = super().given()
        if "prior" not in given and self.prior is not None:
            given["prior"] = self.prior.unfitted()
        return given

    @claim("EVER", "LATE", "FRESH", "LABELLED")
    def prepare(self, event: PhasePrepared) -> None:
        """Let what is kept by now be the rows of the next phase, and keep nothing of it.

        Without a prior that can be renewed, labelled rows join the shards. With one, each labelled
        row waits for the next prior. A labelled query leaves a stand-in without weight in its place
        then, so that what it holds is in one part only, and no count changes.
        """
        if self.following is not None or self.phase.number >= event.phase:
            return  # it was applied before
        labelled = self.for_prior
        if self.renews and (self.kept.labelled_places or self.labelled.n_rows):
            labelled = labelled.and_also(self.kept, self.labelled)
        supplied, waiting = self.waiting.split(event.taken)
        to_label = None
        if event.taken and event.weights is None:
            first = event.spent.asked - event.taken
            to_label = ToLabel(supplied, first, self.phase, self.prior, self.trust_in_votes)
        given = NextRows(
            self.next_phase_rows.handed_over(self, event.taken, event.weights),
            KeptRows() if self.renews else self.labelled,
            self.renews,
            self.full_weight,
            to_label,
        )
        renewed = self.prior if enough(labelled, self.prior) else None
        own = (event.phase, given, self.fitted.source.child(), labelled, renewed)
        following = PhaseTraining(self.setup, *own)
        vars(self).update(  # as one: rows must not be used twice
            spent=event.spent,
            waiting=waiting,
            kept=KeptRows(),
            labelled=KeptRows(),
            query_places={},
            admission=self.admission.of_new_phase(self.cap),
            for_prior=following.waiting,
            following=following,
        )
        if self.rules.background:
            following.start()

    @claim("EVER", "LABELLED")
    def entered(self, source: Source) -> Entered:
        """Train the next phase to its end; return the event with which it answers from now on."""
        if self.following is None:
            raise AssertionError("nothing is trained")
        phase = self.following.finish()
        prior = phase.prior  # the training keeps it: this may be broken off, and called again
        state = replace(
            self,
            phase=replace(phase, prior=None),
            spent=phase.majority.start(source),
            prior=prior or self.prior,
            following=None,
        )
        return Entered(state, renewed=prior is not None, packed=self.following.packed)

    @claim("LATE")
    def in_a_home(self) -> EverlastingState:
        """Return the state with which a file or a database begins: it may be late from there on."""
        return replace(self, setup=replace(self.setup, rules=self.rules.in_a_home()))

    def to_facts(self, packed: bytes | None = None) -> dict[str, Any]:
        """Return all of it; ``packed`` is what the training made of the phase, if it is known."""
        stored = np.frombuffer(self.phase.packed() if packed is None else packed, dtype=np.uint8)
        return {**self.rows_later()(), **self.short_facts(), "phase": {"packed": stored}}

    @claim("LATE", "STORE")
    def rows_later(self) -> Later:
        """Return what makes the facts of all that waits, as it is now, for phases to come.

        This takes no time that grows with it: the thread of the training makes them, while others
        ask. What comes meanwhile is not in them, but weights and numbers may be later ones.
        """
        tables = {
            "admission": self.admission.facts_later(),
            "kept": self.kept.facts_later(),
            "waiting": self.waiting.facts_later(),
            "labelled": self.labelled.facts_later(),
            "for_prior": self.for_prior.to_facts,
        }
        places, n_places = self.query_places, len(self.query_places)

        def facts() -> dict[str, Any]:
            named = first_of(places, n_places)
            return {
                **{name: later() for name, later in tables.items()},
                "query_ids": as_rows(named),
                "places": np.array(list(named.values()), dtype=np.int64),
            }

        return facts

    def short_facts(self) -> dict[str, Any]:
        """Return all but the models of the phase and the rows that wait."""
        return {
            "fitted": self.fitted.to_facts(),
            "rules": self.rules.to_facts(),
            "declared": self.setup.declared,
            "prior": None if self.prior is None else self.prior.to_facts(),
            "trust": self.trust,
            "memo": self.phase.memo_to_facts(self.spent.asked if self.rules.memoize else 0),
            "following": None if self.following is None else self.following.to_facts(),
            "spent": self.spent.to_array(),
            "answered": self.answered,
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any], estimator: Any) -> EverlastingState:
        fitted = Fitted.from_facts(facts["fitted"], estimator)
        rules = EverlastingRules.from_facts(facts["rules"])
        setup = PhaseSetup(rules, fitted.shard_model, fitted.reader, facts["declared"])
        phase = OpenPhase.from_facts({**facts["phase"], "memo": facts["memo"]}, setup)
        prior = None if facts["prior"] is None else Prior.from_facts(facts["prior"])
        following = facts["following"]
        if following is not None:
            trust = trust_in(phase.number, facts["trust"] or 0.0, steady=setup.steady)
            own = (setup, phase, prior, trust, fitted.source.child())
            following = PhaseTraining.from_facts(following, *own)
            if rules.background:
                following.start()
        places = zip(from_rows(facts["query_ids"]), facts["places"].tolist(), strict=True)
        return cls(
            fitted,
            setup,
            prior,
            facts["trust"],
            phase,
            Admission.from_facts(facts["admission"]),
            HiddenIds(facts["secret"]),
            phase.majority.check(Spent.from_array(facts["spent"])),
            following,
            KeptRows.from_facts(facts["kept"]),
            FreshRows.from_facts(facts["waiting"]),
            KeptRows.from_facts(facts["labelled"]),
            dict(places),
            LabelledRows.from_facts(facts["for_prior"]),
            facts["answered"],
        )
