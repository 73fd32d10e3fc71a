"""Training the shards: each model depends on the rows of its own shard, its seed and nothing else.

``train_shards`` loads rows, cuts them into tasks of some shards each, and hands these to joblib. A
worker calls ``Trainer.train_many`` for its task. Small models of all shards of a task may be
trained in one loop; all others are trained one by one, by ``Trainer.train``.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.data import Columns, RowSource, as_numbers, usable_rows
from cumae.ensembles.growing.trees import grown
from cumae.ensembles.isolation import generators_kept, strictly
from cumae.ensembles.split import Split
from cumae.ensembles.travel import Traveller
from cumae.estimators import own_clone
from cumae.progress import Progress
from cumae.quiet import HiddenFailures
from cumae.threads import one_core
from cumae.workers import in_memory, parallel

LOADED_CELLS = 2**24  # cells that are in memory at a time while shards train
TASK_SHARDS = 32  # shards that a worker gets at a time
PROCESS_ENDS = threading.Event()  # set at exit, so that trainings in threads of their own stop


@claim("SHARDS")
@dataclass(frozen=True)
class Trainer:
    """Trains one shard's model from that shard's rows, its seed and nothing else.

    Parameters
    ----------
    model : classifier or ConceptClass
        A scikit-learn classifier or Pipeline, cloned for each shard, or a concept class, whose
        exact ``erm`` is taken.
    n_classes : int
        Number of declared classes.
    columns : Columns or None
        What was declared about the columns, if anything; rows are then encoded by it.
    """

    model: Any
    n_classes: int
    columns: Columns | None = None

    def targets(self, labels: Integers) -> Any:
        """Return labels in the form in which ``train`` takes them; a subclass may take weights."""
        return labels

    def train(self, rows: Any, labels: Integers, seed: int) -> Any:
        """Return a model; or None, which votes for the first class, if anything goes wrong.

        Whether it did must not be seen from outside, because one row may be the reason. Where
        training fails, it is tried again without the shard's rows that have unusable cells.
        """
        # Any failure may be the work of one private row.
        with HiddenFailures():
            return self.train_or_raise(rows, labels, seed)
        with HiddenFailures():
            usable = usable_rows(rows, self.columns)
            if not usable.all():
                return self.train_or_raise(rows[usable], labels[usable], seed)
        return None

    def train_or_raise(self, rows: Any, labels: Integers, seed: int) -> Any:
        """As ``train``, but tell what went wrong; for rows that are not private."""
        known = labels >= 0
        rows, labels = rows[known], labels[known]
        if len(np.unique(labels)) < 2:
            return None
        with strictly(seed):
            table = as_numbers(rows, self.columns)
            if isinstance(self.model, ConceptClass):
                return self.model.erm(np.asarray(table, dtype=np.float64), labels)
            return seeded(own_clone(self.model), seed).fit(table, labels)

    def train_many(
        self, rows: Any, labels: Integers, starts: Integers, seeds: Integers
    ) -> list[Any]:
        """Train several shards in one loop where that is faster, else one by one.

        The models are those of ``train``, except that trees may take another one of several equally
        good cuts. One row of one shard must not change the models of others. So whether the loop
        is taken depends on the estimator and on whether rows are an array or a frame; a shard that
        the loop cannot handle, because of its own rows, is trained alone.

        Parameters
        ----------
        rows : array or DataFrame
            The rows of all these shards, one shard after the other.
        labels : array of int
            What ``targets`` returns for them.
        starts : array of int
            Where each shard starts in the rows, and at last the number of rows.
        seeds : array of int
            One for each shard.
        """
        weights = np.asarray(labels[:, None] == np.arange(self.n_classes), dtype=np.int64)
        found = grown(self.model, self.columns, rows, weights, starts, seeds, balanced=False)
        if found is None:
            return train_one_by_one(self, rows, labels, starts, seeds)
        models, failed = found
        models = [None if isinstance(model, int) else model for model in models]
        return self._replace(models, failed, rows, labels, starts, seeds)

    def _replace(
        self,
        models: list[Any],
        failed: Integers,
        rows: Any,
        labels: Integers,
        starts: Integers,
        seeds: Integers,
    ) -> list[Any]:
        """Train those shards alone that the loop could not handle."""
        for shard in failed.tolist():
            ends, seed = starts[shard : shard + 2], seeds[[shard]]
            (models[shard],) = train_one_by_one(self, rows, labels, ends, seed)
        return models


@claim("SHARDS")
def seeded(estimator: Any, seed: int) -> Any:
    """Give every part of an estimator a seed of its own shard, unless a number was declared."""
    for name, value in estimator.get_params(deep=True).items():
        if name.split("__")[-1] == "random_state" and not isinstance(value, int | np.integer):
            estimator.set_params(**{name: seed})
    return estimator


def weight_parameter(estimator: Any) -> str | None:
    """Return the name under which ``fit`` takes weights of rows; None if it takes none."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return f"{name}__sample_weight" if has_fit_parameter(last, "sample_weight") else None
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


