"""Any number of answers: UniversalQueryRelease.

With a concept class it follows Algorithm 4 of "Privately Answering Classification Queries in the
Agnostic PAC Model" (Nandi, Bassily; paper 3); else a student learns from the first answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass, Hypothesis
from cumae.data import ArrayRows, Declared, class_names, length_of
from cumae.effort import Effort
from cumae.errors import InvalidData, InvalidParameter
from cumae.live import one_at_a_time
from cumae.mechanisms import Coins, labels_of
from cumae.mechanisms.base import ANY_NUMBER
from cumae.outlook import FitPlan, public_facts
from cumae.parameters import CHANCE, DELTA, EPSILON, Choice, Kind, Object, Or
from cumae.predictors.answering.calls import Asked, Call, ProposedAnswers, Step
from cumae.predictors.answering.events import Answered, Entered, Used, Whole
from cumae.predictors.base import (
    ESTIMATOR,
    SHARED_PARAMETERS,
    TEXT_SIZE,
    Training,
    check_fitted,
    options_of,
)
from cumae.predictors.records import TEXT_BYTES
from cumae.predictors.release.base import AUTO_COUNT, VOTE_PARAMETERS, PlannedRelease
from cumae.predictors.release.offline import Offline
from cumae.predictors.release.stages import (
    FirstOptions,
    Stages,
    count_first,
    first_release,
    plan_both,
    split_epsilon,
    universal_cost,
)
from cumae.predictors.release.state import UniversalState
from cumae.predictors.release.students import Lesson, Student, check_student, try_student
from cumae.predictors.release.voting import Voting, all_counted
from cumae.predictors.stateful import StatefulPredictor
from cumae.privacy import Approximate, Budget
from cumae.privacy.plans import promise
from cumae.randomness import Source, integers, source_for

FIRST = 1_000  # queries of the first stage when there is no VC dimension to go by


@claim("UNV")
class UniversalQueryRelease(StatefulPredictor):
    """Answers to any number of queries: private votes first, then a rule learnt from them.

    With a concept class, the first ``n_first`` queries are answered by a release; then these
    queries, which are public, define candidates, and one of them is drawn on all private rows and
    published: it answers everything that follows. The two stages share epsilon.

    With any other estimator, the second stage is a ``student``: a model trained on the first
    queries and their noisy votes as soft labels. That is free, so the first stage gets everything.

    Parameters
    ----------
    estimator : classifier, Pipeline or ConceptClass, or None
        Any scikit-learn classifier or Pipeline, or a class of ``cumae.concepts``; None means
        ``DecisionTreeClassifier(max_depth=4)``.
    epsilon : float of 0 or more
        Privacy parameter of all answers, for ever.
    delta : float from 0 and below 1
        Privacy parameter of all answers, for ever.
    n_first : int of 1 or more, or "auto"
        Queries of the first stage. ``"auto"``: 1,000; for a concept class
        4 (d ln(1/alpha) + ln(1/beta)) / alpha with its VC dimension d.
    concept_class : ConceptClass, or None
        The same as ``estimator``, for a class of ``cumae.concepts``.
    release : {"query", "agnostic"}
        ``"query"``: the first stage is :class:`~cumae.predictors.QueryRelease`. ``"agnostic"``:
        :class:`~cumae.predictors.AgnosticQueryRelease`, for concept classes.
    share : float above 0 and below 1
        Share of epsilon for the first stage when a hypothesis is drawn; it gets all of delta.
    student : classifier or Pipeline, or None
        None is a clone of the estimator. If it takes ``sample_weight`` it learns from soft
        labels: each query enters once for each class, weighted by its share of the noisy votes.
        Otherwise it learns from the labels. With a concept class, a student takes the place of the
        drawn hypothesis.
    mechanism : {"auto", "stability", "between", "gaussian", "laplace"}
        What answers the first queries, as in :class:`~cumae.predictors.QueryRelease`. Soft labels
        need ``"gaussian"`` or ``"laplace"``; ``"auto"`` takes one of these for a student.
    n_shards : int of 1 or more, or "auto"
        Number of models of the first stage.
    alpha : float above 0 and below 1
        Declared share of unclear queries in the first stage, and error that the second aims at.
    beta : float above 0 and below 1
        Chance of more.
    max_unstable : int of 1 or more, or "auto"
        Unclear answers that are paid for, as in :class:`~cumae.predictors.QueryRelease`.
    abstain : bool
        Whether an unclear answer is -1; otherwise it is a random class.
    constants : {"practical", "paper"}
        ``"paper"`` takes the printed sizes, for concept classes, and refuses with the number
        of rows that they need when there are fewer.
    text_bytes : int of 48 or more
        As in :class:`~cumae.QueryRelease`.
    columns : mapping or sequence, or None
        As in :class:`~cumae.QueryRelease`.
    classes : sequence of labels
        Labels that may occur. With a concept class, rows with any other label or with a cell that
        is no number count as zeros with the first label.
    n_jobs : int, or None
        Number of processes, as in joblib.
    progress : bool, or None
        Whether to show a progress bar; None shows it on a terminal.
    budget : Budget, or None
        An account to pay from.
    random_state : int or Source, or None
        None in production; a seed voids the guarantee.

    Attributes
    ----------
    guarantee_ : Guarantee
        What is promised for the training rows, for any queries.
    remaining_ : float
        Always infinite.
    stage_, n_first_ : int
        1 or 2, and the number of queries of the first stage.
    stages_ : list of dict
        How the budget is split.
    hypothesis_, student_
        What was published at the end of the first stage; it may be used freely. A student takes
        rows as numbers, encoded by ``columns`` where they are declared.
    first_answers_ : tuple of a table and an array of floats
        The queries of the first stage so far and, for each class, the share that was answered.
        Both are public; the student is trained on them.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Thresholds
    >>> from cumae.predictors.release.universal import UniversalQueryRelease
    >>> rng = np.random.default_rng(0)
    >>> x = rng.random((20_000, 1))
    >>> release = UniversalQueryRelease(Thresholds(), epsilon=2.0, n_first=100)
    >>> answers = release.fit(x, x[:, 0] > 0.3).predict(rng.random((100, 1)))
    >>> release.stage_, release.remaining_
    (2, inf)
    >>> release.predict([[0.05], [0.9]])
    array([0, 1])
    >>> [(stage["name"], stage["epsilon"]) for stage in release.stages_]  # doctest: +ELLIPSIS
    [('first queries', ...), ('hypothesis', 1.0)]
    """

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "estimator": ESTIMATOR,
        "epsilon": EPSILON,
        "delta": DELTA,
        "n_first": AUTO_COUNT,
        "concept_class": Or(None, Object("ConceptClass")),
        "release": Choice(("query", "agnostic")),
        "share": CHANCE,
        "student": Or(None, Object("classifier or Pipeline")),
        **VOTE_PARAMETERS,
        "text_bytes": TEXT_SIZE,
        **SHARED_PARAMETERS,
    }

    state_class = UniversalState
    takes_public = True

    n_first_: int
    mechanism_: str
    why_: str
    n_shards_: int
    noise_per_vote_: float
    stages_: list[dict[str, Any]]

    def __init__(
        self,
        estimator: Any = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        n_first: int | str = "auto",
        *,
        concept_class: ConceptClass | None = None,
        release: str = "query",
        share: float = 0.5,
        student: Any = None,
        mechanism: str = "auto",
        n_shards: int | str = "auto",
        alpha: float = 0.1,
        beta: float = 0.05,
        max_unstable: int | str = "auto",
        abstain: bool = False,
        constants: str = "practical",
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
        self.n_first = n_first
        self.concept_class = concept_class
        self.release = release
        self.share = share
        self.student = student
        self.mechanism = mechanism
        self.n_shards = n_shards
        self.alpha = alpha
        self.beta = beta
        self.max_unstable = max_unstable
        self.abstain = abstain
        self.constants = constants
        self.text_bytes = text_bytes
        self.columns = columns
        self.classes = classes
        self.n_jobs = n_jobs
        self.progress = progress
        self.budget = budget
        self.random_state = random_state

    # Fitting

    @one_at_a_time
    def fit(self, X: Any, y: Any, X_public: Any = None) -> Self:
        """Train the first stage, and pay for both.

        Parameters
        ----------
        X : array, memory map, list of rows, data frame or ParquetRows
            Private rows.
        y : array-like or str
            Their labels; the name of a column for Parquet files.
        X_public : array-like or None
            A pool of public or sanitized rows. They take the place of the first queries: they are
            answered at once and train the student, so that the second stage starts right away.
        """
        training = self._training(X, y)
        source = source_for(self.random_state)
        pool = self._pool(training, X_public)
        n_public = None if pool is None else length_of(pool)
        plan = self.decide(replace(training, n_public=n_public))
        if plan.steps.after is None:
            self._fit_student(training, plan, pool, source)
        else:
            self._fit_concept(training, plan, source)
        return self

    def _has_student(self, training: Training) -> bool:
        return not isinstance(training.model, ConceptClass) or self.student is not None

    def _pool(self, training: Training, X_public: Any) -> Any:
        """Return public rows as models take them; None if there are none, or they have no use."""
        if X_public is None or not self._has_student(training):
            return X_public
        pool = training.reader.public(X_public)
        if not len(pool):
            raise InvalidData("X_public has no rows; give some, or leave it out.")
        return pool

    def decide(self, training: Training) -> FitPlan[Stages]:
        """Decide about both stages, which are the steps."""
        stages = self._stages(training)
        shown = public_facts(self._shown(stages, training))
        for stage in stages.shown(training.rows.n_rows):
            name = stage["name"].replace(" ", "_")
            shown |= {f"{name}_epsilon": stage["epsilon"], f"{name}_delta": stage["delta"]}
        shown["shard_size"] = training.rows.n_rows // stages.planned.n_shards
        cells = training.rows.n_rows * training.width
        work = () if stages.after is None else (Effort("draws", cells, cells),)
        return FitPlan.of(stages.plan, stages, shown, work)

    def _stages(self, training: Training) -> Stages:
        """Plan both stages from public numbers, before anything is paid."""
        options = options_of(FirstOptions, self)
        if self._has_student(training):
            return self._plan_student(training, options)
        if training.n_public is not None:
            raise InvalidParameter(
                "X_public with a concept class and no student: public rows alone define its "
                "candidates, so use SemiPrivateLearner; or give a student."
            )
        return self._plan_concept(training, options)

    def _plan_concept(self, training: Training, options: FirstOptions) -> Stages:
        """Plan votes and a hypothesis, which is drawn for the second stage."""
        concept = training.model
        training.need_numbers()
        n_first = count_first(options, training)
        before, after = split_epsilon(self.epsilon, float(self.share))
        concept.check_draw(after, max(n_first, training.rows.n_rows))
        # Shards get cleaned rows: a table of their size, which takes no memory.
        sized = ArrayRows(np.broadcast_to(0.0, (training.rows.n_rows, training.width)))
        clean = replace(training, rows=sized, columns=None)
        planned = first_release(options, clean, n_first, before, self.mechanism).plan_release(clean)
        inner = promise(planned.plan, before, self.delta, void=False)
        plan = plan_both(inner, universal_cost(inner, after), "SSPP", "CHOOSE", "COMP")
        return Stages(planned, inner, plan, n_first, after)

    def _plan_student(self, training: Training, options: FirstOptions) -> Stages:
        """Plan votes; what they release trains a student, at no further cost."""
        concept = isinstance(training.model, ConceptClass)
        if self.constants == "paper" or (self.release == "agnostic" and not concept):
            raise InvalidParameter(
                f"release={self.release!r} and constants={self.constants!r} with a student: give "
                "a concept class, and no student for constants='paper'."
            )
        student = check_student(training.model if self.student is None else self.student)
        if training.tried:
            student = training.reader.shard_model(student)
            try_student(student, training.rows, training.columns, class_names(self.classes))
        n_first: Any = FIRST if self.n_first == "auto" else self.n_first
        n_first = int(n_first) if training.n_public is None else training.n_public
        mechanism = self.mechanism
        if mechanism == "auto":  # the others release no shares to learn from
            mechanism = "gaussian" if self.delta > 0 else "laplace"
        release = first_release(options, training, n_first, self.epsilon, mechanism)
        planned = release.plan_release(training)
        inner = promise(planned.plan, self.epsilon, self.delta, void=False)
        plan = plan_both(inner, Approximate(inner.epsilon, inner.delta))
        return Stages(planned, inner, plan, n_first, None)

    def _fit_concept(self, training: Training, plan: FitPlan[Stages], source: Source) -> None:
        """Pay for votes and for a hypothesis, and train the votes."""
        stages = plan.steps
        if stages.after is None:
            raise AssertionError("nothing was planned for the hypothesis")
        table, labels = training.cleaned()
        clean = replace(training, rows=ArrayRows(table), labels=labels, columns=None)
        guarantee = self._start(training, plan, source)
        voting = self._trained(stages.planned, clean, source)
        waiting = Offline(training.model, (table, labels), stages.after, stages.n_first)
        fitted = self._fitted(training, guarantee, source, **self._shown(stages, training))
        spent = voting.rule.start(source)
        self._go_on(UniversalState(fitted, None, stages.n_first, voting, waiting, spent=spent))

    def _fit_student(
        self, training: Training, plan: FitPlan[Stages], pool: Any, source: Source
    ) -> None:
        """Pay for votes, train them, and let them answer the pool, if there is one."""
        stages, guarantee = plan.steps, self._start(training, plan, source)
        voting = self._trained(stages.planned, training, source)
        fitted = self._fitted(training, guarantee, source, **self._shown(stages, training))
        spent = voting.rule.start(source)
        self._go_on(UniversalState(fitted, self.student, stages.n_first, voting, spent=spent))
        if pool is not None:
            self._counter_.ask(self, Asked(pool), [])

    def _trained(self, planned: PlannedRelease, training: Training, source: Source) -> Voting:
        """Train the shards of the first stage."""
        return planned.train(training, source, n_jobs=self.n_jobs, progress=self.progress)

    def _shown(self, stages: Stages, training: Training) -> dict[str, Any]:
        """Return the public attributes."""
        planned = stages.planned
        return {
            "n_first_": stages.n_first,
            "mechanism_": planned.answers.mechanism,
            "why_": planned.answers.why,
            "n_shards_": planned.n_shards,
            "noise_per_vote_": planned.noise_per_vote,
            "size_trial_": planned.sizes_tried,
            "stages_": stages.shown(training.rows.n_rows),
        }

    def _stored_parameters(self) -> dict[str, Any]:
        stored = super()._stored_parameters()
        del stored["student"]  # stored as an estimator
        return stored

    # What is public

    @property
    def remaining_(self) -> float:
        """Answers left: there is no end."""
        self._seen_state()
        return math.inf

    @property
    def stage_(self) -> int:
        """1 while votes answer, 2 when what was published does."""
        return 1 if self._seen_state().left else 2

    @property
    def hypothesis_(self) -> Hypothesis:
        """The hypothesis that was published for the second stage; it may be used freely."""
        drawn = self._settled_state().published
        if not isinstance(drawn, Hypothesis):
            raise AttributeError(
                "a hypothesis is published after the first stage, and for a concept class only."
            )
        return drawn

    @property
    def student_(self) -> Any:
        """The estimator that was trained for the second stage; it may be used freely."""
        student = self._settled_state().published
        if not isinstance(student, Student):
            raise AttributeError("a student is trained after the first stage, if there is one.")
        return student.model

    @property
    def first_answers_(self) -> tuple[Any, Floats]:
        """Queries of the first stage, and the share of each class in their answers."""
        lesson = self._settled_state().lesson
        return lesson.queries, lesson.shares

    # Answering

    @claim("UNV")
    def predict(self, X: Any, *, request_id: Any = None) -> NDArray[Any]:
        """Answer queries in order: never refused for their number; a batch may cross the stages.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Public queries.
        request_id : str, int or tuple of these, or None
            A name for the whole request. An oracle in a file gives a repeated one its stored
            answers, for free.

        Returns
        -------
        array of shape (n_queries,)
            Declared classes; -1 for unclear queries of the first stage if ``abstain``.
        """
        check_fitted(self)
        return self._counter_.answer(self, [Call(X, request_id=request_id)])[0].result()

    def _check(self, asked: Asked, state: UniversalState) -> None:
        """Refuse nothing: there is no end."""

    def _room(self, state: UniversalState) -> int:
        if state.left or state.published is None:
            return state.left  # at its end, what answers next must be published first
        return ANY_NUMBER

    @claim("UNV")
    def _answers(
        self, part: Asked, state: UniversalState, reserved: Any, coins: Coins
    ) -> ProposedAnswers:
        """Return what votes answer, or what was published."""
        count, answered = len(part.rows), state.answered + len(part.rows)
        if state.voting is None:
            return ProposedAnswers(state.published_labels(part.rows), Answered(count, answered))
        voting, warning = state.voting, ""
        if voting.shows_counts:
            counts, spent = voting.counts(part.rows, reserved, coins), state.spent
            labels, shares = labels_of(counts), Lesson.of_votes(part.rows, counts).shares
        else:
            found = voting.ask(part.rows, reserved, coins)
            labels, spent, warning = all_counted(found, reserved)
            shares = Lesson.of_labels(part.rows, labels, state.fitted.n_classes).shares
        if not self.abstain:
            labels = voting.guessed(labels, coins)
        # Both are public: the queries and what was answered to them.
        rows = self._reader_.packed(part.rows)
        kept = {"at": state.kept.n_rows, "rows": rows, "weights": shares}
        return ProposedAnswers(labels, Answered(count, answered, spent, **kept), warning)

    @claim("UNV")
    def _due(self, state: UniversalState, coins: Coins, *, wanted: bool) -> Step | None:  # noqa: ARG002 - what is published comes at once
        """Publish what answers from now on, once; the private models and rows are dropped."""
        if state.left or state.published is not None:
            return None
        if state.waiting is None:
            # One that failed may have been replaced.
            ready = replace(state, voting=None, student=self.student)
            seed = integers(2**31 - 1, source=coins.source)
            published = partial(self._taught, ready, seed)
            return Step(published, before=Whole(ready), slow=True)
        rows, points = state.waiting.need_rows(), state.lesson.queries
        drawn = partial(self._drawn, state, points, rows, coins.source)
        return Step(drawn, before=Used(state.spent))  # a crash before it ends repeats the draw

    @claim("UNV")
    def _taught(self, state: UniversalState, seed: int) -> Entered:
        return Entered(replace(state, published=state.taught(seed)))

    @claim("UNV")
    def _drawn(
        self,
        state: UniversalState,
        points: Floats,
        rows: tuple[Floats, Integers],
        source: Source,
    ) -> Entered:
        if state.waiting is None:
            raise AssertionError("no rows wait for a draw")
        waiting = state.waiting.draw(points, rows, source)
        return Entered(replace(state, waiting=waiting, published=waiting.hypothesis))
