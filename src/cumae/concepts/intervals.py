"""Intervals, and unions of k intervals, on one ordered column."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.codec import cell_from_json, cell_to_json
from cumae.concepts.base import ConceptClass, Hypothesis, text
from cumae.concepts.columns import Cells, at_least, cells_of, distinct_points
from cumae.concepts.kernels import intervals as kernel
from cumae.concepts.kernels.sums import (
    BLOCK,
    Rescan,
    draw_in_blocks,
    draw_place,
    place_law,
    powers,
    stage_error,
)
from cumae.concepts.thresholds import single_column
from cumae.data import check_cell, check_column, check_tuple
from cumae.errors import InvalidParameter
from cumae.parameters import check_count
from cumae.randomness import Source


@dataclass(frozen=True, repr=False)
class IntervalUnion(Hypothesis):
    """The rule that labels 1 values in one of the intervals [low, high); None is an open end.

    Parameters
    ----------
    intervals : tuple of pairs
        (low, high) of each interval.

    Examples
    --------
    >>> from cumae.concepts import IntervalUnion
    >>> rule = IntervalUnion(((2, 4), (7, None)))
    >>> rule.predict([1, 2, 3, 4, 7, 99]).tolist()
    [0, 1, 1, 0, 1, 1]
    >>> print(rule)
    label 1 in [2, 4) or [7, ...), else 0
    """

    intervals: tuple[tuple[Any, Any], ...] = ()

    def __post_init__(self) -> None:
        check_tuple(self.intervals, "intervals")
        for interval in self.intervals:
            check_tuple(interval, "an interval")
            if len(interval) != 2:
                raise InvalidParameter("an interval has not two ends; give (low, high).")
            for end in interval:
                check_cell(end, "an end")

    def predict(self, X: ArrayLike) -> Integers:
        column = check_column(X)
        label = np.zeros(len(column), dtype=bool)
        for low, high in self.intervals:
            inside = np.ones(len(column), dtype=bool)
            if low is not None:
                inside &= at_least(column, low)
            if high is not None:
                inside &= ~at_least(column, high)
            label |= inside
        return label.astype(np.int64)

    def _fields(self) -> dict[str, Any]:
        return {
            "intervals": [[cell_to_json(low), cell_to_json(high)] for low, high in self.intervals]
        }

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> IntervalUnion:
        return cls(
            tuple((cell_from_json(low), cell_from_json(high)) for low, high in fields["intervals"])
        )

    def __str__(self) -> str:
        if not self.intervals:
            return "label 0 everywhere"
        if (None, None) in self.intervals:
            return "label 1 everywhere"

        def shown(low: Any, high: Any) -> str:
            left = "(..." if low is None else f"[{text(low)}"
            return f"{left}, {'...' if high is None else text(high)})"

        return f"label 1 in {' or '.join(shown(*ends) for ends in self.intervals)}, else 0"


@claim("CHOOSE", "INTERVALS")
class UnionOfIntervals(ConceptClass):
    """All unions of at most k intervals of one ordered column.

    ``m`` distinct points have sum over s <= 2k of C(m, s) labellings. Intervals begin and end in
    the middle between two neighbouring points (or at the upper one where there is no middle, as
    between strings), and are open where they reach the last one. Of
    several best unions, ``erm`` takes one with the fewest intervals, and then, deciding from the
    right, the one whose label changes farther to the left.

    Parameters
    ----------
    k : int of 1 or more
        Largest number of intervals.

    Examples
    --------
    >>> from cumae.concepts import UnionOfIntervals
    >>> x, y = [1, 2, 3, 4, 5, 6], [0, 1, 1, 0, 0, 1]
    >>> print(UnionOfIntervals(2).erm(x, y))
    label 1 in [2, 4) or [6, ...), else 0
    >>> UnionOfIntervals(2).n_dichotomies(x)
    57
    """

    most_rows = 2**29 - 1  # so that scores stay far above that of a sum without terms

    def __init__(self, k: int) -> None:
        self.k = check_count(k, "k", least=1)

    def vc_dimension(self, n_features: int = 1) -> int:
        """Return 2k."""
        single_column(n_features)
        return 2 * self.k

    def n_dichotomies(self, X: ArrayLike) -> int:
        points = len(distinct_points(X))
        if 2 * self.k >= points:
            return int(2**points)
        return sum(math.comb(points, changes) for changes in range(2 * self.k + 1))

    def _runs(self, points: int) -> int:
        """Return how many intervals, at most k, this number of points can tell apart."""
        return min(self.k, (points + 1) // 2)

    def weight_error(self, size: int, rate: float, points: int | None = None) -> float:
        runs = self._runs(size if points is None else points)
        return 2 * (4 * runs + 1) * stage_error(size, rate)

    def _draw(
        self,
        points: ArrayLike,
        X: ArrayLike,
        y: Integers,
        rate: Fraction | float,
        source: Source,
    ) -> Hypothesis:
        self._check_rows(len(y))
        cells = cells_of(points, X, y)
        sums = _Sums(cells, 2 * self._runs(len(cells)) + 1, float(rate), len(y))
        state = draw_place(*sums.ends(), rate, source)
        changes: list[int] = []
        last = len(cells) - 1
        while state:
            blocks, rescan = sums.entries(state, last)
            changes.insert(0, draw_in_blocks(*blocks, rescan, rate, source))
            state, last = state - 1, changes[0] - 1
        return _union(cells, changes)

    def _law(
        self,
        points: ArrayLike,
        X: ArrayLike,
        y: Integers,
        rate: Fraction | float,
    ) -> list[tuple[Hypothesis, float]]:
        """Every candidate with the probability that ``_draw`` gives it, from the same sums."""
        cells = cells_of(points, X, y)
        sums = _Sums(cells, 2 * self._runs(len(cells)) + 1, float(rate), len(y))
        law: list[tuple[Hypothesis, float]] = []
        paths: list[tuple[int, int, list[int], float]] = [
            (state, len(cells) - 1, [], float(chance))
            for state, chance in enumerate(place_law(*sums.ends(), float(rate)))
            if chance > 0
        ]
        while paths:
            state, last, changes, chance = paths.pop()
            if state == 0:
                law.append((_union(cells, changes), chance))
                continue
            blocks, rescan = sums.entries(state, last)
            for block, block_chance in enumerate(place_law(*blocks, float(rate))):
                for i, inner in enumerate(place_law(*rescan(block), float(rate))):
                    if inner > 0 and block_chance > 0:
                        place = block * BLOCK + i
                        paths.append(
                            (state - 1, place - 1, [place, *changes], chance * block_chance * inner)
                        )
        return law

    def _best(self, X: ArrayLike, y: Integers, weights: NDArray[Any]) -> Hypothesis:
        cells = cells_of(X, X, y, weights)
        states = 2 * self._runs(len(cells)) + 1
        small = cells.gain.dtype == np.int64
        scores = (kernel.best_runs if small else best_runs)(cells.gain, states)
        state = int(np.argmax(scores[-1]))  # the first of the best: the fewest changes
        changes: list[int] = []
        for j in range(len(cells) - 1, 0, -1):
            if state and scores[j, state - 1] > scores[j, state]:
                changes.insert(0, j)
                state -= 1
        if state % 2 == 1:  # labelled 1 from the first cell on
            changes.insert(0, 0)
        return _union(cells, changes)


class _Sums:
    """Sums over all labellings by their number of changes of label, block by block of cells."""

    def __init__(self, cells: Cells, states: int, rate: float, rows: int) -> None:
        self.gain = cells.gain
        self.table = powers(rate, rows)
        self.tops, self.totals, self.best, self.rest, self.before = kernel.forward(
            cells.gain, states, self.table
        )

    def ends(self) -> tuple[Integers, Floats]:
        """Weights of the number of changes in the end."""
        return self.tops[-1], self.totals[-1]

    def entries(self, state: int, last: int) -> tuple[tuple[Integers, Floats], Rescan]:
        """Weights of where ``state`` was entered, it being still in force at cell ``last``."""
        final = last // BLOCK  # only its cells up to ``last`` count, so it is summed again

        def within(block: int) -> tuple[Integers, Floats, int, float]:
            part = self.gain[block * BLOCK : min(last + 1, (block + 1) * BLOCK)]
            found: tuple[Integers, Floats, int, float] = kernel.entries(
                part, self.tops[block], self.totals[block], state, self.table
            )
            return found

        *_, most, whole = within(final)
        best = np.append(self.best[:final, state], most)
        rest = np.append(self.rest[:final, state], whole)
        if state % 2 == 1:
            best -= self.before[: final + 1]
        return (best, rest), lambda block: within(block)[:2]


def best_runs(gain: NDArray[Any], states: int) -> NDArray[Any]:
    """Best score of the first j cells with at most s changes: the kernel's uncompiled form."""
    score = np.zeros((len(gain) + 1, states), dtype=gain.dtype)
    for j in range(len(gain)):
        score[j + 1] = np.maximum(score[j], np.append(score[j, :1], score[j, :-1]))
        score[j + 1, 1::2] += gain[j]
    return score


