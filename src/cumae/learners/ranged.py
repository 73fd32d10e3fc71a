"""Ranges of columns that were not declared: found privately, before a learner begins."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data import Bounds, Column, Columns
from cumae.effort import Effort
from cumae.errors import InvalidData, InvalidParameter
from cumae.estimators import own_clone
from cumae.learners.base import Learner, LearningPlan, Rows, Sizes
from cumae.privacy import ZCDP, Cost, calibrate
from cumae.randomness import Source
from cumae.remembering import remembered
from cumae.sanitizers import Quantiles, Ranges
from cumae.sanitizers.ranges import FENCE, scale_counts

SHARE = 0.25  # of epsilon and of delta, which the ranges alone keep to
MOST_OFF = 0.2  # by which share of the rows a quartile may usually be off
PLACES = 2**24  # of the grid in which a found range is narrowed
TRIES = 12  # guesses of what is left for the learner, each an eighth below the one before
PLACEHOLDER: Bounds = (-1.0, 1.0)  # for plans, which are made before the ranges are found


@dataclass(frozen=True)
class RangedSteps:
    """The steps of a learner that has to find ranges first.

    Parameters
    ----------
    epsilon : float
        Pure epsilon of the ranges.
    columns, targets : int
        How many columns, and how many targets, have no range.
    learner : Learner
        A copy of the learner, with what is left of epsilon.
    plan : LearningPlan
        What the copy is going to do.
    """

    epsilon: float
    columns: int
    targets: int
    learner: Learner
    plan: LearningPlan[Any]


def needs_ranges(sizes: Sizes) -> bool:
    """Tell whether a column has no range, and there are no public rows to show one."""
    return bool(sizes.columns.open) and not sizes.public


@claim("RANGES")
def plan_with_ranges(
    learner: Learner,
    sizes: Sizes,
    rows: Rows,
    plan: Callable[..., LearningPlan[Any]],
    targets: int = 0,
) -> LearningPlan[RangedSteps]:
    """Return a plan that finds ranges first; refuse if there are too few rows, or no delta.

    Parameters
    ----------
    learner : Learner
        What is fitted.
    sizes, rows : Sizes and Rows
        As in ``Learner.decide``.
    plan : callable
        Returns the plan of a copy, given the copy, sizes and rows, if all ranges are known.
    targets : int
        1 if the labels are numbers without a range, which is found in the same way.
    """
    epsilon, delta = learner.epsilon, learner.delta
    unknown = len(sizes.columns.open) if needs_ranges(sizes) else 0
    count = unknown + targets
    _need_delta(sizes.columns, epsilon, delta)
    share = range_epsilon(epsilon, delta, count)
    ranges = Ranges(share, count)
    _need_rows(ranges, sizes, epsilon)
    # The plan of the learner is made before ranges are found.
    closed = sizes
    if unknown:
        closed = replace(sizes, columns=sizes.columns.within([PLACEHOLDER] * unknown))

    def planned(left: float) -> tuple[Learner, LearningPlan[Any]]:
        copy = own_clone(learner).set_params(epsilon=left, budget=None, random_state=None)
        return copy, plan(copy, closed, rows)

    left = epsilon
    if epsilon < math.inf:
        left = _largest(ranges.cost, lambda part: planned(part)[1].cost, epsilon, delta)
    copy, inner = planned(left)
    return replace(
        inner,
        cost=ranges.cost + inner.cost,
        claims=tuple(dict.fromkeys(("RANGES", *inner.claims, "COMP", "QUANT"))),
        steps=RangedSteps(share, count - targets, targets, copy, inner),
        facts={"range_epsilon": share, "learner_epsilon": copy.epsilon, **inner.facts},
        work=(Effort("draws", sizes.cells, sizes.cells), *(inner.work or ())),
    )


@claim("RANGES")
def _largest(ranges: Cost, inner: Callable[[float], Cost], epsilon: float, delta: float) -> float:
    """Return an epsilon for the learner with which both together keep to epsilon and delta.

    The first guess is what is left in zCDP, which is close where all noise is Gaussian.

    Parameters
    ----------
    ranges : Cost
        What the ranges cost.
    inner : callable
        What the learner costs, given its epsilon.
    epsilon, delta : float
        What both may cost together.
    """
    whole = _rho(epsilon, delta, 1e-3)
    spent = math.inf if ranges.zcdp is None else ranges.zcdp[0]
    left = ZCDP(whole - spent).epsilon(delta) if whole > spent else epsilon / 2
    for _ in range(TRIES):
        if _delta(ranges + inner(left), epsilon) <= delta:
            return left
        left *= 1 - SHARE / 2
    raise InvalidParameter(
        f"epsilon={epsilon!r} is too little to find ranges and to learn; declare the range of "
        "every column of numbers or dates."
    )


# Both take longer than learning from a few rows, and every fit with the same sizes asks again.


@remembered(512)
def _delta(cost: Cost, epsilon: float) -> float:
    return cost.delta(epsilon)


@remembered(512)
def _rho(epsilon: float, delta: float, tolerance: float) -> float:
    """Return about the largest rho of zCDP that is within epsilon and delta."""
    return 1 / calibrate(lambda noise: ZCDP(1 / noise), epsilon, delta, tolerance=tolerance)


@claim("RANGES")
def range_epsilon(epsilon: float, delta: float, count: int) -> float:
    """Return the pure epsilon of ranges that alone keep to a quarter of epsilon and of delta.

    Each of ``count`` columns takes two draws. A draw with epsilon e costs e^2 / 8 in zCDP.
    """
    if epsilon == math.inf:
        return math.inf
    most = min(epsilon, 100.0) * SHARE
    rho = _rho(most, delta * SHARE, 1e-6)
    draws = 2 * count
    return max(most, math.sqrt(8 * rho * draws) * (1 - 1e-9))


@claim("RANGES")
def pure_shares(epsilon: float, sizes: Sizes) -> tuple[float, float]:
    """Return what each of two looks for a range gets of a pure epsilon, and what they leave.

    Refuse if there are too few rows for the first look.

    Parameters
    ----------
    epsilon : float
        Of both looks and the learner.
    sizes : Sizes
        Public numbers.
    """
    if epsilon == math.inf:
        return math.inf, math.inf
    share = SHARE * min(epsilon, 100.0)
    _need_rows(Ranges(share, len(sizes.columns.open)), sizes, epsilon)
    return share, (epsilon - 2 * share) * (1 - 1e-12)  # so that rounding does not add to the sum


@claim("RANGES")
def narrowed(bounds: Bounds, column: NDArray[Any], epsilon: float, source: Source) -> Bounds:
    """Return a range within a range, by quartiles on a fine grid: numbers may lie close together.

    Parameters
    ----------
    bounds : tuple of float
        What a first look found.
    column : array of float
        Private rows of one column.
    epsilon : float
        Pure privacy parameter of this look.
    source : Source
        Where coins come from.
    """
    low, high = bounds[:2]
    step = (high - low) / PLACES
    quartiles = Quantiles(epsilon, [(low, high, step)], 3, random_state=source)
    first, _, last = quartiles.sanitize(column)[:, 0].tolist()
    reach = FENCE * (last - first + step)
    return first - step - reach, last + reach


def _need_delta(columns: Columns, epsilon: float, delta: float) -> None:
    if delta > 0 or epsilon == math.inf:
        return
    lines = "\n".join(
        f"    {columns.key(column.name)}: {column.range_form}," for column in _open(columns)
    )
    raise InvalidParameter(
        f"delta={delta!r}: without a delta, ranges cannot be found privately. Give a "
        "delta such as 1e-6, or public rows as X_public, or write what is known without the rows:"
        f"\ncolumns={{\n{lines}\n}}"
    )


def _open(columns: Columns) -> list[Column]:
    return [column for column in columns.columns if column.is_open]


def _need_rows(ranges: Ranges, sizes: Sizes, epsilon: float) -> None:
    error = ranges.rank_error(sizes.labelled)
    if error <= MOST_OFF * sizes.labelled:
        return
    least = math.ceil(error / MOST_OFF) if epsilon > 0 else None
    few = [column.name for column in _open(sizes.columns)[:10]]
    names = few.copy()
    if ranges.n_columns > len(sizes.columns.open) or not names:
        names.append("y (target_range)")
    raise InvalidData(
        f"{sizes.labelled} rows are too few to find the ranges of {ranges.n_columns} columns with "
        f"epsilon={epsilon!r}: {least or 'no number'} would do. Declare the lowest and the highest "
        f"value of column {', '.join(names)}, from what is known without the rows, or give public "
        "rows (X_public).",
        columns=few,
        needed_rows=least,
    )


@dataclass(frozen=True)
class OpenCounts:
    """Numbers of rows in each place of the scale, of columns and targets without a range.

    Parameters
    ----------
    columns : tuple of int
        Places of the encoded columns.
    targets : bool
        Whether the targets have no range, either.
    """

    columns: tuple[int, ...]
    targets: bool

    @claim("RANGES")
    @np.errstate(all="ignore")  # a worker does not know what its caller ignores
    def __call__(self, table: NDArray[Any], answers: NDArray[Any]) -> Integers:
        unknown = table[:, self.columns]
        return scale_counts(np.column_stack([unknown, answers]) if self.targets else unknown)


@claim("RANGES")
def learn_with_ranges(
    learner: Learner,
    rows: Rows,
    steps: RangedSteps,
    source: Source,
    learn: Callable[..., None],
) -> None:
    """Find the ranges, let the copy learn with them, and keep in the learner what the copy learnt.

    Parameters
    ----------
    learner : Learner
        What is fitted.
    rows : Rows
        Encoded rows. In a column without a range, a missing number is 0.
    steps : RangedSteps
        What was planned.
    source : Source
        Where coins come from.
    learn : callable
        Lets the copy learn, given the copy, rows, its plan and the source.
    """
    columns = learner.columns_
    ranges = Ranges(steps.epsilon, steps.columns + steps.targets, random_state=source)
    total = OpenCounts(tuple(columns.open) if steps.columns else (), bool(steps.targets))
    drawn = ranges.find_by_counts(rows.both.sum(total))
    found = columns.within(drawn[: steps.columns]) if steps.columns else columns
    copy = own_clone(steps.learner)
    copy.take_over(found, drawn[steps.columns :])
    learn(copy, rows.filled(found), steps.plan, source)
    for name, value in vars(copy).items():
        if name.endswith("_"):
            setattr(learner, name, value)
