"""Public candidates for boxes and halfspaces: rules on cuts that do not depend on the rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts.base import ConceptClass, Hypothesis
from cumae.concepts.halfspaces import Halfspace, Halfspaces
from cumae.concepts.rectangles import Rectangle, Rectangles
from cumae.data import check_labels, check_rows, check_table
from cumae.errors import InvalidParameter
from cumae.privacy.validation import check_epsilon
from cumae.randomness import Source, integers, source_for, weighted_choice
from cumae.remembering import remembered

GRIDDED = (Rectangles, Halfspaces)  # classes that have a grid
# Cuts of a column, by the number of columns. A draw takes a fraction of a second with each.
BOX_CUTS = {1: 255, 2: 63, 3: 15}
OFFSETS = {1: 255, 2: 96, 3: 48}
MOST_RULES = 20_000_000  # a table of their scores still fits into memory
SMALLEST = 1e-300  # of a range whose inverse is a float
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))


def takes_grid(concept: ConceptClass, width: int) -> bool:
    """Tell whether rules of a class can be drawn from a grid in so many columns."""
    return isinstance(concept, GRIDDED) and width in BOX_CUTS


def usual_cuts(concept: ConceptClass, width: int) -> int:
    """Return how many cuts a column gets if no number is given."""
    return (BOX_CUTS if isinstance(concept, Rectangles) else OFFSETS)[width]


def count_rules(concept: ConceptClass, width: int, count: int) -> int:
    """Return how many rules a grid has.

    Parameters
    ----------
    concept : ConceptClass
        The kind of rules.
    width : int
        Number of columns.
    count : int of 1 or more
        Cuts of each column.

    Raises
    ------
    InvalidParameter
        If the class has no grid in so many columns, or there are too many rules.
    """
    if not takes_grid(concept, width):
        raise InvalidParameter(
            f"candidates='grid' with {type(concept).__name__} and {width} columns: a grid is for "
            "Rectangles and Halfspaces in one, two or three; take candidates='points'."
        )
    rules = int(((count + 1) * (count + 2) // 2) ** width + 1)
    if isinstance(concept, Halfspaces):
        rules = 2 * _half_directions(width, count) * count + 2
    if rules > MOST_RULES:
        raise InvalidParameter(
            f"n_cuts={count!r} makes {rules:,} rules, more than {MOST_RULES:,}; give a smaller "
            "n_cuts."
        )
    return rules


@claim("GRID")
@dataclass(frozen=True, eq=False)
class GridRules:
    """Boxes or halfspaces that cuts define, for any rows.

    With m cuts a column, a box is a range of the m + 1 cells of every column. A halfspace has one
    of a fixed list of directions and one of m evenly spaced offsets, between the outer cuts and
    one step beyond.

    Parameters
    ----------
    concept : Rectangles or Halfspaces
        The kind of rules.
    cuts : array of float of shape (n_columns, n_cuts)
        Cuts of each column, in ascending order; they must not depend on the rows that are scored
        or labelled.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.concepts import Rectangles
    >>> from cumae.concepts.candidates.grid import GridRules
    >>> rules = GridRules(Rectangles(), np.array([[1.0, 2.0], [1.0, 2.0]]))
    >>> rules.n_rules
    37
    >>> X = [[1.5, 1.5], [0.5, 1.5], [2.5, 1.5], [1.5, 0.5], [1.5, 2.5]]
    >>> print(rules.choose(X, X, [1, 0, 0, 0, 0], epsilon=200.0))
    label 1 where 1.0 <= column 0 < 2.0 and 1.0 <= column 1 < 2.0, else 0
    """

    concept: ConceptClass
    cuts: Floats

    def __post_init__(self) -> None:
        count_rules(self.concept, *self.cuts.shape)  # refuses other classes, and too many rules

    @property
    def n_rules(self) -> int:
        """Number of candidates."""
        return count_rules(self.concept, *self.cuts.shape)

    @claim("GRID")
    def choose(
        self,
        points: ArrayLike,
        X: ArrayLike,
        y: ArrayLike,
        epsilon: float,
        *,
        random_state: int | Source | None = None,
    ) -> Hypothesis:
        """Draw a candidate with probability proportional to exp(epsilon * right / 2).

        Parameters
        ----------
        points : array-like
            Not looked at: cuts alone define the candidates.
        X, y : array-like
            Rows with labels 0 or 1 on which candidates are scored: ``right`` is the number that
            a candidate labels right.
        epsilon : float of 0 or more
            Cost of the draw for the rows of ``X``; infinity draws among the best.
        random_state : int, Source or None
            None in production; a seed or a source in tests, which voids guarantees.
        """
        del points
        source, epsilon = source_for(random_state), check_epsilon(epsilon)
        scores = self.scores(check_table(X, len(self.cuts)), check_labels(y))
        # Scores are whole numbers: draw one of them with the number of candidates that reach it,
        # then one of these. Both draws are exact.
        least = int(scores.min())
        counts = np.bincount(scores - least)
        reached = np.flatnonzero(counts)
        rate = epsilon if epsilon == math.inf else Fraction(epsilon) / 2
        drawn = weighted_choice(reached, rate, counts=counts[reached], source=source)
        score = int(reached[drawn])
        place = integers(int(counts[score]), source=source)
        return self.rule(int(np.flatnonzero(scores == score + least)[place]))

    @claim("GRID")
    def scores(self, rows: Floats, labels: Integers) -> Integers:
        """Return how many rows each candidate labels right, in the order of ``rule``.

        Parameters
        ----------
        rows : array of float
            A table with as many columns as there are cuts for.
        labels : array of int
            Their labels, 0 or 1.
        """
        check_rows(len(rows), labels)
        gains = np.where(labels == 1, 1, -1)
        base = len(labels) - int(labels.sum())
        if isinstance(self.concept, Rectangles):
            return base + np.append(box_gains(self.cuts, rows, gains), 0)
        both = (0, int(gains.sum()))  # label 0 everywhere, and label 1 everywhere
        return base + np.append(halfspace_gains(self.cuts, rows, gains), both)

    @claim("GRID")
    def rule(self, place: int) -> Hypothesis:
        """Return the candidate at a place of the list."""
        width, count = self.cuts.shape
        if isinstance(self.concept, Rectangles):
            if place == self.n_rules - 1:
                return Rectangle((), ())
            ranges = _ranges(count + 1)
            each = np.unravel_index(place, (len(ranges),) * width)
            sides = [ranges[int(i)] for i in each]
            ends = list(zip(self.cuts.tolist(), sides, strict=True))
            lows = tuple(cuts[first - 1] if first else None for cuts, (first, _) in ends)
            highs = tuple(cuts[last - 1] if last <= count else None for cuts, (_, last) in ends)
            return Rectangle(lows, highs)
        if place >= self.n_rules - 2:
            return Halfspace((0.0,) * width, float(place == self.n_rules - 2))
        normals, offsets = _lines(self.cuts)
        direction, step = divmod(place, count)
        return Halfspace(tuple(normals[direction].tolist()), float(offsets[direction, step]))


@claim("GRID")
def box_gains(cuts: Floats, rows: Floats, gains: Integers) -> Integers:
    """Return the sum of gains within each box.

    Parameters
    ----------
    cuts : array of float
        Cuts of each column.
    rows : array of float
        Where the gains are.
    gains : array of int
        One for each row.
    """
    width, count = cuts.shape
    cell = np.zeros(len(rows), dtype=np.int64)
    for column, ends in zip(rows.T, cuts, strict=True):
        cell = cell * (count + 1) + np.searchsorted(ends, column, side="right")
    kind = np.int32 if len(rows) < 2**31 else np.int64  # sums are no larger; half of the memory
    board = np.zeros((count + 1) ** width, dtype=kind)
    np.add.at(board, cell, gains.astype(kind))
    sums = board.reshape((count + 1,) * width)
    first, last = np.array(_ranges(count + 1)).T
    for axis in range(width):  # cells become ranges of cells, one column after the other
        nothing = np.zeros_like(np.take(sums, [0], axis))
        before = np.concatenate([nothing, np.cumsum(sums, axis, dtype=kind)], axis)
        sums = np.take(before, last, axis) - np.take(before, first, axis)
    return sums.ravel()


@claim("GRID")
def halfspace_gains(cuts: Floats, rows: Floats, gains: Integers) -> Integers:
    """Return the sum of gains within each halfspace, direction by direction.

    Parameters
    ----------
    cuts : array of float
        Cuts of each column.
    rows : array of float
        Where the gains are.
    gains : array of int
        One for each row.
    """
    normals, offsets = _lines(cuts)
    n_lines, count = offsets.shape
    # Offsets are evenly spaced: how many of them a projection reaches is a quotient.
    spacing = (offsets[:, -1] - offsets[:, 0]) / max(1, count - 1)
    found = np.empty((n_lines, count), dtype=np.int64)
    sign = (gains > 0).astype(np.int64)
    with np.errstate(all="ignore"):
        for number, normal in enumerate(normals):
            reached = (rows @ normal - offsets[number, 0]) / spacing[number] + 1.0
            place = np.fmax(np.fmin(reached, count), 0.0).astype(np.int64)
            wrong, right = np.bincount(2 * place + sign, minlength=2 * count + 2).reshape(-1, 2).T
            found[number] = np.cumsum((right - wrong)[::-1])[::-1][1:]
    return found.ravel()


def _half_directions(width: int, count: int) -> int:
    """Return how many directions there are without their opposites."""
    return {1: 1, 2: count, 3: count * count // 4 + 1}[width]


@remembered(16)
def directions(width: int, count: int) -> Floats:
    """Return unit vectors that are spread evenly; with each one also its opposite.

    Parameters
    ----------
    width : int from 1 to 3
        Number of columns.
    count : int of 1 or more
        Offsets of each direction: more of them go with more directions.
    """
    if width == 1:
        half = np.ones((1, 1))
    elif width == 2:
        angles = np.pi * np.arange(_half_directions(2, count)) / count
        half = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    else:  # along a spiral from the pole to the equator
        number = np.arange(_half_directions(3, count))
        height = (number + 0.5) / len(number)
        radius, turn = np.sqrt(1 - height**2), GOLDEN_ANGLE * number
        half = np.stack([radius * np.cos(turn), radius * np.sin(turn), height], axis=1)
    return np.concatenate([half, -half])


def _lines(cuts: Floats) -> tuple[Floats, Floats]:
    """Return a normal for each direction, and its offsets in ascending order."""
    width, count = cuts.shape
    unit = directions(width, count)
    low, span = cuts[:, 0] / 2, cuts[:, -1] / 2 - cuts[:, 0] / 2  # halves, which do not overflow
    step = span / max(1, count - 1)
    low, span = low - step, span + 2 * step
    span = np.where(span > SMALLEST, span, np.maximum(1.0, np.abs(low)))
    normals = unit / span
    ends = [np.where(side, unit, 0.0).sum(axis=1) for side in (unit < 0, unit > 0)]
    shares = (np.arange(count) + 0.5) / count
    offsets = ends[0][:, None] + (ends[1] - ends[0])[:, None] * shares
    return normals / 2, offsets + (normals * low).sum(axis=1)[:, None]


@remembered(16)
def _ranges(cells: int) -> list[tuple[int, int]]:
    """Return first cell and end of each range of cells."""
    return list(combinations(range(cells + 1), 2))


def even_cuts(low: float, high: float, count: int) -> Floats:
    """Return cuts that split a range into equal cells.

    Parameters
    ----------
    low, high : float
        The range.
    count : int of 1 or more
        Number of cuts.

    Examples
    --------
    >>> from cumae.concepts.candidates.grid import even_cuts
    >>> even_cuts(0.0, 1.0, 3).tolist()
    [0.25, 0.5, 0.75]
    """
    shares = np.arange(1, count + 1) / (count + 1)
    return np.asarray(low * (1 - shares) + high * shares)
