"""Answers for ever under one guarantee: EverlastingPredictor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.data import Declared, check_ids, row_source
from cumae.effort import Effort
from cumae.errors import BudgetExhausted, InvalidData, InvalidParameter
from cumae.learners import Learner
from cumae.live import one_at_a_time
from cumae.outlook import Fact
from cumae.parameters import CHANCE, DELTA, EPSILON, Count, Flag, Kind, Number, Object, Or
from cumae.predictors.base import ESTIMATOR, SHARED_PARAMETERS, Training
from cumae.predictors.everlasting.fitting import (
    choose_trust,
    decide,
    first_phase,
)
from cumae.predictors.everlasting.keeping import Admission
from cumae.predictors.everlasting.margins import weights_of_labels, weights_of_votes
from cumae.predictors.everlasting.phases import PhaseTraining, School, row_keys
from cumae.predictors.everlasting.prior import combined, trust_in
from cumae.predictors.everlasting.renewal import (
    check_new,
    check_waiting,
    declared_labels,
    enough,
    with_labels,
)
from cumae.predictors.everlasting.rules import check_together
from cumae.predictors.everlasting.state import EverlastingState
from cumae.predictors.joining import answering_together
from cumae.predictors.recipes import Recipe
from cumae.predictors.stateful import PhasedPredictor, changing
from cumae.privacy import Budget, Guarantee
from cumae.privacy.plans import Plan
from cumae.randomness import Source, permutation, source_for


@claim("EVER", "USER", "FRESH", "MEMO", "LATE")
class EverlastingPredictor(PhasedPredictor):
    """Answer classification queries for ever, protecting the training rows and every query.

    Rows are split into disjoint shards, each trains a model, and every query is answered by the
    models' vote with fresh integer noise. The query is kept with its noisy margin. After as many
    answers as the noise was calibrated for, the kept queries become the rows of the next phase,
    and everything older is destroyed. A row is used in one phase only, so that the guarantee
    does not grow.

    Parameters
    ----------
    estimator : classifier, Pipeline or ConceptClass, or None
        A scikit-learn classifier or Pipeline, or a class of ``cumae.concepts``; None means
        ``DecisionTreeClassifier(max_depth=4)``. Margins become ``sample_weight``; an estimator
        that takes none gets labels drawn by their share of the votes. Without a prior, answers of
        estimators drift from phase to phase, and may end up all the same.
    epsilon : float of 0 or more
        Privacy parameter, for ever. ``fit`` refuses 0, with which nothing could be answered.
    delta : float from 0 and below 1
        Privacy parameter, for ever. ``fit`` refuses 0 unless epsilon is infinite.
    concept_class : ConceptClass, or None
        The same as ``estimator``, for a class of ``cumae.concepts``.
    shard_size : int of 1 or more, or "auto"
        Rows of a shard. With ``"auto"`` each phase has its own: as many as make the noise 0.12 of
        the votes, but at least six. For a concept class of one column it is 0.08, and three. An
        estimator that needs more rows gets them in all phases, by a trial on made-up tables. The
        size follows from the number of rows, epsilon, delta, the estimator and the declared
        columns alone.
    growth : float of 1 or more, or "auto"
        Answers of a phase for each of its rows, and with them rows of the next phase; finite. More
        of them need more noise in this phase, and leave less of it to the next one. ``"auto"`` is
        1.6; with ``fresh`` it means that the next phase labels as many rows as were supplied, up
        to 1.6 times as many as this one has.
    max_rows : int of 1 or more
        Phases grow up to so many rows, and stay at that size: they are what must be remembered. A
        first phase with more rows is not cut.
    prior : Learner or bool, or None
        A private learner that is trained on rows of its own and published; the votes correct it. It
        gets the epsilon and delta above, and is fitted anew. None takes
        :class:`~cumae.PrivateKernelClassifier` for scikit-learn estimators, with any number of
        classes, and :class:`~cumae.PrivateLearner` for concept classes of one column and for boxes
        (without declared bounds for thresholds and intervals only). Other concept classes have
        none. Estimators have none, with a warning, if columns of text were not declared, or if
        there are too few rows for it. False takes none, silently.
    prior_share : float above 0 and below 1, or "auto"
        Share of the training rows that the prior gets; up to 5 % more choose how much the votes
        count against it. ``"auto"`` leaves a quarter of the rows to the votes, or fewer if these
        are enough for a noise of 0.3 of the votes. After the first phase, whose models saw true
        labels, votes count for 0.2 at most.
    balanced : bool
        Whether the classes of a shard weigh the same for a scikit-learn estimator. Self-training
        loses the rarer class otherwise; classes with very different shares need a prior.
    user_ids : bool
        Whether rows belong to users: at most one row per user is ever kept, and the guarantee
        holds for users. ``fit`` and ``predict`` then take ``users=``.
    fresh : bool
        Whether rows of ``add_unlabelled`` take the place of queries, so that queries leave no
        trace and nobody can teach the predictor by asking. Labelling them counts towards the
        answers of a phase, so a number for ``growth`` must be above 1.
    memoize : bool
        Whether the same question gets the same answer within a phase.
    late : float from 0 to 0.5
        Share of a phase that is still answered by the old models while new ones train; its queries
        are kept for the phase after.
    background : bool
        Whether that training runs in a thread of its own; needs ``late``.
    client_cap : float above 0 and below 1, or None
        Largest share of a phase's rows that one client may supply; ``predict`` then takes
        ``clients=``.
    columns : mapping or sequence, or None
        As in :class:`~cumae.QueryRelease`.
    classes : sequence of labels
        As in :class:`~cumae.QueryRelease`.
    n_jobs : int, or None
        As in :class:`~cumae.QueryRelease`.
    progress : bool, or None
        As in :class:`~cumae.QueryRelease`.
    budget : Budget, or None
        As in :class:`~cumae.QueryRelease`.
    random_state : int or Source, or None
        As in :class:`~cumae.QueryRelease`.

    Attributes
    ----------
    guarantee_ : Guarantee
        For one training row or one query, with its zCDP form where there is one.
    phase_, answered_ : int
        Number of the phase, from 1, and answers given since fit.
    remaining_ : float
        Infinite; finite if rows run short under ``fresh``, ``user_ids`` or ``client_cap``.
    n_shards_ : int
        Models of this phase.
    noise_per_vote_ : float
        Standard deviation of the noise of this phase as a share of the votes.
    size_trial_ : list of dict
        Sizes of shards that were tried on made-up tables for the first phase, and the share of
        right answers there; empty for a concept class, or if ``shard_size`` was given.
    prior_ : Learner, or None
        The published prior, where there is one.
    trust_ : float, or None
        How much the votes of the first phase count against the prior.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae import EverlastingPredictor
    >>> from cumae.concepts import Thresholds
    >>> x = np.random.default_rng(0).random((20_000, 1))
    >>> oracle = EverlastingPredictor(Thresholds(), epsilon=3.0, delta=1e-6)
    >>> oracle.fit(x, x[:, 0] > 0.3).predict([[0.05], [0.9]]).shape
    (2,)
    >>> oracle.phase_, oracle.answered_, oracle.remaining_
    (1, 2, inf)
    >>> type(oracle.prior_).__name__
    'PrivateLearner'
    """

    _state_: EverlastingState

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "estimator": ESTIMATOR,
        "epsilon": EPSILON,
        "delta": DELTA,
        "concept_class": Or(None, Object("ConceptClass")),
        "shard_size": Or("auto", Count(1)),
        "growth": Or("auto", Number(1.0, math.inf, below=True, such_as="1.5")),
        "max_rows": Count(1),
        "prior": Or(None, Object("Learner or bool")),
        "prior_share": Or("auto", CHANCE),
        "balanced": Flag(),
        "user_ids": Flag(),
        "fresh": Flag(),
        "memoize": Flag(),
        "late": Number(0.0, 0.5, such_as="0.1"),
        "background": Flag(),
        "client_cap": Or(None, CHANCE),
        **SHARED_PARAMETERS,
    }
    counts_unusable = True

    _larger_shards = "a larger shard_size"

    def __init__(
        self,
        estimator: Any = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        concept_class: ConceptClass | None = None,
        shard_size: int | str = "auto",
        growth: float | str = "auto",
        max_rows: int = 1_000_000,
        prior: Learner | bool | None = None,
        prior_share: float | str = "auto",
        balanced: bool = True,
        user_ids: bool = False,
        fresh: bool = False,
        memoize: bool = False,
        late: float = 0.0,
        background: bool = False,
        client_cap: float | None = None,
        columns: Declared = None,
        classes: Any = (0, 1),
        n_jobs: int | None = None,
        progress: bool | None = None,
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.concept_class = concept_class
        self.shard_size = shard_size
        self.growth = growth
        self.max_rows = max_rows
        self.prior = prior
        self.prior_share = prior_share
        self.balanced = balanced
        self.user_ids = user_ids
        self.fresh = fresh
        self.memoize = memoize
        self.late = late
        self.background = background
        self.client_cap = client_cap
        self.columns = columns
        self.classes = classes
        self.n_jobs = n_jobs
        self.progress = progress
        self.budget = budget
        self.random_state = random_state

    # Fitting

    @claim("EVER", "PRIOR", "USER")
    @one_at_a_time
    def fit(self, X: Any, y: Any, *, users: Any = None) -> Self:
        """Train the first phase, and pay for everything that will ever be asked.

        Parameters
        ----------
        X, y : array-like
            Private rows and labels, as in :class:`~cumae.QueryRelease`.
        users : list or array, or None
            With ``user_ids``, whom each row belongs to.

        Returns
        -------
        EverlastingPredictor
            Itself.
        """
        training = self._training(X, y)
        check_together(self)
        ids = check_ids(users, self.user_ids, training.rows.n_rows, "users")
        admission = Admission(self.user_ids)
        kept = np.flatnonzero(admission.admit(training.rows.n_rows, ids, None))
        source = source_for(self.random_state)
        decision = decide(self, training, len(kept), self._try_out, source)
        rules, prior = decision.rules, decision.prior
        guarantee = self._start(training, decision.plan, source)
        school = School(rules, training.model, training.reader, self.columns is not None)
        order = kept[permutation(len(kept), source)]  # the split into parts, from counts alone
        trust_end = rules.prior_rows + rules.trust_rows
        if prior is not None:
            prior.fit(training, order[: rules.prior_rows], source)
        phase = first_phase(training, order[trust_end:], school, source)
        trust = None
        if prior is not None:
            places = order[rules.prior_rows : trust_end]
            trust = choose_trust(training, places, prior, phase, self.epsilon, source)
        admission.new_phase(rules.cap(phase.n_rows))
        fitted = self._fitted(training, guarantee, source, size_trial_=decision.sizes_tried)
        self._go_on(EverlastingState(fitted, school, prior, trust, phase, admission))
        return self

    def _decided(
        self, training: Training, n_public: int, source: Source
    ) -> tuple[Plan, dict[str, Fact], list[Effort] | None]:
        del n_public
        check_together(self)
        decision = decide(self, training, training.rows.n_rows, self._try_out, source)
        return decision.plan, decision.facts(source), decision.prior_work()

    def _promised(self, plan: Plan, source: Source) -> Guarantee:
        # Later phases may be of other sizes; each is within what was asked for.
        return replace(super()._promised(plan, source), epsilon=float(self.epsilon))

    # The state

    def _stored_parameters(self) -> dict[str, Any]:
        """Return the parameters that are stored as they are; a learner is stored as the prior."""
        stored = super()._stored_parameters()
        if isinstance(self.prior, Learner):
            del stored["prior"]
        return stored

    # What is public

    def __str__(self) -> str:
        """Return in a few lines what may be known of a fitted one; else how it was made."""
        if not hasattr(self, "guarantee_"):
            return repr(self)
        prior, left = self._state_.prior, self.remaining_
        given = f"{self.answered_:,} answers were given"
        given += ", any number is left" if left == math.inf else f", {left:,} are left"
        votes = f"noise is {self.noise_per_vote_:.0%} of its {self.n_shards_:,} votes"
        told = "No prior."
        if prior is not None:
            told = f"Prior: {type(prior.learner).__name__}; trust in votes: {self.trust_:g}."
        first = f"EverlastingPredictor in phase {self.phase_}: {given}; {votes}."
        return f"{first}\n{told}\nPromise: {self.guarantee_}"

    @property
    def remaining_(self) -> float:
        """Answers left: infinite, unless rows run short."""
        state = self._seen_state()
        left: float = state.rows_from.remaining(state)
        return left

    @property
    def prior_(self) -> Learner | None:
        """The published prior; None where there is none."""
        prior = self._settled_state().prior
        return None if prior is None else prior.learner

    @property
    def trust_(self) -> float | None:
        """How much the votes of the first phase count against the prior."""
        trust: float | None = self._seen_state().trust
        return trust

    # Answering

    @claim("EVER", "USER", "FRESH", "MEMO", "LATE")
    @answering_together
    def predict(
        self, X: ArrayLike, *, users: Any = None, clients: Any = None, requests: Any = None
    ) -> NDArray[Any]:
        """Answer queries in order; each is kept with its noisy margin for the next phase.

        A batch may cross phases. A query with unusable cells gets the answer -1, and counts like
        any other: an error would tell about it in the answers to the others, and so would
        the end of a phase if it did not count. With classes that are no integers the answers are
        an array of objects, in which -1 is an integer.

        Parameters
        ----------
        X : array-like
            Queries.
        users, clients : list or array, or None
            With ``user_ids`` or ``client_cap``, who asks each of them.
        requests : list or array, or None
            An id for each query by which ``add_labels`` may name it later. Ids are public, and
            those of different people must differ.
        request_id : str, int or tuple of these, or None
            A name for the whole request. An oracle in a file gives a repeated one its stored
            answers, for free.

        Returns
        -------
        array
            One of the declared classes for each query, or -1.

        Raises
        ------
        BudgetExhausted
            If rows run short; nothing was answered or spent then.
        """
        table, usable = self._reader_.private(X)
        state, rules = self._state_, self._state_.rules
        owners = check_ids(users, rules.user_ids, len(usable), "users")
        askers = check_ids(clients, rules.client_cap is not None, len(usable), "clients")
        names = check_ids(requests, requests is not None, len(usable), "requests")
        if names is not None:
            check_new(names, state)
        rows_from, count = state.rows_from, len(usable)
        rows_from.check_batch(state, count, owners, askers)
        parts = []
        start = 0
        while start < count:
            self._switch()
            part = slice(start, min(count, start + rows_from.until_next(state)))
            named = names and list(zip(names[part], usable[part].tolist(), strict=True))
            ids = (owners and owners[part], askers and askers[part], named)
            parts.append(self._answer(table[part], usable[part], ids))
            start = part.stop
        if len(parts) != 1:  # none if nothing is asked
            parts = [np.concatenate([np.zeros(0, dtype=np.int64), *parts])]
        return self._named(parts[0])

    @claim("USER")
    def _room(self) -> int:
        """Return how many queries of several calls can be one batch.

        Those are answered before the next phase is prepared, so that no call is refused or waits
        for a training because of another one. Where somebody must be named with each query, calls
        are answered one by one.
        """
        state, rules = self._state_, self._state_.rules
        if self._reader_.as_frames or rules.user_ids or rules.client_cap is not None:
            return 0
        return state.rows_from.until_next(state)

    @claim("EVER")
    def _predict_joined(self, tables: list[Any]) -> list[Any]:
        """Answer the queries of several calls as one batch.

        Each call is read by itself. One that cannot be read gets its error in the place of
        answers, before anything is drawn.
        """
        read, table, usable = self._reader_.private_calls(tables)
        if len(usable) > self._room():
            raise InvalidData("X changed while it was read; ask again.")
        labels = self._named(self._answer(table, usable, (None, None, None)))
        found: list[Any] = []
        start = 0
        for one in read:
            if isinstance(one, Exception):
                found.append(one)
            else:  # a copy: nobody gets an array that holds the answers of others
                found.append(labels[start : start + one].copy())
                start += one
        return found

    @claim("EVER", "MEMO")
    def _answer(self, table: Any, usable: NDArray[np.bool_], ids: tuple[Any, ...]) -> Integers:
        """Answer within the phase, and keep what was asked with its weights.

        A stand-in has no weight, but a place like any other query.
        """
        labels, weights = self._release(table)
        if not usable.all():
            labels[~usable], weights[~usable] = -1, 0
        kept = table if self._state_.rows_from.keeps_queries else None
        self._journal_.answered(len(labels), kept, weights, ids)
        self._prepare()
        return labels

    @claim("EVER", "MEMO")
    def _release(self, table: Any) -> tuple[Integers, Integers]:
        """Return labels and whole weights from fresh noise; both are functions of it."""
        state, phase = self._state_, self._state_.phase
        keys = row_keys(table) if state.rules.memoize else None
        votes = phase.ensemble.votes(table, phase.query_numbers(len(table), keys, table.shape[1]))
        if state.prior is None:
            noisy = phase.release(votes, keys)
            weights = weights_of_votes(noisy, phase.ensemble.n_shards)
            return np.asarray(noisy.argmax(axis=1), dtype=np.int64), weights
        # Before the release, which moves the running numbers on by the size of the batch.
        numbers = phase.query_numbers(len(table), keys, state.prior.width)
        shares = state.prior.shares(table, numbers)
        noisy = phase.release(votes, keys)
        trust = trust_in(phase.number, state.trust or 0.0, steady=state.school.steady)
        weights = combined(noisy, phase.ensemble.n_shards, trust, shares)
        return np.asarray(weights.argmax(axis=1), dtype=np.int64), weights

    # Phases

    @claim("EVER", "LATE", "FRESH")
    def _prepare(self) -> None:
        """Begin the next phase's training once its rows are complete: a matter of counts."""
        state = self._state_
        if state.following is not None or not state.rows_from.complete(state):
            return
        rows, weights, supplied = state.rows_from.take(state, lambda rows: self._release(rows)[1])
        rows, weights, labelled = with_labels(state, rows, weights)
        n_shards, source = state.rules.schedule.shards(len(rows)), state.fitted.source
        recipe = Recipe.draw(row_source(rows), weights, n_shards, source, state.full_weight)
        renewed = state.prior if enough(labelled, state.prior) else None
        number = state.phase.number + 1
        following = PhaseTraining(state.school, number, recipe, labelled, renewed)
        self._journal_.prepared(following, supplied)
        if state.rules.background:
            following.start()

    @claim("EVER", "LATE", "FRESH")
    def _switch(self) -> None:
        """Go on to the next phase when this one's releases are used up."""
        state = self._state_
        if not state.rows_from.used_up(state):
            return
        self._prepare()  # an earlier call may have been broken off before it
        if state.following is None:
            raise BudgetExhausted(
                f"phase {state.phase.number} is used up, and the next one has too few rows; supply "
                f"more. {state.answered} queries since fit were answered and count; a broken batch "
                "is not returned."
            )
        self._journal_.training()
        self._journal_.entered(state.following.finish(state.fitted.source))

    # Labels that come later, and fresh rows

    @claim("LABELLED")
    @changing
    def add_labelled(self, X: ArrayLike, y: ArrayLike, *, users: Any = None) -> Self:
        """Add labelled rows to those of the next phase; they are protected like training rows.

        They cost nobody else anything. A row with a cell that cannot be used counts like any other,
        but says nothing.

        Parameters
        ----------
        X, y : array-like
            Rows, and their labels: declared classes.
        users : list or array, or None
            With ``user_ids``, whom each row belongs to. A user who has a row already, in training
            or as a query, gets no second one.

        Returns
        -------
        EverlastingPredictor
            Itself.

        Raises
        ------
        InvalidData
            If a label is not a declared class; then nothing is kept.
        """
        table, usable = self._reader_.private(X)
        codes = declared_labels(y, len(usable), self.classes)
        owners = check_ids(users, self._state_.rules.user_ids, len(usable), "users")
        codes = np.where(usable, codes, -1)
        weights = weights_of_labels(codes, self._state_.rules.n_classes)
        self._journal_.labelled(table, weights, owners)
        return self

    @claim("LABELLED")
    @changing
    def add_labels(self, requests: Any, y: ArrayLike) -> Self:
        """Tell the right labels of earlier queries, which take the place of the noisy answers.

        It is possible as long as the training of the next phase has not begun. Until then, a later
        label takes the place of an earlier one, so that a mistake can be mended.

        Parameters
        ----------
        requests : list or array
            Ids that were given to ``predict``.
        y : array-like
            A declared class for each of them.

        Returns
        -------
        EverlastingPredictor
            Itself.

        Raises
        ------
        InvalidParameter
            If one of the queries is not kept any more, or never was; then nothing is changed.
        InvalidData
            If a label is not a declared class; then nothing is changed.
        """
        count = len(requests) if hasattr(requests, "__len__") else 0
        names = check_ids(requests, wanted=True, count=count, name="requests") or []
        codes = declared_labels(y, count, self.classes)
        state = self._state_
        check_waiting(names, state)
        weights = weights_of_labels(codes, state.rules.n_classes) * state.full_weight
        self._journal_.labelled_requests(names, weights)
        return self

    @claim("FRESH")
    @changing
    def add_unlabelled(self, X: ArrayLike) -> Self:
        """Supply rows for the next phases; they are protected like queries.

        Only with ``fresh=True``.

        Parameters
        ----------
        X : array-like
            Rows without labels.

        Returns
        -------
        EverlastingPredictor
            Itself.
        """
        if self._state_.rows_from.keeps_queries:
            raise InvalidParameter("add_unlabelled needs fresh=True; now queries are the rows.")
        table, _ = self._reader_.private(X)
        self._journal_.supplied(table)
        self._prepare()
        return self
