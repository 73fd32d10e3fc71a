"""Laws of the shards: what one row may change, for any estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cumae.arrays import Integers
from cumae.data import Columns, Declared, as_numbers, label_codes, read_table, row_source
from cumae.ensembles.ensemble import Ensemble
from cumae.ensembles.split import Split, shard_seeds
from cumae.ensembles.trainer import Trainer, train_shards
from cumae.ensembles.trial import check_model
from cumae.made_up import stand_in_row
from cumae.randomness import SeededSource

ODD_NUMBERS = (0.0, -0.0, -1.0, 1e-300, -1e9, 1e300, -1.7e308)  # which models may stumble over


@dataclass(frozen=True)
class Neighbours:
    """Two tables that differ in one row, and queries to compare what was learnt from them.

    Parameters
    ----------
    X, y : array-like
        Rows and labels.
    X_other, y_other : array-like
        The same rows and labels, except for one row.
    queries : array-like
        Rows to label.
    classes : sequence
        The labels, as declared to the predictor.
    columns : Columns, list or None
        The columns, as declared to the predictor.
    n_shards : int of 1 or more
        How many shards to train.
    seed : int of 0 or more
        The seed of the coins that are thrown with both tables.
    """

    X: Any
    y: Any
    X_other: Any
    y_other: Any
    queries: Any
    classes: Sequence[Any] = (0, 1)
    columns: Declared = None
    n_shards: int = 8
    seed: int = 60_127  # no usual seed: rows drawn with the same one would be split by value

    @classmethod
    def replacing(cls, X: Any, y: Any, row: int, new: Any, label: Any, **others: Any) -> Neighbours:
        """Replace one row of an array by another one.

        Examples
        --------
        >>> import numpy as np
        >>> from cumae.checks import Neighbours
        >>> X = np.zeros((4, 2))
        >>> pair = Neighbours.replacing(X, [0, 1, 0, 1], 2, [1, 1], 1, queries=X)
        >>> pair.X_other.sum(axis=1).tolist()
        [0.0, 0.0, 2.0, 0.0]
        """
        changed, labels = np.array(X), np.array(y)
        changed[row], labels[row] = new, label
        return cls(X, y, changed, labels, **others)


def models_of(estimator: Any, X: Any, y: Any, pair: Neighbours) -> list[Any]:
    """Train the shards as predictors do, with the coins of the pair."""
    rows = row_source(X)
    labels = label_codes(rows, y, pair.classes)
    source = SeededSource(pair.seed)
    split = Split.draw(rows.n_rows, pair.n_shards, source)
    seeds = shard_seeds(pair.n_shards, source)
    return train_shards(rows, labels, split, _trainer(estimator, pair), seeds)


def queries_of(pair: Neighbours) -> Any:
    """Return the queries of the pair in the form in which models get them."""
    rows = row_source(pair.queries)
    return as_numbers(rows.take(np.arange(rows.n_rows)), _trainer(None, pair).columns)


def stand_in_of(pair: Neighbours) -> Any:
    """Return the made-up row that predictors would take for these rows."""
    columns = _trainer(None, pair).columns
    row = stand_in_row(row_source(pair.X), columns)
    return row if hasattr(queries_of(pair), "columns") else read_table(row, columns)


def votes_of(models: Sequence[Any], pair: Neighbours) -> Integers:
    """Return the votes of each model by itself: shards, queries, classes."""
    table = queries_of(pair)
    ensembles = [Ensemble([model], len(pair.classes), stand_in_of(pair)) for model in models]
    return np.array([ensemble.votes(table) for ensemble in ensembles])


def shards_are_disjoint(estimator: Any, pair: Neighbours) -> None:
    """No row is in two shards, and every row is in one."""
    del estimator
    n_rows = row_source(pair.X).n_rows
    split = Split.draw(n_rows, pair.n_shards, SeededSource(pair.seed))
    places = np.concatenate([split.places(shard) for shard in range(pair.n_shards)])
    demand(
        np.array_equal(np.sort(places), np.arange(n_rows)),
        "the shards are no partition of the rows",
    )


def one_row_changes_one_model(estimator: Any, pair: Neighbours) -> None:
    """With the same coins, replacing one row changes the votes of one shard at most."""
    here = votes_of(models_of(estimator, pair.X, pair.y, pair), pair)
    there = votes_of(models_of(estimator, pair.X_other, pair.y_other, pair), pair)
    changed = int(np.any(here != there, axis=(1, 2)).sum())
    demand(changed <= 1, f"replacing one row changed the votes of {changed} shards")


def one_row_moves_one_vote(estimator: Any, pair: Neighbours) -> None:
    """Replacing one row moves each vote count by one at most, and no vote is lost."""
    here = votes_of(models_of(estimator, pair.X, pair.y, pair), pair).sum(axis=0)
    there = votes_of(models_of(estimator, pair.X_other, pair.y_other, pair), pair).sum(axis=0)
    demand(bool(np.all(here.sum(axis=1) == pair.n_shards)), "votes were lost or counted twice")
    demand(int(np.abs(here - there).max()) <= 1, "replacing one row moved a count by more than one")


def order_of_training_is_irrelevant(estimator: Any, pair: Neighbours) -> None:
    """A shard's model is the same if the other shards were never trained: no state crosses."""
    together = votes_of(models_of(estimator, pair.X, pair.y, pair), pair)
    rows, trainer = row_source(pair.X), _trainer(estimator, pair)
    labels = label_codes(rows, pair.y, pair.classes)
    source = SeededSource(pair.seed)
    split = Split.draw(rows.n_rows, pair.n_shards, source)
    seeds = shard_seeds(pair.n_shards, source)
    for shard in reversed(range(pair.n_shards)):
        places = split.places(shard)
        task = (rows.take(places), labels[places], np.array([0, len(places)]), seeds[[shard]])
        alone = votes_of(trainer.train_many(*task), pair)[0]
        demand(
            np.array_equal(alone, together[shard]),
            f"shard {shard} depends on what was trained before it",
        )


