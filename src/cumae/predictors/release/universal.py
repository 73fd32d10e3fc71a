"""Any number of answers: UniversalQueryRelease, Algorithm 4 of paper 3, and knowledge transfer."""

from __future__ import annotations

import math
import warnings
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass, Hypothesis
from cumae.concepts.relabelling import most_points
from cumae.data import Declared, clean_table, length_of
from cumae.errors import InvalidData, InvalidParameter
from cumae.live import one_at_a_time
from cumae.mechanisms import NoisyMajority
from cumae.mechanisms.stability import UNSTABLE
from cumae.parameters import check_choice, check_count
from cumae.predictors.base import Predictor, Training
from cumae.predictors.relabelling import check_draw, encoded_width, need_numbers
from cumae.predictors.release.agnostic import AgnosticQueryRelease
from cumae.predictors.release.answers import ONLINE
from cumae.predictors.release.base import Release, random_labels
from cumae.predictors.release.offline import Offline
from cumae.predictors.release.query import QueryRelease
from cumae.predictors.release.stages import split_epsilon, universal_cost
from cumae.predictors.release.students import Lesson, check_student, train_student, try_student
from cumae.privacy import Approximate, Budget, Guarantee
from cumae.privacy.plans import Plan, pair_cost
from cumae.privacy.validation import check_nonnegative
from cumae.randomness import Source, integers, source_for
from cumae.theorems.query_release import first_queries, need_rows, subsamp_sizes

FIRST = 1_000  # queries of the first stage when there is no VC dimension to go by
PRACTICAL = 4.0  # in place of Algorithm 4's constant 32


