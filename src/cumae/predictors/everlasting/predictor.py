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
from cumae.data import Declared, check_ids
from cumae.drift import Drift
from cumae.ensembles.blocks import block_rows
from cumae.errors import BudgetExhausted, InvalidParameter
from cumae.learners import Learner
from cumae.live import one_at_a_time
from cumae.mechanisms import Coins, Spent
from cumae.outlook import FitPlan
from cumae.parameters import CHANCE, DELTA, EPSILON, Count, Flag, Kind, Number, Object, Or
from cumae.predictors.answering.calls import AnyStep, Asked, Call, ProposedAnswers, Step
from cumae.predictors.answering.events import Answered, Labelled, LabelsArrived, Supplied
from cumae.predictors.base import (
    ESTIMATOR,
    SHARED_PARAMETERS,
    TEXT_SIZE,
    Training,
    check_fitted,
    options_of,
)
from cumae.predictors.everlasting.fitting import (
    Decision,
    choose_trust,
    decide,
    first_phase,
    warn_if_ignored,
)
from cumae.predictors.everlasting.keeping import Admission
from cumae.predictors.everlasting.margins import weights_of_labels, weights_of_votes
from cumae.predictors.everlasting.naming import admitted_part, check_new, places_of
from cumae.predictors.everlasting.phases import (
    PhaseSetup,
    query_numbers_by_keys,
    row_keys,
)
from cumae.predictors.everlasting.renewal import declared_labels
from cumae.predictors.everlasting.robustness import Robustness, state_lines
from cumae.predictors.everlasting.rules import EverlastingOptions
from cumae.predictors.everlasting.state import EverlastingState, PhasePrepared
from cumae.predictors.ids import HiddenIds, as_rows
from cumae.predictors.records import TEXT_BYTES
from cumae.predictors.stateful import PhasedPredictor
from cumae.privacy import Budget, Guarantee
from cumae.privacy.plans import Plan
from cumae.randomness import SYSTEM, Source, permutation, source_for

IDS = "query_ids"  # the parameter's name, for messages


