"""Which mechanism answers, what it costs and how much noise it adds: all from public numbers.

Mechanisms are compared by the lead that they need: by how many votes a class must be beyond the
middle (half of the votes, for two classes) to come out with a chance of 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.errors import InvalidParameter
from cumae.mechanisms import (
    BetweenThresholds,
    GaussianNoise,
    NoisyMajority,
    Side,
    StabilityTest,
    between_thresholds,
    stability,
)
from cumae.mechanisms.base import check_left
from cumae.mechanisms.stability import UNSTABLE
from cumae.parameters import check_choice, check_count
from cumae.predictors.noise import SURE, SURE_DEVIATIONS
from cumae.privacy import Cost
from cumae.randomness import SYSTEM, Source

ONLINE = ("stability", "between", "gaussian", "laplace")
FEW = 100  # answers up to which Laplace noise can be the smaller one


class Answers(Protocol):
    """A mechanism at work: it turns vote counts into labels, and counts down."""

    @property
    def cost(self) -> Cost:
        """What all answers cost together."""

    @property
    def remaining(self) -> int:
        """Answers left; 0 also when no unstable one is left."""

    @property
    def asked(self) -> int:
        """Answers given so far."""

    def ask(self, votes: Integers) -> Integers:
        """Answer in order; -1 where unstable; fewer than asked if the budget ends."""

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing, as mechanisms do; ``answers_from_facts`` takes it."""


@dataclass(frozen=True)
class AnswerPlan:
    """One calibrated mechanism that has not been started.

    Parameters
    ----------
    mechanism : str
        Its name.
    claims : tuple of str
        The proofs that its cost rests on.
    lead : float
        By how many votes a class must be beyond the middle to come out with a chance of 95 %.
    start : callable
        Starts it for a number of shards, with a source of random bits.
    why : str
        Why this one.
    """

    mechanism: str
    claims: tuple[str, ...]
    lead: float
    start: Callable[[int, Source], Answers]
    why: str = ""

    @property
    def noise(self) -> float:
        """Standard deviation of the normal noise that needs the same lead."""
        return self.lead / SURE_DEVIATIONS


@dataclass(frozen=True)
class Demand:
    """What is asked of a mechanism, in public numbers.

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

    def start(n_shards: int, source: Source) -> NoisyMajority:
        del n_shards
        return NoisyMajority.calibrated(
            demand.epsilon,
            demand.delta,
            demand.max_queries,
            demand.n_classes,
            kind=kind,
            random_state=source,
        )

    noise = start(1, SYSTEM).noise
    if isinstance(noise, GaussianNoise):
        lead = SURE_DEVIATIONS * noise.scale
    else:
        lead = _laplace_quantile(noise.epsilon / noise.sensitivity)
    # With two classes one noisy count is compared with the middle. With more, the winner is that
    # of several noisy counts: a lead beyond the middle is twice as much between two of them, and
    # the difference of two noises is sqrt(2) times as wide.
    if demand.n_classes > 2:
        lead *= math.sqrt(2.0) / 2.0
    return AnswerPlan(name, NoisyMajority.claims, lead, start, why)


@claim("QUERY")
def _stability(demand: Demand, why: str) -> AnswerPlan:
    def start(n_shards: int, source: Source) -> StabilityTest:
        del n_shards
        return StabilityTest.calibrated(
            demand.epsilon,
            demand.delta,
            demand.max_queries,
            demand.max_unstable,
            random_state=source,
        )

    test = start(1, SYSTEM)
    lead = test.threshold + _laplace_quantile(
        test.epsilon * float(stability.THRESHOLD_SHARE), test.epsilon * float(stability.QUERY_SHARE)
    )
    return AnswerPlan("stability", StabilityTest.claims, lead, start, why)


@claim("QUERY")
def _between(demand: Demand, why: str) -> AnswerPlan:
    def start(n_shards: int, source: Source) -> BetweenAnswers:
        asked = BetweenThresholds.calibrated(
            n_shards, demand.epsilon, demand.delta, demand.max_unstable, random_state=source
        )
        return BetweenAnswers(asked, demand.max_queries)

    sides = start(2**60, SYSTEM).sides
    lead = (sides.upper - sides.lower) / 2 + _laplace_quantile(
        sides.epsilon * float(between_thresholds.THRESHOLD_SHARE),
        sides.epsilon * float(between_thresholds.QUERY_SHARE),
    )
    return AnswerPlan("between", BetweenThresholds.claims, lead, start, why)


@claim("QUERY")
class BetweenAnswers:
    """Labels from BetweenThresholds: "between" is an unstable answer.

    Parameters
    ----------
    sides : BetweenThresholds
        The mechanism, asked about the votes for the second class.
    max_queries : int
        How many answers there will be.
    """

    def __init__(self, sides: BetweenThresholds, max_queries: int) -> None:
        self.sides = sides
        self.max_queries, self.asked = max_queries, 0

    @property
    def cost(self) -> Cost:
        """All answers together."""
        return self.sides.cost

    @property
    def remaining(self) -> int:
        """Answers left; 0 also when no "between" answer is left."""
        return self.max_queries - self.asked if self.sides.remaining > 0 else 0

    def ask(self, votes: Integers) -> Integers:
        """Answer in order; fewer than asked if the last "between" is among them."""
        sides = self.sides.ask(votes[:, 1])
        self.asked += len(sides)
        return np.where(sides == Side.BETWEEN, UNSTABLE, sides)

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing; noise that was drawn ahead is thrown away."""
        facts = {"max_queries": self.max_queries, "asked": self.asked}
        return {"kind": "BetweenAnswers", "sides": self.sides.to_facts(), **facts}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any], source: Source) -> BetweenAnswers:
        """Rebuild what ``to_facts`` returned."""
        most = check_count(facts["max_queries"], "max_queries", least=1)
        found = cls(BetweenThresholds.from_facts(facts["sides"], source), most)
        found.asked = check_left(facts["asked"], most, "asked")
        return found


def answers_from_facts(facts: Mapping[str, Any], source: Source) -> Answers:
    """Rebuild a mechanism at work from what its ``to_facts`` returned."""
    kinds: tuple[Any, ...] = (NoisyMajority, StabilityTest, BetweenAnswers)
    found: Answers = {kind.__name__: kind for kind in kinds}[facts["kind"]].from_facts(
        facts, source
    )
    return found


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
