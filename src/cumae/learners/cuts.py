"""Points and cuts that define candidates, from what is public or paid for."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.concepts import (
    ConceptClass,
    FiniteClass,
    Halfspaces,
    Points,
    RandomSets,
    Rectangles,
    Thresholds,
    TreeCuts,
    Trees,
    UnionOfIntervals,
)
from cumae.concepts.candidates.relabelling import JOINT, LARGEST_JOINT
from cumae.data import Bounds, Columns
from cumae.errors import InvalidData, InvalidParameter
from cumae.randomness import Source
from cumae.sanitizers import Quantiles

LARGEST_GRID = {
    2: 64**2,
    3: 16**3,
}  # points, by columns: a box is drawn within a second
LARGEST = float(np.finfo(np.float64).max)
ONE_COLUMN = (Points, RandomSets, Thresholds, UnionOfIntervals)


def quantile_cuts(table: Floats, count: int) -> list[tuple[int, float]]:
    """Return (column, value) of at most ``count`` cuts for each column, at quantiles of the rows.

    A cut lies in the middle of a gap between neighbouring values. A column with no more gaps than
    ``count`` has a cut in each.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.learners.cuts import quantile_cuts
    >>> quantile_cuts(np.array([[0.0, 5], [1, 5], [1, 5], [7, 6]]), 1)
    [(0, 0.5), (1, 5.5)]
    """
    found = []
    for number, column in enumerate(table.T):
        ordered = np.sort(column)
        values = np.unique(ordered)
        gaps = np.arange(1, len(values))  # gap i lies below values[i]
        if len(gaps) > count:
            ranks = np.arange(1, count + 1) * len(ordered) // (count + 1)
            gaps = np.unique(np.maximum(np.searchsorted(values, ordered[ranks]), 1))
        finite = np.clip(values, -LARGEST, LARGEST)
        low, high = finite[gaps - 1] / 2, finite[gaps] / 2  # halves, whose difference is a float
        found += [(number, float(cut)) for cut in 2 * low + (high - low)]
    return found


def each_within(gaps: ArrayLike, most: float) -> int:
    """Return how many cuts each column may have, so that all columns have at most ``most``.

    Parameters
    ----------
    gaps : array-like of numbers
        Most cuts of each column; infinity where there is no limit.
    most : float
        Cuts of all columns together; a finite number.

    Returns
    -------
    int
        The largest such number; 0 if one cut for each column is too many.

    Examples
    --------
    >>> from cumae.learners.cuts import each_within
    >>> each_within([1, 1, 7, 7], 12), each_within([7] * 600, 4096), each_within([1] * 5, 4)
    (5, 6, 0)
    """
    held = np.asarray(gaps, dtype=np.float64)
    low, high = 0, int(most) + 1  # what is enough, and what may be too much
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if np.minimum(held, middle).sum() > most else (middle, high)
    return low


def cuts_of_a_column(
    concept_class: ConceptClass, columns: Columns, wanted: int, *, ends: bool = False
) -> int:
    """Return how many cuts or points a column gets: as many as wanted, or fewer in a wide table.

    It follows from declarations alone. A column of categories, or of few steps, has fewer cuts.

    Parameters
    ----------
    concept_class : ConceptClass
        The class to draw from. Trees of depth 2 and 3 take a limited number of cuts.
    columns : Columns
        All columns.
    wanted : int of 1 or more
        Cuts or points that a column gets if there are few columns.
    ends : bool
        Whether these are points to which the ends of the range are added, so that there is one cut
        more.

    Raises
    ------
    InvalidParameter
        If one cut for each column is too many.
    """
    most = concept_class.most_cuts if isinstance(concept_class, Trees) else math.inf
    if most == math.inf:
        return wanted
    if len(columns) > most:
        raise InvalidParameter(
            f"{len(columns):,} encoded columns are more than the {most:,} cuts that a tree is "
            "drawn from; declare fewer categories, or leave columns out."
        )
    gaps = [_gaps(bounds) for bounds in columns.bounds]
    return max(1, min(wanted, each_within(gaps, most) - ends))


def _gaps(bounds: Bounds | None) -> float:
    """Return how many cuts tell apart what a column can hold."""
    if bounds is None or len(bounds) == 2:
        return math.inf
    return max(1, round((bounds[1] - bounds[0]) / bounds[2]))


def cuts_between(concept_class: ConceptClass, points: Floats) -> Any:
    """Return what ``choose`` takes as points: for trees cuts between them, and not too many.

    Points are public or sanitized, so that leaving out cuts costs nothing.
    """
    if not isinstance(concept_class, Trees):
        return points
    cuts = TreeCuts.of(points, concept_class.max_cuts)
    if len(cuts) <= concept_class.most_cuts:
        return cuts
    return TreeCuts.of(points, each_within(np.diff(cuts.starts), concept_class.most_cuts))


def public_cuts(concept_class: ConceptClass, public: NDArray[Any], count: int) -> TreeCuts:
    """Return cuts at quantiles of public rows, and not more than trees take.

    Parameters
    ----------
    concept_class : ConceptClass
        What is drawn.
    public : array
        The public rows.
    count : int of 1 or more
        Cuts of a column, at most.
    """
    width = public.shape[1]
    cuts = TreeCuts(quantile_cuts(public, count), width)
    if isinstance(concept_class, Trees) and len(cuts) > concept_class.most_cuts:
        # Public cells may lie between the declared steps of their column.
        each = each_within(np.diff(cuts.starts), concept_class.most_cuts)
        cuts = TreeCuts(quantile_cuts(public, each), width)
    return cuts


def quantile_levels(points: int) -> int:
    """Return in how many levels of halving so many quantiles are drawn."""
    return (points + 1).bit_length() - 1


def worthwhile_points(
    columns: Columns, rows: float, error: Callable[[int], float], most: int = 15
) -> int:
    """Return how many sanitized quantiles of each numeric column are worth their price.

    Parameters
    ----------
    columns : Columns
        All columns.
    rows : float
        Number of rows, in any unit.
    error : callable
        By how many rows, in the same unit, a quantile is off if there are so many draws.
    most : int
        No more than so many are asked for.

    Returns
    -------
    int
        15, 7 or 3; 0 if none are worth it.
    """
    numeric = columns.numeric
    if not numeric:
        return 0
    for points in (15, 7, 3):
        share = 0.1 if points > 3 else 0.3
        if points <= most and error(quantile_levels(points) * len(numeric)) < share * rows:
            return points
    return 0


@claim("BOOST")
def numeric_quantiles(columns: Columns, points: int, epsilon: float, source: Source) -> Quantiles:
    """Return the sanitizer for quantiles of all numeric columns."""
    bounds = [columns.bounds[place] for place in columns.numeric]
    return Quantiles(epsilon, bounds, points, random_state=source)


def column_points(columns: Columns, count: int) -> Floats:
    """Return ``count`` evenly spread values of each column; all of them must have a range."""
    return grid_points(columns.need_bounds(), count - 1)


def grid_points(bounds: Sequence[Bounds], count: int) -> Floats:
    """Return ``count`` + 1 evenly spread values of each column: so many cuts lie between them."""
    columns = []
    for low, high, *step in bounds:
        values = np.linspace(low, high, count + 1)
        if step:
            values = low + np.rint((values - low) / step[0]) * step[0]
        columns.append(values)
    return np.array(columns).T.reshape(count + 1, len(bounds))


def points_around(bounds: Bounds, count: int) -> Floats:
    """Return points of one column: evenly within a range, and thinner and thinner beyond it.

    A range that was found privately leaves out the tails of a column, and a cut may lie there.

    Examples
    --------
    >>> from cumae.learners.cuts import points_around
    >>> points = points_around((0.0, 1.0), 4)[:, 0]
    >>> points[320:325].tolist(), float(points[-1]), len(points)
    ([0.0, 0.25, 0.5, 0.75, 1.0], 1099511627776.0, 645)
    """
    low, high = bounds[:2]
    reach = (high - low) * (2.0 ** np.arange(1 / 8, 40 + 1 / 16, 1 / 8) - 1)
    within = np.linspace(low, high, count + 1)
    return np.concatenate([(low - reach)[::-1], within, high + reach])[:, None]


def with_ends(points: Floats, bounds: Sequence[Bounds | None]) -> Floats:
    """Add the declared ends of each column, so that a cut can also part off a rare value."""
    ends = np.array([points[0], points[-1]]) if len(points) else np.zeros((2, len(bounds)))
    for column, declared in enumerate(bounds):
        if declared is not None:
            ends[:, column] = declared[:2]
    return np.vstack([points, ends])


def joined(concept_class: ConceptClass, points: Floats) -> Floats:
    """Return all combinations of the columns' values for classes that look at columns together."""
    if not isinstance(concept_class, JOINT) or points.shape[1] == 1:
        return points
    width = points.shape[1]
    largest = LARGEST_GRID if isinstance(concept_class, Rectangles) else LARGEST_JOINT
    each = max(2, int(largest.get(width, 100) ** (1 / width) + 1e-9))
    chosen = [
        column[np.linspace(0, len(column) - 1, min(each, len(column))).astype(int)]
        for column in (np.unique(column) for column in points.T)
    ]
    return np.array(list(itertools.product(*chosen)))


