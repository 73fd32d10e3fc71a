"""The spread of numbers and errors, from noisy counts of bins."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cumae.arrays import Floats

EVEN = 16  # bins of the same width in a first look at a number
BINS = 8  # in a second look, where noise hides more
MOST_BINS = 40
CLEAR = 4.0  # how many times its noise a usual count is where there are more bins
USUAL_UNITS, LOOSE = 10.0, 1.2  # units in a range, and by which factor e^1.2 there may be others
INNER = (0.1, 0.9)
NORMAL_INNER = 2.563  # what lies between these shares of a normal spread, in standard deviations
LEAST_UNIT = 1e-3  # of a range
FAR = 10.0  # units from the middle, beyond which nothing is expected
# Between which shares of the expected errors their counts are taken.
CUTS = (0.005, 0.0125, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.9875, 0.995)
FEW_CUTS = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)
CLEAR_CUTS = 150  # how many times the noise of a count there are rows, for all cuts
WIDER = np.exp(np.linspace(-0.7, 0.7, 57))  # by how much a spread may differ from what is expected
MOVED = np.linspace(-0.6, 0.6, 49)
USUAL_WIDER, USUAL_MOVED = 0.3, 0.1  # by how much it usually does
ROUGH = 0.02  # how well the shares below cuts are expected to fit, where values are spiked
UNSURE, RARE = 0.5, 0.01  # how far a share may be from what is expected: a part of it, and this
TAILS = (2.5, 4.0, 6.0, 9.0)  # cuts on both sides of the middle, in units
TINY = 1e-12


@dataclass(frozen=True)
class Spread:
    """A spread of numbers: edges of bins, and the share of each; numbers lie evenly in a bin.

    Parameters
    ----------
    edges, shares : array of float
        Edges of bins, and the share of each bin.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.learners.regression.spread import Spread
    >>> even = Spread(np.array([0.0, 1.0, 3.0]), np.array([0.5, 0.5]))
    >>> even.mean, even.quantile(np.array([0.25, 0.75])).tolist()
    (1.25, [0.5, 2.0])
    """

    edges: Floats
    shares: Floats

    @classmethod
    def usual(cls, centre: float, unit: float, low: float, high: float) -> Spread:
        """Return a spread with one peak and tails, as most are, within a range.

        Parameters
        ----------
        centre, unit : float
            Its middle and about its standard deviation.
        low, high : float
            The range: what would lie beyond is at its ends.
        """
        first, last = max(low, centre - FAR * unit), min(high, centre + FAR * unit)
        edges = np.unique(np.clip(centre + unit * np.sinh(np.linspace(-3, 3, 81)), first, last))
        edges = np.unique(np.concatenate([edges, [first, last]]))
        below = tailed((edges - centre) / unit)
        below[0], below[-1] = 0.0, 1.0
        return cls(edges, np.diff(below))

    @property
    def below(self) -> Floats:
        """The share below each edge."""
        return np.append(0.0, np.cumsum(self.shares))

    @property
    def mean(self) -> float:
        """The mean."""
        return float(self.shares @ (self.edges[1:] + self.edges[:-1])) / 2

    def share_below(self, cuts: Floats) -> Floats:
        """Return the share of the numbers below each of some cuts."""
        return np.asarray(np.interp(cuts, self.edges, self.below))

    def quantile(self, shares: Floats) -> Floats:
        """Return below which numbers so many lie."""
        below = self.below + np.linspace(0.0, TINY, len(self.edges))  # so that it grows everywhere
        return np.asarray(np.interp(shares, below / below[-1], self.edges))

    @property
    def unit(self) -> float:
        """About a standard deviation, for which far numbers do not count."""
        low, high = map(float, self.quantile(np.array(INNER)))
        least = LEAST_UNIT * float(self.edges[-1] - self.edges[0])
        return max((high - low) / NORMAL_INNER, least)

    def scaled(self, centre: float, unit: float) -> Spread:
        """Return the spread of the numbers less a centre, in another unit."""
        return Spread((self.edges - centre) / unit, self.shares)

    def less_mean(self) -> Spread:
        """Return the spread of the numbers less their mean."""
        return Spread(self.edges - self.mean, self.shares)

    def moments_below(self, cuts: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the share, the sum and the sum of squares of all numbers below each of some cuts.

        Examples
        --------
        >>> import numpy as np
        >>> from cumae.learners.regression.spread import Spread
        >>> even = Spread(np.array([0.0, 1.0, 3.0]), np.array([0.5, 0.5]))
        >>> [part.round(3).tolist() for part in even.moments_below(np.array([0.5, 9.0]))]
        [[0.25, 1.0], [0.062, 1.25], [0.021, 2.333]]
        """
        edges = self.edges
        places = np.clip(np.searchsorted(edges, cuts, side="right") - 1, 0, len(self.shares) - 1)
        ends, begun = np.clip(cuts, edges[0], edges[-1]), edges[places]
        widths = np.diff(edges)  # two cuts may become one by rounding
        dense = self.shares / np.where(widths > 0, widths, 1.0)
        found = []
        for power in (1, 2, 3):
            whole = np.append(0.0, np.cumsum(dense * np.diff(edges**power) / power))
            found.append(whole[places] + dense[places] * (ends**power - begun**power) / power)
        return found[0], found[1], found[2]

    @property
    def middles(self) -> Floats:
        """The middle of each bin."""
        return (self.edges[1:] + self.edges[:-1]) / 2

    @property
    def variance(self) -> float:
        """The variance, with all numbers of a bin in its middle."""
        return float(self.shares @ (self.middles - self.mean) ** 2)


