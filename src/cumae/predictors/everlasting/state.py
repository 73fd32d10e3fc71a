"""Everything that an everlasting predictor must remember."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.predictors.everlasting.keeping import (
    QUERY_ROWS,
    SUPPLIED_ROWS,
    Admission,
    RowsOfNextPhase,
)
from cumae.predictors.everlasting.phases import OpenPhase, PhaseTraining, School
from cumae.predictors.everlasting.prior import FULL_WEIGHT, Prior
from cumae.predictors.everlasting.renewal import NO_ROWS, LabelledRows
from cumae.predictors.everlasting.rules import EverlastingRules
from cumae.predictors.state import State, objects
from cumae.predictors.stateful import Fitted
from cumae.predictors.waiting import FreshRows, joined


@claim("EVER")
class KeptParts(list[tuple[Any, Integers]]):
    """Kept rows with their weights, one part for each call; it knows how many rows there are."""

    n_rows = 0

    def append(self, part: tuple[Any, Integers]) -> None:
        """Add a part at the end."""
        super().append(part)
        self.n_rows += len(part[1])

    def clear(self) -> None:
        """Drop all parts."""
        super().clear()
        self.n_rows = 0


@claim("EVER", "LATE", "FRESH", "USER")
@dataclass(repr=False)  # a message must not show what it holds
class EverlastingState(State):
    """Everything that an ``EverlastingPredictor`` must remember.

    Parameters
    ----------
    fitted : Fitted
        What fit fixed.
    school : School
        The rules, the model, and how rows are read.
    prior : Prior, or None
        The published prior.
    trust : float, or None
        How much the votes of the first phase count against it.
    phase : OpenPhase
        The phase that answers.
    admission : Admission
        Who may still supply rows.
    following : PhaseTraining, or None
        The next phase, once its training has begun.
    kept : KeptParts
        Queries that wait for the next phase.
    waiting : FreshRows
        Supplied rows that wait to be labelled.
    labelled : list of tuples of rows and weights
        Rows that came with a label and wait for the next phase; a weight of 1 for the label.
    requests : dict from id to int
        Places of kept queries that may get a label; for one that could not be read, ``~place``.
    told : set of int
        Places of kept queries that have got one.
    for_prior : LabelledRows
        Rows with labels that wait until they are enough for a better prior.
    answered : int
        Answers given since fit.
    """

    kind = "EverlastingPredictor"

    fitted: Fitted
    school: School
    prior: Prior | None
    trust: float | None
    phase: OpenPhase
    admission: Admission
    following: PhaseTraining | None = None
    kept: KeptParts = field(default_factory=KeptParts)
    waiting: FreshRows = field(default_factory=FreshRows)
    labelled: list[tuple[Any, Integers]] = field(default_factory=list)
    requests: dict[Any, int] = field(default_factory=dict)
    told: set[int] = field(default_factory=set)
    for_prior: LabelledRows = NO_ROWS
    answered: int = 0

    @property
    def rules(self) -> EverlastingRules:
        """All public numbers and options."""
        return self.school.rules

    @functools.cached_property  # each answer asks several times, and rules never change
    def rows_from(self) -> RowsOfNextPhase:
        """Where the rows of the next phase come from."""
        return SUPPLIED_ROWS if self.rules.fresh else QUERY_ROWS

    @property
    def n_kept(self) -> int:
        """How many queries wait for the next phase."""
        return self.kept.n_rows

    @property
    def renews(self) -> bool:
        """Whether rows with labels train new priors; else they join the shards."""
        return self.prior is not None and self.prior.reads_numbers

    @property
    def n_labelled(self) -> int:
        """How many rows with a label join those of the next phase."""
        return 0 if self.renews else sum(len(weights) for _, weights in self.labelled)

    @property
    def full_weight(self) -> int:
        """What a row weighs whose label is certain, among the queries of this phase."""
        return self.phase.ensemble.n_shards if self.prior is None else FULL_WEIGHT

    @property
    def cap(self) -> int | None:
        """How many rows one client may supply during this phase."""
        return self.rules.cap(self.phase.n_rows)

    def given(self) -> dict[str, Any]:
        given = super().given()
        if "prior" not in given and self.prior is not None:
            given["prior"] = self.prior.unfitted()
        return given

    def admit(self, count: int, ids: tuple[Any, ...]) -> NDArray[np.bool_]:
        return self.admission.admit(count, *ids[:2])

    @claim("LABELLED")
    def keep(self, rows: Any, weights: Any, ids: tuple[Any, ...]) -> None:
        start, named = self.n_kept, len(ids) > 2 and ids[2] is not None
        if self.admission.takes_all and not named:
            self.kept.append((rows.copy(), weights.copy()))
            return
        admitted = self.admit(len(weights), ids)
        self.kept.append((rows[admitted], weights[admitted]))  # copies
        if named:
            for place, number in enumerate(np.flatnonzero(admitted).tolist()):
                name, usable = ids[2][number]
                self.requests[name] = start + place if usable else ~(start + place)

    @claim("LABELLED")
    def label(self, rows: Any, weights: Integers, users: Any) -> None:
        """Keep rows that came with a label, for the next phase: one for each user, if asked for."""
        admitted = self.admission.admit(len(weights), users, None)
        self.labelled.append((rows[admitted], weights[admitted]))

    @claim("LABELLED")
    def label_requests(self, requests: list[Any], weights: Integers) -> None:
        """Put labels in the place of the margins of kept queries, or of earlier labels.

        A query that was unusable has no weight, and gets none; but it counts like any other.
        """
        starts = np.cumsum([0, *(len(own) for _, own in self.kept)])
        for name, weight in zip(requests, weights, strict=True):
            place = self.requests[name]
            if place >= 0:
                part = int(np.searchsorted(starts, place, side="right")) - 1
                self.kept[part][1][place - starts[part]] = weight
            self.told.add(place if place >= 0 else ~place)

    def prepare(self, following: PhaseTraining, taken: int) -> None:
        # Rows go first: if this is broken off, they are lost, but they are never used twice.
        self.waiting.take(taken)
        self.kept, self.labelled, self.requests, self.told = KeptParts(), [], {}, set()
        self.admission.new_phase(self.cap)
        self.for_prior, self.following = following.waiting, following

    def enter(self, phase: OpenPhase) -> None:
        self.following = None  # first: nothing may be trained on its rows again
        if phase.prior is not None:
            self.prior, phase.prior = phase.prior, None
        self.phase = phase

    def to_facts(self) -> dict[str, Any]:
        return {
            "fitted": self.fitted.to_facts(),
            "rules": self.rules.to_facts(),
            "declared": self.school.declared,
            "prior": None if self.prior is None else self.prior.to_facts(),
            "trust": self.trust,
            "phase": self.phase.to_facts(),
            "admission": self.admission.to_facts(),
            "following": None if self.following is None else self.following.to_facts(),
            "kept": joined([rows for rows, _ in self.kept]),
            "weights": joined([weights for _, weights in self.kept]),
            "waiting": self.waiting.all(),
            "labelled": joined([rows for rows, _ in self.labelled]),
            "labels": joined([weights for _, weights in self.labelled]),
            "requests": objects(self.requests),
            "places": np.array(list(self.requests.values()), dtype=np.int64),
            "told": np.array(sorted(self.told), dtype=np.int64),
            "for_prior": self.for_prior.to_facts(),
            "answered": self.answered,
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any], estimator: Any) -> EverlastingState:
        fitted = Fitted.from_facts(facts["fitted"], estimator)
        rules = EverlastingRules.from_facts(facts["rules"])
        school = School(rules, fitted.model, fitted.reader, facts["declared"])
        phase = OpenPhase.from_facts(facts["phase"], school, fitted.source)
        found = cls(
            fitted,
            school,
            None if facts["prior"] is None else Prior.from_facts(facts["prior"]),
            facts["trust"],
            phase,
            Admission.from_facts(facts["admission"]),
            answered=facts["answered"],
        )
        if facts["following"] is not None:
            found.following = PhaseTraining.from_facts(facts["following"], school, found.prior)
            if rules.background:
                found.following.start()
        if facts["kept"] is not None:
            found.kept.append((facts["kept"], facts["weights"]))
        if facts["waiting"] is not None:
            found.waiting.append(facts["waiting"])
        if facts["labelled"] is not None:
            found.labelled.append((facts["labelled"], facts["labels"]))
        places = facts["places"].tolist()
        found.requests = dict(zip(facts["requests"].tolist(), places, strict=True))
        found.told = set(facts["told"].tolist())
        found.for_prior = LabelledRows.from_facts(facts["for_prior"])
        return found
