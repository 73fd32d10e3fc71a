"""GenericBBL, the everlasting predictor of "Private Everlasting Prediction" (paper 2).

Its votes keep no state unless they are asked to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.concepts.candidates.grid import GridRules
from cumae.data import Declared
from cumae.effort import Effort
from cumae.errors import BudgetExhausted, InvalidParameter
from cumae.live import one_at_a_time
from cumae.mechanisms import Coins, Spent
from cumae.outlook import Fact, FitPlan
from cumae.parameters import CHANCE, DELTA, EPSILON, Choice, Count, Flag, Kind, Number, Object, Or
from cumae.predictors.answering.calls import Asked, Call, ProposedAnswers, Step
from cumae.predictors.answering.events import Answered, Supplied, Used
from cumae.predictors.base import SHARED_PARAMETERS, Training, check_fitted
from cumae.predictors.bbl.checks import LEAST_ROWS, check_phases, warn_of_noise
from cumae.predictors.bbl.given import BBLOptions, PublicCounts
from cumae.predictors.bbl.phases import LabelledPhase, boost_labels, noise_share, votes_of
from cumae.predictors.bbl.rules import BBLRules
from cumae.predictors.bbl.state import BBLState, LabelsDrawn, trains
from cumae.predictors.relabelling import draw_rows, need_boostable, planned_grid, relabelled_by
from cumae.predictors.stateful import PhasedPredictor, check_classes
from cumae.privacy import Budget
from cumae.randomness import Source, source_for
from cumae.sanitizers.grids import CANDIDATES, N_CUTS, GridPlan

AUTO_COUNT = Or("auto", Count(1))
AUTO_SHARE = Or("auto", Number(0.0, 1.0, above=True))


@claim("BBL")
class GenericBBL(PhasedPredictor):
    """Answers for ever by the paper's algorithm, which relabels queries by a private hypothesis.

    Rows are split into disjoint shards, and each trains the best concept. Queries are answered by
    their vote. After a fixed number of answers, a hypothesis is drawn among all labellings that
    the class has for a few of the rows and some of the queries, or among public candidates, and
    labels these queries: they are the rows of the next phase. Algorithm GenericBBL of paper 2, with
    the changes that its guarantee needs (proofs/BBL.md);
    :class:`~cumae.predictors.EverlastingPredictor` needs fewer rows for the same noise.

    Parameters
    ----------
    concept_class : ConceptClass
        From ``cumae.concepts``, with a proven ``label_boost_k`` (trees have none).
    epsilon : float of 0 or more
        Privacy parameter, for ever. ``fit`` refuses 0, with which nothing could be answered.
    delta : float from 0 and below 1
        Privacy parameter, for ever. ``fit`` refuses 0 unless epsilon is infinite.
    alpha : float above 0 and below 1
        Error of the first relabelling that is aimed at. With ``votes="between"`` it is also the
        expected share of split votes.
    beta : float above 0 and below 1
        Chance of a larger error.
    constants : {"practical", "paper"}
        ``"practical"`` computes what the numbers below cost. ``"paper"`` is for knowing how many
        rows the paper asks for: it refuses with that number, which no machine holds. The paper
        has alpha, beta and delta below 1/16, and epsilon up to 1.
    votes : {"stateless", "between"}
        ``"stateless"`` adds noise to every vote, and protects queries too. ``"between"`` is the
        printed one, BetweenThresholds: it halts for ever after too many split votes, and protects
        no queries. Of a batch in which it halts before the end, no answer is returned.
    agnostic : bool
        Whether to relabel the training rows first, for labels that no concept gets right.
    fresh : bool
        Whether rows of ``add_unlabelled`` take the place of queries; a phase takes as many as
        it gives answers.
    shard_size : int of 1 or more, or "auto"
        Rows of a shard; ``"auto"`` makes the noise 0.12 of the votes where there are enough rows.
    phase_length : int of 1 or more, or "auto"
        Answers of a phase; ``"auto"`` gives the next phase ``growth`` times the rows.
    growth : float from 1 to 1000
        By what the rows of a phase grow. Errors of relabelling shrink as rows grow: with 2 they
        halve, as in the paper.
    max_rows : int of 4 or more
        Rows of a phase grow up to this number.
    train_share : float above 0 and up to 1, or "auto"
        Share of the training rows that are used.
    query_share : float above 0 and up to 1, or "auto"
        Share of the queries that become rows.
    label_share : float above 0 and up to 1, or "auto"
        Share of a phase's rows that are scored when the next ones are labelled.
    epsilon_boost : float above 0, or "auto"
        Parameter of a draw of labels; ``"auto"`` is 1.5.
    candidates : {"auto", "grid", "points"}
        What hypotheses are drawn from. ``"points"`` is the paper's own: all ways in which the class
        labels the scored rows and the kept queries. For boxes and halfspaces in several columns
        that takes long, so that phases stay small. ``"grid"``, for boxes and halfspaces in up to
        three columns, is a public grid: evenly spaced within the ranges that ``columns`` declares,
        and at private quantiles of a twentieth of the training rows where no range is declared.
        Then queries pay nothing for the draw, and phases may have any size. ``"auto"`` takes it in
        two and three columns.
    n_cuts : int of 1 or more, or "auto"
        Cuts of a column in the grid. For boxes ``"auto"`` is 63 in two columns and 15 in three; for
        halfspaces, 96 and 48 offsets in each of many directions.
    between_share : float above 0 and up to 1, or "auto"
        With ``votes="between"``, the share of split votes that are paid for; ``"auto"`` is alpha.
    columns : mapping or sequence, or None
        What each column holds: numbers and their range, categories, true and false, or dates, and
        whether cells may be missing. :class:`~cumae.Columns` has the forms.
    classes : sequence of labels
        Two labels that may occur, without -1.
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
        What is promised, and for what.
    phase_, answered_ : int
        Number of the phase, from 1, and answers given since fit.
    remaining_ : float
        Infinite; finite if fresh rows run short, and 0 once BetweenThresholds has halted.
    n_shards_ : int
        Models of this phase.
    noise_per_vote_ : float
        Noise of this phase as a share of the votes.
    rules_ : BBLRules
        All public numbers: shares, noise, and what training rows and queries pay.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Thresholds
    >>> from cumae.predictors.bbl.predictor import GenericBBL
    >>> x = np.random.default_rng(0).random((5_000, 1))
    >>> oracle = GenericBBL(Thresholds(), epsilon=5.0, shard_size=12)
    >>> oracle.fit(x, x[:, 0] > 0.3).predict([[0.05], [0.9]]).shape
    (2,)
    >>> oracle.phase_, oracle.answered_, oracle.remaining_
    (1, 2, inf)
    """

    estimator = None
    state_class = BBLState
    counts_unusable = True

    parameter_table: ClassVar[Mapping[str, Kind]] = {
        "concept_class": Object("ConceptClass"),
        "epsilon": EPSILON,
        "delta": DELTA,
        "alpha": CHANCE,
        "beta": CHANCE,
        "constants": Choice(("practical", "paper")),
        "votes": Choice(("stateless", "between")),
        "agnostic": Flag(),
        "fresh": Flag(),
        "shard_size": AUTO_COUNT,
        "phase_length": AUTO_COUNT,
        "growth": Number(1.0, 1000.0),
        "max_rows": Count(LEAST_ROWS),
        "train_share": AUTO_SHARE,
        "query_share": AUTO_SHARE,
        "label_share": AUTO_SHARE,
        "epsilon_boost": Or("auto", Number(above=True)),
        "candidates": CANDIDATES,
        "n_cuts": N_CUTS,
        "between_share": AUTO_SHARE,
        **SHARED_PARAMETERS,
    }

    def __init__(
        self,
        concept_class: ConceptClass,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        alpha: float = 0.1,
        beta: float = 0.1,
        *,
        constants: str = "practical",
        votes: str = "stateless",
        agnostic: bool = False,
        fresh: bool = False,
        shard_size: int | str = "auto",
        phase_length: int | str = "auto",
        growth: float = 2.0,
        max_rows: int = 1_000_000,
        train_share: float | str = "auto",
        query_share: float | str = "auto",
        label_share: float | str = "auto",
        epsilon_boost: float | str = "auto",
        candidates: str = "auto",
        n_cuts: int | str = "auto",
        between_share: float | str = "auto",
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
        self.alpha = alpha
        self.beta = beta
        self.constants = constants
        self.votes = votes
        self.agnostic = agnostic
        self.fresh = fresh
        self.shard_size = shard_size
        self.phase_length = phase_length
        self.growth = growth
        self.max_rows = max_rows
        self.train_share = train_share
        self.query_share = query_share
        self.label_share = label_share
        self.epsilon_boost = epsilon_boost
        self.candidates, self.n_cuts = candidates, n_cuts
        self.between_share = between_share
        self.columns = columns
        self.classes = classes
        self.n_jobs = n_jobs
        self.progress = progress
        self.budget = budget
        self.random_state = random_state

    # Fitting

    def _model(self) -> ConceptClass:
        return need_boostable(self.concept_class, "EverlastingPredictor")

    @one_at_a_time
    def fit(self, X: Any, y: Any) -> Self:
        """Train the first phase, and pay for everything that will ever be asked.

        Parameters
        ----------
        X : array, memory map, list of rows, data frame or ParquetRows
            Private rows. A row with a cell that is no number, or with another label, counts as
            zeros with the first label.
        y : array-like or str
            Their labels; the name of a column for Parquet files.
        """
        training = self._training(X, y)
        source = source_for(self.random_state)
        plan = self.decide(training)
        rules, guarantee = plan.steps, self._start(training, plan, source)
        table, labels, candidates = self._first_rows(training, rules, source)
        fitted = self._fitted(training, guarantee, source)
        first = LabelledPhase.draw(rules.sizes(), table, labels, source)
        phase = first.train(rules, trains(fitted, rules), source)
        spent = phase.votes.start(source)
        self._go_on(BBLState(fitted, rules, phase, spent, candidates=candidates))
        return self

    def decide(self, training: Training) -> FitPlan[BBLRules]:
        """Decide all numbers, from declared facts and the number of rows; they are the steps."""
        check_classes(self.classes)
        training.need_numbers()
        grid = self._grid(training)
        given = self._options(PublicCounts.of(training, grid), grid)
        given = replace(given, concept=training.model)
        rules = BBLRules.of(given, paper=self.constants == "paper")
        warn_of_noise(rules, *check_phases(rules))
        sizes = rules.sizes()
        votes = votes_of(rules, sizes)
        facts: dict[str, Fact] = {
            "n_shards": sizes.shards,
            "shard_size": sizes.rows // sizes.shards,
            "noise_per_vote": noise_share(votes, sizes, sizes.shards),
            "phase_rows": sizes.rows,
            "phase_answers": sizes.answers,
            "scored_rows": sizes.labels,
            "kept_queries": sizes.following,
            "epsilon_boost": rules.boost,
        }
        cells = training.rows.n_rows * training.width
        return FitPlan.of(given.plan(), rules, facts, (Effort("draws", cells, cells),))

    def _grid(self, training: Training) -> GridPlan | None:
        """Return where public candidates come from; the paper has none."""
        return planned_grid(
            "points" if self.constants == "paper" else self.candidates,
            self.n_cuts,
            training,
            float(self.epsilon),
        )

    def _options(self, counts: PublicCounts, grid: GridPlan | None = None) -> BBLOptions:
        return BBLOptions(
            counts,
            self._model(),
            float(self.epsilon),
            float(self.delta),
            float(self.alpha),
            float(self.beta),
            self.votes,
            bool(self.agnostic),
            bool(self.fresh),
            float(self.growth),
            int(self.max_rows),
            _chosen(self.shard_size, int),
            _chosen(self.phase_length, int),
            _chosen(self.train_share, float),
            _chosen(self.query_share, float),
            _chosen(self.label_share, float),
            _chosen(self.epsilon_boost, float),
            _chosen(self.between_share, float),
            grid,
        )

    @claim("BBL")
    def _first_rows(
        self, training: Training, rules: BBLRules, source: Source
    ) -> tuple[Floats, Integers, GridRules | None]:
        """Return S_1 and public candidates, if there are any.

        S_1 is sampled in random order, and relabelled if no concept need be right.
        """
        table, labels, candidates = draw_rows(training, rules.given.grid, rules.first, source)
        if self.agnostic:
            drawn_from = candidates or rules.given.concept
            labels = relabelled_by(drawn_from, table, labels, rules.boost, source)
        return table, labels, candidates

    # What is public

    @property
    def rules_(self) -> BBLRules:
        """All public numbers."""
        found: BBLRules = self._seen_state().rules
        return found

    @property
    def remaining_(self) -> float:
        """Answers left."""
        return self._left(self._settled_state())  # whether votes have halted depends on rows

    def _left(self, state: BBLState) -> float:
        if state.halted:
            return 0
        if not state.rules.given.fresh:  # as fit fixed it; the parameter may have changed since
            return math.inf
        left, sizes = state.unasked, state.phase.sizes
        if state.following is not None:  # its training was broken off: its rows are taken already
            sizes = state.following.sizes
            left = sizes.answers
        return left + state.rules.answers_after(sizes, len(state.waiting))

    # Answering

    @claim("BBL")
    def predict(self, X: Any, *, request_id: Any = None) -> NDArray[Any]:
        """Answer queries in order; some of them become rows of the next phase.

        A batch may cross phases. A query with unusable cells gets the answer -1, and counts like
        any other, as made-up cells: else the others would tell about it.

        With ``votes="between"`` it may halt at any query. The answers up to that one were given and
        count; but if the batch goes on after it, it raises ``BudgetExhausted`` and returns none of
        them, so that small batches lose less. Every later call raises, too.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Queries.
        request_id : str, int or tuple of these, or None
            A name for the whole request. An oracle in a file gives a repeated one its stored
            answers, for free.

        Returns
        -------
        array of shape (n_queries,)
            One of the declared classes for each query, or -1.

        Raises
        ------
        BudgetExhausted
            If the votes have halted, or supplied rows run short.
        """
        check_fitted(self)
        return self._counter_.answer(self, [Call(X, request_id=request_id)])[0].result()

    def _read(self, call: Call) -> Asked:
        self._check_plain(call)
        return Asked(*self._readable(call.X))

    def _check(self, asked: Asked, state: BBLState) -> None:
        if state.halted and len(asked.rows):
            raise self._failure("")
        left, following, count = self._left(state), state.phase.number + 1, len(asked.rows)
        if count > left:
            raise BudgetExhausted(
                f"{count} queries were asked, but {left} answers remain; phase {following} "
                f"needs {state.phase.sizes.answers:,} rows by add_unlabelled, and "
                f"{len(state.waiting):,} wait. The batch was refused whole.",
                remaining=left,
                asked=count,
                needed_rows=state.phase.sizes.answers,
            )

    def _failure(self, what: str, answered: int | None = None) -> BudgetExhausted:
        phase = self._state_.phase
        return BudgetExhausted(
            f"BetweenThresholds has halted in phase {phase.number} after "
            f"{phase.sizes.between} split votes, and it fails for ever, as the paper "
            f"has it.{what} Fit again, with a larger between_share or votes='stateless'.",
            remaining=0,
            answered=answered,
        )

    def _ended(self, answered: int, asked: int) -> BudgetExhausted:
        return self._failure(
            f" The last {asked - answered} queries got no answer; the {answered} before "
            "them were answered and counted, but a broken batch is not returned.",
            answered,
        )

    def _room(self, state: BBLState) -> int:
        return 0 if state.halted else state.unasked

    @claim("BBL")
    def _answers(
        self, part: Asked, state: BBLState, reserved: Spent, coins: Coins
    ) -> ProposedAnswers:
        """Return what the phase would answer, and those queries whose places were drawn before."""
        numbers = reserved.asked + np.arange(len(part.rows))
        counts = state.phase.ensemble.votes(part.rows, numbers)
        found, after = state.rule.ask(counts, reserved, coins)
        count = len(found)
        labels = np.asarray(found != 0, dtype=np.int64)  # an unclear one counts as the second class
        if part.usable is not None:
            labels[~part.usable[:count]] = -1
        kept: dict[str, Any] = {}
        if not state.rules.given.fresh:
            at = reserved.asked
            kept = {"at": at, "rows": state.kept.among(at, part.rows[:count])}
        event = Answered(count, state.answered + count, after, **kept)
        return ProposedAnswers(labels, event)

    # Phases

    @claim("BBL")
    def _due(self, state: BBLState, coins: Coins, *, wanted: bool) -> Step | None:
        """Return the next step at the end of a phase: label the kept rows, or train on them."""
        if not wanted or state.halted or state.unasked:
            return None
        if state.following is not None:
            return Step(lambda: state.entered(coins.source), slow=True)
        scored = state.phase.scored
        if scored is None:
            raise BudgetExhausted(
                "a change of phases was broken off while labels were drawn; fit again.", remaining=0
            )
        return Step(lambda: self._prepared(state, scored, coins.source), before=Used(state.spent))

    @claim("BBL")
    def _prepared(
        self, state: BBLState, scored: tuple[Floats, Integers], source: Source
    ) -> LabelsDrawn:
        """Label the rows of the next phase by a private hypothesis, and draw all its coins."""
        rules, phase = state.rules, state.phase
        rows, _ = state.next_rows()
        drawn_from = state.candidates or rules.given.concept
        labels = boost_labels(drawn_from, scored, rows, rules.boost, source)
        drawn = LabelledPhase.draw(rules.sizes(phase.sizes), rows, labels, source)
        recipe = drawn.recipe
        own = (labels, recipe.split.order, recipe.seeds, drawn.places)
        return LabelsDrawn(phase.number + 1, state.used, *own)

    @claim("BBL")
    def add_unlabelled(self, X: Any) -> Self:
        """Supply rows for the next phases; they are protected like training rows.

        Only with ``fresh=True``. A row with an unusable cell counts as a made-up one: refusing it
        would tell about it.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows without labels.

        Returns
        -------
        GenericBBL
            Itself.
        """
        check_fitted(self)

        def supplied(state: BBLState) -> Supplied:
            if not state.rules.given.fresh:
                raise InvalidParameter("add_unlabelled needs fresh=True; now queries are the rows.")
            table, _ = self._readable(X)
            return Supplied(state.waiting.end, table)

        self._counter_.change(self, supplied)
        return self


Chosen = TypeVar("Chosen")


def _chosen(value: str | float, kind: Callable[[Any], Chosen]) -> Chosen | None:
    """Return a parameter as a number, or None for "auto"."""
    return None if value == "auto" else kind(value)
