"""What the two sparse-vector mechanisms share: integer Laplace noise, and how much is charged.

A sparse-vector mechanism answers clear queries for free, and charges those that are unclear.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.errors import InvalidParameter
from cumae.mechanisms.base import Ahead, Interactive
from cumae.parameters import check_count
from cumae.privacy.validation import check_epsilon
from cumae.randomness import LARGEST_SCALE, Source, discrete_laplace


@claim("BT", "STAB")
class SparseVector(Interactive):
    """Threshold noise that lasts until a charged answer, and fresh noise for each query.

    Parameters
    ----------
    epsilon : float above 0
        What one charged answer, with all free ones before it, costs.
    threshold_share, query_share : Fraction
        The rates of the noise on the threshold and on a query, as shares of epsilon.
    random_state : int, Source or None
        None in production; a seed or a source in tests, which voids the guarantee.
    threshold_noise : int or None
        The noise that is in force, of a mechanism that goes on; None draws it.
    """

    def __init__(
        self,
        epsilon: float,
        threshold_share: Fraction,
        query_share: Fraction,
        random_state: int | Source | None,
        threshold_noise: int | None = None,
    ) -> None:
        super().__init__(random_state)
        self.epsilon = check_noise(epsilon, query_share)
        self.threshold_rate = rate_of(self.epsilon, threshold_share)
        self.query_rate = rate_of(self.epsilon, query_share)
        self._ahead = self._from_own_source()
        self._threshold_noise = (
            self._fresh_threshold_noise() if threshold_noise is None else threshold_noise
        )

    @property
    def threshold_noise(self) -> int:
        """The noise on the threshold that is in force; as secret as the private rows."""
        return self._threshold_noise

    def _from_own_source(self) -> Ahead:
        source = self.source.child()  # of their own: threshold noise comes in between
        return Ahead(lambda count: discrete_laplace(self.query_rate, count, source=source))

    def _drop_ahead(self) -> None:
        self._ahead = self._from_own_source()  # as in the mechanism that is made of the facts

    def _refresh(self) -> None:
        """Draw new threshold noise. Called before a charged answer is counted, never after."""
        self._threshold_noise = self._fresh_threshold_noise()

    def _fresh_threshold_noise(self) -> int:
        return discrete_laplace(self.threshold_rate, source=self.source)

    def _query_noise(self, count: int) -> Integers:
        return self._ahead.take(count)


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
