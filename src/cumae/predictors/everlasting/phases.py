"""Phases of everlasting prediction: an ensemble, the releases it may make, and its successor."""

from __future__ import annotations

import functools
import math
import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

import numpy as np

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data.rows import RowSource
from cumae.ensembles.blocks import block_rows
from cumae.ensembles.ensemble import Ensemble
from cumae.ensembles.split import Split, shard_seeds
from cumae.ensembles.trainer import train_shards
from cumae.mechanisms import GaussianNoise, NoisyMajority
from cumae.predictors.everlasting.margins import MarginTrainer
from cumae.randomness import Source


@dataclass(frozen=True)
class Settings:
    """What all phases have in common: public numbers and the model, no rows."""

    trainer: MarginTrainer
    stand_in: Any  # a made-up row in the form in which models get rows
    epsilon: float
    delta: float
    size: int
    growth: float
    n_jobs: int | None = None
    progress: bool | None = None
    rho: float | None = None  # what the first phase costs, and so the most that others may

    def shards(self, n_rows: int) -> int:
        """Return the number of shards for so many rows."""
        return max(1, n_rows // self.size)

    def releases(self, n_rows: int) -> int:
        """Return how many noisy votes a phase with so many rows releases."""
        return math.ceil(self.growth * n_rows)

    @claim("EVER")
    def majority(self, n_rows: int, source: Source, more: int = 0) -> NoisyMajority:
        """Return the noise of a phase: all its releases, and some more, cost (epsilon, delta)."""
        releases, n_classes = self.releases(n_rows) + more, self.trainer.n_classes
        scale = _scale(self.epsilon, self.delta, releases, n_classes)
        if self.rho is not None:  # the same in all phases, and not above it by rounding
            scale = max(scale, math.sqrt(_moves(n_classes) * releases / (2 * self.rho)))
            while rho_of(self._votes(scale, releases, source)) > self.rho:
                scale = math.nextafter(scale, math.inf)
        return self._votes(scale, releases, source)

    def _votes(self, scale: float, releases: int, source: Source) -> NoisyMajority:
        n_classes = self.trainer.n_classes
        noise = GaussianNoise(scale, moves=_moves(n_classes), random_state=source)
        return NoisyMajority(noise, n_classes, releases)


def rho_of(majority: NoisyMajority) -> float:
    """Return the zCDP form of what all releases cost."""
    rho, _ = majority.cost.zcdp or (math.inf, 0.0)
    return rho


def _moves(n_classes: int) -> int:
    """Return by how much one vote moves the counts: two classes have a single count."""
    return 1 if n_classes == 2 else 2


@functools.lru_cache(maxsize=256)
def _scale(epsilon: float, delta: float, releases: int, n_classes: int) -> float:
    # Phases of the same size have the same noise, and finding it takes longer than answering.
    noise = NoisyMajority.calibrated(epsilon, delta, releases, n_classes).noise
    return noise.scale if isinstance(noise, GaussianNoise) else math.inf


@claim("MEMO")
def row_keys(table: Any) -> list[bytes]:
    """Return a key for each row; rows have the same one only if they are identical.

    Equal cells are not enough: 0.0 equals -0.0 and 1 equals True, and models may tell them apart.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.predictors.everlasting.phases import row_keys
    >>> first, second, third = row_keys(np.array([[0.0], [-0.0], [0.0]]))
    >>> first == second, first == third
    (False, True)
    """
    if hasattr(table, "iloc"):
        # What is written out tells types apart, and every bit of a float.
        return [repr(row.tolist()).encode() for row in table.to_numpy(dtype=object)]
    return [row.tobytes() for row in table]


@claim("EVER", "MEMO")
@dataclass
class Phase:
    """One ensemble and the releases it may make; the rows it was trained on are gone."""

    number: int
    n_rows: int
    ensemble: Ensemble
    majority: NoisyMajority
    memo: dict[bytes, Integers] = field(default_factory=dict)

    @property
    def left(self) -> int:
        """Releases left."""
        return self.majority.remaining

    def numbers(self, count: int) -> Integers:
        """Return the running numbers of the next queries of the phase."""
        return self.majority.asked + np.arange(count)

    def release(self, table: Any) -> Integers:
        """Return noisy votes; a query's running number within the phase decides its place."""
        return self.majority.release(self.ensemble.votes(table, self.numbers(len(table))))

    def numbers_by_cells(self, table: Any) -> Integers:
        """Return numbers that a query's own cells decide, so that equal queries have equal votes.

        The place in a block follows from a checksum of the cells. Queries of one batch have the
        same number if, and only if, they are identical.
        """
        places = block_rows(table.shape[1]) - 1
        known: dict[bytes, int] = {}
        at_place: Counter[int] = Counter()
        for key in row_keys(table):
            if key not in known:
                place = crc32(key) % places
                known[key] = place + places * at_place[place]
                at_place[place] += 1
        return np.array([known[key] for key in row_keys(table)], dtype=np.int64)

    def release_once(self, table: Any) -> Integers:
        """Return noisy votes that equal queries of the phase share: those of the first of them.

        Hit or miss, the work is the same.
        """
        keys = row_keys(table)
        fresh = self.majority.release(self.ensemble.votes(table, self.numbers_by_cells(table)))
        found = [self.memo.setdefault(key, own) for key, own in zip(keys, fresh, strict=True)]
        return np.array(found).reshape(fresh.shape)

    @property
    def noise(self) -> float:
        """Standard deviation of the noise as a share of the votes."""
        noise = self.majority.noise
        scale = noise.scale if isinstance(noise, GaussianNoise) else math.inf
        return scale / self.ensemble.n_shards


@claim("EVER")
class NextPhase:
    """The training of a phase, at once or in the background.

    The split and the seeds are drawn when it is made, from counts alone. Training may be repeated
    if it was broken off: it uses the same rows, split and seeds.

    Parameters
    ----------
    settings
        What all phases have in common.
    number
        Of the phase.
    rows, weights, unit
        The rows with their whole weights, of ``unit`` votes at most.
    source
        Where random bits come from.
    """

    def __init__(
        self,
        settings: Settings,
        number: int,
        rows: RowSource,
        weights: Integers,
        unit: int,
        source: Source,
    ) -> None:
        self.settings, self.number = settings, number
        self._rows: tuple[RowSource, Integers] | None = (rows, weights)
        self.n_rows = rows.n_rows
        self._trainer = replace(settings.trainer, unit=unit)
        self._split = Split.draw(rows.n_rows, settings.shards(rows.n_rows), source)
        self._seeds = shard_seeds(self._split.n_shards, source)
        self._source = source
        self._ensemble: Ensemble | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Train in a thread of its own."""
        self._thread = threading.Thread(target=self._train, daemon=True)
        self._thread.start()

    def _train(self) -> None:
        if self._rows is None:
            return
        rows, weights = self._rows
        models = train_shards(
            rows,
            weights,
            self._split,
            self._trainer,
            self._seeds,
            n_jobs=self.settings.n_jobs,
            progress=self.settings.progress,
        )
        self._ensemble = Ensemble(models, self._trainer.n_classes, self.settings.stand_in)
        self._rows = None  # rows are used once

    def finish(self, more: int = 0) -> Phase:
        """Return the phase, with so many more releases; whoever asks waits for it."""
        if self._thread is not None:
            self._thread.join()
        self._train()  # at once, or again if the thread was broken off
        if self._ensemble is None:
            raise AssertionError("a phase was finished twice")
        ensemble, self._ensemble = self._ensemble, None
        majority = self.settings.majority(self.n_rows, self._source, more)
        return Phase(self.number, self.n_rows, ensemble, majority)
