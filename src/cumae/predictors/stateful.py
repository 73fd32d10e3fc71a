"""Predictors whose whole memory is one state, and what every such state has in common."""

from __future__ import annotations

import functools
import json
import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.codec import from_plain, to_plain
from cumae.concepts import Keyed
from cumae.errors import BudgetExhausted, InvalidParameter
from cumae.live import refuse_within
from cumae.mechanisms import Coins
from cumae.predictors.answering.calls import AnyStep, Asked, Call, ProposedAnswers
from cumae.predictors.answering.counter import Counter
from cumae.predictors.answering.journal import Journal
from cumae.predictors.base import Predictor, Training, check_fitted
from cumae.predictors.estimators import estimator_from_plain, estimator_to_plain, given_as
from cumae.predictors.queries import QueryReader
from cumae.predictors.state import Arrays, State
from cumae.privacy import Guarantee
from cumae.quiet import HiddenFailures
from cumae.randomness import SYSTEM, SeededSource, Source
from cumae.savers import saver


@dataclass(frozen=True, repr=False)  # a message must not show what it holds
class Fitted:
    """The values that ``fit`` fixed for ever.

    Parameters
    ----------
    parameters : dict from str to object
        Of the constructor, without the model, the budget and the seed.
    guarantee : Guarantee
        What was promised.
    classes : array
        The declared classes.
    model : classifier, Pipeline or ConceptClass
        What each shard trains.
    model_from : str, or None
        The parameter that gave the model; None for the default one.
    reader : QueryReader
        How rows and queries are read.
    source : Source
        Where random bits come from; it is never stored.
    shown : dict from str to object
        Public attributes, by their names.
    """

    parameters: dict[str, Any]
    guarantee: Guarantee
    classes: NDArray[Any]
    model: Any
    model_from: str | None
    reader: QueryReader
    source: Source
    shown: dict[str, Any] = field(default_factory=dict)

    @property
    def n_classes(self) -> int:
        """Number of declared classes."""
        return len(self.classes)

    @property
    def shard_model(self) -> Any:
        """The estimator in the form in which a shard trains it."""
        return self.reader.shard_model(self.model)

    @claim("STORE", "EVER", "QUERY", "BBL")
    def named(self, labels: Integers) -> NDArray[Any]:
        """Return declared classes for places in them, and -1 where there is no answer.

        The type follows from the classes and from whether there may be queries without an answer,
        not from the answers.
        """
        if self.may_abstain or (labels < 0).any():
            return self._classes_and_none[labels]
        return self.classes[labels]

    @functools.cached_property
    def _classes_and_none(self) -> NDArray[Any]:
        """The declared classes and, at the end, where the place -1 is, the answer -1."""
        kind = np.int64 if self.classes.dtype.kind in "iu" else object
        return np.array([*self.classes.tolist(), -1], dtype=kind)

    @functools.cached_property  # each answer asks
    @claim("STORE", "EVER", "QUERY", "BBL")
    def may_abstain(self) -> bool:
        """True if a query may get -1 instead of a class, by what was fixed at fit."""
        return (
            bool(self.parameters.get("abstain", True)) and self.shown.get("mechanism_") != "offline"
        )

    def given(self) -> dict[str, Any]:
        """Return the parameters, with the model."""
        asked = self.model.concept if isinstance(self.model, Keyed) else self.model
        model = {} if self.model_from is None else {self.model_from: asked}
        return {**self.parameters, **model}

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing."""
        return {
            # As one text: names of columns and classes may be of any type.
            "parameters": json.dumps(to_plain(self.parameters), allow_nan=False),
            "guarantee": self.guarantee,
            "classes": self.classes,
            "model": estimator_to_plain(self.model),
            "model_from": self.model_from,
            "reader": {part.name: getattr(self.reader, part.name) for part in fields(QueryReader)},
            "shown": self.shown,
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any], estimator: Any) -> Self:
        """Rebuild what ``to_facts`` returned; ``estimator`` is that of ``restore``."""
        names = list(facts["shown"])
        if not isinstance(facts["guarantee"], Guarantee) or any(
            name[:1] == "_" or name[-1:] != "_" for name in names
        ):
            raise TypeError("no guarantee, or no names")  # from_arrays says that it is broken
        return cls(
            from_plain(json.loads(facts["parameters"])),
            facts["guarantee"],
            facts["classes"],
            estimator_from_plain(facts["model"], given_as("estimator", estimator)),
            facts["model_from"],
            QueryReader(**facts["reader"]),
            SYSTEM,
            facts["shown"],
        )


class StatefulPredictor(Predictor):
    """A predictor that remembers one state, and can be stored and restored."""

    state_class: ClassVar[type[State]]
    joins_calls: ClassVar[bool] = False  # whether several calls may be one batch
    _counter_: Counter
    _promise_: Guarantee  # set last: a fit that was broken off has none

    @property
    def _state_(self) -> Any:
        """The state, which events change."""
        return self._counter_.state

    def save_to(self, path: str | Path, *, keys: str | None = None) -> None:
        """Move the predictor into a file that survives restarts; this object refuses afterwards.

        Go on with ``cumae.open(path)``. The file, and the keys in a folder beside it, are readable
        by their owner only. It needs the packages of ``cumae[store]``. At a PostgreSQL address
        several processes may have it open; it needs ``cumae[postgres]``. An
        :class:`~cumae.EverlastingPredictor` trains its next phases in the background from here on,
        and answers meanwhile, unless its parameters ``late`` and ``background`` say otherwise.

        Parameters
        ----------
        path : str or Path
            A file that does not exist yet, or an address, ``postgresql://user@host/database``.
        keys : str, or None
            A command that keeps the keys, or ``"folder:PATH"``, instead of the folder beside
            the file. An address needs one of them.

        Raises
        ------
        InvalidParameter
            If there is a file already.
        LiveState
            If the predictor lives in a file already.
        StoreFailed
            If the file cannot be written. The predictor goes on in memory then, unless a command
            for keys failed with the last of them, the mark: the file may be valid then.
        """
        counter = self._fitted_counter()
        counter.alone(lambda: saver().save_state(counter, path, keys))

    def rotate_key(self) -> None:
        """Encrypt a durable oracle anew under a new key; answers for retries end."""
        self._fitted_counter().rotate()

    def __enter__(self) -> Self:
        """Return it; at the end of the block it is closed, so that its file can be opened again."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Let go of the file of a durable oracle; one in memory has nothing to let go of.

        Answers that are being given are recorded first.
        """
        self._fitted_counter().close()

    def _fitted_counter(self) -> Counter:
        check_fitted(self)
        return self._counter_

    def _model_from(self) -> str | None:
        if self.estimator is not None:
            return "estimator"
        return None if self.concept_class is None else "concept_class"

    def _stored_parameters(self) -> dict[str, Any]:
        """Return the parameters that are stored as they are."""
        other = ("estimator", "concept_class", "budget", "random_state")
        given = self.get_params(deep=False)
        return {name: given[name] for name in given if name not in other}

    def _fitted(
        self, training: Training, guarantee: Guarantee, source: Source, **shown: Any
    ) -> Fitted:
        """Return what is fixed by now, with public attributes; call it after ``_start``."""
        model = (training.model, self._model_from(), training.reader)
        return Fitted(
            self._stored_parameters(), guarantee, self.classes_, *model, source, dict(shown)
        )

    @property
    def guarantee_(self) -> Guarantee:  # type: ignore[override]
        """The promise: for whom, how much, and under which assumptions."""
        refuse_within(self)
        check_fitted(self)
        return self._promise_

    @claim("STORE")
    def _seen_state(self) -> Any:
        """Return the state, to read what follows from counts; within a call it may not be read."""
        refuse_within(self)
        check_fitted(self)
        return self._counter_.state

    def _settled_state(self) -> Any:
        """Return the state when nothing of it can be lost: then what is published may be seen."""
        return self._fitted_counter().settled()

    def _go_on(
        self, state: State, journal: Journal | None = None, counter: type[Counter] = Counter
    ) -> None:
        """Take a state as one's own; the guarantee comes last, when everything else is there."""
        self._counter_ = counter(self, state, journal)
        self._reader_ = state.fitted.reader
        for name, value in state.fitted.shown.items():
            setattr(self, name, value)
        self._promise_ = self._counter_.journal.promised(state.fitted.guarantee)

    def to_arrays(self) -> Arrays:
        """Return everything that the predictor must remember, as plain arrays.

        They hold private rows and models that no privacy protects: keep them as safe as the rows
        of ``fit``. :func:`cumae.predictors.state.restore` makes a predictor of them that goes on
        from here; this one must not be used any more then.

        Returns
        -------
        dict from str to array
            Arrays of numbers, texts and bytes; ``numpy.savez`` can write them.
        """
        counter = self._fitted_counter()

        def copied() -> Arrays:
            counter.journal.check_copy()
            arrays: Arrays = counter.state.to_arrays()
            return arrays

        found: Arrays = counter.alone(copied)
        return found

    @claim("STORE")
    def warm_up(self) -> None:
        """Load all that an answer needs, so that the first one takes no longer than others.

        Made-up rows are answered with coins of a fixed seed, and the answers are thrown away.
        Nothing is reserved, recorded or applied, so that they cost nothing and change nothing.
        """
        counter = self._fitted_counter()
        counter.alone(lambda: self._answer_made_up(counter.state))

    def _answer_made_up(self, state: Any) -> None:
        for X in self._reader_.made_up_queries():
            # Whatever fails here fails again when somebody asks.
            with HiddenFailures(), np.errstate(all="ignore"):
                self._answers(self._read(Call(X)), state, state.spent, Coins(SeededSource(0)))

    # Answering

    def predict_calls(self, calls: Sequence[Call]) -> list[NDArray[Any] | Exception]:
        """Answer several calls for which one thread is responsible, as a server has them.

        It is as if each call were given to ``predict``, in this order; but they share a lock and a
        commit, and where calls can be joined, the votes of a batch. A call that is refused, or
        fails, does not change what becomes of the others. Calls of other threads may be answered
        with them.

        Parameters
        ----------
        calls : sequence of Call
            What is asked.

        Returns
        -------
        list of array or Exception
            For each call what ``predict`` would return, or the error that it would raise.

        Raises
        ------
        InvalidParameter
            If something is no ``Call``; nothing was answered or spent then.
        LiveState
            If it is used in another process, or within a call of the same thread.

        Examples
        --------
        >>> import numpy as np
        >>> from cumae import Call, EverlastingPredictor
        >>> from cumae.concepts import Thresholds
        >>> x = np.random.default_rng(0).random((20_000, 1))
        >>> oracle = EverlastingPredictor(Thresholds(), epsilon=3.0).fit(x, x[:, 0] > 0.3)
        >>> first, second = oracle.predict_calls([Call([[0.9], [0.8]]), Call(np.ones((1, 7)))])
        >>> first.shape, type(second).__name__, oracle.answered_
        ((2,), 'InvalidData', 2)
        """
        check_fitted(self)
        calls = list(calls)
        if not all(isinstance(call, Call) for call in calls):
            raise InvalidParameter("calls must be a list of cumae.Call, such as [Call([[0.5]])].")
        return [call.outcome() for call in self._counter_.answer(self, calls)] if calls else []

    # What the counter asks. Nothing here changes the state.

    def _read(self, call: Call) -> Asked:
        self._check_plain(call)
        return Asked(self._queries(call.X), as_counts=call.as_counts)

    def _in_order(self, call: Call) -> Call:
        return call._replace(X=self._reader_.in_order(call.X))

    def _check_plain(self, call: Call) -> None:
        """Refuse ids of users, clients and queries, and counts where there are none."""
        if call.is_named:
            raise InvalidParameter(
                f"{type(self).__name__} has no use for users, clients and query_ids of a call; "
                "leave them out."
            )
        if call.as_counts and not hasattr(self, "noisy_votes"):
            raise InvalidParameter(f"{type(self).__name__} releases no counts; ask for labels.")

    @abstractmethod
    def _check(self, asked: Asked, state: Any) -> None:
        """Refuse queries that cannot be answered whole, before anything is spent."""

    @abstractmethod
    def _room(self, state: Any) -> int:
        """Return how many queries can be answered before something else is due."""

    @abstractmethod
    def _answers(self, part: Asked, state: Any, reserved: Any, coins: Coins) -> ProposedAnswers:
        """Return what the predictor would answer; draw with the coins."""

    def _no_answers(self, asked: Asked) -> Integers:
        return np.zeros((0, len(self.classes_)) if asked.as_counts else 0, dtype=np.int64)

    def _due(self, state: Any, coins: Coins, *, wanted: bool) -> AnyStep | None:
        """Return the step to the next phase that is due now: here there are no phases."""

    def _ended(self, answered: int, asked: int) -> BudgetExhausted:
        return BudgetExhausted(
            f"{asked - answered} of {asked} queries got no answer: none is left; fit again, which "
            "costs again.",
            remaining=0,
            asked=asked,
            answered=answered,
        )

    @classmethod
    def from_state(
        cls, state: Any, journal: Journal | None = None, counter: type[Counter] = Counter
    ) -> Self:
        """Return a fitted predictor that goes on from a state, which nobody else uses.

        Parameters
        ----------
        state : State
            What it goes on from.
        journal : Journal, or None
            What records changes of the state; None keeps them in memory.
        counter : type of Counter
            What counts its answers.
        """
        found = cls(**state.given())
        reader = state.fitted.reader
        found.n_features_in_, found.classes_ = reader.n_features, state.fitted.classes
        if reader.columns.original_names is not None:
            found.feature_names_in_ = np.array(reader.columns.original_names, dtype=object)
        found._go_on(state, journal, counter)
        return found