def check_finite(concept_class: ConceptClass, table: NDArray[Any]) -> None:
    """Refuse infinite cells for classes that cannot take them, while the owner is looking.

    Later, in a draw from some of the rows, a refusal would tell whether a row is among them.
    """
    if isinstance(concept_class, Halfspaces) and table.dtype.kind == "f":
        refuse_infinite(table, "halfspaces")


def refuse_infinite(table: NDArray[Any], who: str) -> None:
    """Refuse infinite cells of a table of numbers, on behalf of who cannot take them."""
    wrong = np.argwhere(~np.isfinite(table))
    if len(wrong):
        row, column = wrong[0][0], wrong[0][-1]
        raise InvalidData(
            f"X is infinite in row {row}, column {column}, which {who} cannot take; replace it by "
            "a bound.",
            columns=[column],
            rows=[row],
        )


def check_labelled(concept_class: ConceptClass, table: NDArray[Any]) -> None:
    """Refuse tables and rows on which some hypothesis of the class would fail."""
    concept_class.vc_dimension(1 if table.ndim == 1 else table.shape[1])
    check_finite(concept_class, table)
    if isinstance(concept_class, FiniteClass):
        concept_class.n_dichotomies(table)  # asks every hypothesis about every row


def public_points(concept_class: ConceptClass, public: NDArray[Any], count: int) -> Any:
    """Return what public rows give to ``choose`` as points: cuts for trees, else the rows."""
    if isinstance(concept_class, Trees):
        return public_cuts(concept_class, public, count)
    if isinstance(concept_class, JOINT):
        return public[: LARGEST_JOINT.get(public.shape[1], 100)]
    return public


def n_covering(concept_class: ConceptClass, points: Any) -> int:
    """Return how many public rows have all their labellings among the candidates; 0 for trees."""
    return 0 if isinstance(concept_class, Trees) else len(points)
