"""Private quantiles of ordered columns: the middle one first, then those of the two halves."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
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
from cumae.sanitizers.base import Sanitizer, check_beta, check_data_rows, over, share_of

GRID_STEPS = 2**20  # of a column with bounds and no step
LARGEST_GRID = 2**31
LARGEST_ROWS = 2**30
LARGEST_POINTS = 4096
LARGEST_KEY = int(np.array(np.finfo(np.float64).max).view(np.int64))  # magnitude of finite floats


class Column(ABC):
    """The values that a released point of a column may have, in order: its domain.

    Moving a row onto the domain looks at that row and at public numbers only, so neighbouring
    tables stay neighbours.
    """

    @abstractmethod
    def size(self, rows: int) -> int:
        """Return the number of values, for so many rows."""

    @abstractmethod
    def places(self, column: Floats) -> Integers:
        """Return the place of each row's value: 0 for the lowest."""

    @abstractmethod
    def values(self, places: Integers, rows: int) -> Floats:
        """Return the values at these places."""


@claim("QUANT")
@dataclass(frozen=True)
class Grid(Column):
    """low, low + step, low + 2 step, ...; a row goes to the next value above it."""

    low: float
    step: float
    steps: int

    def size(self, rows: int) -> int:
        del rows
        return self.steps + 1

    def places(self, column: Floats) -> Integers:
        inside = np.clip(column, self.low, self.low + self.steps * self.step)
        place = np.rint((inside - self.low) / self.step).astype(np.int64)
        place += self.low + place * self.step < inside
        return np.clip(place, 0, self.steps)

    def values(self, places: Integers, rows: int) -> Floats:
        del rows
        return np.asarray(self.low + places * self.step, dtype=np.float64)


@claim("QUANT")
@dataclass(frozen=True)
class AllFloats(Column):
    """All finite floats, in their own order, less as many last bits as numbering the rows needs."""

    def _dropped(self, rows: int) -> int:
        return rows.bit_length() + 2

    def size(self, rows: int) -> int:
        return 2 * (LARGEST_KEY >> self._dropped(rows)) + 1

    def places(self, column: Floats) -> Integers:
        dropped = self._dropped(len(column))
        return signed_keys(column, dropped) + (LARGEST_KEY >> dropped)

    def values(self, places: Integers, rows: int) -> Floats:
        dropped = self._dropped(rows)
        return floats_of(places - (LARGEST_KEY >> dropped), dropped)


@claim("QUANT", "STABLE")
def signed_keys(column: Floats, dropped: int) -> Integers:
    """Return integers in the order of the floats, less their last bits; infinite ones are cut.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.sanitizers.quantiles import floats_of, signed_keys
    >>> keys = signed_keys(np.array([-np.inf, -2.5, -0.0, 0.0, 1e-300, 7.0]), 18)
    >>> bool((np.diff(keys) >= 0).all()), floats_of(keys, 18)[[1, 5]].tolist()
    (True, [-2.5, 7.0])
    """
    most = np.finfo(np.float64).max
    finite = np.clip(column, -most, most)
    magnitude = np.abs(finite).view(np.int64) >> dropped
    return np.where(finite < 0, -magnitude, magnitude)


