"""Privacy loss distributions: atoms of a dominating pair, and their composition on a grid.

A pair (P, Q) of distributions dominates a mechanism if, for every epsilon, the hockey-stick
divergence of P and Q is at least that of the mechanism on any two neighbours. The loss
L = ln(dP/dQ), with L ~ P, then tells everything: delta(epsilon) = E[max(0, 1 - exp(epsilon - L))].
Independent losses of composed mechanisms add up, also when later mechanisms are chosen from
earlier answers (claim COMP).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # its parts are loaded when they are first used

from cumae.arrays import Floats
from cumae.claims import claim

Curve = Callable[[Floats], Floats]

TAIL = 1e-15  # mass that a truncation may move to "infinite loss"; it is added to delta
STEP = 0.02  # grid step, in standard deviations of one step's loss
LEAST_STEP = 1e-300  # below it, products with losses lose their digits
LONGEST = 2**23  # grid points; above that the closed forms have to do
ROUNDING = 2.0**-53
HIGHER = 1.0 + 8 * ROUNDING  # losses are raised by this factor, above all their roundings


@dataclass(frozen=True, eq=False)
class Atoms:
    """A discrete dominating pair: losses with their P-masses, and the mass of infinite loss."""

    losses: Floats
    masses: Floats
    infinite: float = 0.0
    lattice: float = 0.0  # every loss is a whole multiple of it; 0 if there is none

    def deviation(self) -> float:
        """Return the standard deviation of the finite loss, without squares that underflow."""
        widest = float(np.abs(self.losses).max())
        if widest == 0:
            return 0.0
        scaled = self.losses / widest
        mean = np.average(scaled, weights=self.masses)
        return widest * float(np.sqrt(np.average((scaled - mean) ** 2, weights=self.masses)))

    def delta(self, epsilon: Floats) -> Floats:
        """Upper bound on delta at each epsilon of 0 or more."""
        return self._grid.delta(epsilon)

    @cached_property
    def _grid(self) -> LossGrid:
        return _grid(self.losses, self.masses, self.infinite, 0.0)


@claim("COMP")
def atoms_of_curve(curve: Curve, last: float) -> Atoms:
    """Dominating pair of any mechanism whose delta is at most ``curve`` in both directions.

    ``curve`` is read on a grid of [0, last], where it should be close to its limit; what is left
    there counts as infinite loss. The true profile is convex in u = exp(epsilon) and below the
    readings, so it is below their lower convex hull, which is the profile of the atoms.
    """
    right = np.linspace(0.0, last, 4097)
    delta = np.minimum(curve(right), 1.0)
    # In the other direction: H_{exp(-e)}(P||Q) = 1 - exp(-e) (1 - H_{exp(e)}(Q||P)).
    left = 1.0 - np.exp(-right[1:]) * (1.0 - delta[1:])
    u = np.exp(np.concatenate([[-np.inf], -right[:0:-1], right]))
    heights = np.concatenate([[1.0], left[::-1], delta])
    corners = _lower_hull(u, heights)
    # Extended precision, because a mass is the difference of two close slopes.
    u, heights = u[corners].astype(np.longdouble), heights[corners].astype(np.longdouble)
    slopes = np.diff(heights) / np.diff(u)
    # A kink at u carries Q-mass (change of slope) and P-mass u times that; behind the last
    # corner the curve is flat, at the mass of infinite loss.
    masses = u[1:] * np.diff(np.append(slopes, 0.0))
    rounding = 4.0 * len(u) * float(np.finfo(np.longdouble).eps) + 1e-15
    return Atoms(
        np.log(u[1:]).astype(np.float64),
        np.maximum(masses, 0.0).astype(np.float64),
        min(float(delta[-1]) + rounding, 1.0),
    )


def _lower_hull(points: Floats, heights: Floats) -> list[int]:
    """Corners of the lower convex hull of points with increasing x (Andrew's chain)."""
    hull: list[int] = []
    x, y = points.tolist(), heights.tolist()  # single numbers of an array take longer to read
    for i in range(len(x)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(i)
    return hull


@dataclass(frozen=True, eq=False)
class LossGrid:
    """Composed loss on a grid; ``slack`` bounds what floating-point transforms may have lost."""

    losses: Floats
    upper: Floats  # P-mass at and above each loss
    lower: Floats  # Q-mass at and above each loss
    infinite: float
    slack: float

    def delta(self, epsilon: Floats) -> Floats:
        """Upper bound on delta at each epsilon of 0 or more."""
        first = np.searchsorted(self.losses, epsilon, side="right")
        gain = self.upper[first] - np.exp(np.minimum(epsilon, 700.0)) * self.lower[first]
        return np.asarray(np.maximum(gain, 0.0) + self.infinite + self.slack)


@claim("COMP")
def compose_atoms(parts: Sequence[tuple[Atoms, int]]) -> LossGrid | None:
    """Compose each pair ``count`` times; None if no grid of reasonable length fits them.

    The grid follows from the counts: splitting a loss between two neighbours of a grid with step
    h keeps P and Q, hence dominates, and adds at most h^2/4 to its variance. So h is a fiftieth
    of the root mean square deviation per step, for any number of steps. Losses on a lattice
    that is no finer than that keep it, and nothing is rounded at all.
    """
    # log1p and expm1 keep a total failure probability near 1e-30 apart from 0.
    if any(atoms.infinite >= 1 for atoms, _ in parts):
        return None
    infinite = -math.expm1(sum(count * math.log1p(-atoms.infinite) for atoms, count in parts))
    infinite = min(infinite * (1.0 + 1e-12), 1.0)
    if len(parts) == 1 and len(parts[0][0].losses) == 2 and parts[0][1] < LONGEST:
        atoms, count = parts[0]
        return _grid(*_binomial(atoms, count), infinite, 1e-11)

    uses = sum(count for _, count in parts)
    step = STEP * math.hypot(*(atoms.deviation() * math.sqrt(n / uses) for atoms, n in parts))
    if len(parts) == 1 and parts[0][0].lattice >= step:
        step = parts[0][0].lattice
    widest = sum(float(np.ptp(atoms.losses)) for atoms, _ in parts)
    if step == 0 and all(not atoms.losses.any() for atoms, _ in parts):  # no finite loss at all
        return _grid(np.zeros(1), np.ones(1), infinite, 0.0)
    if step < LEAST_STEP or widest / step > LONGEST:
        return None

    grids, low, high = [], 0, 0
    for atoms, count in parts:
        start, grid = _split(atoms, step)
        first, last = window(grid, count, max(atoms.deviation() / step, 1.0))
        low, high = low + start * count + first, high + start * count + last
        grids.append((start, grid, count))
    length = max(high - low + 1, *(len(grid) for _, grid, _ in grids))
    if length > LONGEST:
        return None
    masses, error = _convolve(grids, low, scipy.fft.next_fast_len(length, real=True))
    losses = np.asarray((low + np.arange(len(masses))) * step, dtype=np.float64)
    return _grid(losses, np.maximum(masses, 0.0), infinite, error + len(parts) * TAIL)


@claim("COMP")
def window(grid: Floats, count: int, deviation: float) -> tuple[int, int]:
    """Return the places between which all but TAIL of a ``count``-fold convolution lies.

    Parameters
    ----------
    grid : array of float
        Masses at the places 0, 1, 2, ...
    count : int
        Number of times that they are convolved with themselves.
    deviation : float
        Their standard deviation in places, roughly; the closer it is, the shorter the window.
    """
    first, last = 0, (len(grid) - 1) * count
    places = np.flatnonzero(grid)
    logs = np.log(grid[places])
    # Chernoff: the best order is near the one for a normal law.
    normal = math.sqrt(-2.0 * math.log(TAIL / 2)) / (math.sqrt(count) * deviation)
    for factor in (0.5, 0.8, 1.0, 1.3, 2.0):
        order = factor * normal
        # What rounding may take from the logarithm of a moment.
        rounding = 16.0 * ROUNDING * (order * len(grid) + 1_000.0)
        for sign in (1, -1):
            exponents = logs + sign * order * places
            top = float(exponents.max())
            log_moment = top + math.log(float(np.exp(exponents - top).sum()))
            bound = (count * (log_moment + rounding) - math.log(TAIL / 2)) / order
            if sign > 0:
                last = min(last, math.ceil(bound))
            else:
                first = max(first, math.floor(-bound))
    return first, last


def _convolve(
    grids: Sequence[tuple[int, Floats, int]], low: int, length: int
) -> tuple[Floats, float]:
    """Convolve each grid ``count`` times with itself, and all of them; bound the sum of errors.

    dp-accounting convolves, too, but does not tell how far its result may be off.
    """
    # Every value of a transform is off by at most g. If its modulus is at most m, the modulus of
    # its n-th power is off by n m^(n-1) g; in a product the other factors multiply that. By
    # Parseval and Cauchy-Schwarz, the 2-norm of these errors bounds the sum of the absolute errors
    # of masses.
    g = 8.0 * ROUNDING * (np.log2(length) + 4.0)
    transforms = [scipy.fft.rfft(grid, length) for _, grid, _ in grids]
    counts = [count for _, _, count in grids]
    logs = [np.log(np.abs(values) + g) for values in transforms]
    total = sum(count * log for count, log in zip(counts, logs, strict=True))
    error = np.exp(total) + sum(
        count * np.exp(total - log) for count, log in zip(counts, logs, strict=True)
    )
    spectrum = np.prod([v**count for v, count in zip(transforms, counts, strict=True)], axis=0)
    shift = sum(start * count for start, _, count in grids) - low
    masses = np.roll(scipy.fft.irfft(spectrum, length), shift)
    return masses, float(g * np.sqrt(2.0 * np.sum(error**2)))


def _binomial(atoms: Atoms, count: int) -> tuple[Floats, Floats]:
    """Losses and masses of a ``count``-fold composition of two atoms: a binomial, no transform."""
    (low, high), weight = atoms.losses, atoms.masses.sum()
    hits = np.arange(count + 1)
    masses = scipy.stats.binom.pmf(hits, count, atoms.masses[1] / weight) * weight**count
    # Losses of both signs cancel in the sum: extended precision, and what that may be off is added.
    wide = np.longdouble
    off = 4 * wide(count) * (abs(wide(low)) + abs(wide(high))) * np.finfo(wide).eps
    losses = (count - hits) * wide(low) + hits * wide(high) + off
    return losses.astype(np.float64), masses


def _grid(losses: Floats, masses: Floats, infinite: float, slack: float) -> LossGrid:
    positive = losses > 0  # delta is asked for epsilon >= 0 only
    losses, masses = losses[positive] * HIGHER, masses[positive]
    # Running sums in extended precision, and a bound on what they may still be off.
    rounding = 4.0 * len(losses) * float(np.finfo(np.longdouble).eps) + 16.0 * ROUNDING
    return LossGrid(
        losses=losses,
        upper=_sums_from(masses),
        lower=_sums_from(masses * np.exp(-losses)),
        infinite=infinite,
        slack=slack + rounding * float(masses.sum()),
    )


def _sums_from(masses: Floats) -> Floats:
    """Sum of the masses from each place on, and 0 at the end."""
    sums = np.cumsum(masses[::-1], dtype=np.longdouble)[::-1]
    return np.append(sums.astype(np.float64), 0.0)


def _split(atoms: Atoms, step: float) -> tuple[int, Floats]:
    """Move each atom to its two neighbours on the grid so that its P- and Q-mass stay the same."""
    position = (atoms.losses + (HIGHER - 1.0) * np.abs(atoms.losses)) / step
    if step == atoms.lattice:  # whole numbers up to rounding; split, they would drift upwards
        below, share = np.rint(atoms.losses / step).astype(np.int64), np.ones_like(position)
    else:
        below = np.floor(position).astype(np.int64)
        short = (below + 1 - position) * step
        # (exp(short) - 1) / (exp(step) - 1), without overflow for a large step.
        share = np.exp(short - step) * np.expm1(-short) / np.expm1(-step)
    start = int(below.min())
    grid = np.zeros(int(below.max()) - start + 2)
    np.add.at(grid, below - start, atoms.masses * share)
    np.add.at(grid, below - start + 1, atoms.masses * (1.0 - share))
    return start, grid
