"""Intervals of figures: sampling, noise, and the order of rows that bins hide.

Each interval holds the values of a figure that a test does not reject. The test compares a sum of
noisy counts, whose mean is 0 at the true value, with its standard deviation there
(docs/explanations/intervals.md has the formulas). So a figure whose denominator drowns in noise has
a wide interval, and none that is wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from cumae.arrays import Floats, Integers
from cumae.counting.table import Partition

HALF_ROW = 0.5  # counts are whole, and a normal law is not
WIDENED = 1.01
MOST_TAIL = 6.0  # excess kurtosis that is corrected for, at most
SURE_BINS = 4.0  # standard deviations of the noise that joined bins exceed
SURE_ROWS = 10  # rows that they hold at least


@dataclass(frozen=True)
class Figure:
    """A figure and its interval; numbers, or arrays of numbers for the points of a curve.

    Parameters
    ----------
    value, low, high : float or array of float
        The best guess, and the ends of the interval.
    hidden : float
        How far the order of rows within bins, which is not known, may move the value up or down.
        The interval covers it.

    Examples
    --------
    >>> from cumae.counting.intervals import Figure
    >>> print(Figure(0.7512, 0.731, 0.77))
    75.1 % (73.1 to 77.0)
    """

    value: Any
    low: Any
    high: Any
    hidden: float = 0.0

    def __str__(self) -> str:
        if self.low <= 0 and self.high >= 1:
            return "not known (0.0 to 100.0 %)"
        return f"{100 * self.value:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f})"

    def within(self, least: float, most: float) -> Figure:
        """Return the figure cut to a range, with its value inside of its interval.

        Parameters
        ----------
        least, most : float
            The range.
        """
        low, high = np.clip(self.low, least, most), np.clip(self.high, least, most)
        return Figure(np.clip(self.value, low, high), low, high, self.hidden)

    def plain(self) -> Figure:
        """Return the figure with Python's own numbers, or lists of them."""
        value, low, high = (np.asarray(x).tolist() for x in (self.value, self.low, self.high))
        return Figure(value, low, high, float(self.hidden))


@dataclass(frozen=True)
class ValueTest:
    """The sum top - x bottom, and its variance first + second x + third x^2, at a value x.

    All fields are numbers or arrays of one shape.
    """

    top: Any
    bottom: Any
    first: Any
    second: Any
    third: Any

    def variance(self, value: Any) -> Any:
        """Return the variance at a value."""
        return np.maximum(self.first + value * (self.second + value * self.third), 0.0)

    def guess(self, most: float) -> Any:
        """Return the value at which the sum is 0, cut to the range of the figure."""
        safe = np.where(np.asarray(self.bottom) > 0, self.bottom, 1.0)
        found = np.where(np.asarray(self.bottom) > 0, self.top / safe, most / 2)
        return np.clip(found, 0.0, most)

    def accepted(self, quantile: Any, most: float, shift: float = 0.0) -> tuple[Any, Any]:
        """Return the least and the largest value from 0 to ``most`` that is not rejected.

        Noise may push the sum beyond all values that a figure can have; then the test is made at
        the nearest of these. If the bottom may be 0, or no value is left, the counts say nothing,
        and every value is accepted.
        """
        reach = np.maximum(np.asarray(self.bottom, dtype=float) * most, 0.0)
        top = np.clip(np.asarray(self.top, dtype=float) + shift, 0.0, reach)
        square = np.asarray(quantile, dtype=float) ** 2
        c = top**2 - square * self.first
        b = -2 * top * self.bottom - square * self.second
        a = self.bottom**2 - square * self.third
        top, a, b, c = np.broadcast_arrays(top, a, b, c)
        root = np.sqrt(np.maximum(b**2 - 4 * a * c, 0.0))
        real = b**2 >= 4 * a * c
        with np.errstate(divide="ignore", invalid="ignore"):
            # The form without cancellation.
            far = -(b + np.where(b >= 0, root, -root)) / 2
            roots = np.stack([far / a, c / far])
        inside = real & (roots >= 0) & (roots <= most)
        slack = 1e-9 * (1.0 + square * np.abs(self.first))
        zero = c <= slack
        end = a * most**2 + b * most + c <= slack * (1 + most**2)
        low = np.where(zero, 0.0, np.where(inside, roots, np.inf).min(axis=0))
        high = np.where(end, most, np.where(inside, roots, -np.inf).max(axis=0))
        nothing = ~np.isfinite(low) | ~np.isfinite(high) | (a <= 0) | (np.asarray(self.bottom) <= 0)
        return np.where(nothing, 0.0, low), np.where(nothing, most, high)