def floats_of(keys: Integers, dropped: int) -> Floats:
    """Return the floats of ``signed_keys``, towards zero; keys beyond all floats mean the last."""
    magnitude = (np.minimum(np.abs(keys), LARGEST_KEY >> dropped) << dropped).view(np.float64)
    return np.where(keys < 0, -magnitude, magnitude)


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
@lru_cache(maxsize=64)
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
@lru_cache(maxsize=64)
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
    places
        The place of each row in the domain, from 0 to ``size`` - 1.
    shares
        Epsilon of each level.
    order
        A random order of the rows, which tells rows in the same place apart.
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
    """
    inside = rows[np.searchsorted(rows, low) : np.searchsorted(rows, high)]
    edges = np.concatenate([[low], inside + 1, [high + 1]])
    below = np.arange(len(inside) + 1)
    scores = -np.abs(below * share.denominator - share.numerator * len(inside))
    return edges[:-1], np.diff(edges), scores


@claim("QUANT")
@lru_cache(maxsize=64)
def carried_errors(n_points: int) -> float:
    """Return how many errors of a single draw add up, at most, in the rank of a point."""
    error = {0: Fraction(0), n_points + 1: Fraction(0)}
    for node in plan(n_points):
        ends = (1 - node.share) * error[node.low] + node.share * error[node.high]
        error[node.place] = 1 + ends
    return float(max(error.values()))


@claim("QUANT", "STABLE")
def rank_bound(shares: Sequence[float], n_points: int, cuts: int, draws: int, beta: float) -> float:
    """Bound all rank errors of ``draws`` draws among at most ``cuts`` cuts, but for chance beta."""
    rate = min(
        float(over(share, part)) for share, part in zip(shares, level_ranges(n_points), strict=True)
    )
    if rate == 0:
        return math.inf
    single = 0.5 + (math.log(draws) + math.log(cuts) - math.log(beta)) / rate
    return carried_errors(n_points) * single


@claim("QUANT")
class Quantiles(Sanitizer):
    """Release evenly spaced quantiles of each column.

    Point j of m lies near rank j n / (m + 1). Each column is treated on its own and gets an equal
    share of epsilon, so the lines of the result are no typical rows: use them to cut columns, for
    stumps, trees, boxes or intervals. Rows in the same place are told apart by a random order, so
    that a value which many rows share is released as often as it deserves.

    Parameters
    ----------
    epsilon
        Privacy parameter of the whole table.
    bounds
        What values a released point may have, fixed without looking at the rows: one (low, high)
        or (low, high, step) for all columns, or a list with one for each, None among them. With a
        step the values are low, low + step, and so on up to high; give step 1 for whole numbers.
        Without, they are 2^20 even steps. Rows outside are moved to the next bound. None means all
        finite floats, taken to 9 digits or more: nothing has to be known, and the rank error grows
        with ln 2^62 in place of ln(rows times values), about twofold.
    n_points
        Points a column; best one less than a power of 2.
    random_state
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
        self._columns = _columns(bounds)
        self._shares = level_shares(self.epsilon, self.n_points)
        super().__init__(random_state)

    @property
    def cost(self) -> Cost:
        """One release, for any number of columns: one draw of bounded range a level."""
        if isinstance(self._columns, list):
            return self.cost_of(len(self._columns))
        return compose([BoundedRange(share) for share in self._shares])

    def cost_of(self, n_columns: int) -> Cost:
        """Return the cost for so many columns; never more, and less once delta is above 0."""
        check_count(n_columns, "n_columns", least=1)
        return compose([(BoundedRange(share), n_columns) for share in self._split(n_columns)])

    def _split(self, n_columns: int) -> list[float]:
        return [share_of(share, Fraction(1, max(1, n_columns))) for share in self._shares]

    def sanitize(self, X: ArrayLike) -> Floats:
        table = check_table(X)
        rows, n_columns = table.shape
        check_data_rows(rows, LARGEST_ROWS)
        columns = self._columns_of(n_columns)
        shares = self._split(n_columns)
        points = np.empty((self.n_points, n_columns))
        order = permutation(rows, self.source)
        for number, column in enumerate(columns):
            places = column.places(table[:, number])
            drawn = draw_places(
                places, column.size(rows), shares, self.n_points, order, self.source
            )
            points[:, number] = column.values(drawn, rows)
        return points

    def _columns_of(self, n_columns: int) -> list[Column]:
        if isinstance(self._columns, Column):
            return [self._columns] * n_columns
        if len(self._columns) != n_columns:
            raise InvalidParameter(
                f"bounds for {len(self._columns)} columns, but there are {n_columns}; give one for "
                "each, or a single pair for all."
            )
        return self._columns

    def rank_error(self, n_rows: int, n_columns: int = 1, beta: float = 0.05) -> float:
        """Return how far all ranks are off at most, with probability 1 - beta.

        Point j has at most j n / (m + 1) + error rows below it, and at most n (1 - j / (m + 1)) +
        error above it, after rows have been moved onto the domain.
        """
        rows = check_count(n_rows, "n_rows")
        columns = self._columns_of(check_count(n_columns, "n_columns", least=1))
        cuts = max(column.size(rows) for column in columns) * max(1, rows) + 1
        draws = self.n_points * n_columns
        return rank_bound(self._split(n_columns), self.n_points, cuts, draws, check_beta(beta))

    def interval_error(self, n_rows: int, n_columns: int = 1, beta: float = 0.05) -> float:
        """Return how far the share of points between any two cuts of a column is off at most."""
        error = self.rank_error(n_rows, n_columns, beta) / max(1, n_rows)
        return min(1.0, 2 * (1 / (self.n_points + 1) + error))


def check_points(n_points: object) -> int:
    """Return a usable number of points."""
    count = check_count(n_points, "n_points", least=1)
    if count > LARGEST_POINTS:
        raise InvalidParameter(f"n_points={count!r}: give at most {LARGEST_POINTS}.")
    return count


def _columns(bounds: Sequence[Any] | None) -> Column | list[Column]:
    if bounds is None:
        return AllFloats()
    if any(entry is None for entry in bounds):  # some columns are bounded, some are not
        parts = [_columns(None if entry is None else [entry]) for entry in bounds]
        return [part[0] if isinstance(part, list) else part for part in parts]
    try:
        table = [np.asarray(entry, dtype=np.float64) for entry in bounds]
    except (TypeError, ValueError) as error:
        raise InvalidParameter(
            "bounds are no numbers; give (low, high) or (low, high, step), or a list of these."
        ) from error
    if table and all(entry.ndim == 0 for entry in table):
        return _grid([float(entry) for entry in table])
    if not table or any(entry.ndim != 1 for entry in table):
        raise InvalidParameter(
            "bounds mix numbers and pairs, or are empty; give one pair, or one for each column."
        )
    return [_grid(entry.tolist()) for entry in table]


def _grid(entry: list[float]) -> Grid:
    if len(entry) not in {2, 3} or not np.all(np.isfinite(entry)) or not entry[0] <= entry[1]:
        raise InvalidParameter(
            f"bounds={tuple(entry)!r}: give finite (low, high) or (low, high, step), low first."
        )
    low, high = entry[:2]
    width = high - low
    # Finer than this, floats could not tell neighbouring values of the grid apart.
    finest = 16 * float(np.spacing(max(abs(low), abs(high))))
    step = entry[2] if len(entry) == 3 else max(width / GRID_STEPS, finest)
    if not step >= finest or not width / step < LARGEST_GRID:
        raise InvalidParameter(
            f"bounds={tuple(entry)!r}: the step must be above {finest!r} and fit less than 2**31 "
            "times; give a larger step, or None for all floats."
        )
    return Grid(low, step, math.floor(width / step * (1 + 1e-12)))
