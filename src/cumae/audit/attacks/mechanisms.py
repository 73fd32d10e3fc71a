"""Attacks on mechanisms, the parts that all guarantees rest on.

A mechanism gets counts, not rows. Here the rows are voters, each with a vote on some questions, and
a query names a question; so neighbours are what they are everywhere, one row replaced, and the
counts move as far as one voter can move them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from cumae.arrays import Integers
from cumae.audit.game import Game
from cumae.audit.results import Claimed
from cumae.audit.runs import Attack
from cumae.mechanisms import (
    UNCLEAR,
    BetweenThresholds,
    ExponentialMechanism,
    GaussianNoise,
    LaplaceNoise,
    NoisyMajority,
    Side,
    StabilityTest,
)
from cumae.mechanisms.base import Mechanism

Ask = Callable[[Any, Integers], Any]  # a mechanism and counts, one row of them for each query
# Two questions that one voter pushes towards a charged answer, then two that it pulls back: which
# kind was charged tells the worlds apart. Best of those tried, for what one charged answer tells.
PATTERN = (0, 0, 1, 1)
LARGE = 10**9  # votes among which thresholds find their place; only their distance matters here


class Votes:
    """Drives a mechanism: counts the votes on the question that a query names.

    Parameters
    ----------
    make : callable
        Returns a new mechanism.
    ask : callable
        Gives it counts, and returns its answers; None stands for those that it gives no more.
    n_classes : int of 2 or more
        What a vote may be: 0 up to, but not including, this.

    Examples
    --------
    >>> from cumae.audit.attacks.mechanisms import Votes
    >>> from cumae.mechanisms import LaplaceNoise
    >>> driver = Votes(
    ...     lambda: LaplaceNoise(float("inf")), lambda noise, counts: noise.release(counts)
    ... )
    >>> driver.train([[0, 1], [1, 1], [1, 1]], [0, 0, 0])
    >>> [answer.tolist() for answer in driver.ask([[0], [1]])]
    [[1, 2], [0, 3]]
    """

    def __init__(self, make: Callable[[], Mechanism], ask: Ask, n_classes: int = 2) -> None:
        self.make, self.answers, self.n_classes = make, ask, n_classes

    def train(self, X: Any, y: Any) -> None:
        del y  # what a voter says stands in X
        self.mechanism = self.make()
        columns = np.asarray(X, dtype=np.int64).T
        counted = [np.bincount(votes, minlength=self.n_classes) for votes in columns]
        self.counts = np.array(counted, dtype=np.int64)

    def ask(self, X: Any) -> list[Any]:
        asked = np.asarray(X, dtype=np.int64)[:, 0]
        given = list(self.answers(self.mechanism, self.counts[asked]))
        return given + [None] * (len(asked) - len(given))

    def published(self) -> None:
        return None


def noisy_majority(
    epsilon: float,
    delta: float,
    *,
    kind: str = "gaussian",
    n_classes: int = 2,
    max_queries: int = 100,
    noise: Callable[..., GaussianNoise | LaplaceNoise] | None = None,
) -> Attack:
    """Return the attack on noisy counts: one vote, the same question again and again.

    It sees the counts themselves. The ratio of likelihoods depends on their sum alone for Gaussian
    noise, and on a clipped sum for Laplace noise; so no rule is better.

    Parameters
    ----------
    epsilon, delta : float
        What the mechanism is calibrated to.
    kind : {"gaussian", "laplace"}
        The noise.
    n_classes, max_queries : int
        As in :class:`~cumae.mechanisms.NoisyMajority`.
    noise : callable or None
        Another class of noise, to plant a bug.

    Examples
    --------
    >>> from cumae.audit.attacks.mechanisms import noisy_majority
    >>> noisy_majority(1.0, 1e-6).claimed.epsilon <= 1
    True
    """
    found = NoisyMajority.calibrated(epsilon, delta, max_queries, n_classes, kind=kind)
    gaussian = isinstance(found.noise, GaussianNoise)
    fresh = partial(_like, found.noise, noise or type(found.noise))
    votes = np.arange(2 * n_classes) % n_classes  # two for each class
    zero, one = _votes(votes), _votes(np.append([1], votes[1:]))
    known = np.bincount(votes)

    def play(game: Game) -> float:
        game.train(_rows(zero), _rows(one))
        off = np.array(game.ask(_questions([0] * max_queries)).answers) - known
        # World 1 has a vote more for class 1, and one less for class 0.
        gain = _gain(off[:, 1], gaussian=gaussian)
        if n_classes > 2:  # of two classes, one count follows from the other
            gain = gain + _gain(-off[:, 0], gaussian=gaussian)
        return float(gain.sum())

    make = partial(
        Votes, partial(_majority, fresh, n_classes, max_queries), NoisyMajority.release, n_classes
    )
    releases = max_queries if gaussian and n_classes == 2 else 0
    claimed = Claimed.by(found.guarantee("one vote", delta=delta), gaussian_releases=releases)
    queries = "1 query" if max_queries == 1 else f"{max_queries} queries"
    name = f"NoisyMajority, {kind}, {n_classes} classes, {queries}"
    return Attack(name, make, play, claimed)


def between_thresholds(
    epsilon: float,
    delta: float,
    *,
    max_between: int = 1,
    mechanism: Callable[..., BetweenThresholds] = BetweenThresholds,
    repeats: int = 1,
    pattern: Sequence[int] = PATTERN,
) -> Attack:
    """Return the attack on BetweenThresholds: counts at the lower threshold, moved by one.

    Parameters
    ----------
    epsilon, delta : float
        What the mechanism is calibrated to.
    max_between : int of 1 or more
        Answers that it is paid for.
    mechanism : callable
        Another one with the same parameters, to plant a bug.
    repeats : int of 1 or more
        How often the questions are asked.
    pattern : sequence of int
        Which questions are asked, in order. One voter moves the count of question 0 towards
        "between", and that of question 1 away from it.
    """
    found = BetweenThresholds.calibrated(LARGE, epsilon, delta, max_between)
    step = _step(found)
    lower = 2 * step  # as low as it can be: voters beyond what the counts need only take time
    make = partial(
        mechanism, lower, lower + found.upper - found.lower, found.epsilon, found.delta, max_between
    )
    table = _table([lower - 1, lower - 1 + step], 4 * step)
    return Attack(
        f"BetweenThresholds, {max_between} between",
        partial(Votes, make, _ask_between),
        partial(_play_sparse, table, Side.BETWEEN, tuple(pattern) * repeats),
        Claimed.by(found.guarantee("one vote", delta=delta)),
    )


def stability_test(
    epsilon: float,
    delta: float,
    *,
    max_unstable: int = 1,
    mechanism: Callable[..., StabilityTest] = StabilityTest,
    repeats: int = 1,
    pattern: Sequence[int] = PATTERN,
    gap_at: Callable[[int], int] = lambda distance: 2 * distance + 1,
    offset: int = 0,
) -> Attack:
    """Return the attack on the stability test: distances at the threshold, moved by one.

    Parameters
    ----------
    epsilon, delta : float
        What the mechanism is calibrated to.
    max_unstable : int of 1 or more
        Unstable answers that it is paid for.
    mechanism : callable
        Another one with the same parameters, to plant a bug.
    repeats : int of 1 or more
        How often the questions are asked.
    pattern : sequence of int
        Which questions are asked, in order. One voter makes question 0 less stable, and question 1
        more.
    gap_at : callable from int to int
        The gap between two counts at a distance.
    offset : int
        What to add to the threshold, for an adversary who knows its noise.
    """
    asked = len(pattern) * repeats
    found = StabilityTest.calibrated(epsilon, delta, asked, max_unstable)
    make = partial(mechanism, found.epsilon, delta / 2, asked, max_unstable)
    at = found.threshold + offset
    gaps = [gap_at(at), gap_at(at - _step(found))]
    voters = max(gaps) + 4
    table = _table([(voters - gap) // 2 for gap in gaps], voters)
    # One vote too many for the gap's parity is for a third class.
    for question, gap in enumerate(gaps):
        if (voters - gap) % 2:
            table[-1, question] = 2
    return Attack(
        f"StabilityTest, {max_unstable} unstable",
        partial(Votes, make, StabilityTest.ask, 3),
        partial(_play_sparse, table, UNCLEAR, tuple(pattern) * repeats),
        Claimed.by(found.guarantee("one vote", delta=delta)),
    )


def exponential(
    epsilon: float, delta: float, *, mechanism: Callable[..., Any] = ExponentialMechanism
) -> Attack:
    """Return the attack on the exponential mechanism: one vote moves the scores of two candidates.

    The further a candidate is behind, the closer to exp(epsilon) does its chance move, and the more
    seldom is it drawn: about once in three runs is a good compromise.

    Parameters
    ----------
    epsilon : float above 0
        What the draw may cost.
    delta : float
        The delta at which the cost is read; the mechanism does not use it.
    mechanism : callable from epsilon to a mechanism
        What is attacked.
    """
    found = ExponentialMechanism(epsilon)
    behind = int(2 / epsilon)
    zero = _votes(np.append(np.zeros(behind + 3), 1))
    one = _votes(np.append(1, zero[1:]))

    def play(game: Game) -> float:
        game.train(_rows(zero), _rows(one))
        return float(game.ask(_questions([0])).answers[0])

    return Attack(
        "ExponentialMechanism",
        partial(Votes, partial(mechanism, epsilon), _choose),
        play,
        Claimed.by(found.guarantee("one vote", delta=delta)),
    )


def _play_sparse(table: Integers, charged: int, asked: Sequence[int], game: Game) -> float:
    """Count charged answers to question 0, less those to question 1."""
    other = table.copy()
    other[0] = [1, 0]
    game.train(_rows(table), _rows(other))
    answers = game.ask(_questions(asked)).answers
    found = (
        1 - 2 * question for question, seen in zip(asked, answers, strict=True) if seen == charged
    )
    return float(sum(found))


def _table(ones: Sequence[int], voters: int) -> Integers:
    """Return votes on two questions, ``ones`` for label 1 each; the first voter says 0 and 1."""
    table = np.zeros((voters, 2), dtype=np.int64)
    table[1 : ones[0] + 1, 0] = 1
    table[: ones[1], 1] = 1
    return table


def _step(mechanism: BetweenThresholds | StabilityTest) -> int:
    """Return about the scale of a query's noise, by which question 1 is more often charged."""
    return max(1, round(1 / float(mechanism.query_rate)))