def normal_quantile(confidence: Any, rows: float | None = None) -> Any:
    """Return how many standard deviations an interval reaches to each side.

    With few rows it is the quantile of Student's law. It is a little larger than that, for what
    approximations miss.
    """
    chance = (1 + np.asarray(confidence)) / 2
    found = ndtri(chance) if rows is None else stdtrit(max(rows, 2.0) - 1, chance)
    return WIDENED * found


def _wider(quantile: Any, excess: Any) -> Any:
    """Correct a normal quantile for heavier tails (Cornish and Fisher)."""
    tail = np.minimum(excess, MOST_TAIL)
    return quantile + tail * (quantile**3 - 3 * quantile) / 24


@dataclass(frozen=True)
class Again:
    """The same rows, counted once more in another table.

    Parameters
    ----------
    part : Partition
        The other table.
    count, cells : int
        The noisy count of these rows there, and how many cells it is of.
    """

    part: Partition
    count: int
    cells: int


def proportion(
    part: Partition,
    top: Any,
    bottom: Any,
    top_cells: Any,
    cells: Any,
    confidence: Any,
    again: Again | None = None,
) -> Figure:
    """Return the share of some cells' rows among those of more cells.

    Parameters
    ----------
    part : Partition
        The table of these cells.
    top, bottom : int or array of int
        Noisy counts of some cells, and of more cells that include them.
    top_cells, cells : int or array of int
        How many cells these are.
    confidence : float
        Chance that the interval holds the true share.
    again : Again, or None
        The rows of the bottom in another table, where noise is another.
    """
    size, law = part.counts.size, part.law
    top = np.asarray(top - top_cells * part.surplus, dtype=float)
    bottom = np.asarray(bottom - cells * part.surplus, dtype=float)
    spread, here = cells - cells**2 / size, 1.0
    if again is not None:  # both counts of the bottom, the less noisy one counts more
        there = again.cells - again.cells**2 / again.part.counts.size
        here = there / (spread + there)
        other = again.count - again.cells * again.part.surplus
        bottom = here * bottom + (1 - here) * other
        spread = spread * here
    known = np.maximum(bottom, 0.0)
    test = ValueTest(
        top,
        bottom,
        law.variance * (top_cells - top_cells**2 / size),
        law.variance * here * 2 * (top_cells * cells / size - top_cells) + known,
        law.variance * spread - known,
    )
    value = test.guess(1.0)
    fourth = law.fourth * (top_cells * (1 - value) ** 4 + (cells - top_cells) * value**4)
    # One row more: at a share of 0 or 1 rows vary less than at the end of the interval.
    excess = fourth / (test.variance(value) + 1.0) ** 2
    quantile = _wider(normal_quantile(confidence), excess)
    low, _ = test.accepted(quantile, 1.0, -HALF_ROW)
    _, high = test.accepted(quantile, 1.0, HALF_ROW)
    # All of no rows: any share.
    empty = (bottom == 0) & (law.variance == 0)
    return Figure(value, np.where(empty, 0.0, low), np.where(empty, 1.0, high)).within(0.0, 1.0)


def mean_loss(
    part: Partition, least: Floats, most: Floats, where: Floats, confidence: float
) -> Figure:
    """Return the mean of a loss of which each cell knows the least and the most.

    Parameters
    ----------
    part : Partition
        The table of these cells.
    least, most : array of float
        The least and the most loss of a row in each cell; of the shape of the table.
    where : array of float
        1 in cells whose rows count, and 0 in others.
    confidence : float
        Chance that the interval holds the true mean.
    """
    largest = float((most * where).max())
    below, low, _ = _mean(part, least * where, where, largest, confidence)
    above, _, high = _mean(part, most * where, where, largest, confidence)
    middle, hidden = (below + above) / 2, (above - below) / 2
    return Figure(middle, low, high, hidden).within(0.0, largest)


