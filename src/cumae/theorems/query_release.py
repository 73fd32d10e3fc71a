"""Sizes from "Privately Answering Classification Queries in the Agnostic PAC Model" (paper 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cumae.errors import InvalidParameter, shown
from cumae.parameters import Number, check_count, check_real
from cumae.theorems.stated import theorem
from cumae.theorems.values import OrderOf, check_accuracy, check_epsilon, smallest
from cumae.theorems.vc import consistent_rows

ERROR = Number(0.0, 1.0, below=True)
SAMPLED = 56  # Algorithm 3 keeps epsilon / 56 of the rows


@dataclass(frozen=True)
class SubSampSizes:
    """The sizes that Algorithm 5 (SubSamp) needs.

    Parameters
    ----------
    n_shards, shard_rows : int
        How many models, and rows for each.
    max_unstable : int
        Queries without a clear majority that will be paid for.
    epsilon, delta : float
        Privacy parameters of all answers together.
    """

    n_shards: int
    shard_rows: int
    max_unstable: int
    epsilon: float
    delta: float

    @property
    def n_rows(self) -> int:
        """Rows of all shards together."""
        return self.n_shards * self.shard_rows


@dataclass(frozen=True)
class AgnosticSizes:
    """The sizes that Algorithm 3 (AgPrivCl) needs.

    Parameters
    ----------
    n_rows : int
        All rows.
    n_sampled : int
        Rows that are drawn from them and labelled anew.
    answers : SubSampSizes
        What its SubSamp needs, which answers the queries.
    """

    n_rows: int
    n_sampled: int
    answers: SubSampSizes


def unstable_queries(max_queries: int, error: float, beta: float) -> int:
    """Return how many of the queries may be unclear if each model has that error.

    A third of the models must be wrong on such a query, so its chance is three times the
    error, by Markov's inequality; beta is the chance of more, by Chernoff's:
    3 (error m + sqrt(error m ln(m/beta)/2)).

    Parameters
    ----------
    max_queries : int of 1 or more
        Number of queries m.
    error : float above 0 and below 1
        Error of each model.
    beta : float above 0 and below 1
        Chance that more queries are unclear.
    """
    mean = error * max_queries
    return max(1, math.ceil(3 * (mean + math.sqrt(mean * math.log(max_queries / beta) / 2))))


def shards_for(
    max_queries: int, max_unstable: int, epsilon: float, delta: float, beta: float
) -> int:
    """Return the number of shards, k of step 1 of Algorithm 5.

    Parameters
    ----------
    max_queries : int of 1 or more
        Queries to answer.
    max_unstable : int of 1 or more
        Unclear queries that are paid for.
    epsilon, delta : float above 0
        Privacy parameters of all answers together.
    beta : float above 0 and below 1
        Chance of failure.
    """
    scale = math.sqrt(32 * max_unstable * math.log(2 / delta)) / epsilon
    inside = math.log(4 * max_queries * max_unstable / min(delta, beta / 2))
    return math.ceil(34 * math.sqrt(2) * scale * inside)


@theorem(
    3,
    "Lemma 3",
    "SubSamp: answers max_queries queries with an average error of alpha, where some concept "
    "is right. Constants are those of Algorithm 5.",
    "vc max(1, sqrt(max_queries alpha))/(epsilon alpha), times constants and logarithms",
    exact=True,
)
def subsamp_sizes(
    max_queries: int, alpha: float, beta: float, epsilon: float, delta: float, vc: int
) -> SubSampSizes:
    """Return what SubSamp needs for an average error of alpha when some concept is right.

    Models of error alpha/6 leave at most half of alpha to unclear queries on average, and the
    other half to chance, if there are 3 ln(m/beta)/alpha queries or more. Lemma 3 says order of
    vc max(1, sqrt(m alpha))/(epsilon alpha) rows, up to logarithms; the constants are those of
    Algorithm 5, and of Theorem B.4 of paper 1.

    Parameters
    ----------
    max_queries : int of 1 or more
        Queries to answer.
    alpha, beta : float above 0 and below 1
        Average error, and the chance that it is larger.
    epsilon, delta : float
        Privacy parameters of all answers.
    vc : int of 1 or more
        VC dimension of the class.

    Examples
    --------
    >>> from cumae.theorems.query_release import subsamp_sizes
    >>> sizes = subsamp_sizes(1_000, 0.1, 0.1, 1.0, 1e-6, 1)
    >>> sizes.n_shards, sizes.shard_rows, sizes.max_unstable
    (240497, 11015, 77)
    """
    _check(max_queries, vc, alpha=alpha, beta=beta, delta=delta)
    check_epsilon(epsilon)
    error = alpha / 6
    unstable = unstable_queries(max_queries, error, beta)
    shards = shards_for(max_queries, unstable, epsilon, delta, beta)
    rows = consistent_rows(error, beta / (2 * shards), vc)
    return SubSampSizes(shards, rows, unstable, epsilon, delta)


@theorem(
    3,
    "Theorem 7",
    "AgPrivCl: answers max_queries queries with an average error of alpha above the best "
    "concept's. Constants are those of Algorithm 3 and of Lemma 9.",
    "vc max(1, sqrt(max_queries) alpha^1.5)/(epsilon alpha^2), times constants and logarithms",
    exact=True,
    instead={"epsilon": 0.5},
)
def agnostic_sizes(
    max_queries: int, alpha: float, beta: float, epsilon: float, delta: float, vc: int
) -> AgnosticSizes:
    """Return what Algorithm 3 needs for an error of alpha above the best concept's (Theorem 7).

    The theorem says order of; these are the constants of Algorithm 3 and of Lemma 9. The sample
    must be as large as the proof prints (8000 and 7200 are its constants), and give each shard
    enough rows for an error of alpha/24 with chance 1 - beta/(16 k). The unclear queries are
    counted for models of error alpha/12, as the proof needs: see the errata.

    Parameters
    ----------
    max_queries : int of 1 or more
        Queries to answer; the paper asks for 8 ln(1/(alpha beta))/alpha of them at least.
    alpha, beta : float above 0 and below 1
        Average error beyond the best concept's, and the chance that it is larger.
    epsilon, delta : float
        Privacy parameters of the whole, both below 1.
    vc : int of 1 or more
        VC dimension of the class.

    Examples
    --------
    >>> from cumae.theorems.query_release import agnostic_sizes
    >>> f"{agnostic_sizes(1_000, 0.1, 0.1, 0.5, 1e-6, 1).n_rows:.1e}"
    '2.2e+13'
    """
    _check(max_queries, vc, alpha=alpha, beta=beta, epsilon=epsilon, delta=delta)
    least = math.ceil(8 * math.log(1 / (alpha * beta)) / alpha)
    if max_queries < least:
        raise InvalidParameter(
            f"constants='paper' is printed for {least:,} queries or more at alpha={alpha!r}, "
            f"beta={beta!r}, not for {max_queries:,}; ask for more, or take constants='practical'."
        )
    once = min(1.0, alpha * max(1.0, math.sqrt(max_queries * alpha)))
    repeats = math.log(2 / delta)
    inner_epsilon, inner_delta = once / repeats, delta / (2 * math.exp(once) * repeats)
    unstable = unstable_queries(max_queries, alpha / 12, beta)
    shards = shards_for(max_queries, unstable, inner_epsilon, inner_delta, beta)
    printed = 8000 * _unscaled(max_queries, alpha, beta, delta, vc)
    close = 7200 * (vc * math.log(1 / alpha) + math.log(8 * shards / beta)) / alpha**2
    learnt = shards * consistent_rows(alpha / 24, beta / (16 * shards), vc)
    sampled = math.ceil(max(printed, close, learnt))
    answers = SubSampSizes(shards, sampled // shards, unstable, inner_epsilon, inner_delta)
    return AgnosticSizes(math.ceil(SAMPLED * sampled / epsilon), sampled, answers)


def _unscaled(max_queries: int, alpha: float, beta: float, delta: float, vc: int) -> float:
    """Return the size of Theorem 7 without its constant and without 1/epsilon.

    Parameters
    ----------
    max_queries : int
        Queries to answer.
    alpha, beta, delta : float
        As in ``agnostic_sizes``.
    vc : int
        VC dimension of the class.
    """
    return (
        (vc * math.log(1 / alpha) + math.log(max_queries / beta))
        * math.pow(math.log(2 / delta), 1.5)
        * math.log(max_queries * alpha / min(delta, beta / 2))
        / alpha**2
        * max(1.0, math.sqrt(max_queries * alpha) * alpha)
    )


@theorem(
    3,
    "Lemma 4",
    "SubSamp where no concept is right: the average error is alpha above three times the best "
    "concept's.",
    "vc max(1, sqrt(max_queries (alpha + best)))/(epsilon alpha^2), apart from logarithms",
    exact=False,
    instead={"epsilon": 0.5},
)
def unrelabelled_rows(
    max_queries: int, alpha: float, epsilon: float, vc: int, best: float = 0.0
) -> OrderOf:
    """Return what SubSamp needs if no concept is always right, and rows are not relabelled.

    Order of vc max(1, sqrt(m (alpha + best)))/(epsilon alpha^2) rows, up to logarithms: Lemma 4,
    which prints it without ``best`` (see the errata). The average error is at most alpha + 3 best.

    Parameters
    ----------
    max_queries : int of 1 or more
        Queries to answer, m.
    alpha : float above 0 and below 1
        Average error beyond three times the best concept's.
    epsilon : float above 0 and below 1
        Privacy parameter of all answers together.
    vc : int of 1 or more
        VC dimension of the class.
    best : float from 0 and below 1
        Error of the best concept.

    Examples
    --------
    >>> from cumae.theorems.query_release import unrelabelled_rows
    >>> unrelabelled_rows(1_000, 0.1, 0.5, vc=1).short
    'order of 2,000 rows'
    """
    _check(max_queries, vc, alpha=alpha, epsilon=epsilon)
    ERROR.check(best, "best")
    shards = max(1.0, math.sqrt(max_queries * (alpha + best)))
    return OrderOf(vc * shards / (epsilon * alpha**2), "logarithms of 1/beta, 1/delta and others")


@theorem(
    3,
    "Lemma 6",
    "Relabelling: rows for one private draw among all labellings, at epsilon 1. It is as good "
    "as the best fit, up to alpha.",
    "256 (vc + ln(3/beta))/alpha^2",
    exact=True,
)
def relabelling_rows(alpha: float, beta: float, vc: int) -> int:
    """Return how many rows make one draw by the exponential mechanism as good as the best fit.

    256 (vc + ln(3/beta))/alpha^2: Lemma 6. The draw has epsilon 1, its candidates are the
    labellings of the rows, and its error is at most alpha above that of the concept that fits the
    rows best.

    Parameters
    ----------
    alpha, beta : float above 0 and below 1
        Error beyond the best fit's, and the chance of a larger one.
    vc : int of 1 or more
        VC dimension of the class.

    Examples
    --------
    >>> from cumae.theorems.query_release import relabelling_rows
    >>> relabelling_rows(0.1, 0.05, vc=1)
    130416
    """
    check_accuracy(alpha, beta, vc)
    return math.ceil(256 * (vc + math.log(3 / beta)) / alpha**2)


@theorem(
    3,
    "Theorem 11",
    "UnvPrivCl: answers any number of queries with an average error of alpha above the best "
    "concept's.",
    "the size of Theorem 7 for 32 (vc ln(1/alpha) + ln(1/beta))/alpha queries",
    exact=False,
    instead={"epsilon": 0.5},
)
def universal_rows(alpha: float, beta: float, epsilon: float, delta: float, vc: int) -> OrderOf:
    """Return what Algorithm 4 needs to answer any number of queries (Theorem 11).

    Order of the size of Theorem 7 for as many queries as ``first_queries`` tells. The paper prints
    the square root in it without ln(1/beta) (see the errata). The first stage alone has printed
    constants: see ``agnostic_sizes``.

    Parameters
    ----------
    alpha, beta : float above 0 and below 1
        Average error beyond the best concept's, and the chance that it is larger.
    epsilon, delta : float above 0 and below 1
        Privacy parameters of the whole.
    vc : int of 1 or more
        VC dimension of the class.

    Examples
    --------
    >>> from cumae.theorems.query_release import universal_rows
    >>> print(universal_rows(0.1, 0.05, 0.5, 1e-6, vc=1))
    order of 3,500,000 rows (the paper does not print the constant)
    """
    _check(1, vc, alpha=alpha, beta=beta, epsilon=epsilon, delta=delta)
    queries = first_queries(alpha, beta, vc)
    return OrderOf(_unscaled(queries, alpha, beta, delta, vc) / epsilon)


def first_queries(alpha: float, beta: float, vc: int, constant: float = 32.0) -> int:
    """Return m_o of Algorithm 4: how many queries define the candidates of the second stage.

    constant (vc ln(1/alpha) + ln(1/beta)) / alpha.

    Parameters
    ----------
    alpha : float above 0 and below 1
        Error beyond that of the best concept.
    beta : float above 0 and below 1
        Chance that it is larger.
    vc : int of 1 or more
        VC dimension of the class.
    constant : float above 0
        The factor in front; the paper prints 32.

    Examples
    --------
    >>> from cumae.theorems.query_release import first_queries
    >>> first_queries(0.1, 0.1, 1)
    1474
    """
    _check(1, vc, alpha=alpha, beta=beta)
    return math.ceil(constant * (vc * math.log(1 / alpha) + math.log(1 / beta)) / alpha)


def _check(max_queries: int, vc: int, **chances: float) -> None:
    check_count(max_queries, "max_queries", least=1)
    check_count(vc, "vc", least=1)
    for name, value in chances.items():
        if not 0 < check_real(value, name) < 1:
            raise InvalidParameter(
                f"{name}={shown(value)} is not strictly between 0 and 1, as the paper has it."
            )


@theorem(
    3,
    "Claim 10",
    "Without privacy: so many rows without labels show for all pairs of concepts how often they "
    "differ, up to alpha. (The printed size is 50 (vc ln(1/alpha) + ln(1/beta))/alpha^2, which its "
    "proof does not reach for large alpha and beta: see the errata.)",
    "the printed size, or the smallest n with 4 (2 e n/vc)^(2 vc) exp(-alpha^2 n/8) <= beta if "
    "that is more",
    exact=True,
)
def disagreement_rows(alpha: float, beta: float, vc: int) -> int:
    """Return how many rows show how often each two concepts differ.

    50 (vc ln(1/alpha) + ln(1/beta))/alpha^2: Claim 10 of paper 3. Its proof rests on an inequality
    that does not give this size for all alpha and beta, so that the smallest n of the classical
    one, 4 (2 e n/vc)^(2 vc) exp(-alpha^2 n/8) <= beta, counts where it is larger.

    Parameters
    ----------
    alpha, beta : float above 0 and below 1
        Difference of the shares, and the chance of a larger one.
    vc : int of 1 or more
        VC dimension of the class.

    Examples
    --------
    >>> from cumae.theorems.query_release import disagreement_rows
    >>> disagreement_rows(0.1, 0.05, vc=1), disagreement_rows(0.1, 0.5, vc=1)
    (26492, 20238)
    """
    check_accuracy(alpha, beta, vc)
    printed = math.ceil(50 * (vc * math.log(1 / alpha) + math.log(1 / beta)) / alpha**2)

    def enough(n: int) -> bool:
        growth = 2 * vc * math.log(2 * math.e * n / vc)
        return math.log(4 / beta) + growth <= alpha**2 * n / 8

    # Up to 16 vc/alpha^2 rows the left side of the inequality grows, and it is above 1 there.
    return max(printed, smallest(enough, math.ceil(16 * vc / alpha**2)))
