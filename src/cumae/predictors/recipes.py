"""The recipes of an ensemble's models, and the storage of ensembles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.concepts import BitClass, ConceptClass, FiniteClass, Hypothesis
from cumae.data import RowSource, row_source
from cumae.ensembles.ensemble import Ensemble
from cumae.ensembles.split import Split, shard_seeds
from cumae.ensembles.trainer import Trainer, train_shards
from cumae.ensembles.voters.slots import SlotForm, slot_form
from cumae.errors import InvalidParameter
from cumae.predictors.records import TEXT_BYTES, row_bytes, rows_from_facts, rows_to_facts
from cumae.randomness import Source


@claim("EVER", "BBL", "QUERY")
@dataclass(frozen=True, repr=False)  # a message must not show rows
class Recipe:
    """All that the models of an ensemble are made from; the same recipe gives the same models.

    Parameters
    ----------
    rows : RowSource
        The rows.
    weights : array of int, one entry or one row for each of them
        Labels, or whole weights of the classes.
    split : Split
        Which rows belong to which shard.
    seeds : array of int
        One for each shard.
    full_weight : int
        What a row weighs whose label is certain, which is the most; 1 for labels.
    text_bytes : int
        Bytes of a cell of text, where rows are a data frame.
    """

    rows: RowSource
    weights: Integers
    split: Split
    seeds: Integers
    full_weight: int = 1
    text_bytes: int = TEXT_BYTES

    @classmethod
    def draw(
        cls,
        rows: RowSource,
        weights: Integers,
        n_shards: int,
        source: Source,
        text_bytes: int = TEXT_BYTES,
    ) -> Self:
        """Draw the split and the seeds, from counts alone."""
        split = Split.draw(rows.n_rows, n_shards, source)
        seeds = shard_seeds(n_shards, source)
        return cls(rows, weights, split, seeds, text_bytes=text_bytes)

    @claim("STORE")
    def slots_for(self, trainer: Trainer) -> SlotForm | None:
        """Return the form of slots in which the models are stored; None to store the recipe.

        Slots are taken where their size is known beforehand and is not above that of the recipe.
        That follows from the declared estimator, from counts and from types of columns.
        """
        rows, n_shards = self.rows, self.split.n_shards
        largest = -(-rows.n_rows // n_shards)
        form = slot_form(trainer.model, trainer.n_classes, rows.n_features, largest)
        if form is None:
            return None
        others = self.weights.nbytes + self.split.order.nbytes + self.seeds.nbytes
        recipe = rows.n_rows * row_bytes(rows, self.text_bytes) + others
        return form if n_shards * form.slot_bytes <= recipe else None

    def train(
        self, trainer: Trainer, stand_in: Any, n_jobs: int | None, progress: bool | None
    ) -> Ensemble:
        """Train the models.

        Parameters
        ----------
        trainer : Trainer
            What trains one shard.
        stand_in : array or DataFrame of one row
            A made-up row in the form in which queries come.
        n_jobs : int, or None
            Number of processes, as in joblib.
        progress : bool, or None
            Whether to show a progress bar; None shows it on a terminal.
        """
        asked = (self.rows, self.weights, self.split, trainer, self.seeds)
        models = train_shards(*asked, n_jobs=n_jobs, progress=progress)
        return Ensemble(models, trainer.n_classes, stand_in, self.slots_for(trainer))

    @claim("STORE")
    def kept_for(self, ensemble: Ensemble) -> Self | None:
        """Return what must be kept to store the ensemble that was trained: None if it has slots.

        Otherwise it is the recipe with copies of its rows alone, without the table they came from.
        """
        return None if ensemble.form is not None else self.from_facts(self.to_facts())

    @claim("STORE")
    def to_facts(self) -> dict[str, Any]:
        """Return it for storing; its size follows from counts and from types of columns."""
        rows = self.rows.take(np.arange(self.rows.n_rows))
        return {
            **rows_to_facts(rows, self.text_bytes),
            "weights": self.weights,
            "full_weight": self.full_weight,
            "order": self.split.order,
            "seeds": self.seeds,
            "text_bytes": self.text_bytes,
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Self:
        """Rebuild what ``to_facts`` returned."""
        rows, order, seeds = row_source(rows_from_facts(facts)), facts["order"], facts["seeds"]
        weights = facts["weights"]
        if not rows.n_rows == len(order) == len(weights) or not len(seeds):
            raise InvalidParameter(
                "a stored recipe has rows, weights and places that do not match."
            )
        split, text_bytes = Split(order, len(seeds)), facts["text_bytes"]
        return cls(rows, weights, split, seeds, facts["full_weight"], text_bytes)


def models_to_facts(ensemble: Ensemble, recipe: Recipe | None) -> dict[str, Any]:
    """Return an ensemble for storing: its slots, or the recipe if it has none."""
    return {
        "ensemble": ensemble.to_facts() if recipe is None else None,
        "recipe": None if recipe is None else recipe.to_facts(),
    }


def models_from_facts(
    facts: dict[str, Any], train: Callable[[Recipe], Ensemble]
) -> tuple[Ensemble, Recipe | None]:
    """Rebuild what ``models_to_facts`` was given; ``train`` makes an ensemble of a recipe."""
    if facts["recipe"] is None:
        return Ensemble.from_facts(facts["ensemble"]), None
    recipe = Recipe.from_facts(facts["recipe"])
    return train(recipe), recipe


@claim("BBL", "QUERY")
def check_own(concept: ConceptClass | None) -> None:
    """Refuse hypotheses that may refuse a private row: others of cumae label any finite one."""
    if isinstance(concept, BitClass):
        raise InvalidParameter(
            f"concept_class={concept!r} takes columns of 0 and 1 only, and would refuse a private "
            "row with another number, which could be seen; take PrivateLearner, or Stumps or Trees."
        )
    if isinstance(concept, FiniteClass):
        for hypothesis in concept.hypotheses:
            if not isinstance(hypothesis, Hypothesis):
                raise InvalidParameter(
                    f"concept_class has a {type(hypothesis).__name__}, which may fail on a private "
                    "row, and that could be seen; give hypotheses of cumae.concepts."
                )
