"""One phase of GenericBBL: models that vote, and what is kept for the next one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.concepts.candidates.grid import GridRules
from cumae.data import ArrayRows
from cumae.ensembles.ensemble import Ensemble
from cumae.ensembles.isolation import strictly
from cumae.ensembles.trainer import Trainer
from cumae.errors import InvalidParameter
from cumae.mechanisms import Between, GaussianNoise, Majority, rule_from_facts
from cumae.predictors.bbl.rules import BBLRules, PhaseSizes
from cumae.predictors.recipes import Recipe, models_from_facts, models_to_facts
from cumae.randomness import Source, sample

Votes = Majority | Between
TrainBest = Callable[[Recipe], Ensemble]


@claim("BBL")
def train_best(
    recipe: Recipe, rules: BBLRules, n_jobs: int | None, progress: bool | None
) -> Ensemble:
    """Train the exact best hypothesis of each shard.

    Parameters
    ----------
    recipe : Recipe
        Rows and labels, their split, and seeds.
    rules : BBLRules
        They know the concept class.
    n_jobs : int, or None
        Number of processes, as in joblib.
    progress : bool, or None
        Whether to show a progress bar; None shows it on a terminal.
    """
    stand_in = np.zeros((1, recipe.rows.n_features))  # a hypothesis labels any finite row
    return recipe.train(BestTrainer(rules.given.concept, 2), stand_in, n_jobs, progress)


@claim("BBL")
def votes_of(rules: BBLRules, sizes: PhaseSizes) -> Votes:
    """Return the mechanism that answers in a phase, at the cost that the rules state."""
    if rules.given.votes == "between":
        pair = rules.first_pair if sizes.number == 1 else rules.pair
        counts = (sizes.between, sizes.answers)
        return Between.calibrated(sizes.shards, pair.eps, pair.failure, *counts)
    return Majority(GaussianNoise(sizes.scale), 2, sizes.answers)


def noise_share(votes: Votes, sizes: PhaseSizes, n_shards: int) -> float:
    """Return the noise as a share of so many votes; with "between", half of the gap."""
    if isinstance(votes, Between):
        return (votes.upper - votes.lower) / 2 / n_shards
    return sizes.scale / n_shards


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
@dataclass(repr=False)  # a message must not show rows
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

    @claim("BBL", "STORE")
    def among(self, start: int, table: Floats) -> Floats:
        """Return some queries, with zeros instead of each that is not kept.

        So as much is stored of a query that was not drawn as of one that was, and none of its
        cells. The first of these queries has the place ``start``.
        """
        found = np.zeros_like(table)
        drawn = self._drawn(start, len(table)) - start
        found[drawn] = table[drawn]
        return found

    def put(self, at: int, rows: Floats, weights: None) -> None:  # noqa: ARG002 - they have none
        """Store those queries that are kept; the first of all queries has the place ``at``."""
        drawn = self._drawn(at, len(rows))
        self.rows[np.searchsorted(self.places, drawn)] = rows[drawn - at]

    def _drawn(self, start: int, count: int) -> Integers:
        """Return the places among some queries that were drawn."""
        first, last = np.searchsorted(self.places, [start, start + count])
        return self.places[first:last]

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing; rows are copied, because they change in place."""
        return {"places": self.places, "rows": self.rows.copy()}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Kept:
        """Rebuild what ``to_facts`` returned."""
        if len(facts["places"]) != len(facts["rows"]):
            raise InvalidParameter("stored rows and their places do not match.")
        return cls(facts["places"], facts["rows"].copy())


