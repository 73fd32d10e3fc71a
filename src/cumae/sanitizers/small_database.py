"""The exponential mechanism over all small databases of an explicit domain."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations_with_replacement, islice

import numpy as np
from numpy.typing import ArrayLike

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.data import check_table
from cumae.errors import InvalidParameter
from cumae.mechanisms import ExponentialMechanism
from cumae.parameters import check_count
from cumae.privacy import BoundedRange, Cost
from cumae.privacy.validation import check_epsilon, check_nonnegative
from cumae.randomness import Source
from cumae.sanitizers.base import (
    Domain,
    Sanitizer,
    check_beta,
    check_data_rows,
    largest_error,
)

LARGEST_COUNT = 10**6  # databases that are listed
LARGEST_ROWS = 2**40
LARGEST_SIZE = 2**20
LARGEST_BLOCK = 2_000_000  # errors that are held at a time


@claim("SMALLDB")
class SmallDatabase(Sanitizer):
    """A sanitizer: a small database that errs little on all differences of two concepts.

    Every multiset of ``size`` points of the domain is a candidate; its score is minus its largest
    error over the queries "do these two concepts disagree here?". The draw is exact.

    Parameters
    ----------
    concept_class : ConceptClass
        The class whose differences have to be right.
    epsilon : float of 0 or more
        Privacy parameter.
    domain : array-like
        A short public table of all points there are. Rows that are not in it go to one nearby.
    size : int of 1 or more, or None
        Points of the released database.
    alpha : float above 0, or None
        Instead of a size: half of this error may come from the small size.
    random_state : int, Source or None
        None in production; a seed or a source in tests, which voids the guarantee.

    Attributes
    ----------
    n_databases
        Number of candidates.

    Examples
    --------
    >>> from cumae.concepts import Thresholds
    >>> from cumae.sanitizers import SmallDatabase
    >>> grades = SmallDatabase(Thresholds(), 1.0, domain=[1, 2, 3, 4], size=5)
    >>> grades.n_databases
    56
    >>> grades.sanitize([1] * 4000 + [3] * 6000).ravel().tolist()
    [1.0, 1.0, 3.0, 3.0, 3.0]
    >>> round(grades.accuracy(10_000, beta=0.01), 3)
    0.202
    """

    claims = ("SMALLDB",)

    def __init__(
        self,
        concept_class: ConceptClass,
        epsilon: float,
        domain: ArrayLike,
        size: int | None = None,
        alpha: float | None = None,
        *,
        random_state: int | Source | None = None,
    ) -> None:
        self.epsilon = check_epsilon(epsilon)
        self.concept_class = concept_class
        self.domain = Domain(concept_class, domain)
        self.size = self.n_points = self._check_size(size, alpha)
        self.n_databases = math.comb(len(self.domain) + self.size - 1, self.size)
        if self.n_databases > LARGEST_COUNT:
            raise InvalidParameter(
                f"{len(self.domain)} points have {shown_count(self.n_databases)} databases of size "
                f"{self.size}, more than {LARGEST_COUNT} to list; give a smaller size or domain, a "
                "larger alpha, or use MultiplicativeWeights."
            )
        super().__init__(random_state)

    def _check_size(self, size: int | None, alpha: float | None) -> int:
        if (size is None) == (alpha is None):
            raise InvalidParameter("give either a size or an alpha.")
        if size is not None:
            if check_count(size, "size", least=1) > LARGEST_SIZE:
                raise InvalidParameter(f"size={size!r}: give at most {LARGEST_SIZE}.")
            return int(size)
        wanted = check_nonnegative(alpha, "alpha")
        if not 0 < wanted < 1:
            raise InvalidParameter(f"alpha={alpha!r} is not strictly between 0 and 1.")
        low, high = 0, 1
        while self._rounding(high) > wanted / 2 and high < LARGEST_SIZE:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._rounding(middle) <= wanted / 2 else (middle, high)
        return high

    def _rounding(self, size: int) -> float:
        """Bound the error of the best database of that size; it falls with the size."""
        sampled = math.sqrt(math.log(2 * len(self.domain.queries) + 1) / (2 * size))
        return min(len(self.domain) / (4 * size), sampled)

    @property
    def cost(self) -> Cost:
        """One release: a single draw of the exponential mechanism."""
        return BoundedRange(self.epsilon)

    def check_size(self, n_rows: int, n_columns: int) -> None:
        check_data_rows(n_rows, LARGEST_ROWS)
        check_table(self.domain.points, n_columns, "domain")

    def sanitize(self, X: ArrayLike) -> Floats:
        counts = self.domain.histogram(X)
        check_data_rows(int(counts.sum()), LARGEST_ROWS)
        mechanism = ExponentialMechanism(self.epsilon, self.size, random_state=self.source)
        place = mechanism.choose(self._scores(counts))
        database = list(next(islice(self._databases(), place, None)))
        return self.domain.points[database]

    def _databases(self) -> Iterator[tuple[int, ...]]:
        return combinations_with_replacement(range(len(self.domain)), self.size)

    def _scores(self, counts: Integers) -> Integers:
        """Minus the largest error of each database, times the numbers of rows and of points."""
        rows = counts.sum()
        scores = []
        databases = self._databases()
        chunk_size = max(1, LARGEST_BLOCK // (1 + len(self.domain.queries)))
        while chunk := list(islice(databases, chunk_size)):
            held = np.zeros((len(chunk), len(self.domain)), dtype=np.int64)
            np.add.at(held, (np.arange(len(chunk))[:, None], np.array(chunk)), 1)
            scores.append(-largest_error(self.domain.queries, self.size * counts, rows * held))
        return np.concatenate(scores)

    def accuracy(self, n_rows: int, beta: float = 0.05) -> float:
        """Return the largest error over all queries, with probability 1 - beta."""
        rows = check_count(n_rows, "n_rows", least=1)
        if self.epsilon == 0:
            return 1.0
        drawn = 2 / (self.epsilon * rows) * math.log(self.n_databases / check_beta(beta))
        return min(1.0, self._rounding(self.size) + drawn)


def shown_count(count: int) -> str:
    """Return a whole number, or its order of magnitude if it is long."""
    return str(count) if count < 10**12 else f"about 10**{len(str(count)) - 1}"
