"""One phase of GenericBBL: models that vote, and what is kept for the next one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.data import ArrayRows
from cumae.ensembles.ensemble import Ensemble
from cumae.ensembles.isolation import strictly
from cumae.ensembles.split import Split, shard_seeds
from cumae.ensembles.trainer import Trainer, train_shards
from cumae.mechanisms import BetweenThresholds, GaussianNoise, NoisyMajority
from cumae.mechanisms.between_thresholds import Side
from cumae.predictors.bbl.rules import PhaseSizes, Rules
from cumae.randomness import Source, sample

Votes = NoisyMajority | BetweenThresholds


@claim("BBL")
def start_votes(rules: Rules, sizes: PhaseSizes, source: Source) -> Votes:
    """Return what answers the queries of a phase, at the cost that the rules state."""
    if rules.given.votes == "between":
        pair = rules.first_pair if sizes.number == 1 else rules.pair
        return BetweenThresholds.calibrated(
            sizes.shards, pair.eps, pair.failure, sizes.between, random_state=source
        )
    noise = GaussianNoise(sizes.scale, random_state=source)
    return NoisyMajority(noise, 2, sizes.answers)


@claim("BBL")
@dataclass(frozen=True)
class BestTrainer(Trainer):
    """Trains the exact best hypothesis of a concept class, also where a shard lacks a class.

    Step 3b of the paper. Which best one is the class's own rule.
    """

    def train_or_raise(self, rows: Any, labels: Integers, seed: int) -> Any:
        with strictly(seed):
            return self.model.erm(np.asarray(rows, dtype=np.float64), labels)


@claim("BBL")
@dataclass
class Kept:
    """Queries that become rows of the next phase; which of a phase's places was drawn beforehand.

    A query in any other place leaves no trace.
    """

    places: Integers  # sorted
    rows: Floats

    @classmethod
    def draw(cls, sizes: PhaseSizes, width: int, source: Source) -> Kept:
        """Draw the places: as many as the next phase has rows."""
        places = np.sort(sample(sizes.answers, sizes.following, source))
        return cls(places, np.zeros((sizes.following, width)))

    def keep(self, start: int, table: Floats) -> None:
        """Store those of some queries in a row, the first of which has the place ``start``."""
        first, last = np.searchsorted(self.places, [start, start + len(table)])
        self.rows[first:last] = table[self.places[first:last] - start]


@claim("BBL")
@dataclass
class RunningPhase:
    """What there is during a phase; of its rows only those that will be scored are left."""

    sizes: PhaseSizes
    ensemble: Ensemble
    votes: Votes
    scored: tuple[Floats, Integers] | None
    kept: Kept
    asked: int = 0

    @property
    def left(self) -> int:
        """Answers left in the phase."""
        return self.sizes.answers - self.asked

    @property
    def halted(self) -> bool:
        """Whether the last "between" answer was given."""
        return isinstance(self.votes, BetweenThresholds) and self.votes.remaining == 0

    @property
    def noise(self) -> float:
        """Scale of the noise as a share of the votes; with "between", half of the gap."""
        if isinstance(self.votes, BetweenThresholds):
            return (self.votes.upper - self.votes.lower) / 2 / self.ensemble.n_shards
        return self.sizes.scale / self.ensemble.n_shards

    def answer(self, table: Floats) -> Integers:
        """Answer queries; fewer than asked if it halts."""
        counts = self.ensemble.votes(table, self.asked + np.arange(len(table)))
        if isinstance(self.votes, NoisyMajority):
            self.asked += len(table)  # before anything is drawn
            return self.votes.ask(counts)
        before, self.asked = self.asked, self.asked + len(table)
        sides = self.votes.ask(counts[:, 1])
        self.asked = before + len(sides)
        return np.asarray(sides != Side.LOW, dtype=np.int64)


@claim("BBL")
@dataclass
class Labelled:
    """Labelled rows of a phase that is about to be trained; all coins are drawn already.

    Training may be repeated if it was broken off.
    """

    sizes: PhaseSizes
    table: Floats
    labels: Integers
    split: Split
    seeds: Integers
    places: Integers  # of rows that will be scored

    @classmethod
    def draw(cls, sizes: PhaseSizes, table: Floats, labels: Integers, source: Source) -> Labelled:
        """Draw the split, the seeds and the rows to score, from counts alone."""
        split = Split.draw(len(table), sizes.shards, source)
        seeds = shard_seeds(sizes.shards, source)
        return cls(sizes, table, labels, split, seeds, sample(len(table), sizes.labels, source))

    def train(
        self, rules: Rules, source: Source, *, n_jobs: int | None, progress: bool | None
    ) -> RunningPhase:
        """Train the exact best hypothesis of each shard."""
        models = train_shards(
            ArrayRows(self.table),
            self.labels,
            self.split,
            BestTrainer(rules.given.concept, 2),
            self.seeds,
            n_jobs=n_jobs,
            progress=progress,
        )
        kept = Kept.draw(self.sizes, self.table.shape[1], source)
        votes = start_votes(rules, self.sizes, source)
        scored = (self.table[self.places], self.labels[self.places])
        # A hypothesis labels any finite row.
        ensemble = Ensemble(models, 2, np.zeros((1, self.table.shape[1])))
        return RunningPhase(self.sizes, ensemble, votes, scored, kept)


@claim("BBL")
def boost_labels(
    concept: ConceptClass,
    scored: tuple[Floats, Integers],
    rows: Floats,
    epsilon: float,
    source: Source,
) -> Integers:
    """Label rows by a hypothesis drawn among all dichotomies of both; scored on the labelled."""
    points, labels = scored
    drawn = concept.choose(
        np.concatenate([points, rows]), points, labels, epsilon, random_state=source
    )
    return np.asarray(drawn.predict(rows), dtype=np.int64)
