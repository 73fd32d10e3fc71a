"""Phases of everlasting prediction: an ensemble, the releases it may make, and its successor."""

from __future__ import annotations

import functools
import math
import threading
from dataclasses import dataclass, field, replace
from typing import Any

from cumae.claims import claim
from cumae.mechanisms import GaussianNoise, NoisyMajority
from cumae.predictors.margins import MarginTrainer
from cumae.predictors.rows import Integers, RowSource
from cumae.predictors.shards import Ensemble, Split, shard_seeds, train_shards
from cumae.randomness import Source


@dataclass(frozen=True)
class Settings:
    """What all phases have in common: public numbers and the model, no rows."""

    trainer: MarginTrainer
    epsilon: float
    delta: float
    size: int
    growth: float
    n_jobs: int | None = None
    progress: bool | None = None
    unit_scale: float | None = None  # the first phase's noise for a single release

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
        if self.unit_scale is not None:  # the same rho in all phases
            scale = max(scale, self.unit_scale * math.sqrt(releases))
        moves = 1 if n_classes == 2 else 2
        noise = GaussianNoise(scale, moves=moves, random_state=source)
        return NoisyMajority(noise, n_classes, releases)


@functools.lru_cache(maxsize=256)
def _scale(epsilon: float, delta: float, releases: int, n_classes: int) -> float:
    # Phases of the same size have the same noise, and finding it takes longer than answering.
    noise = NoisyMajority.calibrated(epsilon, delta, releases, n_classes).noise
    return noise.scale if isinstance(noise, GaussianNoise) else math.inf


@claim("EVER")
@dataclass
class Phase:
    """One ensemble and the releases it may make; the rows it was trained on are gone."""

    number: int
    n_rows: int
    ensemble: Ensemble
    majority: NoisyMajority
    memo: dict[Any, Integers] = field(default_factory=dict)

    @property
    def left(self) -> int:
        """Releases left."""
        return self.majority.remaining

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
        self._ensemble = Ensemble(models, self._trainer.n_classes)
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
