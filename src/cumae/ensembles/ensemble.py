"""The models of all shards, and their votes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.ensembles.voters.base import StackedVoters, Voters, running
from cumae.ensembles.voters.loop import count_in_workers
from cumae.ensembles.voters.slots import SlotForm, form_from_facts
from cumae.ensembles.voters.stacking import stack, voters_from_arrays
from cumae.errors import InvalidParameter
from cumae.workers import elsewhere

ROWS = 2**17  # queries that are sent to other machines in one go


@claim("SHARDS")
class Ensemble:
    """The models of all shards, and their votes as whole numbers.

    Parameters
    ----------
    models : sequence of models
        One for each shard; a number always votes for that class, and None for the first one.
    n_classes : int
        Number of declared classes.
    stand_in : array or DataFrame of one row, or None
        A made-up row, in the form in which queries come; only models that cannot be stacked need
        it.
    form : SlotForm, or None
        The form of the slots into which all models go; None if they have none.
    """

    def __init__(
        self,
        models: Sequence[Any],
        n_classes: int,
        stand_in: Any = None,
        form: SlotForm | None = None,
    ) -> None:
        self.n_classes = n_classes
        self.n_shards = len(models)
        self.form, self.slots = form, None if form is None else form.pack(models)
        self.voters: list[Voters]
        if form is not None and self.slots is not None:
            self.voters, self.constant = form.voters(self.slots)
            return
        fixed = [model or 0 for model in models if model is None or isinstance(model, int)]
        self.constant = np.bincount(fixed, minlength=n_classes)
        trained = [model for model in models if model is not None and not isinstance(model, int)]
        self.voters = stack(trained, n_classes, stand_in)

    def votes(self, X: Any, numbers: Integers | None = None) -> Integers:
        """Return one row of vote counts for each query; each row adds up to the shards.

        ``numbers`` are the running numbers of the queries, as for ``count_votes``.
        """
        counts = count_votes(self.voters, X, self.n_classes, numbers)
        counts += self.constant
        return counts

    @property
    def has_arrays(self) -> bool:
        """True if all models are arrays, so that ``to_facts`` can write them."""
        return all(isinstance(voters, StackedVoters) for voters in self.voters)

    @claim("STORE")
    def to_facts(self) -> dict[str, Any]:
        """Return numbers and arrays from which ``from_facts`` makes the same ensemble.

        With slots, their size follows from public numbers. Only an ensemble of an older file has
        none; its arrays stay as they are until its phase ends.

        Raises
        ------
        InvalidParameter
            If a model has no array form.
        """
        facts: dict[str, Any] = {"n_classes": self.n_classes, "n_shards": self.n_shards}
        if self.form is not None:
            return {**facts, "form": self.form.to_facts(), "slots": self.slots}
        # Those that have no array form have no kind, and refuse to be arrays.
        voters = [
            {"arrays": one.to_arrays(), "kind": getattr(one, "kind", None)} for one in self.voters
        ]
        return {**facts, "constant": self.constant, "voters": voters}

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Ensemble:
        """Rebuild what ``to_facts`` returned."""
        found = cls([], facts["n_classes"])
        found.n_shards = facts["n_shards"]
        if "form" in facts:
            found.form, found.slots = form_from_facts(facts["form"]), facts["slots"]
            found.voters, found.constant = found.form.voters(facts["slots"])
        else:
            found.constant = facts["constant"]
            found.voters = [
                voters_from_arrays(one["kind"], one["arrays"]) for one in facts["voters"]
            ]
        fits = found.constant.shape == (found.n_classes,) and all(
            voters.n_classes == found.n_classes for voters in found.voters
        )
        if not fits or sum(map(len, found.voters)) + found.constant.sum() != found.n_shards:
            raise InvalidParameter(
                "these facts are no ensemble: its models, classes and shards do not match."
            )
        return found


@claim("SHARDS")
def count_votes(
    voters: Sequence[Voters], X: Any, n_classes: int, numbers: Integers | None = None
) -> Integers:
    """Return how many models vote for each class, with a row for each query.

    Arrays vote in threads of this process, and other models in joblib's workers. Under another
    backend of joblib, such as ``joblib.parallel_config("dask")``, all of them vote there, except
    those that are ``quick``, for which sending queries takes longer than voting.

    Parameters
    ----------
    voters : sequence of Voters
        What ``stack`` returned.
    X : array or DataFrame
        Queries: a table of floats, or a data frame.
    n_classes : int
        Number of classes.
    numbers : array of int or None
        The running number of each query, from 0; it decides where the query stands in the tables
        that models get. It must not depend on the other queries.
    """
    if len(voters) == 1 and voters[0].quick:  # what a single query mostly meets: no sum, no check
        return voters[0].count(X, numbers)
    numbers = running(numbers, len(X))
    votes = np.zeros((len(X), n_classes), dtype=np.int64)
    if all(group.quick for group in voters) or not elsewhere():
        for group in voters:
            votes += group.count(X, numbers)
        return votes
    workers = effective_n_jobs(None)
    parts = [part for group in voters for part in group.parts(workers)]
    for start in range(0, len(X), ROWS):
        rows = X.iloc[start : start + ROWS] if hasattr(X, "iloc") else X[start : start + ROWS]
        some = numbers[start : start + ROWS]
        votes[start : start + ROWS] = count_in_workers(parts, rows, n_classes, some)
    return votes
