"""Attacks on releases: all that comes before the noise is computed once, noise is drawn often.

Both tables are fixed, and so are sums, votes and scores: they go through the code of a fit once in
each world. Then the code that releases them draws thousands of times. What a fit does around the
release is left to the attacks that train anew in each run.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Floats, Integers
from cumae.audit.attacks.learners import HERE
from cumae.audit.attacks.predictors import FEW, Rows, Spotter, Table, alike, replaced
from cumae.audit.attacks.sums import HALF_THE_NOISE, WHOLE, noisy_copies
from cumae.audit.game import Game
from cumae.audit.results import RELEASES, Claimed
from cumae.audit.runs import Attack
from cumae.concepts import Trees
from cumae.errors import InvalidParameter, TooFewRows
from cumae.learners import PrivateKernelClassifier, PrivateLogisticRegression
from cumae.learners.kernel.prices import Measurements
from cumae.mechanisms import Coins, ExponentialMechanism, GaussianNoise, Majority
from cumae.predictors import EverlastingPredictor, QueryRelease
from cumae.predictors.stateful import counter_of
from cumae.privacy import Gaussian, calibrate
from cumae.randomness import SYSTEM, SeededSource

NUMBERS = [(-1.0, 1.0), (-1.0, 1.0)]  # columns of a model
GRID = np.array([*itertools.product(np.linspace(-1.0, 1.0, 5), repeat=2)])
SHARDS, ASKED = 8, 64  # voters, and queries to them
MANY = 40  # rows of a shard, among which both labels are nearly sure to be
TREES = Trees(2)
AROUND_A_SUM = "later sums, which depend on the first, and the model that is made of all"
AROUND_VOTES = "how rows become shards and answers become rows; who asks sees labels, not counts"
AROUND_A_DRAW = "how the learner reads rows, finds cuts and divides its budget"


class NoPublished:
    """A driver that is attacked by its releases alone."""

    def ask(self, X: Any) -> list[None]:
        return [None] * len(X)

    def published(self) -> None:
        return None


class FirstSum(NoPublished):
    """Drives the first noisy sum of a fit: plan, question and sum are those of the learner.

    Parameters
    ----------
    make : callable
        Returns a new learner, not fitted.
    public : array
        Public rows. Coins that are drawn before the sum are public, too, and the same in all runs.
    noise : float
        The share of the planned noise that is drawn; a bug is planted if it is not 1.

    Examples
    --------
    >>> from cumae.audit.attacks.releases import first_sum
    >>> from cumae.learners import PrivateLogisticRegression
    >>> driver = first_sum(1.0, 1e-6, PrivateLogisticRegression).make()
    >>> driver.train([[0.0, 0.0]] * 400, [0, 1] * 200)
    >>> len(driver.releases(10))
    10
    """

    def __init__(self, make: Callable[[], Any], public: Floats, noise: float = 1.0) -> None:
        self.make, self.public, self.noise = make, public, noise

    def train(self, X: Any, y: Any) -> None:
        learner = self.make()
        sizes, rows = learner.read_rows(X, y, self.public)
        plans = learner.decide(sizes, rows).steps
        if not isinstance(plans, Measurements):
            raise InvalidParameter(f"so few rows that no sum is released by {learner!r}.")
        learner.columns_ = sizes.columns
        self.plans, self.columns = plans, sizes.columns
        self.begun = learner.begin(rows, plans, SeededSource(0))
        self.question = self.begun.question(plans.first_noise)
        self.exact = np.ravel(self.begun.parts.sum(self.question.total))

    def before(self) -> Integers:
        """Return the sum without noise."""
        return self.exact

    def added(self, cells: Floats, labels: Integers) -> Floats:
        """Return the numbers that each of some rows would add to the sum."""
        codes = self.begun.features.codes(self.columns.encode(cells))
        single = [np.ravel(self.question.total(codes[[i]], labels[[i]])) for i in range(len(cells))]
        return np.array(single, dtype=np.float64)

    def releases(self, count: int) -> Integers:
        """Return the sum with noise, one row for each of so many independent runs."""
        return noisy_copies(self.exact, self.plans.first_noise * self.noise, count)


def first_sum(
    epsilon: float, delta: float, learner: Any = PrivateKernelClassifier, **options: Any
) -> Attack:
    """Return the attack on the first noisy sum of a fit, held against its share of the promise.

    The row that differs is the one, among many rows and labels, that moves the sum farthest.

    Parameters
    ----------
    epsilon, delta : float
        What the whole fit may cost.
    learner : class
        A learner by noisy sums.
    **options : object
        Further parameters of the learner.
    """
    make = partial(learner, epsilon, delta, columns=NUMBERS, **options)
    half = 4 + round(80 / epsilon)  # with fewer, trees would be fitted
    X, y = np.resize(GRID, (2 * half, 2)), np.arange(2 * half) % 2
    fresh = partial(FirstSum, make, np.repeat(GRID, 2, axis=0))
    known = fresh()
    known.train(X, y)
    cells, labels = np.repeat(GRID, 2, axis=0), np.tile([0, 1], len(GRID))
    added = known.added(cells, labels)
    squares = (added**2).sum(axis=1)
    apart = squares[:, None] + squares - 2 * added @ added.T
    zero, one = np.unravel_index(int(apart.argmax()), apart.shape)
    worlds = [(_first(X, cells[i]), _first(y, labels[i])) for i in (zero, one)]
    way = added[one] - added[zero]

    def play(game: Game) -> Floats:
        game.train(*worlds)
        return np.asarray(game.releases() @ way)

    steps = known.plans.steps
    mu = _gaussian(epsilon, delta) / math.sqrt(steps)  # all sums have the same share
    count = "the only noisy sum" if steps == 1 else f"the first of {steps} noisy sums"
    return Attack(
        f"{learner.__name__}, {count}",
        fresh,
        play,
        Claimed(Gaussian(1 / mu).epsilon(delta), delta, mu**2 / 2, mu * WHOLE),
        level=RELEASES,
        not_covered=AROUND_A_SUM if steps > 1 else "how rows are read, and what becomes of the sum",
        plant=partial(fresh, noise=0.5),
        planted=HALF_THE_NOISE,
    )


class CountedVotes(NoPublished):
    """Drives the noisy counts of a predictor: votes are counted once, for queries that are fixed.

    Parameters
    ----------
    make : callable
        Returns a new predictor, not fitted.
    asked : array
        The queries.
    noise : float
        The share of the planned noise that is drawn; a bug is planted if it is not 1.

    Examples
    --------
    >>> from cumae import QueryRelease
    >>> from cumae.audit.attacks.releases import CountedVotes
    >>> from cumae.concepts import Thresholds
    >>> make = lambda: QueryRelease(
    ...     Thresholds(), max_queries=3, epsilon=50.0, n_shards=8, mechanism="gaussian"
    ... )
    >>> driver = CountedVotes(make, [[0.0], [1.0], [0.0]])
    >>> driver.train([[0.0], [1.0]] * 100, [0, 1] * 100)
    >>> driver.releases(10).shape  # runs, queries, classes
    (10, 3, 2)
    """

    def __init__(self, make: Callable[[], Any], asked: Table, noise: float = 1.0) -> None:
        self.make, self.asked, self.noise = make, np.asarray(asked), noise

    def train(self, X: Any, y: Any) -> None:
        state = counter_of(self.make().fit(X, y)).state
        voters = getattr(state, "phase", None) or state.voting
        self.votes = voters.ensemble.votes(self.asked, np.arange(len(self.asked)))
        self.rule = _with_noise(state.rule, self.noise)

    def before(self) -> Integers:
        """Return the votes."""
        return np.asarray(self.votes)

    def releases(self, count: int) -> Integers:
        """Return noisy counts of so many independent runs: runs, queries, classes."""
        noisy = self.rule.release(np.tile(self.votes, (count, 1)), Coins(SYSTEM))
        return noisy.reshape(count, *self.votes.shape)


def counted_votes(
    epsilon: float,
    delta: float,
    predictor: Any = EverlastingPredictor,
    *,
    size: int = FEW,
    **options: Any,
) -> Attack:
    """Return the attack on noisy counts: one row, and so one voter, says 1 in one of the worlds.

    Parameters
    ----------
    epsilon, delta : float
        What the predictor may cost.
    predictor : class
        The class of the predictor.
    size : int of 1 or more
        Rows of a shard.
    **options : object
        Its parameters, except the estimator.
    """
    rows, asked = alike(SHARDS * size), alike(ASKED)[0]
    make = partial(predictor, Spotter(), epsilon=epsilon, delta=delta, **options)
    fresh = partial(CountedVotes, make, asked)

    def play(game: Game) -> Floats:
        game.train(rows, (replaced(rows[0]), rows[1]))
        return np.asarray(game.releases()[:, :, 1].sum(axis=1), dtype=np.float64)

    return Attack(
        f"{predictor.__name__}, noisy counts of {ASKED} queries",
        fresh,
        play,
        _claimed(make, rows),
        level=RELEASES,
        not_covered=AROUND_VOTES,
        plant=partial(fresh, noise=0.5),
        planted=HALF_THE_NOISE,
    )


class DrawnRules(NoPublished):
    """Drives the draw of a tree by the exponential mechanism, over scores of fixed rows.

    Parameters
    ----------
    epsilon : float above 0
        What a draw costs, as it is given to the sampler.

    Examples
    --------
    >>> from cumae.audit.attacks.releases import DrawnRules
    >>> driver = DrawnRules(90.0)
    >>> driver.train([[0.5]] * 4, [1] * 4)
    >>> driver.releases(2).tolist()
    [1, 1]
    """

    def __init__(self, epsilon: float) -> None:
        self.epsilon = epsilon

    def train(self, X: Any, y: Any) -> None:
        self.X, self.y = np.asarray(X), np.asarray(y)

    def before(self) -> Integers:
        """Return the labels; rows are all alike."""
        return self.y

    def releases(self, count: int) -> Integers:
        """Return what so many trees, each drawn by itself, say of the first row."""
        here = self.X[:1]
        drawn = [TREES.choose(here, self.X, self.y, self.epsilon) for _ in range(count)]
        return np.array([tree.predict(here)[0] for tree in drawn])


def drawn_tree(epsilon: float, delta: float, *, name: str) -> Attack:
    """Return the attack on one draw of a tree: a label moves the odds of what it says.

    Rows are all alike, and ones are a few fewer than zeros, so that one tree in three says 1, and
    one in four if the exponent is twice what it should be.

    Parameters
    ----------
    epsilon : float above 0
        What a draw costs.
    delta : float
        The delta at which the cost is read.
    name : str
        The learner that draws.
    """
    behind = int(1 / epsilon)
    y = np.append(np.zeros(behind + 3, dtype=np.int64), 1)
    X = np.full((len(y), 1), HERE)

    def play(game: Game) -> Floats:
        game.train((X, y), (X, _first(y, 1)))
        return np.asarray(game.releases(), dtype=np.float64)

    return Attack(
        f"{name}, one draw of a tree",
        partial(DrawnRules, epsilon),
        play,
        Claimed.by(ExponentialMechanism(epsilon).guarantee("one row", delta=delta)),
        level=RELEASES,
        not_covered=AROUND_A_DRAW,
        plant=partial(DrawnRules, 2 * epsilon),
        planted="with an exponent without its half, planted",
    )


def _first(values: NDArray[Any], value: Any) -> NDArray[Any]:
    """Return an array with another first entry."""
    found = values.copy()
    found[0] = value
    return found


def _claimed(make: Callable[[], Any], rows: Rows) -> Claimed:
    """Fit a predictor, and read its guarantee."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TooFewRows)
        return Claimed.by(make().fit(*rows).guarantee_, gaussian_releases=ASKED)


