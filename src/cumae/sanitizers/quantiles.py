"""Private quantiles of ordered columns: the middle one first, then those of the two halves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.data import check_table
from cumae.errors import InvalidParameter
from cumae.parameters import check_count
from cumae.privacy import BoundedRange, Cost, compose
from cumae.privacy.validation import check_epsilon
from cumae.randomness import Source, integers, permutation, weighted_choice
from cumae.remembering import remembered
from cumae.sanitizers.base import Sanitizer, check_beta, check_data_rows, over, share_of
from cumae.sanitizers.ordered import AllFloats, OrderedValues, values_within

LARGEST_ROWS = 2**30
LARGEST_POINTS = 4096


@dataclass(frozen=True)
class Node:
    """One draw: point ``place`` of 1, ..., m, between the points ``low`` and ``high``."""

    place: int
    low: int
    high: int
    level: int

    @property
    def share(self) -> Fraction:
        """Which share of the rows between the two belongs below the point."""
        return Fraction(self.place - self.low, self.high - self.low)


@claim("QUANT")
@remembered(64)
def plan(n_points: int) -> tuple[Node, ...]:
    """Return the draws level by level: the middle point first, then the middles of the halves."""
    nodes: list[Node] = []
    level = [(0, n_points + 1)]
    while level:
        middles = [((low + high) // 2, low, high) for low, high in level]
        depth = 0 if not nodes else nodes[-1].level + 1
        nodes += [Node(place, low, high, depth) for place, low, high in middles]
        halves = [half for mid, low, high in middles for half in ((low, mid), (mid, high))]
        level = [(low, high) for low, high in halves if high - low > 1]
    return tuple(nodes)


@claim("QUANT")
@remembered(64)
def level_ranges(n_points: int) -> tuple[Fraction, ...]:
    """Return, for each level, the range of losses at rate 1 that a replaced row can cause.

    A row that is replaced inside of the rows of one draw counts 2. One that leaves the rows of one
    draw and enters those of another counts 2 max(share, 1 - share) in each: 1 + 1 for halves.
    """
    levels: dict[int, list[Fraction]] = {}
    for node in plan(n_points):
        levels.setdefault(node.level, []).append(2 * max(node.share, 1 - node.share))
    return tuple(
        max(Fraction(2), sum(sorted(levels[level])[-2:], Fraction(0))) if level else Fraction(2)
        for level in sorted(levels)
    )


@claim("QUANT")
def level_shares(epsilon: float, n_points: int) -> tuple[float, ...]:
    """Split epsilon over the levels in proportion to their ranges; never more in total."""
    ranges = level_ranges(n_points)
    return tuple(share_of(epsilon, part / sum(ranges)) for part in ranges)


@claim("QUANT")
def draw_places(
    places: Integers,
    size: int,
    shares: Sequence[float],
    n_points: int,
    order: Integers,
    source: Source,
) -> Integers:
    """Draw the places of the quantile points of one column.

    Parameters
    ----------
    places : array of int
        The place of each row in the domain, from 0 to ``size`` - 1.
    size : int of 1 or more
        Number of places.
    shares : sequence of float
        Epsilon of each level.
    n_points : int of 1 or more
        How many points are drawn.
    order : array of int
        A random order of the rows, which tells rows in the same place apart.
    source : Source
        Where random bits come from.
    """
    slots = max(1, len(places))
    rows = np.sort(places * slots + order)
    ranges = level_ranges(n_points)
    cuts = {0: 0, n_points + 1: size * slots}
    for node in plan(n_points):
        rate = over(shares[node.level], ranges[node.level])
        starts, counts, scores = cells_of_cuts(rows, cuts[node.low], cuts[node.high], node.share)
        if isinstance(rate, Fraction):
            rate /= node.share.denominator
        cell = weighted_choice(scores, rate, counts=counts, source=source)
        cuts[node.place] = int(starts[cell]) + integers(int(counts[cell]), source=source)
    found = [min(cuts[place] // slots, size - 1) for place in range(1, n_points + 1)]
    return np.array(found, dtype=np.int64)


@claim("QUANT")
def cells_of_cuts(
    rows: Integers, low: int, high: int, share: Fraction
) -> tuple[Integers, Integers, Integers]:
    """Return the runs of cuts from ``low`` to ``high`` with equal scores: first cut, number, score.

    A row lies below a cut if its number is less. The score of a cut is minus the distance of the
    number of rows between ``low`` and the cut from its target, times the share's denominator.

    Parameters
    ----------
    rows : array of int
        The numbers of the rows, in order.
    low, high : int
        The first and the last cut.
    share : Fraction
        Which share of the rows between them should lie below the cut: its target.
    """
    inside = rows[np.searchsorted(rows, low) : np.searchsorted(rows, high)]
    edges = np.concatenate([[low], inside + 1, [high + 1]])
    below = np.arange(len(inside) + 1)
    scores = -np.abs(below * share.denominator - share.numerator * len(inside))
    return edges[:-1], np.diff(edges), scores


@claim("QUANT")
@remembered(64)
def carried_errors(n_points: int) -> float:
    """Return how many errors of a single draw add up, at most, in the rank of a point."""
    error = {0: Fraction(0), n_points + 1: Fraction(0)}
    for node in plan(n_points):
        ends = (1 - node.share) * error[node.low] + node.share * error[node.high]
        error[node.place] = 1 + ends
    return float(max(error.values()))


@claim("QUANT", "STABLE")
def rank_bound(shares: Sequence[float], n_points: int, cuts: int, draws: int, beta: float) -> float:
    """Bound all rank errors of ``draws`` draws among at most ``cuts`` cuts, up to chance beta.

    Parameters
    ----------
    shares : sequence of float
        Epsilon of each level.
    n_points : int of 1 or more
        Points of a column.
    cuts : int of 1 or more
        Number of cuts to draw from, at most.
    draws : int of 1 or more
        Number of draws.
    beta : float above 0 and below 1
        Chance that an error is larger.
    """
    rate = min(
        float(over(share, part)) for share, part in zip(shares, level_ranges(n_points), strict=True)
    )
    if rate == 0:
        return math.inf
    single = 0.5 + (math.log(draws) + math.log(cuts) - math.log(beta)) / rate
    return carried_errors(n_points) * single


@claim("QUANT")
class Quantiles(Sanitizer):
    """A sanitizer: evenly spaced quantiles of each column.

    Point j of m lies near rank j n / (m + 1). Each column is treated on its own and gets an equal
    share of epsilon, so the lines of the result are no typical rows: use them to cut columns, for
    stumps, trees, boxes or intervals. Rows in the same place are put into a random order, so
    that a value which many rows share is released as often as it deserves.

    Parameters
    ----------
    epsilon : float of 0 or more
        Privacy parameter of the whole table.
    bounds : sequence or None
        What values a released point may have, fixed without looking at the rows: one (low, high)
        or (low, high, step) for all columns, or a list with one for each, None among them. With a
        step the values are low, low + step, and so on up to high; give step 1 for whole numbers.
        Without, they are 2^20 even steps. Rows outside are moved to the next bound. None means all
        finite floats, taken to 9 digits or more: nothing has to be known, and the rank error grows
        with ln 2^62 in place of ln(rows times values), about twofold.
    n_points : int of 1 or more
        Points a column; best one less than a power of 2.
    random_state : int, Source or None
        None in production; a seed or a source in tests, which voids the guarantee.

    Examples
    --------
    >>> from cumae.sanitizers import Quantiles
    >>> answers = [[1 + i % 13, i % 2] for i in range(20_000)]
    >>> quantiles = Quantiles(1.0, bounds=[(1, 13, 1), (0, 1, 1)], n_points=3)
    >>> quantiles.sanitize(answers)[1].tolist()[0]
    7.0
    >>> quantiles.cost.epsilon(0)
    1.0
    >>> quantiles.rank_error(20_000, 2, beta=0.01) < 500
    True
    """

    claims = ("QUANT",)

    def __init__(
        self,
        epsilon: float,
        bounds: Sequence[Any] | None = None,
        n_points: int = 15,
        *,
        random_state: int | Source | None = None,
    ) -> None:
        self.epsilon = check_epsilon(epsilon)
        self.bounds = bounds
        self.n_points = check_points(n_points)
        self._columns = values_within(bounds)
        self._shares = level_shares(self.epsilon, self.n_points)
        super().__init__(random_state)

    @property
    def cost(self) -> Cost:
        """One release, for any number of columns: one draw of bounded range a level."""
        if isinstance(self._columns, list):
            return self.cost_of(len(self._columns))
        return compose([BoundedRange(share) for share in self._shares])

    def cost_of(self, n_columns: int) -> Cost:
        """Return the cost for that many columns: at most epsilon, and less at a delta above 0."""
        check_count(n_columns, "n_columns", least=1)
        return compose([(BoundedRange(share), n_columns) for share in self._split(n_columns)])

    def _split(self, n_columns: int) -> list[float]:
        return [share_of(share, Fraction(1, max(1, n_columns))) for share in self._shares]

    def check_size(self, n_rows: int, n_columns: int) -> None:
        check_data_rows(n_rows, LARGEST_ROWS)
        self._columns_of(n_rows, n_columns)

    def sanitize(self, X: ArrayLike) -> Floats:
        table = check_table(X)
        rows, n_columns = table.shape
        check_data_rows(rows, LARGEST_ROWS)
        columns = self._columns_of(rows, n_columns)
        shares = self._split(n_columns)
        points = np.empty((self.n_points, n_columns))
        order = permutation(rows, self.source)
        for number, column in enumerate(columns):
            places = column.places(table[:, number])
            drawn = draw_places(places, column.size, shares, self.n_points, order, self.source)
            points[:, number] = column.values(drawn)
        return points

    @claim("QUANT")
    def from_counts(self, counts: Sequence[Integers]) -> Floats:
        """Return what ``sanitize`` does, given how many rows of each column are in each place.

        Parameters
        ----------
        counts : sequence of array of int
            One array for each column; each adds up to the number of rows.
        """
        rows = int(counts[0].sum())
        check_data_rows(rows, LARGEST_ROWS)
        columns = self._columns_of(rows, len(counts))
        shares = self._split(len(counts))
        points = np.empty((self.n_points, len(counts)))
        order = permutation(rows, self.source)
        for number, (column, count) in enumerate(zip(columns, counts, strict=True)):
            places = np.repeat(np.arange(column.size), count)
            # In each place, the rows have the first numbers of one random order.
            own = order[np.arange(rows) - np.repeat(np.cumsum(count) - count, count)]
            drawn = draw_places(places, column.size, shares, self.n_points, own, self.source)
            points[:, number] = column.values(drawn)
        return points

    def _columns_of(self, n_rows: int, n_columns: int) -> list[OrderedValues]:
        within = self._columns
        each = within if isinstance(within, list) else [within] * n_columns
        if len(each) != n_columns:
            raise InvalidParameter(
                f"bounds for {len(each)} columns, but there are {n_columns}; give one for each, or "
                "a single pair for all."
            )
        return [AllFloats(n_rows) if column is None else column for column in each]

    def rank_error(self, n_rows: int, n_columns: int = 1, beta: float = 0.05) -> float:
        """Return how far all ranks are off at most, with probability 1 - beta.

        Point j has at most j n / (m + 1) + error rows below it, and at most n (1 - j / (m + 1)) +
        error above it, after rows have been moved onto the domain.

        Parameters
        ----------
        n_rows : int of 0 or more
            Number of rows n.
        n_columns : int of 1 or more
            Number of columns, which share epsilon.
        beta : float above 0 and below 1
            Chance that an error is larger.
        """
        rows = check_count(n_rows, "n_rows")
        columns = self._columns_of(rows, check_count(n_columns, "n_columns", least=1))
        cuts = max(column.size for column in columns) * max(1, rows) + 1
        draws = self.n_points * n_columns
        return rank_bound(self._split(n_columns), self.n_points, cuts, draws, check_beta(beta))

    def interval_error(self, n_rows: int, n_columns: int = 1, beta: float = 0.05) -> float:
        """Return how far the share of points between any two cuts of a column is off at most.

        Parameters
        ----------
        n_rows : int of 0 or more
            Number of rows.
        n_columns : int of 1 or more
            Number of columns, which share epsilon.
        beta : float above 0 and below 1
            Chance that an error is larger.
        """
        error = self.rank_error(n_rows, n_columns, beta) / max(1, n_rows)
        return min(1.0, 2 * (1 / (self.n_points + 1) + error))


def check_points(n_points: object) -> int:
    """Return a usable number of points."""
    count = check_count(n_points, "n_points", least=1)
    if count > LARGEST_POINTS:
        raise InvalidParameter(f"n_points={count!r}: give at most {LARGEST_POINTS}.")
    return count
