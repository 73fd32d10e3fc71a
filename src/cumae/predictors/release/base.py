"""The shared part of releases: a plan from public numbers, voting shards, counted answers."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.effort import Effort
from cumae.ensembles.sizing import SizeTrial, try_sizes
from cumae.errors import BudgetExhausted, InvalidParameter, TooFewRows, warn
from cumae.mechanisms import Coins, VoteRule
from cumae.mechanisms.sparse import unstable_answers
from cumae.outlook import FitPlan, public_facts
from cumae.parameters import CHANCE, Choice, Count, Flag, Kind, Or
from cumae.predictors.answering.calls import Asked, Call, ProposedAnswers
from cumae.predictors.answering.events import Answered
from cumae.predictors.base import LEAST_ROWS_PER_CLASS, MODELS, Training, check_fitted
from cumae.predictors.noise import GOOD_NOISE, MUCH_NOISE
from cumae.predictors.recipes import Recipe
from cumae.predictors.relabelling import Relabelling, relabel
from cumae.predictors.release.answers import ONLINE, AnswerPlan, Demand
from cumae.predictors.release.state import ReleaseState
from cumae.predictors.release.voting import Voting
from cumae.predictors.stateful import StatefulPredictor
from cumae.privacy import Approximate
from cumae.privacy.plans import Plan
from cumae.randomness import Source

ASSUMPTIONS = ("the queries are public", *MODELS)
SMALL_SHARD = 10  # rows of a shard that "auto" does not go below

# Kinds of parameters that several releases have.
AUTO_COUNT = Or("auto", Count(1))
CONSTANTS = Choice(("practical", "paper"))
VOTE_PARAMETERS: Mapping[str, Kind] = {
    "mechanism": Choice(("auto", *ONLINE)),
    "n_shards": AUTO_COUNT,
    "alpha": CHANCE,
    "beta": CHANCE,
    "max_unstable": AUTO_COUNT,
    "abstain": Flag(),
    "constants": CONSTANTS,
}


@claim("QUERY", "AGPRIV", "UNV")
@dataclass(frozen=True)
class PlannedRelease:
    """A release that was planned from public numbers: nothing is paid, and no row was looked at.

    Parameters
    ----------
    demand : Demand
        What is asked of the mechanism.
    answers : AnswerPlan
        Which mechanism answers, and why.
    rule : VoteRule
        The mechanism itself.
    n_shards : int
        Number of shards.
    plan : Plan
        What all of it costs, and which proofs that rests on.
    steps : Relabelling or None
        What happens to the rows before they are split into shards.
    costs : list of pairs of str and Approximate
        With steps: what a row pays after each of them, from the innermost one to the whole.
    trial : SizeTrial, or None
        How shards of several sizes did on made-up tables, if that decided their number.
    """

    demand: Demand
    answers: AnswerPlan
    rule: VoteRule
    n_shards: int
    plan: Plan
    steps: Relabelling | None = None
    costs: list[tuple[str, Approximate]] = field(default_factory=list)
    trial: SizeTrial | None = None

    @property
    def sizes_tried(self) -> list[dict[str, Any]]:
        """Sizes of shards, and their share of right answers on made-up tables."""
        return [] if self.trial is None else self.trial.shown()

    @property
    def noise_per_vote(self) -> float:
        """Standard deviation of the noise as a share of the votes."""
        return self.answers.noise / self.n_shards

    def train(
        self, training: Training, source: Source, *, n_jobs: int | None, progress: bool | None
    ) -> Voting:
        """Train the shards; call it once, after the plan was paid for."""
        if self.steps is not None:
            training = relabel(training, self.steps, source)
        training = training.prepared()
        own = (self.n_shards, source, training.reader.text_bytes)
        recipe = Recipe.draw(training.rows, training.labels, *own)
        ensemble = recipe.train(training.trainer, training.stand_in, n_jobs, progress)
        kept = recipe.kept_for(ensemble)
        return Voting(ensemble, self.rule, kept, training.columns)


@claim("QUERY", "AGPRIV")
class Release(StatefulPredictor):
    """Answers up to ``max_queries`` public queries by the votes of an ensemble."""

    max_queries: int
    n_shards: int | str
    alpha: float
    beta: float
    max_unstable: int | str
    abstain: bool

    mechanism_: str
    why_: str
    n_shards_: int
    noise_per_vote_: float
    size_trial_: list[dict[str, Any]]

    state_class: ClassVar[type[ReleaseState]] = ReleaseState

    # Fitting

    @abstractmethod
    def plan_release(self, training: Training) -> PlannedRelease:
        """Plan everything from public numbers, before anything is paid.

        Parameters
        ----------
        training : Training
            The declared facts; of the rows only their number and the types of columns are used.
        """

    def decide(self, training: Training) -> FitPlan[Any]:
        """Decide how votes answer: the steps are a PlannedRelease."""
        planned = self.plan_release(training)
        n_rows = training.rows.n_rows if planned.steps is None else planned.steps.n_sampled
        facts = {
            **public_facts(self._shown(planned)),
            "shard_size": n_rows // planned.n_shards,
            "max_queries": int(self.max_queries),
        }
        relabelled = n_rows * training.width
        work = () if planned.steps is None else (Effort("draws", relabelled, relabelled),)
        return FitPlan.of(planned.plan, planned, facts, work)

    def _fit_votes(self, training: Training, plan: FitPlan[PlannedRelease], source: Source) -> None:
        planned, guarantee = plan.steps, self._start(training, plan, source)
        voting = planned.train(training, source, n_jobs=self.n_jobs, progress=self.progress)
        fitted = self._fitted(training, guarantee, source, **self._shown(planned))
        spent = voting.rule.start(source)
        self._go_on(self.state_class(fitted, voting, spent=spent))

    def _shown(self, planned: PlannedRelease) -> dict[str, Any]:
        """Return the public attributes."""
        return {
            "mechanism_": planned.answers.mechanism,
            "why_": planned.answers.why,
            "n_shards_": planned.n_shards,
            "noise_per_vote_": planned.noise_per_vote,
            "size_trial_": planned.sizes_tried,
        }

    def _demand(self, n_classes: int) -> Demand:
        if self.abstain and -1 in list(self.classes):
            raise InvalidParameter("abstain=True answers -1, which is a declared class; rename it.")
        most: Any = self.max_unstable
        if most == "auto":
            most = unstable_answers(self.max_queries, self.alpha, self.beta)
        return Demand(self.epsilon, self.delta, int(self.max_queries), int(most), n_classes)

    def _count_shards(
        self, training: Training, answers: AnswerPlan, printed: int | None = None
    ) -> tuple[int, SizeTrial | None]:
        """Return the number of shards, from public numbers alone, and what the trial showed.

        Models get better with the rows of a shard, and the noise counts less with the number of
        shards. The square root of rows per unit of noise lies between the two, and did best on the
        survey over a wide range of rows, queries and epsilons (benchmarks/query_release.py). An
        estimator that needs more rows is found by a trial on made-up tables.
        """
        n_rows, n_classes = training.rows.n_rows, training.n_classes
        asked: Any = self.n_shards if printed is None else printed
        count, trial = asked, None
        if asked == "auto":
            size = math.sqrt(n_rows / max(1.0, answers.noise))
            count = max(1, int(n_rows / max(SMALL_SHARD, 5 * (n_classes - 2), size)))
        least = LEAST_ROWS_PER_CLASS * n_classes
        if n_rows // count < least:
            raise InvalidParameter(
                f"n_shards={count!r} for n_samples={n_rows} leaves shards of {n_rows // count} "
                f"rows; {n_classes} classes need {least} rows at least. Ask for "
                f"{n_rows // least} shards or fewer, or give more rows.",
                parameter="n_shards",
                needed_rows=least * count,
            )
        if asked == "auto" and training.tried and not isinstance(training.model, ConceptClass):
            trial = try_sizes(
                training.trainer,
                training.rows,
                training.stand_in,
                usual=n_rows // count,
                n_rows=n_rows,
                noise=answers.noise,
                progress=self.progress,
            )
            if trial.size > n_rows // count:
                count = n_rows // trial.size
        fixed = asked != "auto"
        return self._try_out(training.trainer, training, n_rows, count, fixed=fixed), trial

    def _warn_of_noise(self, n_rows: int, n_shards: int, answers: AnswerPlan) -> None:
        noise = answers.noise / n_shards
        if noise > MUCH_NOISE:
            wanted = math.ceil(answers.noise * max(SMALL_SHARD, n_rows / n_shards) / GOOD_NOISE)
            warn(
                f"the noise is {noise:.0%} of the {n_shards} votes, so that answers are hardly "
                f"better than chance; about {wanted:,} rows would do for "
                f"max_queries={self.max_queries!r}, or fewer queries, or a larger epsilon.",
                TooFewRows,
            )

    # Answering

    @property
    def remaining_(self) -> int:
        """Answers left; 0 also when no unclear answer is left."""
        # Whether unclear answers are left depends on rows.
        return int(self._settled_state().remaining)

    def predict(self, X: Any, *, request_id: Any = None) -> NDArray[Any]:
        """Answer queries in order, and count them.

        If the last unclear answer is among them, the rest of the batch is not looked at and is
        answered like an unclear query, with a warning; then nothing remains.

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
            Declared classes; -1 for unclear queries if ``abstain``.

        Raises
        ------
        BudgetExhausted
            If the batch is larger than what remains; it is then refused whole.
        InvalidData
            If a query is unusable; nothing is spent.
        """
        check_fitted(self)
        return self._counter_.answer(self, [Call(X, request_id=request_id)])[0].result()

    def noisy_votes(self, X: Any, *, request_id: Any = None) -> Integers:
        """Return noisy vote counts, one column per class: spends like ``predict``.

        The label is the largest one. Only the mechanisms ``"gaussian"`` and ``"laplace"`` have
        them.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Public queries.
        request_id : str, int or tuple of these, or None
            As for ``predict``.

        Returns
        -------
        array of int of shape (n_queries, n_classes)
            Votes with noise.
        """
        check_fitted(self)
        return self._counter_.answer(self, [Call(X, request_id=request_id, as_counts=True)])[
            0
        ].result()

    def _check(self, asked: Asked, state: ReleaseState) -> None:
        if asked.as_counts and (state.voting is None or not state.voting.shows_counts):
            raise InvalidParameter(
                f"mechanism {self.mechanism_!r} releases no counts; use 'gaussian' or 'laplace'."
            )
        left, count = state.remaining, len(asked.rows)
        if left == 0 and count:
            raise BudgetExhausted(
                f"0 of {self.max_queries} answers remain; fit again, which costs again.",
                remaining=0,
                asked=count,
            )
        if count > left:
            raise BudgetExhausted(
                f"{count} queries were asked, but {left} of {self.max_queries} answers remain; the "
                "batch was refused whole, and nothing was spent.",
                remaining=left,
                asked=count,
            )

    def _room(self, state: ReleaseState) -> int:
        return state.remaining

    @claim("QUERY")
    def _answers(
        self, part: Asked, state: ReleaseState, reserved: Any, coins: Coins
    ) -> ProposedAnswers:
        """Return what the votes answer; queries that were not looked at count as unclear."""
        voting, answered = state.need_voting(), state.answered + len(part.rows)
        if part.as_counts:
            counts = voting.counts(part.rows, reserved, coins)
            return ProposedAnswers(counts, Answered(len(part.rows), answered, state.spent))
        labels, spent, warning = voting.ask(part.rows, reserved, coins)
        if not self.abstain:
            labels = voting.guessed(labels, coins)
        return ProposedAnswers(labels, Answered(len(part.rows), answered, spent), warning)
