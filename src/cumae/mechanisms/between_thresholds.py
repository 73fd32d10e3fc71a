"""BetweenThresholds (Bun, Steinke, Ullman) with integer noise and its own proof."""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.errors import InvalidData, InvalidParameter
from cumae.live import only_once
from cumae.mechanisms.accuracy import sparse_reach
from cumae.mechanisms.base import (
    ANY_NUMBER,
    UNCLEAR,
    Coins,
    Spent,
    check_integers,
    check_left,
    keep_plain,
)
from cumae.mechanisms.sparse import (
    SparseRule,
    SparseVector,
    check_noise,
    check_threshold_noise,
    upper_tail,
)
from cumae.parameters import check_count
from cumae.privacy import Approximate, Cost, calibrate
from cumae.privacy.formulas import FAR, SMALLEST_FLOAT, UP
from cumae.privacy.validation import (
    check_delta,
    check_epsilon,
    from_plain_number,
    plain_number,
)
from cumae.randomness import Source
from cumae.remembering import remembered

# Rates of the noise on the thresholds and on the queries, as shares of epsilon. With query noise
# of rate r, "between" costs a little over 2 r; what is left pays for the finite gap.
THRESHOLD_SHARE = Fraction(1, 2)
QUERY_SHARE = Fraction(1, 6)


class Side(enum.IntEnum):
    """Where a noisy count lies: 0 below both thresholds, 1 above both, 2 between them."""

    LOW = 0
    HIGH = 1
    BETWEEN = 2


