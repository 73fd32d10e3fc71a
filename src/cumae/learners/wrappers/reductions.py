"""Learners whose privacy is that of the one object that they wrap.

Such a learner fits copies of the object on parts of its rows that do not overlap, and publishes
something made of the copies. So a row pays once, what its own copy costs.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from cumae.claims import claim
from cumae.effort import Effort
from cumae.errors import InvalidParameter, TooFewRows, UnknownCost, warn
from cumae.estimators import PrivateEstimator
from cumae.learners.base import Learner, LearningPlan, Rows, Sizes
from cumae.learners.wrappers.base import Wrapper, plan_base
from cumae.parameters import DELTA, EPSILON, Or, described
from cumae.privacy import Approximate, Guarantee, parallel
from cumae.privacy.plans import promise
from cumae.privacy.validation import check_delta, check_epsilon
from cumae.randomness import Source

ANSWERS_ONLY = (
    "{} answers a number of questions and publishes no model; wrap it into HypothesisLearner first."
)
MOST_EPSILON, MOST_DELTA = Or(None, EPSILON), Or(None, DELTA)


@dataclass(frozen=True, kw_only=True)
class ReductionPlan(LearningPlan[Approximate]):
    """The plan of a reduction: what each copy may cost is all of its steps.

    Parameters
    ----------
    copies : tuple of Guarantee, or None
        What each copy will promise; None if one of them cannot tell before its fit.
    """

    copies: tuple[Guarantee, ...] | None

    def shown(self, planned: Guarantee) -> Guarantee | None:
        """Return what the copies will promise together; None if one of them cannot tell yet."""
        return None if self.copies is None else jointly(self.copies, planned.void)


@claim("REDUCE")
class Reduction(Wrapper):
    """A learner whose privacy is that of the one object that it wraps.

    The object may come from anywhere. It needs ``fit(X, y)``, ``predict(X)`` and, once fitted, a
    ``guarantee_`` of type :class:`~cumae.privacy.Guarantee`. Labels reach it as 0 and 1.
    """

    splits: ClassVar[bool] = True  # whether the object sees other rows than ``fit``

    epsilon: float | None  # type: ignore[assignment]  # None: what the object says itself
    delta: float | None  # type: ignore[assignment]

    def _checked_base(self) -> Any:
        base = super()._checked_base()
        if self.splits and hasattr(type(base), "remaining_"):
            raise InvalidParameter(ANSWERS_ONLY.format(described(base)))
        return base

    def limits(self) -> tuple[float, float]:
        """Return epsilon and delta, as declared here or else by the object."""
        base = self._checked_base()
        epsilon, delta = getattr(base, "epsilon", None), getattr(base, "delta", None)
        if isinstance(base, Learner):
            epsilon, delta = base.limits()
        epsilon = epsilon if self.epsilon is None else self.epsilon
        delta = delta if self.delta is None else self.delta
        if epsilon is None:
            raise UnknownCost(
                f"{described(base)} does not say what it costs; declare epsilon= (and delta=) here."
            )
        return check_epsilon(epsilon), check_delta(0.0 if delta is None else delta)

    def _reader(self) -> Any:
        base = self._copy()
        return base if self.splits or isinstance(base, Learner) else None

    @abstractmethod
    def _publish(self, rows: Rows, fit: Callable[[Rows], Any], source: Source) -> dict[str, Any]:
        """Fit copies to parts of the rows, and return what the fitted learner consists of.

        Which row goes where follows from coins, from its place in the table and from its role (with
        a label, without one, or public); never from what is in it.

        Parameters
        ----------
        rows : Rows
            All rows.
        fit : callable
            Returns a copy of the object that is fitted to the given rows.
        source : Source
            Where coins come from.
        """

    @abstractmethod
    def _run_sizes(self, sizes: Sizes) -> list[Sizes]:
        """Return how many rows each copy gets; refuse what cannot be run, before it is paid."""

    def _public_rows(self, rows: Rows) -> Rows:
        """Return the rows with public ones such as the copies get."""
        return rows

    def decide(self, sizes: Sizes, rows: Rows) -> ReductionPlan:
        """Decide what each copy may cost: that is all of the steps."""
        most = Approximate(*self.limits())
        # Copies with as many rows cost the same.
        runs = Counter(self._run_sizes(sizes))
        plans = {run: self._copy_plan(run, rows) for run in runs}
        # What cannot plan is taken at its word, and held to it after the fit.
        cost = parallel(*[most if plan is None else plan.cost for plan in plans.values()])
        promises = {run: self._copy_promise(run, plan) for run, plan in plans.items()}
        above = most.eps < math.inf and cost.delta(most.eps) > most.failure
        if above or any(
            not _within(found, most) for found in promises.values() if found is not None
        ):
            raise InvalidParameter(
                f"{self.wraps} costs more than epsilon={most.eps!r}, delta={most.failure!r}; give "
                f"it less, or declare more for {type(self).__name__}."
            )
        copies = [promises[run] for run in runs.elements()]
        known = tuple(found for found in copies if found is not None)
        return ReductionPlan(
            cost,
            ("REDUCE",),
            steps=most,
            work=_all_work(plans, runs),
            copies=known if len(known) == len(copies) else None,
        )

    def _copy_plan(self, run: Sizes, rows: Rows) -> LearningPlan[Any] | None:
        """Return the plan of a copy that gets so many rows; None if the object is no learner."""
        base = self._copy()
        if not isinstance(base, Learner):
            return None
        return plan_base(base, self._public_rows(rows), run.labelled, run.unlabelled)

    def _copy_promise(self, run: Sizes, plan: LearningPlan[Any] | None) -> Guarantee | None:
        """Return what a copy will promise that gets so many rows; None if it cannot tell yet."""
        base = self._copy()
        if plan is not None:
            return plan.shown(promise(plan, *base.limits(), void=False))
        if not isinstance(base, PrivateEstimator):
            return None
        outlook = base.plan(run.labelled, len(run.columns.columns), run.public)
        for warning in outlook.warnings:
            warn(warning, TooFewRows)
        if not outlook.can_run:
            raise InvalidParameter(f"{self.wraps} cannot be fitted: {' '.join(outlook.reasons)}")
        self._need_answers(float(outlook.facts.get("max_queries", math.inf)))
        return None if outlook.guarantee is None else _trusted(outlook.guarantee, base)

    def _need_answers(self, left: float) -> None:
        """Refuse an object that gives too few answers."""

    def _learn(self, rows: Rows, plan: LearningPlan[Approximate], source: Source) -> Guarantee:
        copies = []

        def fit(run: Rows) -> Any:
            copies.append(self._copy(source))
            self._fit_copy(copies[-1], run, plan.steps)
            return copies[-1]

        fitted = self._publish(rows, fit, source)
        # Read again after the last answer: a guarantee may have changed with them.
        found = [self._promise(copy, plan.steps) for copy in copies]
        for name, value in fitted.items():
            setattr(self, name, value)
        return jointly(found, source.deterministic)

    def _promise(self, copy: Any, most: Approximate) -> Guarantee:
        found = super()._promise(copy, most)
        if self.splits and "replaced" not in found.relation:
            raise UnknownCost(
                f"{described(copy)} has the relation {found.relation!r}; {type(self).__name__} is "
                "proven for rows or labels that are replaced."
            )
        if self.splits and hasattr(copy, "remaining_"):
            raise InvalidParameter(ANSWERS_ONLY.format(described(copy)))
        if isinstance(copy, Learner):
            return found
        return _trusted(found, copy)


def _all_work(
    plans: Mapping[Sizes, LearningPlan[Any] | None], runs: Mapping[Sizes, int]
) -> tuple[Effort, ...] | None:
    """Return the work of all copies; None if that of one is not known.

    Parameters
    ----------
    plans : mapping from Sizes to LearningPlan, or None
        The plan of a copy with so many rows.
    runs : mapping from Sizes to int
        How many copies get so many rows.
    """
    found: list[Effort] = []
    for run, plan in plans.items():
        if plan is None or plan.work is None:
            return None
        found += [part.repeated(runs[run]) for part in plan.work]
    return tuple(found)


def _within(found: Guarantee, most: Approximate) -> bool:
    """Tell whether a copy promises what was declared, as is asked again after its fit."""
    return found.epsilon <= most.eps and found.delta <= most.failure


def _trusted(found: Guarantee, base: Any) -> Guarantee:
    """Return a guarantee that assumes what its object states."""
    trust = f"the guarantee that {type(base).__name__} states is true"
    return replace(found, assumptions=(*found.assumptions, trust))


@claim("REDUCE")
def jointly(parts: Sequence[Guarantee], void: bool) -> Guarantee:
    """Return one guarantee for copies that were fitted on rows of their own: the weakest one.

    Parameters
    ----------
    parts : sequence of Guarantee
        What each copy promises.
    void : bool
        Whether a seed was used.
    """
    first = parts[0]
    if len({(part.protects, part.relation) for part in parts}) > 1:
        raise UnknownCost("the copies protect different things; give a base that does not.")
    together = () if len(parts) == 1 else ("PAR",)
    named = [name for part in parts for name in part.claims]
    rhos = [part.rho for part in parts if part.rho is not None]
    return replace(
        first,
        epsilon=max(part.epsilon for part in parts),
        delta=max(part.delta for part in parts),
        claims=tuple(dict.fromkeys(("REDUCE", *together, *named, "RAND"))),
        assumptions=tuple(dict.fromkeys(said for part in parts for said in part.assumptions)),
        rho=max(rhos) if len(rhos) == len(parts) else None,
        void=void or any(part.void for part in parts),
    )
