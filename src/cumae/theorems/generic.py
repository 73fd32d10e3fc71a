"""The sizes of GenericLearner and of its sanitizer in paper 1: none has a printed constant."""

from __future__ import annotations

import math

from cumae.parameters import check_count
from cumae.theorems.stated import theorem
from cumae.theorems.values import (
    OrderOf,
    SanitizerRows,
    SplitRows,
    check_accuracy,
    check_epsilon,
    log_star,
)


@theorem(
    1,
    "Theorem A.3",
    "Sanitizer: publishes points that answer each count of a class like the rows, without delta.",
    "bits vc ln(1/alpha)/(alpha^3 epsilon) + ln(1/beta)/(alpha epsilon) rows, and "
    "vc ln(1/alpha)/alpha^2 points",
    exact=False,
)
def sanitizer_rows(alpha: float, beta: float, epsilon: float, vc: int, bits: int) -> SanitizerRows:
    """Return what a sanitizer needs so that its points answer counts like the rows.

    Order of bits vc ln(1/alpha)/(alpha^3 epsilon) + ln(1/beta)/(alpha epsilon) rows, and of
    vc ln(1/alpha)/alpha^2 points: Theorem A.3 of paper 1. For every concept of the class, the share
    of points in it differs from the share of rows by alpha or less.

    Parameters
    ----------
    alpha, beta : float above 0 and below 1
        Difference, and the chance of a larger one.
    epsilon : float above 0
        Privacy parameter; delta is 0.
    vc : int of 1 or more
        VC dimension of the class.
    bits : int of 1 or more
        Binary logarithm of the number of points in the domain.

    Examples
    --------
    >>> from cumae.theorems.generic import sanitizer_rows
    >>> print(sanitizer_rows(0.1, 0.05, 1.0, vc=1, bits=20).rows)
    order of 46,000 rows (the paper does not print the constant)
    """
    check_accuracy(alpha, beta, vc)
    check_epsilon(epsilon)
    check_count(bits, "bits", least=1)
    rows = _with_failure(bits * vc * math.log(1 / alpha) / alpha**3, alpha, beta, epsilon)
    return SanitizerRows(OrderOf(rows), OrderOf(vc * math.log(1 / alpha) / alpha**2, unit="points"))


@theorem(
    1,
    "Theorem 3.3",
    "GenericLearner: publishes a concept without delta, with few labels and many rows without "
    "one. Some concept of the class must be right.",
    "vc ln(1/alpha)/(alpha^3 epsilon) + ln(1/beta)/(alpha epsilon) labelled rows, with bits "
    "times the first term for the others",
    exact=False,
)
def generic_rows(alpha: float, beta: float, epsilon: float, vc: int, bits: int) -> SplitRows:
    """Return what GenericLearner needs, if some concept is always right.

    Order of vc ln(1/alpha)/(alpha^3 epsilon) + ln(1/beta)/(alpha epsilon) labelled rows, and
    ``bits`` times the first term for those without a label: Theorem 3.3 of paper 1. Above epsilon 1
    the sizes of epsilon 1 count, because the printed ones fall below what any learner needs (see
    the errata).

    Parameters
    ----------
    alpha, beta : float above 0 and below 1
        Error, and the chance of a larger one.
    epsilon : float above 0
        Privacy parameter; delta is 0.
    vc : int of 1 or more
        VC dimension of the class.
    bits : int of 1 or more
        Binary logarithm of the number of points in the domain.

    Examples
    --------
    >>> from cumae.theorems.generic import generic_rows
    >>> print(generic_rows(0.1, 0.05, 1.0, vc=1, bits=20).labelled)
    order of 2,300 rows (the paper does not print the constant)
    """
    epsilon = min(check_epsilon(epsilon), 1.0)
    unlabelled = sanitizer_rows(alpha, beta, epsilon, vc, bits).rows
    labelled = _with_failure(vc * math.log(1 / alpha) / alpha**3, alpha, beta, epsilon)
    return SplitRows(OrderOf(labelled), unlabelled)


def _with_failure(size: float, alpha: float, beta: float, epsilon: float) -> float:
    return size / epsilon + math.log(1 / beta) / (alpha * epsilon)


@theorem(
    1,
    "Lemma 3.4",
    "Thresholds, published by a fast learner with delta.",
    "1 labelled row and 8^(log* bits) others, apart from alpha, beta, epsilon and delta",
    exact=False,
)
def threshold_rows(bits: int) -> SplitRows:
    """Return what a fast learner of thresholds needs that may use delta.

    Order of 1 labelled row and of 8^(log* bits) rows without a label: Lemma 3.4 of paper 1.

    Parameters
    ----------
    bits : int of 1 or more
        Binary logarithm of the number of points in the domain.

    Examples
    --------
    >>> from cumae.theorems.generic import threshold_rows
    >>> threshold_rows(20).unlabelled.value
    4096
    """
    check_count(bits, "bits", least=1)
    return SplitRows(
        OrderOf(1, "alpha, beta and epsilon"),
        OrderOf(8 ** log_star(bits), "alpha, beta, epsilon and delta, with logarithms of the size"),
    )