@claim("SHARDS")
def train_shards(
    rows: RowSource,
    labels: Integers,
    split: Split,
    trainer: Trainer,
    seeds: Integers,
    *,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> list[Any]:
    """Train all shards through joblib; each worker gets the rows of its own shards only.

    The same split and seeds give the same models, wherever and in any order of training.

    Parameters
    ----------
    rows : RowSource
        All rows.
    labels : array of int
        What ``trainer.targets`` returns for them.
    split : Split
        Which rows belong to which shard.
    trainer : Trainer
        Trains one shard.
    seeds : array of int
        One for each shard, from ``shard_seeds``.
    n_jobs : int, or None
        Number of processes, as in joblib.
    progress : bool, or None
        Whether to show a progress bar; None shows it on a terminal.

    Returns
    -------
    list
        One model for each shard; None votes for the first class.
    """
    pool = parallel(n_jobs=n_jobs, return_as="generator")
    models: list[Any] = []
    with Progress("training shards", split.n_shards, progress) as bar:
        train = joblib.delayed(_train_task)
        for trained in pool(train(trainer, task) for task in _tasks(rows, labels, split, seeds)):
            models += [one.model for one in trained]
            bar.advance(len(trained))
            if PROCESS_ENDS.is_set() and threading.current_thread() is not threading.main_thread():
                raise SystemExit  # which ends the thread, and nothing else
    return models


Task = tuple[Any, Integers, Integers, Integers]  # rows, labels, where shards start, seeds


@claim("SHARDS")
def _train_task(trainer: Trainer, task: Task) -> list[Traveller]:
    """Train the shards of one task, and let each model travel back by itself."""
    return [Traveller(model) for model in trainer.train_many(*task)]


@claim("SHARDS")
def train_one_by_one(
    trainer: Trainer, rows: Any, labels: Integers, starts: Integers, seeds: Integers
) -> list[Any]:
    """Train each shard on its own slice of the rows."""
    parts = [slice(int(a), int(b)) for a, b in itertools.pairwise(starts)]
    with one_core(), in_memory(), generators_kept():
        return [
            trainer.train(rows[part], labels[part], int(seed))
            for part, seed in zip(parts, seeds, strict=True)
        ]


@claim("SHARDS")
def _tasks(rows: RowSource, labels: Integers, split: Split, seeds: Integers) -> Iterator[Task]:
    """Load the rows of many shards at a time and cut them into tasks of some shards each.

    As many shards are loaded as fit into memory: sources that are read from front to back, such as
    Parquet files, are read once for each load.
    """
    starts = np.array([split.first(shard) for shard in range(split.n_shards + 1)])
    size = -(-rows.n_rows // split.n_shards)
    many = max(1, LOADED_CELLS // (size * rows.n_features))
    for begin in range(0, split.n_shards, many):
        end = min(begin + many, split.n_shards)
        loaded = rows.take(split.order[starts[begin] : starts[end]])
        for first in range(begin, end, TASK_SHARDS):
            last = min(first + TASK_SHARDS, end)
            here = slice(int(starts[first] - starts[begin]), int(starts[last] - starts[begin]))
            places = split.order[starts[first] : starts[last]]
            cuts = starts[first : last + 1] - starts[first]
            yield loaded[here], labels[places], cuts, seeds[first:last]
