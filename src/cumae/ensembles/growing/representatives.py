"""Which hypothesis stands for a shard, so that self-training pushes the boundary to no side.

Many hypotheses label a shard's rows alike. Where the votes of all shards are split evenly lies the
boundary of the next phase, so a choice that leans to one side moves it in each phase. Here a coin
of the shard decides between two hypotheses that lean to opposite sides:

* Boxes and intervals: the smallest one around the rows inside, or the one whose sides stop at the
  next rows outside that lie beside it (rows beyond its corners may come along). If labels are
  right, the large one contains the true box and the small one is contained in it. So half of the
  shards vote 1 inside and half vote 0 outside, independent of the other columns, and
  corners stay sharp.
* Thresholds with declared bounds: the middle between two rows leans to no side. A shard with a
  single label has a row on one side only: its cut lies in the middle between the outermost row and
  the bound, or it votes for its label everywhere.
* Thresholds without bounds: the cut is at the row above it or at the row below.

``docs/everlasting_drift.md`` has the reasons and what else was tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import numba
import numpy as np

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass, IntervalUnion, Keyed, Rectangle, Threshold, Thresholds
from cumae.concepts.base import Hypothesis

Limits: TypeAlias = tuple[float, float] | None

NOTHING, ABOVE, BELOW, EVERYTHING = range(4)  # what gets label 1


@claim("EVER")
def represent(
    model: ConceptClass,
    found: Hypothesis,
    table: Floats,
    signed: Integers,
    limits: Limits,
    *,
    coin: bool,
) -> Hypothesis:
    """Return the hypothesis that stands for a shard whose ``erm`` is ``found``.

    Parameters
    ----------
    model, found : ConceptClass, Hypothesis
        The concept class, and its best hypothesis for the shard's rows.
    table, signed : array of float, array of int
        The shard's rows with their signed weights.
    limits : (float, float) or None
        Declared bounds of the first column, if any.
    coin : bool
        The shard's coin.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Rectangles
    >>> from cumae.ensembles.growing.representatives import represent
    >>> rows, weights = np.array([[1.0], [2.0], [4.0], [7.0]]), np.array([-3, 1, 2, -3])
    >>> found = Rectangles().erm(rows, np.ones(4, dtype=int), sample_weight=weights)
    >>> for coin in (True, False):
    ...     box = represent(Rectangles(), found, rows, weights, None, coin=coin)
    ...     print(box.predict([[1.0], [1.5], [2.0], [4.0], [6.9], [7.0]]))
    [0 1 1 1 1 0]
    [0 0 1 1 0 0]
    """
    if isinstance(model, Keyed):  # the same among ranks, which have no middles and no limits
        distinct, ranks = model.ranked(table)
        best = model.concept.erm(ranks, np.ones(len(ranks), dtype=np.int64), signed)
        rule = represent(model.concept, best, ranks[:, None], signed, None, coin=coin)
        return model.named(rule, distinct)
    if isinstance(found, Threshold) and isinstance(model, Thresholds):
        column = table[:, 0]
        return Gap.of(found, column).threshold(model.polarity, limits, coin)
    if isinstance(found, IntervalUnion):
        column = table[:, 0]
        return IntervalUnion(
            tuple(_ends(column, _within(column, low, high), coin) for low, high in found.intervals)
        )
    if isinstance(found, Rectangle) and found.lows:
        return _box(found, table, signed, coin)
    return found


# Boxes and intervals


def _within(column: Floats, low: float | None, high: float | None) -> Any:
    least, most = -math.inf if low is None else low, math.inf if high is None else high
    return (column >= least) & (column < most)


def _box(found: Rectangle, table: Floats, signed: Integers, coin: bool) -> Rectangle:
    sides = list(zip(table.T, found.lows, found.highs, strict=True))
    inside = np.all([_within(*side) for side in sides], axis=0) & (signed > 0)
    if not inside.any():
        return found
    tight = [(column[inside].min(), column[inside].max()) for column in table.T]
    beside = [(c >= least) & (c <= most) for c, (least, most) in zip(table.T, tight, strict=True)]
    moved = []
    for place, column in enumerate(table.T):
        # Rows that a side would meet on its way: those beside the box in all other columns.
        others = beside[:place] + beside[place + 1 :]
        met = np.all(others, axis=0) if others else np.ones(len(column), dtype=bool)
        moved.append(_ends(column[met | inside], inside[met | inside], coin))
    return Rectangle(tuple(low for low, _ in moved), tuple(high for _, high in moved))


def _ends(column: Floats, inside: Any, coin: bool) -> tuple[float | None, float | None]:
    """Return [low, high): up to the next rows outside, or just around the rows inside."""
    least, most = float(column[inside].min()), float(column[inside].max())
    if not coin:
        return least, math.nextafter(most, math.inf)
    below, above = column[column < least], column[column > most]
    low = math.nextafter(float(below.max()), math.inf) if len(below) else None
    return low, float(above.min()) if len(above) else None


# Thresholds


@dataclass(frozen=True)
class Gap:
    """Where a threshold lies: between two neighbouring rows, or beyond all of them.

    Parameters
    ----------
    kind : int
        What gets label 1.
    low, high : float
        The rows on both sides of the cut; if there is no cut, the outermost rows.
    """

    kind: int
    low: float
    high: float

    @classmethod
    def of(cls, found: Threshold, column: Floats) -> Gap:
        """Find the gap of a hypothesis among the rows that it was learnt from."""
        if found.cut is None:
            kind = NOTHING if found.above else EVERYTHING
            return cls(kind, float(column.min()), float(column.max()))
        low, high = column[column < found.cut].max(), column[column >= found.cut].min()
        return cls(ABOVE if found.above else BELOW, float(low), float(high))

    def threshold(self, polarity: str, limits: Limits, coin: bool) -> Threshold:
        """Return the one of the two thresholds of this gap that the coin picks."""
        if self.kind in (ABOVE, BELOW):
            above = self.kind == ABOVE
            if limits is not None:
                return Threshold(_middle(self.low, self.high), above=above)
            cut = math.nextafter(self.low, math.inf) if coin else self.high
            return Threshold(cut, above=above)
        first, last = self.low, math.nextafter(self.high, math.inf)
        if limits is not None:
            first = _middle(limits[0], self.low) if limits[0] < self.low else first
            last = _middle(self.high, limits[1]) if self.high < limits[1] else last
        # A cut before all rows or behind all of them gives every row the same label.
        if self.kind == EVERYTHING:
            up, down = Threshold(first, above=True), Threshold(last, above=False)
        else:
            up, down = Threshold(last, above=True), Threshold(first, above=False)
        everywhere = Threshold(None, above=self.kind == NOTHING)
        # With both polarities the other one stands for the label everywhere: it has that label
        # wherever the first one has its cut.
        if polarity == "both":
            return up if coin else down
        return everywhere if coin else (up if polarity == "above" else down)


def _middle(low: float, high: float) -> float:
    """Return a cut c with low < c <= high, as ``cumae.concepts.columns.middle`` does."""
    half = low / 2 + high / 2
    return half if low < half <= high else high


@claim("EVER")
def many_thresholds(
    model: Thresholds,
    column: Floats,
    signed: Integers,
    starts: Integers,
    limits: Limits,
    coins: list[bool],
) -> list[Threshold]:
    """Return what ``represent`` gives for each shard, a slice of the column, all at once.

    Each shard's result is a function of its own slice, as if it were trained alone.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Thresholds
    >>> from cumae.ensembles.growing.representatives import many_thresholds
    >>> column, weights = np.array([0.2, 0.4, 0.9, 0.6]), np.array([-1, 1, 2, 1])
    >>> limits = (0.0, 1.0)
    >>> found = many_thresholds(
    ...     Thresholds("above"), column, weights, np.array([0, 2, 4]), limits, [True, False]
    ... )
    >>> [round(rule.cut, 6) for rule in found]
    [0.3, 0.3]
    """
    above, below = model.polarity != "below", model.polarity != "above"
    kinds, lows, highs = gaps(column, signed, starts, above=above, below=below)
    return [
        Gap(*gap).threshold(model.polarity, limits, coin)
        for *gap, coin in zip(kinds.tolist(), lows.tolist(), highs.tolist(), coins, strict=True)
    ]


def gaps(
    column: Floats, signed: Integers, starts: Integers, *, above: bool, below: bool
) -> tuple[Integers, Floats, Floats]:
    """Find the gap of each shard's best threshold by the tie rule of ``Thresholds.erm``.

    Parameters
    ----------
    column, signed : array of float, array of int
        The rows of all shards with their signed weights.
    starts : array of int
        Where each shard begins, and the number of rows at the end.
    above, below : bool
        Whether label 1 may be above the cut, and below it.

    Returns
    -------
    tuple of three arrays
        What gets label 1, and the rows on both sides of the cut.
    """
    count, size = len(starts) - 1, np.diff(starts)
    order = np.lexsort((column, np.repeat(np.arange(count), size)))
    kinds, (lows, highs) = np.empty(count, dtype=np.int64), np.empty((2, count))
    most = int(size.max(initial=0))
    room = (np.empty(most), np.zeros(most + 1, dtype=np.int64))
    _fill(column[order], signed[order], starts, above, below, *room, kinds, lows, highs)
    return kinds, lows, highs


# Loops over arrays that numpy made before, because these compile quickly.


@numba.njit(cache=True, nogil=True)
def _fill(
    values: Floats,
    gains: Integers,
    starts: Integers,
    above: bool,
    below: bool,
    points: Floats,
    before: Integers,
    kinds: Integers,
    lows: Floats,
    highs: Floats,
) -> None:
    """Fill in what ``gaps`` returns.

    Parameters
    ----------
    values, gains, starts : array
        The values of each shard in order, their signed weights, and where each shard begins.
    above, below : bool
        Whether label 1 may be above the cut, and below it.
    points, before : array
        Room for the distinct values of a shard, and for the gain of the first ones of them.
    kinds, lows, highs : array
        Room for what is found.
    """
    for shard in range(len(starts) - 1):
        distinct = 0
        for i in range(starts[shard], starts[shard + 1]):
            if distinct == 0 or points[distinct - 1] != values[i]:
                points[distinct] = values[i]
                distinct += 1
                before[distinct] = before[distinct - 1]
            before[distinct] += gains[i]
        kind, place = _best(before, distinct, above, below)
        kinds[shard] = kind
        lows[shard], highs[shard] = points[0], points[distinct - 1]
        if kind in (ABOVE, BELOW):
            lows[shard], highs[shard] = points[place - 1], points[place]


@numba.njit(cache=True, nogil=True)
def _best(before: Integers, distinct: int, above: bool, below: bool) -> tuple[int, int]:
    """Return the middle one of the best hypotheses, and how many points lie below its cut."""
    size = 2 + (distinct - 1) * (above + below)
    best, ties = 0, 0
    for number in range(size):
        _, _, gain = _listed(before, distinct, above, number, size)
        if number == 0 or gain > best:
            best, ties = gain, 0
        ties += gain == best
    left = (ties - 1) // 2
    for number in range(size):
        kind, place, gain = _listed(before, distinct, above, number, size)
        if gain == best:
            if left == 0:
                return kind, place
            left -= 1
    return NOTHING, 0  # never reached: one of them is the middle one


@numba.njit(cache=True, nogil=True)
def _listed(
    before: Integers, distinct: int, above: bool, number: int, size: int
) -> tuple[int, int, int]:
    """Return kind, points below the cut and gain of one hypothesis of the class's list.

    That is: nothing, cuts with label 1 above, cuts with label 1 below, everything.
    """
    inner, total = distinct - 1, before[distinct]
    if number == 0:
        return NOTHING, 0, 0
    if number == size - 1:
        return EVERYTHING, 0, total
    place = (number - 1) % inner + 1
    if above and number <= inner:
        return ABOVE, place, total - before[place]
    return BELOW, place, before[place]
