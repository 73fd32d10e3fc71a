"""The sizes of learners with public rows in paper 4."""

from __future__ import annotations

import math

from cumae.parameters import check_count
from cumae.theorems.stated import theorem
from cumae.theorems.values import (
    OrderOf,
    ReducedLearner,
    RowsWithPublic,
    check_accuracy,
    check_epsilon,
    check_limit,
    smallest,
)


@theorem(
    4,
    "Theorem 3.1",
    "SSPP: publishes a concept without delta, with the help of public rows. Its error is alpha "
    "above the best concept's at most.",
    "(vc ln(1/alpha) + ln(1/beta)) max(1/alpha^2, 1/(epsilon alpha)) private rows, and "
    "(vc ln(1/alpha) + ln(1/beta))/alpha public ones",
    exact=False,
)
def semi_private_rows(alpha: float, beta: float, epsilon: float, vc: int) -> RowsWithPublic:
    """Return what SSPP needs: private rows with labels, and public rows without.

    Order of (vc ln(1/alpha) + ln(1/beta)) max(1/alpha^2, 1/(epsilon alpha)) private rows, and of
    (vc ln(1/alpha) + ln(1/beta))/alpha public ones: Theorem 3.1 of paper 4. The error is at most
    alpha above that of the best concept.

    Parameters
    ----------
    alpha, beta : float above 0 and below 1
        Error beyond the best concept's, and the chance of a larger one.
    epsilon : float above 0
        Privacy parameter; delta is 0.
    vc : int of 1 or more
        VC dimension of the class.

    Examples
    --------
    >>> from cumae.theorems.public_data import semi_private_rows
    >>> sizes = semi_private_rows(0.1, 0.05, 1.0, vc=1)
    >>> sizes.private.short, sizes.public.short
    ('order of 530 rows', 'order of 53 rows')
    """
    check_accuracy(alpha, beta, vc)
    check_epsilon(epsilon)
    size = vc * math.log(1 / alpha) + math.log(1 / beta)
    private = size * max(1 / alpha**2, 1 / (epsilon * alpha))
    return RowsWithPublic(OrderOf(private), OrderOf(size / alpha))


@theorem(
    4,
    "Lemma 3.3",
    "Public rows whose labellings come within alpha of each concept.",
    "the smallest n with 2 (2 e n/vc)^(2 vc) exp(-alpha n/4) <= beta",
    exact=True,
)
def cover_rows(alpha: float, beta: float, vc: int) -> int:
    """Return how many public rows make the labellings of them stand for all concepts.

    The smallest n with 2 (2 e n/vc)^(2 vc) exp(-alpha n/4) <= beta: inequality (1) in the proof of
    Lemma 3.3 of paper 4, whose statement says order of (vc ln(1/alpha) + ln(1/beta))/alpha.

    Parameters
    ----------
    alpha : float above 0 and below 1
        Disagreement with the nearest candidate that is allowed.
    beta : float above 0 and below 1
        Chance of a larger one.
    vc : int of 1 or more
        VC dimension of the class.

    Examples
    --------
    >>> from cumae.theorems.public_data import cover_rows
    >>> cover_rows(0.1, 0.05, vc=1)
    820
    """
    check_accuracy(alpha, beta, vc)

    def enough(n: int) -> bool:
        growth = 2 * vc * math.log(2 * math.e * n / vc)
        return math.log(2 / beta) + growth <= alpha * n / 4

    # Up to 8 vc/alpha rows the left side of the inequality grows, and it is above 1 there.
    return smallest(enough, math.ceil(8 * vc / alpha))


def cover_error(n_public: int, beta: float, vc: int) -> float:
    """Return how far the nearest labelling of public rows can be from a concept.

    The smallest alpha with 2 (2 e n_public/vc)^(2 vc) exp(-alpha n_public/4) <= beta, by
    Lemma 3.3 of paper 4, solved for alpha. It is 1 at most.

    Parameters
    ----------
    n_public : int of 1 or more
        Public rows.
    beta : float above 0 and below 1
        Chance of a larger one.
    vc : int of 0 or more
        VC dimension of the class; a class of one concept has 0.

    Examples
    --------
    >>> from cumae.theorems.public_data import cover_error
    >>> round(cover_error(820, 0.05, vc=1), 3)
    0.1
    """
    check_count(n_public, "n_public", least=1)
    check_accuracy(0.5, beta, vc, least=0)
    growth = 2 * vc * math.log(2 * math.e * n_public / vc) if vc else 0.0
    return min(1.0, 4 * (math.log(2 / beta) + max(0.0, growth)) / n_public)


