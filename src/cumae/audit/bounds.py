"""Confidence bounds from below on privacy, from counts of an event in two worlds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import betaincinv
from scipy.stats import norm

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.errors import InvalidParameter


@claim("AUDIT")
def at_least(hits: ArrayLike, runs: ArrayLike, error: float) -> Floats:
    """Return what a chance is at least, wrong with chance ``error`` (Clopper and Pearson).

    Parameters
    ----------
    hits : array-like of int
        In how many runs the event happened.
    runs : array-like of int
        How many runs there were.
    error : float above 0 and below 1
        The chance that the true chance is smaller.

    Examples
    --------
    >>> from cumae.audit.bounds import at_least
    >>> float(at_least(10, 10, 0.05).round(4))  # 0.05 ** (1 / 10)
    0.7411
    """
    k, n = np.asarray(hits, dtype=np.float64), np.asarray(runs, dtype=np.float64)
    found = betaincinv(np.maximum(k, 1), n - np.minimum(k, n) + 1, error)
    return np.where(k > 0, found, 0.0)


@claim("AUDIT")
def at_most(hits: ArrayLike, runs: ArrayLike, error: float) -> Floats:
    """Return what a chance is at most, wrong with chance ``error``.

    Parameters
    ----------
    hits : array-like of int
        In how many runs the event happened.
    runs : array-like of int
        How many runs there were.
    error : float above 0 and below 1
        The chance that the true chance is larger.

    Examples
    --------
    >>> from cumae.audit.bounds import at_most
    >>> float(at_most(0, 10, 0.05).round(4))
    0.2589
    """
    return np.asarray(1.0 - at_least(np.asarray(runs) - np.asarray(hits), runs, error))


@dataclass(frozen=True)
class Chances:
    """An event is at least as likely as ``likely`` in one world, at most ``rare`` in the other."""

    likely: float
    rare: float

    def __post_init__(self) -> None:
        if not (0 <= self.likely <= 1 and 0 <= self.rare <= 1):
            raise InvalidParameter(f"{self} has chances outside of 0 to 1.")

    @claim("AUDIT")
    def epsilon(self, delta: float) -> float:
        """Return the least epsilon that both chances allow at ``delta``.

        Examples
        --------
        >>> from cumae.audit.bounds import Chances
        >>> round(Chances(0.75, 0.25).epsilon(0.0), 4)  # ln 3
        1.0986
        """
        if self.likely <= self.rare + delta:
            return 0.0
        return math.log((self.likely - delta) / self.rare) if self.rare > 0 else math.inf

    @claim("AUDIT")
    def mu(self) -> float:
        """Return the least mu of Gaussian differential privacy that both chances allow."""
        if self.likely <= self.rare:
            return 0.0
        return float(norm.ppf(self.likely) - norm.ppf(self.rare))

    @claim("AUDIT")
    def rho(self) -> float:
        """Return the least rho of zero-concentrated privacy that both chances allow.

        It is the largest of D_a / a over orders a > 1, D_a being the Rényi divergence of the two
        coins.
        """
        if self.likely <= self.rare:
            return 0.0
        if self.rare == 0:
            return math.inf
        found = minimize_scalar(
            lambda log: -self._divergence(1 + math.exp(log)) / (1 + math.exp(log)),
            bounds=(-9.0, 9.0),
            method="bounded",
        )
        return max(0.0, -float(found.fun))  # any order gives a valid bound

    def _divergence(self, order: float) -> float:
        p, q = self.likely, self.rare
        yes = order * math.log(p) + (1 - order) * math.log(q)
        if p == 1:
            return yes / (order - 1)
        no = order * math.log1p(-p) + (1 - order) * math.log1p(-q)
        return float(np.logaddexp(yes, no)) / (order - 1)
