"""The shared part of learners that label rows by a secret hypothesis and then run a base.

Algorithms 2, 4 and 5 of paper 1. The hypothesis must not be published, because the private points
themselves define it. It labels the unlabelled rows; then the base learns from all of them, and what
is published is the base's output.
Paper 1 is Beimel, Nissim, Stemmer: Learning Privately with Labeled and Unlabeled Examples.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.concepts.candidates.grid import GridRules
from cumae.concepts.candidates.relabelling import ANY_NUMBER, largest_rate, most_points, relabelled
from cumae.data import UNLABELLED, Columns, cells_of_columns, check_column, width_of
from cumae.effort import Effort
from cumae.errors import InvalidData, InvalidParameter
from cumae.learners.base import ROLES_PUBLIC, LearningPlan, Rows, Sizes
from cumae.learners.cuts import ONE_COLUMN, check_labelled
from cumae.learners.wrappers.base import Published
from cumae.learners.wrappers.schedules import (
    Schedule,
    best_epsilon,
    check_schedule,
    schedule_cost,
)
from cumae.outlook import Fact
from cumae.parameters import EPSILON, Choice, Count, Or
from cumae.privacy import Approximate
from cumae.privacy.formulas import SLACK
from cumae.privacy.plans import Plan, pair_cost, read_pair
from cumae.randomness import Source, integers, sample
from cumae.sanitizers.grids import GridPlan, grid_plan, paying

CONSTANTS = Choice(("practical", "paper"))
EPSILON_BOOST = Or("auto", EPSILON)
SOME_ROWS = Or("auto", Count(0))


@dataclass(frozen=True)
class BoostSteps:
    """The steps of a boosting: the schedule, and the plan of the base at its end."""

    schedule: Schedule
    base: Plan


def _draws(schedule: Schedule, sizes: Sizes) -> list[Effort]:
    """Return the draws of all rounds."""
    kept = [(step.labelled + step.kept) * sizes.features for step in schedule.rounds]
    return [Effort("draws", cells, sizes.cells) for cells in kept]


def _facts(schedule: Schedule) -> dict[str, Fact]:
    """Return public numbers of all rounds, and of the base."""
    facts: dict[str, Fact] = {"n_rounds": len(schedule.rounds)}
    for number, step in enumerate(schedule.rounds, start=1):
        facts |= {
            f"round_{number}_labelled": step.labelled,
            f"round_{number}_kept": step.kept,
            f"round_{number}_epsilon": step.epsilon,
        }
    return facts | {"base_labelled": schedule.last, "base_unlabelled": schedule.reserved}


class RelabellingWrapper(Published):
    """The shared part of LabelBoost and IterLabelBoost; they differ in their schedules."""

    concept_class: ConceptClass
    constants: str
    alpha: float
    beta: float
    epsilon_boost: float | str
    n_reserved: int | str
    candidates: str
    n_cuts: int | str

    @abstractmethod
    def _schedule(
        self, base: Approximate, sizes: Sizes, vc: int, grid: GridPlan | None = None
    ) -> Schedule:
        """Choose all sizes from what is public."""

    def _grid(self, sizes: Sizes) -> GridPlan | None:
        """Return where public candidates come from; None if points define the candidates."""
        wanted = self.candidates
        if self.constants == "paper":  # its candidates are those of the points
            wanted = "points" if wanted == "auto" else wanted
        bounds = sizes.columns.bounds
        if None in bounds and not sizes.unlabelled:  # no rows could pay for the cuts
            if wanted == "grid":
                sizes.columns.need_bounds()
            wanted = "points"
        given = (wanted, self.n_cuts, self.concept_class)
        plan = grid_plan(*given, bounds, float(self.epsilon) * SLACK)
        return None if plan is None else paying(plan, sizes.unlabelled)

    def _most_points(self, sizes: Sizes, grid: GridPlan | None) -> int:
        """Return how many rows a draw may label."""
        return most_points(self.concept_class, sizes.features) if grid is None else ANY_NUMBER

    def _table(self, columns: Columns, X: Any) -> NDArray[Any]:
        # As learners do: a class that only compares takes one column of anything.
        one_column = self.declared_columns() is None and isinstance(self.concept_class, ONE_COLUMN)
        if one_column and width_of(X) == 1:
            return check_column(cells_of_columns(X)[0])
        return columns.encode(X)

    @claim("ITER")
    def _check_readable(self, rows: Rows) -> None:
        super()._check_readable(rows)
        table = self._table(self._columns_of(rows.X), rows.X)
        check_labelled(self.concept_class, table)

    @claim("ITER")
    def decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[BoostSteps]:
        """Decide all sizes: they are the steps, with the plan of the base."""
        base, concept = self._checked_base(), self.concept_class
        if not sizes.labelled:
            raise InvalidData("no row has a label; give some, and -1 for those without.")
        promise = Approximate(base.epsilon, base.delta)
        relabelled(promise, 1.0, "S", concept, 1)  # refuses a class without a proven k
        grid = self._grid(sizes)
        schedule = self._schedule(promise, sizes, concept.vc_dimension(sizes.features), grid)
        check_schedule(schedule, sizes.labelled)
        inner = self._plan_base(rows, schedule.last, schedule.reserved)
        total = schedule_cost(
            read_pair(inner.cost, base.epsilon, base.delta),
            schedule,
            sizes.labelled,
            sizes.unlabelled,
            concept,
        )
        cost = pair_cost(total)
        if cost.delta(self.epsilon) > self.delta:
            raise InvalidParameter(
                f"this schedule costs epsilon={total.eps:.6g}, delta={total.failure:.3g}, more "
                f"than epsilon={self.epsilon!r}, delta={self.delta!r}; keep fewer rows, give the "
                "base or the draw less, or leave the choice to the learner."
            )
        boot = ("BOOT",) if schedule.resample else ()
        drawn = ("CHOOSE",) if schedule.grid is None else schedule.grid.claims
        claims = ("ITER", "LB", "SUB", "PAR", *boot, *drawn, *inner.claims)
        return LearningPlan(
            cost,
            tuple(dict.fromkeys(claims)),
            protects="one training row, labelled or not",
            relation=ROLES_PUBLIC,
            assumptions=inner.assumptions,
            steps=BoostSteps(schedule, inner),
            facts=_facts(schedule),
            work=None if inner.work is None else (*_draws(schedule, sizes), *inner.work),
            void=inner.void,
        )

    @claim("ITER")
    def _learn(self, rows: Rows, plan: LearningPlan[BoostSteps], source: Source) -> None:
        schedule = plan.steps.schedule
        table = self._table(self.columns_, rows.X)
        has_label = rows.y != UNLABELLED
        known, free = np.flatnonzero(has_label), np.flatnonzero(~has_label)
        known = known[sample(len(known), schedule.labelled, source)]
        free = free[sample(len(free), schedule.unlabelled, source)]
        labels = rows.y[known]
        drawn_from: ConceptClass | GridRules = self.concept_class
        if schedule.grid is not None:
            pay, free = free[: schedule.for_cuts], free[schedule.for_cuts :]
            drawn_from = schedule.grid.rules(table[pay], source)
        for step in schedule.rounds:
            keep = sample(len(known), step.labelled, source)
            # In random order the first ones are a uniform subset.
            taken, free = free[: step.kept], free[step.unlabelled :]
            points = np.concatenate([known[keep], taken])
            drawn = drawn_from.choose(
                table[points],
                table[known[keep]],
                labels[keep],
                step.epsilon,
                random_state=source,
            )
            known, labels = points, drawn.predict(table[points])
        keep = sample(len(known), schedule.last, source)
        if schedule.resample:
            keep = keep[integers(schedule.last, schedule.last, source)]
        rest = free[: schedule.reserved]
        places = np.concatenate([known[keep], rest])
        found = np.concatenate([labels[keep], np.full(len(rest), UNLABELLED)])
        self._fit_base(rows, places, found, plan.steps.base, source)

    def _stored_params(self) -> dict[str, Any]:
        given = super()._stored_params()
        return given | {"rounds": "auto"} if "rounds" in given else given  # JSON has no Round

    def _reserved(self, unlabelled: int) -> int:
        """Return how many unlabelled rows go to the base as they are."""
        if isinstance(self.n_reserved, str):
            return unlabelled // 2 if self.base.takes_unlabelled else 0
        return int(self.n_reserved)

    def _drawn_epsilon(
        self, inner: Approximate, target: Approximate, sizes: Sizes, concept: ConceptClass | None
    ) -> float:
        if isinstance(self.epsilon_boost, str):
            rows = sizes.labelled + sizes.unlabelled
            return best_epsilon(inner, target.eps, target.failure, concept, rows)
        return float(self.epsilon_boost)

    def _rates(
        self, inner: Approximate, target: Approximate, sizes: Sizes, grid: GridPlan | None
    ) -> tuple[float, float, float]:
        """Return a draw's epsilon, and the shares of labelled and unlabelled rows to keep.

        Labelled rows then cost at most ``target``. Unlabelled rows take part in no earlier round,
        so that they may cost all that was asked for.
        """
        concept = self.concept_class if grid is None else None
        drawn = self._drawn_epsilon(inner, target, sizes, concept)
        rows = sizes.labelled + sizes.unlabelled
        scored = relabelled(inner, drawn, "S", concept, rows)
        taken = relabelled(inner, drawn, "T", concept, rows)
        return (
            drawn,
            largest_rate(scored, target.eps, target.failure),
            largest_rate(taken, self.epsilon * SLACK, self.delta),
        )
