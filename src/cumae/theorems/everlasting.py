"""The sizes of GenericBBL in "Private Everlasting Prediction" (paper 2), as printed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cumae.errors import InvalidParameter, shown
from cumae.parameters import check_count, check_real, check_share
from cumae.theorems.stated import theorem
from cumae.theorems.vc import unrounded_learner_rows

TAU = 1.1e10  # the paper's constant


@dataclass(frozen=True)
class PaperPhase:
    """The numbers that the paper prints for one phase: all real, before rounding.

    Comments give the paper's names; i is the number of the phase.
    """

    alpha: float
    beta: float
    shard_rows: float  # lambda_i
    shards: float  # T_i
    answers: float  # R_i
    between: float  # c_i

    @property
    def rows(self) -> float:
        """Return |S_i|."""
        return self.shard_rows * self.shards


def paper_phase(
    number: int, alpha: float, beta: float, epsilon: float, delta: float, vc: int
) -> PaperPhase:
    """Return the sizes of steps 1 to 3c of GenericBBL, with natural logarithms.

    Parameters
    ----------
    number : int of 1 or more
        Number of the phase.
    alpha, beta : float between 0 and 1/16
        The paper's parameters of accuracy.
    epsilon, delta : float
        Privacy parameters.
    vc : int of 1 or more
        VC dimension of the class.
    """
    alpha, beta = alpha / 2.0**number, beta / 2.0**number
    rows = unrounded_learner_rows(alpha, beta, vc)
    inside = math.log(rows / (epsilon * alpha * beta * delta))
    shards = TAU * rows * math.log(1 / delta) * inside**2 / (alpha * epsilon)
    answers = 25600 * rows * shards / epsilon
    return PaperPhase(alpha, beta, rows, shards, answers, 64 * alpha * answers)


@theorem(
    2,
    "Theorem 5.1",
    "GenericBBL: answers for ever. The error is 6 alpha at most, with chance 1 - 4 beta. Some "
    "concept must be right. Its promise to those who ask is void (see the errata).",
    "1.1e10 l^2 ln(1/delta) ln(l/(epsilon a b delta))^2 (3 + exp(epsilon + 4))/(a epsilon^2) "
    "with a = alpha/2, b = beta/2 and l the size of Theorem A.2 for a and b",
    exact=True,
    instead={"alpha": 0.1 / 6, "beta": 0.05 / 4},
)
def paper_rows(alpha: float, beta: float, epsilon: float, delta: float, vc: int) -> int:
    """Return how many labelled rows the paper asks for: more than any machine holds.

    Theorem 5.1 of paper 2. The first phase gets a share epsilon/(3 + exp(epsilon + 4)) of them. The
    theorem promises that the error is 6 alpha at most, with chance 1 - 4 beta.

    Parameters
    ----------
    alpha, beta, delta : float between 0 and 1/16
        A sixth of the error, a quarter of the chance that it is larger, and the privacy parameter.
    epsilon : float above 0 and up to 1
        Privacy parameter.
    vc : int of 1 or more
        VC dimension of the class.

    Raises
    ------
    InvalidParameter
        If the paper does not cover these parameters.

    Examples
    --------
    >>> from cumae.theorems.everlasting import paper_rows
    >>> f"{paper_rows(1 / 20, 1 / 20, 1.0, 1e-6, vc=1):.1e}"
    '5.7e+24'
    """
    given = {"alpha": alpha, "beta": beta, "delta": delta}
    wrong = [name for name in given if not 0 < check_real(given[name], name) < 1 / 16]
    wrong += [] if 0 < check_real(epsilon, "epsilon") <= 1 else ["epsilon"]
    if wrong:
        given["epsilon"] = epsilon
        good = {"alpha": 0.05, "beta": 0.05, "delta": 1e-6, "epsilon": 1.0}
        raise InvalidParameter(
            f"constants='paper' with {', '.join(f'{name}={shown(given[name])}' for name in wrong)}:"
            " the paper has alpha, beta and delta between 0 and 1/16, and epsilon in (0, 1]. To "
            f"see its number of rows, give {', '.join(f'{name}={good[name]!r}' for name in wrong)}."
        )
    check_count(vc, "vc", least=1)
    first = paper_phase(1, alpha, beta, epsilon, delta, vc)
    return math.ceil(first.rows * (3 + math.exp(epsilon + 4)) / epsilon)


@theorem(
    2,
    "Theorem 3.3",
    "A predictor that answers for ever and never learns from its queries can be published: it "
    "becomes a private learner, as hard to have as any. (AccuracyBoost of HypothesisLearner; the "
    "proof prints the constant. The error is 88 alpha at most: see the errata, Claim B.2.)",
    "104 ln(1/beta) n_base",
    exact=True,
)
def published_rows(n_base: int, beta: float) -> int:
    """Return how many rows make a predictor that ignores its queries a private learner.

    104 ln(1/beta) blocks of n_base rows: Theorem 3.3 of paper 2, with the constant of Algorithm
    AccuracyBoost. So no such predictor is easier to have than a learner, and one that answers for
    ever has to learn from its queries.

    Parameters
    ----------
    n_base : int of 1 or more
        Rows that the predictor needs.
    beta : float above 0 and below 1
        Chance of a larger error.

    Examples
    --------
    >>> from cumae.theorems.everlasting import published_rows
    >>> published_rows(1_000, 0.05)
    312000
    """
    check_share(beta, "beta")
    return math.ceil(104 * math.log(1 / beta)) * check_count(n_base, "n_base", least=1)


@theorem(
    2,
    "Lemma C.3",
    "BetweenThresholds: votes between the two thresholds. (Its Lemma 4.3 says the same.)",
    "(12/epsilon) (ln(10/epsilon) + ln(1/delta) + 1)",
    exact=True,
    instead={"epsilon": 0.5},
)
def least_distance(epsilon: float, delta: float) -> int:
    """Return how many votes apart the thresholds of BetweenThresholds must be.

    (12/epsilon) (ln(10/epsilon) + ln(1/delta) + 1): Lemma C.3 of paper 2, for epsilon and delta
    below 1. ``least_gap`` of ``cumae.mechanisms.between_thresholds`` has a smaller one, with its
    own proof.

    Parameters
    ----------
    epsilon, delta : float above 0 and below 1
        Privacy parameters.

    Examples
    --------
    >>> from cumae.theorems.everlasting import least_distance
    >>> least_distance(0.5, 1e-6)
    428
    """
    check_share(epsilon, "epsilon")
    check_share(delta, "delta")
    return math.ceil(12 / epsilon * (math.log(10 / epsilon) + math.log(1 / delta) + 1))


@theorem(
    2,
    "Lemma C.4",
    "BetweenThresholds: votes with which all answers are right up to a share alpha of the votes. "
    "(Its Lemma 4.4 says the same.)",
    "(8/(alpha epsilon)) (ln(max_queries + 1) + ln(1/beta))",
    exact=True,
    instead={"epsilon": 0.5},
)
def between_votes(alpha: float, beta: float, epsilon: float, max_queries: int) -> int:
    """Return how many votes BetweenThresholds needs so that its answers are right up to alpha.

    (8/(alpha epsilon)) (ln(max_queries + 1) + ln(1/beta)): Lemma C.4 of paper 2. Then no noise on
    a threshold is above alpha/4 of the votes, and none on a query above 3 alpha/4. The method
    ``accuracy`` of :class:`~cumae.mechanisms.BetweenThresholds` says what our own noise does.

    Parameters
    ----------
    alpha, beta : float above 0 and below 1
        Share of the votes, and the chance of more.
    epsilon : float above 0 and below 1
        Privacy parameter.
    max_queries : int of 1 or more
        Number of answers.

    Examples
    --------
    >>> from cumae.theorems.everlasting import between_votes
    >>> between_votes(0.1, 0.05, 0.5, 1_000)
    1585
    """
    check_share(alpha, "alpha")
    check_share(beta, "beta")
    check_share(epsilon, "epsilon")
    count = check_count(max_queries, "max_queries", least=1)
    return math.ceil(8 / (alpha * epsilon) * (math.log(count + 1) + math.log(1 / beta)))