@claim("UNV")
class UniversalQueryRelease(Predictor):
    """Answer any number of queries: some by private votes, then all others by what these taught.

    With a concept class, the first ``n_first`` queries are answered by a release; then these
    queries, which are public, define candidates, and one of them is drawn on all private rows and
    published: it answers everything that follows. The two stages share epsilon.

    With any other estimator, the second stage is a ``student``: a model trained on the first
    queries and their noisy votes as soft labels. That is free, so the first stage gets everything.

    Parameters
    ----------
    estimator
        Any scikit-learn classifier or Pipeline, or a class of ``cumae.concepts``; None means
        ``DecisionTreeClassifier(max_depth=4)``.
    epsilon, delta
        Privacy parameters of all answers, for ever.
    n_first
        Queries of the first stage. ``"auto"``: 1,000; for a concept class
        4 (d ln(1/alpha) + ln(1/beta)) / alpha with its VC dimension d.
    concept_class
        The same as ``estimator``, for a class of ``cumae.concepts``.
    release
        ``"query"``: the first stage is :class:`~cumae.predictors.QueryRelease`. ``"agnostic"``:
        :class:`~cumae.predictors.AgnosticQueryRelease`, for concept classes.
    share
        Share of epsilon for the first stage when a hypothesis is drawn; it gets all of delta.
    student
        A scikit-learn classifier; None is a clone of the estimator. If it takes
        ``sample_weight`` it learns from soft labels, each query entering once for each class,
        weighted by its share of the noisy votes; otherwise from the labels. With a concept class,
        giving a student means knowledge transfer in place of a drawn hypothesis.
    mechanism, n_shards, alpha, beta, max_unstable, abstain
        Of the first stage, as in :class:`~cumae.predictors.QueryRelease`. Soft labels need
        ``"gaussian"`` or ``"laplace"``, of which ``"auto"`` takes one when there is a student.
    constants
        ``"paper"`` takes the printed sizes, for concept classes, and refuses with the number
        of rows that they need when there are fewer.
    columns, classes, n_jobs, progress, budget, random_state
        As in :class:`~cumae.predictors.QueryRelease`; with a concept class, rows with any other
        label or with a cell that is no number count as zeros with the first label.

    Attributes
    ----------
    guarantee_
        What is promised for the training rows, whatever is asked.
    remaining_
        Always infinite.
    stage_, n_first_, stages_
        1 or 2; queries of the first stage; and how the budget is split.
    hypothesis_, student_
        What was published at the end of the first stage; it may be used freely. A student takes
        rows as numbers, encoded by ``columns`` where they are declared.
    answered_
        The queries of the first stage so far and, for each class, the share that was answered:
        public, the student's training rows.

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

    _first_: Release
    _waiting_: Offline | None
    _student_: Any
    _lessons_: list[Lesson]
    _asked_: int

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
        self.columns = columns
        self.classes = classes
        self.n_jobs = n_jobs
        self.progress = progress
        self.budget = budget
        self.random_state = random_state

    @one_at_a_time
    def fit(self, X: Any, y: Any, X_public: Any = None) -> Self:
        """Train the first stage, and pay for both.

        Parameters
        ----------
        X, y
            Private rows and labels, as for :class:`~cumae.predictors.QueryRelease`.
        X_public
            A pool of public or sanitized rows. They take the place of the first queries: they are
            answered at once and train the student, so that the second stage starts right away.
        """
        training = self._training(X, y)
        check_choice(self.release, ("query", "agnostic"), "release")
        check_choice(self.constants, ("practical", "paper"), "constants")
        source = source_for(self.random_state)
        if isinstance(training.model, ConceptClass) and self.student is None:
            if X_public is not None:
                raise InvalidParameter(
                    "X_public with a concept class and no student: public rows alone define its "
                    "candidates, so use SemiPrivateLearner; or give a student."
                )
            return self._fit_concept(training, source)
        return self._fit_student(training, X, y, X_public, source)

    # A hypothesis is drawn for the second stage.

    def _fit_concept(self, training: Training, source: Source) -> Self:
        concept = training.model
        need_numbers(training.rows, training.columns)
        width = encoded_width(training)
        n_first = self._count_first(concept, width)
        share = check_nonnegative(self.share, "share")
        if not 0 < share < 1:
            raise InvalidParameter(f"share={share!r} is not strictly between 0 and 1.")
        before, after = split_epsilon(self.epsilon, share)
        check_draw(concept, after, max(n_first, training.rows.n_rows))
        first = self._first(training, n_first, before, source)
        table, labels = clean_table(training.rows, training.labels, training.columns)
        first.fit(table, labels)  # releases nothing before it is asked
        total = universal_cost(first.guarantee_, after)
        claims = ("UNV", *first.guarantee_.claims, "SSPP", "CHOOSE", "COMP")
        guarantee = self._begin(training, first, total, claims, n_first, source)
        self._frames_ = False  # hypotheses label numbers
        self._waiting_ = Offline(concept, table, labels, after, n_first, source)
        self.stages_.append(
            {"name": "hypothesis", "epsilon": after, "delta": 0.0, "rows": len(table)}
        )
        self.guarantee_ = guarantee
        return self

    def _count_first(self, concept: ConceptClass, width: int) -> int:
        if self.n_first != "auto":
            return check_count(self.n_first, "n_first", least=1)
        vc = max(1, concept.vc_dimension(width))
        if self.constants == "paper":
            return first_queries(self.alpha, self.beta, vc)
        return min(first_queries(self.alpha, self.beta, vc, PRACTICAL), most_points(concept, width))

    def _first(
        self, training: Training, count: int, epsilon: float, source: Source
    ) -> QueryRelease | AgnosticQueryRelease:
        """Return the release of the first stage; it has no account, so that it pays nothing."""
        names = ("mechanism", "n_shards", "alpha", "beta", "max_unstable", "n_jobs", "progress")
        shared: dict[str, Any] = {name: getattr(self, name) for name in names}
        # An unclear answer becomes a random label here, not there.
        shared |= {"abstain": True, "random_state": source}
        check_choice(self.mechanism, ("auto", *ONLINE), "mechanism")
        asked = (training.model, epsilon, self.delta, count)
        if self.release == "agnostic":
            return AgnosticQueryRelease(*asked, constants=self.constants, **shared)
        if self.constants == "paper":
            vc = max(1, training.model.vc_dimension(encoded_width(training)))
            sizes = subsamp_sizes(count, self.alpha, self.beta, epsilon, self.delta, vc)
            need_rows(training.rows.n_rows, sizes.n_rows)
            shared |= {"mechanism": "stability", "n_shards": sizes.n_shards}
            shared["max_unstable"] = sizes.max_unstable
        return QueryRelease(*asked, **shared)

    # A student is trained for the second stage.

    def _fit_student(
        self, training: Training, X: Any, y: Any, X_public: Any, source: Source
    ) -> Self:
        concept = isinstance(training.model, ConceptClass)
        if self.constants == "paper" or (self.release == "agnostic" and not concept):
            raise InvalidParameter(
                f"release={self.release!r} and constants={self.constants!r} with a student: give "
                "a concept class, and no student for constants='paper'."
            )
        student = check_student(training.model if self.student is None else self.student)
        named = np.array([*self.classes, None], dtype=object)[:-1]
        try_student(student, training.rows, training.columns, _plain(named))
        if X_public is not None:
            count = length_of(X_public)
            if not count:
                raise InvalidData("X_public has no rows; give some, or leave it out.")
        else:
            count = check_count(FIRST if self.n_first == "auto" else self.n_first, "n_first", 1)
        first = self._first(training, count, self.epsilon, source)
        first.set_params(columns=self.columns, classes=self.classes)
        if self.mechanism == "auto":  # the others release no shares to learn from
            first.mechanism = "gaussian" if self.delta > 0 else "laplace"
        first.fit(X, y)  # releases nothing before it is asked
        pool = None if X_public is None else first._queries(X_public)
        total = Approximate(first.guarantee_.epsilon, first.guarantee_.delta)
        claims = ("UNV", *first.guarantee_.claims)
        guarantee = self._begin(training, first, total, claims, count, source)
        self._frames_ = first._frames_
        self.stages_.append({"name": "student", "epsilon": 0.0, "delta": 0.0, "rows": 0})
        self.guarantee_ = guarantee
        if pool is not None:
            self._answer_first(pool)
            self._switch()
        return self

    def _begin(
        self,
        training: Training,
        first: QueryRelease | AgnosticQueryRelease,
        total: Approximate,
        claims: tuple[str, ...],
        count: int,
        source: Source,
    ) -> Guarantee:
        """Pay for both stages, and set what is known after ``fit``."""
        # The release's last claim is about its coins; the promise adds it again.
        claims = tuple(dict.fromkeys(name for name in claims if name != "RAND"))
        inner = first.guarantee_
        plan = Plan(pair_cost(total), claims, assumptions=inner.assumptions)
        guarantee = self._start(training, plan, source)
        self._source_, self.n_first_ = source, count
        self._labels_ahead_ = random_labels(len(self.classes_), source)
        self._first_ = first
        self._waiting_ = None
        self._lessons_, self._asked_ = [], 0
        self.mechanism_, self.why_, self.n_shards_ = first.mechanism_, first.why_, first.n_shards_
        self.noise_per_vote_ = first.noise_per_vote_
        self.stages_: list[dict[str, Any]] = [
            {
                "name": "first queries",
                "epsilon": inner.epsilon,
                "delta": inner.delta,
                "rows": training.rows.n_rows,
            }
        ]
        return guarantee

    @property
    def remaining_(self) -> float:
        """Answers left: there is no end."""
        check_is_fitted(self, "guarantee_")
        return math.inf

    @property
    def stage_(self) -> int:
        """1 while votes answer, 2 when what was published does."""
        check_is_fitted(self, "guarantee_")
        return 1 if self._asked_ < self.n_first_ else 2

    @property
    def hypothesis_(self) -> Hypothesis:
        """What was published for the second stage; it may be used freely."""
        check_is_fitted(self, "guarantee_")
        drawn = None if self._waiting_ is None else self._waiting_.hypothesis
        if drawn is None:
            raise AttributeError(
                "a hypothesis is published after the first stage, and for a concept class only."
            )
        return drawn

    @property
    def student_(self) -> Any:
        """What was trained for the second stage; it may be used freely."""
        check_is_fitted(self, "guarantee_")
        if not hasattr(self, "_student_"):
            raise AttributeError("a student is trained after the first stage, if there is one.")
        return self._student_

    @property
    def answered_(self) -> tuple[Any, NDArray[np.float64]]:
        """Queries of the first stage, and the share of each class in their answers."""
        check_is_fitted(self, "guarantee_")
        lesson = self._lesson()
        return lesson.queries, lesson.shares

    @claim("UNV")
    @one_at_a_time
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Answer queries in order: never refused for their number; a batch may cross the stages."""
        table = self._queries(X)
        votes = min(len(table), self.n_first_ - self._asked_)
        answers = (
            [self._named(self._answer_first(table[:votes]), unanswered=bool(self.abstain))]
            if votes
            else []
        )
        if self.stage_ == 2:
            self._switch()
            answers.append(self._answer_later(table[votes:]))
        if not answers:
            return self.classes_[:0]
        return np.concatenate(answers) if len(answers) > 1 else answers[0]

    def _answer_first(self, table: Any) -> Integers:
        """Answer by votes, and remember the queries, which are public."""
        first, n_classes = self._first_, len(self.classes_)
        self._asked_ += len(table)
        left = min(len(table), first.remaining_)
        labels = np.full(len(table), UNSTABLE, dtype=np.int64)
        if left and isinstance(first._answers_, NoisyMajority):
            counts = first._noisy(table[:left])
            labels[:left] = np.argmax(counts, axis=1)
            self._lessons_.append(Lesson.of_votes(table[:left], counts))
        elif left:
            labels[:left] = first._answer(table[:left])
            self._lessons_.append(Lesson.of_labels(table[:left], labels[:left], n_classes))
        if left < len(table):
            warnings.warn(
                f"{len(table) - left} queries were not looked at, because no unclear answer is "
                f"left for the first {self.n_first_}; declare a larger alpha or max_unstable.",
                stacklevel=3,
            )
            unseen = table[left:]
            self._lessons_.append(Lesson.of_labels(unseen, labels[left:], n_classes))
        unclear = np.flatnonzero(labels == UNSTABLE)
        if not self.abstain and len(unclear):
            labels[unclear] = self._labels_ahead_.take(len(unclear))
        return labels

    @claim("UNV")
    def _switch(self) -> None:
        """Publish what answers from now on, once; the private models and rows are dropped."""
        self.__dict__.pop("_first_", None)
        if self._waiting_ is not None:
            if self._waiting_.hypothesis is None:
                self._waiting_.draw(self._lesson().queries)
        elif not hasattr(self, "_student_"):
            student = self._model() if self.student is None else self.student
            seed = integers(2**31 - 1, source=self._source_)
            self._student_ = train_student(student, self._lesson(), self.classes_, seed)

    def _answer_later(self, table: Any) -> NDArray[Any]:
        if not len(table):
            return self.classes_[:0]
        if self._waiting_ is not None:
            return self._named(self.hypothesis_.predict(table))
        return np.asarray(self._student_.predict(table))

    def _lesson(self) -> Lesson:
        if not self._lessons_:
            return Lesson(np.zeros((0, self.n_features_in_)), np.zeros((0, len(self.classes_))))
        tables = [lesson.queries for lesson in self._lessons_]
        shares = np.concatenate([lesson.shares for lesson in self._lessons_])
        queries = pd.concat(tables, ignore_index=True) if self._frames_ else np.concatenate(tables)
        return Lesson(queries, shares)


def _plain(classes: NDArray[Any]) -> NDArray[Any]:
    """Return classes as an array of one type, if they have one."""
    plain = np.array(classes.tolist())
    return plain if plain.tolist() == classes.tolist() else classes
