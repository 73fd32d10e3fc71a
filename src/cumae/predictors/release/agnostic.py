"""Answers when no concept is right: AgnosticQueryRelease.

It follows Algorithms 2 and 3 of "Privately Answering Classification Queries in the Agnostic PAC
Model" (Nandi, Bassily; paper 3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.concepts.candidates.relabelling import ANY_NUMBER, EPSILONS, most_points
from cumae.data import ArrayRows, Declared
from cumae.errors import InvalidParameter
from cumae.live import one_at_a_time
from cumae.parameters import DELTA, EPSILON, Count, Flag, Kind, Number, Object, Or
from cumae.predictors.base import SHARED_PARAMETERS, Training
from cumae.predictors.relabelling import (
    Relabelling,
    SampleGoal,
    agnostic_costs,
    need_boostable,
    plan_relabelling,
    planned_grid,
)
from cumae.predictors.release.answers import Demand, plan_answers
from cumae.predictors.release.base import ASSUMPTIONS, VOTE_PARAMETERS, PlannedRelease, Release
from cumae.predictors.release.state import AgnosticState
from cumae.privacy import Approximate, Budget
from cumae.privacy.guarantee import up_to
from cumae.privacy.plans import Plan, pair_cost, read_pair
from cumae.randomness import Source, source_for
from cumae.sanitizers.grids import CANDIDATES, N_CUTS
from cumae.theorems.query_release import SAMPLED, agnostic_sizes
from cumae.theorems.rows import need_rows

# Parameters that the printed algorithm sets, and the value that says so, too.
PRINTED = {
    "mechanism": "stability",
    "n_shards": "auto",
    "max_unstable": "auto",
    "epsilon_boost": "auto",
    "epsilon_answers": "auto",
    "candidates": "points",
    "n_cuts": "auto",
}


@claim("AGPRIV")
class AgnosticQueryRelease(Release):
    """Answers to up to ``max_queries`` queries, also where no concept of the class is right.

    A random part of the rows is labelled anew by a hypothesis that is drawn privately among all
    labellings that the class has for them, and stays private. These rows are split into disjoint
    shards, whose models agree more than they would on the noisy labels; then it goes on as
    :class:`~cumae.predictors.QueryRelease`. The guarantee covers the training rows; queries are
    public.

    Only part of the rows is used, so that :class:`~cumae.predictors.QueryRelease` is often
    better with the same rows: this one is for labels so noisy that small shards disagree.

    Parameters
    ----------
    concept_class : ConceptClass
        From ``cumae.concepts``, with a proven ``label_boost_k`` (trees have none).
    epsilon : float of 0 or more
        Privacy parameter of all answers together.
    delta : float from 0 and below 1
        Privacy parameter of all answers together.
    max_queries : int of 1 or more
        How many queries will be answered.
    mechanism : {"auto", "stability", "between", "gaussian", "laplace"}
        What answers, as in :class:`~cumae.predictors.QueryRelease`.
    n_shards : int of 1 or more, or "auto"
        Number of models, as in :class:`~cumae.predictors.QueryRelease`.
    alpha : float above 0 and below 1
        Error beyond the best concept's that is aimed at. It sets ``max_unstable`` and how good
        the draw has to be; for ``"paper"`` all sizes.
    beta : float above 0 and below 1
        Chance of a larger error.
    max_unstable : int of 1 or more, or "auto"
        Unclear answers that are paid for, as in :class:`~cumae.predictors.QueryRelease`.
    abstain : bool
        Whether an unclear answer is -1; otherwise it is a random class.
    constants : {"practical", "paper"}
        ``"practical"`` uses as many rows as privacy allows. ``"paper"`` runs the printed
        algorithm, and refuses with the number of rows that it needs when there are fewer.
    epsilon_boost : float above 0, or "auto"
        Parameter of the draw, before it is amplified by sampling. ``"auto"`` makes the product of
        rows and the answers' epsilon about as large as possible.
    epsilon_answers : float above 0, or "auto"
        Epsilon of the answers, before it is amplified by sampling.
    resample : bool
        Whether shards get rows drawn with replacement, as in the paper: it costs more, and only
        the paper's proof needs it.
    candidates : {"auto", "grid", "points"}
        What the hypothesis is drawn from. ``"points"`` is the paper's own: all ways in which the
        class labels the drawn rows. ``"grid"``, for boxes and halfspaces in up to three columns, is
        a public grid: evenly spaced within the ranges that ``columns`` declares, and at private
        quantiles of a twentieth of the rows where no range is declared. Then many more rows can be
        used. ``"auto"`` takes it in two and three columns.
    n_cuts : int of 1 or more, or "auto"
        Cuts of a column in the grid. For boxes ``"auto"`` is 63 in two columns and 15 in three; for
        halfspaces, 96 and 48 offsets in each of many directions.
    columns : mapping or sequence, or None
        What each column holds: numbers and their range, categories, true and false, or dates, and
        whether cells may be missing. :class:`~cumae.Columns` has the forms.
    classes : sequence of labels
        Two labels. Rows with any other label, or with a cell that is no number, count as
        zeros with the first label. A shard that lacks a class votes for the first one: put the
        most common class there.
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
    guarantee_, remaining_, mechanism_, why_, n_shards_, noise_per_vote_
        As in :class:`~cumae.predictors.QueryRelease`.
    n_sampled_ : int
        Rows that were drawn.
    epsilon_boost_, epsilon_answers_ : float
        The epsilons of the draw and of the answers.
    stages_ : list of dict
        What a row pays after each step, from the innermost step to the whole.

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
    state_class = AgnosticState

    n_sampled_: int
    epsilon_boost_: float
    epsilon_answers_: float
    stages_: list[dict[str, Any]]

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "concept_class": Object("ConceptClass"),
        "epsilon": EPSILON,
        "delta": DELTA,
        "max_queries": Count(1),
        **VOTE_PARAMETERS,
        "epsilon_boost": Or("auto", Number(above=True)),
        "epsilon_answers": Or("auto", Number(above=True)),
        "resample": Flag(),
        "candidates": CANDIDATES,
        "n_cuts": N_CUTS,
        **SHARED_PARAMETERS,
    }

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
        candidates: str = "auto",
        n_cuts: int | str = "auto",
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
        self.candidates = candidates
        self.n_cuts = n_cuts
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
        X : array, memory map, list of rows, data frame or ParquetRows
            Private rows.
        y : array-like or str
            Their labels; the name of a column for Parquet files.
        """
        training = self._training(X, y)
        self._fit_votes(training, self.decide(training), source_for(self.random_state))
        return self

    def _model(self) -> ConceptClass:
        return need_boostable(self.concept_class, "QueryRelease")

    def plan_release(self, training: Training) -> PlannedRelease:
        training.need_numbers()
        planned = self._printed if self.constants == "paper" else self._chosen
        steps, demand, printed = planned(training, self._demand(2))
        if steps.grid is None:
            training.model.check_draw(steps.epsilon, steps.n_sampled)
        answers = plan_answers("stability" if self.constants == "paper" else self.mechanism, demand)
        # Shards are planned for the sample: a table of its size, which takes no memory.
        sized = ArrayRows(np.broadcast_to(0.0, (steps.n_sampled, training.width)))
        sampled = replace(training, rows=sized, columns=None)
        n_shards, _ = self._count_shards(sampled, answers, printed)
        rule = answers.rule(n_shards)
        cost = read_pair(rule.cost, demand.epsilon, demand.delta)
        costs = agnostic_costs(cost, steps, training.model if steps.grid is None else None)
        plan = self._plan(costs[-1][1], steps, answers.claims)
        self._warn_of_noise(steps.n_sampled, n_shards, answers)
        return PlannedRelease(demand, answers, rule, n_shards, plan, steps, costs)

    def _chosen(self, training: Training, demand: Demand) -> tuple[Relabelling, Demand, int | None]:
        """Choose the sample, and what its answers may cost, from what is public."""
        concept = training.model
        grid = planned_grid(self.candidates, self.n_cuts, training, float(self.epsilon))
        goal = SampleGoal(
            training.rows.n_rows - (0 if grid is None else grid.n_rows),
            most_points(concept, training.width) if grid is None else ANY_NUMBER,
            self.epsilon,
            self.delta,
            self.alpha,
            self.beta,
            training.vc_dimension,
            bool(self.resample),
            None if grid is None else grid.n_rules,
        )
        every = [math.inf] if self.epsilon == math.inf else EPSILONS
        boosts, answers = (
            every if asked == "auto" else [float(asked)]
            for asked in (self.epsilon_boost, self.epsilon_answers)
        )
        drawn_from = concept if grid is None else None
        steps, pair = plan_relabelling(goal, drawn_from, boosts, answers)
        return (
            replace(steps, grid=grid),
            replace(demand, epsilon=pair.eps, delta=pair.failure),
            None,
        )

    def _printed(
        self, training: Training, demand: Demand
    ) -> tuple[Relabelling, Demand, int | None]:
        """Return what Algorithm 3 prints: the sample, what its answers may cost, and the shards."""
        for name, own in PRINTED.items():
            value = getattr(self, name)
            if value not in ("auto", own):
                raise InvalidParameter(
                    f"{name}={value!r} with constants='paper', which sets it; leave it at 'auto'."
                )
        asked = (self.max_queries, self.alpha, self.beta, self.epsilon, self.delta)
        sizes = agnostic_sizes(*asked, training.vc_dimension)
        n_rows, inner = training.rows.n_rows, sizes.answers
        need_rows(n_rows, sizes.n_rows)
        kept = math.floor(self.epsilon / SAMPLED * n_rows)
        demand = Demand(inner.epsilon, inner.delta, demand.max_queries, inner.max_unstable)
        return Relabelling(n_rows, kept, 1.0, resample=True), demand, inner.n_shards

    def _plan(self, total: Approximate, steps: Relabelling, claims: tuple[str, ...]) -> Plan:
        cost = pair_cost(total)
        if self.epsilon < math.inf and cost.delta(self.epsilon) > self.delta:
            raise InvalidParameter(
                f"this costs epsilon={total.eps:.6g}, delta={total.failure:.3g}, more than "
                f"epsilon={self.epsilon!r}, delta={self.delta!r}; leave epsilon_boost and "
                "epsilon_answers at 'auto', or take another mechanism."
            )
        boot = ("BOOT",) if steps.resample else ()
        drawn = ("CHOOSE",) if steps.grid is None else steps.grid.claims
        claims = ("AGPRIV", "LB", "SUB", *boot, *drawn, "QUERY", "SHARDS", *claims, "COMP")
        covers = up_to(self.max_queries)
        return Plan(cost, claims, assumptions=ASSUMPTIONS[:1], covers=covers)

    def _shown(self, planned: PlannedRelease) -> dict[str, Any]:
        steps = planned.steps
        if steps is None:
            raise AssertionError("there is no sample")
        stages = [
            {
                "name": name,
                "epsilon": pair.eps,
                "delta": pair.failure,
                "rows": steps.n_rows if name == "sampled" else steps.n_sampled,
                **({"candidates": "grid"} if steps.grid and name == "relabelled" else {}),
            }
            for name, pair in planned.costs
        ]
        return {
            **super()._shown(planned),
            "n_sampled_": steps.n_sampled,
            "epsilon_boost_": steps.epsilon,
            "epsilon_answers_": planned.demand.epsilon,
            "stages_": stages,
        }
