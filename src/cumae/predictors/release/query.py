"""Answers to up to m queries: QueryRelease, Algorithm 5 of paper 3 with several mechanisms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from cumae.claims import claim
from cumae.concepts import ConceptClass, Hypothesis
from cumae.data import Declared, clean_table
from cumae.errors import InvalidParameter
from cumae.live import one_at_a_time
from cumae.parameters import check_choice
from cumae.predictors.base import Training
from cumae.predictors.relabelling import check_draw, need_numbers
from cumae.predictors.release.answers import ONLINE, AnswerPlan, Demand, plan_answers
from cumae.predictors.release.base import ASSUMPTIONS, Release, check_queries
from cumae.predictors.release.offline import Offline
from cumae.privacy import Budget
from cumae.privacy.plans import Plan
from cumae.randomness import Source, source_for
from cumae.theorems.query_release import need_rows, subsamp_sizes


@claim("QUERY")
class QueryRelease(Release):
    """Answer up to ``max_queries`` classification queries about private rows.

    The rows are split at random into disjoint shards. Each shard trains a model that stays
    private; the models vote, and a mechanism turns their vote counts into labels. The guarantee
    covers the training rows; queries are public.

    Parameters
    ----------
    estimator
        Any scikit-learn classifier or Pipeline, or a class of ``cumae.concepts``; None means
        ``DecisionTreeClassifier(max_depth=4)``. Preprocessing belongs into the pipeline: each
        shard fits its own.
    epsilon, delta
        Privacy parameters of all answers together.
    max_queries
        How many queries will be answered; 1 is single-query prediction.
    mechanism
        ``"gaussian"`` or ``"laplace"``: noisy majority on every query. ``"stability"``,
        ``"between"``: clear majorities are free, up to ``max_unstable`` unclear ones are paid
        for. ``"offline"``: all queries in one batch, for concept classes. ``"auto"`` takes the
        online one with the least noise, judged by public numbers alone; ``why_`` tells.
    n_shards
        Number of models; ``"auto"`` balances their quality against the noise, from the number of
        rows and the mechanism's noise alone.
    concept_class
        The same as ``estimator``, for a class of ``cumae.concepts``.
    alpha, beta
        Declared share of queries without a clear majority, and the chance that there are more.
        They only set ``max_unstable``.
    max_unstable
        Unclear answers that ``"stability"`` and ``"between"`` may give; ``"auto"`` follows from
        ``max_queries``, alpha and beta.
    abstain
        Whether an unclear answer is -1; otherwise it is a random class.
    constants
        ``"paper"`` takes the sizes of Algorithm 5 for a concept class, alpha and beta, and
        refuses fewer rows than they need.
    columns
        Declared bounds or categories of columns, as for the learners; rows are then encoded by
        them. A data frame without them reaches the estimator as a frame.
    classes
        Labels that may occur; never read from the rows. Rows with any other label are left out
        by their shard. A shard that lacks a class, or whose fit fails or warns, votes
        for the first one: put the most common class there.
    n_jobs, progress
        As in joblib; and whether to show a progress bar (None: on a terminal).
    budget
        An account to pay from.
    random_state
        None in production; a seed voids the guarantee.

    Attributes
    ----------
    guarantee_
        What is promised for the training rows.
    remaining_
        Answers left; 0 also when no unclear answer is left.
    mechanism_, why_
        What answers, and why it was chosen.
    n_shards_, noise_per_vote_
        Models, and the standard deviation of the noise as a share of them: below 0.15 it works
        well.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae import QueryRelease
    >>> from cumae.concepts import Thresholds
    >>> x = np.random.default_rng(0).random((20_000, 1))
    >>> release = QueryRelease(Thresholds(), epsilon=1.0, delta=1e-6, max_queries=500)
    >>> release.fit(x, x[:, 0] > 0.3).predict([[0.05], [0.9]])
    array([0, 1])
    >>> release.remaining_
    498
    >>> release.guarantee_.epsilon <= 1
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        max_queries: int = 1000,
        mechanism: str = "auto",
        n_shards: int | str = "auto",
        *,
        concept_class: ConceptClass | None = None,
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
        self.max_queries = max_queries
        self.mechanism = mechanism
        self.n_shards = n_shards
        self.concept_class = concept_class
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
    def fit(self, X: Any, y: Any) -> Self:
        """Train the shards, and pay for all answers.

        Parameters
        ----------
        X
            Private rows: an array, a memory map, a list of rows, a data frame, or
            :class:`~cumae.predictors.ParquetRows`.
        y
            Their labels; the name of a column for Parquet files.
        """
        training = self._training(X, y)
        check_choice(self.mechanism, ("auto", "offline", *ONLINE), "mechanism")
        check_choice(self.constants, ("practical", "paper"), "constants")
        if self.mechanism == "offline":
            return self._fit_offline(training)
        demand = self._demand(self.epsilon, self.delta, training.n_classes)
        if self.constants == "paper":
            answers, n_shards = self._printed(training, demand)
        else:
            answers = plan_answers(self.mechanism, demand)
            n_shards = self._count_shards(training, answers)
        fixed = self.n_shards != "auto" or self.constants == "paper"
        n_shards = self._try_out(
            training.trainer, training, training.rows.n_rows, n_shards, fixed=fixed
        )
        source = source_for(self.random_state)
        started = answers.start(n_shards, source)
        claims = ("QUERY", "SHARDS", *answers.claims, "COMP")
        plan = Plan(started.cost, claims, assumptions=ASSUMPTIONS)
        self._warn_of_noise(training.rows.n_rows, n_shards, answers)
        guarantee = self._start(training, plan, source)
        self._ensemble_ = self._train(training, n_shards, source)
        self._open(answers, started, n_shards, source)
        self.guarantee_ = guarantee
        return self

    def _printed(self, training: Training, demand: Demand) -> tuple[AnswerPlan, int]:
        """Return the mechanism and the number of shards of Algorithm 5."""
        if not isinstance(training.model, ConceptClass):
            raise InvalidParameter(
                "constants='paper' takes a concept class, because sizes follow from its VC "
                "dimension; give one of cumae.concepts, or constants='practical'."
            )
        for name in ("n_shards", "max_unstable"):
            if getattr(self, name) != "auto":
                raise InvalidParameter(f"constants='paper' sets {name}; leave it at 'auto'.")
        if self.mechanism not in ("auto", "stability"):
            raise InvalidParameter(f"mechanism={self.mechanism!r}: the paper has 'stability'.")
        columns = training.columns
        width = training.rows.n_features if columns is None else len(columns)
        vc = training.model.vc_dimension(width)
        sizes = subsamp_sizes(
            demand.max_queries, self.alpha, self.beta, self.epsilon, self.delta, vc
        )
        need_rows(training.rows.n_rows, sizes.n_rows)
        printed = replace(demand, max_unstable=sizes.max_unstable)
        return plan_answers("stability", printed), sizes.n_shards

    def _fit_offline(self, training: Training) -> Self:
        concept = training.model
        if not isinstance(concept, ConceptClass):
            raise InvalidParameter(
                "mechanism='offline' takes a concept class, because the candidates are its "
                "labellings of the queries; give one of cumae.concepts, or take another mechanism."
            )
        count = check_queries(self.max_queries)
        need_numbers(training.rows, training.columns)
        check_draw(concept, self.epsilon, max(count, training.rows.n_rows))
        source = source_for(self.random_state)
        plan = Plan(
            concept.choose_cost(self.epsilon), ("QUERY", "SSPP", "CHOOSE"), assumptions=ASSUMPTIONS
        )
        guarantee = self._start(training, plan, source)
        table, labels = clean_table(training.rows, training.labels, training.columns)
        self._offline_ = Offline(concept, table, labels, self.epsilon, count, source)
        self.mechanism_, self.why_ = "offline", "mechanism='offline' was asked for"
        self.guarantee_ = guarantee
        return self

    @property
    def remaining_(self) -> int:
        """Answers left; 0 also when no unclear answer is left."""
        check_is_fitted(self, "guarantee_")
        return self._offline_.remaining if self.mechanism_ == "offline" else super().remaining_

    @property
    def hypothesis_(self) -> Hypothesis:
        """What ``"offline"`` published with its answers; it may be used freely."""
        check_is_fitted(self, "guarantee_")
        if self.mechanism_ != "offline" or self._offline_.hypothesis is None:
            raise AttributeError("only mechanism='offline' publishes a hypothesis, when asked.")
        return self._offline_.hypothesis

    @one_at_a_time
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Answer queries in order, and count them; a batch that is too large is refused whole."""
        check_is_fitted(self, "guarantee_")
        if self.mechanism_ != "offline":
            return super().predict(X)
        table = self._queries(X)
        return self._named(self._offline_.ask(table), unanswered=False)
