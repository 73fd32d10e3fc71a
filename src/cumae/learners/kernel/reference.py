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
from scipy.special import ndtr, ndtri

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.data import INDICATOR, Columns, pieces
from cumae.learners.kernel.features import even_numbers
from cumae.learners.kernel.sums import noisy_sum
from cumae.randomness import Source

MADE_UP = 2_000  # rows
BINS = 16  # of a column, in the second look
MOST_BINS = 40  # of a column, in the first
PAYS = 0.5  # how many times its noise a usual count must be
COUNTED = 2**12  # whole numbers that stand for one row in a bin
SCORE = 64  # whole numbers that stand for a score of 1
FARTHEST = 2.5  # score at most
NEAR = (2.0**-12, 2.0**-10, 2.0**-8, 2.0**-6, 2.0**-5, 2.0**-4, 2.0**-3, 0.25)
EVEN = (0.375, 0.5, 0.625, 0.75, 0.875)


@dataclass(frozen=True)
class Marginal:
    """How the values of one encoded column are spread: edges of bins, and the share of each."""

    edges: Floats
    shares: Floats

    def score(self, column: Floats) -> Floats:
        """Return normal scores of values, by their ranks."""
        rank = np.interp(np.clip(column, self.edges[0], self.edges[-1]), self.edges, self._below)
        return np.clip(ndtri(np.clip(rank, 1e-6, 1 - 1e-6)), -FARTHEST, FARTHEST)

    def value(self, rank: Floats) -> Floats:
        """Return values of ranks between 0 and 1."""
        return np.interp(rank, self._below, self.edges)

    @property
    def _below(self) -> Floats:
        below = np.concatenate([[0.0], np.cumsum(self.shares)])
        return below + np.linspace(0.0, 1e-9, len(below))  # so that it grows everywhere


def first_edges(bounds: tuple[float, ...]) -> Floats:
    """Return edges of bins between bounds, finer near the end that is nearer to 0, or near 0."""
    low, high = bounds[:2]
    shares = np.array([0.0, *NEAR, *EVEN, 1.0])
    if low < 0 < high:
        both = np.concatenate([low * shares, high * shares])
        return np.unique(both)
    if abs(low) <= abs(high):
        return low + (high - low) * shares
    return (high - (high - low) * shares)[::-1]