@theorem(
    4,
    "Theorem 4.1",
    "Lower bound: public rows that a learner with a small delta needs for a class of infinite "
    "Littlestone dimension, such as thresholds on all real numbers.",
    "more than 1/(1600 alpha)",
    exact=True,
    instead={"alpha": 0.0001, "beta": 0.04, "epsilon": 0.1},
)
@theorem(
    4,
    "Theorem 4.2",
    "Lower bound: public rows that a learner without delta needs for each class that no such "
    "learner learns without them.",
    "more than 1/(1600 alpha)",
    exact=True,
    instead={"alpha": 0.0001, "beta": 0.04, "epsilon": 0.1},
)
def least_public_rows(alpha: float, beta: float, epsilon: float) -> int:
    """Return how many public rows a learner needs where learning without them is impossible.

    More than 1/(1600 alpha): the proofs of Theorems 4.1 and 4.2 of paper 4, whose statements say
    order of 1/alpha. The paper has beta 1/18, for which chances do not add up (see the errata).

    Parameters
    ----------
    alpha : float above 0 and up to 1/100
        Error beyond the best concept's.
    beta : float above 0 and up to 1/25
        Chance of a larger one.
    epsilon : float above 0 and up to 1/10
        Privacy parameter. Delta is 0 in Theorem 4.2; in Theorem 4.1 it is 1/(100 n^2 ln n) at most
        for n private rows.

    Examples
    --------
    >>> from cumae.theorems.public_data import least_public_rows
    >>> least_public_rows(0.0001, 0.04, 0.1)
    7
    """
    check_accuracy(alpha, beta, 1)
    check_limit(alpha, "alpha", 1 / 100, "Lemma 4.4 of paper 4")
    check_limit(beta, "beta", 1 / 25, "Lemma 4.4 of paper 4, as we could prove it,")
    check_limit(check_epsilon(epsilon), "epsilon", 1 / 10, "Theorem 4.3 of paper 4")
    return math.floor(1 / (1600 * alpha)) + 1


@theorem(
    4,
    "Lemma 4.4",
    "Reduction: a learner with few public rows becomes a private learner without any, for the case "
    "that some concept is right. It fails with a chance of 1/16 at most, if the other one fails "
    "with 1/25 at most (1/18 is printed; see the errata, Claim 4.6).",
    "n_rows/(10 n_public) rows, with an error of 100 n_public alpha",
    exact=True,
    instead={"alpha": 0.0001, "beta": 0.04},
)
def reduced_learner(alpha: float, beta: float, n_rows: int, n_public: int) -> ReducedLearner:
    """Return the private learner that a learner with public rows becomes.

    n_rows/(10 n_public) rows, and an error of 100 n_public alpha: Lemma 4.4 of paper 4, for alpha
    up to 1/100. ``PublicDataReduction`` is this learner.

    Parameters
    ----------
    alpha, beta : float above 0, up to 1/100 and 1/25
        Error of the learner with public rows beyond the best concept's, and the chance of more.
    n_rows, n_public : int of 1 or more
        Its private and public rows.

    Examples
    --------
    >>> from cumae.theorems.public_data import reduced_learner
    >>> reduced_learner(0.0001, 0.04, n_rows=1_000, n_public=10)
    ReducedLearner(rows=10, alpha=0.1)
    """
    check_accuracy(alpha, beta, 1)
    check_limit(alpha, "alpha", 0.01, "Lemma 4.4 of paper 4")
    check_limit(beta, "beta", 1 / 25, "the repaired Lemma 4.4 of paper 4")
    rows = check_count(n_rows, "n_rows", least=1)
    public = check_count(n_public, "n_public", least=1)
    return ReducedLearner(-(-rows // (10 * public)), 100 * public * alpha)