@claim("BT")
@dataclass(frozen=True)
class Between(SparseRule):
    """Two thresholds on the votes for the second class, as a frozen value.

    Counts below both or above both are clear. Those between them are unclear: they are charged.

    Parameters
    ----------
    lower, upper : int
        Whole thresholds, at least ``least_gap`` of this module apart.
    epsilon : float above 0
        What one "between" answer, with all other answers before it, costs in epsilon. What it costs
        in delta follows from the thresholds.
    max_between : int of 1 or more
        How many "between" answers there will be.
    max_queries : int of 1 or more
        How many answers there will be.
    """

    claims = ("BT",)
    threshold_share = THRESHOLD_SHARE
    query_share = QUERY_SHARE

    lower: int
    upper: int
    epsilon: float
    max_between: int = 1
    max_queries: int = ANY_NUMBER

    def __post_init__(self) -> None:
        keep_plain(
            self,
            lower=check_count(self.lower, "lower", -(2**62)),
            upper=check_count(self.upper, "upper", -(2**62)),
            epsilon=check_noise(self.epsilon, QUERY_SHARE),
            max_between=check_count(self.max_between, "max_between", least=1),
            max_queries=check_count(self.max_queries, "max_queries", least=1),
        )
        if self.lower > self.upper:
            raise InvalidParameter(
                f"lower={self.lower!r} is above upper={self.upper!r}; swap them."
            )

    @classmethod
    def calibrated(
        cls,
        votes: int,
        epsilon: float,
        delta: float,
        max_between: int,
        max_queries: int = ANY_NUMBER,
    ) -> Between:
        """Return the one with the least noise that costs (epsilon, delta) in all.

        Its thresholds lie as close around half of ``votes``, the number of voters, as the proof
        allows.
        """
        max_between = check_count(max_between, "max_between", least=1)
        votes = check_count(votes, "votes", least=1)
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        if epsilon == math.inf:
            return cls(votes // 2, votes // 2, epsilon, max_between, max_queries)
        if epsilon == 0 or delta == 0:
            raise InvalidParameter(
                f"epsilon={epsilon!r}, delta={delta!r}: BetweenThresholds needs both above 0."
            )
        share = delta / (2 * max_between)
        noise = _least_noise(epsilon, delta, share, max_between)
        gap = least_gap(1 / noise, share)
        lower = math.ceil((votes - gap) / 2)
        if lower <= 0:
            raise InvalidParameter(
                f"votes={votes!r} are too few: the thresholds would be {gap} apart; train more "
                "shards, allow a larger epsilon or fewer 'between' answers."
            )
        return cls(lower, lower + gap, 1 / noise, max_between, max_queries)

    @property
    def max_unclear(self) -> int:
        return self.max_between

    @functools.cached_property
    def delta(self) -> float:
        """The cost of one "between" answer in delta, given the thresholds."""
        return delta_at_gap(self.epsilon, self.upper - self.lower)

    @property
    def cost(self) -> Cost:
        return Approximate(self.epsilon, self.delta) * self.max_between

    def sides(self, values: Integers, spent: Spent, coins: Coins) -> tuple[Integers, Spent]:
        """Return a :class:`Side` for each count, and the counters after them.

        There are fewer than asked if the last "between" is among them.
        """
        noisy = values + self.query_noise(len(values), coins)
        answers = np.empty(len(values), dtype=np.int64)
        start, unclear, shift = 0, spent.unclear, spent.threshold_noise
        while start < len(values) and unclear < self.max_between:
            rest = noisy[start:]
            sides = np.where(rest > self.upper - shift, Side.HIGH, Side.BETWEEN)
            sides = np.where(rest < self.lower + shift, Side.LOW, sides)
            between = np.flatnonzero(sides == Side.BETWEEN)
            stop = start + int(between[0]) + 1 if len(between) else len(values)
            answers[start:stop] = sides[: stop - start]
            if len(between):
                shift = self.fresh_threshold_noise(coins.source)
                unclear += 1
            start = stop
        return answers[:start], Spent(spent.asked + start, unclear, shift)

    def ask(self, votes: Integers, spent: Spent, coins: Coins) -> tuple[Integers, Spent]:
        self.reserved(spent, len(votes))  # refuses more than are left
        sides, after = self.sides(votes[:, 1], spent, coins)
        return np.where(sides == Side.BETWEEN, UNCLEAR, sides), after

    def to_facts(self) -> dict[str, Any]:
        names = ("lower", "upper", "epsilon", "max_between", "max_queries")
        return {"kind": "Between", **{name: plain_number(getattr(self, name)) for name in names}}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """Rebuild what ``to_facts`` returned."""
        epsilon = from_plain_number(facts["epsilon"])
        counts = (facts["max_between"], facts["max_queries"])
        return cls(facts["lower"], facts["upper"], epsilon, *counts)


@claim("BT")
class BetweenThresholds(SparseVector):
    """The place of counts below, above or between two thresholds; only "between" is paid.

    Protects one row that moves each count by at most one. It has state: a "between" answer
    redraws the noise and counts down, so the counts asked about must be public functions of the
    rows; it does not hide what was asked. It is a live :class:`Between`.

    Parameters
    ----------
    lower, upper : int
        Whole thresholds, at least ``least_gap(epsilon, delta)`` of this module apart.
    epsilon : float above 0
        What one "between" answer, with all other answers before it, may cost in epsilon.
    delta : float from 0 and below 1
        What it may cost in delta.
    max_between : int of 1 or more
        How many "between" answers there will be; after them it refuses.
    random_state : int, Source or None
        None in production; a seed or a source in tests, which voids the guarantee.

    Attributes
    ----------
    remaining
        "Between" answers left.
    delta
        What one of them costs in delta, given the thresholds.

    Examples
    --------
    >>> from cumae.mechanisms import BetweenThresholds
    >>> votes = BetweenThresholds.calibrated(10_000, epsilon=1.0, delta=1e-6, max_between=20)
    >>> votes.ask([0, 10_000, 1, 5_000]).tolist()
    [0, 1, 0, 2]
    >>> votes.remaining
    19
    >>> votes.cost.delta(1.0) <= 1e-6
    True
    """

    claims = ("BT",)
    fact_names = ("lower", "upper", "epsilon", "max_between", "remaining", "threshold_noise")

    def __init__(
        self,
        lower: int,
        upper: int,
        epsilon: float,
        delta: float,
        max_between: int = 1,
        *,
        random_state: int | Source | None = None,
    ) -> None:
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        rule, needed = Between(lower, upper, epsilon, max_between), least_gap(epsilon, delta)
        gap = rule.upper - rule.lower
        if gap < needed:
            raise InvalidParameter(
                f"lower={lower!r}, upper={upper!r} are {gap} apart, but "
                f"epsilon={epsilon!r}, delta={delta!r} need {needed}; move them apart or "
                "allow a larger epsilon."
            )
        self._begin(rule, random_state)

    def _begin(
        self, rule: Between, random_state: int | Source | None, spent: Spent | None = None
    ) -> None:
        self.rule = rule
        SparseVector.__init__(self, rule, random_state, spent)

    @classmethod
    def _of(
        cls, rule: Between, random_state: int | Source | None, spent: Spent | None = None
    ) -> Self:
        # Past the constructor: what the thresholds cost in delta follows from them.
        found = cls.__new__(cls)
        found._begin(rule, random_state, spent)
        return found

    @classmethod
    def _restored(cls, facts: Mapping[str, Any], random_state: int | Source | None) -> Self:
        names = ("lower", "upper", "epsilon", "max_between")
        rule = Between(*(from_plain_number(facts[name]) for name in names))
        left = check_left(facts["remaining"], rule.max_between, "remaining")
        noise = check_threshold_noise(facts["threshold_noise"])
        return cls._of(rule, random_state, Spent(0, rule.max_between - left, noise))

    @classmethod
    def calibrated(
        cls,
        votes: int,
        epsilon: float,
        delta: float,
        max_between: int,
        *,
        random_state: int | Source | None = None,
    ) -> Self:
        """Return the one with the least noise that costs (epsilon, delta) in all.

        Its thresholds lie as close around half of ``votes``, the number of voters, as the proof
        allows.
        """
        return cls._of(Between.calibrated(votes, epsilon, delta, max_between), random_state)

    @property
    def lower(self) -> int:
        """The lower threshold."""
        return self.rule.lower

    @property
    def upper(self) -> int:
        """The upper threshold."""
        return self.rule.upper

    @property
    def max_between(self) -> int:
        """Number of "between" answers that there will be."""
        return self.rule.max_between

    @property
    def delta(self) -> float:
        """The cost of one "between" answer in delta, given the thresholds."""
        return self.rule.delta

    @property
    def remaining(self) -> int:
        """Number of "between" answers left."""
        return self.max_between - self._spent.unclear

    def accuracy(self, beta: float = 0.05, max_queries: int = 1_000) -> int:
        """Return by how many votes answers can be wrong, with probability 1 - beta.

        For any counts: all that are called low are below ``lower`` plus this number, all
        that are called high are above ``upper`` minus it, and all that are called "between" are at
        most this number outside of the two thresholds. (The paper's Lemma C.4 says this of its own
        noise: :func:`cumae.theorems.everlasting.between_votes`.)

        Parameters
        ----------
        beta : float above 0 and below 1
            The chance that an answer is further off.
        max_queries : int of 1 or more
            Number of answers.

        Examples
        --------
        >>> from cumae.mechanisms import BetweenThresholds
        >>> votes = BetweenThresholds.calibrated(10_000, epsilon=1.0, delta=1e-6, max_between=20)
        >>> votes.lower, votes.upper, votes.accuracy(beta=0.05, max_queries=1_000)
        (4342, 5658, 1353)
        """
        return sparse_reach(self.rule, max_queries, beta, sides=2)

    @only_once
    def ask(self, counts: ArrayLike) -> Integers:
        """Answer counts in order, each a :class:`Side`; fewer than asked if the budget ends.

        Raises :class:`~cumae.errors.BudgetExhausted` if it had ended before.
        """
        values = np.atleast_1d(check_integers(counts, "counts"))
        if values.ndim != 1:  # before anything is drawn
            raise InvalidData(
                f"counts of shape {values.shape}: give a flat list, one count per question."
            )
        self._check_left(self.remaining, f"{self.max_between} 'between' answers")
        sides, self._spent = self.rule.sides(values, self._spent, self._coins)
        return sides


@claim("BT")
@remembered(256)  # fits with the same parameters ask again, and it takes long
def _least_noise(epsilon: float, delta: float, share: float, max_between: int) -> float:
    """Return one over the epsilon of a "between", of which all cost (epsilon, delta) together."""
    return calibrate(
        lambda noise: Approximate(1 / noise, share) * max_between,
        epsilon,
        delta,
        start=max_between / epsilon,
    )


@claim("BT")
def least_gap(epsilon: float, delta: float) -> int:
    """Return the least distance of the thresholds at which a "between" costs (epsilon, delta).

    Examples
    --------
    >>> from cumae.mechanisms.between_thresholds import least_gap
    >>> least_gap(1.0, 1e-6)  # the paper's condition asks for 206
    59
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    if epsilon == math.inf:
        return 0
    if epsilon == 0 or delta == 0:
        raise InvalidParameter(
            f"epsilon={epsilon!r}, delta={delta!r}: both must be above 0 for a finite gap."
        )
    rate = check_noise(epsilon, QUERY_SHARE) * float(THRESHOLD_SHARE)
    # delta is P(noise >= m) = q^m / (1 + q); start near the solution and step to it.
    reach = max(1, math.floor(-math.log(delta * (1 + math.exp(-rate))) / rate) - 1)
    while upper_tail(rate, float(reach)) * UP > delta:
        reach += 1
    return _width(epsilon) - 1 + 2 * (reach - 1)


@claim("BT")
def delta_at_gap(epsilon: float, gap: int) -> float:
    """Return the delta of a "between" answer at epsilon and a given distance of the thresholds."""
    epsilon = check_epsilon(epsilon)
    if epsilon == math.inf:
        return 0.0
    most = (gap + 1 - _width(epsilon)) // 2  # threshold noise up to here keeps the gap wide enough
    tail = float(upper_tail(epsilon * float(THRESHOLD_SHARE), float(most + 1)))
    return max(tail * UP, SMALLEST_FLOAT)  # a tail that underflows is not 0


@claim("BT")
def _width(epsilon: float) -> int:
    """Return the least number W of counts between the noisy thresholds that the proof needs.

    Losing two of W counts at the edges changes the chance of "between" by a factor of at most
    1 + (1 + exp(r)) / (exp(-r) + ... + exp(-r (W - 2))), r being the rate of the query noise.
    """
    if epsilon > FAR:  # the exponentials below overflow, and their quotient is next to nothing
        return 3
    rate = epsilon * float(QUERY_SHARE)
    allowed = math.expm1(epsilon * float(1 - THRESHOLD_SHARE)) * (1 - 1e-9)
    # The sum is (1 - exp(-r m)) / (exp(r) - 1) with m = W - 2; solve for m.
    needed = (1 + math.exp(rate)) / allowed * math.expm1(rate)
    return 2 + max(1, math.ceil(-math.log1p(-needed) / rate * (1 + 1e-9)))
