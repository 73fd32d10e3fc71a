"""The shares of the budget of a regression, from public sizes alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cumae.claims import claim
from cumae.learners.base import Sizes
from cumae.learners.kernel.learner import COUNTS, LARGEST_EPSILON, PRODUCTS
from cumae.learners.kernel.posterior import most_directions
from cumae.learners.kernel.prices import gaussian_mu
from cumae.learners.kernel.reference import MOST_BINS as MOST_MARGINAL_BINS
from cumae.learners.kernel.reference import MadeUp
from cumae.learners.kernel.sums import MOVES
from cumae.learners.regression.asking import COUNTS_MOVE
from cumae.privacy import Cost, DiscreteGaussianVectors, Pure

SPREAD = 0.04  # share of the budget for two looks at how the number is spread
ERRORS = 0.06  # and for one at its errors
LOOKS = 2
MOST_CUTS = 64  # bins of a look at the number or its errors, at most
FEWER, MORE = 4, 8  # sums of residuals
MANY = 12_000  # strength from which on more sums pay, if there are public rows


@dataclass(frozen=True)
class NumberPlan:
    """The shares of the budget.

    Parameters
    ----------
    strength : float
        Number of rows, times mu: how far all rows together stand out from noise.
    steps : int
        Sums of shortened residuals.
    noise : float
        Scale of the noise of each, in whole numbers.
    spread_noise, errors_noise : float
        Scales of the noise of the counts of numbers, and of errors.
    made_up : bool
        Whether a reference is made up from counts and products, which are released, too.
    counts_noise, products_noise : float
        Scales of their noise.
    places : int
        Numbers that are released, at most.
    """

    strength: float
    steps: int
    noise: float
    spread_noise: float
    errors_noise: float
    made_up: bool
    counts_noise: float
    products_noise: float
    places: int

    @classmethod
    @claim("REGRESS")
    def of(cls, sizes: Sizes, epsilon: float, delta: float) -> NumberPlan:
        """Share a budget among all releases.

        Parameters
        ----------
        sizes : Sizes
            Public numbers.
        epsilon, delta : float
            What all releases may cost together.
        """
        epsilon = epsilon if epsilon == math.inf else min(epsilon, LARGEST_EPSILON)
        made, width = MadeUp(sizes.columns), len(sizes.columns)
        most = MORE * most_directions(1, width) + (LOOKS + 1) * MOST_CUTS
        most += 2 * MOST_MARGINAL_BINS * width + width * (width + 1) // 2
        spread = COUNTS_MOVE * math.sqrt(LOOKS / SPREAD)
        errors = COUNTS_MOVE / math.sqrt(ERRORS)
        counts = made.counts_move * math.sqrt(2 / COUNTS)
        products = made.products_move / math.sqrt(PRODUCTS)
        mu = gaussian_mu(epsilon, delta, most, min(MOVES, spread, errors, counts, products))
        strength = sizes.labelled * mu if sizes.labelled else 0.0  # no rows times infinity
        left = 1.0 - SPREAD - ERRORS
        made_up = not sizes.public and made.pays(strength * math.sqrt(COUNTS))
        if made_up:
            left -= COUNTS + PRODUCTS
        steps = MORE if strength > MANY or not sizes.public else FEWER
        noise = MOVES * math.sqrt(steps / left)
        scales = (spread / mu, errors / mu, made_up, counts / mu, products / mu)
        return cls(strength, steps, noise / mu, *scales, most)

    @property
    @claim("REGRESS")
    def scales(self) -> list[float]:
        """Scales of all noise that is drawn."""
        made = [self.counts_noise, self.products_noise] if self.made_up else []
        return [self.noise, self.spread_noise, self.errors_noise, *made]

    @claim("REGRESS")
    def cost(self, made: MadeUp) -> Cost:
        """Return the cost of all releases: a replaced row moves each by a known length.

        Parameters
        ----------
        made : MadeUp
            What makes up rows, if that is planned.
        """
        if self.noise == 0:
            return Pure(math.inf)
        squares = [
            self.steps * (MOVES / self.noise) ** 2,
            LOOKS * (COUNTS_MOVE / self.spread_noise) ** 2,
            (COUNTS_MOVE / self.errors_noise) ** 2,
        ]
        if self.made_up:
            squares.append(2 * (made.counts_move / self.counts_noise) ** 2)
            squares.append((made.products_move / self.products_noise) ** 2)
        mu = math.sqrt(sum(squares)) * (1 + 1e-12)
        return DiscreteGaussianVectors(mu, self.places, min(self.scales))
