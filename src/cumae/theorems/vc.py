"""Rows that make errors on a sample stand for errors in general, without privacy.

These are the theorems of Appendix B of paper 1, and Theorem A.2 of paper 2. All logarithms are
natural. A test puts each size into a classical inequality with proven constants.
"""

from __future__ import annotations

import math

from cumae.parameters import check_count
from cumae.theorems.stated import theorem
from cumae.theorems.values import check_accuracy, check_limit


@theorem(
    1,
    "Theorem B.2",
    "Sauer's lemma: how many labellings of some points a class has at most, as a natural "
    "logarithm.",
    "vc ln(e points/vc)",
    exact=True,
)
def log_dichotomies(points: int, vc: int) -> float:
    """Return the logarithm of how many labellings of points a class has at most.

    vc ln(e points / vc): Sauer's lemma, Theorem B.2 of paper 1.

    Parameters
    ----------
    points : int of ``vc`` or more
        Number of points. The paper asks for more than ``vc``; at ``vc`` it is true as well.
    vc : int of 1 or more
        VC dimension of the class.

    Examples
    --------
    >>> import math
    >>> from cumae.theorems.vc import log_dichotomies
    >>> round(math.exp(log_dichotomies(100, 1)))  # thresholds label 100 points in 101 ways
    272
    """
    check_count(vc, "vc", least=1)
    check_count(points, "points", least=vc)
    return vc * math.log(math.e * points / vc)


@theorem(
    1,
    "Theorem B.3",
    "Lower bound: labels that every learner needs, private or not.",
    "(vc - 1)/(16 alpha)",
    exact=True,
    instead={"vc": 101},
)
def least_labels(alpha: float, beta: float, vc: int) -> int:
    """Return how many labels every learner needs, private or not.

    (vc - 1) / (16 alpha): Theorem B.3 of paper 1. The paper prints it for each ``beta`` below 1/2
    and each ``alpha``, where it is false; our limits are proven in the errata.

    Parameters
    ----------
    alpha : float above 0 and up to 1/5
        Error.
    beta : float above 0 and up to 1/6
        Chance of a larger one.
    vc : int of 1 or more
        VC dimension of the class.

    Examples
    --------
    >>> from cumae.theorems.vc import least_labels
    >>> least_labels(0.1, 0.05, vc=101)
    63
    """
    check_accuracy(alpha, beta, vc)
    check_limit(alpha, "alpha", 1 / 5, "Theorem B.3 of paper 1, as we could prove it,")
    check_limit(beta, "beta", 1 / 6, "Theorem B.3 of paper 1, as we could prove it,")
    return math.ceil((vc - 1) / (16 * alpha))


@theorem(
    1,
    "Theorem B.4",
    "Without privacy: a concept that is right on so many rows has an error of alpha at most.",
    "(8/alpha) (vc ln(16/alpha) + ln(2/beta))",
    exact=True,
)
def consistent_rows(alpha: float, beta: float, vc: int) -> int:
    """Return how many rows make every hypothesis good that is right on all of them.

    (8/alpha) (vc ln(16/alpha) + ln(2/beta)): Theorem B.4 of paper 1.

    Parameters
    ----------
    alpha : float above 0 and below 1
        Error that is allowed.
    beta : float above 0 and below 1
        Chance that a consistent hypothesis has a larger one.
    vc : int of 1 or more
        VC dimension of the class.

    Examples
    --------
    >>> from cumae.theorems.vc import consistent_rows
    >>> consistent_rows(0.1, 0.1, 1)
    646
    """
    check_accuracy(alpha, beta, vc)
    return math.ceil(8 / alpha * (vc * math.log(16 / alpha) + math.log(2 / beta)))


@theorem(
    1,
    "Theorem B.5",
    "Without privacy: two concepts that differ on at most alpha/10 of so many rows differ by "
    "less than alpha in general.",
    "(48/alpha) (10 vc ln(48 e/alpha) + ln(5/beta))",
    exact=True,
)
def close_rows(alpha: float, beta: float, vc: int) -> int:
    """Return how many rows make any two concepts close that differ on few of them.

    (48/alpha) (10 vc ln(48 e/alpha) + ln(5/beta)): Theorem B.5 of paper 1. Concepts that differ on
    a share of alpha/10 of the rows or less differ by less than alpha in general.

    Parameters
    ----------
    alpha : float above 0 and below 1
        Disagreement that is allowed.
    beta : float above 0 and below 1
        Chance of a larger one.
    vc : int of 1 or more
        VC dimension of the class.

    Examples
    --------
    >>> from cumae.theorems.vc import close_rows
    >>> close_rows(0.1, 0.1, 1)
    36312
    """
    check_accuracy(alpha, beta, vc)
    return math.ceil(48 / alpha * (10 * vc * math.log(48 * math.e / alpha) + math.log(5 / beta)))