@claim("EVER")
class EverlastingPredictor(PhasedPredictor):
    """Answers to classification queries for ever; training rows and all queries are protected.

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
    max_rows : int of 1 or more, or None
        Phases grow up to so many rows, and stay at that size: they are what must be remembered. A
        first phase with more rows is not cut. With None they grow without an end, and so does what
        they take of memory and of the time of a training; give it where there is enough of both.
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
        answers of a phase, so a number for ``growth`` must be above 1. It is part of the training.
    memoize : bool
        Whether the same question gets the same answer within a phase.
    late : float from 0 to 0.5, or "auto"
        Share of a phase that is still answered by the old models while new ones train; its queries
        are kept for the phase after. ``"auto"`` is 0 in memory, and 0.1 from ``save_to`` on.
    background : bool, or None
        Whether that training runs in a thread of its own; needs ``late``. None means that it does
        from ``save_to`` on.
    client_cap : float above 0 and below 1, or None
        Largest share of a phase's rows that one client may supply; ``predict`` then takes
        ``clients=``.
    text_bytes : int of 48 or more
        As in :class:`~cumae.QueryRelease`.
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

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "estimator": ESTIMATOR,
        "epsilon": EPSILON,
        "delta": DELTA,
        "concept_class": Or(None, Object("ConceptClass")),
        "shard_size": Or("auto", Count(1)),
        "growth": Or("auto", Number(1.0, math.inf, below=True, such_as="1.5")),
        "max_rows": Or(None, Count(1)),
        "prior": Or(None, Object("Learner or bool")),
        "prior_share": Or("auto", CHANCE),
        "balanced": Flag(),
        "user_ids": Flag(),
        "fresh": Flag(),
        "memoize": Flag(),
        "late": Or("auto", Number(0.0, 0.5, such_as="0.1")),
        "background": Or(None, Flag()),
        "client_cap": Or(None, CHANCE),
        "text_bytes": TEXT_SIZE,
        **SHARED_PARAMETERS,
    }
    state_class = EverlastingState
    counts_unusable = True
    joins_calls = True

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
        max_rows: int | None = 1_000_000,
        prior: Learner | bool | None = None,
        prior_share: float | str = "auto",
        balanced: bool = True,
        user_ids: bool = False,
        fresh: bool = False,
        memoize: bool = False,
        late: float | str = "auto",
        background: bool | None = None,
        client_cap: float | None = None,
        text_bytes: int = TEXT_BYTES,
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
        self.text_bytes = text_bytes
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
        options = options_of(EverlastingOptions, self)
        ids = check_ids(users, self.user_ids, training.rows.n_rows, "users")
        source = source_for(self.random_state)
        hide, admission = HiddenIds.draw(SYSTEM), Admission(self.user_ids)  # a secret, and no coin
        hidden = None if ids is None else list(map(hide.known_as, ids))
        admitted = admission.decide(training.rows.n_rows, hidden, None)
        admission.take(admitted)
        kept = np.flatnonzero(admitted.kept)
        plan = decide(options, training, len(kept), self._try_out)
        rules, prior = plan.steps.rules, plan.steps.prior
        guarantee = self._start(training, plan, source)
        setup = PhaseSetup(rules, training.shard_model, training.reader, self.columns is not None)
        order = kept[permutation(len(kept), source)]  # the split into parts, from counts alone
        trust_end = rules.prior_rows + rules.trust_rows
        if prior is not None:
            prior.fit(training, order[: rules.prior_rows], source)
        phase = first_phase(training, order[trust_end:], setup, source)
        trust, spent = None, phase.majority.start(source)
        if prior is not None:
            places = order[rules.prior_rows : trust_end]
            spent = phase.majority.reserved(spent, len(places))
            trust = choose_trust(training, places, prior, phase, self.epsilon, Coins(source))
        admission = admission.of_new_phase(rules.cap(phase.n_rows))
        fitted = self._fitted(training, guarantee, source, size_trial_=plan.steps.sizes_tried)
        self._go_on(EverlastingState(fitted, setup, prior, trust, phase, admission, hide, spent))
        warn_if_ignored(self.estimator, prior, trust)  # last: as an error, it must not lose a fit
        return self

    def decide(self, training: Training) -> FitPlan[Decision]:
        options = options_of(EverlastingOptions, self)
        return decide(options, training, training.rows.n_rows, self._try_out)

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
        given += ", and it never runs out" if left == math.inf else f", {left:,} are left"
        votes = f"noise is {self.noise_per_vote_:.0%} of its {self.n_shards_:,} votes"
        first = f"EverlastingPredictor in phase {self.phase_}: {given}; {votes}."
        lines = state_lines(prior and prior.learner, self.trust_, self.robustness_, self.drift_)
        return f"{first}\n{lines}\nPromise: {self.guarantee_}"

    @property
    def remaining_(self) -> float:
        """Answers left: infinite, unless rows run short."""
        left: float = (state := self._seen_state()).next_phase_rows.remaining(state)
        return left

    @property
    def prior_(self) -> Learner | None:
        """The published prior; None where there is none."""
        prior = self._settled_state().prior
        return None if prior is None else prior.learner

    @property
    def trust_(self) -> float | None:
        """The weight of the votes of the first phase against the prior."""
        trust: float | None = self._seen_state().trust
        return trust

    @property
    def robustness_(self) -> Robustness:
        """Rows of this phase that may be poisoned without moving an answer of some margin.

        It follows from public counts, and bounds what anybody can do who chose these rows; see
        :class:`~cumae.predictors.everlasting.robustness.Robustness`.
        """
        state = self._seen_state()
        phase, cap = state.phase, state.rules.cap(state.phase.n_rows)
        say = state.prior is None or state.trust_in_votes > 0
        return Robustness(phase.n_rows, phase.ensemble.n_shards, phase.majority, cap, say)

    @property
    def drift_(self) -> Drift | None:
        """An estimate of how far the boundary wanders once phases have stopped growing.

        It comes from a simulation of thresholds with the public counts of these phases, and is no
        bound. None with a prior, which answers do not leave; for models other than thresholds and
        intervals without declared bounds, whose drift nothing was simulated for; and for phases
        that grow without an end.
        """
        drift: Drift | None = self._seen_state().drift
        return drift

    # Answering

    @claim("EVER", "USER", "FRESH", "MEMO", "LATE")
    def predict(
        self,
        X: Any,
        *,
        users: Any = None,
        clients: Any = None,
        query_ids: Any = None,
        request_id: Any = None,
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
        query_ids : list or array, or None
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
        check_fitted(self)
        call = Call(X, users, clients, query_ids, request_id)
        return self._counter_.answer(self, [call])[0].result()

    @claim("USER")
    def _read(self, call: Call) -> Asked:
        if call.as_counts:
            raise InvalidParameter("EverlastingPredictor releases no counts; ask for labels.")
        rows, usable = self._reader_.private(call.X)
        rules, count = self._counter_.state.setup.rules, len(usable)
        # By identity: an array of ids is not to be compared.
        if not rules.is_named and call.users is call.clients is call.query_ids is None:
            return Asked(rows, usable)
        owners = check_ids(call.users, rules.user_ids, count, "users")
        askers = check_ids(call.clients, rules.client_cap is not None, count, "clients")
        names = check_ids(call.query_ids, call.query_ids is not None, count, IDS)
        hidden = None if names is None else list(map(self._state_.hide, names))
        return Asked(rows, usable, self._hidden(owners), self._hidden(askers), hidden)

    @claim("USER")
    def _check(self, asked: Asked, state: EverlastingState) -> None:
        if asked.query_ids is not None:
            check_new(asked.query_ids, state)
        state.next_phase_rows.check_batch(state, len(asked.rows), asked.users, asked.clients)

    def _hidden(self, ids: list[Any] | None) -> list[tuple[bytes, ...]] | None:
        return None if ids is None else list(map(self._state_.hide.known_as, ids))

    @claim("LATE", "FRESH")
    def _room(self, state: EverlastingState) -> int:
        room, durable = state.next_phase_rows.until_next(state), self._counter_.journal.durable
        ahead = state.ahead if durable and state.following is not None else 0
        if ahead < room <= 2 * ahead:  # which is what is left, because the next phase trains
            return 0 if state.must_freeze else room - ahead
        return room - 2 * ahead if room > ahead else room

    @claim("EVER", "USER", "MEMO", "LABELLED")
    def _answers(
        self, part: Asked, state: EverlastingState, reserved: Spent, coins: Coins
    ) -> ProposedAnswers:
        """Return what the phase would answer, and what is kept of the queries.

        A stand-in has no weight, but a place like any other query.
        """
        labels, weights, memo = self._release(part.rows, state, reserved, coins)
        usable, count = part.usable, len(labels)
        if usable is not None and not usable.all():
            labels[~usable], weights[~usable] = -1, 0
        answered, after = state.answered + count, state.spent
        kept = {}
        if state.next_phase_rows.keeps_queries:
            reader, rows = self._reader_, part.rows
            if reader.as_frames:
                rows = reader.packed(rows)
            kept = {"at": state.kept.n_rows, "rows": rows, "weights": weights}
            if state.setup.rules.is_named or part.query_ids is not None:
                kept = admitted_part(kept, part, state)
        event = Answered(count, answered, after, **kept, **memo)
        return ProposedAnswers(labels, event)

    @claim("EVER", "MEMO")
    def _release(
        self, table: Any, state: EverlastingState, spent: Spent, coins: Coins
    ) -> tuple[Integers, Integers, dict[str, Any]]:
        """Return labels and whole weights from fresh noise, both functions of it; and a memo."""
        phase, prior = state.phase, state.prior
        keys = row_keys(table) if state.setup.rules.memoize else None
        numbers = spent.asked + np.arange(len(table))
        if keys is not None:
            numbers = query_numbers_by_keys(keys, block_rows(table.shape[1]))
        noisy = phase.majority.release(phase.ensemble.votes(table, numbers), coins)
        memo: dict[str, Any] = {}
        if keys is not None:
            hidden = list(map(state.hide.row, keys))
            noisy = phase.remembered(hidden, noisy)
            memo = {"keys": as_rows(hidden), "noisy": noisy}
        n_shards = phase.ensemble.n_shards
        if prior is None:
            return noisy.argmax(axis=1), weights_of_votes(noisy, n_shards), memo
        if keys is not None:
            numbers = query_numbers_by_keys(keys, prior.block_rows)
        weights = prior.weights(noisy, n_shards, state.trust_in_votes, table, numbers)
        return weights.argmax(axis=1), weights, memo

    # Phases

    @claim("EVER", "LATE", "FRESH")
    def _due(self, state: EverlastingState, coins: Coins, *, wanted: bool) -> AnyStep | None:
        """Return the next step: begin a training when its rows are complete, or enter its phase.

        In between, what waits is frozen, and a home writes it and the next phase ahead. All of
        that is a matter of counts.
        """
        following = state.following
        if following is None and state.next_phase_rows.complete(state):
            return self._to_prepare(state)
        if self._counter_.journal.durable and (ahead := state.step_ahead) is not None:
            return ahead
        if not wanted or not state.next_phase_rows.used_up(state):
            return None
        if following is None:
            raise BudgetExhausted(
                f"phase {state.phase.number} is used up, and the next one has too few rows; supply "
                f"more. {state.answered} queries since fit count; a broken batch is not returned.",
                remaining=0,
            )
        return Step(lambda: state.entered(coins.source), slow=True)

    @claim("EVER", "LATE", "FRESH")
    def _to_prepare(self, state: EverlastingState) -> Step:
        """Return the step that begins the training of the next phase.

        Supplied rows are labelled by the training. A release is gone for each of them from here on.
        """
        taken = state.next_phase_rows.to_label(state)
        after = state.rule.reserved(state.spent, taken)
        return Step(lambda: PhasePrepared(state.phase.number + 1, after, taken=taken))

    # Labels that come later, and fresh rows

    @claim("LABELLED", "USER")
    def add_labelled(self, X: Any, y: ArrayLike, *, users: Any = None) -> Self:
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
        check_fitted(self)

        def labelled(state: EverlastingState) -> Labelled:
            table, usable = self._reader_.private(X)
            codes = declared_labels(y, len(usable), self.classes)
            owners = check_ids(users, state.rules.user_ids, len(usable), "users")
            weights = weights_of_labels(np.where(usable, codes, -1), state.rules.n_classes)
            admitted = state.admission.decide(len(weights), self._hidden(owners), None)
            hidden = None if admitted.users is None else as_rows(admitted.users)
            rows, kept = self._reader_.packed(table)[admitted.kept], weights[admitted.kept]
            return Labelled(len(weights), state.labelled.n_rows, rows, kept, hidden)

        self._counter_.change(self, labelled)
        return self

    @claim("LABELLED")
    def add_labels(self, query_ids: Any, y: ArrayLike) -> Self:
        """Tell the right labels of earlier queries, which take the place of the noisy answers.

        It is possible as long as the training of the next phase has not begun. Until then, a later
        label takes the place of an earlier one, so that a mistake can be mended.

        Parameters
        ----------
        query_ids : list or array
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
        check_fitted(self)

        def event(state: EverlastingState) -> LabelsArrived:
            count = len(query_ids) if hasattr(query_ids, "__len__") else 0
            names = check_ids(query_ids, wanted=True, count=count, name=IDS) or []
            codes = declared_labels(y, count, self.classes)
            places = places_of(names, state)
            weights = weights_of_labels(codes, state.rules.n_classes) * state.full_weight
            return LabelsArrived(places, weights)

        self._counter_.change(self, event)
        return self

    @claim("FRESH")
    def add_unlabelled(self, X: Any) -> Self:
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
        check_fitted(self)

        def supplied(state: EverlastingState) -> Supplied:
            if state.next_phase_rows.keeps_queries:
                raise InvalidParameter("add_unlabelled needs fresh=True; now queries are the rows.")
            table, _ = self._reader_.private(X)
            return Supplied(state.waiting.end, self._reader_.packed(table))

        self._counter_.change(self, supplied)
        return self
