"""The sizes of label boosting in paper 1, with every constant as printed.

Paper 1 is Beimel, Nissim, Stemmer: Learning Privately with Labeled and Unlabeled Examples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cumae.errors import InvalidData, InvalidParameter, shown
from cumae.parameters import check_count, check_real, check_share


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
    check_share(alpha, "alpha")
    check_share(beta, "beta")
    check_count(vc, "vc")
    rate = paper_rate(epsilon)
    return math.ceil(576_000 / alpha * max(vc, 1) * math.log(768 / (alpha * beta)) / rate)


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
    candidates = dimension * math.log(math.e * max(rows, dimension) / dimension)  # Sauer's lemma
    return math.ceil(2 / alpha * (candidates + math.log(1 / beta)))


def base_rows(unlabelled: int, epsilon: float) -> int:
    """Return the largest number of rows for the base that the unlabelled rows allow."""
    return max(1, math.floor(unlabelled * paper_rate(epsilon)) // 90_000)


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
    enough = math.ceil(90_000 * n / rate)
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
