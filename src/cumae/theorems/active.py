"""The sizes of active learners in paper 1: learners that choose which rows get a label."""

from __future__ import annotations

import math

from cumae.errors import InvalidParameter
from cumae.parameters import DELTA, check_count
from cumae.theorems.label_boost import DELTA_FACTOR, paper_labels, unlabelled_rows
from cumae.theorems.stated import theorem
from cumae.theorems.values import ActiveRows, check_accuracy, check_epsilon, check_limit


@theorem(
    1,
    "Claim 5.6",
    "Active learning: sampling makes a private learner more private, and needs no more labels.",
    "(n_rows/epsilon) (3 + exp(2 base_epsilon)) rows and n_labelled labels, with a delta of "
    "epsilon delta (7 + exp(base_epsilon))/(3 + exp(2 base_epsilon))",
    exact=True,
)
def active_rows(
    n_rows: int, n_labelled: int, base_epsilon: float, epsilon: float, delta: float
) -> ActiveRows:
    """Return what an active learner needs that runs a base learner on a random part of its rows.

    (n_rows/epsilon) (3 + exp(2 base_epsilon)) rows, and no more labels than the base: Claim 5.6 of
    paper 1. Its delta is (7 + exp(base_epsilon))/(3 + exp(2 base_epsilon)) epsilon delta.

    Parameters
    ----------
    n_rows, n_labelled : int of 1 or more
        Rows that the base needs, and how many of them with a label.
    base_epsilon : float above 0 and up to 300
        Privacy parameter of the base.
    epsilon : float above 0 and up to 1
        Privacy parameter of the result. The paper prints no limit, but needs one (see the errata).
    delta : float from 0 and below 1
        Privacy parameter of the base.

    Examples
    --------
    >>> from cumae.theorems.active import active_rows
    >>> sizes = active_rows(1_000, 100, base_epsilon=1.0, epsilon=0.5, delta=1e-6)
    >>> sizes.rows, sizes.labels, round(1e6 * sizes.delta, 3)
    (20779, 100, 0.468)
    """
    check_count(n_labelled, "n_labelled", least=1)
    if check_count(n_rows, "n_rows", least=1) < n_labelled:
        raise InvalidParameter(
            f"n_labelled={n_labelled} is more than n_rows={n_rows}; give n_rows or less."
        )
    check_limit(check_epsilon(base_epsilon, "base_epsilon"), "base_epsilon", 300, "the computation")
    check_limit(check_epsilon(epsilon), "epsilon", 1, "Claim 5.6 of paper 1")
    DELTA.check(delta, "delta")
    factor = 3 + math.exp(2 * base_epsilon)
    result = (7 + math.exp(base_epsilon)) / factor * epsilon * delta
    return ActiveRows(math.ceil(n_rows * factor / epsilon), n_labelled, result)


@theorem(
    1,
    "Theorem 5.7",
    "Active learning with IterLabelBoost: the number of labels does not depend on epsilon.",
    "labels as in Theorem 4.2 at epsilon 1; these and 90000 n_base rows, times (3 + e^2)/epsilon",
    exact=True,
)
def boosted_active_rows(
    n_base: int, alpha: float, beta: float, epsilon: float, delta: float, vc: int
) -> ActiveRows:
    """Return what an active learner needs whose number of labels does not depend on privacy.

    Theorem 5.7 of paper 1: IterLabelBoost at epsilon 1 (Theorem C.11), sampled by Claim 5.6. The
    theorem says order of; the constants are those of its proofs. They also tell the factor of
    delta, which the theorem leaves out (see the errata of Theorem 4.2).

    Parameters
    ----------
    n_base : int of 1 or more
        Rows that the base learner needs, at epsilon 1.
    alpha, beta : float above 0 and below 1
        Error, and the chance of a larger one, beyond those of the base.
    epsilon : float above 0 and up to 1
        Privacy parameter of the result.
    delta : float from 0 and below 1
        Privacy parameter of the base.
    vc : int of 1 or more
        VC dimension of the class.

    Examples
    --------
    >>> from cumae.theorems.active import boosted_active_rows
    >>> sizes = boosted_active_rows(1_000, 0.1, 0.1, 0.5, 1e-6, vc=1)
    >>> sizes.labels, sizes.rows
    (64794010, 3216327308)
    """
    check_count(n_base, "n_base", least=1)
    check_accuracy(alpha, beta, vc)
    labels = paper_labels(alpha, beta, vc)
    rows = unlabelled_rows(n_base, 1.0) + labels
    DELTA.check(delta, "delta")
    sampled = active_rows(rows, labels, 1.0, epsilon, delta)
    return ActiveRows(sampled.rows, sampled.labels, DELTA_FACTOR * sampled.delta)


@theorem(
    1,
    "Theorem C.12",
    "Lower bound: labels that an active learner of thresholds needs if it keeps private for "
    "which rows it asks.",
    "exp(-2 epsilon) (1 - 7 beta/3)/(9 alpha) - n delta (1 + exp(-epsilon)), n being n_rows or "
    "(100/alpha^2) ln(1/(alpha beta)) if that is more",
    exact=True,
    instead={"alpha": 0.001, "epsilon": 0.1, "delta": 0.0},
)
def transcript_labels(
    alpha: float, beta: float, epsilon: float, delta: float, n_rows: int = 1
) -> int:
    """Return how many labels a learner of thresholds needs that keeps its requests private, too.

    exp(-2 epsilon) (1 - 7 beta/3)/(9 alpha) - n delta (1 + exp(-epsilon)), where n is ``n_rows``,
    or (100/alpha^2) ln(1/(alpha beta)) if that is more: the end of the proof of Theorem C.12 of
    paper 1, which says "order of 1/alpha" for a small delta.

    Parameters
    ----------
    alpha : float above 0 and up to 1/8
        Error; there are many more points in the domain than 1/alpha.
    beta : float above 0 and below 1
        Chance of a larger error.
    epsilon : float above 0
        Privacy parameter.
    delta : float from 0 and below 1
        Privacy parameter.
    n_rows : int of 1 or more
        Rows from which the learner chooses.

    Examples
    --------
    >>> from cumae.theorems.active import transcript_labels
    >>> transcript_labels(0.001, 0.05, 0.1, 0.0)
    81
    """
    check_accuracy(alpha, beta, 1)
    check_limit(alpha, "alpha", 1 / 8, "Theorem C.12 of paper 1")
    check_epsilon(epsilon)
    DELTA.check(delta, "delta")
    check_count(n_rows, "n_rows", least=1)
    rows = max(n_rows, 100 / alpha**2 * math.log(1 / (alpha * beta)))
    found = math.exp(-2 * epsilon) * (1 - 7 * beta / 3) / (9 * alpha)
    return max(0, math.ceil(found - rows * delta * (1 + math.exp(-epsilon))))
