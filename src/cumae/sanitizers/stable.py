"""Quantiles without declared bounds: name the places where rows are, then draw among them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.data import check_table
from cumae.errors import InvalidParameter
from cumae.mechanisms.sparse import upper_tail
from cumae.parameters import check_count
from cumae.privacy import Approximate, Cost
from cumae.privacy.validation import check_delta, check_epsilon
from cumae.randomness import Source, discrete_laplace, permutation
from cumae.sanitizers.base import Sanitizer, check_beta, check_data_rows, over, share_of
from cumae.sanitizers.ordered import floats_of, signed_keys
from cumae.sanitizers.quantiles import (
    LARGEST_ROWS,
    check_points,
    draw_places,
    level_shares,
    rank_bound,
)

# A key is a float's sign, exponent and first 40 bits behind the point: 12 digits. Bins are the keys
# with the same first bits; a named bin is cut into 2^8 of the next depth.
DROPPED = 12
KEY_BITS = 52
STEP_BITS = 8
DEPTHS = (12, 20, 28, 36, 44, 52)
LEAST_EPSILON = 1e-6


@claim("STABLE", "HIST")
def least_count(rate: float, chance: float) -> int:
    """Return the least threshold that a bin with one row passes with at most that chance.

    Examples
    --------
    >>> from cumae.sanitizers.stable import least_count
    >>> least_count(0.5, 1e-6)
    28
    """
    if rate == math.inf:
        return 1
    # P(1 + noise >= t) = exp(-rate (t - 1)) / (1 + exp(-rate)) for t of 2 or more.
    start = math.ceil(-math.log(chance * (1.0 + math.exp(-rate))) / rate)
    count = max(2, start)
    while upper_tail(rate, count - 1.0) * (1 + 1e-9) > chance:
        count += 1
    return count


@claim("STABLE")
def name_bins(keys: Integers, rate: Fraction | float, least: int, source: Source) -> Integers:
    """Return places, in order, at which the rows can be cut: edges of bins that hold many rows.

    The edges of all bins of the first depth are always there.

    Parameters
    ----------
    keys : array of int
        The rows, as whole numbers from 0 to 2^52 - 1.
    rate : Fraction or float
        How fast the weights of the noise fall: a count is off by k with a chance
        proportional to exp(-rate k).
    least : int
        The noisy count from which on a bin is named.
    source : Source
        Where random bits come from.
    """
    top = KEY_BITS - DEPTHS[0]
    edges = [np.arange(2 ** DEPTHS[0], dtype=np.int64) << top]
    for depth in DEPTHS:
        width = KEY_BITS - depth
        bins, counts = np.unique(keys >> width, return_counts=True)
        noisy = counts + discrete_laplace(rate, len(counts), source)
        named = bins[noisy >= least] << width
        inner = np.arange(2 ** min(STEP_BITS, width), dtype=np.int64)
        inner <<= max(0, width - STEP_BITS)
        edges.append((named[:, None] + inner).ravel())
        edges.append(named + (1 << width))
    found: Integers = np.unique(np.concatenate(edges))
    return np.asarray(found[found < 2**KEY_BITS])


@claim("STABLE")
class StableThresholds(Sanitizer):
    """A sanitizer: quantiles of columns of which nothing is known, not even bounds.

    Half of epsilon names bins of the float order in which many rows lie: bins are looked at by
    growing numbers of leading bits, and a bin is named if its noisy count passes a threshold that
    a single row hardly ever reaches. Empty places are never named. The other half draws quantiles
    among the edges of the named bins as :class:`Quantiles` does.

    Parameters
    ----------
    epsilon, delta : float
        Privacy parameters of the whole table; both above 0.
    n_points : int of 1 or more
        Points a column; best one less than a power of 2.
    random_state : int, Source or None
        None in production; a seed or a source in tests, which voids the guarantee.

    Examples
    --------
    >>> from cumae.sanitizers import StableThresholds
    >>> years = [[1950 + i % 60] for i in range(60_000)]
    >>> points = StableThresholds(1.0, 1e-6, n_points=3).sanitize(years)
    >>> bool((abs(points.ravel() - [1965, 1980, 1995]) < 3).all())
    True
    """

    claims = ("STABLE", "QUANT")

    def __init__(
        self,
        epsilon: float,
        delta: float,
        n_points: int = 15,
        *,
        random_state: int | Source | None = None,
    ) -> None:
        self.epsilon = check_epsilon(epsilon)
        self.delta = check_delta(delta)
        if self.epsilon < LEAST_EPSILON or self.delta < 1e-100:
            raise InvalidParameter(
                f"epsilon={epsilon!r}, delta={delta!r}: give epsilon of {LEAST_EPSILON} or more "
                "and delta above 0, or use Quantiles."
            )
        self.n_points = check_points(n_points)
        super().__init__(random_state)

    @property
    def cost(self) -> Cost:
        """One release, for any number of columns."""
        return Approximate(self.epsilon, self.delta)

    def threshold(self, n_columns: int = 1) -> int:
        """Return the noisy count from which on a bin is named."""
        return self._split(check_count(n_columns, "n_columns", least=1)).least

    def _split(self, n_columns: int) -> _Split:
        count = max(1, n_columns)
        half = share_of(self.epsilon, Fraction(1, 2 * count))
        # A replaced row changes two bins at each depth.
        rate = over(half, 2 * len(DEPTHS))
        chance = self.delta / (2 * len(DEPTHS) * count) * (1 - 1e-9)
        # Rounded down, so that the chance at the true rate is no larger.
        least = least_count(float(rate) * (1 - 1e-12), chance)
        return _Split(rate, least, level_shares(half, self.n_points))

    def check_size(self, n_rows: int, n_columns: int) -> None:
        check_data_rows(n_rows, LARGEST_ROWS)
        self._split(n_columns)

    def sanitize(self, X: ArrayLike) -> Floats:
        table = check_table(X)
        rows, n_columns = table.shape
        check_data_rows(rows, LARGEST_ROWS)
        split = self._split(n_columns)
        points = np.empty((self.n_points, n_columns))
        order = permutation(rows, self.source)
        for number in range(n_columns):
            keys = signed_keys(table[:, number], DROPPED) + 2 ** (KEY_BITS - 1)
            edges = name_bins(keys, split.rate, split.least, self.source)
            places = np.searchsorted(edges, keys, side="right") - 1
            drawn = draw_places(places, len(edges), split.shares, self.n_points, order, self.source)
            points[:, number] = floats_of(edges[drawn] - 2 ** (KEY_BITS - 1), DROPPED)
        return points

    def rank_error(self, n_rows: int, n_columns: int = 1, beta: float = 0.05) -> float:
        """Return how far all ranks are off at most, with probability 1 - beta.

        Point j has at most j n / (m + 1) + error rows below it, and at most n (1 - j / (m + 1)) +
        error above it, rows being taken to 12 digits.

        Parameters
        ----------
        n_rows : int of 0 or more
            Number of rows n.
        n_columns : int of 1 or more
            Number of columns, which share epsilon and delta.
        beta : float above 0 and below 1
            Chance that an error is larger.
        """
        rows = check_count(n_rows, "n_rows")
        split = self._split(check_count(n_columns, "n_columns", least=1))
        half = check_beta(beta) / 2
        bins = max(1, len(DEPTHS) * rows)
        noise = math.log(n_columns * bins / half) / float(split.rate)
        edges = 2 ** DEPTHS[0] + (2**STEP_BITS + 1) * bins
        cuts = edges * max(1, rows) + 1
        draws = self.n_points * n_columns
        ranks = rank_bound(split.shares, self.n_points, cuts, draws, half)
        return ranks + split.least + noise

    def interval_error(self, n_rows: int, n_columns: int = 1, beta: float = 0.05) -> float:
        """Return how far the share of points between any two cuts of a column is off at most.

        Parameters
        ----------
        n_rows : int of 0 or more
            Number of rows.
        n_columns : int of 1 or more
            Number of columns, which share epsilon and delta.
        beta : float above 0 and below 1
            Chance that an error is larger.
        """
        error = self.rank_error(n_rows, n_columns, beta) / max(1, n_rows)
        return min(1.0, 2 * (1 / (self.n_points + 1) + error))


@dataclass(frozen=True)
class _Split:
    rate: Fraction | float
    least: int
    shares: tuple[float, ...]
