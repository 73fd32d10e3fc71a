"""Margins: labels with their confidence, as whole weights that shards can train on."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass, Thresholds
from cumae.data import RowSource, as_numbers, read_table
from cumae.ensembles.growing.representatives import Limits, many_thresholds, represent
from cumae.ensembles.growing.ridges import can_solve, many_ridges
from cumae.ensembles.growing.trees import grown
from cumae.ensembles.isolation import strictly
from cumae.ensembles.trainer import Trainer, seeded, train_one_by_one
from cumae.ensembles.trial import made_up_labels, made_up_rows
from cumae.estimators import own_clone
from cumae.randomness import SeededSource, integers


def weights_of_labels(labels: Integers, n_classes: int) -> Integers:
    """Return weight 1 for a row's own class; nothing at all for rows without a label.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.predictors.everlasting.margins import weights_of_labels
    >>> weights_of_labels(np.array([1, 0, -1]), 2).tolist()
    [[0, 1], [1, 0], [0, 0]]
    """
    return np.asarray(labels[:, None] == np.arange(n_classes), dtype=np.int64)


def weights_of_votes(noisy: Integers, n_shards: int) -> Integers:
    """Return by how much each class leads the weakest one, counts cut to what votes can be.

    With two classes that is one signed weight: 2 (v + noise) - T on the side of its sign.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.predictors.everlasting.margins import weights_of_votes
    >>> weights_of_votes(np.array([[70, 30], [-20, 120]]), 100).tolist()
    [[40, 0], [0, 100]]
    """
    counts = np.clip(noisy, 0, n_shards)
    return np.asarray(counts - counts.min(axis=1, keepdims=True), dtype=np.int64)


@claim("EVER")
@dataclass(frozen=True)
class MarginTrainer(Trainer):
    """Trains a shard on rows with a whole weight for each class, at least one of them 0.

    A concept class takes them as signed weights of its exact ``erm``; of the hypotheses that label
    the shard's rows alike, ``represent`` picks one that does not drift. An estimator gets each row
    once for every class that has a weight there, with ``sample_weight``; if it takes none, each
    row gets one label, drawn with the chance of its share of ``unit`` votes.
    """

    unit: int = 1  # votes that there were
    balanced: bool = True  # whether all classes of a shard weigh the same
    weighted: bool = True  # whether an estimator gets weights, and not drawn labels

    def given(self, labels: Integers) -> Integers:
        return weights_of_labels(labels, self.n_classes) * self.unit

    def train_or_raise(self, rows: Any, labels: Integers, seed: int) -> Any:
        weights = labels
        with strictly(seed):
            table = as_numbers(rows, self.columns)
            if isinstance(self.model, ConceptClass):
                table = np.asarray(table, dtype=np.float64)
                signed = weights[:, 1] - weights[:, 0]
                ones = np.ones(len(signed), dtype=np.int64)
                found = self.model.erm(table, ones, sample_weight=signed)
                limits, coin = self._limits(), _coin(seed)
                return represent(self.model, found, table, signed, limits, coin=coin)
            name = weight_parameter(self.model) if self.weighted else None
            if name is None:
                places, classes = drawn_labels(weights, self.unit, seed)
                given = {}
            else:
                places, classes = np.nonzero(weights)
                if not len(places):
                    return None
                given = {name: scaled(weights[places, classes], classes, balanced=self.balanced)}
            if not len(classes):
                return None
            if len(np.unique(classes)) == 1:
                return int(classes[0])
            picked = table.iloc[places] if hasattr(table, "iloc") else table[places]
            return seeded(own_clone(self.model), seed).fit(picked, classes, **given)

    def train_many(
        self, rows: Any, labels: Integers, starts: Integers, seeds: Integers
    ) -> list[Any]:
        """Return the models of the shards that start there: the same as one by one, but faster.

        Ridge classifiers are the same but for rounding, and trees but for which of equally good
        cuts they take. So which way is taken must depend on the estimator and on whether the
        rows are an array or a frame, or else on a shard's own rows.
        """
        if type(self.model) is Thresholds and not hasattr(rows, "columns"):
            with contextlib.suppress(Exception):  # one by one, the other shards do not notice
                table = as_numbers(rows, self.columns)
                if table.shape[1] == 1 and np.isfinite(table).all() and np.diff(starts).min() > 0:
                    column, signed = np.ascontiguousarray(table[:, 0]), labels[:, 1] - labels[:, 0]
                    coins = [_coin(seed) for seed in seeds.tolist()]
                    limits = self._limits()
                    return list(many_thresholds(self.model, column, signed, starts, limits, coins))
        if (
            self.weighted
            and self.columns is None
            and self.n_classes == 2
            and can_solve(self.model, rows)
        ):
            signed, table = labels[:, 1] - labels[:, 0], read_table(rows, None)
            found: tuple[list[Any], Integers] | None
            found = many_ridges(self.model, table, signed, starts, balanced=self.balanced)
        else:
            how = (self.model, self.columns, rows, labels, starts, seeds)
            found = grown(*how, balanced=self.balanced)
        if found is None:
            return train_one_by_one(self, rows, labels, starts, seeds)
        models, failed = found
        return self._replace(models, failed, rows, labels, starts, seeds) if len(failed) else models

    def _limits(self) -> Limits:
        """Return the declared bounds of the first column, if there are any."""
        declared = None if self.columns is None else self.columns.bounds[0]
        return None if declared is None else (declared[0], declared[1])


def _coin(seed: int) -> bool:
    """Return the shard's coin: nothing else uses the seed where a coin is needed."""
    return bool(seed & 1)


