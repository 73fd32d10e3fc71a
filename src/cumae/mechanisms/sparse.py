"""The shared part of the two sparse-vector mechanisms: integer Laplace noise, and its charges.

A sparse-vector mechanism answers clear queries for free, and charges those that are unclear.
"""

from __future__ import annotations

import functools
import math
from abc import abstractmethod
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.errors import InvalidParameter
from cumae.mechanisms.base import Coins, Draw, Interactive, Spent, VoteRule, check_left
from cumae.parameters import check_count
from cumae.privacy import Cost
from cumae.privacy.validation import check_epsilon
from cumae.randomness import LARGEST_SCALE, Source, discrete_laplace


@claim("BT", "STAB")
class SparseRule(VoteRule):
    """Threshold noise that lasts until a charged answer, and fresh noise for each query.

    ``epsilon`` is what one charged answer, with all free ones before it, costs.
    """

    each_costs = False
    threshold_share: ClassVar[Fraction]  # rates of the noise on the threshold and on a query,
    query_share: ClassVar[Fraction]  # as shares of epsilon
    epsilon: float

    @property
    @abstractmethod
    def max_unclear(self) -> int:
        """Number of charged answers that there may be."""

    @functools.cached_property
    def threshold_rate(self) -> Fraction | float:
        """Rate of the noise on the threshold."""
        return rate_of(self.epsilon, self.threshold_share)

    @functools.cached_property
    def query_rate(self) -> Fraction | float:
        """Rate of the noise on a query."""
        return rate_of(self.epsilon, self.query_share)

    def start(self, source: Source) -> Spent:
        return Spent(threshold_noise=self.fresh_threshold_noise(source))

    def fresh_threshold_noise(self, source: Source) -> int:
        """Draw noise for the threshold: before a charged answer is counted, never after."""
        return discrete_laplace(self.threshold_rate, source=source)

    def query_noise(self, count: int, coins: Coins) -> Integers:
        """Return fresh noise for so many queries."""
        return coins.take("votes", self, self._drawer, count)

    def _drawer(self, source: Source) -> Draw:
        own = source.child()  # of their own: threshold noise comes in between
        return lambda count: discrete_laplace(self.query_rate, count, source=own)

    def left(self, spent: Spent) -> int:
        return self.max_queries - spent.asked if spent.unclear < self.max_unclear else 0

    def charged(self, spent: Spent, count: int, source: Source) -> Spent:
        """Return the counters if so many more answers may have been drawn that nobody knows of.

        Each of them may have been unclear. The noise on the threshold may have been used since, so
        it is drawn anew, at the price of one more unclear answer.
        """
        asked = min(self.max_queries, spent.asked + count)
        unclear = min(self.max_unclear, spent.unclear + count + 1)
        return Spent(asked, unclear, self.fresh_threshold_noise(source))

    def check(self, spent: Spent) -> Spent:
        check_left(spent.unclear, self.max_unclear, "unclear")
        check_threshold_noise(spent.threshold_noise)
        return super().check(spent)


@claim("BT", "STAB")
class SparseVector(Interactive):
    """A live mechanism with a threshold: a rule with its counters.

    Parameters
    ----------
    rule : SparseRule
        The mechanism without any state.
    random_state : int, Source or None
        None in production; a seed or a source in tests, which voids the guarantee.
    spent : Spent or None
        The counters of a mechanism that goes on; None starts it.
    """

    def __init__(
        self, rule: SparseRule, random_state: int | Source | None, spent: Spent | None = None
    ) -> None:
        super().__init__(random_state)
        self.sparse_rule = rule
        self._spent = rule.start(self._source) if spent is None else rule.check(spent)

    @property
    def epsilon(self) -> float:
        """The cost of one charged answer in epsilon."""
        return self.sparse_rule.epsilon

    @property
    def threshold_rate(self) -> Fraction | float:
        """Rate of the noise on the threshold."""
        return self.sparse_rule.threshold_rate

    @property
    def query_rate(self) -> Fraction | float:
        """Rate of the noise on a query."""
        return self.sparse_rule.query_rate

    @property
    def threshold_noise(self) -> int:
        """The noise on the threshold that is in force; as secret as the private rows."""
        return self._spent.threshold_noise

    @property
    def cost(self) -> Cost:
        """All answers together."""
        return self.sparse_rule.cost


def check_noise(epsilon: float, share: Fraction) -> float:
    """Return epsilon as a float if integer noise with that share of it as its rate can be drawn."""
    number = check_epsilon(epsilon)
    if number == 0:
        raise InvalidParameter("epsilon=0 would need infinite noise; give a number above 0.")
    if number * float(share) * LARGEST_SCALE < 1:
        raise InvalidParameter(
            f"epsilon={number!r} needs noise beyond 2**50; give a larger epsilon, or allow fewer "
            "answers that are charged."
        )
    return number


def check_threshold_noise(value: object) -> int:
    """Return stored threshold noise if it is a whole number that could have been drawn."""
    noise = check_count(value, "threshold_noise", -(2**62))
    if noise > 2**62:
        raise InvalidParameter("threshold_noise is beyond 2**62, so it was never drawn here.")
    return noise


@claim("BT", "STAB")
def rate_of(epsilon: float, share: Fraction) -> Fraction | float:
    """Return a share of epsilon, exactly; infinity stays what it is."""
    return Fraction(epsilon) * share if math.isfinite(epsilon) else epsilon


@claim("BT", "STAB")
@np.errstate(over="ignore", under="ignore")
def upper_tail(rate: float, t: ArrayLike) -> Floats:
    """Return P(X >= t) for whole t and integer Laplace noise X with the given rate.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.mechanisms.sparse import upper_tail
    >>> upper_tail(1.0, np.array([-1.0, 2.0])).round(4)
    array([0.9011, 0.0989])
    """
    whole = np.asarray(t, dtype=np.float64)
    # For t >= 1: q^t / (1 + q) with q = exp(-rate); below, by symmetry.
    beyond = np.exp(-rate * np.maximum(whole, 1.0 - whole)) / (1.0 + math.exp(-rate))
    return np.where(whole >= 1, beyond, 1.0 - beyond)


def unstable_answers(max_queries: int, alpha: float, beta: float) -> int:
    """Return how many unstable (unclear) answers to pay for, so that they hardly ever run out.

    If each query is unstable with a chance of alpha, then more than these are unstable with a
    chance of beta at most, by Chernoff's bound.

    Parameters
    ----------
    max_queries : int of 1 or more
        All queries.
    alpha, beta : float above 0 and below 1
        The two chances.

    Examples
    --------
    >>> from cumae.mechanisms.sparse import unstable_answers
    >>> unstable_answers(1_000, alpha=0.05, beta=0.05)
    72
    """
    mean = alpha * max_queries
    return max(1, min(max_queries, math.ceil(mean + math.sqrt(3 * mean * math.log(1 / beta)))))