def tailed(numbers: Floats) -> Floats:
    """Return the share below some numbers of Student's t with four degrees of freedom, halved.

    Its middle is that of a normal spread, and one in a hundred lies beyond three.
    """
    square = numbers**2 * 1.5
    return np.asarray(
        0.5
        + 0.375
        * (numbers * math.sqrt(1.5) / np.sqrt(1 + square / 4))
        * (1 - square / (12 * (1 + square / 4)))
    )


def first_cuts(low: float, high: float, near: Floats) -> Floats:
    """Return cuts for a first look: even ones, and others that are finer near an end or zero.

    Parameters
    ----------
    low, high : float
        The range.
    near : array of float
        The other ones.
    """
    return np.unique(np.concatenate([np.linspace(low, high, EVEN + 1), near]))[1:-1]


def first_spread(cuts: Floats, counts: Floats, noise: float, low: float, high: float) -> Spread:
    """Return the spread of a usual shape that fits a first look best.

    Parameters
    ----------
    cuts, counts : array of float
        Cuts, and noisy counts between them.
    noise : float
        Standard deviation of the noise of a count.
    low, high : float
        The range.
    """
    total = max(float(counts.sum()), 1.0)
    found, error = counts / total, noise / total
    under, spread = np.cumsum(found)[:-1], _unsure(len(cuts), error)
    ends = np.concatenate([[low], cuts, [high]])
    centres = np.unique(
        np.concatenate([np.linspace(low, high, 65)[1:-1], (ends[1:] + ends[:-1]) / 2])
    )
    best, chosen = -math.inf, (float(centres[0]), high - low)
    for unit in np.geomspace(LEAST_UNIT * (high - low), (high - low) / 2, 60).tolist():
        below = tailed((cuts[None, :] - centres[:, None]) / unit)
        fit = -((under - below) ** 2 / spread).sum(axis=1)
        fit -= (math.log(unit * USUAL_UNITS / (high - low)) / LOOSE) ** 2
        place = int(fit.argmax())
        if fit[place] > best:
            best, chosen = float(fit[place]), (float(centres[place]), unit)
    return _towards(Spread.usual(*chosen, low, high), cuts, found, error**2, total)


