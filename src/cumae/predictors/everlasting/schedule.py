"""The sizes of phases and of their shards: functions of counts and parameters, and of nothing else.

The growth and the sizes are those of ``docs/everlasting_drift.md``, "The schedule", which has the
model and the simulation (``benchmarks/schedule.py``) they come from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.drift import Drift
from cumae.ensembles.growing.representatives import EVERYTHING, NOTHING, gaps
from cumae.mechanisms import counts_moved
from cumae.predictors.noise import AIMED_NOISE
from cumae.privacy import calibrate_gaussian
from cumae.randomness import SeededSource, permutation
from cumae.remembering import remembered

NO_END = 2**62  # rows up to which phases grow if there is no end
MOST_SIMULATED, LEAST_SHARDS = 20_000, 100  # rows of a simulated phase, and its shards
SIMULATED_LIVES, SIMULATED_PHASES = 3, 12
GROWTH = 1.6  # of "auto": near the least of both errors that growth can lower


@claim("EVER")
@dataclass(frozen=True)
class PhaseSchedule:
    """The number of answers of a phase, and of its shards, by its number of rows.

    Parameters
    ----------
    epsilon, delta : float
        The promise of each phase.
    n_classes : int
        Number of declared classes.
    growth : float, or None
        Answers of a phase for each of its rows; None for "auto".
    max_rows : int
        A phase grows no further than to so many rows; the first one's number, if that is larger.
    fresh : bool
        Whether rows of ``add_unlabelled`` take the place of queries.
    smallest : int
        Rows of a shard at least.
    fixed : bool
        Whether all shards have ``smallest`` rows, in all phases.
    aim : float
        Noise per vote up to which shards grow.

    Examples
    --------
    >>> from cumae.predictors.everlasting.schedule import PhaseSchedule
    >>> plan = PhaseSchedule(1.0, 1e-6, 2, None, 10_000, fresh=False, smallest=3, fixed=False)
    >>> plan.next_rows(1000), plan.next_rows(9000), plan.next_rows(20_000)
    (1600, 10000, 10000)
    >>> plan.shard_size(1000), plan.shard_size(1_000_000)
    (3, 283)
    """

    epsilon: float
    delta: float
    n_classes: int
    growth: float | None
    max_rows: int
    fresh: bool
    smallest: int
    fixed: bool
    aim: float = AIMED_NOISE

    @claim("EVER")
    def next_rows(self, n_rows: int) -> int:
        """Return how many rows the phase after one with so many rows can have.

        With users or clients it may have fewer, with fresh rows what was supplied, too, and with
        ``add_labelled`` more.
        """
        if self.fresh and self.growth is not None:
            return n_rows
        grown = math.ceil((GROWTH if self.growth is None else self.growth) * n_rows)
        return min(grown, self.max_rows)

    @claim("EVER")
    def releases(self, n_rows: int) -> int:
        """Return how many noisy votes a phase with so many rows releases.

        With fresh rows some of them label these.
        """
        if not self.fresh:
            return self.next_rows(n_rows)
        if self.growth is None:
            return self.most_labelled(n_rows) + self.next_rows(n_rows)
        return math.ceil(self.growth * n_rows)

    @claim("EVER", "FRESH")
    def most_labelled(self, n_rows: int) -> int:
        """Return how many of the releases of a phase label rows of the next one, at most."""
        return max(n_rows, self.next_rows(n_rows)) if self.fresh else 0

    def answers(self, n_rows: int) -> int:
        """Return how many queries a phase with so many rows answers, at least."""
        return self.releases(n_rows) - self.most_labelled(n_rows)

    @claim("EVER")
    def shard_size(self, n_rows: int) -> int:
        """Return how many rows a shard of a phase with so many rows has."""
        if self.fixed or self.epsilon == math.inf:
            return self.smallest
        releases = self.releases(n_rows) * counts_moved(self.n_classes)
        noise = _rough_scale(self.epsilon, self.delta, releases)
        return max(self.smallest, min(n_rows, int(self.aim * n_rows / noise)))

    def shards(self, n_rows: int) -> int:
        """Return the number of shards for so many rows."""
        return max(1, n_rows // self.shard_size(n_rows))

    def noise(self, n_rows: int) -> float:
        """Return about the noise of a phase with so many rows, as a share of its votes."""
        if self.epsilon == math.inf:
            return 0.0
        return _rough_scale(self.epsilon, self.delta, self.releases(n_rows)) / self.shards(n_rows)

    def rows_for(self, noise: float, most: int) -> int:
        """Return about how many rows have no more noise than this per vote; ``most`` at most.

        With shards of the smallest size.
        """
        if self.epsilon == math.inf:
            return min(most, self.smallest)
        smallest = replace(self, fixed=True, max_rows=10**12)
        # Without a cap the noise is as the inverse square root of the rows, but for rounding.
        return min(most, math.ceil(most * (smallest.noise(most) / noise) ** 2))

    def settled(self, n_rows: int) -> int | None:
        """Return with how many rows phases stop to grow, if all rows are kept; None if never.

        Parameters
        ----------
        n_rows : int
            Rows of this phase.
        """
        if self.max_rows >= NO_END and self.next_rows(n_rows) > n_rows:
            return None
        while self.next_rows(n_rows) > n_rows:
            n_rows = self.next_rows(n_rows)
        return n_rows

    def drift(self, n_rows: int) -> Drift | None:
        """Estimate how far thresholds wander once phases have stopped growing; None if never.

        Parameters
        ----------
        n_rows : int
            Rows of this phase.
        """
        last = self.settled(n_rows)
        if last is None:
            return None
        return Drift(last, simulated_step(last, self.shard_size(last), self.noise(last)))


@remembered(64)
def simulated_step(n_rows: int, shard_size: int, noise: float) -> float:
    """Simulate some phases, and return how far the even split of votes moves in one.

    The move shrinks as the root of the rows if shards and the noise per vote stay the same. So
    phases of more rows than are simulated have the step of smaller ones, times that factor.

    Parameters
    ----------
    n_rows : int
        Rows of a phase, and its answers.
    shard_size : int
        Rows of a shard.
    noise : float
        Noise as a share of the votes.
    """
    size = min(shard_size, n_rows)
    rows = min(n_rows, max(MOST_SIMULATED, LEAST_SHARDS * size))
    shards = max(1, rows // size)
    starts, moves = np.arange(shards + 1) * rows // shards, []
    for seed in range(SIMULATED_LIVES):
        source = SeededSource(seed)  # made-up rows: nothing here is private
        column = _shares(rows, source)
        signed = np.where(column >= 0.5, 1, -1)
        splits = []
        for _ in range(SIMULATED_PHASES):
            order = permutation(rows, source)
            coin = _shares(shards, source) < 0.5
            kinds, lows, highs = gaps(column[order], signed[order], starts, above=True, below=False)
            cuts = np.where(coin, lows + 1e-12, highs)
            cuts = np.where(kinds == EVERYTHING, np.where(coin, -1.0, lows), cuts)
            cuts = np.sort(np.where(kinds == NOTHING, np.where(coin, 2.0, highs + 1e-12), cuts))
            splits.append(float(np.clip(np.median(cuts), 0.0, 1.0)))
            column = _shares(rows, source)
            votes = np.searchsorted(cuts, column, side="right")
            noisy = np.rint(votes + noise * shards * ndtri(_shares(rows, source))).astype(np.int64)
            signed = 2 * np.clip(noisy, 0, shards) - shards
        moves += np.diff(splits).tolist()
    return float(np.sqrt(np.mean(np.square(moves))) * math.sqrt(rows / n_rows))


def _shares(count: int, source: SeededSource) -> Floats:
    """Return numbers between 0 and 1, evenly spread."""
    return np.asarray((source.words(count) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


@remembered(256)
def _rough_scale(epsilon: float, delta: float, releases: int) -> float:
    """Return about the scale of the noise; what is promised is computed elsewhere, exactly."""
    return calibrate_gaussian(epsilon, delta, releases, tolerance=1e-3)