@claim("BBL")
@dataclass(repr=False)  # a message must not show rows
class RunningPhase:
    """The contents of a running phase; of its rows only those that will be scored are left."""

    sizes: PhaseSizes
    ensemble: Ensemble
    votes: Votes
    scored: tuple[Floats, Integers] | None
    kept: Kept
    recipe: Recipe | None = None  # what the models were made from, if they have no slots

    @property
    def number(self) -> int:
        """Number of the phase, from 1."""
        return self.sizes.number

    @property
    def noise(self) -> float:
        """Scale of the noise as a share of the votes; with "between", half of the gap."""
        return noise_share(self.votes, self.sizes, self.ensemble.n_shards)

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing."""
        return {
            "sizes": asdict(self.sizes),
            **models_to_facts(self.ensemble, self.recipe),
            "votes": self.votes.to_facts(),
            "scored": None if self.scored is None else list(self.scored),
            "kept": self.kept.to_facts(),
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any], train: TrainBest) -> RunningPhase:
        """Rebuild what ``to_facts`` returned; train again where models have no slots."""
        scored, votes = facts["scored"], rule_from_facts(facts["votes"])
        if not isinstance(votes, Majority | Between):
            raise TypeError("no mechanism of this predictor")  # from_arrays says that it is broken
        ensemble, recipe = models_from_facts(facts, train)
        return cls(
            PhaseSizes(**facts["sizes"]),
            ensemble,
            votes,
            None if scored is None else (scored[0], scored[1]),
            Kept.from_facts(facts["kept"]),
            recipe,
        )


@claim("BBL")
@dataclass(repr=False)  # a message must not show rows
class LabelledPhase:
    """Labelled rows of a phase that is about to be trained; all coins are drawn already.

    Training may be repeated if it was broken off.
    """

    sizes: PhaseSizes
    recipe: Recipe
    places: Integers  # of rows that will be scored

    @classmethod
    def draw(
        cls, sizes: PhaseSizes, table: Floats, labels: Integers, source: Source
    ) -> LabelledPhase:
        """Draw the split, the seeds and the rows to score, from counts alone."""
        recipe = Recipe.draw(ArrayRows(table), labels, sizes.shards, source)
        return cls(sizes, recipe, sample(len(table), sizes.labels, source))

    def train(self, rules: BBLRules, train: TrainBest, source: Source) -> RunningPhase:
        """Train the exact best hypothesis of each shard.

        Parameters
        ----------
        rules : BBLRules
            All public numbers.
        train : callable
            Makes an ensemble of a recipe.
        source : Source
            Where random bits come from.
        """
        ensemble = train(self.recipe)
        rows = self.recipe.rows
        kept = Kept.draw(self.sizes, rows.n_features, source)
        votes = votes_of(rules, self.sizes)
        scored = (np.asarray(rows.take(self.places)), self.recipe.weights[self.places])
        recipe = self.recipe.kept_for(ensemble)
        return RunningPhase(self.sizes, ensemble, votes, scored, kept, recipe)

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing: training will be repeated."""
        recipe = self.recipe.to_facts()
        return {"sizes": asdict(self.sizes), "recipe": recipe, "places": self.places}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> LabelledPhase:
        """Rebuild what ``to_facts`` returned."""
        recipe = Recipe.from_facts(facts["recipe"])
        return cls(PhaseSizes(**facts["sizes"]), recipe, facts["places"])


@claim("BBL")
def boost_labels(
    concept: ConceptClass | GridRules,
    scored: tuple[Floats, Integers],
    rows: Floats,
    epsilon: float,
    source: Source,
) -> Integers:
    """Label rows by a hypothesis that is drawn privately.

    The candidates are all ways in which the class can label the scored rows and the new ones, or
    those of a grid. They are scored by how many labels of the scored rows they get right.

    Parameters
    ----------
    concept : ConceptClass or GridRules
        What is drawn from.
    scored : tuple of a table and an array of int
        Rows of the old phase that were sampled, and their labels.
    rows : array of float
        Rows of the next phase, which get labels.
    epsilon : float
        Parameter of the draw.
    source : Source
        Where random bits come from.
    """
    points, labels = scored
    drawn = concept.choose(
        np.concatenate([points, rows]), points, labels, epsilon, random_state=source
    )
    return np.asarray(drawn.predict(rows), dtype=np.int64)
