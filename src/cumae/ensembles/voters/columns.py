"""Rules about single columns, such as thresholds, intervals and stumps, and boxes of several."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numba
import numpy as np

from cumae.arrays import Floats, Integers
from cumae.concepts import IntervalUnion, Point, Rectangle, Stump, Threshold
from cumae.ensembles.voters.base import StackedVoters, Voters, broken

TILE = 512  # boxes that are looked at together, so that what they find stays in the first cache

Run = tuple[int, float, float]  # a column, and the values in [low, high) that get label 1


@dataclass(frozen=True, eq=False)
class CutVoters(StackedVoters):
    """Rules that label 1 by the value of one column, each its own.

    Between two neighbouring cuts of a column the number of votes for 1 stays the same, so a
    query is a search among the cuts, and the work does not grow with the number of rules.

    Parameters
    ----------
    size, n_classes, width : int
        Numbers of rules, classes and columns.
    base : int
        Rules that label 1 what lies below all cuts.
    columns, starts : array of int
        Columns that have cuts, and where their cuts begin.
    cuts : array of float
        Distinct cuts of each column, in order.
    ones : array of int
        For each column, how many more rules than ``base`` label 1, after 0, 1, 2, ... of its cuts.
    """

    kind: ClassVar[str] = "cuts"
    quick: ClassVar[bool] = True
    model_axes: ClassVar[Mapping[str, int]] = {}

    size: int
    n_classes: int
    width: int
    base: int
    columns: Integers
    starts: Integers
    cuts: Floats
    ones: Integers

    def __post_init__(self) -> None:
        self._check(
            columns=(np.int64, 1),
            starts=(np.int64, 1),
            cuts=(np.float64, 1),
            ones=(np.int64, 1),
        )
        self._check_starts(self.starts, len(self.columns), len(self.cuts))
        if len(self.ones) != len(self.cuts) + len(self.columns) or np.any(self.columns < 0):
            raise broken(self.kind)

    def __len__(self) -> int:
        return self.size

    def _columns_used(self) -> Integers:
        return self.columns

    @functools.cached_property  # each answer asks
    def adder(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        table = (self.columns, self.starts, self.cuts, self.ones)
        return _look_up, (*table, self.base, self.size)

    def parts(self, n: int) -> list[Voters]:
        """Return itself: more rules do not take more time."""
        del n
        return [self]


@dataclass(frozen=True, eq=False)
class BoxVoters(StackedVoters):
    """Boxes [low, high) of several columns, with label 1 inside.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    lows, highs : array of float
        A row for each column, with a cell for each box; infinite where there is no bound.
    """

    kind: ClassVar[str] = "boxes"
    model_axes: ClassVar[Mapping[str, int]] = {"lows": 1, "highs": 1}

    n_classes: int
    lows: Floats
    highs: Floats

    def __post_init__(self) -> None:
        self._check(lows=(np.float64, 2), highs=(np.float64, 2))
        if self.lows.shape != self.highs.shape:
            raise broken(self.kind)

    def __len__(self) -> int:
        return int(self.lows.shape[1])

    @property
    def width(self) -> int:  # type: ignore[override]
        """Number of columns."""
        return int(self.lows.shape[0])

    @functools.cached_property  # each answer asks
    def adder(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        return _inside, (self.lows, self.highs)


def runs_of(rule: Any) -> tuple[int, list[Run]] | None:
    """Return the number of columns (0 for any), and where the rule labels 1.

    None if it looks at several columns; TypeError or OverflowError if a cut is no float.
    """
    if type(rule) is Threshold:
        return 1, _side(0, bound_of(rule.cut, math.inf), rule.above)
    if type(rule) is Stump:
        return 0, _side(int(rule.column), bound_of(rule.cut, math.inf), rule.above)
    if type(rule) is Point:
        value = math.inf if rule.value is None else bound_of(rule.value, math.inf)
        return 1, _disjoint([(value, math.nextafter(value, math.inf))])
    if type(rule) is IntervalUnion:
        return 1, _disjoint(rule.intervals)
    if type(rule) is Rectangle and len(rule.lows) < 2:  # without columns it is empty
        return len(rule.lows), _disjoint(zip(rule.lows, rule.highs, strict=True))
    return None


def stack_cuts(rules: Sequence[list[Run]], n_classes: int, width: int) -> CutVoters:
    """Stack rules of which each labels 1 in its runs of values."""
    runs = [run for rule in rules for run in rule]
    table = np.array(runs, dtype=np.float64).reshape(-1, 3)
    columns = np.array([run[0] for run in runs], dtype=np.int64)
    return stack_runs(len(rules), n_classes, width, columns, table[:, 1], table[:, 2])


def stack_runs(
    size: int, n_classes: int, width: int, columns: Integers, lows: Floats, highs: Floats
) -> CutVoters:
    """Stack so many rules, given the runs of all of them: columns, and values in [low, high)."""
    where = np.concatenate([columns, columns])
    values = np.concatenate([lows, highs])
    steps = np.repeat([1, -1], len(columns))
    base = int(steps[values == -math.inf].sum())
    inner = np.isfinite(values)
    where, values, steps = where[inner], values[inner], steps[inner]
    used = np.unique(where)
    cuts, ones, starts = [], [], [0]
    for column in used:
        mine = where == column
        distinct, place = np.unique(values[mine], return_inverse=True)
        change = np.zeros(len(distinct) + 1, dtype=np.int64)
        np.add.at(change, place + 1, steps[mine])
        cuts.append(distinct)
        ones.append(np.cumsum(change))
        starts.append(starts[-1] + len(distinct))
    return CutVoters(
        size,
        n_classes,
        width,
        base,
        used,
        np.array(starts, dtype=np.int64),
        np.concatenate([*cuts, np.zeros(0)]),
        np.concatenate([*ones, np.zeros(0, dtype=np.int64)]),
    )


def stack_boxes(boxes: Sequence[Rectangle], n_classes: int) -> BoxVoters:
    """Stack boxes of the same columns."""

    def by_column(name: str, default: float) -> Floats:
        bounds = [[bound_of(value, default) for value in getattr(box, name)] for box in boxes]
        return np.ascontiguousarray(np.array(bounds, dtype=np.float64).T)

    return BoxVoters(n_classes, by_column("lows", -math.inf), by_column("highs", math.inf))


def bound_of(value: Any, default: float) -> float:
    """Return a cut as the float that splits floats alike."""
    if value is None:
        return default
    if isinstance(value, float | np.floating):
        return float(value)
    if not isinstance(value, int | np.integer):
        raise TypeError
    whole = int(value)
    number = float(whole)  # rounded
    return number if number >= whole else math.nextafter(number, math.inf)


def _side(column: int, cut: float, above: bool) -> list[Run]:
    low, high = (cut, math.inf) if above else (-math.inf, cut)
    return [(column, low, high)] if low < high else []


def _disjoint(intervals: Iterable[tuple[Any, Any]]) -> list[Run]:
    """Merge intervals that meet or overlap, so that a value lies in one of them at most."""
    ends = [(bound_of(low, -math.inf), bound_of(high, math.inf)) for low, high in intervals]
    merged: list[Run] = []
    for low, high in sorted(end for end in ends if end[0] < end[1]):
        if merged and low <= merged[-1][2]:
            merged[-1] = (0, merged[-1][1], max(high, merged[-1][2]))
        else:
            merged.append((0, low, high))
    return merged


@numba.njit(cache=True, nogil=True)
def _look_up(
    rows: Floats,
    columns: Integers,
    starts: Integers,
    cuts: Floats,
    ones: Integers,
    base: int,
    size: int,
    votes: Integers,
) -> None:
    for row in range(len(rows)):
        found = base
        for i in range(len(columns)):
            value, low, high = rows[row, columns[i]], starts[i], starts[i + 1]
            while low < high:  # how many cuts are at most the value
                middle = (low + high) // 2
                if cuts[middle] <= value:
                    low = middle + 1
                else:
                    high = middle
            found += ones[low + i]  # a column has one cell more than cuts
        votes[row, 1] = found
        votes[row, 0] = size - found


@numba.njit(cache=True, nogil=True)
def _inside(rows: Floats, lows: Floats, highs: Floats, votes: Integers) -> None:
    size = lows.shape[1]
    inside = np.empty(TILE, dtype=np.int64)
    for first in range(0, size, TILE):
        tile = min(TILE, size - first)
        for row in range(len(rows)):
            inside[:tile] = 1
            for column in range(rows.shape[1]):
                value = rows[row, column]
                low = lows[column, first : first + tile]
                high = highs[column, first : first + tile]
                for i in range(tile):
                    inside[i] &= np.int64((value >= low[i]) & (value < high[i]))
            found = 0
            for i in range(tile):
                found += inside[i]
            votes[row, 1] += found
            votes[row, 0] += tile - found