def forward(gain: Integers, states: int, rate: float) -> Floats:
    """Logarithms of the sums after the last cell: the kernel's uncompiled form.

    Parameters
    ----------
    gain : array of int
        What label 1 gains over label 0 in each cell.
    states : int
        Number of changes of label that are kept apart, none included.
    rate : float of 0 or more
        What one more row labelled right adds to the logarithm of a weight.
    """
    logs = np.full(states, -np.inf)
    logs[0] = 0.0
    for step in gain:
        logs = np.logaddexp(logs, np.append(-np.inf, logs[:-1]))
        logs[1::2] += rate * step
    return logs


def _union(cells: Cells, changes: list[int]) -> IntervalUnion:
    """Return the hypothesis whose label changes at these cells, from 0 on the left."""
    ends = [cells.cut(place) for place in changes] + [None] * (len(changes) % 2)
    return IntervalUnion(tuple(zip(ends[::2], ends[1::2], strict=True)))


@claim("CHOOSE", "INTERVALS")
class Intervals(UnionOfIntervals):
    """All intervals of one ordered column: ``UnionOfIntervals(1)``, drawn in less memory.

    Examples
    --------
    >>> from cumae.concepts import Intervals
    >>> ages, ill = [20, 30, 40, 50, 60], [0, 1, 1, 0, 0]
    >>> print(Intervals().erm(ages, ill))
    label 1 in [25, 45), else 0
    >>> Intervals().n_dichotomies(ages)
    16
    """

    def __init__(self) -> None:
        super().__init__(1)

    def __repr__(self) -> str:
        return "Intervals()"

    def _draw(
        self,
        points: ArrayLike,
        X: ArrayLike,
        y: Integers,
        rate: Fraction | float,
        source: Source,
    ) -> Hypothesis:
        cells = cells_of(points, X, y)
        sums = _IntervalSums(cells, float(rate), len(y))
        # The last block stands for the empty set.
        best, rest = sums.right()
        block = draw_place(best, rest, rate, source)
        if block == len(best) - 1:
            return IntervalUnion()
        last = block * BLOCK + draw_place(*sums.right_in(block), rate, source)
        blocks, rescan = sums.left(last)
        first = draw_in_blocks(*blocks, rescan, rate, source)
        return _interval(cells, first, last)

    def _law(
        self,
        points: ArrayLike,
        X: ArrayLike,
        y: Integers,
        rate: Fraction | float,
    ) -> list[tuple[Hypothesis, float]]:
        cells = cells_of(points, X, y)
        sums = _IntervalSums(cells, float(rate), len(y))
        *ends, empty = place_law(*sums.right(), float(rate))
        law: list[tuple[Hypothesis, float]] = [(IntervalUnion(), float(empty))]
        for block, chance in enumerate(ends):
            for j, inner in enumerate(place_law(*sums.right_in(block), float(rate))):
                last = block * BLOCK + j
                blocks, rescan = sums.left(last)
                for start, outer in enumerate(place_law(*blocks, float(rate))):
                    for i, innermost in enumerate(place_law(*rescan(start), float(rate))):
                        total = float(chance * inner * outer * innermost)
                        law.append((_interval(cells, start * BLOCK + i, last), total))
        return law


