"""Schedules of label boosting: how many rows each round takes, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass

from cumae.claims import claim
from cumae.concepts import ConceptClass
from cumae.concepts.candidates.relabelling import (
    EPSILONS,
    largest_rate,
    relabelled,
    resampled,
    sampled,
)
from cumae.errors import InvalidData, InvalidParameter
from cumae.parameters import check_count, described
from cumae.privacy import Approximate
from cumae.privacy.validation import check_epsilon
from cumae.sanitizers.grids import GridPlan
from cumae.theorems.label_boost import PaperSchedule


@dataclass(frozen=True)
class Round:
    """One round: how many rows it keeps, and the epsilon of its draw.

    Parameters
    ----------
    labelled : int
        Rows to keep of those that have a label by now; the others are dropped for good.
    unlabelled : int
        Unlabelled rows to take.
    kept : int
        How many of these to keep.
    epsilon : float of 0 or more
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
    go to the base (resampled or not), with ``reserved`` unlabelled ones. With a ``grid``, its rows
    are the first of the unlabelled ones, and serve nothing else.
    """

    labelled: int
    unlabelled: int
    rounds: tuple[Round, ...]
    last: int
    reserved: int = 0
    resample: bool = False
    grid: GridPlan | None = None

    @property
    def for_cuts(self) -> int:
        """Unlabelled rows that serve the cuts of a grid."""
        return 0 if self.grid is None else self.grid.n_rows


@claim("ITER")
def schedule_cost(
    base: Approximate,
    schedule: Schedule,
    labelled: int,
    unlabelled: int,
    concept: ConceptClass | None,
) -> Approximate:
    """Return the largest pair over the roles that a row may have, from the inside out.

    Parameters
    ----------
    base : Approximate
        What the base costs its rows.
    schedule : Schedule
        What is run.
    labelled, unlabelled : int
        Numbers of rows before anything is dropped.
    concept : ConceptClass, or None
        The class that hypotheses are drawn from, if points define the candidates.

    Returns
    -------
    Approximate
        What the whole costs.
    """
    sizes = labelled_sizes(schedule)
    inner = resampled(base, schedule.last) if schedule.resample else base
    inner = sampled(inner, schedule.last, sizes[-1])
    roles = [base] if schedule.reserved else []
    if schedule.grid is not None:
        concept = None
        roles += [Approximate(schedule.grid.epsilon, 0.0)] if schedule.for_cuts else []
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


@claim("ITER")
def labelled_sizes(schedule: Schedule) -> list[int]:
    """Return how many rows have a label before the first round and after each."""
    return [schedule.labelled, *(step.labelled + step.kept for step in schedule.rounds)]


def best_epsilon(
    inner: Approximate, epsilon: float, delta: float, concept: ConceptClass | None, size: int
) -> float:
    """Return the epsilon of the draw that lets the labels count most.

    A larger one makes each label count more, and fewer labels may be kept; the product is what
    the exponential mechanism's accuracy depends on.
    """

    def weight(drawn: float) -> float:
        scored = relabelled(inner, drawn, "S", concept, size)
        return drawn * largest_rate(scored, epsilon, delta)

    return max(EPSILONS, key=weight)


def printed_schedule(sizes: PaperSchedule) -> Schedule:
    """Return the schedule that paper 1 prints, whose draws have epsilon 1."""
    rounds = tuple(Round(step.labelled, step.unlabelled, step.kept) for step in sizes.rounds)
    return Schedule(sizes.labelled, sizes.unlabelled, rounds, sizes.last, resample=True)


def check_round(step: object) -> Round:
    """Return a round that was given, if its numbers are possible."""
    if not isinstance(step, Round):
        raise InvalidParameter(f"rounds holds {described(step)}; give Round(...) objects.")
    for name in ("labelled", "unlabelled", "kept"):
        check_count(getattr(step, name), name)
    check_epsilon(step.epsilon)
    return step


@claim("ITER")
def check_schedule(schedule: Schedule, labelled: int) -> None:
    """Refuse a schedule that asks for more rows than there are, or for none.

    Parameters
    ----------
    schedule : Schedule
        What is to be run.
    labelled : int
        Number of rows that have a label.

    Raises
    ------
    InvalidData
        If it does.
    """
    used = sum(step.unlabelled for step in schedule.rounds) + schedule.reserved + schedule.for_cuts
    if schedule.labelled > labelled or used > schedule.unlabelled:
        raise InvalidData(
            f"the schedule asks for {schedule.labelled:,} labelled and {used:,} unlabelled rows, "
            f"but there are {labelled:,} and {schedule.unlabelled:,}; give more, or ask for "
            "fewer."
        )
    have = labelled_sizes(schedule)
    for number, (size, step) in enumerate(zip(have, schedule.rounds, strict=False), start=1):
        if not 1 <= step.labelled <= size or not 0 <= step.kept <= step.unlabelled:
            raise InvalidData(
                f"round {number} keeps {step.labelled:,} of {size:,} labelled and {step.kept:,} of "
                f"{step.unlabelled:,} unlabelled rows; it needs at least one label, and no more "
                "rows than there are. Give more rows, a larger epsilon, or a base with less."
            )
    if not 1 <= schedule.last <= have[-1]:
        raise InvalidData(
            f"{schedule.last:,} of {have[-1]:,} rows are to reach the base; it needs at least one, "
            "and there are no more."
        )
