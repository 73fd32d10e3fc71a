"""Private multiplicative weights: learn a distribution on an explicit domain query by query."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.data import check_table
from cumae.errors import InvalidParameter
from cumae.mechanisms import ExponentialMechanism, LaplaceNoise
from cumae.parameters import check_choice, check_count
from cumae.privacy import BoundedRange, Cost, Pure, compose
from cumae.privacy.validation import check_epsilon
from cumae.randomness import Source
from cumae.sanitizers.base import (
    Domain,
    Sanitizer,
    check_beta,
    check_data_rows,
    largest_remainder,
    share_of,
)

LARGEST_ROUNDS = 1000
LARGEST_ROWS = 2**40
ROUNDING = 1e-9  # of the weights, generously


@claim("MW")
class MultiplicativeWeights(Sanitizer):
    """A sanitizer: points whose distribution errs little on all differences of two concepts.

    Each round draws a query on which the current distribution is far off, measures it with integer
    noise and moves the distribution; the mean over the rounds is rounded to whole points.

    Parameters
    ----------
    concept_class : ConceptClass
        The class whose differences have to be right.
    epsilon : float of 0 or more
        Privacy parameter of all rounds together.
    domain : array-like
        A public table of all points there are. Rows that are not in it go to one nearby.
    rounds : int of 1 or more, or "auto"
        Number of rounds; ``"auto"`` takes the one with the best guaranteed accuracy for the public
        number of rows.
    n_points : int of 1 or more
        Points that are released.
    random_state : int, Source or None
        None in production; a seed or a source in tests, which voids the guarantee.

    Examples
    --------
    >>> from cumae.concepts import Thresholds
    >>> from cumae.sanitizers import MultiplicativeWeights
    >>> weights = MultiplicativeWeights(Thresholds(), 1.0, domain=range(8), n_points=40)
    >>> points = weights.sanitize([2] * 30_000 + [6] * 10_000)
    >>> points.shape, bool(abs((points < 4).mean() - 0.75) < 0.15)
    ((40, 1), True)
    >>> weights.cost
    Pure(eps=1.0)
    """

    claims = ("MW",)

    def __init__(
        self,
        concept_class: ConceptClass,
        epsilon: float,
        domain: ArrayLike,
        rounds: int | str = "auto",
        *,
        n_points: int = 100,
        random_state: int | Source | None = None,
    ) -> None:
        self.epsilon = check_epsilon(epsilon)
        self.concept_class = concept_class
        self.domain = Domain(concept_class, domain)
        self.rounds = (
            check_choice(rounds, ("auto",), "rounds")
            if isinstance(rounds, str)
            else check_count(rounds, "rounds", least=1)
        )
        if isinstance(self.rounds, int) and self.rounds > LARGEST_ROUNDS:
            raise InvalidParameter(f"rounds={rounds!r}: give at most {LARGEST_ROUNDS}.")
        self.n_points = check_count(n_points, "n_points", least=1)
        if 0 < self.epsilon < 1e-6:
            raise InvalidParameter(
                f"epsilon={epsilon!r} is too small to measure; give 1e-6 or more."
            )
        super().__init__(random_state)

    @property
    def cost(self) -> Cost:
        """One release."""
        if self.rounds == "auto":  # depends on the number of rows, which is not known here
            return Pure(self.epsilon)
        share = self._share(int(self.rounds))
        return compose([(BoundedRange(share), int(self.rounds)), (Pure(share), int(self.rounds))])

    def _share(self, rounds: int) -> float:
        return share_of(self.epsilon, Fraction(1, 2 * rounds))

    def check_size(self, n_rows: int, n_columns: int) -> None:
        check_data_rows(n_rows, LARGEST_ROWS)
        check_table(self.domain.points, n_columns, "domain")

    def sanitize(self, X: ArrayLike) -> Floats:
        counts = self.domain.histogram(X)
        rows = int(counts.sum())
        check_data_rows(rows, LARGEST_ROWS)
        queries = self.domain.queries
        uniform = np.full(len(self.domain), 1 / len(self.domain))
        if not rows or not len(queries) or self.epsilon == 0:
            return self.domain.table(largest_remainder(uniform, self.n_points))
        answers = queries @ counts
        rounds = self.n_rounds(rows)
        choice = ExponentialMechanism(self._share(rounds), random_state=self.source)
        noise = LaplaceNoise(self._share(rounds), random_state=self.source)
        weights, mean = uniform, np.zeros(len(self.domain))
        for _ in range(rounds):
            mean += weights / rounds
            # Floats below are computed from what is already released; scores are whole numbers.
            guesses = np.rint(rows * (queries @ weights)).astype(np.int64)
            query = queries[choice.choose(np.abs(answers - guesses))]
            measured = int(noise.release(int(query @ counts)))
            seen = min(max(measured, 0), rows) / rows
            weights = weights * np.exp(query * (seen - float(query @ weights)) / 2)
            weights /= weights.sum()
        return self.domain.table(largest_remainder(mean, self.n_points))

    def n_rounds(self, n_rows: int) -> int:
        """Return the number of rounds for a table with ``n_rows`` rows."""
        if self.rounds != "auto":
            return int(self.rounds)
        rows = check_count(n_rows, "n_rows", least=1)
        return min(range(1, LARGEST_ROUNDS + 1), key=lambda rounds: self._bound(rows, rounds, 0.05))

    def accuracy(self, n_rows: int, beta: float = 0.05) -> float:
        """Return the largest error over all queries, with probability 1 - beta."""
        rows = check_count(n_rows, "n_rows", least=1)
        if self.epsilon == 0 or not len(self.domain.queries):
            return 1.0 if len(self.domain.queries) else 0.0
        return min(1.0, self._bound(rows, self.n_rounds(rows), check_beta(beta)))

    def _bound(self, rows: int, rounds: int, beta: float) -> float:
        share = self._share(rounds)
        learnt = 2 * math.sqrt(math.log(len(self.domain)) / rounds)
        chosen = 2 / share * math.log(2 * rounds * len(self.domain.queries) / beta) + 1
        measured = math.log(4 * rounds / beta) / share
        rounded = len(self.domain) / (4 * self.n_points)
        return learnt + (chosen + measured) / rows + rounded + ROUNDING
