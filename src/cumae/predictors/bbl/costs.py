"""The price of rows and queries in GenericBBL: votes, a draw of labels, sampling before both."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.codec import register
from cumae.concepts import ConceptClass
from cumae.concepts.candidates.relabelling import relabelled
from cumae.errors import InvalidParameter
from cumae.parameters import check_count
from cumae.privacy import ZCDP, Approximate, Cost, Pure, calibrate, subsample
from cumae.privacy.formulas import FAR, SLACK, UP
from cumae.privacy.validation import check_nonnegative, keep
from cumae.remembering import remembered

CELLS = 256  # of the range of a draw's loss, in the final reading
COARSE = 32  # the same while shares are searched


@claim("BBL")
@dataclass(frozen=True)
class AfterDraw(Cost):
    """A draw of bounded range, then a mechanism that may depend on it, beside a pure one.

    The loss of the draw lies in [t - width, t] for some t. At worst it has the two ends only, and
    delta(e) <= max over t of a delta(e - t) + (1 - a) delta(e - t + width), delta being the
    base's and a = (exp(width) - exp(t)) / (exp(width) - 1). In each cell of t both parts are taken
    at the end where they are larger.

    Parameters
    ----------
    base : Cost
        What the mechanism costs, for any draw.
    width : float of 0 or more
        Range of the draw.
    shift : float of 0 or more
        Pure epsilon of something else that the same rows go through.
    cells : int of 1 or more
        How finely t is resolved.

    Examples
    --------
    >>> from cumae.predictors.bbl.costs import AfterDraw
    >>> from cumae.privacy import ZCDP, BoundedRange
    >>> bound = AfterDraw(ZCDP(0.1), 1.0)
    >>> bound.delta(2.0) < (ZCDP(0.1) + BoundedRange(1.0)).delta(2.0)
    True
    """

    base: Cost
    width: float
    shift: float = 0.0
    cells: int = CELLS

    def __post_init__(self) -> None:
        keep(
            self,
            width=check_nonnegative(self.width, "width", up=True),
            shift=check_nonnegative(self.shift, "shift", up=True),
            cells=check_count(self.cells, "cells", least=1),
        )

    def _curve(self, epsilon: Floats) -> Floats:
        left = np.asarray(epsilon, dtype=np.float64) - self.shift
        if self.width == 0:
            return self._both_signs(left) * UP
        ends = np.linspace(0.0, self.width, self.cells + 1)
        high = -np.expm1(ends[:-1] - self.width) / -math.expm1(-self.width)
        above = self._both_signs((left[:, None] - ends[1:]).ravel()).reshape(-1, self.cells)
        below = left[:, None] - ends[1:] + self.width
        below = self._both_signs(below.ravel()).reshape(-1, self.cells)
        return np.asarray((high * above + (1.0 - high) * below).max(axis=1) * UP)

    def _both_signs(self, epsilon: Floats) -> Floats:
        """Return the base's delta; below 0 it follows from the other order of the neighbours."""
        deltas = self.base.deltas(np.abs(epsilon))
        mirrored = -np.expm1(np.minimum(epsilon, 0.0)) + np.exp(np.minimum(epsilon, 0.0)) * deltas
        return np.minimum(np.where(epsilon < 0, mirrored, deltas), 1.0)

    @property
    def pure(self) -> float:
        return (self.base.pure + self.width + self.shift) * UP

    @property
    def zcdp(self) -> tuple[float, float] | None:
        return None  # the curve is better where it is used

    @property
    def infinite(self) -> bool:
        return self.base.infinite


@claim("BBL")
@dataclass(frozen=True)
class Draw:
    """A private draw of labels, as a row of S or T sees it: its range and its pure epsilon.

    The range is 0 where weights are floats: then only the pure epsilon is used.
    """

    width: float
    shift: float

    def __post_init__(self) -> None:
        for name in ("width", "shift"):
            keep(self, **{name: check_nonnegative(getattr(self, name), name, up=True)})

    @property
    def pure(self) -> float:
        """Epsilon of the draw alone."""
        return (self.width + self.shift) * UP


NO_DRAW = Draw(0.0, 0.0)


