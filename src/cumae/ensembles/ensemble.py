"""The models of all shards, and their votes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.ensembles.voters.base import Voters
from cumae.ensembles.voters.stacking import count_votes, stack


@claim("SHARDS")
class Ensemble:
    """The models of all shards, and their votes as whole numbers.

    Parameters
    ----------
    models : list
        One for each shard; a number always votes for that class, and None for the first one.
    n_classes : int
        Number of declared classes.
    stand_in : array, DataFrame or None
        A table of one made-up row, in the form in which queries come; only models that cannot be
        stacked need it.
    """

    def __init__(self, models: Sequence[Any], n_classes: int, stand_in: Any = None) -> None:
        self.n_classes = n_classes
        self.n_shards = len(models)
        fixed = [model or 0 for model in models if model is None or isinstance(model, int)]
        self.constant = np.bincount(fixed, minlength=n_classes)
        trained = [model for model in models if model is not None and not isinstance(model, int)]
        self.voters: list[Voters] = stack(trained, n_classes, stand_in)

    def votes(self, X: Any, numbers: Integers | None = None) -> Integers:
        """Return one row of vote counts for each query; each row adds up to the shards.

        ``numbers`` are the running numbers of the queries, as for ``count_votes``.
        """
        counts = count_votes(self.voters, X, self.n_classes, numbers)
        return counts + self.constant