def votes_ignore_the_batch(estimator: Any, pair: Neighbours) -> None:
    """A query gets the same votes alone and in any batch, beside any other queries."""
    models = models_of(estimator, pair.X, pair.y, pair)
    ensemble = Ensemble(models, len(pair.classes), stand_in_of(pair))
    queries = queries_of(pair)
    numbers = np.arange(len(queries))
    together = ensemble.votes(queries, numbers)
    turned = ensemble.votes(queries[::-1], numbers[::-1])
    demand(np.array_equal(together, turned[::-1]), "votes depend on the order of the queries")
    for place in numbers[:20]:
        one = slice(place, place + 1)
        alone = ensemble.votes(queries[one], numbers[one])
        demand(np.array_equal(alone[0], together[place]), "a vote depends on the other queries")
    if hasattr(queries, "columns"):
        return
    for odd in ODD_NUMBERS:
        others = queries.copy()
        others[1::2] = odd
        found = ensemble.votes(others, numbers)
        demand(np.array_equal(found[::2], together[::2]), "a vote depends on a cell next to it")


def training_is_silent(estimator: Any, pair: Neighbours) -> None:
    """Unusable rows and labels neither raise nor warn, and no vote is lost over them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        models = models_of(estimator, pair.X_other, pair.y_other, pair)
        votes = votes_of(models, pair)
    demand(len(models) == pair.n_shards, "the number of models tells about the rows")
    demand(bool(np.all(votes.sum(axis=2) == 1)), "a shard voted twice or not at all")


SHARD_LAWS: tuple[Callable[[Any, Neighbours], None], ...] = (
    shards_are_disjoint,
    one_row_changes_one_model,
    one_row_moves_one_vote,
    order_of_training_is_irrelevant,
    votes_ignore_the_batch,
    training_is_silent,
)


def check_estimator(estimator: Any, pair: Neighbours) -> None:
    """Run all laws of the shards on a scikit-learn classifier, a Pipeline or a concept class.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from cumae.checks import Neighbours, check_estimator
    >>> X = np.random.default_rng(0).random((200, 2))
    >>> y = X[:, 0] > 0.5
    >>> pair = Neighbours.replacing(X, y, 7, [np.nan, 5.0], 1, queries=X[:30])
    >>> check_estimator(DecisionTreeClassifier(max_depth=2), pair)
    """
    for law in SHARD_LAWS:
        law(check_model(estimator), pair)


def _trainer(estimator: Any, pair: Neighbours) -> Trainer:
    columns = None
    if pair.columns is not None:
        rows = row_source(pair.X)
        columns = Columns(pair.columns, rows.names, rows.n_features)
    return Trainer(estimator, len(pair.classes), columns)


def demand(holds: bool, otherwise: str) -> None:
    """Raise AssertionError, also where Python was asked to skip assert statements."""
    if not holds:
        raise AssertionError(otherwise)
