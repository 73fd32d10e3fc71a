"""Private ranges of columns of which nothing is known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log1p  # number by number, which numpy's logarithm does not promise

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.data import Bounds, check_table
from cumae.privacy import Cost
from cumae.privacy.validation import check_epsilon
from cumae.randomness import Source
from cumae.sanitizers.base import Sanitizer
from cumae.sanitizers.ordered import EvenSteps
from cumae.sanitizers.quantiles import Quantiles

SMALLEST, LARGEST = 2.0**-32, 2.0**64  # sizes of numbers that are told apart
OCTAVES = 97  # 96 doublings from the smallest to the largest, and one place for what is smaller
STEP = 1 / 8  # of a doubling: two numbers that differ by less than 9% may count as one
FENCE = 1.5  # how far a range reaches beyond the quartiles, in distances of these, as in a box plot
NOTHING = (-1.0, 1.0)  # the range of a column whose outer quartiles are 0


@claim("RANGES")
class Ranges(Sanitizer):
    """A sanitizer: a range for each column of numbers about which nothing was declared.

    Numbers are put on a scale on which each doubling takes the same space, for both signs, from
    2^-32 to 2^64 in size; smaller ones count as 0, and larger ones as 2^64. On that scale, the
    three quartiles of each column are drawn by :class:`Quantiles`. The range reaches one and a half
    times the distance of the outer two beyond them, as the whiskers of a box plot do.

    A range is always finite, and never empty. Where both outer quartiles are 0, it is (-1, 1).

    Parameters
    ----------
    epsilon : float of 0 or more
        Privacy parameter of the whole table.
    n_columns : int of 1 or more
        How many columns there are.
    random_state : int, Source or None
        None in production; a seed or a source in tests, which voids the guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.sanitizers import Ranges
    >>> heights = np.linspace(150, 200, 20_000)
    >>> ((low, high),) = Ranges(1.0, 1).find(heights)
    >>> low < 150 < 200 < high, high - low < 250
    (True, True)
    """

    claims = ("RANGES", "QUANT")

    def __init__(
        self, epsilon: float, n_columns: int, *, random_state: int | Source | None = None
    ) -> None:
        self.epsilon = check_epsilon(epsilon)
        self.n_columns = n_columns
        scale = (-OCTAVES, OCTAVES, STEP)
        self._quartiles = Quantiles(epsilon, [scale] * n_columns, 3, random_state=random_state)
        super().__init__(random_state)

    @property
    def cost(self) -> Cost:
        """That of the quartiles: everything else is computed from them."""
        return self._quartiles.cost

    def sanitize(self, X: ArrayLike) -> Floats:
        """Return the ends of each column's range, as a table of two rows."""
        return np.array(self.find(X)).T

    @claim("RANGES")
    def find(self, X: Any) -> list[Bounds]:
        """Return a range for each column.

        Parameters
        ----------
        X : array-like
            Private rows of numbers; infinite ones are the largest.

        Returns
        -------
        list of (low, high)
            One for each column.
        """
        drawn = self._quartiles.sanitize(on_scale(check_table(X)))
        return [_range(float(first), float(last)) for first, _, last in drawn.T]

    @claim("RANGES")
    def find_by_counts(self, counts: Integers) -> list[Bounds]:
        """Return a range for each column, given how many rows are in each place of the scale.

        Parameters
        ----------
        counts : array of int
            What ``scale_counts`` returns for all rows.
        """
        drawn = self._quartiles.from_counts(list(counts))
        return [_range(float(first), float(last)) for first, _, last in drawn.T]

    def rank_error(self, n_rows: int) -> float:
        """Return by how many rows a quartile is usually off at most, from public numbers alone."""
        if self.epsilon == 0:
            return math.inf
        # Each column has two levels of draws, and an equal share of epsilon in each.
        rate = self.epsilon / (2 * self.n_columns) / 2
        return math.log(2 * OCTAVES / STEP) / rate if n_rows else math.inf


@claim("RANGES")
def scale_counts(numbers: Floats) -> Integers:
    """Return how many rows are in each place of the scale of doublings, a row for each column.

    Parameters
    ----------
    numbers : array of float
        One column for each column.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.sanitizers.ranges import scale_counts
    >>> counts = scale_counts(np.array([[1.0, 0.0], [1.0, np.inf]]))
    >>> counts.shape, counts.max(axis=1).tolist()
    ((2, 1553), [2, 1])
    """
    grid = EvenSteps(-float(OCTAVES), STEP, round(2 * OCTAVES / STEP))
    places = [grid.places(column) for column in on_scale(numbers).T]
    return np.array([np.bincount(place, minlength=grid.size) for place in places])


@claim("RANGES")
def on_scale(numbers: Floats) -> Floats:
    """Return numbers on the scale of doublings, each by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.sanitizers.ranges import on_scale
    >>> on_scale(np.array([0.0, 2.0**-32, 1.0, -2.0, np.inf])).tolist()
    [0.0, 1.0, 33.0, -34.0, 97.0]
    """
    size = np.minimum(np.abs(numbers), LARGEST) / SMALLEST
    with np.errstate(divide="ignore"):
        part, power = np.frexp(np.maximum(size, 1))
        doublings = np.where(size < 1, size, 1 + power + log1p(part - 1) / math.log(2))
    return np.asarray(np.copysign(doublings, numbers))


def off_scale(doublings: float) -> float:
    """Return the number at a place of the scale of doublings.

    Examples
    --------
    >>> from cumae.sanitizers.ranges import off_scale
    >>> off_scale(33.0), off_scale(-34.0), off_scale(0.0)
    (1.0, -2.0, 0.0)
    """
    size = abs(doublings)
    return math.copysign(SMALLEST * (size if size < 1 else 2.0 ** (size - 1)), doublings)


def _range(first: float, last: float) -> Bounds:
    """Return the range around two quartiles on the scale of doublings."""
    if abs(first) < 1 and abs(last) < 1:
        return NOTHING
    # A place of the grid stands for all numbers up to it and above the one before.
    low, high = off_scale(first - STEP), off_scale(last)
    reach = FENCE * (high - low)
    return low - reach, high + reach