def scaled(weights: Integers, classes: Integers, *, balanced: bool) -> Floats:
    """Return weights that are one on average, as regularisation expects it of rows.

    Balanced, each class of the shard has the same sum. Else the class with the smaller margins
    loses weight in every phase, until nothing is left of it.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.predictors.everlasting.margins import scaled
    >>> scaled(np.array([30, 10, 20]), np.array([0, 0, 1]), balanced=True).tolist()
    [1.125, 0.375, 1.5]
    """
    found = weights.astype(np.float64)
    if balanced:
        sums = np.bincount(classes, weights=found)
        found /= sums[classes]
    return np.asarray(found / found.mean())


def weight_parameter(estimator: Any) -> str | None:
    """Return the name under which ``fit`` takes weights of rows; None if it takes none."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__sample_weight" if has_fit_parameter(last, "sample_weight") else None
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def choose_weighted(trainer: MarginTrainer, rows: RowSource, size: int) -> MarginTrainer:
    """Decide once whether shards get weights or drawn labels, by what made-up rows show.

    Some estimators have a parameter for weights and refuse it all the same, because a part of them
    takes none. Then all shards of all phases get drawn labels.
    """
    if isinstance(trainer.model, ConceptClass) or weight_parameter(trainer.model) is None:
        return trainer
    table = made_up_rows(rows, trainer.columns, size, 0.0)
    # Weights of many sizes, as in later phases.
    weights = trainer.given(made_up_labels(size, trainer.n_classes))
    weights *= 1 + np.arange(size)[:, None] % 7
    try:
        trainer.train_or_raise(table, weights, 1)
    except Exception:  # noqa: BLE001 - if it fails for another reason, the trial tells
        return replace(trainer, weighted=False)
    return trainer


def drawn_labels(weights: Integers, unit: int, seed: int) -> tuple[Integers, Integers]:
    """Draw one label for each row that has a weight, with the chance of its share of the votes.

    The seed is the shard's own. Labels are right on average, and drift all the same, faster than
    weights do (docs/everlasting_drift.md): take an estimator with weights where there is one.
    """
    places = np.flatnonzero(weights.any(axis=1))
    kept = weights[places].astype(np.float64)
    n_classes = weights.shape[1]
    rest = np.maximum(0.0, unit - kept.sum(axis=1, keepdims=True)) / n_classes
    shares = np.cumsum(kept + rest, axis=1)
    coins = integers(2**53, len(places), SeededSource(seed)) / 2.0**53 * shares[:, -1]
    return places, np.asarray((coins[:, None] >= shares[:, :-1]).sum(axis=1), dtype=np.int64)
