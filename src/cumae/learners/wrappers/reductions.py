"""Learners whose privacy is that of the one object that they wrap.

Such a learner fits copies of the object on parts of its rows that do not overlap, and publishes
something made of the copies. So a row pays once, what its own copy costs.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from cumae.claims import claim
from cumae.errors import InvalidParameter, UnknownCost
from cumae.learners.base import Learner, LearningPlan, Rows, Sizes
from cumae.learners.wrappers.base import Wrapper, plan_base
from cumae.parameters import DELTA, EPSILON, Or, described
from cumae.privacy import Approximate, Cost, Guarantee, parallel
from cumae.privacy.validation import check_delta, check_epsilon
from cumae.randomness import SYSTEM, Source

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

    def plan(self, sizes: Sizes, rows: Rows) -> LearningPlan[Approximate]:
        """Decide what each copy may cost: that is all of the steps."""
        del sizes
        most = Approximate(*self.limits())
        # Coins that are thrown away again: what runs cost depends on their sizes only.
        cost = parallel(*[self._cost(run, most) for run in self._runs(rows, SYSTEM)])
        if most.eps < math.inf and cost.delta(most.eps) > most.failure:
            raise InvalidParameter(
                f"{self.wraps} costs more than epsilon={most.eps!r}, delta={most.failure!r}; give "
                f"it less, or declare more for {type(self).__name__}."
            )
        return LearningPlan(cost, ("REDUCE",), steps=most)

    def _cost(self, run: Rows, most: Approximate) -> Cost:
        base = self._copy()
        # What cannot plan is taken at its word, and held to it after the fit.
        return plan_base(base, run).cost if isinstance(base, Learner) else most

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
        trust = f"the guarantee that {type(copy).__name__} states is true"
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
