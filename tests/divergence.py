"""Exact divergences of small explicit mechanisms: the oracle that privacy costs are held against.

A mechanism is a table from inputs to finite laws. Its privacy curve needs no theory then: it is a
sum over outcomes, and running it on resampled, relabelled, grouped or split rows is a finite
average.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.privacy import Cost

Law = NDArray[np.float64]
Rows = tuple[Any, ...]
Mechanism = Callable[[Rows], Law]
Pairs = Sequence[tuple[Law, Law]]

EPSILONS = (0.0, 0.003, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.3, 1.8, 2.5, 4.0, 7.0)
TOO_SMALL = 1e-15  # the oracle's own rounding


def hockey_stick(p: Law, q: Law, epsilon: float) -> float:
    """Return the sum over outcomes of max(0, p - exp(epsilon) q)."""
    gain = p - math.exp(epsilon) * q
    return math.fsum(gain[gain > 0])


def divergence(pairs: Pairs, epsilon: float) -> float:
    """Return the largest hockey-stick divergence of the pairs, in both orders."""
    p, q = (np.array(side) for side in zip(*pairs, strict=True))
    u = math.exp(epsilon)
    sides = (np.maximum(p - u * q, 0.0), np.maximum(q - u * p, 0.0))
    return max(float(side.sum(axis=1).max()) for side in sides)


def assert_covers(cost: Cost, pairs: Pairs, epsilons: Iterable[float] = EPSILONS) -> None:
    """Assert that no pair diverges more than the cost says."""
    for epsilon in epsilons:
        exact = divergence(pairs, epsilon)
        assert cost.delta(epsilon) >= exact - TOO_SMALL, (cost, epsilon)


@dataclass(frozen=True, eq=False)
class Exact(Cost):
    """The exact cost of an explicit mechanism, given its laws on all pairs of neighbours."""

    pairs: tuple[tuple[Law, Law], ...]

    @cached_property
    def _sides(self) -> tuple[Law, Law]:
        both = [*self.pairs, *((q, p) for p, q in self.pairs)]
        p, q = (np.array(side) for side in zip(*both, strict=True))
        return p, q

    def _curve(self, epsilon: Law) -> Law:
        p, q = self._sides
        return np.array([np.maximum(p - math.exp(e) * q, 0.0).sum(axis=1).max() for e in epsilon])

    @property
    def pure(self) -> float:
        worst = 0.0
        for p, q in self.pairs:
            if np.any((p > 0) != (q > 0)):
                return math.inf
            worst = max(worst, float(np.abs(np.log(p[p > 0] / q[p > 0])).max()))
        return worst * (1 + 1e-15)


def databases(values: Sequence[Any], size: int) -> Iterator[Rows]:
    """Yield every tuple of ``size`` rows."""
    return product(values, repeat=size)


def neighbours(values: Sequence[Any], size: int, distance: int = 1) -> Iterator[tuple[Rows, Rows]]:
    """Yield all pairs of inputs that differ in at most ``distance`` rows."""
    for rows in databases(values, size):
        for places in combinations(range(size), min(distance, size)):
            for new in product(values, repeat=len(places)):
                other = list(rows)
                for place, value in zip(places, new, strict=True):
                    other[place] = value
                if tuple(other) != rows:
                    yield rows, tuple(other)


def pairs_of(
    mechanism: Mechanism, values: Sequence[Any], size: int, distance: int = 1
) -> tuple[tuple[Law, Law], ...]:
    """Return the laws of the mechanism on all pairs of neighbours."""
    laws = {rows: mechanism(rows) for rows in databases(values, size)}
    distinct: dict[frozenset[bytes], tuple[Law, Law]] = {}
    for a, b in neighbours(values, size, distance):
        if not np.array_equal(laws[a], laws[b]):
            key = frozenset((laws[a].round(12).tobytes(), laws[b].round(12).tobytes()))
            distinct[key] = (laws[a], laws[b])
    return tuple(distinct.values())


def response(epsilon: float, *, flipped: bool = False) -> Law:
    """Return the law of randomized response."""
    law = np.array([1.0, math.exp(-epsilon)]) / (1.0 + math.exp(-epsilon))
    return law[::-1] if flipped else law


def random_mechanism(seed: int, outcomes: int = 3, *, zeros: bool = False) -> Mechanism:
    """Return a mechanism that ignores the order of rows and has no other structure."""

    def law(rows: Rows) -> Law:
        key = [seed, *(int(value) + 1 for value in sorted(rows)), len(rows)]
        generator = np.random.default_rng(key)
        weights = np.exp(generator.normal(size=outcomes))
        if zeros:  # an outcome that some inputs never have
            weights[-1] *= 0.1 * generator.integers(2)
        return np.asarray(weights / weights.sum(), dtype=np.float64)

    return law


def noisy_count(epsilon: float, most: int) -> Mechanism:
    """Return truncated geometric noise on the sum of the rows: nearly tight for groups."""

    def law(rows: Rows) -> Law:
        outcome = np.arange(-most, most + 1)
        weights = np.exp(-epsilon * np.abs(outcome - sum(rows)))
        # Everything beyond the ends counts as the end, so the noise is that of the whole line.
        weights[[0, -1]] /= -math.expm1(-epsilon)
        return np.asarray(weights / weights.sum(), dtype=np.float64)

    return law


def has_one(epsilon: float) -> Mechanism:
    """Return randomized response to "is there a 1?": the worst case of subsampling."""
    return lambda rows: response(epsilon, flipped=1 in rows)


def product_pair(pairs: Iterable[tuple[Law, Law]]) -> tuple[Law, Law]:
    """Return the laws of independent mechanisms together."""
    p, q = np.ones(1), np.ones(1)
    for a, b in pairs:
        p, q = np.multiply.outer(p, a).ravel(), np.multiply.outer(q, b).ravel()
    return p, q
