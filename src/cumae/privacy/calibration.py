"""Find the smallest noise that keeps a promise."""

from __future__ import annotations

import math
from collections.abc import Callable

from cumae.claims import claim
from cumae.errors import InvalidParameter
from cumae.parameters import check_count
from cumae.privacy.cost import Cost, Gaussian
from cumae.privacy.discrete_gaussian import DiscreteGaussian
from cumae.privacy.validation import check_delta, check_epsilon, check_nonnegative
from cumae.remembering import remembered

MOST_STEPS = 400


@claim("CAL")
def calibrate(
    cost_at: Callable[[float], Cost],
    epsilon: float,
    delta: float = 0.0,
    *,
    start: float = 1.0,
    tolerance: float = 1e-4,
) -> float:
    """Return the smallest noise whose cost is within (epsilon, delta), up to ``tolerance``.

    Parameters
    ----------
    cost_at : callable from float to Cost
        The cost at a given noise; more noise must not cost more.
    epsilon, delta : float
        The target. Without a target (epsilon = inf) the noise is 0.
    start : float above 0
        A first guess, greater than 0.
    tolerance : float above 0 and below 1
        Relative width of the final bracket. The noise returned is its upper end, whose cost was
        computed and found within the target.

    Examples
    --------
    >>> from cumae.privacy import Pure, calibrate
    >>> scale = calibrate(lambda scale: Pure(1 / scale), epsilon=0.5)
    >>> Pure(1 / scale).epsilon(0) <= 0.5, round(scale, 2)
    (True, 2.0)
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    start = check_nonnegative(start, "start")
    tolerance = check_nonnegative(tolerance, "tolerance")
    if not (0 < start < math.inf and 0 < tolerance < 1):
        raise InvalidParameter(
            f"start={start!r}, tolerance={tolerance!r}: give a positive start and a tolerance "
            "between 0 and 1."
        )
    if epsilon == math.inf:
        return 0.0

    def fits(noise: float) -> bool:
        return cost_at(noise).delta(epsilon) <= delta

    found = _bracket(fits, start, 1.0 + 10 * tolerance)
    if found is None:
        raise InvalidParameter(
            f"epsilon={epsilon!r}, delta={delta!r}: no noise near {start:.3g}, up to a factor of "
            f"2**{MOST_STEPS}, just reaches it; allow a larger epsilon, or a delta above 0 for "
            "Gaussian noise."
        )
    low, high = found
    while high - low > tolerance * high:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    if not fits(high):  # the cost was not monotone: refuse rather than return what was not checked
        raise InvalidParameter(
            f"epsilon={epsilon!r}, delta={delta!r}: the cost at noise {high!r} exceeds the target; "
            "pass a cost that falls with noise."
        )
    return high


def _bracket(
    fits: Callable[[float], bool], start: float, grow: float
) -> tuple[float, float] | None:
    """Walk away from the start in growing steps until one noise fits and the one below does not.

    Returns None if all steps end on the same side.
    """
    enough = fits(start)
    low = high = start
    for _ in range(MOST_STEPS):
        if enough:
            high, low = low, low / grow
            if not fits(low):
                return low, high
        else:
            low, high = high, high * grow
            if fits(high):
                return low, high
        grow = min(grow**2, 2.0)
    return None


@claim("CAL")
def calibrate_gaussian(
    epsilon: float,
    delta: float,
    releases: int = 1,
    sensitivity: int = 1,
    *,
    tolerance: float = 1e-4,
) -> float:
    """Return the smallest scale of discrete Gaussian noise for a number of releases.

    Examples
    --------
    >>> from cumae.privacy import DiscreteGaussian, calibrate_gaussian
    >>> scale = calibrate_gaussian(1.0, 1e-6, releases=20_000)
    >>> (DiscreteGaussian(scale) * 20_000).epsilon(1e-6) <= 1.0, 590 < scale < 610
    (True, True)
    """
    releases = check_count(releases, "releases")
    sensitivity = check_count(sensitivity, "sensitivity")
    epsilon = check_epsilon(epsilon)
    delta = check_delta(delta)
    if epsilon == math.inf or releases * sensitivity == 0:
        return 0.0
    if epsilon == 0 or delta == 0:
        raise InvalidParameter(
            f"epsilon={epsilon!r}, delta={delta!r}: Gaussian noise needs both above 0; use integer "
            "Laplace noise for delta = 0."
        )
    return _gaussian_scale(
        epsilon, delta, releases, sensitivity, check_nonnegative(tolerance, "tolerance")
    )


@remembered(256)
def _gaussian_scale(
    epsilon: float, delta: float, releases: int, sensitivity: int, tolerance: float
) -> float:
    # Remembered, because phases and audits ask for the same scale again and again.
    moved = sensitivity * math.sqrt(releases)
    real = calibrate(lambda scale: Gaussian(scale, moved), epsilon, delta, tolerance=1e-6)
    return calibrate(
        lambda scale: DiscreteGaussian(scale, sensitivity) * releases,
        epsilon,
        delta,
        start=real,
        tolerance=tolerance,
    )
