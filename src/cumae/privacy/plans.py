"""The price of a fit, and the promise that follows from it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from cumae.claims import claim
from cumae.errors import InvalidParameter
from cumae.parameters import Object, Or
from cumae.privacy.budget import Budget
from cumae.privacy.cost import Approximate, Cost, Pure
from cumae.privacy.formulas import FAR
from cumae.privacy.guarantee import RELEASED, REPLACE_ONE, Guarantee

# The parameter of this name, for tables of parameters.
BUDGET = Or(None, Object("Budget", of=(Budget,), such_as="Budget(epsilon, delta)"))


@dataclass(frozen=True)
class Plan:
    """The price of a fit and what it protects; known before any row is looked at.

    It is the promise of a fit, and no forecast: those are of ``cumae.planning``.

    Parameters
    ----------
    cost : Cost
        Price of the whole fit.
    claims : tuple of str
        Ids of the proofs that it rests on. It is empty for a fit of another library's classifier.
    protects : str
        The thing that is protected.
    relation : str
        The difference between two tables that are neighbours.
    assumptions : tuple of str
        Facts outside the code on which the promise rests.
    void : bool
        True if a part of the fit draws from a seed.
    covers : str
        The releases that the promise holds for, and for how long.
    """

    cost: Cost
    claims: tuple[str, ...]
    protects: str = "one training row"
    relation: str = REPLACE_ONE
    assumptions: tuple[str, ...] = ()
    void: bool = False
    covers: str = RELEASED


def promise(plan: Plan, epsilon: float, delta: float, *, void: bool) -> Guarantee:
    """Return what a plan guarantees; it must be within what was asked for."""
    guarantee = Guarantee.of(
        plan.cost,
        protects=plan.protects,
        claims=(*plan.claims, "RAND") if plan.claims else (),
        delta=delta,
        relation=plan.relation,
        assumptions=plan.assumptions,
        void=void or plan.void,
        covers=plan.covers,
    )
    # Reading an epsilon off a curve rounds up by a hair; reading delta there is exact.
    if guarantee.epsilon > epsilon and plan.cost.delta(epsilon) > delta:
        if epsilon > FAR:
            raise InvalidParameter(
                f"epsilon={epsilon!r} with delta={delta!r}: costs with a delta are known up to "
                f"epsilon={FAR:g}, which is no privacy at all; give that, or less."
            )
        raise AssertionError("a plan costs more than was asked")
    return replace(guarantee, epsilon=min(guarantee.epsilon, epsilon))


def pair_cost(pair: Approximate) -> Cost:
    """Return a pair without a delta as what it is: pure."""
    return Pure(pair.eps) if pair.failure == 0 else pair


@claim("AGPRIV", "ITER", "ACTIVE")
def read_pair(cost: Cost, epsilon: float, delta: float) -> Approximate:
    """Return a cost as a pair: without a delta if epsilon suffices for that, else at this delta.

    Parameters
    ----------
    cost : Cost
        What a plan costs; it keeps within (epsilon, delta).
    epsilon, delta : float
        What was asked of the plan.
    """
    if cost.infinite:
        return Approximate(math.inf, 0.0)
    if cost.pure <= epsilon:
        return Approximate(cost.pure, 0.0)
    read = cost.epsilon(delta)
    if cost.delta(epsilon) <= delta:
        read = min(read, epsilon)  # reading an epsilon off a curve rounds up by a hair
    return Approximate(read, delta)