@claim("BBL")
def label_draw(concept: ConceptClass | None, epsilon: float, role: str, points: int) -> Draw:
    """Return what a draw of a hypothesis that labels points costs one of these points.

    Parameters
    ----------
    concept : ConceptClass or None
        What is drawn from; None stands for public candidates (GRID).
    epsilon : float
        Parameter of the draw.
    role : {"S", "T"}
        Whether the point has a label that scores the candidates (S), or none (T).
    points : int
        How many points there are.
    """
    cost = relabelled(Approximate(0.0, 0.0), epsilon, role, concept, points).eps
    if concept is not None and concept.weight_error(points, epsilon / 2) > 0:
        return Draw(0.0, cost)
    return Draw(cost, 0.0)


@claim("BBL")
def scored_epsilon(draw: Draw, share: float) -> float:
    """Return the pure epsilon of a draw that scores a share of the rows: all that follows it."""
    return subsample(Pure(draw.pure), share).pure


@claim("BBL")
def entering_cost(votes: Cost, draw: Draw, scored: float, share: float, cells: int = CELLS) -> Cost:
    """Return the cost of a row that is sampled, labelled by a draw, and then in a phase.

    Parameters
    ----------
    votes : Cost
        All votes of the phase.
    draw : Draw
        The draw that labels it, as it sees it; ``NO_DRAW`` for rows with labels of their own.
    scored : float
        Pure epsilon of the draw at the end of the phase.
    share : float above 0 and up to 1
        Share of the rows that are sampled.
    cells : int
        As in ``AfterDraw``.
    """
    inner = AfterDraw(votes, draw.width, draw.shift + scored, cells)
    return subsample(inner, share) if share < 1 else inner


@remembered(4096)
@claim("BBL")
def least_noise(
    epsilon: float,
    delta: float,
    draw: Draw,
    scored: float,
    share: float,
    *,
    coarse: bool = False,
) -> float:
    """Return the least noise of a phase's votes that keeps an entering row within (epsilon, delta).

    The noise is the scale divided by the root of the number of releases. So all votes of a phase
    of any length cost rho = 1/(2 noise^2), in terms of zCDP.

    Parameters
    ----------
    epsilon, delta : float
        What a row may pay, for ever.
    draw : Draw
        The draw that labels the row; ``NO_DRAW`` for rows with labels of their own.
    scored : float
        Pure epsilon of the draw at the end of the phase.
    share : float above 0 and up to 1
        Share of the rows that are sampled.
    coarse : bool
        Whether a rough figure will do, while shares are searched.

    Returns
    -------
    float
        Infinite if nothing is left for votes.
    """
    if epsilon == math.inf:
        return 0.0
    cells, tolerance = (COARSE, 0.02) if coarse else (CELLS, 1e-3)

    def cost(noise: float) -> Cost:
        return entering_cost(ZCDP(1 / (2 * noise * noise)), draw, scored, share, cells)

    if cost(1e6).delta(epsilon) > delta:
        return math.inf
    try:
        return calibrate(cost, epsilon, delta, start=2.0 / epsilon, tolerance=tolerance)
    except InvalidParameter:  # the draw alone just fits
        return math.inf


@claim("BBL")
def between_pair(
    epsilon: float, delta: float, draw: Draw, scored: float, share: float
) -> Approximate:
    """Return what BetweenThresholds may cost in a phase, for a row that enters it by sampling.

    Parameters
    ----------
    epsilon, delta : float
        What a row may pay, for ever.
    draw : Draw
        As in ``least_noise``.
    scored, share : float
        As in ``least_noise``.

    Returns
    -------
    Approximate
        With an epsilon of 0 if nothing is left.
    """
    if epsilon == math.inf:
        return Approximate(math.inf, 0.0)
    inside = math.log1p(math.expm1(min(epsilon, FAR)) / share) * SLACK
    left = max(0.0, inside - draw.pure - scored)
    return Approximate(left, min(0.1, delta / share * SLACK))


@claim("BBL")
def fits(cost: Cost, epsilon: float, delta: float) -> bool:
    """Tell whether a cost is within what was asked."""
    return epsilon == math.inf or cost.delta(epsilon) <= delta


register("cost", {"AfterDraw": AfterDraw})
