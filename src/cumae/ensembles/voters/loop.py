"""Models that are asked one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from joblib import delayed, effective_n_jobs
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data import answers_of
from cumae.ensembles.blocks import blank_block, blocks, first_with
from cumae.ensembles.travel import Traveller
from cumae.ensembles.voters.base import Voters, class_of, running, shares
from cumae.errors import InvalidParameter
from cumae.quiet import HiddenFailures, warnings_raise
from cumae.threads import one_thread
from cumae.workers import in_memory, parallel


@claim("SHARDS", "EVER")
@dataclass(frozen=True, eq=False)
class LoopVoters(Voters):
    """Any fitted models, asked one by one through joblib, in blocks of one fixed shape.

    A row for which a model raises or warns is a vote for class 0, and so is an answer that is no
    class. Each model gets a copy of the block, so that none can change what the next one sees.

    Parameters
    ----------
    models : sequence
        Anything with a ``predict`` that treats each row of a table by itself.
    n_classes : int
        Number of classes.
    stand_in : array or DataFrame
        A table of one made-up row, which fills the empty places of a block.
    silent : int
        How many further models there are that fail on the stand-in; they always vote for class 0.
    """

    models: Sequence[Any]
    n_classes: int
    stand_in: Any
    silent: int = 0

    @classmethod
    def of(cls, models: Sequence[Any], n_classes: int, stand_in: Any) -> Self:
        """Ask each model about stand-ins alone; one that fails on them votes for class 0 always.

        If it could vote, a query would be answered in a full block only, where there are none.
        """
        if stand_in is None:
            raise InvalidParameter(
                f"models of type {_kinds(models)} are asked in blocks of one shape; give a "
                "stand_in, one made-up row, for the empty places."
            )
        blank = blank_block(stand_in)
        with one_thread():
            able = [model for model in models if _ask(model, blank, n_classes) is not None]
        return cls(tuple(able), n_classes, stand_in, len(models) - len(able))

    def __len__(self) -> int:
        return len(self.models) + self.silent

    def __getstate__(self) -> dict[str, Any]:
        """Let each model travel to a worker by itself."""
        return {**vars(self), "models": [Traveller(model) for model in self.models]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Arrive in a worker; a model that could not travel votes for class 0."""
        able = tuple(one.model for one in state["models"] if one.model is not None)
        silent = state["silent"] + len(state["models"]) - len(able)
        vars(self).update({**state, "models": able, "silent": silent})

    def count(self, X: Any, numbers: Integers | None = None) -> Integers:
        return count_in_workers(self.parts(effective_n_jobs(None)), X, self.n_classes, numbers)

    def count_here(self, X: Any, numbers: Integers | None = None) -> Integers:
        votes = np.zeros((len(X), self.n_classes), dtype=np.int64)
        numbers = running(numbers, len(X))
        with one_thread(), in_memory():
            for block in blocks(X, numbers, blank_block(self.stand_in)):
                for model in self.models:
                    found = block.answers(partial(_ask, model, n_classes=self.n_classes), 0)
                    for place in range(1, self.n_classes):
                        votes[block.rows, place] += found == place
        votes[:, 0] = len(self) - votes[:, 1:].sum(axis=1)
        return votes[first_with(numbers)]

    def parts(self, n: int) -> list[Voters]:
        runs = list(shares(len(self.models), n))
        first = replace(self, models=self.models[runs[0]])
        others = [replace(self, models=self.models[part], silent=0) for part in runs[1:]]
        return [first, *others]

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Refuse: there are no arrays for models of any kind."""
        raise InvalidParameter(
            f"models of type {_kinds(self.models)} have no array form, so they cannot be stored; "
            "use decision trees, linear models (scaled columns included) or a concept class."
        )


def _kinds(models: Sequence[Any]) -> str:
    return ", ".join(sorted({type(model).__name__ for model in models}))


def count_in_workers(
    parts: Sequence[Voters], X: Any, n_classes: int, numbers: Integers | None
) -> Integers:
    """Let each worker of joblib count the votes of some parts, and add them up."""
    votes = np.zeros((len(X), n_classes), dtype=np.int64)
    for counted in parallel()(delayed(_count_part)(part, X, numbers) for part in parts):
        votes += counted
    return votes


def _count_part(part: Voters, X: Any, numbers: Integers | None) -> Integers:
    return part.count_here(X, numbers)


@claim("SHARDS")
def _ask(model: Any, table: Any, n_classes: int) -> Integers | None:
    """Return the vote for each row of a table; None if the model raises or warns."""
    with HiddenFailures(), warnings_raise():
        return _classes(answers_of(model.predict(table.copy()), len(table)), n_classes)
    return None


@claim("SHARDS")
def _classes(answer: NDArray[Any], n_classes: int) -> Integers:
    if answer.dtype.kind in "biu":
        return np.where((answer > 0) & (answer < n_classes), answer, 0).astype(np.int64)
    if answer.dtype.kind == "f":
        known = (answer > 0) & (answer < n_classes) & (answer == np.floor(answer))
        return np.where(known, answer, 0).astype(np.int64)
    return np.array([class_of(label, n_classes) for label in answer], dtype=np.int64)
