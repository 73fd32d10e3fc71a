"""Discrete Gaussian noise, on an integer and in each place of integer vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.errors import InvalidParameter
from cumae.parameters import check_count
from cumae.privacy.cost import ZCDP, Cost, Gaussian
from cumae.privacy.formulas import FAR, HOPELESS, UP, half_square, quotient, randomized_response
from cumae.privacy.loss import Atoms
from cumae.privacy.validation import check_nonnegative, keep

MOST_SCALE = (2**22 - 13) / 12  # atoms are listed for noise up to this scale
FAR_OUT = 12.0  # standard deviations beyond which the two laws of the proof are not compared


@claim("NOISE")
@dataclass(frozen=True)
class DiscreteGaussian(Cost):
    """Integer noise with P(x) proportional to exp(-x^2 / (2 scale^2)) on an integer value.

    If the value moves by the integer D = ``sensitivity``, the loss at noise x is
    D (D - 2x) / (2 scale^2): a lattice. rho-zCDP with rho = D^2 / (2 scale^2).
    """

    scale: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        keep(
            self,
            scale=check_nonnegative(self.scale, "scale", down=True),
            sensitivity=check_count(self.sensitivity, "sensitivity"),
        )

    def _curve(self, epsilon: Floats) -> Floats:
        return self.atoms.delta(epsilon)

    @property
    def pure(self) -> float:
        return 0.0 if quotient(self.sensitivity, self.scale) == 0 else math.inf

    @property
    def zcdp(self) -> tuple[float, float]:
        return (half_square(quotient(self.sensitivity, self.scale)), 0.0)

    @property
    def infinite(self) -> bool:
        return quotient(self.sensitivity, self.scale) > HOPELESS

    @cached_property
    def atoms(self) -> Atoms:
        if self.pure == 0:
            return randomized_response(0.0, 0.0)
        if self.scale > MOST_SCALE:  # too many atoms to list; zCDP alone is a little looser
            return ZCDP(*self.zcdp).atoms
        reach = math.ceil(12 * self.scale) + 12
        noise = np.arange(-reach, reach + 1, dtype=np.float64)
        masses = np.exp(-(noise**2) / (2 * self.scale**2))
        lattice = self.sensitivity / (2 * self.scale**2)
        # Beyond 12 scales lies less than 1e-30 of the mass: let it tell all.
        return Atoms(
            (self.sensitivity - 2 * noise)[::-1] * lattice, masses / masses.sum(), 1e-30, lattice
        )


@claim("VECTOR")
@dataclass(frozen=True)
class DiscreteGaussianVectors(Cost):
    """Releases of integer vectors, each place with discrete Gaussian noise of its own.

    Parameters
    ----------
    mu : float of 0 or more
        Root of the sum, over releases, of (Euclidean length that one row moves / scale)^2.
    places : int of 0 or more
        Number of places of all releases together.
    scale : float of 0 or more
        The smallest of their scales, at least 1.

    Notes
    -----
    Up to a factor exp(eta), eta = places (2 + 12^2) / (8 scale^2), and a chance tau, the noise is
    real Gaussian noise rounded to integers: delta(e) <= exp(eta) G(e - 2 eta) + tau (1 + exp(e)),
    G being the curve of real noise.

    Examples
    --------
    >>> from cumae.privacy import DiscreteGaussianVectors, Gaussian
    >>> cost = DiscreteGaussianVectors(mu=0.2, places=1000, scale=1e6)
    >>> round(cost.epsilon(1e-6), 4) == round(Gaussian(1.0, 0.2).epsilon(1e-6), 4)
    True
    """

    mu: float
    places: int
    scale: float

    def __post_init__(self) -> None:
        keep(
            self,
            mu=check_nonnegative(self.mu, "mu", up=True),
            places=check_count(self.places, "places", least=1),
            scale=check_nonnegative(self.scale, "scale", down=True),
        )
        if self.scale < 1:
            raise InvalidParameter(f"scale={self.scale!r} is below 1; count in smaller units.")

    def _curve(self, epsilon: Floats) -> Floats:
        eta = self.places * (2 + FAR_OUT**2) / 8 / self.scale / self.scale * UP
        if eta > FAR:
            return np.ones_like(epsilon)
        within = FAR_OUT - 1 / (2 * self.scale)
        tau = 2 * self.places * math.exp(-(within**2) / 2) * UP
        near = np.maximum(epsilon - 2 * eta, 0.0) * (1.0 - 1e-15)
        real = Gaussian(1.0, self.mu).deltas(near)
        curve = math.exp(eta) * real * UP + tau * (1 + np.exp(epsilon)) * UP
        return np.where(epsilon >= 2 * eta, curve, 1.0)

    @property
    def zcdp(self) -> tuple[float, float] | None:
        return (half_square(self.mu) * UP, 0.0)  # mu was computed by others, with floats

    @property
    def infinite(self) -> bool:
        return Gaussian(1.0, self.mu).infinite
