"""The sizes of label boosting in paper 1, with every constant as printed.

Paper 1 is Beimel, Nissim, Stemmer: Learning Privately with Labeled and Unlabeled Examples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cumae.errors import InvalidData, InvalidParameter, shown
from cumae.parameters import check_count, check_real
from cumae.theorems.values import OrderOf, SplitRows, check_accuracy, check_epsilon, log_star
from cumae.theorems.vc import log_dichotomies

UNLABELLED = 90_000  # Claim C.6: so many rows without a label for each row of the base
DELTA_FACTOR = 41  # Lemma C.4: delta of the result, next to that of the base


@dataclass(frozen=True)
class PaperRound:
    """One round: rows kept of those with a label, rows without one that it takes and keeps."""

    labelled: int
    unlabelled: int
    kept: int


@dataclass(frozen=True)
class PaperSchedule:
    """All sizes of IterLabelBoost: rows kept at first, the rounds, and rows for the base."""

    labelled: int
    unlabelled: int
    rounds: tuple[PaperRound, ...]
    last: int


def paper_rate(epsilon: float) -> float:
    """Return the share of rows that is kept to come from epsilon 1 down to ``epsilon`` (C.1).

    Examples
    --------
    >>> from cumae.theorems.label_boost import paper_rate
    >>> round(paper_rate(0.5), 4), paper_rate(2.0)
    (0.0874, 1.0)
    """
    if not check_real(epsilon, "epsilon") > 0:
        raise InvalidParameter(
            f"epsilon={shown(epsilon)} leaves no row to learn from; give a number above 0."
        )
    return epsilon / (3 + math.e) if epsilon < 1 else 1.0


def paper_labels(alpha: float, beta: float, vc: int, epsilon: float = 1.0) -> int:
    """Return how many labels paper 1 asks for (Claim C.7 and Theorem 4.2).

    (576000 / alpha) vc ln(768 / (alpha beta)), and (3 + e) / epsilon times as many below epsilon 1.

    Parameters
    ----------
    alpha, beta : float above 0 and below 1
        Error, and chance of failure.
    vc : int of 0 or more
        VC dimension of the class.
    epsilon : float above 0
        Privacy parameter.

    Returns
    -------
    int
        Number of labelled rows.

    Examples
    --------
    >>> from cumae.theorems.label_boost import paper_labels
    >>> paper_labels(0.1, 0.1, 1)
    64794010
    """
    check_accuracy(alpha, beta, vc, least=0)
    rate = paper_rate(epsilon)
    return math.ceil(576_000 / alpha * max(vc, 1) * math.log(768 / (alpha * beta)) / rate)


def unlabelled_rows(n_base: int, epsilon: float) -> int:
    """Return how many rows without a label a base of ``n_base`` rows asks for (Claim C.6)."""
    return math.ceil(UNLABELLED * n_base / paper_rate(epsilon))


def boosted_rows(n_base: int, alpha: float, beta: float, epsilon: float, vc: int) -> SplitRows:
    """Return what IterLabelBoost needs, if some concept is always right.

    Theorem 4.2 of paper 1. It says order of; the constants are those of its proof: see
    ``paper_labels``, and 90,000 n_base rows without a label (Claim C.6), (3 + e)/epsilon times as
    many below epsilon 1 (Claim C.1). The errata say what becomes of delta, and what the base must
    be.

    Parameters
    ----------
    n_base : int of 1 or more
        Rows that the base learner needs, at epsilon 1.
    alpha, beta : float above 0 and below 1
        Error, and the chance of a larger one, beyond those of the base.
    epsilon : float above 0
        Privacy parameter of the result.
    vc : int of 0 or more
        VC dimension of the class.

    Examples
    --------
    >>> from cumae.theorems.label_boost import boosted_rows
    >>> boosted_rows(1_000, 0.1, 0.1, 1.0, vc=1)
    SplitRows(labelled=64794010, unlabelled=90000000)
    """
    check_count(n_base, "n_base", least=1)
    labelled = paper_labels(alpha, beta, vc, epsilon)
    return SplitRows(labelled, unlabelled_rows(n_base, epsilon))


def agnostic_boosted_rows(
    n_base: int, alpha: float, beta: float, epsilon: float, vc: int
) -> SplitRows:
    """Return what IterLabelBoost needs to come close to the best concept, if none is right.

    Order of vc ln(1/(alpha beta))/(alpha^2 epsilon) labelled rows, and of n_base/epsilon without a
    label: Theorem 4.4 of paper 1. Above epsilon 1 the sizes of epsilon 1 count (see the errata).

    Parameters
    ----------
    n_base : int of 1 or more
        Rows that the base learner needs, at epsilon 1.
    alpha, beta : float above 0 and below 1
        Error beyond the best concept's, and the chance of a larger one, beyond those of the base.
    epsilon : float above 0
        Privacy parameter of the result.
    vc : int of 1 or more
        VC dimension of the class.

    Examples
    --------
    >>> from cumae.theorems.label_boost import agnostic_boosted_rows
    >>> print(agnostic_boosted_rows(1_000, 0.1, 0.1, 1.0, vc=1).labelled)
    order of 460 rows (the paper does not print the constant)
    """
    check_count(n_base, "n_base", least=1)
    check_accuracy(alpha, beta, vc)
    epsilon = min(check_epsilon(epsilon), 1.0)
    labelled = vc * math.log(1 / (alpha * beta)) / (alpha**2 * epsilon)
    return SplitRows(OrderOf(labelled), OrderOf(n_base / epsilon))


def rectangle_rows(columns: int, bits: int) -> SplitRows:
    """Return what a learner of boxes needs that may use delta.

    Order of ``columns`` labelled rows and of columns^3 8^(log* bits) rows without a label:
    Corollary 4.5 of paper 1. It is fast for very few columns only.

    Parameters
    ----------
    columns : int of 1 or more
        Columns that bound the boxes.
    bits : int of 1 or more
        Binary logarithm of the number of values in each column.

    Examples
    --------
    >>> from cumae.theorems.label_boost import rectangle_rows
    >>> rectangle_rows(2, 20).unlabelled.value
    32768
    """
    check_count(columns, "columns", least=1)
    check_count(bits, "bits", least=1)
    return SplitRows(
        OrderOf(columns, "alpha, beta and epsilon"),
        OrderOf(
            columns**3 * 8 ** log_star(bits),
            "alpha, beta, epsilon and delta, with logarithms of the size",
        ),
    )


def improper_rows(vc: int, representation: int) -> SplitRows:
    """Return what a learner without delta needs that may publish rules outside the class.

    Order of ``vc`` labelled rows and of ``representation`` rows without a label: Corollary 4.6 of
    paper 1.

    Parameters
    ----------
    vc : int of 1 or more
        VC dimension of the class.
    representation : int of 1 or more
        Representation dimension of the class: the number of rows, up to a constant, that learners
        without delta need.

    Examples
    --------
    >>> from cumae.theorems.label_boost import improper_rows
    >>> improper_rows(1, 20).unlabelled.short
    'order of 20 rows'
    """
    check_count(vc, "vc", least=1)
    check_count(representation, "representation", least=1)
    hidden = "alpha, beta and epsilon"
    return SplitRows(
        OrderOf(vc, hidden), OrderOf(representation, f"{hidden}, with logarithms of the size")
    )


def draw_labels(alpha: float, beta: float, vc: int, rows: int) -> int:
    """Return how many labels one draw needs to label most of them right (Claim C.5).

    Parameters
    ----------
    alpha : float above 0 and below 1
        Share of the labels that may be wrong.
    beta : float above 0 and below 1
        Chance that more are wrong.
    vc : int of 0 or more
        VC dimension of the class.
    rows : int of 0 or more
        Number of rows that define the candidates.
    """
    dimension = max(vc, 1)
    candidates = log_dichotomies(max(rows, dimension), dimension)
    return math.ceil(2 / alpha * (candidates + math.log(1 / beta)))


def base_rows(unlabelled: int, epsilon: float) -> int:
    """Return the largest number of rows for the base that the unlabelled rows allow."""
    return max(1, math.floor(unlabelled * paper_rate(epsilon)) // UNLABELLED)


def paper_schedule(
    labelled: int, unlabelled: int, n: int, alpha: float, beta: float, vc: int, epsilon: float
) -> PaperSchedule:
    """Return the printed sizes of IterLabelBoost, or refuse with the number that is missing.

    Parameters
    ----------
    labelled, unlabelled : int
        Numbers of rows.
    n : int
        Rows that the base needs.
    alpha, beta : float above 0 and below 1
        Error, and chance of failure.
    vc : int of 1 or more
        VC dimension of the class.
    epsilon : float above 0
        Privacy parameter.

    Returns
    -------
    PaperSchedule
        The sizes.

    Raises
    ------
    InvalidData
        If rows are too few.

    Examples
    --------
    >>> from cumae.theorems.label_boost import paper_schedule
    >>> sizes = paper_schedule(70_000_000, 90_000 * 10**6, 10**6, 0.1, 0.1, 1, 1.0)
    >>> [(step.labelled, step.kept) for step in sizes.rounds], sizes.last
    ([(700000, 300000000)], 1002333)
    """
    needed = paper_labels(alpha, beta, vc, epsilon)
    rate = paper_rate(epsilon)
    enough = unlabelled_rows(n, epsilon)
    if labelled < needed or unlabelled < enough:
        raise InvalidData(
            f"{labelled:,} labelled and {unlabelled:,} unlabelled rows are too few for "
            f"constants='paper', which asks for {needed:,} and {enough:,}; take "
            "constants='practical'."
        )
    kept, left = math.floor(labelled * rate), math.floor(unlabelled * rate)
    size = kept
    rounds: list[PaperRound] = []
    while size < 300 * n:
        part = 2.0 ** (len(rounds) + 1)
        alpha_i, beta_i = alpha / (24 * part), beta / (4 * part)
        # Beyond exp(700) it is more than 30000 n in any case.
        grown = math.exp(min(alpha_i * size / (200 * vc), 700.0))
        taken = math.floor(min(30_000.0 * n, beta_i / math.e * vc * grown - 100.0 * size))
        used = sum(step.unlabelled for step in rounds)
        if taken < 100 or used + taken > left:
            raise InvalidData(
                f"round {len(rounds) + 1} of constants='paper' asks for {taken:,} unlabelled rows "
                f"of {left - used:,}; take constants='practical'."
            )
        rounds.append(PaperRound(size // 100, taken, taken // 100))
        size = size // 100 + taken // 100
    return PaperSchedule(kept, left, tuple(rounds), size // 300)
