"""Which mechanism answers, what it costs and how much noise it adds: all from public numbers.

Mechanisms are compared by the lead that they need: by how many votes a class must be beyond the
middle (half of the votes, for two classes) to come out with a chance of 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from cumae.claims import claim
from cumae.errors import InvalidParameter
from cumae.mechanisms import (
    Between,
    GaussianNoise,
    Majority,
    Stability,
    VoteRule,
    between_thresholds,
    stability,
)
from cumae.parameters import check_choice
from cumae.predictors.noise import SURE, SURE_DEVIATIONS

ONLINE = ("stability", "between", "gaussian", "laplace")
FEW = 100  # answers up to which Laplace noise can be the smaller one


@dataclass(frozen=True)
class AnswerPlan:
    """One calibrated mechanism.

    Parameters
    ----------
    mechanism : str
        Its name.
    claims : tuple of str
        The proofs that its cost rests on.
    lead : float
        By how many votes a class must be beyond the middle to come out with a chance of 95 %.
    rule : callable
        Returns it for a number of shards.
    why : str
        Why this one.
    """

    mechanism: str
    claims: tuple[str, ...]
    lead: float
    rule: Callable[[int], VoteRule]
    why: str = ""

    @property
    def noise(self) -> float:
        """Standard deviation of the normal noise that needs the same lead."""
        return self.lead / SURE_DEVIATIONS


@dataclass(frozen=True)
class Demand:
    """The demands on a mechanism, in public numbers.

    Parameters
    ----------
    epsilon, delta : float
        What all answers may cost together.
    max_queries : int
        How many answers there will be.
    max_unstable : int
        How many of them may be unclear, where these are charged for.
    n_classes : int
        Number of declared classes.
    """

    epsilon: float
    delta: float
    max_queries: int
    max_unstable: int
    n_classes: int = 2


def plan_answers(mechanism: str, demand: Demand) -> AnswerPlan:
    """Return the mechanism to use. ``"auto"`` takes the one with the least noise on a vote count.

    Examples
    --------
    >>> from cumae.predictors.release.answers import Demand, plan_answers
    >>> plan = plan_answers("auto", Demand(1.0, 1e-6, 1_000, 65))
    >>> plan.mechanism, round(plan.lead)
    ('gaussian', 220)
    >>> plan_answers("auto", Demand(1.0, 1e-6, 1_000_000, 10)).mechanism
    'between'
    """
    check_choice(mechanism, ("auto", *ONLINE), "mechanism")
    if mechanism != "auto":
        return _plan(mechanism, demand, f"mechanism={mechanism!r} was asked for")
    plans = [_plan(name, demand, "") for name in ONLINE if _applies(name, demand)]
    best = min(plans, key=lambda plan: plan.lead)
    others = ", ".join(f"{p.mechanism}: {p.lead:,.0f}" for p in plans if p is not best)
    why = f"{best.mechanism} needs the smallest lead, {best.lead:,.1f} votes beyond the middle"
    why += f" ({others})" if others else "; no other mechanism applies"
    return _plan(best.mechanism, demand, why)


def _applies(name: str, demand: Demand) -> bool:
    if demand.epsilon == math.inf:
        return name == "gaussian"
    if name == "laplace":
        return demand.delta == 0 or demand.max_queries <= FEW
    return demand.delta > 0 and (name != "between" or demand.n_classes == 2)


@claim("QUERY")
def _plan(name: str, demand: Demand, why: str) -> AnswerPlan:
    if name == "between" and demand.n_classes > 2:
        raise InvalidParameter(
            f"mechanism='between' with {demand.n_classes} classes: it takes two; use 'gaussian'."
        )
    if name in ("gaussian", "laplace") or demand.epsilon == math.inf:
        return _noisy(name, demand, why)
    if name == "between":
        return _between(demand, why)
    return _stability(demand, why)


@claim("QUERY")
def _noisy(name: str, demand: Demand, why: str) -> AnswerPlan:
    kind = "laplace" if name == "laplace" else "gaussian"  # without noise both are the majority
    if kind == "gaussian" and demand.delta == 0 and demand.epsilon < math.inf:
        raise InvalidParameter(
            f"mechanism={name!r} with delta={demand.delta!r}: it needs a delta above 0; give 1e-6, "
            "say, or mechanism='laplace'."
        )

    asked = (demand.epsilon, demand.delta, demand.max_queries, demand.n_classes)
    rule = Majority.calibrated(*asked, kind=kind)
    noise = rule.noise
    if isinstance(noise, GaussianNoise):
        lead = SURE_DEVIATIONS * noise.scale
    else:
        lead = _laplace_quantile(noise.epsilon / noise.sensitivity)
    # With two classes one noisy count is compared with the middle. With more, the winner is that
    # of several noisy counts: a lead beyond the middle is twice as much between two of them, and
    # the difference of two noises is sqrt(2) times as wide.
    if demand.n_classes > 2:
        lead *= math.sqrt(2.0) / 2.0
    return AnswerPlan(name, Majority.claims, lead, lambda _: rule, why)


@claim("QUERY")
def _stability(demand: Demand, why: str) -> AnswerPlan:
    asked = (demand.epsilon, demand.delta, demand.max_queries, demand.max_unstable)
    rule = Stability.calibrated(*asked)
    lead = rule.threshold + _laplace_quantile(
        rule.epsilon * float(stability.THRESHOLD_SHARE), rule.epsilon * float(stability.QUERY_SHARE)
    )
    return AnswerPlan("stability", Stability.claims, lead, lambda _: rule, why)


@claim("QUERY")
def _between(demand: Demand, why: str) -> AnswerPlan:
    asked = (demand.epsilon, demand.delta, demand.max_unstable, demand.max_queries)

    def rule(n_shards: int) -> Between:
        return Between.calibrated(n_shards, *asked)

    sides = rule(2**60)
    lead = (sides.upper - sides.lower) / 2 + _laplace_quantile(
        sides.epsilon * float(between_thresholds.THRESHOLD_SHARE),
        sides.epsilon * float(between_thresholds.QUERY_SHARE),
    )
    return AnswerPlan("between", Between.claims, lead, rule, why)


def _laplace_quantile(*rates: float) -> float:
    """Return a number below which the sum of independent Laplace noises stays in 95 % of draws.

    For several noises it is that of normal noise with the same variance. It only serves to compare
    mechanisms; no guarantee rests on it.
    """
    if math.inf in rates:
        return 0.0
    if len(rates) == 1:
        return -math.log(2 * (1 - SURE)) / rates[0]
    spread = math.sqrt(sum(2 / rate**2 for rate in rates))
    return SURE_DEVIATIONS * spread
