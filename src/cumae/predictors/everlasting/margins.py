"""Margins: labels with their confidence, as whole weights that shards can train on.

The noisy votes on a query become a row of weights, one for each class: by how many votes the class
is ahead of the weakest one. A later phase trains on these weights instead of labels, so that
answers that were nearly a tie teach little.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass, Keyed, Rectangles, Thresholds
from cumae.data import RowSource, as_numbers, read_table
from cumae.ensembles.growing.boxes import MOST_COLUMNS, MOST_ROWS, many_boxes
from cumae.ensembles.growing.representatives import Limits, many_thresholds, represent
from cumae.ensembles.growing.ridges import can_solve, many_ridges
from cumae.ensembles.growing.trees import grown
from cumae.ensembles.isolation import strictly
from cumae.ensembles.trainer import Trainer, seeded, train_one_by_one, weight_parameter
from cumae.estimators import own_clone
from cumae.made_up import made_up_labels, made_up_rows
from cumae.quiet import HiddenFailures
from cumae.randomness import SeededSource, integers

LARGEST = 1e300  # cells below it can be trained in one loop: the floats next to them are finite


def weights_of_labels(labels: Integers, n_classes: int) -> Integers:
    """Return a weight of 1 for the class of a row and 0 for all others; -1 means no class at all.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.predictors.everlasting.margins import weights_of_labels
    >>> weights_of_labels(np.array([1, 0, -1]), 2).tolist()
    [[0, 1], [1, 0], [0, 0]]
    """
    return np.asarray(labels[:, None] == np.arange(n_classes), dtype=np.int64)


@claim("EVER")
def weights_of_votes(noisy: Integers, n_shards: int) -> Integers:
    """Return by how many votes each class is ahead of the weakest one.

    Noise may push a count below 0 or above the number of shards; it is moved back first.

    Parameters
    ----------
    noisy : array of int of shape (n_queries, n_classes)
        Noisy vote counts.
    n_shards : int
        Number of models that voted.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.predictors.everlasting.margins import weights_of_votes
    >>> weights_of_votes(np.array([[70, 30], [-20, 120]]), 100).tolist()
    [[40, 0], [0, 100]]
    """
    found = np.empty(noisy.shape, dtype=np.int64)
    _ahead_of_weakest(noisy, n_shards, found)
    return found


@numba.njit(cache=True, nogil=True)
def _ahead_of_weakest(noisy: Integers, n_shards: int, found: Integers) -> None:
    for row in range(noisy.shape[0]):
        weakest = n_shards
        for place in range(noisy.shape[1]):
            count = min(max(noisy[row, place], 0), n_shards)
            found[row, place] = count
            weakest = min(weakest, count)
        for place in range(noisy.shape[1]):
            found[row, place] -= weakest


@claim("EVER")
@dataclass(frozen=True)
class MarginTrainer(Trainer):
    """Trains a shard on rows with a whole weight for each class, at least one of them 0.

    In its methods, ``labels`` are such weights: one row for each row, one column for each class.

    - A concept class has two classes. Its exact ``erm`` takes the difference of both weights as one
      signed weight. Many hypotheses label the shard's rows alike; ``represent`` picks one of them
      in such a way that answers do not drift from phase to phase.
    - An estimator that takes ``sample_weight`` gets each row once for every class that has a
      weight there.
    - Any other estimator gets each row once, with a drawn label (``drawn_labels``).
    """

    full_weight: int = 1  # of a row whose label is certain, which is the most
    balanced: bool = True  # whether all classes of a shard weigh the same
    weighted: bool = True  # whether an estimator gets weights, and not drawn labels

    def targets(self, labels: Integers) -> Integers:
        return weights_of_labels(labels, self.n_classes) * self.full_weight

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
                places, classes = drawn_labels(weights, self.full_weight, seed)
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
        """Train several shards in one loop, faster than one by one.

        The models are those of ``train``, with two exceptions: ridge classifiers may differ by
        rounding, and trees may take another one of several equally good cuts. One row of one shard
        must not change the models of others. So whether the loop is taken depends on the estimator
        and on whether rows are an array or a frame; a shard that the loop cannot handle, because of
        its own rows, is trained alone.

        Parameters
        ----------
        rows : array or DataFrame
            The rows of all these shards, one shard after the other.
        labels : array of int of shape (n_rows, n_classes)
            Their weights.
        starts : array of int
            Where each shard starts in the rows, and at last the number of rows.
        seeds : array of int
            One for each shard.
        """
        if type(self.model) in (Keyed, Thresholds, Rectangles) and not hasattr(rows, "columns"):
            with HiddenFailures():  # one by one, the other shards do not notice
                rules = self._many_rules(rows, labels, starts, seeds)
                if rules is not None:
                    return rules
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

    def _many_rules(
        self, rows: Any, labels: Integers, starts: Integers, seeds: Integers
    ) -> list[Any] | None:
        """Return exactly what ``train`` gives for each shard of a concept class.

        None if a cell or a size of a shard does not fit the loop.
        """
        table = as_numbers(rows, self.columns)
        sizes = np.diff(starts)
        width = table.shape[1]
        if sizes.min() == 0 or not np.all(np.abs(table) < LARGEST):
            return None
        signed, coins = labels[:, 1] - labels[:, 0], [_coin(seed) for seed in seeds.tolist()]
        if isinstance(self.model, Keyed):
            return self._many_keyed(self.model, table, signed, starts, coins)
        if isinstance(self.model, Thresholds):
            if width > 1:
                return None
            column = np.ascontiguousarray(table[:, 0])
            limits = self._limits()
            return list(many_thresholds(self.model, column, signed, starts, limits, coins))
        if width > MOST_COLUMNS or sizes.max() > MOST_ROWS:
            return None
        return list(many_boxes(table, signed, starts, coins))

    @claim("KEYS")
    def _many_keyed(
        self, model: Keyed, table: Floats, signed: Integers, starts: Integers, coins: list[bool]
    ) -> list[Any] | None:
        """As ``_many_rules``, for thresholds over ordered keys.

        A cut lies at a row of its own shard, or right above one. So ranks among the rows of several
        shards give the same rules as ranks within a shard.
        """
        if type(model.concept) is not Thresholds:
            return None
        distinct, ranks = model.ranked(table)
        rules = many_thresholds(model.concept, ranks, signed, starts, None, coins)
        return [model.named(rule, distinct) for rule in rules]

    def _limits(self) -> Limits:
        """Return the declared bounds of the first column, if there are any."""
        declared = None if self.columns is None else self.columns.bounds[0]
        return None if declared is None else (declared[0], declared[1])


def _coin(seed: int) -> bool:
    """Return the coin of a shard; where one is needed, nothing else uses the seed."""
    return bool(seed & 1)


def scaled(weights: Integers, classes: Integers, *, balanced: bool) -> Floats:
    """Return weights with a mean of 1, so that regularisation is as strong as without weights.

    Parameters
    ----------
    weights, classes : array of int
        Whole weights, and the class that each of them speaks for.
    balanced : bool
        Whether the weights of each class of the shard have the same sum. Otherwise the class with
        the smaller margins loses weight in every phase, until nothing is left of it.

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


