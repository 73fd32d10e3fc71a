"""Everything that an everlasting predictor must remember."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.predictors.base import Reader
from cumae.predictors.estimators import estimator_from_plain, estimator_to_plain
from cumae.predictors.everlasting.keeping import (
    Admission,
    QueryRows,
    RowsOfNextPhase,
    SuppliedRows,
)
from cumae.predictors.everlasting.phases import OpenPhase, PhaseTraining, School
from cumae.predictors.everlasting.prior import Prior
from cumae.predictors.everlasting.rules import Rules
from cumae.predictors.state import State
from cumae.predictors.waiting import FreshRows, joined
from cumae.privacy import Guarantee
from cumae.randomness import SYSTEM, Source
from cumae.storage import from_plain, to_plain


@dataclass(repr=False)  # a message must not show what it holds
class EverlastingState(State):
    """Everything that an ``EverlastingPredictor`` must remember.

    Parameters
    ----------
    parameters : dict from str to object
        Of the constructor, without the model, the prior, the budget and the seed.
    guarantee : Guarantee
        What was promised.
    classes : array
        The declared classes.
    school : School
        The rules, the model, and how rows are read.
    model_from : str, or None
        The parameter that gave the model; None for the default one.
    prior : Prior, or None
        The published prior.
    trust : float, or None
        How much the votes of the first phase count against it.
    source : Source
        Where random bits come from; it is never stored.
    phase : OpenPhase
        The phase that answers.
    admission : Admission
        Who may still supply rows.
    following : PhaseTraining, or None
        The next phase, once its training has begun.
    kept : list of tuples of rows and weights
        Queries that wait for the next phase.
    waiting : FreshRows
        Supplied rows that wait to be labelled.
    answered : int
        Answers given since fit.
    """

    kind = "EverlastingPredictor"

    parameters: dict[str, Any]
    guarantee: Guarantee
    classes: NDArray[Any]
    school: School
    model_from: str | None
    prior: Prior | None
    trust: float | None
    source: Source
    phase: OpenPhase
    admission: Admission
    following: PhaseTraining | None = None
    kept: list[tuple[Any, Integers]] = field(default_factory=list)
    waiting: FreshRows = field(default_factory=FreshRows)
    answered: int = 0

    @property
    def rules(self) -> Rules:
        """All public numbers and options."""
        return self.school.rules

    @property
    def rows_from(self) -> RowsOfNextPhase:
        """Where the rows of the next phase come from."""
        return SuppliedRows() if self.rules.fresh else QueryRows()

    @property
    def n_kept(self) -> int:
        """How many queries wait for the next phase."""
        return sum(len(weights) for _, weights in self.kept)

    @property
    def cap(self) -> int | None:
        """How many rows one client may supply during this phase."""
        return self.rules.cap(self.phase.n_rows)

    def to_facts(self) -> dict[str, Any]:
        reader = self.school.reader
        return {
            "parameters": json.dumps(to_plain(self.parameters), allow_nan=False),
            "guarantee": self.guarantee,
            "classes": self.classes,
            "rules": asdict(self.rules),
            "model": estimator_to_plain(self.school.model),
            "model_from": self.model_from,
            "declared": self.school.declared,
            "reader": {
                "owner": reader.owner,
                "columns": reader.columns,
                "n_features": reader.n_features,
                "numeric": reader.numeric,
                "as_frames": reader.as_frames,
                "stand_in": reader.stand_in,
            },
            "prior": None if self.prior is None else self.prior.to_facts(),
            "trust": self.trust,
            "phase": self.phase.to_facts(),
            "admission": self.admission.to_facts(),
            "following": None if self.following is None else self.following.to_facts(),
            "kept": joined([rows for rows, _ in self.kept]),
            "weights": joined([weights for _, weights in self.kept]),
            "waiting": self.waiting.all(),
            "answered": self.answered,
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any], estimator: Any) -> EverlastingState:
        if not isinstance(facts["guarantee"], Guarantee):
            raise TypeError("no guarantee")  # from_arrays says that the state is broken
        model = estimator_from_plain(facts["model"], estimator)
        rules = Rules(**facts["rules"])
        school = School(rules, model, Reader(**facts["reader"]), facts["declared"])
        phase = OpenPhase.from_facts(facts["phase"], school, SYSTEM)
        found = cls(
            from_plain(json.loads(facts["parameters"])),
            facts["guarantee"],
            facts["classes"],
            school,
            facts["model_from"],
            None if facts["prior"] is None else Prior.from_facts(facts["prior"]),
            facts["trust"],
            SYSTEM,
            phase,
            Admission.from_facts(facts["admission"]),
            answered=facts["answered"],
        )
        if facts["following"] is not None:
            found.following = PhaseTraining.from_facts(facts["following"], school)
            if rules.background:
                found.following.start()
        if facts["kept"] is not None:
            found.kept.append((facts["kept"], facts["weights"]))
        if facts["waiting"] is not None:
            found.waiting.append(facts["waiting"])
        return found
