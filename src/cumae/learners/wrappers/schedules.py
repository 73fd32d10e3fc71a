"""What label boosting costs, and the schedules that paper 1 prints for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.concepts.relabelling import (
    EPSILONS,
    largest_rate,
    relabelled,
    resampled,
    sampled,
)
from cumae.errors import InvalidData, InvalidParameter, shown
from cumae.parameters import check_count
from cumae.privacy import Approximate
from cumae.privacy.validation import check_epsilon, check_nonnegative


@dataclass(frozen=True)
class Round:
    """One round: how many rows it keeps, and the epsilon of its draw.

    Parameters
    ----------
    labelled
        Rows to keep of those that have a label by now; the others are dropped for good.
    unlabelled
        Unlabelled rows to take.
    kept
        How many of these to keep.
    epsilon
        Parameter of the exponential mechanism that draws the hypothesis.
    """

    labelled: int
    unlabelled: int
    kept: int
    epsilon: float = 1.0


@dataclass(frozen=True)
class Schedule:
    """All sizes of a fit: public, and decided before a row is looked at.

    ``labelled`` and ``unlabelled`` rows are kept at first; after the rounds ``last`` labelled rows
    go to the base (resampled or not), with ``reserved`` unlabelled ones.
    """

    labelled: int
    unlabelled: int
    rounds: tuple[Round, ...]
    last: int
    reserved: int = 0
    resample: bool = False


@claim("ITER")
def schedule_cost(
    base: Approximate, schedule: Schedule, labelled: int, unlabelled: int, concept: ConceptClass
) -> Approximate:
    """Return the largest pair over the roles that a row may have, from the inside out.

    Parameters
    ----------
    base
        What the base costs its rows.
    schedule
        What is run.
    labelled, unlabelled
        Numbers of rows before anything is dropped.
    concept
        The class that hypotheses are drawn from.
    """
    sizes = labelled_sizes(schedule)
    inner = resampled(base, schedule.last) if schedule.resample else base
    inner = sampled(inner, schedule.last, sizes[-1])
    roles = [base] if schedule.reserved else []
    for size, step in zip(reversed(sizes[:-1]), reversed(schedule.rounds), strict=True):
        points = step.labelled + step.kept
        if step.kept:
            taken = relabelled(inner, step.epsilon, "T", concept, points)
            roles.append(sampled(taken, step.kept, step.unlabelled))
        scored = relabelled(inner, step.epsilon, "S", concept, points)
        inner = sampled(scored, step.labelled, size)
    roles = [sampled(role, schedule.unlabelled, unlabelled) for role in roles]
    roles.append(sampled(inner, schedule.labelled, labelled))
    return Approximate(max(role.eps for role in roles), max(role.failure for role in roles))


def labelled_sizes(schedule: Schedule) -> list[int]:
    """Return how many rows have a label before the first round and after each."""
    return [schedule.labelled, *(step.labelled + step.kept for step in schedule.rounds)]


def best_epsilon(
    inner: Approximate, epsilon: float, delta: float, concept: ConceptClass, size: int
) -> float:
    """Return the epsilon of the draw that lets the labels count most.

    A larger one makes each label count more, and fewer labels may be kept; the product is what
    the exponential mechanism's accuracy depends on.
    """

    def weight(drawn: float) -> float:
        scored = relabelled(inner, drawn, "S", concept, size)
        return drawn * largest_rate(scored, epsilon, delta)

    return max(EPSILONS, key=weight)


def paper_labels(alpha: float, beta: float, vc: int, epsilon: float = 1.0) -> int:
    """Return how many labels paper 1 asks for (Claim C.7 and Theorem 4.2).

    (576000 / alpha) vc ln(768 / (alpha beta)), and (3 + e) / epsilon times as many below epsilon 1.

    Parameters
    ----------
    alpha, beta
        Error, and chance of failure.
    vc
        VC dimension of the class.
    epsilon
        Privacy parameter.

    Examples
    --------
    >>> from cumae.learners.wrappers.schedules import paper_labels
    >>> paper_labels(0.1, 0.1, 1)
    64794010
    """
    _check_chances(alpha, beta)
    check_count(vc, "vc")
    rate = _paper_rate(epsilon)
    return math.ceil(576_000 / alpha * max(vc, 1) * math.log(768 / (alpha * beta)) / rate)


def paper_schedule(
    labelled: int, unlabelled: int, n: int, alpha: float, beta: float, vc: int, epsilon: float
) -> Schedule:
    """Return the printed schedule of IterLabelBoost, or refuse with the number that is missing.

    Examples
    --------
    >>> from cumae.learners.wrappers.label_boost import paper_schedule
    >>> schedule = paper_schedule(70_000_000, 90_000 * 10**6, 10**6, 0.1, 0.1, 1, 1.0)
    >>> [(step.labelled, step.kept) for step in schedule.rounds], schedule.last
    ([(700000, 300000000)], 1002333)
    """
    needed = paper_labels(alpha, beta, vc, epsilon)
    rate = _paper_rate(epsilon)
    enough = math.ceil(90_000 * n / rate)
    if labelled < needed or unlabelled < enough:
        raise InvalidData(
            f"{labelled:,} labelled and {unlabelled:,} unlabelled rows are too few for "
            f"constants='paper', which asks for {needed:,} and {enough:,}; take "
            "constants='practical'."
        )
    kept, left = math.floor(labelled * rate), math.floor(unlabelled * rate)
    size = kept
    rounds: list[Round] = []
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
        rounds.append(Round(size // 100, taken, taken // 100))
        size = size // 100 + taken // 100
    return Schedule(kept, left, tuple(rounds), size // 300, resample=True)


def _paper_rate(epsilon: float) -> float:
    """Return the share of rows that Claim C.1 keeps to come from 1 down to epsilon."""
    check_epsilon(epsilon)
    if epsilon == 0:
        raise InvalidParameter("epsilon=0 leaves no row to learn from; give more.")
    return epsilon / (3 + math.e) if epsilon < 1 else 1.0


def _check_chances(alpha: float, beta: float) -> None:
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not 0 < check_nonnegative(value, name) < 1:
            raise InvalidParameter(f"{name}={shown(value)} is not strictly between 0 and 1.")
