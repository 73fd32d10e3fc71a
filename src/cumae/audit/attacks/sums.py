"""Attacks on the noisy sums of the kernel classifier, by which alone private rows speak.

Each is one release, or two. Among many rows and labels, the two are taken that move the sum as far
apart as any two of them, so that one row is replaced by the other. Noise is the same in all places:
the sum along the line between both is all that tells the worlds apart. The sums of both worlds are
computed once, and noise is drawn anew in each run.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cumae.arrays import Floats, Integers
from cumae.audit.game import Game
from cumae.audit.results import RELEASES, Claimed
from cumae.audit.runs import Attack
from cumae.data import Columns
from cumae.learners.kernel.features import KernelFeatures
from cumae.learners.kernel.fractions import Fractions
from cumae.learners.kernel.posterior import Posterior
from cumae.learners.kernel.prices import gaussian_mu
from cumae.learners.kernel.reference import MadeUp, Marginal, first_edges
from cumae.learners.kernel.sums import MOVES, Question, noisy_sum
from cumae.privacy import DiscreteGaussianVectors
from cumae.randomness import SYSTEM, SeededSource

NUMBERS = [(-1.0, 1.0), (-1.0, 1.0)]
MAY_BE_MISSING = (-1.0, 1.0, "missing")
TRUTH: dict[str, Any] = {"boolean": True, "missing": True}
DECLARED = Columns([(-1.0, 1.0), MAY_BE_MISSING, ["a", "b", "c", None], TRUTH], None, 4)
Rows = tuple[Floats, Integers]  # encoded, with labels
WHOLE = 1.001  # by how much whole noise can differ from real noise, as in Claimed.by


def _rows() -> Floats:
    """Return encoded rows: corners first, then others that lie evenly; some cells are missing."""
    sides = np.linspace(-1.0, 1.0, 5).tolist()
    kinds, truths = ["a", "b", "c", None], [False, True, None]
    cells = list(itertools.product(sides, [*sides, None], kinds, truths))
    table = DECLARED.encode(cells)
    return np.asarray(table[np.argsort(-np.abs(table[:, :2]).sum(axis=1), kind="stable")])


ROWS = _rows()
HALF_THE_NOISE = "with half the noise, planted"
OTHERS = 3  # rows that are the same in both worlds


@dataclass(frozen=True)
class Sum:
    """A sum over rows: its value without noise, and how far a row moves it.

    Parameters
    ----------
    exact : callable
        Returns the sum, given rows and labels.
    moves : float
        How far a replaced row moves it, as it is paid for.
    """

    exact: Callable[[Floats, Integers], Any]
    moves: float


def noisy_copies(exact: Integers, scale: float, count: int) -> Integers:
    """Release a sum as often as asked, each time with noise of its own; one row for each.

    Parameters
    ----------
    exact : array of int
        The sum.
    scale : float
        Scale of the noise of each number.
    count : int of 1 or more
        How often.
    """
    copies = np.tile(np.ravel(exact), (count, 1))
    return noisy_sum(lambda: copies, [()], scale, SYSTEM)


class Summed:
    """Drives noisy sums: adds rows up once, and releases the sums instead of rows.

    Parameters
    ----------
    sums : sequence of Sum
        What is released, one after the other.
    scales : sequence of float
        The scale of the noise of each.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.audit.attacks.sums import ROWS, Summed, made_up_counts
    >>> driver = made_up_counts().attack(1.0, 1e-6).make()
    >>> driver.train(ROWS[:4], np.zeros(4, dtype=np.int64))
    >>> driver.releases(10).shape  # bins of two columns, and seven marks
    (10, 63)
    """

    def __init__(self, sums: Sequence[Sum], scales: Sequence[float]) -> None:
        self.sums, self.scales = sums, scales

    def train(self, X: Any, y: Any) -> None:
        rows, labels = np.asarray(X), np.asarray(y)
        self.exact = [np.ravel(summed.exact(rows, labels)) for summed in self.sums]

    def before(self) -> Integers:
        """Return all sums without noise."""
        return np.concatenate(self.exact)

    def releases(self, count: int) -> Integers:
        """Return all sums with noise, one row for each of so many independent runs."""
        pairs = zip(self.exact, self.scales, strict=True)
        return np.hstack([noisy_copies(exact, scale, count) for exact, scale in pairs])

    def ask(self, X: Any) -> list[None]:
        return [None] * len(X)

    def published(self) -> None:
        return None


@dataclass(frozen=True)
class Target:
    """Sums that are released together, and the worst row to replace in them.

    Parameters
    ----------
    name : str
        What is attacked.
    sums : tuple of Sum
        What is released, each with an equal share of the budget.
    n_classes : int of 1 or more
        Labels are 0 up to, but not including, this.
    attacked : str
        The class that releases them.
    """

    name: str
    sums: tuple[Sum, ...]
    n_classes: int = 1
    attacked: str = "PrivateKernelClassifier"

    @cached_property
    def worst(self) -> tuple[Rows, Rows, float]:
        """Two rows with labels, and how far apart they are, as a share of what is paid for."""
        rows = np.repeat(ROWS, self.n_classes, axis=0)
        labels = np.tile(np.arange(self.n_classes), len(ROWS))
        added = np.array([self.exact((rows[[i]], labels[[i]])) for i in range(len(rows))])
        added /= self.spread([s.moves * math.sqrt(len(self.sums)) for s in self.sums])
        squares = (added**2).sum(axis=1)
        apart = squares[:, None] + squares - 2 * added @ added.T
        pair = np.unravel_index(int(apart.argmax()), apart.shape)
        zero, one = ((rows[[place]], labels[[place]]) for place in pair)
        return zero, one, math.sqrt(apart.max())

    @cached_property
    def sizes(self) -> list[int]:
        """Number of places of each sum."""
        none = ROWS[:1], np.zeros(1, dtype=np.int64)
        return [np.size(s.exact(*none)) for s in self.sums]

    def spread(self, numbers: ArrayLike) -> Floats:
        """Return a number for each place, given one for each sum."""
        return np.repeat(numbers, self.sizes)

    def exact(self, rows: Rows) -> Floats:
        """Return all sums without noise, one after the other."""
        return np.concatenate([np.ravel(s.exact(*rows)) for s in self.sums]).astype(np.float64)

    def attack(self, epsilon: float, delta: float) -> Attack:
        """Return the attack on the row that moves the sums farthest.

        Parameters
        ----------
        epsilon, delta : float
            What all sums may cost together.
        """
        moves, places = np.array([s.moves for s in self.sums]), sum(self.sizes)
        mu = gaussian_mu(epsilon, delta, places, float(moves.min()))
        scales = moves * math.sqrt(len(moves)) / mu
        cost = DiscreteGaussianVectors(mu, places, float(scales.min()))
        zero, one, _ = self.worst
        way = (self.exact(one) - self.exact(zero)) / self.spread(scales.tolist()) ** 2

        def play(game: Game) -> Floats:
            game.train(_beside(zero), _beside(one))
            return np.asarray(game.releases() @ way)

        claimed = Claimed(min(cost.epsilon(delta), epsilon), delta, cost.mu**2 / 2, mu * WHOLE)
        return Attack(
            f"{self.attacked}, {self.name}",
            partial(Summed, self.sums, scales.tolist()),
            play,
            claimed,
            level=RELEASES,
            not_covered="the plan and the order of sums in a fit",
            plant=partial(Summed, self.sums, (scales / 2).tolist()),
            planted=HALF_THE_NOISE,
        )


def residuals(scores: int = 1, sure: float = 0.0) -> Target:
    """Return one sum of residuals along the directions of a first design.

    A label that is flipped in a row as long as any moves it by all that is paid for. Of three or
    more classes, no two residuals of a row are opposites, so that another row takes its place.

    Parameters
    ----------
    scores : int
        Scores of a row: 1 for two classes.
    sure : float
        Log odds that the model has at the ends of a column.
    """
    name = "a row in a sum of residuals" + ("" if scores == 1 else f" of {scores} classes")
    return Target(name, (_step(question(scores, sure)),), max(scores, 2))


def opposites() -> Target:
    """Return two sums along opposite directions: noise that both share can be taken away."""
    asked = question()
    other = replace(
        asked,
        odds=np.zeros_like(asked.odds),
        odds_constant=np.zeros_like(asked.odds_constant),
        directions=-asked.directions,
        constants=-asked.constants,
    )
    return Target("a row in two sums of residuals", (_step(asked), _step(other)), 2)


def made_up_counts() -> Target:
    """Return the counts of a made-up reference: a row can be in other bins of all columns."""
    made = MadeUp(DECLARED)
    counted = partial(made.counts, edges=[first_edges(bounds) for bounds in NUMBERS])
    return Target("a row in counts", (_of_table(counted, made.counts_move),))


def fractions() -> Target:
    """Return the counts of fractions: a row has one in one column, another row in another."""
    counted = Fractions(DECLARED)
    return Target("a row in counts of fractions", (_of_table(counted.counts, counted.moves),))


def missing_counts() -> Target:
    """Return the counts of one column: a row can be in another bin, and lose its number, too."""
    made = MadeUp(Columns([MAY_BE_MISSING], None, 1))
    counted = partial(made.counts, edges=[first_edges(NUMBERS[1])])
    summed = _of_table(counted, made.counts_move, slice(1, 3))  # the number, and the mark
    return Target("a missing cell in counts", (summed,))


def made_up_products() -> Target:
    """Return the products of a made-up reference: rows that are long in one column alone.

    Two rows as long as any, each of them zero where the other one is not, are as far apart as is
    paid for; but for rounding.
    """
    made = MadeUp(Columns(NUMBERS, None, 2))
    edge = first_edges(NUMBERS[0])
    even = Marginal.of(edge, np.diff(edge) / 2, NUMBERS[0])
    summed = partial(made.products, marginals=[even] * len(NUMBERS), shares=[])
    first = slice(0, len(NUMBERS))
    return Target("a row in products", (_of_table(summed, made.products_move, first),))


def mixed_products() -> Target:
    """Return the products of columns of all kinds, whose cells may be missing."""
    made = MadeUp(DECLARED)
    edge = first_edges(NUMBERS[0])
    even = Marginal.of(edge, np.diff(edge) / 2, NUMBERS[0])
    shares = [np.full(len(marks), 1 / (len(marks) + 1)) for marks in made.marks]
    summed = partial(made.products, marginals=[even] * len(made.numbers), shares=shares)
    return Target(
        "a row in products of columns of all kinds", (_of_table(summed, made.products_move),)
    )


def question(scores: int = 1, sure: float = 0.0) -> Question:
    """Return what a first step asks.

    Parameters
    ----------
    scores : int
        Scores of a row: 1 for two classes.
    sure : float
        Log odds that the model has at the ends of a column.
    """
    features = KernelFeatures.of(ROWS, DECLARED, SeededSource(0), curves=2, waves=0)
    table = features.rows(features.codes(ROWS))
    starts = np.array([[4.0, 1.0, 0.5]])
    posterior = Posterior(table, features.groups, starts, np.ones(1), scores, 1_000, 200.0, 4)
    mean = posterior.mean.copy()
    mean[1] = sure / np.abs(table[:, 1]).max()
    return Question.of(features, mean, posterior.design(1.0))


def _step(asked: Question) -> Sum:
    """Return a sum of residuals, in whole numbers."""
    codes = asked.features.codes
    return Sum(lambda rows, labels: asked.total(codes(rows), labels), float(MOVES))


def _of_table(total: Callable[[Floats], Integers], moves: float, seen: slice = slice(None)) -> Sum:
    """Return a sum that looks at some encoded columns, and at no labels."""
    return Sum(lambda rows, labels: total(rows[:, seen]), moves)  # noqa: ARG005


def _beside(row: Rows) -> Rows:
    """Return a row beside some that are the same in both worlds."""
    others = ROWS[:OTHERS], np.zeros(OTHERS, dtype=np.int64)
    return np.vstack([others[0], row[0]]), np.append(others[1], row[1])


def _attack(target: Callable[[], Target], epsilon: float, delta: float) -> Attack:
    return target().attack(epsilon, delta)


TARGETS: tuple[Callable[[], Target], ...] = (
    residuals,
    partial(residuals, 3),
    opposites,
    made_up_counts,
    missing_counts,
    made_up_products,
    mixed_products,
    fractions,
)
ATTACKS: dict[str, Sequence[Callable[..., Attack]]] = {
    "PrivateKernelClassifier": tuple(partial(_attack, target) for target in TARGETS),
}
