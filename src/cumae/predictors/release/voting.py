"""Shards that vote, the mechanism that turns their votes into answers, and what is left of it."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data import Columns
from cumae.ensembles.ensemble import Ensemble
from cumae.ensembles.trainer import Trainer
from cumae.mechanisms import NoisyMajority
from cumae.mechanisms.base import Ahead
from cumae.mechanisms.stability import UNSTABLE
from cumae.predictors.joining import warn_later
from cumae.predictors.recipes import Recipe, models_from_facts, models_to_facts
from cumae.predictors.release.answers import Answers, answers_from_facts
from cumae.predictors.stateful import Fitted
from cumae.randomness import Source, integers


@claim("QUERY")
class Voting:
    """The models of a release and the mechanism that answers by their votes.

    Parameters
    ----------
    ensemble : Ensemble
        The models of all shards, which stay private.
    answers : Answers
        The mechanism, which was started and paid for.
    source : Source
        Where random bits come from.
    recipe : Recipe, or None
        What the models were made from, if they have no array form: a restored predictor makes them
        again. None if they have one; the rows are gone then.
    columns : Columns, or None
        How the rows of the recipe are encoded; None if they are taken as they are.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        answers: Answers,
        source: Source,
        recipe: Recipe | None = None,
        columns: Columns | None = None,
    ) -> None:
        self.ensemble, self.answers = ensemble, answers
        self.recipe, self.columns = recipe, columns
        own = source.child()  # how many labels are guessed changes no other coin
        self._guesses = Ahead(lambda count: integers(ensemble.n_classes, count, own))

    @property
    def remaining(self) -> int:
        """Answers left; 0 also when no unclear answer is left."""
        return self.answers.remaining

    @property
    def shows_counts(self) -> bool:
        """Whether the mechanism releases noisy vote counts, and not labels alone."""
        return isinstance(self.answers, NoisyMajority)

    def ask(self, table: Any) -> Integers:
        """Answer queries in order: places in the classes, or -1 where no class is clear.

        When nothing remains, the rest of the batch is not looked at: it counts as unclear, with a
        warning.
        """
        labels = np.full(len(table), UNSTABLE, dtype=np.int64)
        looked_at = min(len(table), self.remaining)
        if looked_at:
            found = self.answers.ask(self._votes(table[:looked_at]))
            looked_at = len(found)
            labels[:looked_at] = found
        if looked_at < len(table):
            warn_later(
                f"the last {len(table) - looked_at} queries of this batch were not looked at, "
                "because no unclear answer is left; declare a larger alpha or max_unstable.",
            )
        return labels

    def counts(self, table: Any) -> Integers:
        """Return noisy vote counts if ``shows_counts``, one column per class; they are spent."""
        if not isinstance(self.answers, NoisyMajority):
            raise AssertionError("this mechanism releases labels only")
        return self.answers.release(self._votes(table))

    def guessed(self, labels: Integers) -> Integers:
        """Return the labels with a random class where there was no clear one."""
        unclear = np.flatnonzero(labels == UNSTABLE)
        guessed = labels.copy()
        guessed[unclear] = self._guesses.take(len(unclear))
        return guessed

    def _votes(self, table: Any) -> Integers:
        """Count votes; the running number of a query decides where it stands in what models get."""
        return self.ensemble.votes(table, self.answers.asked + np.arange(len(table)))

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing; what was drawn ahead is thrown away."""
        self._guesses.drop()
        models = models_to_facts(self.ensemble, self.recipe)
        return {**models, "columns": self.columns, "answers": self.answers.to_facts()}

    @classmethod
    def from_facts(cls, facts: dict[str, Any], fitted: Fitted) -> Self:
        """Rebuild what ``to_facts`` returned; train again where models have no array form."""
        columns, given = facts["columns"], fitted.parameters
        trainer = Trainer(fitted.model, fitted.n_classes, columns)
        asked = (trainer, fitted.reader.stand_in, given["n_jobs"], given["progress"])
        ensemble, recipe = models_from_facts(facts, lambda recipe: recipe.train(*asked))
        answers = answers_from_facts(facts["answers"], fitted.source)
        return cls(ensemble, answers, fitted.source, recipe, columns)
