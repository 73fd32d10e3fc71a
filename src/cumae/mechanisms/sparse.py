"""What the two sparse-vector mechanisms share: tails of integer Laplace noise, and its drawing."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from cumae.arrays import Floats, Integers
from cumae.errors import InvalidParameter
from cumae.mechanisms.base import Ahead, Interactive
from cumae.privacy.validation import check_epsilon
from cumae.randomness import LARGEST_SCALE, Source, discrete_laplace


class SparseVector(Interactive):
    """Threshold noise that lasts until a charged answer, and fresh noise for each query."""

    def __init__(
        self,
        epsilon: float,
        threshold_share: Fraction,
        query_share: Fraction,
        random_state: int | Source | None,
    ) -> None:
        super().__init__(random_state)
        self.epsilon = check_noise(epsilon, query_share)
        self._threshold_rate = rate_of(self.epsilon, threshold_share)
        self._query_rate = rate_of(self.epsilon, query_share)
        source = self.source.child()  # of their own: threshold noise comes in between
        self._ahead = Ahead(lambda count: discrete_laplace(self._query_rate, count, source=source))
        self._threshold_noise = self._fresh_threshold_noise()

    def _refresh(self) -> None:
        """Draw new threshold noise. Called before a charged answer is counted, never after."""
        self._threshold_noise = self._fresh_threshold_noise()

    def _fresh_threshold_noise(self) -> int:
        return discrete_laplace(self._threshold_rate, source=self.source)

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


def rate_of(epsilon: float, share: Fraction) -> Fraction | float:
    """Return a share of epsilon, exactly; infinity stays what it is."""
    return Fraction(epsilon) * share if math.isfinite(epsilon) else epsilon


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