class MadeUp:
    """Makes up rows from releases.

    Parameters
    ----------
    columns : Columns
        All columns, with ranges.
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        # For each original column: its first encoded place, and the places of its marks.
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
    def n_columns(self) -> int:
        """In how many bins a row can be, over all columns."""
        return len(self.numbers) + len(self.marks)

    @property
    def counts_move(self) -> float:
        """How far a replaced row moves counts: it leaves one bin of a column for another."""
        return COUNTED * math.sqrt(2 * self.n_columns)

    @property
    def products_move(self) -> float:
        """How far a replaced row moves the products of scores."""
        return math.sqrt(2) * self.longest

    @property
    def longest(self) -> int:
        """Squared length of the whole scores of a row, at most."""
        return math.ceil((FARTHEST * SCORE + 1) ** 2) * self.n_columns

    def pays(self, strength: float) -> bool:
        """Tell whether counts stand out from their noise.

        Parameters
        ----------
        strength : float
            Number of rows, times the mu of both counts together.
        """
        return strength > PAYS * BINS * math.sqrt(4 * self.n_columns)

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

        A row whose scores are longer than ``longest`` allows adds nothing.
        """
        whole = np.nan_to_num(np.rint(self._scores(table, marginals, shares)))
        whole[(whole**2).sum(axis=1) > self.longest] = 0.0
        products = whole.T @ whole  # exact: far below 2^53
        return np.asarray(products[np.triu_indices(len(products))], dtype=np.int64)

    def release(
        self, table: Any, rows: int, counts_noise: float, products_noise: float, source: Source
    ) -> Floats:
        """Release marginals and correlations of rows, and return made-up ones.

        Parameters
        ----------
        table : array of float, or what has pieces
            Encoded private rows.
        rows : int
            Their number.
        counts_noise, products_noise : float
            Scales of the noise.
        source : Source
            Where coins come from.
        """
        error = counts_noise / COUNTED  # of a count, in rows
        edges = [first_edges(self.columns.bounds[place] or (0.0, 1.0)) for place in self.numbers]
        for _ in range(2):
            held = edges
            total = partial(self.counts, edges=held)
            counts = noisy_sum(total, zip(pieces(table)), counts_noise, source) / COUNTED
            sizes = [len(edge) - 1 for edge in held] + [len(places) for places in self.marks]
            split = np.split(counts, np.cumsum(sizes)[:-1])
            marginals = [
                Marginal(edge, _shares(count, error))
                for edge, count in zip(held, split, strict=False)
            ]
            edges = [np.unique(m.value(np.linspace(0, 1, BINS + 1))) for m in marginals]
            edges = [e if len(e) > 2 else h for e, h in zip(edges, held, strict=True)]
        shares = [_mark_shares(count, rows) for count in split[len(held) :]]
        total = partial(self.products, marginals=marginals, shares=shares)
        upper = noisy_sum(total, zip(pieces(table)), products_noise, source)
        width = len(self.numbers) + sum(map(len, self.marks))
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
                lean = left[:, 0] * sizes[0] / np.maximum(share, 1e-3)
            order = np.argsort(lean, kind="stable")
            orders.append(order)
            middle = np.cumsum(share[order]) - share[order] / 2
            loads[place + order, count + number] = ndtri(np.clip(middle, 1e-3, 1 - 1e-3))
            place += len(share)
        spread = loads.T @ products @ loads
        error = noise * np.sqrt((loads**2).sum(axis=0)[:, None] * (loads**2).sum(axis=0))
        size = np.sqrt(np.maximum(np.diag(spread), 0.05))
        bound = spread / np.outer(size, size)
        shrunk = bound * np.maximum(0.0, 1 - (error / np.maximum(np.abs(spread), 1e-9)) ** 2)
        np.fill_diagonal(shrunk, 1.0)
        values, vectors = np.linalg.eigh(np.clip(shrunk, -0.98, 0.98) + 0.02 * np.eye(len(shrunk)))
        root = vectors * np.sqrt(np.maximum(values, 1e-3))
        root /= np.sqrt((root**2).sum(axis=1, keepdims=True))
        latent = _normals(MADE_UP * len(shrunk), source).reshape(MADE_UP, -1) @ root.T
        ranks = ndtr(latent)
        table = np.zeros((MADE_UP, len(self.columns)))
        for place, marginal, rank in zip(self.numbers, marginals, ranks.T, strict=False):
            table[:, place] = marginal.value(rank)
        for number, (places, share, order) in enumerate(
            zip(self.marks, shares, orders, strict=True)
        ):
            # What is left to 1 is a row without a mark; it lies in the middle of the order.
            ends = np.cumsum(share[order])
            code = np.searchsorted(ends, ranks[:, count + number])
            known = code < len(order)
            table[np.flatnonzero(known), np.array(places)[order[code[known]]]] = 1.0
        return table


def evenly(columns: Columns, source: Source) -> Floats:
    """Return rows that know nothing but declarations: numbers lie evenly within their ranges."""
    table = np.zeros((MADE_UP, len(columns)))
    place = 0
    for column in columns.columns:
        width = len(column.encoded)
        marks = list(range(place, place + width))
        coins = even_numbers(2 * MADE_UP, source).reshape(2, MADE_UP)
        if columns.bounds[place] != INDICATOR:
            low, high = (columns.bounds[marks.pop(0)] or (0.0, 1.0))[:2]
            table[:, place] = low + (high - low) * coins[0]
        shares = [columns.shares[mark] or 0.5 for mark in marks]
        if len(marks) > 1 or not shares:
            code = np.searchsorted(np.cumsum(shares), coins[1] * max(sum(shares), 1e-9))
            for number, mark in enumerate(marks):
                table[code == number, mark] = 1.0
        else:
            table[coins[1] < min(shares[0], 0.5), marks[0]] = 1.0
        place += width
    return table


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