def _mean(
    part: Partition, loss: Floats, where: Floats, largest: float, confidence: float
) -> tuple[float, float, float]:
    """Return the mean of a loss that is known for each cell, and its interval."""
    size, law = part.counts.size, part.law
    counts = part.counts - part.surplus
    sure = np.maximum(part.counts, 0)
    test = ValueTest(
        float((loss * counts).sum()),
        float((where * counts).sum()),
        (loss**2 * sure).sum() + law.variance * ((loss**2).sum() - loss.sum() ** 2 / size),
        -2 * (loss * sure).sum()
        - 2 * law.variance * (loss.sum() - loss.sum() * where.sum() / size),
        (where * sure).sum() + law.variance * (where.sum() - where.sum() ** 2 / size),
    )
    # One row more at the largest loss: rare large losses may not have been seen.
    test = ValueTest(
        test.top,
        test.bottom,
        test.first + largest**2,
        test.second - 2 * largest,
        test.third + 1,
    )
    value = float(test.guess(largest))
    away = loss - value * where
    variance = float(test.variance(value))
    quantile = float(
        _wider(normal_quantile(confidence), law.fourth * (away**4).sum() / variance**2)
    )
    # A skewed sum has its mean further out (Johnson).
    shift = float((2 * quantile**2 + 1) / 6 * (away**3 * sure).sum() / variance)
    low, high = test.accepted(quantile, largest, shift)
    return value, float(low), float(high)


def ranking_area(
    law_variance: float, positives: Integers, negatives: Integers, exact: Any, confidence: float
) -> Figure:
    """Return the area under the ROC curve: the chance that a positive row has the higher score.

    Parameters
    ----------
    law_variance : float
        The variance of the noise on each count.
    positives, negatives : array of int
        Noisy counts in each bin.
    exact : array of bool
        Which bins hold a single chance: there a pair counts one half. In others it may count
        anything.
    confidence : float
        Chance that the interval holds the true area.
    """
    few = min(float(positives.sum()), float(negatives.sum()))
    quantile = float(normal_quantile(confidence, few))
    worst, best = (
        _ranking_test(law_variance, positives, negatives, np.where(exact, 0.5, tied))
        for tied in (0.0, 1.0)
    )
    return _between(worst, best, quantile)


def _between(worst: ValueTest, best: ValueTest, quantile: float) -> Figure:
    """Return a figure between two others: all that bins hide speaks against it, or for it."""
    low, _ = worst.accepted(quantile, 1.0)
    _, high = best.accepted(quantile, 1.0)
    least, most = float(worst.guess(1.0)), float(best.guess(1.0))
    found = Figure((least + most) / 2, float(low), float(high), (most - least) / 2)
    return found.within(0.0, 1.0)


def _ranking_test(
    variance: float, positives: Integers, negatives: Integers, tied: Floats
) -> ValueTest:
    """Return the test of won pairs among all pairs of a positive and a negative row."""
    lost = np.cumsum(negatives) - negatives + tied * negatives  # negatives below each positive
    won = positives.sum() - np.cumsum(positives) + tied * positives  # positives above a negative
    n_positives, n_negatives = float(positives.sum()), float(negatives.sum())
    one, other = np.maximum(positives, 0) + variance, np.maximum(negatives, 0) + variance
    return ValueTest(
        float((positives * lost).sum()),
        n_positives * n_negatives if min(n_positives, n_negatives) > 0 else 0.0,
        (lost**2 * one).sum() + (won**2 * other).sum(),
        -2 * (n_negatives * (lost * one).sum() + n_positives * (won * other).sum()),
        n_negatives**2 * one.sum() + n_positives**2 * other.sum(),
    )


def precision_area(
    law_variance: float, positives: Integers, negatives: Integers, exact: Any, confidence: float
) -> Figure:
    """Return the area under the precision-recall curve (average precision).

    Parameters
    ----------
    law_variance, positives, negatives, exact, confidence : object
        As in ``ranking_area``.
    """
    quantile = float(normal_quantile(confidence, float(positives.sum())))
    first = _joined(law_variance, positives + negatives)
    cells = np.diff(np.append(first, len(positives)))
    one = np.add.reduceat(positives[::-1], first).astype(float)
    other = np.add.reduceat(negatives[::-1], first).astype(float)
    alone = np.logical_and.reduceat(np.broadcast_to(exact, positives.shape)[::-1], first)
    alone &= cells == 1
    bad, good = (
        _precision_test(law_variance, one, other, cells, alone, worst=worst)
        for worst in (True, False)
    )
    return _between(bad, good, quantile)


