"""Axis-parallel boxes in one, two or three columns of numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.codec import cell_from_json, cell_to_json
from cumae.concepts.base import ConceptClass, Hypothesis, text
from cumae.concepts.columns import middle
from cumae.concepts.kernels.rectangles import (
    LIMB,
    MASK,
    Board,
    add_up,
    best_columns,
    left_totals,
    right_totals,
)
from cumae.data import (
    check_number,
    check_rows,
    check_table,
    check_tables,
    check_tuple,
)
from cumae.errors import InvalidData, InvalidParameter
from cumae.randomness import Source, weighted_choice

MOST_VALUES = 2**20  # distinct values of a column; the proof of WEIGHT_ERROR counts on it
WEIGHT_ERROR = 4e-12

Box = tuple[int, int, int, int, int, int]  # first and last layer, column and row, as places
Pick = Callable[[NDArray[Any], NDArray[Any] | None], Iterable[tuple[int, float]]]


@dataclass(frozen=True)
class Rectangle(Hypothesis):
    """The rule that labels 1 a box: from ``lows`` to below ``highs``; None is no bound.

    Without any columns it is the empty set and labels everything 0.

    Parameters
    ----------
    lows, highs : tuple of float or None
        A bound for each column.

    Examples
    --------
    >>> from cumae.concepts.rectangles import Rectangle
    >>> Rectangle((0.5, None), (2.5, 7.0)).predict([[1, 2], [1, 7], [3, 2]]).tolist()
    [1, 0, 0]
    >>> print(Rectangle((0.5, None), (2.5, 7.0)))
    label 1 where 0.5 <= column 0 < 2.5 and column 1 < 7.0, else 0
    """

    lows: tuple[float | None, ...]
    highs: tuple[float | None, ...]

    def __post_init__(self) -> None:
        check_tuple(self.lows, "lows")
        check_tuple(self.highs, "highs")
        if len(self.lows) != len(self.highs):
            raise InvalidParameter(
                f"{len(self.lows)} lows but {len(self.highs)} highs; give one for each column."
            )
        for bound in (*self.lows, *self.highs):
            if bound is not None:
                check_number(bound, "a bound")

    def predict(self, X: ArrayLike) -> Integers:
        if not self.lows:
            return np.zeros(len(check_table(X)), dtype=np.int64)
        table = check_table(X, len(self.lows))
        inside = np.ones(len(table), dtype=bool)
        for column, low, high in zip(table.T, self.lows, self.highs, strict=True):
            if low is not None:
                inside &= column >= low
            if high is not None:
                inside &= column < high
        return inside.astype(np.int64)

    def _fields(self) -> dict[str, Any]:
        return {
            "lows": [cell_to_json(v) for v in self.lows],
            "highs": [cell_to_json(v) for v in self.highs],
        }

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Rectangle:
        return cls(
            tuple(map(cell_from_json, fields["lows"])), tuple(map(cell_from_json, fields["highs"]))
        )

    def __str__(self) -> str:
        if not self.lows:
            return "label 0 everywhere"
        bounds = []
        for i, (low, high) in enumerate(zip(self.lows, self.highs, strict=True)):
            if low is not None or high is not None:
                least = "" if low is None else f"{text(low)} <= "
                bounds.append(f"{least}column {i}" + ("" if high is None else f" < {text(high)}"))
        return f"label 1 where {' and '.join(bounds)}, else 0" if bounds else "label 1 everywhere"


@claim("CHOOSE", "RECTANGLES")
class Rectangles(ConceptClass):
    """All axis-parallel boxes in one, two or three columns, and the empty set.

    Each labelling of the points by a box has one candidate: the bounding box of the points with
    label 1, each side moved outwards to the middle between it and the next value that any point has
    in that column, or to infinity if there is none. Where there is no middle the upper value is the
    cut.

    ``erm`` returns the empty set if no box has more weight right. Else it looks at the boxes whose
    sides have, in each column, values of rows that gain (their weight counts for label 1). Of
    the best of them it takes the one with the smallest first value in the first column, then
    the smallest last value there, then likewise in the next columns; it shrinks it to the
    bounding box of the gaining rows inside, and moves the sides as above.

    With n distinct values in each column, ``choose`` takes time n log n in one column, n^2 log n
    in two and n^4 log n in three; memory grows with n. ``erm`` takes no more.

    Examples
    --------
    >>> from cumae.concepts.rectangles import Rectangles
    >>> X = [[1, 1], [2, 5], [3, 3], [4, 4], [6, 2]]
    >>> Rectangles().n_dichotomies(X)
    23
    >>> print(Rectangles().erm(X, [0, 0, 1, 1, 0]))
    label 1 where 2.5 <= column 0 < 5.0 and 2.5 <= column 1 < 4.5, else 0
    >>> print(Rectangles().choose(X, X, [0, 0, 0, 0, 0], epsilon=200.0))
    label 0 everywhere
    """

    def vc_dimension(self, n_features: int) -> int:
        """Return 2 for each column."""
        if n_features not in (1, 2, 3):
            raise InvalidParameter(
                f"n_features={n_features!r}: boxes have 1, 2 or 3 columns; select some."
            )
        return 2 * n_features

    def n_dichotomies(self, X: ArrayLike) -> int:
        table = check_table(X)
        grid = self._grid(table, table, np.zeros(len(table), dtype=np.int64))
        if grid is None:
            return 1
        board, ones = _board(grid), np.ones(1)
        layers, columns, rows = board.sizes
        # Without gains the sums are counts; floats hold whole numbers below 2^53.
        if columns * rows**2 >= 2**53:
            raise InvalidData(f"X has {columns} by {rows} distinct values; give fewer rows.")
        total = 1
        for near, far in combinations_with_replacement(range(layers), 2):
            counts = left_totals(_between(board, near, far), near, far, ones)[1]
            total += sum(int(count) for count in counts)
        return total

    def weight_error(self, size: int, rate: float, points: int | None = None) -> float:
        del size, points
        # Without a rate all sums are counts, whose rounding is the same for any rows.
        return WEIGHT_ERROR if rate > 0 else 0.0

    def _draw(
        self,
        points: ArrayLike,
        X: ArrayLike,
        y: Integers,
        rate: Fraction | float,
        source: Source,
    ) -> Hypothesis:
        def draw(scores: NDArray[Any], factors: NDArray[Any] | None) -> list[tuple[int, float]]:
            counts = None if factors is None else _whole(factors)
            return [(weighted_choice(scores, rate, counts=counts, source=source), 1.0)]

        ((drawn, _),) = self._walk(points, X, y, rate, draw)
        return drawn

    def _law(
        self, points: ArrayLike, X: ArrayLike, y: Integers, rate: Fraction | float
    ) -> list[tuple[Hypothesis, float]]:
        """Return every candidate with the probability with which ``_draw`` draws it."""

        def every(scores: NDArray[Any], factors: NDArray[Any] | None) -> list[tuple[int, float]]:
            f = np.ones(len(scores)) if factors is None else factors
            top = scores[f > 0].max()
            logs = np.where(scores == top, 0.0, -np.inf)
            if rate != math.inf:
                logs = float(rate) * (scores - top).astype(np.float64)
            weights = np.where(f > 0, f * np.exp(logs), 0.0)
            total = weights.sum()
            return [(int(k), float(weights[k] / total)) for k in np.flatnonzero(f > 0)]

        return list(self._walk(points, X, y, rate, every))

    def _walk(
        self, points: ArrayLike, X: ArrayLike, y: Integers, rate: Fraction | float, pick: Pick
    ) -> Iterator[tuple[Hypothesis, float]]:
        """Follow what ``pick`` picks, side by side: layers, left, right, lower, upper.

        Parameters
        ----------
        points : array-like
            Rows that define the candidates.
        X : array-like
            The rows on which candidates are scored.
        y : array of int
            Their labels, 0 or 1.
        rate : Fraction or float
            What one more row labelled right adds to the logarithm of a weight.
        pick : callable
            Yields pairs of place and probability: one that is drawn, or all of them.
        """
        grid = self._grid(points, X, np.where(y == 1, 1, -1))
        if grid is None:
            yield Rectangle((), ()), 1.0
            return
        board, power = _board(grid), _powers(rate, len(y))
        pairs = list(combinations_with_replacement(range(board.sizes[0]), 2))
        lefts = [left_totals(_between(board, *layers), *layers, power) for layers in pairs]
        sums = [add_up(e.copy(), f.copy(), len(e), power) for e, f in lefts]
        sums.append((0, 1.0))  # the empty set
        for k, p in pick(np.array([e for e, _ in sums]), np.array([f for _, f in sums])):
            if k == len(pairs):
                yield Rectangle((), ()), p
                continue
            layers = pairs[k]
            slab = _between(board, *layers)
            for left, p_left in pick(*lefts[k]):
                ends = right_totals(slab, *layers, left, board.sizes[1] - 1, power)
                for step, p_right in pick(ends[0], ends[1]):
                    columns = left, left + step
                    ranges, e, f = right_totals(slab, *layers, *columns, power)[2:]
                    for part, p_part in pick(e, f):
                        for rows, p_rows in _pick_rows(grid, layers, columns, ranges[part], pick):
                            box = *layers, *columns, *rows
                            yield grid.rectangle(box), p * p_left * p_right * p_part * p_rows

    def _best(self, X: ArrayLike, y: Integers, weights: NDArray[Any]) -> Hypothesis:
        grid = self._grid(X, X, np.where(y == 1, weights, -weights), in_order=True)
        box = None if grid is None else _best_box(grid)
        return Rectangle((), ()) if grid is None or box is None else grid.rectangle(box)

    def _grid(
        self, points: ArrayLike, X: ArrayLike, gains: NDArray[Any], *, in_order: bool = False
    ) -> Grid | None:
        """Sort rows into cells; None if there are no points."""
        places, rows = check_tables(points, X)
        check_rows(len(rows), gains)
        if rows.shape[1] not in (1, 2, 3):
            raise InvalidData(f"X has {rows.shape[1]} columns; boxes take 1, 2 or 3: select some.")
        return _cells(places, rows, gains, in_order) if len(places) else None


@dataclass(frozen=True, eq=False, repr=False)
class Grid:
    """Cells around the points: three axes, of which the first may have one place only."""

    cuts: list[Floats]  # middles between neighbouring values of the points, for each column
    axes: list[int]  # which column each of the last axes stands for
    sizes: tuple[int, int, int]
    place: NDArray[np.int64]  # layer, column and row of each cell that holds a point or a row
    gain: NDArray[Any]  # what label 1 gains over label 0 there
    holds: NDArray[np.bool_]  # whether the cell holds a point

    def inside(self, ranges: tuple[int, ...]) -> NDArray[np.bool_]:
        """Tell which cells lie within the ranges of the first axes: first, last, first, last..."""
        kept = np.ones(len(self.place), dtype=bool)
        for axis in range(len(ranges) // 2):
            at = self.place[:, axis]
            kept &= (at >= ranges[2 * axis]) & (at <= ranges[2 * axis + 1])
        return kept

    def rectangle(self, box: Box) -> Rectangle:
        """Return the hypothesis with its sides half-way to the next values."""
        lows: list[float | None] = [None] * len(self.axes)
        highs = list(lows)
        for axis, column in enumerate(self.axes, start=3 - len(self.axes)):
            first, last = box[2 * axis], box[2 * axis + 1]
            if first > 0:
                lows[column] = float(self.cuts[column][first - 1])
            if last < len(self.cuts[column]):
                highs[column] = float(self.cuts[column][last])
        return Rectangle(tuple(lows), tuple(highs))


def _cells(places: Floats, rows: Floats, gains: NDArray[Any], in_order: bool) -> Grid:
    values = [np.unique(column) for column in places.T]
    if max(map(len, values)) > MOST_VALUES:
        raise InvalidData(f"a column has more than {MOST_VALUES} distinct values; round them.")
    cuts = [middle(v[:-1], v[1:]) for v in values]
    axes = list(range(len(values)))
    if not in_order:  # the first axes cost most
        axes.sort(key=lambda column: len(values[column]))
    both = places if places is rows else np.concatenate([places, rows])
    at = np.zeros((3, len(both)), dtype=np.int64)
    sizes = [1, 1, 1]
    for axis, column in enumerate(axes, start=3 - len(axes)):
        at[axis] = np.searchsorted(cuts[column], both[:, column], side="right")
        sizes[axis] = len(values[column])
    layers, columns, high = sizes
    codes, which = np.unique((at[1] * high + at[2]) * layers + at[0], return_inverse=True)
    gain = np.zeros(len(codes), dtype=gains.dtype)
    np.add.at(gain, which[len(both) - len(rows) :], gains)
    holds = np.zeros(len(codes), dtype=bool)
    holds[which[: len(places)]] = True
    row = codes // layers
    place = np.stack([codes % layers, row // high, row % high], axis=1)
    return Grid(cuts, axes, (layers, columns, high), place, gain, holds)


def _board(grid: Grid, gain: Integers | None = None) -> Board:
    column = np.ascontiguousarray(grid.place[:, 1])
    return Board(
        np.ascontiguousarray(grid.place[:, 0]),
        np.ascontiguousarray(grid.place[:, 2]),
        grid.gain if gain is None else gain,
        grid.holds,
        np.searchsorted(column, np.arange(grid.sizes[1] + 1)),
        grid.sizes,
    )


def _between(board: Board, near: int, far: int) -> Board:
    """Keep the cells from layer ``near`` to layer ``far``."""
    if board.sizes[0] == 1:
        return board
    kept = (board.layer >= near) & (board.layer <= far)
    start = np.append(0, np.cumsum(kept))[board.start]
    cells = (board.layer[kept], board.row[kept], board.gain[kept], board.holds[kept])
    return Board(*cells, start, board.sizes)


def _powers(rate: Fraction | float, rows: int) -> Floats:
    """Return exp(-rate * d) for d = 0, 1, ...; the last entry stands for all that follow."""
    if rate == 0:
        return np.ones(1)
    slope = float(min(rate, 1000))
    # Gains differ by at most twice the number of rows, and exp(-746) is 0 as a float.
    with np.errstate(under="ignore"):
        powers = np.exp(-slope * np.arange(int(min(2 * rows, 746 / slope)) + 2))
    powers[-1] = 0.0
    return np.asarray(powers)


def _whole(factors: Floats) -> NDArray[Any]:
    """Return factors of at least 1 (or 0) times 2^52: exactly, as whole numbers."""
    return np.array([int(f) for f in np.ldexp(factors, 52)], dtype=object)


def _pick_rows(
    grid: Grid, layers: tuple[int, int], columns: tuple[int, int], part: Integers, pick: Pick
) -> Iterator[tuple[tuple[int, int], float]]:
    """Pick lower and upper side: within a part they are independent, and their scores whole.

    Parameters
    ----------
    grid : Grid
        The cells.
    layers, columns : pairs of int
        First and last layer and column of the box.
    part : array of three int
        First and last lower side, and the least upper side that goes with them.
    pick : callable
        As in ``Rectangles._walk``.
    """
    first, last, least = (int(k) for k in part)
    before, occupied = _profile(grid, (*layers, *columns))
    lower = first + np.flatnonzero(occupied[first : last + 1])
    upper = least + np.flatnonzero(occupied[least:])
    for i, p_lower in pick(before[last + 1] - before[lower], None):
        for j, p_upper in pick(before[upper + 1] - before[least], None):
            yield (int(lower[i]), int(upper[j])), p_lower * p_upper


def _profile(grid: Grid, ranges: tuple[int, ...]) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the gain before each row within layers and columns, and which rows hold a point."""
    kept = grid.inside(ranges)
    rows = grid.place[kept, 2]
    gain = np.zeros(grid.sizes[2] + 1, dtype=grid.gain.dtype)
    np.add.at(gain, rows + 1, grid.gain[kept])
    occupied = np.zeros(grid.sizes[2], dtype=bool)
    occupied[rows[grid.holds[kept]]] = True
    return np.cumsum(gain), occupied


