"""The sizes of label boosting in paper 1, with every constant as printed.

Paper 1 is Beimel, Nissim, Stemmer: Learning Privately with Labeled and Unlabeled Examples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cumae.errors import InvalidData, InvalidParameter, shown
from cumae.parameters import DELTA, check_count, check_real
from cumae.theorems.stated import theorem
from cumae.theorems.values import (
    OrderOf,
    SampledRows,
    SplitRows,
    check_accuracy,
    check_epsilon,
    check_limit,
    log_star,
)
from cumae.theorems.vc import log_dichotomies

UNLABELLED = 90_000  # Claim C.6: so many rows without a label for each row of the base
DELTA_FACTOR = 41  # Lemma C.4: delta of the result, next to that of the base
BOOTSTRAP_FACTOR = 244  # Claim C.3: exp of epsilon of the result
BOOTSTRAP_DELTA = 2476  # its delta, next to that of the base; the claim swaps two digits (errata)


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


@theorem(
    1,
    "Theorem 4.2",
    "IterLabelBoost: makes any private learner work with few labels. Some concept must be "
    "right, and the base must be better than alpha/20 and publish concepts of the class.",
    "(576000/alpha) vc ln(768/(alpha beta)) labelled rows and 90000 n_base others, times "
    "(3 + e)/epsilon below epsilon 1",
    exact=True,
)
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


@theorem(
    1,
    "Theorem 4.4",
    "IterLabelBoost where no concept is right: comes close to the best one.",
    "vc ln(1/(alpha beta))/(alpha^2 epsilon) labelled rows and n_base/epsilon others",
    exact=False,
)
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


@theorem(
    1,
    "Corollary 4.5",
    "Boxes, with delta.",
    "columns labelled rows and columns^3 8^(log* bits) others, apart from alpha, beta, epsilon "
    "and delta",
    exact=False,
)
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


@theorem(
    1,
    "Corollary 4.6",
    "Any class without delta, by rules that need not be in it. What counts is the "
    "representation dimension of the class.",
    "vc labelled rows and representation others, apart from alpha, beta and epsilon",
    exact=False,
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


@theorem(
    1,
    "Claim C.1",
    "Sampling: a private algorithm that sees a random part of the rows is more private. Epsilon is "
    "1 at most.",
    "(n_rows/epsilon) (3 + exp(base_epsilon)) rows, of which n_rows are used; delta becomes "
    "4 epsilon delta/(3 + exp(base_epsilon))",
    exact=True,
)
def sampled_rows(n_rows: int, epsilon: float, delta: float, base_epsilon: float) -> SampledRows:
    """Return from how many rows to draw so that a private algorithm gets a smaller epsilon.

    (n_rows/epsilon) (3 + exp(base_epsilon)) rows, for a delta of 4 epsilon delta/(3 +
    exp(base_epsilon)): Claim C.1 of paper 1, up to epsilon 1. ``cumae.privacy.subsample`` has the
    exact price, which is less.

    Parameters
    ----------
    n_rows : int of 1 or more
        Rows that the algorithm takes.
    epsilon : float above 0, 1 at most
        Privacy parameter of the result.
    delta : float from 0 and below 1
        That of the algorithm.
    base_epsilon : float above 0
        Privacy parameter of the algorithm.

    Examples
    --------
    >>> from cumae.theorems.label_boost import sampled_rows
    >>> sampled_rows(1_000, epsilon=0.5, delta=0.0, base_epsilon=1.0)
    SampledRows(rows=11437, epsilon=0.5, delta=0.0)
    """
    check_count(n_rows, "n_rows", least=1)
    DELTA.check(delta, "delta")
    check_limit(check_epsilon(epsilon), "epsilon", 1.0, "Claim C.1 of paper 1")
    factor = 3 + math.exp(check_epsilon(base_epsilon, "base_epsilon"))
    return SampledRows(math.ceil(n_rows / epsilon * factor), epsilon, 4 * epsilon * delta / factor)


@theorem(
    1,
    "Claim C.3",
    "Drawing with replacement: what a private algorithm promises that runs on as many rows as "
    "there are, drawn with replacement. Its epsilon is 1 at most.",
    "epsilon ln 244, and 2476 delta (2467 is printed; see the errata)",
    exact=True,
)
def bootstrapped_rows(n_rows: int, epsilon: float, delta: float) -> SampledRows:
    """Return what a private algorithm promises if its rows are drawn with replacement.

    Epsilon ln 244 and delta 2476 times as large: Claim C.3 of paper 1, for algorithms of epsilon 1
    at most. ``cumae.privacy.bootstrap`` has a smaller bound.

    Parameters
    ----------
    n_rows : int of 1 or more
        Rows that there are, and draws.
    epsilon : float above 0, 1 at most
        Privacy parameter of the algorithm.
    delta : float from 0 and below 1
        That of the algorithm.

    Examples
    --------
    >>> from cumae.theorems.label_boost import bootstrapped_rows
    >>> bootstrapped_rows(1_000, epsilon=1.0, delta=0.0)
    SampledRows(rows=1000, epsilon=5.497168225293202, delta=0.0)
    """
    check_count(n_rows, "n_rows", least=1)
    DELTA.check(delta, "delta")
    check_limit(check_epsilon(epsilon), "epsilon", 1.0, "Claim C.3 of paper 1")
    return SampledRows(n_rows, math.log(BOOTSTRAP_FACTOR), BOOTSTRAP_DELTA * delta)


@theorem(
    1,
    "Corollary C.8",
    "IterLabelBoost: rounds until there are enough labels for the base.",
    "log* n_base",
    exact=False,
)
def boosting_rounds(n_base: int) -> OrderOf:
    """Return how many rounds IterLabelBoost takes until the base has enough labels.

    Order of log* n_base: Corollary C.8 of paper 1, because each round makes the number of labels
    grow exponentially.

    Parameters
    ----------
    n_base : int of 1 or more
        Rows that the base needs.

    Examples
    --------
    >>> from cumae.theorems.label_boost import boosting_rounds
    >>> print(boosting_rounds(1_000_000))
    order of 5 rounds (the paper does not print the constant)
    """
    return OrderOf(log_star(check_count(n_base, "n_base", least=1)), unit="rounds")


@theorem(
    2,
    "Lemma C.2",
    "LabelBoost: rows without a label that one private draw at epsilon 1 may label. The rule that "
    "it draws has an error of alpha on the labelled rows at most. Some concept must be right.",
    "(beta/e) vc exp(alpha n_labelled/(2 vc)) - n_labelled",
    exact=True,
    instead={"n_labelled": 400},
)
def boostable_rows(n_labelled: int, alpha: float, beta: float, vc: int) -> int:
    """Return how many rows without a label LabelBoost may label by a draw from the labelled ones.

    (beta/e) vc exp(alpha n_labelled/(2 vc)) - n_labelled: Lemma C.2 of paper 2. The result is 0
    where the formula is negative: then the labels are too few for this alpha and beta.

    Parameters
    ----------
    n_labelled : int of 1 or more
        Rows with a label.
    alpha, beta : float above 0 and below 1
        Error on them, and the chance of a larger one.
    vc : int of 1 or more
        VC dimension of the class.

    Examples
    --------
    >>> from cumae.theorems.label_boost import boostable_rows
    >>> boostable_rows(400, 0.1, 0.05, vc=1), boostable_rows(100, 0.1, 0.05, vc=1)
    (8923715, 0)
    """
    check_accuracy(alpha, beta, vc)
    check_count(n_labelled, "n_labelled", least=1)
    power = min(alpha * n_labelled / (2 * vc), 700.0)  # beyond, no table has so many rows
    return max(0, math.floor(beta / math.e * vc * math.exp(power) - n_labelled))
