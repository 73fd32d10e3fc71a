"""Phases of everlasting prediction: what trains a phase, and the phase that answers."""

from __future__ import annotations

import functools
import math
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self
from zlib import crc32

import numpy as np

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data import Columns, RowSource
from cumae.ensembles.blocks import block_rows
from cumae.ensembles.ensemble import Ensemble
from cumae.mechanisms import GaussianNoise, Majority
from cumae.predictors.everlasting.prior import STEADY, Prior
from cumae.predictors.everlasting.renewal import NO_ROWS, LabelledRows
from cumae.predictors.everlasting.rules import EverlastingRules
from cumae.predictors.ids import ID_BYTES, as_rows, from_rows
from cumae.predictors.queries import QueryReader
from cumae.predictors.recipes import Recipe, models_from_facts, models_to_facts
from cumae.randomness import Source

NO_KEY = bytes(ID_BYTES)  # fills up a stored memo; no row has it as its HMAC


@claim("MEMO")
def row_keys(table: Any) -> list[bytes]:
    """Return a key for each row; rows have the same one only if they are identical.

    Equal cells are not enough: 0.0 equals -0.0 and 1 equals True, and models may tell them apart.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.predictors.everlasting.phases import row_keys
    >>> first, second, third = row_keys(np.array([[0.0], [-0.0], [0.0]]))
    >>> first == second, first == third
    (False, True)
    """
    if hasattr(table, "iloc"):
        # What is written out tells types apart, and every bit of a float.
        return [repr(row.tolist()).encode() for row in table.to_numpy(dtype=object)]
    return [row.tobytes() for row in table]


@claim("MEMO")
def query_numbers_by_keys(keys: Sequence[bytes], width: int) -> Integers:
    """Return numbers that a query's own cells decide, so that equal queries have equal votes.

    The place in a block follows from a checksum of the key. Queries of one batch have the same
    number if, and only if, they are identical.

    Parameters
    ----------
    keys : sequence of bytes
        What ``row_keys`` returned.
    width : int
        Number of columns.
    """
    places = block_rows(width) - 1
    known: dict[bytes, int] = {}
    at_place: Counter[int] = Counter()
    for key in keys:
        if key not in known:
            place = crc32(key) % places
            known[key] = place + places * at_place[place]
            at_place[place] += 1
    return np.array([known[key] for key in keys], dtype=np.int64)


@claim("EVER")
@dataclass(frozen=True)
class School:
    """What the training of all phases has in common.

    Parameters
    ----------
    rules : EverlastingRules
        All public numbers.
    model : classifier, Pipeline or ConceptClass
        What each shard trains.
    reader : QueryReader
        How rows and queries are read.
    declared : bool
        Whether columns were declared.
    """

    rules: EverlastingRules
    model: Any
    reader: QueryReader
    declared: bool

    def first_rows(self, rows: RowSource) -> RowSource:
        """Return training rows in the form that queries have."""
        return self.reader.prepared(rows, self.reader.columns if self.declared else None)

    @property
    def columns(self) -> Columns | None:
        """What is known about the columns of encoded rows; None if nothing was declared."""
        return self.reader.number_columns if self.declared else None

    @functools.cached_property  # each answer asks
    def steady(self) -> bool:
        """Whether votes do not drift from phase to phase, by the model and what was declared."""
        return isinstance(self.model, STEADY) and bool(self.reader.columns.open)

    def train(self, recipe: Recipe) -> Ensemble:
        """Train the models of a phase."""
        rules = self.rules
        trainer = rules.trainer(self.model, self.columns, recipe.full_weight)
        return recipe.train(trainer, self.reader.stand_in, rules.n_jobs, rules.progress)


def noise_share(majority: Majority, n_shards: int) -> float:
    """Return the standard deviation of the noise as a share of so many votes."""
    noise = majority.noise
    scale = noise.scale if isinstance(noise, GaussianNoise) else math.inf
    return scale / n_shards


