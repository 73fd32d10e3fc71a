"""The steps of ``EverlastingPredictor.fit``: what is decided before it pays, and what it trains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.data import SomeRows, class_names
from cumae.ensembles.sizing import try_sizes
from cumae.errors import AnswersDrift, InvalidParameter, VotesIgnored, listed, warn
from cumae.learners import Learner
from cumae.mechanisms import Coins
from cumae.outlook import Fact, FitPlan
from cumae.predictors.base import Training
from cumae.predictors.everlasting.margins import choose_weighted, weights_of_labels
from cumae.predictors.everlasting.phases import (
    OpenPhase,
    PhaseSetup,
    noise_share,
    opened_phase,
)
from cumae.predictors.everlasting.prior import REFUSED, Prior, find_prior
from cumae.predictors.everlasting.rules import (
    EverlastingOptions,
    EverlastingRules,
    PublicSizes,
    rho_of,
)
from cumae.predictors.recipes import Recipe
from cumae.privacy import Guarantee
from cumae.randomness import Source

# Before the payment: declared facts, types of columns and counts decide


@claim("PRIOR")
def with_prior(
    options: EverlastingOptions, training: Training, n_rows: int
) -> tuple[EverlastingRules, Prior | None, Guarantee | None, str]:
    """Return the rules, the prior and what it promises, from declared facts and counts alone.

    A prior that was not asked for is left out if it cannot be trained. Then the last thing that is
    returned says why, and what to do.

    Parameters
    ----------
    options : EverlastingOptions
        The parameters.
    training : Training
        What was declared.
    n_rows : int
        Rows that are used: with ``user_ids`` one for each user.
    """
    sizes = PublicSizes(n_rows, training.n_classes, has_prior=False, one_column=training.one_column)
    promises = (options.epsilon, options.delta, options.columns)
    classes = class_names(options.classes).tolist()
    prior = find_prior(options.prior, training, *promises, classes)
    missing = ""
    if prior is not None:
        try:
            rules = EverlastingRules.of(options, sizes._replace(has_prior=True))
            return rules, prior, prior.promise(rules.prior_rows), ""
        except InvalidParameter as error:
            if options.prior is not None or options.prior_share != "auto":
                raise
            # The first sentence says what is wrong, and the others what else a learner may get.
            missing = str(error).removeprefix(REFUSED).partition(". ")[0]
            if prior.open_columns:
                names = listed(prior.open_columns)
                missing += f". Declare the range of each column ({names}) with columns="
    elif training.undeclared_text:
        names = listed(training.undeclared_text)
        missing = (
            f"columns of text were not declared. Declare the categories of {names} in columns="
        )
    return EverlastingRules.of(options, sizes), None, None, missing


@claim("EVER", "PRIOR")
@dataclass(frozen=True)
class Decision:
    """The steps of a fit, decided before it pays from declared facts and counts alone.

    Parameters
    ----------
    rules : EverlastingRules
        All public numbers.
    prior : Prior, or None
        The prior, not fitted.
    sizes_tried : list of dict
        Sizes of shards that were tried on made-up tables.
    """

    rules: EverlastingRules
    prior: Prior | None
    sizes_tried: list[dict[str, Any]]

    def facts(self) -> dict[str, Fact]:
        """Return public numbers of the first phase, by the names of attributes that show them."""
        rules = self.rules
        n_shards = rules.schedule.shards(rules.first)
        majority = rules.majority(rules.first, rules.trust_rows)
        return {
            "n_shards": n_shards,
            "shard_size": rules.first // n_shards,
            "noise_per_vote": noise_share(majority, n_shards),
            "phase_rows": rules.first,
            "phase_answers": rules.releases(rules.first),
            "prior_learner": "none" if self.prior is None else type(self.prior.learner).__name__,
            "prior_rows": rules.prior_rows,
            "trust_rows": rules.trust_rows,
        }


@claim("EVER", "PRIOR")
def decide(
    options: EverlastingOptions,
    training: Training,
    n_rows: int,
    shards_that_learn: Callable[..., int],
) -> FitPlan[Decision]:
    """Decide everything before a fit pays; warn of what the caller of ``fit`` should know.

    Parameters
    ----------
    options : EverlastingOptions
        The parameters.
    training : Training
        What was declared.
    n_rows : int
        Rows that are used: with ``user_ids`` one for each user.
    shards_that_learn : callable
        Returns the number of shards with which the model learns: ``Predictor._try_out``.
    """
    rules, prior, promised, missing = with_prior(options, training, n_rows)
    warn_of_drift(options.prior, training, missing)  # before the trial, which may take a minute
    rules, sizes = tried_out(rules, training, shards_that_learn)
    if prior is None or options.prior_share != "auto":  # which gives the prior what helps most
        rules.warn_of_noise()
    majority = rules.majority(rules.first, rules.trust_rows)
    plan = rules.plan(majority.cost, promised)
    decision = Decision(replace(rules, rho=rho_of(majority)), prior, sizes)
    work = () if prior is None else prior.work(rules.prior_rows)
    return FitPlan.of(plan, decision, decision.facts(), work)


@claim("EVER")
def tried_out(
    rules: EverlastingRules, training: Training, shards_that_learn: Callable[..., int]
) -> tuple[EverlastingRules, list[dict[str, Any]]]:
    """Return rules under which the model can learn, by what made-up rows show, and the sizes tried.

    Parameters
    ----------
    rules : EverlastingRules
        As they follow from the parameters.
    training : Training
        What was declared.
    shards_that_learn : callable
        Returns the number of shards with which the model learns: ``Predictor._try_out``.
    """
    if not training.tried:
        return rules, []
    plain, schedule = rules.trainer(training.shard_model, training.columns), rules.schedule
    trainer = choose_weighted(plain, training.rows, schedule.shard_size(rules.first))
    sizes: list[dict[str, Any]] = []
    if not (schedule.fixed or isinstance(training.model, ConceptClass)):
        trial = try_sizes(
            trainer,
            training.rows,
            training.stand_in,
            usual=schedule.shard_size(rules.first),
            n_rows=rules.first,
            noise=schedule.noise(rules.first) * schedule.shards(rules.first),
            progress=rules.progress,
        )
        sizes = trial.shown()
        schedule = replace(schedule, smallest=max(schedule.smallest, trial.size))
        trainer = choose_weighted(plain, training.rows, schedule.shard_size(rules.first))
    n_shards = schedule.shards(rules.first)
    fewer = shards_that_learn(trainer, training, rules.first, n_shards, fixed=schedule.fixed)
    if fewer < n_shards:  # in later phases, too
        schedule = replace(schedule, smallest=rules.first // fewer)
    return replace(rules, weighted=trainer.weighted, schedule=schedule), sizes


def warn_of_drift(asked: Learner | bool | None, training: Training, missing: str) -> None:
    """Tell the caller of ``fit`` that answers drift if there is no prior, unless that was asked.

    Parameters
    ----------
    asked : Learner or bool, or None
        The parameter ``prior``.
    training : Training
        What was declared.
    missing : str
        Why there is no prior, and what to do; empty if there is one.
    """
    if isinstance(training.model, ConceptClass) or not missing or asked is False:
        return
    warn(
        f"answers of {type(training.model).__name__} drift from phase to phase, perhaps until all "
        f"are the same, because no prior is trained: {missing}, or give prior=False to accept it.",
        AnswersDrift,
    )


# After the payment


@claim("EVER")
def first_phase(
    training: Training, places: Integers, setup: PhaseSetup, source: Source
) -> OpenPhase:
    """Train the first phase on the rows at these places."""
    rows = setup.first_rows(SomeRows(training.rows, places))
    weights = weights_of_labels(training.labels, training.n_classes)[places]
    n_shards, text_bytes = setup.rules.schedule.shards(rows.n_rows), setup.reader.text_bytes
    recipe = Recipe.draw(rows, weights, n_shards, source, text_bytes)
    return opened_phase(setup, 1, recipe, setup.rules.trust_rows)


@claim("PRIOR")
def choose_trust(
    training: Training,
    places: Integers,
    prior: Prior,
    phase: OpenPhase,
    epsilon: float,
    coins: Coins,
) -> float:
    """Let rows that neither the prior nor a shard sees choose how much the votes count.

    That takes a release of the phase for each of them.
    """
    table, usable = training.reader.some(training.rows, places)
    labels = np.where(usable, training.labels[places], -1)
    numbers = np.arange(len(table))
    shares = prior.shares(table, numbers)
    noisy = phase.majority.release(phase.ensemble.votes(table, numbers), coins)
    n_shards = phase.ensemble.n_shards
    return prior.choose_trust(noisy, n_shards, shares, labels, epsilon, coins.source)


def warn_if_ignored(estimator: Any, prior: Prior | None, trust: float | None) -> None:
    """Tell the caller of ``fit`` that an estimator has no say; the trust is published.

    Parameters
    ----------
    estimator : classifier or Pipeline, or None
        What was given; nothing is said of trees that were chosen by default.
    prior : Prior, or None
        What answers; None if there is none, and votes alone count.
    trust : float, or None
        How much the votes count.
    """
    if estimator is None or prior is None or trust:
        return
    warn(
        f"trust_ is 0: the votes of {type(estimator).__name__} count nothing, and the prior, a "
        f"published {type(prior.learner).__name__}, answers alone, because the votes added nothing "
        "to it on rows that neither had seen. That is fine for answers; to hear the estimator, "
        "take more rows, a larger epsilon, or prior=False.",
        VotesIgnored,
    )