@claim("EVER")
def choose_weighted(trainer: MarginTrainer, rows: RowSource, size: int) -> MarginTrainer:
    """Decide once whether shards get weights or drawn labels, by what made-up rows show.

    Some estimators have a parameter for weights and refuse it all the same, because a part of them
    takes none. Then all shards of all phases get drawn labels.

    Parameters
    ----------
    trainer : MarginTrainer
        What trains the shards.
    rows : RowSource
        Its types of columns are used, and nothing else.
    size : int
        Rows of a shard.
    """
    if isinstance(trainer.model, ConceptClass) or weight_parameter(trainer.model) is None:
        return trainer
    table = made_up_rows(rows, trainer.columns, size, 0.0)
    # Weights of many sizes, as in later phases.
    weights = trainer.targets(made_up_labels(size, trainer.n_classes))
    weights *= 1 + np.arange(size)[:, None] % 7
    with HiddenFailures():  # if it fails for another reason, the trial tells
        trainer.train_or_raise(table, weights, 1)
        return trainer
    return replace(trainer, weighted=False)


@claim("EVER")
def drawn_labels(weights: Integers, full_weight: int, seed: int) -> tuple[Integers, Integers]:
    """Draw one label for each row that has a weight; a class has its share of the votes as chance.

    All classes share what is left of the full weight. Labels are right on average, and drift all
    the same, faster than weights do (docs/everlasting_drift.md): take an estimator with weights
    where there is one.

    Parameters
    ----------
    weights : array of int of shape (n_rows, n_classes)
        By how many votes each class is ahead of the weakest one.
    full_weight : int
        What a row weighs whose label is certain: the number of votes, if there is no prior.
    seed : int
        That of the shard.

    Returns
    -------
    two arrays of int
        Places of the rows that got a label, and the labels.
    """
    places = np.flatnonzero(weights.any(axis=1))
    kept = weights[places].astype(np.float64)
    n_classes = weights.shape[1]
    rest = np.maximum(0.0, full_weight - kept.sum(axis=1, keepdims=True)) / n_classes
    shares = np.cumsum(kept + rest, axis=1)
    coins = integers(2**53, len(places), SeededSource(seed)) / 2.0**53 * shares[:, -1]
    return places, np.asarray((coins[:, None] >= shares[:, :-1]).sum(axis=1), dtype=np.int64)
