"""Sums over all trees with given cuts, from which a tree is drawn."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from cumae.arrays import Floats, Integers
from cumae.concepts.kernels import trees as kernel
from cumae.concepts.trees.cuts import BinnedRows
from cumae.randomness import Source, weighted_choice

Path: TypeAlias = tuple[tuple[int, int], ...]  # (cut, side) from the root down; side 1 is above


class TreeSums:
    """The sums over all trees, from which cuts are drawn from the root down.

    ``node(path)`` are the weights of the cuts at the end of a path, as q^best * rest with
    q = exp(rate): each is the sum over all ways to complete the tree below that cut.
    """

    def __init__(self, rows: BinnedRows, y: Integers, rate: Fraction | float, depth: int) -> None:
        self.cuts, self.rate, self.depth = rows.cuts, rate, depth
        self._size = np.bincount(y, minlength=2)
        if depth == 0:
            return
        self._decay = decays(rate, len(y))
        words, split = kernel.pack(rows.codes, rows.cuts.starts, y)
        self._singles = kernel.single_counts(words, split)
        self._sums: list[tuple[Integers, Floats]] = []  # below each cut, by length of the path
        if depth == 1:
            return
        self._pairs = kernel.pair_counts(words, split)
        counts = (self._size, self._singles, self._pairs)
        if depth == 2:
            self._sums = [kernel.sums_of_stumps(*counts, self._decay)]
            return
        self._triples = kernel.triple_counts(words, split, rows.cuts.column, self._pairs)
        inner = kernel.sums_in_two(*counts, self._triples, self._decay)
        self._sums = [kernel.sums_of_pairs(*inner, self._decay), inner]

    def node(self, path: Path) -> tuple[Integers, Floats]:
        """Return the weights of the cuts at the end of a path."""
        if len(path) == self.depth - 1:
            inside, held = self._held(path)
            return kernel.last_weights(inside[:, None], held, self._decay)
        best, rest = self._sums[len(path)]
        if path:
            ((cut, side),) = path
            best, rest = best[cut, :, side], rest[cut, :, side]
        return best.sum(axis=1), rest.prod(axis=1)

    def leaf(self, path: Path) -> Integers:
        """Return how many rows of each label reach a leaf."""
        if not path:
            return self._size
        inside, held = self._held(path[:-1])
        cut, side = path[-1]
        return np.asarray(held[:, cut] if side else inside - held[:, cut])

    def _held(self, path: Path) -> tuple[Integers, Integers]:
        """Return by label the rows at the end of a path, and those that each cut holds for."""
        if not path:
            return self._size, self._singles
        if len(path) == 1:
            return kernel.in_one(self._size, self._singles, self._pairs, *path[0])
        counts = (self._size, self._singles, self._pairs, self._triples)
        return kernel.in_two(*counts, *path[0], *path[1])

    def draw_cut(self, path: Path, source: Source) -> int:
        """Draw the cut at the end of a path, exactly with the weights of ``node``.

        A float of 1 or more is a whole number of 2^-52: it goes as a count, and the score as it is.
        """
        best, rest = self.node(path)
        counts = np.array([int(value) for value in np.ldexp(rest, 52)], dtype=object)
        return weighted_choice(best, self.rate, counts=counts, source=source)

    def cut_law(self, path: Path) -> Floats:
        """Return the probabilities of ``draw_cut``, for tests."""
        return law_of(*self.node(path), float(self.rate))


def decays(rate: Fraction | float, rows: int) -> Floats:
    """Return exp(-rate d) for d = 0 to ``rows``, right to 20 roundings where it is above 1e-300.

    Rounding rate * d before taking the exponential would cost rate * d times as much. So the
    leading 26 bits of the rate, whose product with d < 2^27 is exact, have an exponential of
    their own.
    """
    if rate == math.inf:
        return np.append(1.0, np.zeros(rows))
    mantissa, exponent = math.frexp(float(rate))
    leading = math.ldexp(math.floor(math.ldexp(mantissa, 26)), exponent - 26)
    rest = float(Fraction(rate) - Fraction(leading))
    distance = np.arange(rows + 1, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.exp(-leading * distance) * np.exp(-rest * distance))


def law_of(best: Integers, rest: Floats, rate: float) -> Floats:
    """Return the probabilities of candidates with the weights exp(rate * best) * rest.

    Parameters
    ----------
    best : array of int
        The largest score that each candidate stands for.
    rest : array of float
        The sum of its weights, divided by exp(rate * best).
    rate : float of 0 or more
        What one more row labelled right adds to the logarithm of a weight.
    """
    behind = (best - best.max()).astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinity times 0, which is not used
        weights = rest * np.exp(np.where(behind == 0, 0.0, rate * behind))
    return np.asarray(weights / weights.sum())
