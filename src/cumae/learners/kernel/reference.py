"""A reference where there are no public rows: made-up rows with noisy marginals and correlations.

Private rows speak through the same noisy sums of whole numbers as everywhere in this package:
counts of marks and bins, once more with better bins, and one matrix of products of scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.fft import dct, idct
from scipy.special import ndtr, ndtri

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.data import INDICATOR, Bounds, Columns
from cumae.engines import cut
from cumae.learners.kernel.features import even_numbers
from cumae.learners.kernel.linear import likely_correlations
from cumae.learners.kernel.sums import COUNTED, noisy_sum
from cumae.randomness import Source

MADE_UP = 2_000  # rows
CLEAR_SHARE = 2.0  # times the noise of a share, below which a usual one is not told
BINS = 16  # of a column, in the second look, where noise hides more
MOST_BINS = 40  # of a column, in any look
CLEAR = 4.0  # how many times its noise a usual count is where there are more bins
FULL = 2.5  # times the usual share, from which on a bin holds one frequent value
PAYS = 0.4  # how many times its noise a usual count must be
TELLS = 2.0  # and how many times its noise the count of all rows, if bins help each other
SCORE = 64  # whole numbers that stand for a score of 1
FARTHEST = 2.5  # score at most
USUAL = 1.5  # squared score of a column to which whole rows are shortened
RAREST = 1e-3  # share of a mark at least
LEAST_VARIANCE = 0.05  # of a hidden number, as it is measured
CLOSEST, APART = 0.98, 0.02  # correlation at most, and what is then added to variances
LEAST_VALUE = 1e-3  # of correlations, along any direction
NEARBY = 2  # waves on each side that help to tell how strong one is
TINY = 1e-9  # instead of 0, to divide by
NEAR = (2.0**-12, 2.0**-10, 2.0**-8, 2.0**-6, 2.0**-5, 2.0**-4, 2.0**-3, 0.25)
EVEN = (0.375, 0.5, 0.625, 0.75, 0.875)


@dataclass(frozen=True)
class Marginal:
    """The spread of the values of one encoded column.

    Parameters
    ----------
    edges : array of float
        Edges of bins.
    shares : array of float
        The share of each bin.
    points : array of float
        The one value of each bin, or NaN if its values lie evenly in it.
    """

    edges: Floats
    shares: Floats
    points: Floats

    @classmethod
    def of(cls, edges: Floats, shares: Floats, bounds: Bounds, bins: int = BINS) -> Marginal:
        """Find the bins that have a single value: by a declared step, or because they are full.

        Bins have about the same share, so that one with far more holds a value that is frequent. It
        is likely to be a bound, or else the number in the bin with the fewest digits.
        """
        points = np.full(len(shares), np.nan)
        if _has_few(bounds):
            points = (edges[1:] + edges[:-1]) / 2
        else:
            for place in np.flatnonzero(shares > FULL / bins):
                low, high = edges[place], edges[place + 1]
                usual = [v for v in (0.0, *bounds[:2]) if low <= v <= high]
                points[place] = usual[0] if usual else roundest(low, high)
        return cls(edges, shares, points)

    def score(self, column: Floats) -> Floats:
        """Return normal scores of values, by their ranks; a frequent value has its middle rank."""
        rank = np.interp(np.clip(column, self.edges[0], self.edges[-1]), self.edges, self._below)
        code = np.searchsorted(self.edges[1:-1], column, side="right")
        middle = (self._below[1:] + self._below[:-1]) / 2
        rank = np.where(np.isnan(self.points[code]), rank, middle[code])
        return np.clip(ndtri(np.clip(rank, 1e-6, 1 - 1e-6)), -FARTHEST, FARTHEST)

    def value(self, rank: Floats) -> Floats:
        """Return values of ranks between 0 and 1."""
        code = np.searchsorted(self._below[1:-1], rank, side="right")
        even = np.interp(rank, self._below, self.edges)
        return np.where(np.isnan(self.points[code]), even, self.points[code])

    @property
    def _below(self) -> Floats:
        below = np.concatenate([[0.0], np.cumsum(self.shares)])
        return below + np.linspace(0.0, 1e-9, len(below))  # so that it grows everywhere


def roundest(low: float, high: float) -> float:
    """Return the number between two others that is written with the fewest digits.

    Examples
    --------
    >>> from cumae.learners.kernel.reference import roundest
    >>> roundest(39.54, 40.85), roundest(12.75, 13.28), roundest(-0.0131, -0.0126)
    (40.0, 13.0, -0.013)
    """
    largest = max(abs(low), abs(high), TINY)
    for power in range(math.floor(math.log10(largest)), -320, -1):
        step = 10.0**power
        found = math.ceil(low / step) * step
        if low <= found <= high:
            return round(found, max(0, -power))
    return (low + high) / 2


def _has_few(bounds: Bounds) -> bool:
    """Tell whether a column has so few declared values that each has a bin."""
    return len(bounds) == 3 and (bounds[1] - bounds[0]) / bounds[2] < MOST_BINS - 0.5


def first_edges(bounds: Bounds) -> Floats:
    """Return edges of bins: one for each of few values, else finer near 0 or the end nearest to it.

    Parameters
    ----------
    bounds : tuple of float
        Low, high and perhaps the step between values.
    """
    low, high = bounds[:2]
    if _has_few(bounds):
        return np.asarray(
            low + bounds[2] * (np.arange(round((high - low) / bounds[2]) + 2.0) - 0.5)
        )
    shares = np.array([0.0, *NEAR, *EVEN, 1.0])
    if low < 0 < high:
        both = np.concatenate([low * shares, high * shares])
        return np.unique(both)
    if abs(low) <= abs(high):
        return low + (high - low) * shares
    return (high - (high - low) * shares)[::-1]


def next_edges(marginal: Marginal, bounds: Bounds, bins: int = BINS) -> Floats:
    """Return edges of bins with about the same share; values of a declared step are not cut.

    Parameters
    ----------
    marginal : Marginal
        How values are spread by a first look.
    bounds : tuple of float
        Low, high and perhaps the step between values.
    bins : int
        How many there are, at most.
    """
    if _has_few(bounds):
        return marginal.edges
    ranks = np.linspace(0, 1, bins + 1)
    edges = np.interp(ranks, np.append(0.0, np.cumsum(marginal.shares)), marginal.edges)
    if len(bounds) == 3:
        low, step = bounds[0], bounds[2]
        edges[1:-1] = low + step * (np.floor((edges[1:-1] - low) / step) + 0.5)
    edges = np.unique(edges)
    return edges if len(edges) > 2 else marginal.edges


class MadeUp:
    """Makes up rows from releases.

    Parameters
    ----------
    columns : Columns
        All columns, with ranges.
    """

    @claim("KERNEL")
    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        # Encoded places of the columns of numbers, and the places of each group of marks.
        self.numbers: list[int] = []
        self.marks: list[list[int]] = []
        place = 0
        for column in columns.columns:
            width = len(column.encoded)
            places = list(range(place, place + width))
            if columns.bounds[place] != INDICATOR:
                self.numbers.append(places.pop(0))
            if places:
                self.marks.append(places)
            place += width

    @property
    @claim("KERNEL")
    def n_columns(self) -> int:
        """In how many bins a row can be, over all columns.

        A column of numbers that may be missing counts twice: its mark of missing cells is a bin of
        its own.
        """
        return len(self.numbers) + len(self.marks)

    @property
    @claim("KERNEL")
    def counts_move(self) -> float:
        """The distance by which a row moves counts: it leaves one bin of a column for another."""
        return COUNTED * math.sqrt(2 * self.n_columns)

    @property
    @claim("KERNEL")
    def products_move(self) -> float:
        """The distance by which a replaced row moves the products of scores."""
        return math.sqrt(2) * self.longest

    @property
    @claim("KERNEL")
    def longest(self) -> int:
        """Squared length of the whole scores of a row, at most; longer rows are shortened.

        A usual row has a score of about 1 in each column.
        """
        return math.ceil(USUAL * SCORE**2 * self.n_columns)

    def pays(self, strength: float) -> bool:
        """Tell whether counts stand out from their noise.

        Parameters
        ----------
        strength : float
            Number of rows, times the mu of both counts together.
        """
        return strength > PAYS * BINS * math.sqrt(4 * self.n_columns)

    def tells(self, strength: float) -> bool:
        """Tell whether it stands out from noise in which part of their range columns lie.

        Parameters
        ----------
        strength : float
            Number of rows, times the mu of one count.
        """
        return strength > TELLS * math.sqrt(2 * self.n_columns)

    @claim("KERNEL")
    @np.errstate(all="ignore")  # here, too: a thread does not know what its caller ignores
    def counts(self, table: Floats, edges: list[Floats]) -> Integers:
        """Return how many rows are in each bin, of all columns one after the other.

        A row is in one bin of a column at most.
        """
        found = []
        for place, edge in zip(self.numbers, edges, strict=True):
            code = np.searchsorted(edge[1:-1], table[:, place], side="right")
            found.append(np.bincount(code, minlength=len(edge) - 1))
        for places in self.marks:
            marks = table[:, places] == 1
            code = np.where(marks.any(axis=1), marks.argmax(axis=1), len(places))
            found.append(np.bincount(code, minlength=len(places) + 1)[:-1])
        return COUNTED * np.concatenate(found)

    @claim("KERNEL")
    @np.errstate(all="ignore")  # as above
    def products(self, table: Floats, marginals: list[Marginal], shares: list[Floats]) -> Integers:
        """Return the sums of products of whole scores, on and above the diagonal.

        Long rows are shortened. One that still is longer than ``longest`` allows adds nothing.
        """
        scores = np.nan_to_num(self._scores(table, marginals, shares))
        # Rounding adds at most half of a number to each score.
        room = math.sqrt(self.longest) - math.sqrt(scores.shape[1]) / 2
        length = np.sqrt((scores**2).sum(axis=1, keepdims=True))
        whole = np.rint(scores * np.minimum(1.0, room / np.maximum(length, 1.0)))
        whole[~((whole**2).sum(axis=1) <= self.longest)] = 0.0  # not for NaN either
        products = whole.T @ whole  # exact: far below 2^53
        return np.asarray(products[np.triu_indices(len(products))], dtype=np.int64)

    @claim("KERNEL")
    def release(
        self,
        table: Any,
        rows: int,
        counts_noise: float,
        products_noise: float | None,
        source: Source,
        looks: int = 2,
    ) -> Floats:
        """Release marginals and correlations of rows, and return made-up ones.

        Parameters
        ----------
        table : array of float, or what has pieces
            Encoded private rows.
        rows : int
            Their number.
        counts_noise : float
            Scale of the noise of counts.
        products_noise : float or None
            Scale of the noise of products. Without, columns are made up as if each went by itself.
        source : Source
            Where coins come from.
        looks : int
            How often counts are released; the second time with better bins.
        """
        error = counts_noise / COUNTED  # of a count, in rows
        bounds = [self.columns.bounds[place] or (0.0, 1.0) for place in self.numbers]
        edges = [first_edges(declared) for declared in bounds]
        expected = [
            _evenly_shared(edge, declared) for edge, declared in zip(edges, bounds, strict=True)
        ]
        marginals: list[Marginal] = []
        most = int(min(max(BINS, rows / max(CLEAR * error, TINY)), MOST_BINS))
        for look, bins in enumerate((BINS, most)[:looks]):
            if look:
                edges = [next_edges(m, b, bins) for m, b in zip(marginals, bounds, strict=True)]
            total = partial(self.counts, edges=edges)
            counts = noisy_sum(total, cut(table), counts_noise, source) / COUNTED
            sizes = [len(edge) - 1 for edge in edges] + [len(places) for places in self.marks]
            split = np.split(counts, np.cumsum(sizes)[:-1])
            if looks == 1:
                marks = [_possible(count / rows) * rows for count in split[len(edges) :]]
                split = _smooth(split[: len(edges)], expected, error, rows) + marks
            sure = looks > 1  # or else no bin is full for sure
            marginals = [
                Marginal.of(edge, _shares(count, error * sure), declared, bins if sure else 1)
                for edge, count, declared in zip(edges, split, bounds, strict=False)
            ]
        shares = [_mark_shares(count, rows) for count in split[len(edges) :]]
        width = len(self.numbers) + sum(map(len, self.marks))
        if products_noise is None:
            return self._draw(marginals, shares, np.eye(width), 0.0, source)
        total = partial(self.products, marginals=marginals, shares=shares)
        upper = noisy_sum(total, cut(table), products_noise, source)
        products = np.zeros((width, width))
        products[np.triu_indices(width)] = upper / (rows * SCORE**2)
        products += np.triu(products, 1).T
        return self._draw(marginals, shares, products, products_noise / (rows * SCORE**2), source)

    def _scores(self, table: Floats, marginals: list[Marginal], shares: list[Floats]) -> Floats:
        parts = [
            SCORE * marginal.score(table[:, place])
            for place, marginal in zip(self.numbers, marginals, strict=True)
        ]
        for places, share in zip(self.marks, shares, strict=True):
            parts += list((SCORE * ((table[:, places] == 1) - share)).T)
        return np.stack(parts, axis=1)

    def _draw(
        self,
        marginals: list[Marginal],
        shares: list[Floats],
        products: Floats,
        noise: float,
        source: Source,
    ) -> Floats:
        """Return rows of a Gaussian copula: numbers by ranks, marks by ordered shares."""
        loads, orders = self._loads(shares, products)
        root = _root(loads, products, noise)
        ranks = ndtr(_normals(MADE_UP * len(root), source).reshape(MADE_UP, -1) @ root.T)
        table = np.zeros((MADE_UP, len(self.columns)))
        for place, marginal, rank in zip(self.numbers, marginals, ranks.T, strict=False):
            table[:, place] = on_grid(marginal.value(rank), self.columns.bounds[place])
        ranks_of_marks = ranks.T[len(self.numbers) :]
        each = zip(self.marks, shares, orders, ranks_of_marks, strict=True)
        for places, share, order, rank in each:
            # Shares may add up to less than 1: ranks beyond them are rows without a mark.
            code = np.searchsorted(np.cumsum(share[order]), rank)
            known = code < len(order)
            table[np.flatnonzero(known), np.array(places)[order[code[known]]]] = 1.0
        return table

    def _loads(self, shares: list[Floats], products: Floats) -> tuple[Floats, list[Integers]]:
        """Return what each score adds to the hidden number of its column, and orders of marks.

        A column of marks has one hidden number. Its marks are put into the order in which they go
        together with the other columns.
        """
        count = len(self.numbers)
        loads = np.zeros((len(products), count + len(self.marks)))
        loads[np.arange(count), np.arange(count)] = 1.0
        orders, place = [], count
        for number, share in enumerate(shares):
            block = slice(place, place + len(share))
            others = np.delete(np.arange(len(products)), np.r_[block])
            lean = np.zeros(len(share))
            if len(others):
                left, sizes, _ = np.linalg.svd(products[block, :][:, others], full_matrices=False)
                lean = left[:, 0] * sizes[0] / np.maximum(share, RAREST)
            order = np.argsort(lean, kind="stable")
            orders.append(order)
            middle = np.cumsum(share[order]) - share[order] / 2
            loads[place + order, count + number] = ndtri(np.clip(middle, RAREST, 1 - RAREST))
            place += len(share)
        return loads, orders


def _root(loads: Floats, products: Floats, noise: float) -> Floats:
    """Return a root of the correlations of hidden numbers; those that may be noise are shrunk."""
    spread = loads.T @ products @ loads
    lengths = np.sqrt((loads**2).sum(axis=0))
    size = np.sqrt(np.maximum(np.diag(spread), LEAST_VARIANCE))
    shrunk = likely_correlations(spread / np.outer(size, size), lengths / size, noise)
    safe = np.clip(shrunk, -CLOSEST, CLOSEST) + APART * np.eye(len(shrunk))
    values, vectors = np.linalg.eigh(safe)
    root = vectors * np.sqrt(np.maximum(values, LEAST_VALUE))
    return np.asarray(root / np.sqrt((root**2).sum(axis=1, keepdims=True)))


def evenly(columns: Columns, source: Source) -> Floats:
    """Return rows that know nothing but declarations: numbers lie evenly within their ranges."""
    table = np.zeros((MADE_UP, len(columns)))
    place = 0
    for column in columns.columns:
        width = len(column.encoded)
        marks = list(range(place, place + width))
        coins = even_numbers(2 * MADE_UP, source).reshape(2, MADE_UP)
        if columns.bounds[place] != INDICATOR:
            bounds = columns.bounds[marks.pop(0)] or (0.0, 1.0)
            table[:, place] = evenly_within(bounds, coins[0])
        shares = [columns.shares[mark] or 0.5 for mark in marks]
        if len(marks) == 1:
            table[coins[1] < min(shares[0], 0.5), marks[0]] = 1.0
        elif marks:
            code = np.searchsorted(np.cumsum(shares), coins[1] * sum(shares))
            for number, mark in enumerate(marks):
                table[code == number, mark] = 1.0
        place += width
    return table


def _evenly_shared(edges: Floats, bounds: Bounds) -> Floats:
    """Return the shares of bins if values lie evenly within their declared range."""
    inside = np.clip(edges, bounds[0], bounds[1]) if not _has_few(bounds) else edges
    widths = np.diff(inside)
    return np.asarray(widths / widths.sum())


def _smooth(counts: list[Floats], expected: list[Floats], error: float, rows: int) -> list[Floats]:
    """Return counts that are drawn towards expected ones, as far as noise may have moved them.

    How far true counts are from what is expected follows from all columns together. Neighbouring
    bins of a column of numbers are likely to be off together: slow waves over the bins are drawn
    back less than fast ones, which in most columns are noise.
    """
    off = [
        dct(count - rows * share, norm="ortho")
        for count, share in zip(counts, expected, strict=True)
    ]
    for part in off:
        part[0] = 0.0  # each row is in one bin
    power = np.array(
        [
            np.mean([part[place] ** 2 for part in off if len(part) > place]) - error**2
            for place in range(max(map(len, off), default=0))
        ]
    )
    if not len(power):
        return []
    # What few columns say about one wave is uncertain: waves that are about as fast help.
    power = np.convolve(np.pad(power, NEARBY, mode="edge"), np.ones(2 * NEARBY + 1), mode="valid")
    power = np.maximum(power / (2 * NEARBY + 1), 0.0)
    kept = power / (power + error**2 + TINY)
    return [
        rows * _nearest(share + idct(part * kept[: len(part)], norm="ortho") / rows)
        for share, part in zip(expected, off, strict=True)
    ]


def _possible(shares: Floats) -> Floats:
    """Return the nearest shares of marks that there can be: not below 0, and together at most 1."""
    positive = np.maximum(shares, 0.0)
    return positive if positive.sum() <= 1 else _nearest(shares)


def _nearest(shares: Floats, total: float = 1.0) -> Floats:
    """Return the nearest numbers of 0 or more with a sum: each is lowered by the same, or to 0."""
    order = np.sort(shares)[::-1]
    lower = (np.cumsum(order) - total) / np.arange(1, len(order) + 1)
    last = np.flatnonzero(order > lower)[-1]
    return np.asarray(np.maximum(shares - lower[last], 0.0))


def most_values(rows: int, noise: float) -> float:
    """Return how many values a column may have, so that noisy counts tell their shares.

    Parameters
    ----------
    rows : int
        Number of private rows.
    noise : float
        Scale of the noise of the counts.
    """
    usual = COUNTED * rows / max(CLEAR_SHARE * noise, TINY)
    return min(max(2.0, usual), MOST_BINS)


def on_grid(values: Floats, bounds: Bounds | None) -> Floats:
    """Return values as they are, or the nearest ones of a declared step."""
    if bounds is None or len(bounds) < 3:
        return values
    low, high, step = bounds
    return low + step * np.clip(np.rint((values - low) / step), 0, (high - low) // step)


def evenly_within(bounds: Bounds, coins: Floats) -> Floats:
    """Return values within a range, or of a declared step, by numbers between 0 and 1."""
    low, high, *step = bounds
    if not step:
        return low + (high - low) * coins
    return low + step[0] * np.floor(coins * ((high - low) // step[0] + 1))


def _shares(counts: Floats, noise: float) -> Floats:
    """Return shares from noisy counts; what noise alone would give counts for little."""
    kept = np.maximum(counts - noise / 2, 0.0) + 1e-3 * max(1.0, noise)
    return np.asarray(kept / kept.sum())


def _mark_shares(counts: Floats, rows: int) -> Floats:
    """Return the share of rows that have each mark; they may add up to less than 1."""
    kept = np.maximum(counts, 0.0) / rows
    total = kept.sum()
    return np.asarray(np.maximum(kept / max(total, 1.0), 1e-4) / max(1.0, 1 + 1e-4 * len(kept)))


def _normals(count: int, source: Source) -> Floats:
    """Return normal numbers for made-up rows, which are no release."""
    return np.asarray(ndtri(even_numbers(count, source)))
