"""Answers when no concept is right: AgnosticQueryRelease, Algorithms 2 and 3 of paper 3."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Self

import numpy as np

from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.concepts.relabelling import EPSILONS, most_points, relabelled
from cumae.data import ArrayRows, Declared
from cumae.errors import InvalidParameter
from cumae.live import one_at_a_time
from cumae.parameters import check_choice
from cumae.predictors.base import Training
from cumae.predictors.relabelling import (
    Relabelling,
    Wish,
    agnostic_costs,
    check_draw,
    encoded_width,
    need_numbers,
    plan_relabelling,
    read_pair,
    relabel,
)
from cumae.predictors.release.answers import ONLINE, AnswerPlan, Demand, plan_answers
from cumae.predictors.release.base import ASSUMPTIONS, Release
from cumae.privacy import Approximate, Budget
from cumae.privacy.plans import Plan, pair_cost
from cumae.privacy.validation import check_nonnegative
from cumae.randomness import Source, source_for
from cumae.theorems.query_release import SAMPLED, AgnosticSizes, agnostic_sizes, need_rows


@claim("AGPRIV")
class AgnosticQueryRelease(Release):
    """Answer up to ``max_queries`` queries when no concept of the class labels all rows right.

    A random part of the rows is labelled anew by a hypothesis that is drawn privately among all
    labellings that the class has for them, and stays private. These rows are split into disjoint
    shards, whose models agree more than they would on the noisy labels; then it goes on as
    :class:`~cumae.predictors.QueryRelease`. The guarantee covers the training rows; queries are
    public.

    Only part of the rows is used, so that :class:`~cumae.predictors.QueryRelease` is often
    better with the same rows: this one is for labels so noisy that small shards disagree.

    Parameters
    ----------
    concept_class
        From ``cumae.concepts``, with a proven ``label_boost_k`` (trees have none).
    epsilon, delta
        Privacy parameters of all answers together.
    max_queries
        How many queries will be answered.
    mechanism, n_shards, max_unstable, abstain
        As in :class:`~cumae.predictors.QueryRelease`, without ``"offline"``.
    alpha, beta
        Error beyond the best concept's that is aimed at, and the chance of more. They set
        ``max_unstable`` and how good the draw has to be; for ``"paper"`` all sizes.
    constants
        ``"practical"`` uses as many rows as privacy allows. ``"paper"`` runs the printed
        algorithm, and refuses with the number of rows that it needs when there are fewer.
    epsilon_boost, epsilon_answers
        Parameter of the draw, and epsilon of the answers, before they are amplified by sampling.
        ``"auto"`` lets rows times the answers' epsilon be about largest.
    resample
        Whether shards get rows drawn with replacement, as the paper has it: it costs more, and
        helps its proof only.
    columns, n_jobs, progress, budget, random_state
        As in :class:`~cumae.predictors.QueryRelease`.
    classes
        Two labels; rows with any other label, or with a cell that is no number, count as
        zeros with the first label. A shard that lacks a class votes for the first one: put the
        most common class there.

    Attributes
    ----------
    guarantee_, remaining_, mechanism_, why_, n_shards_, noise_per_vote_
        As in :class:`~cumae.predictors.QueryRelease`.
    n_sampled_, epsilon_boost_, epsilon_answers_
        Rows that were drawn, and the epsilons of the draw and of the answers.
    stages_
        What a row pays after each step, from the inside out; the last is the whole.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Thresholds
    >>> from cumae.predictors.release.agnostic import AgnosticQueryRelease
    >>> rng = np.random.default_rng(0)
    >>> x = rng.random((100_000, 1))
    >>> y = (x[:, 0] > 0.3) ^ (rng.random(100_000) < 0.1)
    >>> release = AgnosticQueryRelease(Thresholds(), epsilon=2.0, max_queries=100)
    >>> release.fit(x, y).predict([[0.05], [0.9]])
    array([0, 1])
    >>> [stage["name"] for stage in release.stages_]
    ['answers', 'relabelled', 'sampled']
    >>> release.guarantee_.epsilon <= 2
    True
    """

    estimator = None

    def __init__(
        self,
        concept_class: ConceptClass,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        max_queries: int = 1000,
        *,
        mechanism: str = "auto",
        n_shards: int | str = "auto",
        alpha: float = 0.1,
        beta: float = 0.05,
        max_unstable: int | str = "auto",
        abstain: bool = False,
        constants: str = "practical",
        epsilon_boost: float | str = "auto",
        epsilon_answers: float | str = "auto",
        resample: bool = False,
        columns: Declared = None,
        classes: Any = (0, 1),
        n_jobs: int | None = None,
        progress: bool | None = None,
        budget: Budget | None = None,
        random_state: int | Source | None = None,
    ) -> None:
        self.concept_class = concept_class
        self.epsilon = epsilon
        self.delta = delta
        self.max_queries = max_queries
        self.mechanism = mechanism
        self.n_shards = n_shards
        self.alpha = alpha
        self.beta = beta
        self.max_unstable = max_unstable
        self.abstain = abstain
        self.constants = constants
        self.epsilon_boost = epsilon_boost
        self.epsilon_answers = epsilon_answers
        self.resample = resample
        self.columns = columns
        self.classes = classes
        self.n_jobs = n_jobs
        self.progress = progress
        self.budget = budget
        self.random_state = random_state

    @one_at_a_time
    def fit(self, X: Any, y: Any) -> Self:
        """Draw, relabel, train the shards, and pay for all answers.

        Parameters
        ----------
        X, y
            Private rows and labels, as for :class:`~cumae.predictors.QueryRelease`.
        """
        training = self._training(X, y)
        concept = self._check_concept(training)
        width = encoded_width(training)
        vc = max(1, concept.vc_dimension(width))
        steps, demand = self._steps(concept, training.rows.n_rows, width, vc)
        check_draw(concept, steps.epsilon, steps.n_sampled)
        answers = plan_answers(self._mechanism(), demand)
        # Shards are planned for the sample: a table of its size, which takes no memory.
        sized = ArrayRows(np.broadcast_to(0.0, (steps.n_sampled, width)))
        sampled = replace(training, rows=sized, columns=None)
        n_shards = self._shards_planned(sampled, answers, vc)
        fixed = self.n_shards != "auto" or self.constants == "paper"
        n_shards = self._try_out(sampled.trainer, sampled, steps.n_sampled, n_shards, fixed=fixed)
        source = source_for(self.random_state)
        started = answers.start(n_shards, source)
        costs = agnostic_costs(read_pair(started.cost, demand), steps, concept)
        plan = self._plan(costs[-1][1], steps, answers.claims)
        self._warn_of_noise(steps.n_sampled, n_shards, answers)
        guarantee = self._start(training, plan, source)
        self._frames_ = False  # models are trained on numbers
        self._ensemble_ = self._train(relabel(training, steps, source), n_shards, source)
        self._open(answers, started, n_shards, source)
        self.n_sampled_, self.epsilon_boost_ = steps.n_sampled, steps.epsilon
        self.epsilon_answers_ = demand.epsilon
        self.stages_ = _stages(costs, steps)
        self.guarantee_ = guarantee
        return self

    def _check_concept(self, training: Training) -> ConceptClass:
        concept = self.concept_class
        if not isinstance(concept, ConceptClass):
            raise InvalidParameter(
                f"concept_class is a {type(concept).__name__}; give one of cumae.concepts, such as "
                "Thresholds(). For any estimator there is QueryRelease."
            )
        relabelled(Approximate(0.0, 0.0), 1.0, "S", concept, 1)  # refuses one without a proven k
        need_numbers(training.rows, training.columns)
        check_choice(self.constants, ("practical", "paper"), "constants")
        check_choice(self.mechanism, ("auto", *ONLINE), "mechanism")
        return concept

    def _mechanism(self) -> str:
        return "stability" if self.constants == "paper" else self.mechanism

    def _steps(
        self, concept: ConceptClass, n_rows: int, width: int, vc: int
    ) -> tuple[Relabelling, Demand]:
        """Choose all numbers from what is public."""
        asked = self._demand(self.epsilon, self.delta, 2)
        if self.constants == "paper":
            sizes = self._printed(vc)
            need_rows(n_rows, sizes.n_rows)
            kept = math.floor(self.epsilon / SAMPLED * n_rows)
            inner = sizes.answers
            demand = Demand(inner.epsilon, inner.delta, asked.max_queries, inner.max_unstable)
            return Relabelling(n_rows, kept, 1.0, resample=True), demand
        most = most_points(concept, width)
        wish = Wish(
            n_rows, most, self.epsilon, self.delta, self.alpha, self.beta, vc, bool(self.resample)
        )
        boosts = _tried(self.epsilon_boost, "epsilon_boost", self.epsilon)
        tried = _tried(self.epsilon_answers, "epsilon_answers", self.epsilon)
        steps, pair = plan_relabelling(wish, concept, boosts, tried)
        return steps, replace(asked, epsilon=pair.eps, delta=pair.failure)

    def _printed(self, vc: int) -> AgnosticSizes:
        given = {
            "mechanism": self.mechanism in ("auto", "stability"),
            "n_shards": self.n_shards == "auto",
            "max_unstable": self.max_unstable == "auto",
            "epsilon_boost": self.epsilon_boost == "auto",
            "epsilon_answers": self.epsilon_answers == "auto",
        }
        for name, free in given.items():
            if not free:
                raise InvalidParameter(
                    f"{name}={getattr(self, name)!r} with constants='paper', which sets it; leave "
                    "it at 'auto'."
                )
        return agnostic_sizes(self.max_queries, self.alpha, self.beta, self.epsilon, self.delta, vc)

    def _shards_planned(self, stand_in: Training, answers: AnswerPlan, vc: int) -> int:
        if self.constants == "paper":
            count = self._printed(vc).answers.n_shards
            return self._check_shards(stand_in.rows.n_rows, count, 2)
        return self._count_shards(stand_in, answers)

    def _plan(self, total: Approximate, steps: Relabelling, claims: tuple[str, ...]) -> Plan:
        cost = pair_cost(total)
        if self.epsilon < math.inf and cost.delta(self.epsilon) > self.delta:
            raise InvalidParameter(
                f"this costs epsilon={total.eps:.6g}, delta={total.failure:.3g}, more than "
                f"epsilon={self.epsilon!r}, delta={self.delta!r}; leave epsilon_boost and "
                "epsilon_answers at 'auto', or take another mechanism."
            )
        boot = ("BOOT",) if steps.resample else ()
        claims = ("AGPRIV", "LB", "SUB", *boot, "CHOOSE", "QUERY", "SHARDS", *claims, "COMP")
        return Plan(cost, claims, assumptions=ASSUMPTIONS[:1])


def _tried(asked: float | str, name: str, epsilon: float) -> list[float]:
    if asked == "auto":
        return [math.inf] if epsilon == math.inf else EPSILONS
    value = check_nonnegative(asked, name)
    if value == 0:
        raise InvalidParameter(f"{name}=0 looks at no row; give more.")
    return [value]


def _stages(costs: list[tuple[str, Approximate]], steps: Relabelling) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "epsilon": pair.eps,
            "delta": pair.failure,
            "rows": steps.n_rows if name == "sampled" else steps.n_sampled,
        }
        for name, pair in costs
    ]
