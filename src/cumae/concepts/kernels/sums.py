"""Sums of powers q^score that neither overflow nor cancel, and drawing from them in blocks.

A sum is kept as q^E f, with E the exact best score in it and f >= 1; so only positive numbers are
added, and what lies far behind the best adds nothing to f but is never lost from a later draw,
which goes by logarithms. ``q`` is exp(rate).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numba
import numpy as np

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.randomness import Source, bernoulli_exp, integers, weighted_choice

BLOCK = 1024
ROUNDING = 2.0**-53
WINDOW = 60  # scores whose weight is below exp(-60) of the best are drawn together


def powers(rate: float, most: int) -> Floats:
    """Return q^0, q^-1, q^-2, ...: up to q^-most, or to where it is 0 for a float.

    A distance beyond the table is to be read at its last entry.
    """
    if rate == math.inf:
        return np.array([1.0, 0.0])
    vanishes = math.ceil(750 / rate) if rate > 750 / (most + 1) else most + 1
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.exp(-rate * np.arange(min(vanishes, most) + 2)))


@claim("INTERVALS")
def stage_error(size: int, rate: float) -> float:
    """Bound the relative error of one stage's weights: sums of at most 2 size steps, and logs."""
    return (8 * size + 6 * rate * size + 200) * ROUNDING


def draw_place(best: Integers, rest: Floats, rate: Fraction | float, source: Source) -> int:
    """Draw a place with probability proportional to q^best * rest.

    Parameters
    ----------
    best, rest : array of int and array of float
        One sum for each place.
    rate : Fraction or float
        The logarithm of q.
    source : Source
        Where random bits come from.
    """
    return weighted_choice(_logs(best, rest, float(rate)), source=source)


def place_law(best: Integers, rest: Floats, rate: float) -> Floats:
    """Return the probabilities that ``draw_place`` draws with, up to rounding; for tests.

    Parameters
    ----------
    best, rest : array of int and array of float
        One sum for each place.
    rate : float
        The logarithm of q.
    """
    logs = _logs(best, rest, rate)
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


@numba.njit(cache=True, nogil=True)
def _logs(best: Integers, rest: Floats, rate: float) -> Floats:
    """Return the logarithms of q^best * rest, up to a common summand; -inf where rest is 0."""
    most = best[rest > 0].max()
    logs = np.full(len(best), -np.inf)
    for i in range(len(best)):
        if rest[i] > 0:
            logs[i] = math.log(rest[i])
            if best[i] != most:  # an infinite rate leaves the best alone
                logs[i] += rate * (best[i] - most)
    return logs


Rescan = Callable[[int], tuple[Integers, Floats]]


def draw_in_blocks(
    best: Integers, rest: Floats, rescan: Rescan, rate: Fraction | float, source: Source
) -> int:
    """Draw a block by its sum, then a place in it by the weights that ``rescan`` computes.

    Parameters
    ----------
    best, rest : array of int and array of float
        One sum for each block.
    rescan : callable from int to two arrays
        Returns best and rest of all places of a block.
    rate : Fraction or float
        The logarithm of q.
    source : Source
        Where random bits come from.
    """
    block = draw_place(best, rest, rate, source)
    return block * BLOCK + draw_place(*rescan(block), rate, source)


@claim("CHOOSE")
def draw_score(counts: Integers, rate: Fraction | float, source: Source) -> int:
    """Draw a score s with probability proportional to counts[s] exp(rate s), exactly.

    Scores far below the best one are proposed together, at the weight of the best of them, and
    accepted with the quotient: they need no weights of their own, and hardly ever come up.

    Parameters
    ----------
    counts : array of int
        How many candidates have each score from 0 on.
    rate : Fraction or float
        The logarithm of q.
    source : Source
        Where random bits come from.
    """
    reached = np.flatnonzero(counts)
    window = (
        math.ceil(WINDOW / rate)
        if rate > WINDOW / len(counts) and rate != math.inf
        else len(counts)
    )
    near = reached[np.searchsorted(reached, reached[-1] - window) :]
    limit = int(near[0]) - 1
    far = int(counts[: limit + 1].sum())
    scores, often = np.append(near, limit), np.append(counts[near], far)
    while True:
        place = weighted_choice(scores, rate, counts=often, source=source)
        if place < len(near):
            return int(near[place])
        upto = np.cumsum(counts[: limit + 1])
        score = int(np.searchsorted(upto, integers(far, source=source), side="right"))
        if bernoulli_exp(rate * (limit - score), source):
            return score
