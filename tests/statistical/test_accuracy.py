"""Bounds of errors that methods state, against simulations of what is really drawn.

Each test counts the runs in which the bound was missed; more than a share beta of them is a bug.
False alarms: those of tests/statistics.py, for each call of ``binomial_rejects``.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from cumae import GenericLearner, InvalidParameter, SemiPrivateLearner
from cumae.arrays import Floats, Integers
from cumae.concepts import Thresholds, Trees
from cumae.learners import Learner
from cumae.mechanisms import (
    BetweenThresholds,
    Coins,
    NoisyMajority,
    Side,
    StabilityTest,
    VoteRule,
)
from cumae.mechanisms.accuracy import gaussian_reach, laplace_reach
from cumae.randomness import discrete_gaussian, discrete_laplace, source_for
from tests.statistics import binomial_rejects

pytestmark = pytest.mark.statistical
BETA = 0.2  # so large that a bound which is missed too often is seen


def seen(missed: int, runs: int) -> int:
    """Return how often a bound was missed, where fewer than a share BETA of the runs are fine."""
    return max(missed, round(BETA * runs))


def test_reaches_are_those_of_the_noise() -> None:
    source, runs, draws = source_for(1), 400, 50
    for reach, noise in (
        (laplace_reach(0.3, draws, BETA), discrete_laplace(0.3, runs * draws, source)),
        (gaussian_reach(7.0, draws, BETA), discrete_gaussian(7.0, runs * draws, source)),
    ):
        largest = np.asarray(noise).reshape(runs, draws).max(axis=1)
        assert not binomial_rejects(seen(int((largest > reach).sum()), runs), runs, BETA, checks=2)
        assert binomial_rejects(
            seen(int((largest > 0.6 * reach).sum()), runs), runs, BETA, checks=0
        )
    assert laplace_reach(math.inf, 10, BETA) == 0
    assert gaussian_reach(0.0, 10, BETA) == 0


@pytest.mark.parametrize(("kind", "n_classes"), [("gaussian", 2), ("laplace", 2), ("gaussian", 4)])
def test_majorities_with_the_lead_are_right(kind: str, n_classes: int) -> None:
    runs, queries = 300, 20

    def wrong(lead_share: float) -> int:
        missed = 0
        for seed in range(runs):
            made = NoisyMajority.calibrated(
                2.0, 1e-6, queries, n_classes, kind=kind, random_state=seed
            )
            lead = int(lead_share * made.accuracy(BETA))
            votes = np.full((queries, n_classes), 10_000)
            votes[:, -1] += lead  # the last class: a tie would go to the first
            missed += bool((made.ask(votes) != n_classes - 1).any())
        return missed

    assert not binomial_rejects(seen(wrong(1.0), runs), runs, BETA, checks=3)
    assert binomial_rejects(seen(wrong(0.3), runs), runs, BETA, checks=0)


def test_stable_leads_are_stable() -> None:
    runs, queries = 300, 20
    made = StabilityTest.calibrated(2.0, 1e-6, queries, 2)
    reach = made.accuracy(BETA) - 2 * made.threshold

    def wrong(share: float) -> int:
        lead = 2 * made.threshold + int(share * reach)
        votes = np.tile([20_000, 20_000 + lead], (queries, 1))
        return sum(bool((ask(made.rule, votes, seed) != 1).any()) for seed in range(runs))

    assert not binomial_rejects(seen(wrong(1.0), runs), runs, BETA, checks=1)
    assert binomial_rejects(seen(wrong(0.4), runs), runs, BETA, checks=0)


def test_sides_are_wrong_by_no_more_than_said() -> None:
    runs, queries = 300, 20
    made = BetweenThresholds.calibrated(4_000, 2.0, 1e-6, 2)
    reach = made.accuracy(BETA, queries)

    def wrong(share: float) -> int:
        count = int(made.lower + share * reach)  # so high that it is not to be called low
        votes = np.tile([4_000 - count, count], (queries, 1))
        return sum(bool((ask(made.rule, votes, seed) == Side.LOW).any()) for seed in range(runs))

    assert not binomial_rejects(seen(wrong(1.0), runs), runs, BETA, checks=1)
    assert binomial_rejects(seen(wrong(0.05), runs), runs, BETA, checks=0)


def ask(rule: VoteRule, votes: Integers, seed: int) -> Integers:
    """Return the answers of a rule that begins anew."""
    source = source_for(seed)
    return rule.ask(votes, rule.start(source), Coins(source))[0]


def error_beyond(learner: Learner, target: float, cuts: Floats) -> float:
    """Return the error of a drawn threshold on [0, 1] beyond that of the best of some cuts."""
    grid = (np.arange(20_000) + 0.5) / 20_000
    own = float(np.mean(learner.predict(grid) != (grid > target)))
    return own - float(np.abs(cuts - target).min())


def test_learners_miss_the_best_by_no_more_than_said() -> None:
    runs, rng, missed, planted = 60, np.random.default_rng(5), 0, 0
    for seed in range(runs):
        public, x = rng.random(40), rng.random(300)
        y = (x > 0.3).astype(int)
        made = SemiPrivateLearner(Thresholds(), epsilon=0.05, random_state=seed).fit(x, y, public)
        beyond = error_beyond(made, 0.3, np.sort(public))
        missed += beyond > made.accuracy(BETA)
        planted += beyond > 0.02 * made.accuracy(BETA)
    assert not binomial_rejects(seen(missed, runs), runs, BETA, checks=1)
    assert binomial_rejects(seen(planted, runs), runs, BETA, checks=0)


def test_what_the_bounds_of_learners_say() -> None:
    rng = np.random.default_rng(0)
    public, x = rng.random(3_000), rng.random(20_000)
    y = (x > 0.3).astype(int)
    made = SemiPrivateLearner(Thresholds()).fit(x, y, public)
    assert 0 < made.accuracy(0.05) < made.accuracy(0.001) < made.accuracy(against="concept") < 0.2
    assert Learner.from_dict(made.to_dict()).accuracy() == made.accuracy()
    some = np.where(np.arange(20_000) < 2_000, y, -1)
    private = GenericLearner(Thresholds(), columns=[(0, 1)]).fit(x.reshape(-1, 1), some)
    assert 0 < private.accuracy() < 0.3
    with pytest.raises(InvalidParameter, match="labellings of public rows"):
        private.accuracy(against="concept")
    given = GenericLearner(Thresholds()).fit(x[:2_000], y[:2_000], X_public=public)
    assert given.accuracy() < given.accuracy(against="concept") < 0.5
    trees = SemiPrivateLearner(Trees(1)).fit(x.reshape(-1, 1), y, public.reshape(-1, 1))
    with pytest.raises(InvalidParameter, match="other than trees"):
        trees.accuracy(against="concept")
    labels = SemiPrivateLearner(Thresholds(), label_privacy=True).fit(x, y, public)
    with pytest.raises(InvalidParameter, match="chose them as well"):
        labels.accuracy()
    both = SemiPrivateLearner(Thresholds()).fit(x, y, public, (public > 0.3).astype(int))
    with pytest.raises(InvalidParameter, match="chose them as well"):
        both.accuracy()