def _joined(variance: float, totals: Integers) -> Integers:
    """Return where joined bins begin, from the highest score on.

    Bins at the top are joined until they hold more rows than their noise may pretend.
    """
    if variance == 0:
        return np.arange(len(totals))
    seen = np.cumsum(totals[::-1])
    noise = SURE_BINS * np.sqrt(2 * variance * np.arange(1, len(totals) + 1)) + SURE_ROWS
    good = np.flatnonzero((seen >= noise)[:-1]) + 1
    return np.append(0, good)


def _precision_test(
    variance: float, one: Floats, other: Floats, cells: Integers, alone: Any, *, worst: bool
) -> ValueTest:
    """Return the test of the sum of precisions at each positive row, among positive rows.

    In a bin, positive rows come last if ``worst``, and first if not.
    """
    above, wrong = np.cumsum(one) - one, np.cumsum(other) - other
    bad = np.maximum(wrong + (other if worst else 0.0), 0.0)
    # Slopes are those of counts that are not below their noise: at 0 they would be infinite.
    doubt = np.sqrt(variance * np.cumsum(cells))
    steep = np.maximum(bad, doubt)
    area = one - bad * _grown(above, bad, one)
    grown, after = _grown(above, steep, one), np.maximum(above, 0.0) + steep + np.maximum(one, 0.0)
    by_one = 1 - bad / np.maximum(np.maximum(above, 0.0) + bad + np.maximum(one, 0.0), 1e-9)
    before = np.maximum(np.maximum(above, 0.0) + steep, 1e-9)
    by_above = steep * (1 / before - 1 / np.maximum(after, 1e-9))
    by_bad = by_above - grown
    if alone.any():  # a bin with a single chance has one precision
        total = np.maximum(above + one + wrong + other, 1e-9)
        share = (above + one) / total
        area = np.where(alone, one * share, area)
        by_one = np.where(alone, share + one * (1 - share) / total, by_one)
        by_above = np.where(alone, one * (1 - share) / total, by_above)
        by_bad = np.where(alone, -one * share / total, by_bad)
    own = alone | worst
    later = np.cumsum(by_above[::-1])[::-1] - by_above
    slope = by_one + later
    tilt = np.cumsum(by_bad[::-1])[::-1] - by_bad + np.where(own, by_bad, 0.0)
    left, right = np.maximum(one, 0) + variance * cells, np.maximum(other, 0) + variance * cells
    return ValueTest(
        float(area.sum()),
        max(float(one.sum()), 0.0),
        (slope**2 * left).sum() + (tilt**2 * right).sum(),
        -2 * (slope * left).sum(),
        left.sum(),
    )


def _grown(above: Floats, bad: Floats, one: Floats) -> Floats:
    """Return the integral of 1 / (rows above) over the positive rows of each bin."""
    before = np.maximum(above, 0.0) + bad
    safe = np.where(before > 0, before, 1.0)
    return np.where(before > 0, np.log1p(np.maximum(one, 0.0) / safe), 0.0)


def averaged(parts: list[Figure]) -> Figure:
    """Return the mean of figures of different rows (the method of Zou and Donner).

    Errors of figures of which something is known are independent, and so their squares add up.
    Where nothing is known, the middle of 0 and 1 is no estimate, and may be off by half of that
    always to the same side. So what such figures may be off by is added to what the others may be.

    Parameters
    ----------
    parts : list of Figure
        The figures.

    Examples
    --------
    >>> from cumae.counting.intervals import Figure, averaged
    >>> known, unknown = Figure(0.8, 0.7, 0.9), Figure(0.5, 0.0, 1.0)
    >>> mean = averaged([known, unknown])
    >>> round(float(mean.low), 3), round(float(mean.high), 3)
    (0.35, 0.95)
    """
    count = len(parts)
    value = sum(one.value for one in parts) / count
    hidden = sum(one.hidden for one in parts) / count
    down, up = 0.0, 0.0
    for nothing in (False, True):
        some = [one for one in parts if (one.low <= 0 and one.high >= 1) == nothing]
        down += math.hypot(*(max(one.value - one.hidden - one.low, 0.0) for one in some))
        up += math.hypot(*(max(one.high - one.value - one.hidden, 0.0) for one in some))
    low, high = value - hidden - down / count, value + hidden + up / count
    return Figure(value, low, high, hidden).within(0.0, 1.0)
