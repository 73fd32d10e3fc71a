"""Bins of chances: a public grid for private rows, and single values for public rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.errors import InvalidParameter
from cumae.remembering import remembered

FEWEST_BINS, MOST_BINS = 10, 200
ROWS_PER_BIN = 20  # at least, for each subgroup; more where the noise is larger
NOISE_PER_BIN = 6  # rows per bin for each unit of the noise's variance
FLAT = 0.5  # weight of equal steps in chance against equal steps in log odds
PUBLIC = 0.75  # weight of public rows against the fixed grid
RAREST = 1e-3  # chances below, and above 1 - RAREST, are not told apart by the fixed grid
FINE_STEPS = 20_000


@dataclass(frozen=True)
class ScoreBins:
    """Bins of a chance: bin b holds the chances above ``low[b]`` and up to ``high[b]``.

    Where both are the same, the bin holds this value alone, and hides no order.

    Parameters
    ----------
    low, high : array of float
        The ends of each bin, in rising order.

    Examples
    --------
    >>> from cumae.counting.bins import even_bins
    >>> bins = even_bins(10, 0.5)
    >>> len(bins), bins.places([0.5, 0.500001, 1.0]).tolist()
    (10, [4, 5, 9])
    """

    low: Floats
    high: Floats

    def __len__(self) -> int:
        return len(self.low)

    @claim("EVAL")
    def places(self, chances: ArrayLike) -> Integers:
        """Return the bin of each chance; what is not a number counts as 0.

        Parameters
        ----------
        chances : array of float
            Chances from 0 to 1.
        """
        known = np.nan_to_num(np.asarray(chances, dtype=float), nan=0.0)
        return np.asarray(np.searchsorted(self.high[:-1], known, side="left"))

    @property
    def hides(self) -> bool:
        """True if rows of one bin may have different chances."""
        return bool((self.low < self.high).any())

    def above(self, threshold: float) -> Integers:
        """Return 1 for each bin whose chances are above a threshold, and 0 for the others.

        Parameters
        ----------
        threshold : float
            The end of a bin, or any number if bins hold single values.
        """
        middle = (self.low + self.high) / 2
        return (middle > threshold).astype(np.int64)


@claim("EVAL")
def bin_count(rows: int, groups: int, variance: float) -> int:
    """Return the number of bins that so many rows with so much noise can fill; always even.

    Parameters
    ----------
    rows, groups : int of 1 or more
        Test rows, and subgroups.
    variance : float
        The variance of the noise on each count.
    """
    needed = max(ROWS_PER_BIN, NOISE_PER_BIN * variance) * groups
    return 2 * (int(np.clip(rows / needed, FEWEST_BINS, MOST_BINS)) // 2)


@claim("EVAL")
def even_bins(count: int, threshold: float, public: Floats | None = None) -> ScoreBins:
    """Return bins that follow from public values alone, with the threshold between two of them.

    Half of the steps are equal in chance, and half in log odds, so that rare classes have bins,
    too. With chances of public rows, three quarters of the steps have equally many of these.

    Parameters
    ----------
    count : int of 2 or more
        Bins, at most.
    threshold : float above 0 and below 1
        A chance that becomes the end of a bin.
    public : array of float, or None
        Chances of public rows.
    """
    odds = np.log(1 / RAREST - 1)
    points = _fine_points()
    if public is not None:
        points = np.union1d(points, np.clip(np.nan_to_num(public), 0.0, 1.0))
    inside = np.clip(points, RAREST, 1 - RAREST)
    share = FLAT * points + (1 - FLAT) * (np.log(inside / (1 - inside)) / odds + 1) / 2
    if public is not None:
        below = np.searchsorted(np.sort(public), points, side="right") / len(public)
        share = PUBLIC * below + (1 - PUBLIC) * share
    wanted = np.arange(1, count) / count
    inner = points[np.minimum(np.searchsorted(share, wanted - 1e-9), len(points) - 1)]
    inner[np.argmin(np.abs(inner - threshold))] = threshold
    inner = np.unique(inner[(inner > 0) & (inner < 1)])
    return ScoreBins(np.append(0.0, inner), np.append(inner, 1.0))


@remembered(1)
def _fine_points() -> Floats:
    """Return chances in equal steps, and in equal steps of the log odds."""
    odds = np.log(1 / RAREST - 1)
    points = 1 / (1 + np.exp(-np.linspace(-odds, odds, FINE_STEPS)))
    return np.union1d(points, np.linspace(0.0, 1.0, FINE_STEPS))


@claim("EVAL")
def declared_bins(edges: Sequence[float], threshold: float) -> ScoreBins:
    """Return bins between declared edges, with the threshold among these.

    Parameters
    ----------
    edges : sequence of float
        Chances above 0 and below 1.
    threshold : float above 0 and below 1
        A chance that becomes the end of a bin, too.
    """
    inner = np.unique([*map(float, edges), threshold])
    if not ((inner > 0) & (inner < 1)).all():
        raise InvalidParameter("bins must be chances above 0 and below 1, or how many there are.")
    return ScoreBins(np.append(0.0, inner), np.append(inner, 1.0))


def single_values(chances: Floats) -> ScoreBins:
    """Return one bin for each chance that occurs, which only public rows allow.

    Parameters
    ----------
    chances : array of float
        Chances of public rows.
    """
    values = np.unique(np.nan_to_num(chances))
    return ScoreBins(values, values)


def equal_steps(count: int, most: float) -> ScoreBins:
    """Return bins of equal width from 0 to a number.

    Parameters
    ----------
    count : int of 1 or more
        Bins.
    most : float above 0
        The end of the last bin.
    """
    ends = np.linspace(0.0, most, count + 1)
    return ScoreBins(ends[:-1], ends[1:])