def _rows(votes: Integers) -> tuple[Integers, Integers]:
    return votes, np.zeros(len(votes), dtype=np.int64)


def _votes(votes: Any) -> Integers:
    """Return votes on a single question."""
    return np.asarray(votes, dtype=np.int64).reshape(-1, 1)


def _questions(asked: Sequence[int]) -> Integers:
    return np.array(asked, dtype=np.int64).reshape(-1, 1)


def _gain(off: Integers, *, gaussian: bool) -> Any:
    """Return how much a count that is off by this speaks for one more, up to a constant factor."""
    return off if gaussian else np.abs(off) - np.abs(off - 1)


def _like(
    noise: GaussianNoise | LaplaceNoise, kind: Callable[..., GaussianNoise | LaplaceNoise]
) -> GaussianNoise | LaplaceNoise:
    if isinstance(noise, GaussianNoise):
        return kind(noise.scale, noise.sensitivity, moves=noise.moves)
    return kind(noise.epsilon, noise.sensitivity)


def _majority(
    fresh: Callable[[], GaussianNoise | LaplaceNoise], n_classes: int, max_queries: int
) -> NoisyMajority:
    return NoisyMajority(fresh(), n_classes, max_queries)


def _ask_between(mechanism: BetweenThresholds, counts: Integers) -> Integers:
    return mechanism.ask(counts[:, 1])


def _choose(mechanism: ExponentialMechanism, counts: Integers) -> list[int]:
    return [mechanism.choose(scores) for scores in counts]


ATTACKS: dict[str, Sequence[Callable[..., Attack]]] = {
    "NoisyMajority": (
        noisy_majority,
        partial(noisy_majority, n_classes=3),
        partial(noisy_majority, kind="laplace"),
        partial(noisy_majority, kind="laplace", max_queries=1),
    ),
    "BetweenThresholds": (between_thresholds,),
    "StabilityTest": (stability_test,),
    "ExponentialMechanism": (exponential,),
}
