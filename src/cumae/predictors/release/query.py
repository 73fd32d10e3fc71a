"""Answers to up to m queries: QueryRelease, with several mechanisms.

It follows Algorithm 5 of "Privately Answering Classification Queries in the Agnostic PAC Model"
(Nandi, Bassily; paper 3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from cumae.claims import claim
from cumae.concepts import ConceptClass, Hypothesis
from cumae.data import Declared
from cumae.effort import Effort
from cumae.errors import InvalidParameter
from cumae.live import one_at_a_time
from cumae.mechanisms import Coins
from cumae.outlook import FitPlan
from cumae.parameters import CHANCE, DELTA, EPSILON, Choice, Count, Flag, Kind, Object, Or
from cumae.predictors.answering.calls import Asked, ProposedAnswers
from cumae.predictors.answering.events import Entered
from cumae.predictors.base import ESTIMATOR, SHARED_PARAMETERS, TEXT_SIZE, Training
from cumae.predictors.records import TEXT_BYTES
from cumae.predictors.release.answers import ONLINE, plan_answers
from cumae.predictors.release.base import (
    ASSUMPTIONS,
    AUTO_COUNT,
    CONSTANTS,
    PlannedRelease,
    Release,
)
from cumae.predictors.release.offline import Offline
from cumae.predictors.release.state import ReleaseState
from cumae.privacy import Budget
from cumae.privacy.guarantee import up_to
from cumae.privacy.plans import Plan
from cumae.randomness import Source, source_for
from cumae.theorems.query_release import SubSampSizes, subsamp_sizes
from cumae.theorems.rows import need_rows

ASKED = "mechanism='offline' was asked for"


@claim("QUERY")
class QueryRelease(Release):
    """Answers to up to ``max_queries`` classification queries about private rows.

    The rows are split at random into disjoint shards. Each shard trains a model that stays
    private; the models vote, and a mechanism turns their vote counts into labels. The guarantee
    covers the training rows; queries are public.

    Parameters
    ----------
    estimator : classifier, Pipeline or ConceptClass, or None
        Any scikit-learn classifier or Pipeline, or a class of ``cumae.concepts``; None means
        ``DecisionTreeClassifier(max_depth=4)``. Put preprocessing into the pipeline: each shard
        fits its own.
    epsilon : float of 0 or more
        Privacy parameter of all answers together.
    delta : float from 0 and below 1
        Privacy parameter of all answers together.
    max_queries : int of 1 or more
        How many queries will be answered; 1 is single-query prediction.
    mechanism : {"auto", "offline", "stability", "between", "gaussian", "laplace"}
        ``"gaussian"`` or ``"laplace"``: noisy majority on every query. ``"stability"``,
        ``"between"``: clear majorities are free, and up to ``max_unstable`` unclear ones are paid
        for. ``"offline"``: all queries in one batch, for concept classes. ``"auto"`` takes the
        one with the least noise, ``"offline"`` left out, by public numbers alone; ``why_`` tells
        the reason.
    n_shards : int of 1 or more, or "auto"
        Number of models; ``"auto"`` balances their quality against the noise, from the number of
        rows and the mechanism's noise alone. An estimator that needs larger shards gets them, by
        a trial on made-up tables.
    concept_class : ConceptClass, or None
        The same as ``estimator``, for a class of ``cumae.concepts``.
    alpha : float above 0 and below 1
        Declared share of queries without a clear majority. It only sets ``max_unstable``.
    beta : float above 0 and below 1
        Chance that there are more of them. It only sets ``max_unstable``.
    max_unstable : int of 1 or more, or "auto"
        Unclear answers that ``"stability"`` and ``"between"`` may give; ``"auto"`` follows from
        ``max_queries``, ``alpha`` and ``beta``.
    abstain : bool
        Whether an unclear answer is -1; otherwise it is a random class.
    constants : {"practical", "paper"}
        ``"paper"`` takes the sizes of Algorithm 5 for a concept class, ``alpha`` and ``beta``, and
        refuses fewer rows than it needs.
    text_bytes : int of 48 or more
        Texts in columns of a data frame that were not declared are cut to so many bytes in UTF-8,
        before any model sees them, also without a file. So no length in an oracle's file tells a
        text. Give as many as the longest text that matters has.
    columns : mapping or sequence, or None
        What each column holds: numbers and their range, categories, true and false, or dates, and
        whether cells may be missing. :class:`~cumae.Columns` has the forms.
        Rows are then encoded by it, and missing cells that were declared are as good as others.
        Without it, a data frame reaches the estimator as a frame, and may have no dates.
    classes : sequence of labels
        Labels that may occur; they are never read from the rows. Shards leave out rows with any
        other label. A shard that lacks a class, or whose fit fails or warns, votes for the first
        class: put the most common one there.
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
        What is promised for the training rows.
    remaining_ : int
        Answers left; 0 also when no unclear answer is left.
    mechanism_, why_ : str
        The mechanism that answers, and why it was chosen.
    n_shards_ : int
        Number of models.
    noise_per_vote_ : float
        Standard deviation of the noise as a share of the votes: below 0.15 it works well.
    size_trial_ : list of dict
        Sizes of shards that were tried on made-up tables, and the share of right answers there;
        empty for a concept class, or if ``n_shards`` was given.

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

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "estimator": ESTIMATOR,
        "epsilon": EPSILON,
        "delta": DELTA,
        "max_queries": Count(1),
        "mechanism": Choice(("auto", "offline", *ONLINE)),
        "n_shards": AUTO_COUNT,
        "concept_class": Or(None, Object("ConceptClass")),
        "alpha": CHANCE,
        "beta": CHANCE,
        "max_unstable": AUTO_COUNT,
        "abstain": Flag(),
        "constants": CONSTANTS,
        "text_bytes": TEXT_SIZE,
        **SHARED_PARAMETERS,
    }

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
        self.max_queries = max_queries
        self.mechanism = mechanism
        self.n_shards = n_shards
        self.concept_class = concept_class
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

    @one_at_a_time
    def fit(self, X: Any, y: Any) -> Self:
        """Train the shards, and pay for all answers.

        Parameters
        ----------
        X : array, memory map, list of rows, data frame or ParquetRows
            Private rows.
        y : array-like or str
            Their labels; the name of a column for Parquet files.

        Raises
        ------
        InvalidParameter
            If a parameter is wrong, or does not go with the number of rows.
        InvalidData
            If the rows cannot be used by their type or number; a single row never raises.
        BudgetExhausted
            If the account does not hold enough.
        """
        training = self._training(X, y)
        source = source_for(self.random_state)
        plan = self.decide(training)
        if self.mechanism == "offline":
            self._fit_offline(training, plan, source)
        else:
            self._fit_votes(training, plan, source)
        return self

    def plan_release(self, training: Training) -> PlannedRelease:
        demand = self._demand(training.n_classes)
        mechanism, printed = self.mechanism, None
        if self.constants == "paper":
            sizes = self._printed(training)
            need_rows(training.rows.n_rows, sizes.n_rows)
            demand = replace(demand, max_unstable=sizes.max_unstable)
            mechanism, printed = "stability", sizes.n_shards
        answers = plan_answers(mechanism, demand)
        n_shards, trial = self._count_shards(training, answers, printed)
        rule = answers.rule(n_shards)
        claims = ("QUERY", "SHARDS", *answers.claims, "COMP")
        plan = Plan(rule.cost, claims, assumptions=ASSUMPTIONS, covers=up_to(self.max_queries))
        self._warn_of_noise(training.rows.n_rows, n_shards, answers)
        return PlannedRelease(demand, answers, rule, n_shards, plan, trial=trial)

    def _printed(self, training: Training) -> SubSampSizes:
        """Return the sizes of Algorithm 5."""
        if not isinstance(training.model, ConceptClass):
            raise InvalidParameter(
                "constants='paper' takes a concept class, because sizes follow from its VC "
                "dimension; give one of cumae.concepts, or constants='practical'."
            )
        for name in ("n_shards", "max_unstable"):
            if getattr(self, name) != "auto":
                raise InvalidParameter(f"constants='paper' sets {name}; leave it at 'auto'.")
        if self.mechanism not in ("auto", "stability"):
            raise InvalidParameter(
                f"mechanism={self.mechanism!r}: the paper has 'stability'; leave it at 'auto'."
            )
        vc = training.vc_dimension
        return subsamp_sizes(self.max_queries, self.alpha, self.beta, self.epsilon, self.delta, vc)

    def decide(self, training: Training) -> FitPlan[Any]:
        """Decide how votes answer, or plan one draw for all queries, which has no further steps."""
        if self.mechanism != "offline":
            return super().decide(training)
        concept = training.model
        if not isinstance(concept, ConceptClass):
            raise InvalidParameter(
                "mechanism='offline' takes a concept class, because the candidates are its "
                "labellings of the queries; give one of cumae.concepts, or take another mechanism."
            )
        training.need_numbers()
        concept.check_draw(self.epsilon, max(self.max_queries, training.rows.n_rows))
        cells = training.rows.n_rows * training.width
        return FitPlan(
            concept.choose_cost(self.epsilon),
            ("QUERY", "SSPP", "CHOOSE"),
            assumptions=ASSUMPTIONS,
            covers=up_to(self.max_queries),
            steps=None,
            facts={"mechanism": "offline", "why": ASKED, "max_queries": int(self.max_queries)},
            work=(Effort("draws", cells, cells),),
        )

    def _fit_offline(self, training: Training, plan: FitPlan[None], source: Source) -> None:
        guarantee = self._start(training, plan, source)
        rows = training.cleaned()
        offline = Offline(training.model, rows, self.epsilon, int(self.max_queries))
        fitted = self._fitted(training, guarantee, source, mechanism_="offline", why_=ASKED)
        self._go_on(ReleaseState(fitted, offline=offline))

    @property
    def hypothesis_(self) -> Hypothesis:
        """The hypothesis that ``"offline"`` published with its answers; it may be used freely."""
        offline = self._settled_state().offline
        if offline is None or offline.hypothesis is None:
            raise AttributeError(
                "only mechanism='offline' publishes a hypothesis, with its answers; call predict."
            )
        found: Hypothesis = offline.hypothesis
        return found

    def _check(self, asked: Asked, state: ReleaseState) -> None:
        if state.offline is None or asked.as_counts:
            super()._check(asked, state)
        else:
            state.offline.check(len(asked.rows))

    def _answer_made_up(self, state: ReleaseState) -> None:
        if state.offline is None:  # else the first batch is the last, and takes long anyhow
            super()._answer_made_up(state)

    @claim("QUERY", "SSPP")
    def _answers(
        self, part: Asked, state: ReleaseState, reserved: Any, coins: Coins
    ) -> ProposedAnswers:
        if state.offline is None:
            return super()._answers(part, state, reserved, coins)
        drawn, count = state.offline.draw(part.rows, reserved, coins.source), len(part.rows)
        if drawn.hypothesis is None:
            raise AssertionError("nothing was drawn")
        labels = drawn.hypothesis.predict(part.rows)
        whole = replace(state, offline=drawn, answered=state.answered + count)
        return ProposedAnswers(np.asarray(labels, dtype=np.int64), Entered(whole, count))