@claim("EVER", "MEMO")
@dataclass(repr=False)
class OpenPhase:
    """A phase that answers: an ensemble, and the noise of its releases.

    Parameters
    ----------
    number : int
        Of the phase, from 1.
    n_rows : int
        How many rows it was trained on.
    ensemble : Ensemble
        Its models.
    majority : Majority
        Its noise, and how many releases it may make.
    recipe : Recipe, or None
        What the models were made from, if they have no array form: a restored predictor makes them
        again. None if they have one; the rows are gone then.
    memo : dict from bytes to array
        Noisy counts of the queries so far, by hidden rows, where equal queries share an answer.
    prior : Prior, or None
        A prior that was trained with the phase, until the state takes it as its own.
    """

    number: int
    n_rows: int
    late: int  # how many of its last answers are given while the next phase trains
    ensemble: Ensemble
    majority: Majority
    recipe: Recipe | None = None
    memo: dict[bytes, Integers] = field(default_factory=dict)
    prior: Prior | None = None

    def remembered(self, keys: Sequence[bytes], fresh: Integers) -> Integers:
        """Return fresh noisy votes; equal queries of the phase share those of the first one.

        The work is the same whether a query is known or not. The memo stays as it is.
        """
        here: dict[bytes, Integers] = {}
        known = [here.setdefault(key, own) for key, own in zip(keys, fresh, strict=True)]
        found = [self.memo.get(key, own) for key, own in zip(keys, known, strict=True)]
        return np.array(found, dtype=np.int64).reshape(fresh.shape)

    @property
    def noise(self) -> float:
        """Standard deviation of the noise as a share of the votes."""
        return noise_share(self.majority, self.ensemble.n_shards)

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing, but for the memo."""
        return {
            "number": self.number,
            "n_rows": self.n_rows,
            "majority": self.majority.to_facts(),
            **models_to_facts(self.ensemble, self.recipe),
        }

    @claim("STORE")
    def memo_to_facts(self, size: int) -> dict[str, Any]:
        """Return the memo for storing, filled up to so many entries.

        How many of the queries so far differ is private; how many there were is not.
        """
        filled = max(0, size - len(self.memo))
        nothing = np.zeros((filled, self.ensemble.n_classes), dtype=np.int64)
        noisy = np.array(list(self.memo.values()), dtype=np.int64)
        return {
            "keys": as_rows([*self.memo, *[NO_KEY] * filled]),
            "noisy": np.vstack([noisy.reshape(-1, self.ensemble.n_classes), nothing]),
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any], school: School) -> Self:
        """Rebuild what ``to_facts`` returned, and the memo; train again without slots."""
        ensemble, recipe = models_from_facts(facts, school.train)
        majority = Majority.from_facts(facts["majority"])
        stored = facts["memo"]
        memo = dict(zip(from_rows(stored["keys"]), stored["noisy"], strict=True))
        memo.pop(NO_KEY, None)
        number, n_rows = facts["number"], facts["n_rows"]
        late = school.rules.late_releases(n_rows)
        return cls(number, n_rows, late, ensemble, majority, recipe, memo)


@claim("EVER", "LATE")
class PhaseTraining:
    """The training of a phase, at once or in the background.

    Training may be repeated if it was broken off: it uses the same recipe.

    Parameters
    ----------
    school : School
        What all phases have in common.
    number : int
        Of the phase.
    recipe : Recipe
        What its models are made from.
    labelled : LabelledRows
        Rows that are for priors alone.
    prior : Prior, or None
        The prior of the phases before, if these rows renew it with this phase.
    """

    def __init__(
        self,
        school: School,
        number: int,
        recipe: Recipe,
        labelled: LabelledRows = NO_ROWS,
        prior: Prior | None = None,
    ) -> None:
        self.number, self.n_rows = number, recipe.rows.n_rows
        self.waiting = labelled if prior is None else NO_ROWS  # for a later phase
        self._school, self._recipe = school, recipe
        self._labelled, self._prior = labelled, prior
        self._ensemble: Ensemble | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Train in a thread of its own, unless it does so already."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._train, daemon=True)
            self._thread.start()

    def _train(self) -> None:
        if self._ensemble is None:
            self._ensemble = self._school.train(self._recipe)

    def finish(self, source: Source, more: int = 0) -> OpenPhase:
        """Return the phase, with so many more releases; whoever asks waits for it.

        The rows are used once: nothing of them is kept where models have an array form.
        """
        if self._thread is not None:
            self._thread.join()
        self._train()  # at once, or again if the thread was broken off
        if self._ensemble is None:
            raise AssertionError("nothing was trained")
        majority = self._school.rules.majority(self.n_rows, more)
        recipe = self._recipe.kept_for(self._ensemble)
        prior = None
        if self._prior is not None:
            prior = self._labelled.train(self._prior, self._school.reader, source)
        late = self._school.rules.late_releases(self.n_rows)
        own = (self.number, self.n_rows, late, self._ensemble, majority, recipe)
        return OpenPhase(*own, prior=prior)

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing: training will be repeated."""
        used = NO_ROWS if self._prior is None else self._labelled
        return {
            "number": self.number,
            "recipe": self._recipe.to_facts(),
            "renews": self._prior is not None,
            "labelled": used.to_facts(),
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any], school: School, prior: Prior | None) -> Self:
        """Rebuild what ``to_facts`` returned, beside the prior of the state."""
        recipe, labelled = Recipe.from_facts(facts["recipe"]), facts["labelled"]
        labels = (LabelledRows.from_facts(labelled), prior) if facts["renews"] else ()
        return cls(school, facts["number"], recipe, *labels)
