"""Beliefs about coefficients from sums of shortened residuals."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from cumae.arrays import Floats
from cumae.learners.kernel.posterior import NoisySum, Posterior, View
from cumae.learners.regression.spread import Spread
from cumae.learners.regression.target import NumberTarget

LEAST_LEFT = 0.1  # how small errors are at least, against those without a model
SLOWEST = 0.6  # and against those before a release
TINY = 1e-12


@dataclass(frozen=True)
class NumberSum(NoisySum):
    """One noisy sum of shortened residuals; ``chance`` has scores of the reference rows.

    Parameters
    ----------
    reach : float
        Where residuals were shortened.
    """

    reach: float


@dataclass
class NumberPosterior(Posterior):
    """Coefficients of a score of numbers, as far as they are known.

    Parameters
    ----------
    target : NumberTarget
        What scores stand for.
    errors : Spread
        How errors are spread about a model that knows nothing but the mean, in units of the target.
    far : float
        Where residuals are shortened, in usual errors.
    moves : bool
        Whether the releases decide how far coefficients may vary.
    """

    target: NumberTarget = field(kw_only=True)
    errors: Spread = field(kw_only=True)
    far: float = field(kw_only=True)
    moves: bool = field(kw_only=True)

    @property
    def chance(self) -> Floats:
        return self.reference @ self.mean

    def __post_init__(self) -> None:
        super().__post_init__()
        # How large errors are, against those without a model. It changes between releases only: a
        # mean that runs away would else seem to explain much, and then run further.
        self.left = 1.0

    def learn(self, release: NoisySum) -> None:
        super().learn(release)
        explained = float(self.target.mean(self.chance[:, 0]).var())
        found = math.sqrt(max(1 - explained / max(self.errors.variance, TINY), 0.0))
        self.left = min(max(found, self.left * SLOWEST, LEAST_LEFT), 1.0)

    def expected(self, then: Floats, now: Floats, reach: float) -> tuple[Floats, Floats, Floats]:
        """Return what a shortened residual is expected to be, how it follows the score, and varies.

        Parameters
        ----------
        then : array of float
            Scores of the reference rows by which residuals were taken.
        now : array of float
            Scores that are believed now.
        reach : float
            Where residuals were shortened.
        """
        target = self.target
        size, wide = self.left * target.size(now), reach * target.size(then)
        gap = target.mean(then) - target.mean(now)
        # A residual is the gap less an error; beyond these errors it is cut off.
        low = self.errors.moments_below((gap - wide) / size)
        high = self.errors.moments_below((gap + wide) / size)
        within, inner, square = (b - a for a, b in zip(low, high, strict=True))
        under = low[0]
        over = 1 - under - within
        mean = under - over + (gap * within - size * inner) / wide
        spread = gap**2 * within - 2 * gap * size * inner + size**2 * square
        whole = under + over + spread / wide**2
        steep = -0.5 * within / wide * target.steepness(now)
        return mean / 2, steep, np.maximum(whole - mean**2, 0.0) / 4

    def bend(self) -> Floats:
        now = self.chance[:, 0]
        return -self.expected(now, now, self.reach)[1]

    @property
    def reach(self) -> float:
        """Where the next residuals are shortened, in units of the target and of their size."""
        return self.far * self.left * self.errors.unit

    def _update_variances(self, view: View, squares: Floats, known: Floats) -> None:
        if self.moves:
            super()._update_variances(view, squares, known)

    def _line(self, release: NoisySum, now: Floats) -> tuple[Floats, Floats, Floats]:
        if not isinstance(release, NumberSum):
            raise TypeError("a sum of residuals that were not shortened")
        n, shown = self.rows, release.shown
        share = n / len(shown)
        mean, steep, varies = self.expected(release.chance[:, 0], now[:, 0], release.reach)
        slope = share * (shown * steep[:, None]).T @ self.reference
        scatter = share * self.steps * varies + share * (n / self.worth + 1) * mean**2
        noise = (shown * scatter[:, None]).T @ shown + release.noise * np.eye(shown.shape[1])
        explained = share * (shown.T @ mean)
        value = release.value[:, 0] - explained + slope @ (self.mean - self.first)[:, 0]
        return slope, value, noise
