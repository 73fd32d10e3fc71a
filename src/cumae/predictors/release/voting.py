"""Shards that vote, and the mechanism that turns their votes into answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data import Columns
from cumae.ensembles.ensemble import Ensemble
from cumae.ensembles.trainer import Trainer
from cumae.mechanisms import UNCLEAR, Coins, Majority, Spent, VoteRule, rule_from_facts
from cumae.mechanisms.base import Draw
from cumae.predictors.recipes import Recipe, models_from_facts, models_to_facts
from cumae.predictors.stateful import Fitted
from cumae.randomness import Source, integers


class Answers(NamedTuple):
    """Answers of an ensemble.

    Parameters
    ----------
    labels : array of int
        Places in the classes, or -1 where no class is clear.
    spent : Spent
        Counters of the mechanism afterwards.
    warning : str
        What to warn of; it tells what was drawn.
    """

    labels: Integers
    spent: Spent
    warning: str = ""


@claim("QUERY")
@dataclass(frozen=True, repr=False)  # a message must not show what it holds
class Voting:
    """The models of a release and the mechanism that answers by their votes.

    Parameters
    ----------
    ensemble : Ensemble
        The models of all shards, which stay private.
    rule : VoteRule
        The mechanism, which was paid for.
    recipe : Recipe, or None
        What the models were made from, if they have no slots; a restored predictor trains them
        again. None if they have slots: the rows are gone then.
    columns : Columns, or None
        How the rows of the recipe are encoded; None if they are taken as they are.
    """

    ensemble: Ensemble
    rule: VoteRule
    recipe: Recipe | None = None
    columns: Columns | None = None

    @property
    def shows_counts(self) -> bool:
        """True if the mechanism releases noisy vote counts, and not labels alone."""
        return isinstance(self.rule, Majority)

    def ask(self, table: Any, spent: Spent, coins: Coins) -> Answers:
        """Answer queries in order.

        When nothing remains, the rest of the batch is not looked at: it counts as unclear, with a
        warning.
        """
        self._guesses(0, coins)
        labels = np.full(len(table), UNCLEAR, dtype=np.int64)
        looked_at, after = min(len(table), self.rule.left(spent)), spent
        if looked_at:
            votes = self._votes(table[:looked_at], spent)
            found, after = self.rule.ask(votes, spent, coins)
            looked_at = len(found)
            labels[:looked_at] = found
        if looked_at == len(table):
            return Answers(labels, after)
        return Answers(
            labels,
            after,
            f"the last {len(table) - looked_at} queries of this batch were not looked at, "
            "because no unclear answer is left; declare a larger alpha or max_unstable.",
        )

    def counts(self, table: Any, spent: Spent, coins: Coins) -> Integers:
        """Return noisy vote counts if ``shows_counts``, one column per class."""
        if not isinstance(self.rule, Majority):
            raise AssertionError("this mechanism releases labels only")
        self._guesses(0, coins)
        return self.rule.release(self._votes(table, spent), coins)

    def guessed(self, labels: Integers, coins: Coins) -> Integers:
        """Return the labels with a random class where there was no clear one."""
        unclear = np.flatnonzero(labels == UNCLEAR)
        guessed = labels.copy()
        guessed[unclear] = self._guesses(len(unclear), coins)
        return guessed

    def _guesses(self, count: int, coins: Coins) -> Integers:
        """Draw classes. Their coins are set apart by the first call, before anything is drawn.

        Else it would depend on the first batch which coins are left to the votes.
        """
        return coins.take("guesses", self, self._guesser, count)

    def _guesser(self, source: Source) -> Draw:
        own = source.child()  # how many labels are guessed changes no other coin
        return lambda count: integers(self.ensemble.n_classes, count, own)

    def _votes(self, table: Any, spent: Spent) -> Integers:
        """Count votes; the running number of a query decides where it stands in what models get."""
        return self.ensemble.votes(table, spent.asked + np.arange(len(table)))

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing."""
        models = models_to_facts(self.ensemble, self.recipe)
        return {**models, "columns": self.columns, "rule": self.rule.to_facts()}

    @classmethod
    def from_facts(cls, facts: dict[str, Any], fitted: Fitted) -> Self:
        """Rebuild what ``to_facts`` returned; train again where models have no slots."""
        columns, given = facts["columns"], fitted.parameters
        trainer = Trainer(fitted.shard_model, fitted.n_classes, columns)
        asked = (trainer, fitted.reader.stand_in, given["n_jobs"], given["progress"])
        ensemble, recipe = models_from_facts(facts, lambda recipe: recipe.train(*asked))
        return cls(ensemble, rule_from_facts(facts["rule"]), recipe, columns)


@claim("UNV")
def all_counted(found: Answers, before: Spent) -> Answers:
    """Return answers with all queries counted, also those that were not looked at."""
    spent = found.spent._replace(asked=before.asked + len(found.labels))
    return found._replace(spent=spent)
