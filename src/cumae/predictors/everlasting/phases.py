"""Phases of everlasting prediction: what trains a phase, and the phase that answers."""

from __future__ import annotations

import atexit
import functools
import math
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Self
from weakref import WeakSet
from zlib import crc32

import numpy as np

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.codec import from_bytes, to_bytes
from cumae.concepts import Keyed, Thresholds, UnionOfIntervals
from cumae.data import Columns, RowSource, row_source
from cumae.ensembles.ensemble import Ensemble
from cumae.ensembles.trainer import PROCESS_ENDS
from cumae.mechanisms import Coins, GaussianNoise, Majority
from cumae.predictors.everlasting.margins import weights_of_votes
from cumae.predictors.everlasting.prior import STEADY, Prior
from cumae.predictors.everlasting.renewal import NO_ROWS, LabelledRows
from cumae.predictors.everlasting.rules import EverlastingRules
from cumae.predictors.ids import ID_BYTES, as_rows, from_rows
from cumae.predictors.queries import QueryReader
from cumae.predictors.recipes import Recipe, models_from_facts, models_to_facts
from cumae.predictors.waiting import PART, FreshRows, KeptRows, Later, joined
from cumae.randomness import SYSTEM, Source

TRAINING: WeakSet[threading.Thread] = WeakSet()  # threads that train, or have trained
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
def query_numbers_by_keys(keys: Sequence[bytes], n_rows: int) -> Integers:
    """Return numbers that a query's own cells decide, so that equal queries have equal votes.

    The place in a block follows from a checksum of the key. Queries of one batch have the same
    number if, and only if, they are identical.

    Parameters
    ----------
    keys : sequence of bytes
        What ``row_keys`` returned.
    n_rows : int
        Rows of a block (``block_rows``).
    """
    places = n_rows - 1  # the last one is the stand-in's
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
class PhaseSetup:
    """The options and the model that the training of all phases has in common.

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
        """The declared columns of encoded rows; None if nothing was declared."""
        return self.reader.number_columns if self.declared else None

    @functools.cached_property  # each answer asks
    def steady(self) -> bool:
        """True if votes do not drift from phase to phase, by the model and what was declared."""
        if isinstance(self.model, Keyed):
            return isinstance(self.model.concept, STEADY)
        return isinstance(self.model, STEADY) and bool(self.reader.columns.open)

    @property
    def one_column(self) -> bool:
        """True if it is a class of one column, of thresholds or intervals."""
        concept = self.model.concept if isinstance(self.model, Keyed) else self.model
        return isinstance(concept, Thresholds | UnionOfIntervals)

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
        What the models were made from, if they have no slots; a restored predictor trains them
        again. None if they have slots: the rows are gone then.
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

    def packed(self) -> bytes:
        """Return it for storing, but for the memo; that takes a time that grows with its rows."""
        return to_bytes(
            {
                "number": self.number,
                "n_rows": self.n_rows,
                "majority": self.majority.to_facts(),
                **models_to_facts(self.ensemble, self.recipe),
            }
        )

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
    def from_facts(cls, facts: dict[str, Any], setup: PhaseSetup) -> Self:
        """Rebuild it with its memo; train again if there are no slots.

        Older files have its facts as they are, and others as one array of bytes.
        """
        if "packed" in facts:
            facts = {**from_bytes(facts["packed"].tobytes()), "memo": facts["memo"]}
        ensemble, recipe = models_from_facts(facts, setup.train)
        majority = Majority.from_facts(facts["majority"])
        stored = facts["memo"]
        memo = dict(zip(from_rows(stored["keys"]), stored["noisy"], strict=True))
        memo.pop(NO_KEY, None)
        number, n_rows = facts["number"], facts["n_rows"]
        late = setup.rules.late_releases(n_rows)
        return cls(number, n_rows, late, ensemble, majority, recipe, memo)


@claim("FRESH")
@dataclass(frozen=True, repr=False)  # a message must not show rows
class ToLabel:
    """Supplied rows of the next phase, and the phase that labels them when that trains.

    A release was reserved for each of them.

    Parameters
    ----------
    rows : FreshRows
        The rows, as they were supplied.
    first : int
        Running number of the first of these releases in the phase.
    phase : OpenPhase
        What labels them.
    prior : Prior, or None
        The prior of that phase.
    trust : float
        How much the votes count against it.
    """

    rows: FreshRows
    first: int
    phase: OpenPhase
    prior: Prior | None
    trust: float

    @claim("FRESH")
    def labelled(self, reader: QueryReader, coins: Coins) -> tuple[Any, Integers]:
        """Return all rows, as they are kept, and their weights; the noise is drawn here.

        Some rows at a time: others answer meanwhile.
        """
        rows, phase, weights = self.rows.all(), self.phase, []
        n_shards = phase.ensemble.n_shards
        for start in range(0, len(rows), PART):
            table = reader.unpacked(rows[start : start + PART])
            numbers = self.first + start + np.arange(len(table))
            noisy = phase.majority.release(phase.ensemble.votes(table, numbers), coins)
            if self.prior is None:
                weights.append(weights_of_votes(noisy, n_shards))
            else:
                own = self.prior.weights(noisy, n_shards, self.trust, table, numbers)
                weights.append(own)
        return rows, np.concatenate(weights)


@claim("EVER", "LATE")
@dataclass(frozen=True, repr=False)  # a message must not show rows
class NextRows:
    """Rows that were handed over to the next phase, as they were kept: nothing is joined yet.

    To hand them over takes no time that grows with their number; the training does the rest.

    Parameters
    ----------
    kept : KeptRows
        Queries with their weights.
    labelled : KeptRows
        Rows that came with a label, and join them; a weight of 1 for the label.
    labels_elsewhere : bool
        Whether kept rows that got a label train a prior: a stand-in without weight takes their
        places.
    full_weight : int
        What a row weighs whose label is certain.
    to_label : ToLabel, or None
        Supplied rows, which the training labels.
    """

    kept: KeptRows
    labelled: KeptRows
    labels_elsewhere: bool
    full_weight: int
    to_label: ToLabel | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        supplied = 0 if self.to_label is None else len(self.to_label.rows)
        return supplied + self.kept.n_rows + self.labelled.n_rows

    @claim("LABELLED")
    def table(self, reader: QueryReader) -> tuple[Any, Any]:
        """Return all rows that have their weights, as they are kept, and these; None for none."""
        rows, weights = self.kept.rows, self.kept.weights
        if self.labels_elsewhere and self.kept.labelled_places:
            gone = np.array(sorted(self.kept.labelled_places))
            places, weights = np.arange(len(weights)), weights.copy()
            places[gone], weights[gone] = len(weights), 0
            rows = joined([rows, reader.packed(reader.stand_in)])[places]
        more = [(own, value * self.full_weight) for own, value in self.labelled.parts]
        tables = [part for part in (rows, *(own for own, _ in more)) if part is not None]
        values = [part for part in (weights, *(value for _, value in more)) if part is not None]
        return joined(tables), joined(values)

    @claim("EVER", "FRESH")
    def drawn(self, setup: PhaseSetup, source: Source) -> Recipe:
        """Return what the models are made from; labels, split and seeds are drawn here."""
        rows, weights = self.table(setup.reader)
        if self.to_label is not None:
            supplied = self.to_label.labelled(setup.reader, Coins(source))
            rows, weights = (
                own if other is None else joined([own, other])
                for own, other in zip(supplied, (rows, weights), strict=True)
            )
        n_shards = setup.rules.schedule.shards(self.n_rows)
        table = row_source(setup.reader.unpacked(rows))
        found = Recipe.draw(table, weights, n_shards, source, setup.reader.text_bytes)
        return replace(found, full_weight=self.full_weight)

    def to_facts(self, reader: QueryReader) -> dict[str, Any]:
        """Return it for storing."""
        rows, weights = self.table(reader)
        facts = {"rows": rows, "weights": weights, "full_weight": self.full_weight}
        if self.to_label is not None:
            facts["to_label"] = self.to_label.rows.to_facts()
            facts["first"] = self.to_label.first
        return facts

    @classmethod
    def from_facts(
        cls, facts: dict[str, Any], phase: OpenPhase, prior: Prior | None, trust: float
    ) -> Self:
        """Rebuild what ``to_facts`` returned, beside the phase and the prior of the state."""
        to_label = None
        if "to_label" in facts:
            rows = FreshRows.from_facts(facts["to_label"])
            to_label = ToLabel(rows, facts["first"], phase, prior, trust)
        return cls.of_table(facts["rows"], facts["weights"], facts["full_weight"], to_label)

    @classmethod
    def of_table(cls, rows: Any, weights: Any, full_weight: int, to_label: ToLabel | None) -> Self:
        """Return rows that are joined already."""
        kept = KeptRows()
        if rows is not None:
            kept.put(0, rows, weights)
        elsewhere = False  # nothing of it got a label that is not in its weights
        return cls(kept, KeptRows(), elsewhere, full_weight, to_label)


@claim("EVER")
def opened_phase(
    setup: PhaseSetup, number: int, recipe: Recipe, more: int = 0, prior: Prior | None = None
) -> OpenPhase:
    """Train a phase, and calibrate its noise for its releases and so many more.

    The rows are used once: nothing of them is kept where models have slots.
    """
    ensemble, n_rows = setup.train(recipe), recipe.rows.n_rows
    majority, late = setup.rules.majority(n_rows, more), setup.rules.late_releases(n_rows)
    # What grows with the noise, and so with the phase, is computed here, and remembered: what the
    # ledger tells of the cost, and the table from which noise is drawn. Nothing is drawn.
    majority.cost.epsilon(setup.rules.schedule.delta)
    majority.noise.draw(0, SYSTEM)
    kept = recipe.kept_for(ensemble)
    return OpenPhase(number, n_rows, late, ensemble, majority, kept, prior=prior)


def end_trainings() -> None:
    """Let no training run when the process ends: Python would end it within a library's own code.

    Some libraries abort the process then. What it trained is drawn anew after the next opening.
    """
    PROCESS_ENDS.set()
    for thread in list(TRAINING):
        thread.join()


atexit.register(end_trainings)


@claim("EVER", "LATE", "LABELLED")
class PhaseTraining:
    """The training of a phase, at once or in the background.

    It may be repeated if it was broken off, with other labels of supplied rows, another split and
    other seeds: nothing of it was seen.

    Parameters
    ----------
    setup : PhaseSetup
        What all phases have in common.
    number : int
        Of the phase.
    given : NextRows
        Its rows.
    source : Source
        Where labels of supplied rows, the split and the seeds come from.
    labelled : LabelledRows
        Rows that are for priors alone.
    prior : Prior, or None
        The prior of the phases before, if these rows renew it with this phase.
    """

    def __init__(
        self,
        setup: PhaseSetup,
        number: int,
        given: NextRows,
        source: Source,
        labelled: LabelledRows = NO_ROWS,
        prior: Prior | None = None,
    ) -> None:
        self.number, self.n_rows = number, given.n_rows
        self.waiting = labelled if prior is None else NO_ROWS  # for a later phase
        self._setup, self._given, self._source = setup, given, source
        self._labelled, self._prior = labelled, prior
        self._phase: OpenPhase | None = None
        self._packed: bytes | None = None
        self._content: bytes | None = None  # what will be written ahead
        self.is_ahead = False  # whether it was written ahead, or will be
        self._thread: threading.Thread | None = None
        self._frozen: Later | None = None  # the facts of what waits for later phases
        self._packing: threading.Thread | None = None

    def start(self) -> None:
        """Train in a thread of its own, unless it does so already."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._train_aside, daemon=True)
            TRAINING.add(self._thread)
            self._thread.start()

    def _train_aside(self) -> None:
        with suppress(SystemExit):  # the process ends
            self._train()

    def _train(self) -> OpenPhase:
        """Train models and prior, and calibrate the noise; all that takes long is here."""
        if self._phase is None:
            prior, setup, given = None, self._setup, self._given
            self._labelled.table  # noqa: B018 - joined here, and not by who asks
            if self._prior is not None:
                prior = self._labelled.train(self._prior, setup.reader, self._source)
            table = given.table(setup.reader)
            given = self._given = NextRows.of_table(*table, given.full_weight, given.to_label)
            recipe = given.drawn(setup, self._source)
            phase = opened_phase(setup, self.number, recipe, prior=prior)
            self._packed = phase.packed() if setup.rules.background else None
            self._phase = phase
        return self._phase

    def finish(self) -> OpenPhase:
        """Return the phase; whoever asks waits for it."""
        if self._thread is not None:
            self._thread.join()
        return self._train()  # at once, or again if the thread was broken off

    @property
    def packed(self) -> bytes | None:
        """The phase as it is stored, which a training in the background has made."""
        self.finish()
        return self._packed

    def freeze(self, rows: Later) -> None:
        """Let a thread make bytes of the phase, and of rows that wait for those after it.

        Parameters
        ----------
        rows : callable
            Returns the facts of these rows, as they are now.
        """
        self._packing = threading.Thread(target=self._pack_aside, args=(rows,), daemon=True)
        TRAINING.add(self._packing)
        self._packing.start()
        self._frozen = rows

    def _pack_aside(self, rows: Later) -> None:
        if self._thread is not None:
            self._thread.join()
        with suppress(SystemExit):
            if not PROCESS_ENDS.is_set():  # else the training may have been broken off
                self._content = self._pack(rows)

    def _pack(self, rows: Later) -> bytes:
        """Return what is written ahead, as soon as the phase is trained."""
        packed = self.packed
        if packed is None:
            raise AssertionError("only a training in the background is ahead")
        return to_bytes({"phase": {"packed": np.frombuffer(packed, dtype=np.uint8)}, **rows()})

    @property
    def is_frozen(self) -> bool:
        """True if bytes of what waits were made, or are being made."""
        return self._frozen is not None

    def ahead(self) -> bytes:
        """Return what will be written ahead from now on; whoever asks waits for it."""
        rows, packing = self._frozen, self._packing
        if rows is None or packing is None:
            raise AssertionError("nothing was frozen")
        packing.join()
        content, self._content = self._content, None
        self.is_ahead = True
        return self._pack(rows) if content is None else content  # again if that was broken off

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing: training will be repeated."""
        used = NO_ROWS if self._prior is None else self._labelled
        return {
            "number": self.number,
            **self._given.to_facts(self._setup.reader),
            "renews": self._prior is not None,
            "labelled": used.to_facts(),
        }

    @classmethod
    def from_facts(
        cls,
        facts: dict[str, Any],
        setup: PhaseSetup,
        phase: OpenPhase,
        prior: Prior | None,
        trust: float,
        source: Source,
    ) -> Self:
        """Rebuild what ``to_facts`` returned.

        Parameters
        ----------
        facts : dict
            What was stored.
        setup : PhaseSetup
            What all phases have in common.
        phase : OpenPhase
            The phase that answers.
        prior : Prior, or None
            The prior of the state.
        trust : float
            How much the votes of that phase count against it.
        source : Source
            Where the split and the seeds come from.
        """
        given = NextRows.from_facts(facts, phase, prior, trust)
        labelled = facts["labelled"]
        labels = (LabelledRows.from_facts(labelled), prior) if facts["renews"] else ()
        return cls(setup, facts["number"], given, source, *labels)