@theorem(
    1,
    "Theorem B.6",
    "Without privacy: so many rows show the error of each concept up to alpha, for any labels.",
    "(50 vc/alpha^2) ln(1/(alpha beta))",
    exact=True,
)
def uniform_rows(alpha: float, beta: float, vc: int) -> int:
    """Return how many rows show the error of every hypothesis, for any labels.

    (50 vc/alpha^2) ln(1/(alpha beta)): Theorem B.6 of paper 1. The paper prints no limits, but it
    is false when both parameters are close to 1 (see the errata).

    Parameters
    ----------
    alpha : float above 0 and up to 1/2
        Distance that is allowed between the error on the rows and in general.
    beta : float above 0 and up to 1/2
        Chance of a larger one.
    vc : int of 1 or more
        VC dimension of the class.

    Examples
    --------
    >>> from cumae.theorems.vc import uniform_rows
    >>> uniform_rows(0.1, 0.1, 1)
    23026
    """
    check_accuracy(alpha, beta, vc)
    check_limit(alpha, "alpha", 1 / 2, "Theorem B.6 of paper 1, as we could check it,")
    check_limit(beta, "beta", 1 / 2, "Theorem B.6 of paper 1, as we could check it,")
    return math.ceil(50 * vc / alpha**2 * math.log(1 / (alpha * beta)))


@theorem(
    2,
    "Theorem A.2",
    "Without privacy: rows for a learner where some concept is right.",
    "(8 vc ln(13/alpha) + 4 ln(2/beta))/alpha",
    exact=True,
)
def learner_rows(alpha: float, beta: float, vc: int) -> int:
    """Return how many rows a learner without privacy needs, if some concept is always right.

    (8 vc ln(13/alpha) + 4 ln(2/beta))/alpha: Theorem A.2 of paper 2.

    Parameters
    ----------
    alpha, beta : float above 0 and up to 1/2
        Error, and the chance of a larger one.
    vc : int of 1 or more
        VC dimension of the class.

    Examples
    --------
    >>> from cumae.theorems.vc import learner_rows
    >>> learner_rows(0.1, 0.1, 1)
    510
    """
    check_accuracy(alpha, beta, vc)
    check_limit(alpha, "alpha", 1 / 2, "Theorem A.2 of paper 2")
    check_limit(beta, "beta", 1 / 2, "Theorem A.2 of paper 2")
    return math.ceil(unrounded_learner_rows(alpha, beta, vc))


def unrounded_learner_rows(alpha: float, beta: float, vc: int) -> float:
    """Return the size of ``learner_rows`` as paper 2 computes with it: before rounding.

    Parameters
    ----------
    alpha, beta : float above 0 and below 1/2
        Error, and the chance of a larger one.
    vc : int of 1 or more
        VC dimension of the class.
    """
    return (8 * vc * math.log(13 / alpha) + 4 * math.log(2 / beta)) / alpha


@theorem(
    1,
    "Observation 3.2",
    "Where two concepts of a class differ: the VC dimension of these sets. (The proof prints the "
    "constant.)",
    "at most 10 vc",
    exact=True,
)
def difference_dimension(vc: int) -> int:
    """Return the most that the VC dimension of all differences of two concepts can be.

    10 vc: Observation 3.2 of paper 1, whose proof prints the constant. Two concepts label l points
    in (e l/vc)^(2 vc) ways together at most, by Sauer's lemma, which is below 2^l from 10 vc on.

    Parameters
    ----------
    vc : int of 1 or more
        VC dimension of the class.

    Examples
    --------
    >>> from cumae.theorems.vc import difference_dimension
    >>> difference_dimension(2)
    20
    """
    return 10 * check_count(vc, "vc", least=1)