def next_cuts(spread: Spread, rows: int, noise: float) -> Floats:
    """Return cuts with about the same share between them, so many as stand out, and in tails.

    Parameters
    ----------
    spread : Spread
        How numbers are spread by a first look.
    rows : int
        Number of rows.
    noise : float
        Standard deviation of the noise of a count.
    """
    bins = int(min(max(BINS, rows / max(CLEAR * noise, TINY)), MOST_BINS))
    inner = spread.quantile(np.arange(1, bins) / bins)
    steps = np.array(TAILS) * spread.unit
    middle = float(spread.quantile(np.array([0.5]))[0])
    both = np.concatenate([middle - steps, inner, middle + steps])
    return np.unique(both[(both > spread.edges[0]) & (both < spread.edges[-1])])


def error_cuts(expected: Spread, rows: int, noise: float) -> Floats:
    """Return cuts between which errors are counted: at shares that intervals need.

    Parameters
    ----------
    expected : Spread
        How errors are expected to be spread.
    rows : int
        Number of rows.
    noise : float
        Standard deviation of the noise of a count.
    """
    shares = CUTS if rows > CLEAR_CUTS * noise else FEW_CUTS
    return np.unique(expected.quantile(np.array(shares)))


def corrected(expected: Spread, cuts: Floats, counts: Floats, noise: float) -> Spread:
    """Return a spread: what was expected, moved and stretched, and then corrected by counts.

    First one shift and one factor are found that fit the counts best. Then the share of each bin is
    moved towards its count, as far as that stands out from its noise.

    Parameters
    ----------
    expected : Spread
        What was expected.
    cuts, counts : array of float
        Cuts, and noisy counts between them.
    noise : float
        Standard deviation of the noise of a count.
    """
    total = max(float(counts.sum()), 1.0)
    found, error = counts / total, noise / total
    unit, middle = expected.unit, float(expected.quantile(np.array([0.5]))[0])
    below, under, spread = expected.below, np.cumsum(found)[:-1], _unsure(len(cuts), error)
    wider, moved = WIDER[:, None], MOVED[None, :]
    # A cut of the moved and stretched spread is another cut of the expected one.
    places = middle + (cuts - middle - moved[..., None] * unit) / wider[..., None]
    off = under - np.interp(places, expected.edges, below)
    fit = (off**2 / spread).sum(axis=2)
    fit += (moved / USUAL_MOVED) ** 2 + (np.log(wider) / USUAL_WIDER) ** 2
    row, column = np.unravel_index(int(fit.argmin()), fit.shape)
    edges = middle + MOVED[column] * unit + (expected.edges - middle) * WIDER[row]
    chosen = Spread(edges, expected.shares)
    return _towards(chosen, cuts, found, error**2, total)


def _unsure(cuts: int, error: float) -> Floats:
    """Return how far noisy shares below cuts may be off: the sum of fewer bins, from either side.

    Parameters
    ----------
    cuts : int
        Number of cuts.
    error : float
        Standard deviation of the noise of a share.
    """
    places = np.arange(1, cuts + 1)
    return np.asarray(np.minimum(places, places[::-1]) * error**2 + ROUGH**2)


def _towards(chosen: Spread, cuts: Floats, found: Floats, noise: float, total: float) -> Spread:
    """Return a spread whose shares between cuts are moved towards what was found.

    Parameters
    ----------
    chosen : Spread
        What is expected.
    cuts, found : array of float
        Cuts, and noisy shares between them.
    noise : float
        Variance of their noise.
    total : float
        Number of rows.
    """
    shares = np.diff(chosen.share_below(cuts), prepend=0.0, append=1.0)
    prior = (UNSURE * shares + RARE) ** 2
    weight = prior / (prior + noise + shares * (1 - shares) / total + TINY)
    moved = np.maximum(shares + weight * (found - shares), shares / 4 + TINY)
    factors = moved / moved.sum() / np.maximum(shares, TINY)
    # Between two cuts, the expected spread keeps its shape.
    edges = np.unique(np.concatenate([chosen.edges, cuts]))
    own = np.diff(chosen.share_below(edges))
    own = own * factors[np.searchsorted(cuts, (edges[1:] + edges[:-1]) / 2)] + TINY
    return Spread(edges, own / own.sum())