class _IntervalSums:
    """Sums over all intervals by their right end, then by their left end."""

    def __init__(self, cells: Cells, rate: float, rows: int) -> None:
        self.gain = cells.gain
        self.table = powers(rate, rows)
        self.best, self.rest, self.starts, self.lefts = kernel.right_ends(cells.gain, self.table)

    def right(self) -> tuple[Integers, Floats]:
        """Weights of the blocks of right ends, and last of the empty set."""
        return np.append(self.best, 0), np.append(self.rest, 1.0)

    def right_in(self, block: int) -> tuple[Integers, Floats]:
        """Weights of the right ends of a block."""
        before, lowest = self.starts[block]
        best, rest = kernel.ends_in_block(
            self.gain, block, before, lowest, self.lefts[block], self.table
        )
        return best, rest

    def left(self, last: int) -> tuple[tuple[Integers, Floats], Rescan]:
        """Weights of the blocks of left ends, given the right end."""
        best, rest, before = kernel.left_ends(self.gain, last, self.table)

        def rescan(block: int) -> tuple[Integers, Floats]:
            part = self.gain[block * BLOCK : min(last + 1, (block + 1) * BLOCK)]
            gone = before[block] + np.append(0, np.cumsum(part)[:-1])
            return -gone, np.ones(len(part))

        return (best, rest), rescan


def _interval(cells: Cells, first: int, last: int) -> IntervalUnion:
    return IntervalUnion(((cells.cut(first), cells.cut(last + 1)),))
