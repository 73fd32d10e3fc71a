"""Values that many rows share, of any kind: the stability histogram."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data import check_column, plain_value
from cumae.errors import InvalidData, InvalidParameter
from cumae.mechanisms.sparse import upper_tail
from cumae.parameters import check_count
from cumae.privacy import Approximate, Cost
from cumae.privacy.validation import check_delta, check_epsilon
from cumae.randomness import Source, discrete_laplace
from cumae.sanitizers.base import Sanitizer, check_beta, check_data_rows, over
from cumae.sanitizers.quantiles import LARGEST_ROWS
from cumae.sanitizers.stable import LEAST_EPSILON, least_count

CHANGED_BINS = 2  # by a replaced row: the one that it leaves, and the one that it enters


class SharedValues(NamedTuple):
    """Values that were found, in their order, with the noisy number of rows of each."""

    values: NDArray[Any]
    counts: Integers


@claim("HIST")
class StabilityHistogram(Sanitizer):
    """A sanitizer: the values of one column that many rows share, of any kind.

    Each value that occurs gets a count with integer noise, and is released if that count reaches a
    threshold which a value with a single row hardly ever reaches. How many rows a value needs does
    not depend on how many rows or values there are, and nothing has to be declared.

    Parameters
    ----------
    epsilon, delta : float
        Privacy parameters; both above 0.
    random_state : int, Source or None
        None in production; a seed or a source in tests, which voids the guarantee.

    Examples
    --------
    >>> from cumae.sanitizers import StabilityHistogram
    >>> wards = ["ward 7"] * 400 + ["ward 12"] * 90 + [f"visitor {i}" for i in range(5_000)]
    >>> StabilityHistogram(1.0, 1e-6).sanitize(wards).tolist()
    ['ward 12', 'ward 7']
    >>> StabilityHistogram(1.0, 1e-6).least_rows(20_000)
    48
    """

    claims = ("HIST",)

    def __init__(
        self, epsilon: float, delta: float, *, random_state: int | Source | None = None
    ) -> None:
        self.epsilon = check_epsilon(epsilon)
        self.delta = check_delta(delta)
        if self.epsilon < LEAST_EPSILON or self.delta < 1e-100:
            raise InvalidParameter(
                f"epsilon={epsilon!r}, delta={delta!r}: give epsilon of {LEAST_EPSILON} or more "
                "and delta above 0; without a delta, values that are not declared cannot be found."
            )
        super().__init__(random_state)

    @property
    def cost(self) -> Cost:
        """One release."""
        return Approximate(self.epsilon, self.delta)

    @property
    def rate(self) -> Fraction | float:
        """The decay of the weights of the noise: half of epsilon, for two bins that change."""
        return over(self.epsilon, CHANGED_BINS)

    @property
    def threshold(self) -> int:
        """The noisy count from which on a value is released."""
        # Both rounded, so that the chance at the true rate is no larger.
        chance = self.delta / CHANGED_BINS * (1 - 1e-9)
        return least_count(float(self.rate) * (1 - 1e-12), chance)

    def check_size(self, n_rows: int, n_columns: int) -> None:
        check_data_rows(n_rows, LARGEST_ROWS)
        if n_columns != 1:
            raise InvalidData(
                f"X has {n_columns} columns, but a histogram takes one; select it, or use "
                "Quantiles."
            )

    def most_points(self, n_rows: int) -> int:
        return n_rows

    def sanitize(self, X: ArrayLike) -> NDArray[Any]:
        """Return the values that were found, in their order.

        Parameters
        ----------
        X : array-like
            One column of rows: numbers, texts, dates or times. Their number is public.

        Returns
        -------
        array
            One column, if ``X`` has one; a list gets a list of values.
        """
        values = self.find(X).values
        return values.reshape(-1, 1) if np.ndim(X) == 2 else values

    @claim("HIST")
    def find(self, X: ArrayLike) -> SharedValues:
        """Return the values that were found with their noisy counts: one release.

        Parameters
        ----------
        X : array-like
            As for ``sanitize``.

        Returns
        -------
        SharedValues
            The values, in their order, and the noisy number of rows of each.
        """
        column = check_column(X)
        check_data_rows(len(column), LARGEST_ROWS)
        bins = Counter(map(plain_value, column.tolist() if column.dtype.kind != "M" else column))
        # Sorted before any coin: the order of rows decides nothing.
        values = sorted(bins)
        noise = discrete_laplace(self.rate, len(values), self.source)
        noisy = np.array([bins[value] for value in values], dtype=np.int64) + noise
        shown = np.flatnonzero(noisy >= self.threshold)
        return SharedValues(_array([values[place] for place in shown], column), noisy[shown])

    def chance(self, count: int) -> float:
        """Return the chance that a value with so many rows is released.

        Parameters
        ----------
        count : int of 0 or more
            Rows with this value.
        """
        rows = check_count(count, "count")
        return float(upper_tail(float(self.rate), float(self.threshold - rows))) if rows else 0.0

    def least_rows(self, n_rows: int, beta: float = 0.05) -> int:
        """Return with how many rows every value is released, with probability 1 - beta.

        Parameters
        ----------
        n_rows : int of 0 or more
            All rows.
        beta : float above 0 and below 1
            Chance that a value with so many rows is missed.
        """
        total, wanted = check_count(n_rows, "n_rows"), check_beta(beta)
        if self.epsilon == math.inf:
            return self.threshold
        count = self.threshold
        while total // count * (1 - self.chance(count)) > wanted:
            count += max(1, int(1 / float(self.rate)))
        return count


def _array(values: list[Any], column: NDArray[Any]) -> NDArray[Any]:
    """Return released values as a column, whose type follows from them and from a type of dates."""
    if column.dtype.kind == "M":
        return np.array(values, dtype=column.dtype)
    if values and isinstance(values[0], str):
        return np.array(values, dtype=object)
    return check_column(values)