def counter_of(predictor: StatefulPredictor) -> Any:
    """Return the counter of a fitted predictor, which has its state."""
    return predictor._fitted_counter()


def check_votes(epsilon: float, delta: float) -> None:
    """Refuse privacy parameters under which no phase could answer by noisy votes.

    Parameters
    ----------
    epsilon, delta : float
        The promise. An infinite epsilon asks for no noise, and goes with any delta.
    """
    if epsilon == 0 or (delta == 0 and epsilon < math.inf):
        raise InvalidParameter(
            f"epsilon={epsilon!r}, delta={delta!r}: votes need both above 0; give delta=1e-6, say. "
            "For delta=0 there is QueryRelease with mechanism='laplace'."
        )


def check_classes(classes: Any) -> None:
    """Refuse -1 as a declared class, because unusable queries get it as their answer."""
    if -1 in list(classes):
        raise InvalidParameter("classes have -1, the answer to unusable queries; rename it.")


class PhasedPredictor(StatefulPredictor):
    """A predictor that answers in phases; all public numbers are those of its state."""

    @property
    def phase_(self) -> int:
        """Number of the phase, from 1."""
        return int(self._seen_state().phase_number)

    @property
    def answered_(self) -> int:
        """Answers given since fit: a count of queries, which may be read within a call as well."""
        return int(self._fitted_counter().state.answered)

    @property
    def n_shards_(self) -> int:
        """Models of this phase."""
        return int(self._seen_state().phase.ensemble.n_shards)

    @property
    def noise_per_vote_(self) -> float:
        """Scale of the noise as a share of the votes; with "between", half of the gap."""
        return float(self._seen_state().phase.noise)
