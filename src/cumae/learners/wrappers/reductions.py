"""Learners whose privacy is that of the one object that they wrap.

Such a learner fits copies of the object on parts of its rows that do not overlap, and publishes
something made of the copies. So a row pays once, what its own copy costs.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from cumae.claims import claim
from cumae.effort import Effort
from cumae.errors import InvalidParameter, TooFewRows, UnknownCost, warn
from cumae.estimators import PrivateEstimator
from cumae.learners.base import Learner, LearningPlan, Rows, Sizes
from cumae.learners.wrappers.base import Wrapper, plan_base, rows_for_base
from cumae.parameters import DELTA, EPSILON, Or, described
from cumae.privacy import Approximate, Cost, Guarantee, parallel
from cumae.privacy.plans import promise
from cumae.privacy.validation import check_delta, check_epsilon
from cumae.randomness import Source

ANSWERS_ONLY = (
    "{} answers a number of questions and publishes no model; wrap it into HypothesisLearner first."
)
MOST_EPSILON, MOST_DELTA = Or(None, EPSILON), Or(None, DELTA)


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
    def _runs(self, rows: Rows, source: Source) -> list[Rows]:
        """Return the rows for each copy that is fitted.

        Which row goes where follows from coins, from its place in the table and from its role (with
        a label, without one, or public); never from what is in it.
        """

    @abstractmethod
    def _publish(self, copies: list[Any], source: Source) -> dict[str, Any]:
        """Return what the fitted learner consists of."""

    @abstractmethod
    def _run_sizes(self, sizes: Sizes) -> list[Sizes]:
        """Return how many rows each copy gets; refuse what cannot be run, before it is paid."""

    def _public_rows(self, rows: Rows) -> Rows:
        """Return the rows with public ones such as the copies get."""
        return rows

    def decide(self, sizes: Sizes, rows: Rows) -> LearningPlan[Approximate]:
        """Decide what each copy may cost: that is all of the steps."""
        most = Approximate(*self.limits())
        # Copies with as many rows cost the same.
        runs = dict.fromkeys(self._run_sizes(sizes))
        cost = parallel(*[self._cost(run, rows, most) for run in runs])
        told = [self._copy_promise(run, rows) for run in runs]
        above = most.eps < math.inf and cost.delta(most.eps) > most.failure
        if above or any(not _within(found, most) for found in told if found is not None):
            raise InvalidParameter(
                f"{self.wraps} costs more than epsilon={most.eps!r}, delta={most.failure!r}; give "
                f"it less, or declare more for {type(self).__name__}."
            )
        return LearningPlan(cost, ("REDUCE",), steps=most)

    def _cost(self, run: Sizes, rows: Rows, most: Approximate) -> Cost:
        base = self._copy()
        if not isinstance(base, Learner):
            return most  # what cannot plan is taken at its word, and held to it after the fit
        return plan_base(base, self._public_rows(rows), run.labelled, run.unlabelled).cost

    def work(
        self, plan: LearningPlan[Approximate], sizes: Sizes, rows: Rows
    ) -> list[Effort] | None:
        """Return the work of all copies."""
        del plan
        found: list[Effort] = []
        for run, count in Counter(self._run_sizes(sizes)).items():
            given = (self._public_rows(rows), run.labelled, run.unlabelled)
            parts = self._base_work(self._copy(), *given)
            if parts is None:
                return None
            found += [part.repeated(count) for part in parts]
        return found

    def shown_promise(self, planned: Guarantee, sizes: Sizes, rows: Rows) -> Guarantee | None:
        """Return what the copies will promise together; None if one of them cannot tell yet.

        Parameters
        ----------
        planned : Guarantee
            What the plan promises.
        sizes, rows : Sizes and Rows
            What was decided for.
        """
        runs = self._run_sizes(sizes)
        told = {run: self._copy_promise(run, rows) for run in dict.fromkeys(runs)}
        found = [told[run] for run in runs]
        known = [promised for promised in found if promised is not None]
        return jointly(known, planned.void) if len(known) == len(found) else None

    def _copy_promise(self, run: Sizes, rows: Rows) -> Guarantee | None:
        """Return what a copy will promise that gets so many rows; None if it cannot tell yet."""
        base = self._copy()
        if isinstance(base, Learner):
            given = rows_for_base(base, self._public_rows(rows), run.labelled, run.unlabelled)
            plan = base.decide(*given)
            return base.shown_promise(promise(plan, *base.limits(), void=False), *given)
        if not isinstance(base, PrivateEstimator):
            return None
        outlook = base.plan(run.labelled, len(run.columns.columns), run.public)
        for told in outlook.warnings:
            warn(told, TooFewRows)
        if not outlook.can_run:
            raise InvalidParameter(f"{self.wraps} cannot be fitted: {' '.join(outlook.reasons)}")
        self._need_answers(float(outlook.facts.get("max_queries", math.inf)))
        return None if outlook.guarantee is None else _trusted(outlook.guarantee, base)

    def _need_answers(self, left: float) -> None:
        """Refuse an object that gives too few answers."""

    def _learn(self, rows: Rows, plan: LearningPlan[Approximate], source: Source) -> Guarantee:
        copies = []
        for run in self._runs(rows, source):
            copies.append(self._copy(source))
            self._fit_copy(copies[-1], run, plan.steps)
        fitted = self._publish(copies, source)
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
