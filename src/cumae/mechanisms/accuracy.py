"""The largest noise that is likely, so that answers can be said to be right."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from cumae.mechanisms.noise import GaussianNoise, LaplaceNoise
from cumae.mechanisms.sparse import SparseRule, upper_tail
from cumae.parameters import check_count, check_share
from cumae.privacy.formulas import UP

SPLITS = 64  # ways to share the chance of failure between two kinds of noise that are tried


def laplace_reach(rate: float, draws: int, beta: float) -> int:
    """Return a number that no draw of integer Laplace noise exceeds, with chance 1 - beta.

    Parameters
    ----------
    rate : float above 0
        Rate of the noise.
    draws : int of 1 or more
        How many draws there are; twice as many if noise far below 0 counts, too.
    beta : float above 0 and below 1
        The chance of a larger one.

    Examples
    --------
    >>> from cumae.mechanisms.accuracy import laplace_reach
    >>> laplace_reach(1.0, 1_000, 0.05)
    9
    """
    if rate == math.inf:
        return 0
    # P(X > a) = q^(a + 1) / (1 + q) with q = exp(-rate): start near the solution and step to it.
    near = math.log(draws / beta) / rate - math.log1p(math.exp(-rate)) / rate - 1
    reach = max(0, math.ceil(near * (1 - 1e-12)) - 1)
    while draws * float(upper_tail(rate, np.float64(reach + 1.0))) * UP > beta:
        reach += 1
    return reach


def gaussian_reach(scale: float, draws: int, beta: float) -> int:
    """Return a number that no draw of integer Gaussian noise exceeds, with chance 1 - beta.

    P(X > a) is at most that of a normal variable above a (Canonne, Kamath, Steinke: The Discrete
    Gaussian for Differential Privacy, Proposition 25).

    Parameters
    ----------
    scale : float of 0 or more
        Scale of the noise.
    draws : int of 1 or more
        How many draws there are; twice as many if noise far below 0 counts, too.
    beta : float above 0 and below 1
        The chance of a larger one.

    Examples
    --------
    >>> from cumae.mechanisms.accuracy import gaussian_reach
    >>> gaussian_reach(10.0, 1_000, 0.05)
    39
    """
    chance = min(0.5, beta / draws)
    return math.ceil(-scale * NormalDist().inv_cdf(chance) * UP)


def noise_reach(noise: GaussianNoise | LaplaceNoise, draws: int, beta: float) -> int:
    """Return a number that no draw exceeds, with chance 1 - beta.

    Parameters
    ----------
    noise : GaussianNoise or LaplaceNoise
        What is drawn.
    draws : int of 1 or more
        How many draws there are; twice as many if noise far below 0 counts, too.
    beta : float above 0 and below 1
        The chance of a larger one.
    """
    if isinstance(noise, GaussianNoise):
        return gaussian_reach(noise.scale, draws, beta)
    return laplace_reach(noise.epsilon / noise.sensitivity, draws, beta)


def sparse_reach(rule: SparseRule, queries: int, beta: float, *, sides: int) -> int:
    """Return what noise on a query and on a threshold add up to at most, with chance 1 - beta.

    It holds for all queries, and for all thresholds, of which there is one for each charged answer.

    Parameters
    ----------
    rule : SparseRule
        The mechanism.
    queries : int of 1 or more
        How many answers there are.
    beta : float above 0 and below 1
        The chance of more.
    sides : 1 or 2
        Whether noise on one side counts, or on both.
    """
    check_share(beta, "beta")
    queries = check_count(queries, "queries", least=1)
    query, threshold = float(rule.query_rate), float(rule.threshold_rate)
    shares = (beta * part / SPLITS for part in range(1, SPLITS))
    return min(
        laplace_reach(query, sides * queries, share)
        + laplace_reach(threshold, sides * rule.max_unclear, beta - share)
        for share in shares
    )