def _gaussian(epsilon: float, delta: float) -> float:
    """Return the largest mu of Gaussian noise that keeps (epsilon, delta)."""
    return 1 / calibrate(Gaussian, epsilon, delta, start=4.0, tolerance=1e-6)


def _with_noise(rule: Majority, share: float) -> Majority:
    """Return a rule with another scale of its noise: the whole of it, unless a bug is planted."""
    noise = rule.noise
    if share == 1 or not isinstance(noise, GaussianNoise):
        return rule
    return replace(rule, noise=GaussianNoise(noise.scale * share, noise.sensitivity))


_DRAWN = ("PrivateLearner", "SemiPrivateLearner", "GenericLearner", "PrivateBooster")
ATTACKS: dict[str, Sequence[Callable[..., Attack]]] = {
    "PrivateKernelClassifier": (partial(first_sum, n_waves=4),),
    "PrivateLogisticRegression": (
        partial(first_sum, learner=PrivateLogisticRegression, n_steps=1),
    ),
    "EverlastingPredictor": (
        partial(counted_votes, shard_size=FEW, growth=ASKED / (SHARDS * FEW), prior=False),
    ),
    "QueryRelease": (
        partial(
            counted_votes,
            predictor=QueryRelease,
            size=MANY,
            mechanism="gaussian",
            n_shards=SHARDS,
            max_queries=ASKED,
        ),
    ),
    **{name: (partial(drawn_tree, name=name),) for name in _DRAWN},
}