def _best_box(grid: Grid) -> Box | None:
    """Return the best box by the class's rule; None if no box gains."""
    gaining = np.flatnonzero(grid.gain > 0)
    if len(gaining) == 0:
        return None
    if grid.gain.dtype == object and sum(abs(g) for g in grid.gain) >= 1 << (2 * LIMB):
        ranges = best_columns_uncompiled(grid)
    else:
        high, low = (part.astype(np.int64) for part in (grid.gain >> LIMB, grid.gain & MASK))
        marked = [np.zeros(size, dtype=bool) for size in grid.sizes[:2]]
        for axis in (0, 1):
            marked[axis][grid.place[gaining, axis]] = True
        ranges = best_columns(_board(grid, high), low, *marked)
    first, last = best_rows(_profile(grid, ranges)[0])[1]
    kept = gaining[grid.inside((*ranges, first, last))[gaining]]
    return _bounds(grid.place[kept])


def _bounds(place: NDArray[np.int64]) -> Box:
    """Return the bounding box of some cells."""
    a, c, e = place.min(axis=0).tolist()
    b, d, f = place.max(axis=0).tolist()
    return a, b, c, d, e, f


def best_rows(before: NDArray[Any]) -> tuple[int, tuple[int, int]]:
    """Return the largest gain of a range of rows, and the first such range."""
    gone = before.tolist()
    best, where, start = 0, (0, -1), 0
    for row in range(len(gone) - 1):
        if gone[row] < gone[start]:  # what loses so far begins no best range
            start = row
        if gone[row + 1] - gone[start] > best:
            best, where = gone[row + 1] - gone[start], (start, row)
    return best, where


def best_columns_uncompiled(grid: Grid) -> tuple[int, int, int, int]:
    """As the kernel ``best_columns``, for whole numbers of any size."""
    gaining = [sorted(set(grid.place[grid.gain > 0, axis].tolist())) for axis in (0, 1)]
    best, where = 0, (-1, -1, -1, -1)
    for layers in combinations_with_replacement(gaining[0], 2):
        for columns in combinations_with_replacement(gaining[1], 2):
            gain, _ = best_rows(_profile(grid, (*layers, *columns))[0])
            if gain > best:
                best, where = gain, (*layers, *columns)
    return where


def boxes_uncompiled(grid: Grid) -> Iterator[tuple[Box, int]]:
    """Yield every candidate with its gain: what the kernels add up, without compiled code."""
    ranges = [list(combinations_with_replacement(range(size), 2)) for size in grid.sizes]
    for layers in ranges[0]:
        for columns in ranges[1]:
            for rows in ranges[2]:
                box = *layers, *columns, *rows
                inside = grid.inside(box)
                held = grid.place[inside & grid.holds]
                # A side that holds no point of the box could be moved without changing any label.
                if len(held) and _bounds(held) == box:
                    yield box, int(grid.gain[inside].sum())
