"""The exponential mechanism over explicit candidates with integer scores."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from cumae.claims import claim
from cumae.errors import InvalidData
from cumae.mechanisms.base import Mechanism, check_integers
from cumae.parameters import check_count
from cumae.privacy import BoundedRange, Cost
from cumae.privacy.validation import check_epsilon
from cumae.randomness import Source, weighted_choice


@claim("EXP")
class ExponentialMechanism(Mechanism):
    """The draw of a candidate with a chance as exp(epsilon score / (2 sensitivity)).

    The candidates, their number and their order must not depend on the rows; only the scores may.

    Parameters
    ----------
    epsilon : float of 0 or more
        Privacy parameter; infinity draws among the best candidates only.
    sensitivity : int of 1 or more
        How far one replaced row can move a score.
    random_state : int, Source or None
        None in production; a seed or a source in tests, which voids the guarantee.

    Examples
    --------
    >>> from cumae.mechanisms import ExponentialMechanism
    >>> mechanism = ExponentialMechanism(epsilon=1.0)
    >>> mechanism.choose([3, 500, 7])
    1
    >>> print(mechanism.guarantee("one voter"))
    (epsilon = 1, delta = 0)-differential privacy for one voter.
    It covers what is released and every use of it, for ever.
    """

    claims = ("EXP",)

    def __init__(
        self, epsilon: float, sensitivity: int = 1, *, random_state: int | Source | None = None
    ) -> None:
        self.epsilon = check_epsilon(epsilon)
        self.sensitivity = check_count(sensitivity, "sensitivity", least=1)
        super().__init__(random_state)

    @property
    def cost(self) -> Cost:
        """A draw has bounded range epsilon."""
        return BoundedRange(self.epsilon)

    def choose(self, scores: ArrayLike, counts: ArrayLike | None = None) -> int:
        """Draw the place of one candidate.

        Parameters
        ----------
        scores : array-like
            One integer per candidate.
        counts : array-like or None
            Data-independent integer prior weights, one per candidate; 1 by default.
        """
        values = check_integers(scores, "scores")
        if values.ndim != 1 or values.size == 0:
            raise InvalidData(
                f"scores of shape {values.shape}: give a flat list with at least one candidate."
            )
        rate = self.epsilon
        if np.isfinite(rate):  # as a fraction, half of epsilon over the sensitivity is exact
            exact = Fraction(rate) / (2 * self.sensitivity)
            return weighted_choice(values, exact, counts=counts, source=self.source)
        return weighted_choice(values, rate, counts=counts, source=self.source)
