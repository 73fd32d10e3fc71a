"""The two stages of UniversalQueryRelease: one budget for both, and the plan of the first one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cumae.claims import claim
from cumae.concepts.candidates.relabelling import most_public
from cumae.predictors.base import Training
from cumae.predictors.release.agnostic import AgnosticQueryRelease
from cumae.predictors.release.base import PlannedRelease
from cumae.predictors.release.query import QueryRelease
from cumae.privacy import Approximate, Guarantee
from cumae.privacy.formulas import round_up
from cumae.privacy.guarantee import ENDLESS
from cumae.privacy.plans import Plan, pair_cost
from cumae.theorems.query_release import first_queries, subsamp_sizes
from cumae.theorems.rows import need_rows

PRACTICAL = 4.0  # in place of Algorithm 4's constant 32


@dataclass(frozen=True)
class FirstOptions:
    """Parameters of UniversalQueryRelease that the release of its first stage follows from."""

    delta: float
    n_first: int | str
    release: str
    n_shards: int | str
    alpha: float
    beta: float
    max_unstable: int | str
    abstain: bool
    constants: str
    classes: Any


@dataclass(frozen=True)
class Stages:
    """Both stages as they were planned from public numbers: nothing is paid yet.

    Parameters
    ----------
    planned : PlannedRelease
        The first stage.
    inner : Guarantee
        What the first stage promises alone.
    plan : Plan
        What both cost.
    n_first : int
        Queries of the first stage.
    after : float, or None
        Epsilon of the hypothesis of the second stage; None if that is a student, which is free.
    """

    planned: PlannedRelease
    inner: Guarantee
    plan: Plan
    n_first: int
    after: float | None

    def shown(self, n_rows: int) -> list[dict[str, Any]]:
        """Return how the budget is split, as a public attribute."""
        inner, steps = self.inner, self.planned.steps
        first = {"name": "first queries", "epsilon": inner.epsilon, "delta": inner.delta}
        first |= {"rows": n_rows}
        if steps is not None:  # an agnostic release draws rows and labels them first
            first |= {
                "n_sampled": steps.n_sampled,
                "epsilon_boost": steps.epsilon,
                "epsilon_answers": self.planned.demand.epsilon,
                "delta_answers": self.planned.costs[0][1].failure,
                "resample": steps.resample,
            }
        second = {"name": "student", "epsilon": 0.0, "delta": 0.0, "rows": 0}
        if self.after is not None:
            second = {"name": "hypothesis", "epsilon": self.after, "delta": 0.0, "rows": n_rows}
        return [first, second]


def split_epsilon(epsilon: float, share: float) -> tuple[float, float]:
    """Return two parts that add up to no more than the whole, exactly."""
    before = epsilon * share
    if epsilon == math.inf:
        return before, epsilon
    after = epsilon - before
    while Fraction(before) + Fraction(after) > Fraction(epsilon):
        after = math.nextafter(after, 0.0)
    return before, after


@claim("UNV")
def universal_cost(first: Guarantee, epsilon: float) -> Approximate:
    """Return the cost of both stages: a release with its guarantee, then a draw with epsilon."""
    if math.inf in (first.epsilon, epsilon):
        return Approximate(math.inf, 0.0)
    return Approximate(round_up(Fraction(first.epsilon) + Fraction(epsilon)), first.delta)


def plan_both(first: Guarantee, total: Approximate, *claims: str) -> Plan:
    """Return the plan of both stages: the first one's guarantee, the whole cost, more claims."""
    # The first stage's claim about its coins is left out: the promise adds it again.
    names = [name for name in ("UNV", *first.claims, *claims) if name != "RAND"]
    return Plan(
        pair_cost(total),
        tuple(dict.fromkeys(names)),
        assumptions=first.assumptions,
        covers=ENDLESS,
    )


def count_first(options: FirstOptions, training: Training) -> int:
    """Return the number of queries of the first stage, for a concept class.

    Parameters
    ----------
    options : FirstOptions
        The parameters.
    training : Training
        Its width and concept class are used.
    """
    if options.n_first != "auto":
        return int(options.n_first)
    asked = (options.alpha, options.beta, training.vc_dimension)
    if options.constants == "paper":
        return first_queries(*asked)
    return min(first_queries(*asked, PRACTICAL), most_public(training.model, training.width))


def first_release(
    options: FirstOptions, training: Training, count: int, epsilon: float, mechanism: str
) -> QueryRelease | AgnosticQueryRelease:
    """Return the release that makes the plan of the first stage; it is never fitted itself.

    Parameters
    ----------
    options : FirstOptions
        The parameters.
    training : Training
        The declared facts.
    count : int
        Queries of the first stage.
    epsilon : float
        Of the first stage.
    mechanism : str
        What answers.
    """
    names = ("n_shards", "alpha", "beta", "max_unstable", "abstain", "classes")
    shared: dict[str, Any] = {name: getattr(options, name) for name in names}
    asked = (training.model, epsilon, options.delta, count)
    if options.release == "agnostic":
        shared |= {"mechanism": mechanism, "constants": options.constants, "candidates": "points"}
        return AgnosticQueryRelease(*asked, **shared)
    if options.constants == "paper":
        chances = (options.alpha, options.beta)
        sizes = subsamp_sizes(count, *chances, epsilon, options.delta, training.vc_dimension)
        need_rows(training.rows.n_rows, sizes.n_rows)
        mechanism = "stability"
        shared |= {"n_shards": sizes.n_shards, "max_unstable": sizes.max_unstable}
    return QueryRelease(*asked, mechanism, **shared)
