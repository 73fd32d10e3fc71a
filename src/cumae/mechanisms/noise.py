"""Integer noise on integer counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from numpy.typing import ArrayLike

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.errors import InvalidParameter
from cumae.mechanisms.base import Mechanism, check_integers
from cumae.parameters import check_count
from cumae.privacy import Cost, DiscreteGaussian, Pure, calibrate_gaussian
from cumae.privacy.validation import (
    check_epsilon,
    check_nonnegative,
    from_plain_number,
    plain_number,
)
from cumae.randomness import LARGEST_SCALE, Source, discrete_gaussian, discrete_laplace


@claim("NOISE")
class LaplaceNoise(Mechanism):
    """Integer noise x with P(x) proportional to exp(-epsilon |x| / sensitivity).

    Parameters
    ----------
    epsilon : float above 0
        Privacy parameter of one release; infinity adds nothing.
    sensitivity : int of 1 or more
        How far one replaced row can move the released counts, in absolute values added up.
    random_state : int, Source or None
        None in production; a seed or a source in tests, which voids the guarantee.

    Examples
    --------
    >>> from cumae.mechanisms import LaplaceNoise
    >>> noise = LaplaceNoise(epsilon=0.5)
    >>> noise.release([120, 80]).shape
    (2,)
    >>> noise.cost
    Pure(eps=0.5)
    """

    claims = ("NOISE",)

    def __init__(
        self, epsilon: float, sensitivity: int = 1, *, random_state: int | Source | None = None
    ) -> None:
        self.epsilon = check_epsilon(epsilon)
        self.sensitivity = check_count(sensitivity, "sensitivity", least=1)
        if self.epsilon * LARGEST_SCALE < self.sensitivity:
            raise InvalidParameter(
                f"epsilon={epsilon!r} with sensitivity={sensitivity!r} needs noise beyond 2**50; "
                "give a larger epsilon."
            )
        super().__init__(random_state)

    def to_facts(self) -> dict[str, Any]:
        """Return the parameters as JSON can hold them; there is no state besides."""
        epsilon = plain_number(self.epsilon)
        return {"kind": "laplace", "epsilon": epsilon, "sensitivity": self.sensitivity}

    @property
    def cost(self) -> Cost:
        """One release, of all the counts together."""
        return Pure(self.epsilon)

    def draw(self, count: int, source: Source) -> Integers:
        """Return so many independent draws of the noise."""
        rate = self.epsilon
        exact = Fraction(rate) / self.sensitivity if math.isfinite(rate) else rate
        return discrete_laplace(exact, count, source)

    def release(self, counts: ArrayLike) -> Integers:
        """Return the counts with fresh noise."""
        values = check_integers(counts, "counts")
        return values + self.draw(values.size, self.source).reshape(values.shape)


@claim("NOISE")
class GaussianNoise(Mechanism):
    """Integer noise x with P(x) proportional to exp(-x^2 / (2 scale^2)).

    Parameters
    ----------
    scale : float of 0 or more
        Close to the standard deviation; 0 adds nothing.
    sensitivity : int of 1 or more
        How far one replaced row can move a count. A release of several counts, of which one row
        moves m at most, each by at most this, costs like m releases: give ``moves=m``.
    moves : int of 1 or more
        As above; 2 for a histogram of votes, where one vote leaves a bin and enters another.
    random_state : int, Source or None
        None in production; a seed or a source in tests, which voids the guarantee.

    Examples
    --------
    >>> from cumae.mechanisms import GaussianNoise
    >>> votes = GaussianNoise.calibrated(1.0, 1e-6, releases=20_000)
    >>> 590 < votes.scale < 610
    True
    >>> isinstance(int(votes.release(4_000)), int)
    True
    """

    claims = ("NOISE",)

    def __init__(
        self,
        scale: float,
        sensitivity: int = 1,
        *,
        moves: int = 1,
        random_state: int | Source | None = None,
    ) -> None:
        self.scale = check_nonnegative(scale, "scale")
        if self.scale > LARGEST_SCALE:
            raise InvalidParameter(f"scale={scale!r} is beyond 2**50; give less noise.")
        self.sensitivity = check_count(sensitivity, "sensitivity", least=1)
        self.moves = check_count(moves, "moves", least=1)
        super().__init__(random_state)

    @classmethod
    def calibrated(
        cls,
        epsilon: float,
        delta: float,
        releases: int = 1,
        sensitivity: int = 1,
        *,
        moves: int = 1,
        random_state: int | Source | None = None,
    ) -> GaussianNoise:
        """Return the smallest noise with which all releases stay within (epsilon, delta)."""
        count = check_count(releases, "releases", least=1) * check_count(moves, "moves", least=1)
        scale = calibrate_gaussian(epsilon, delta, count, sensitivity)
        return cls(scale, sensitivity, moves=moves, random_state=random_state)

    def to_facts(self) -> dict[str, Any]:
        """Return the parameters as JSON can hold them; there is no state besides."""
        sizes = {"sensitivity": self.sensitivity, "moves": self.moves}
        return {"kind": "gaussian", "scale": self.scale, **sizes}

    @property
    def cost(self) -> Cost:
        """One release."""
        return DiscreteGaussian(self.scale, self.sensitivity) * self.moves

    def draw(self, count: int, source: Source) -> Integers:
        """Return so many independent draws of the noise."""
        return discrete_gaussian(self.scale, count, source)

    def release(self, counts: ArrayLike) -> Integers:
        """Return the counts with fresh noise."""
        values = check_integers(counts, "counts")
        return values + self.draw(values.size, self.source).reshape(values.shape)


@claim("NOISE")
def noise_from_facts(
    facts: Mapping[str, Any], random_state: int | Source | None = None
) -> GaussianNoise | LaplaceNoise:
    """Make the noise that ``to_facts`` of one of these classes described.

    Parameters
    ----------
    facts : dict from str to int, float or str
        What ``to_facts`` returned.
    random_state : int, Source or None
        None in production; a seed or a source in tests, which voids the guarantee.

    Raises
    ------
    InvalidParameter
        If the facts are incomplete or of something else.

    Examples
    --------
    >>> from cumae.mechanisms.noise import LaplaceNoise, noise_from_facts
    >>> noise_from_facts(LaplaceNoise(0.5).to_facts()).epsilon
    0.5
    """
    match facts:
        case {"kind": "gaussian", "scale": scale, "sensitivity": sensitivity, "moves": moves}:
            return GaussianNoise(scale, sensitivity, moves=moves, random_state=random_state)
        case {"kind": "laplace", "epsilon": epsilon, "sensitivity": sensitivity}:
            epsilon = from_plain_number(epsilon)
            return LaplaceNoise(epsilon, sensitivity, random_state=random_state)
    raise InvalidParameter("these are not the facts of a noise; give what to_facts returned.")
