"""The possible ends of a shard when many are trained in one loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cumae.arrays import Integers

NO_ROWS, ONE_CLASS, LEARNT, FAILED = range(4)


def models_of(
    kinds: Integers, classes: Callable[[int], int], learnt: Callable[[int], Any]
) -> tuple[list[Any], Integers]:
    """Return a model for each shard, and the shards that are left to scikit-learn.

    As in ``MarginTrainer`` the model of a shard without weights is None, and that of a shard with a
    single class is the number of that class.

    Parameters
    ----------
    kinds : array of int
        What came of each shard.
    classes : function
        Returns the only class of a shard.
    learnt : function
        Returns the model of a shard that has learnt something.
    """
    models: list[Any] = [None] * len(kinds)
    for shard, kind in enumerate(kinds.tolist()):
        if kind == LEARNT:
            models[shard] = learnt(shard)
        elif kind == ONE_CLASS:
            models[shard] = classes(shard)
    return models, np.flatnonzero(kinds == FAILED)
