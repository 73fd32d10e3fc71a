"""The releases of a fit by noisy sums, and their price: all of it follows from public sizes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data import Columns
from cumae.learners.kernel.fractions import Fractions
from cumae.learners.kernel.reference import MadeUp
from cumae.learners.kernel.sums import COUNTED, MOVES
from cumae.privacy import Cost, DiscreteGaussianVectors, Pure, calibrate
from cumae.remembering import remembered


@dataclass(frozen=True)
class Measurements:
    """The shares of the budget; made from public sizes alone.

    Parameters
    ----------
    strength : float
        Number of rows, times mu: how far all rows together stand out from noise.
    steps : int
        Sums of residuals.
    first_noise, noise : float
        Scales of the noise of the first one and of each other, in whole numbers.
    made_up : bool
        Whether a reference is made up from counts and products, which are released, too.
    counts_noise : float
        Scale of the noise of counts.
    looks : int
        How often counts are released.
    products_noise : float or None
        Scale of the noise of products, if these are released.
    classes_noise : float or None
        Scale of the noise of the numbers of rows of the classes, if these are released first.
    fractions_noise : float or None
        Scale of the noise of the counts of fractions, if columns of whole numbers are looked for.
    places : int
        Numbers that are released, at most.
    waves : int
        Waves in each group of them.
    """

    strength: float
    steps: int
    first_noise: float
    noise: float
    made_up: bool
    counts_noise: float
    looks: int
    products_noise: float | None
    classes_noise: float | None
    fractions_noise: float | None
    places: int
    waves: int

    @property
    @claim("KERNEL")
    def scales(self) -> list[float]:
        """Scales of all noise that is drawn."""
        made = [self.counts_noise, self.products_noise] if self.made_up else []
        every = [self.first_noise, self.noise, self.classes_noise, self.fractions_noise, *made]
        return [scale for scale in every if scale is not None]


@claim("KERNEL")
def classes_move(scores: int) -> float:
    """Return how far a replaced row moves the numbers of rows of the classes, in whole numbers."""
    return COUNTED * math.sqrt(min(scores, 2))


@claim("KERNEL")
def class_counts(labels: Integers, *, scores: int) -> Integers:
    """Return the number of rows of the second of two classes, or of each of more."""
    found = np.bincount(labels, minlength=max(scores, 2))
    return COUNTED * (found[1:2] if scores == 1 else found)


@claim("KERNEL")
def vectors_cost(plans: Measurements, columns: Columns, scores: int) -> Cost:
    """Return the cost of all sums: a replaced row moves each by a known length."""
    made = MadeUp(columns)
    if plans.noise == 0:
        return Pure(math.inf)
    squares = [(MOVES / plans.first_noise) ** 2, (plans.steps - 1) * (MOVES / plans.noise) ** 2]
    if plans.classes_noise is not None:
        squares.append((classes_move(scores) / plans.classes_noise) ** 2)
    if plans.fractions_noise is not None:
        squares.append((Fractions(columns).moves / plans.fractions_noise) ** 2)
    if plans.made_up:
        squares.append(plans.looks * (made.counts_move / plans.counts_noise) ** 2)
        if plans.products_noise is not None:
            squares.append((made.products_move / plans.products_noise) ** 2)
    mu = math.sqrt(sum(squares)) * (1 + 1e-12)
    return DiscreteGaussianVectors(mu, plans.places, min(plans.scales))


@claim("KERNEL")
@remembered(256)  # fits with the same sizes ask again, and it takes long
def gaussian_mu(epsilon: float, delta: float, places: int, least: float) -> float:
    """Return the mu of Gaussian privacy that is within epsilon and delta, for whole numbers.

    Parameters
    ----------
    epsilon, delta : float
        What is asked for.
    places : int
        Numbers that are released, at most.
    least : float
        The smallest scale of all releases, times mu.
    """
    if epsilon == math.inf:
        return math.inf

    def cost(noise: float) -> Cost:
        return DiscreteGaussianVectors(1 / noise, places, least * noise)

    return (1 - 1e-9) / calibrate(cost, epsilon, delta, start=4.0, tolerance=1e-5)
