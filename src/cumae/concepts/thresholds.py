"""Thresholds on one ordered column, which may only be compared."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.codec import cell_from_json, cell_to_json
from cumae.concepts.base import ConceptClass, Hypothesis, text
from cumae.concepts.columns import Cells, at_least, cells_of, distinct_points
from cumae.concepts.kernels.sums import draw_score
from cumae.data import check_cell, check_column
from cumae.errors import InvalidParameter
from cumae.parameters import check_choice, check_flag
from cumae.randomness import Source, integers


@dataclass(frozen=True, repr=False)
class Threshold(Hypothesis):
    """The rule that labels 1 what is at least ``cut`` (or, if not ``above``, below it).

    Without a cut nothing is above: label 0 everywhere, or 1 if not ``above``.

    Parameters
    ----------
    cut : object or None
        Where the label changes: a number, a text, a date or the like.
    above : bool
        Whether label 1 is above the cut.

    Examples
    --------
    >>> from cumae.concepts import Threshold
    >>> Threshold(2.5).predict([1, 2, 3]).tolist()
    [0, 0, 1]
    >>> print(Threshold("m", above=False))
    label 1 below 'm', else 0
    """

    cut: Any
    above: bool = True

    def __post_init__(self) -> None:
        check_cell(self.cut, "cut")
        check_flag(self.above, "above")

    def predict(self, X: ArrayLike) -> Integers:
        column = check_column(X)
        if self.cut is None:
            return np.full(len(column), int(not self.above))
        return np.asarray(at_least(column, self.cut) == self.above, dtype=np.int64)

    def _fields(self) -> dict[str, Any]:
        return {"cut": cell_to_json(self.cut), "above": bool(self.above)}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Threshold:
        return cls(cell_from_json(fields["cut"]), fields["above"])

    def __str__(self) -> str:
        if self.cut is None:
            return f"label {int(not self.above)} everywhere"
        side = "from" if self.above else "below"
        return f"label 1 {side} {text(self.cut)}{' on' if self.above else ''}, else 0"


@claim("CHOOSE")
class Thresholds(ConceptClass):
    """All cuts through one ordered column: floats, integers of any length, strings, dates.

    ``m`` distinct points have 2m labellings with both polarities, m + 1 with one. A cut lies in the
    middle between two neighbouring points, or at the upper one where there is no middle. Of several
    best hypotheses ``erm`` takes the middle one of this list: label 0 everywhere, cuts with label 1
    above, cuts with label 1 below, label 1 everywhere, cuts in order.

    Parameters
    ----------
    polarity : {"both", "above", "below"}
        ``"both"``, or only ``"above"`` or ``"below"``: where label 1 lies.

    Examples
    --------
    >>> from cumae.concepts import Thresholds
    >>> ages = [31, 35, 44, 62, 70]
    >>> Thresholds().n_dichotomies(ages)
    10
    >>> print(Thresholds().erm(ages, [0, 0, 0, 1, 1]))
    label 1 from 53 on, else 0
    >>> Thresholds().choose(ages, ages, [0, 0, 0, 1, 1], epsilon=100.0).cut
    np.int64(53)
    """

    def __init__(self, polarity: str = "both") -> None:
        self.polarity = check_choice(polarity, ("both", "above", "below"), "polarity")

    def vc_dimension(self, n_features: int = 1) -> int:
        """Return 2 with both polarities, else 1."""
        single_column(n_features)
        return 2 if self.polarity == "both" else 1

    def n_dichotomies(self, X: ArrayLike) -> int:
        points = len(distinct_points(X))
        return max(1, 2 * points) if self.polarity == "both" else points + 1

    def _sides(self) -> tuple[bool, bool]:
        return self.polarity != "below", self.polarity != "above"

    def _draw(
        self,
        points: ArrayLike,
        X: ArrayLike,
        y: Integers,
        rate: Fraction | float,
        source: Source,
    ) -> Hypothesis:
        cells = cells_of(points, X, y)
        # Scores are whole numbers from 0 to n: draw one of them with the number of cuts that
        # reach it, then one of these cuts. Both draws are exact.
        scores = self._scores(cells)
        counts = np.bincount(scores, minlength=len(y) + 1)
        score = draw_score(counts, rate, source)
        place = integers(int(counts[score]), source=source)
        return self._hypothesis(cells, int(np.flatnonzero(scores == score)[place]))

    def _best(self, X: ArrayLike, y: Integers, weights: NDArray[Any]) -> Hypothesis:
        cells = cells_of(X, X, y, weights)
        scores = self._scores(cells)
        ties = np.flatnonzero(scores == scores.max())
        return self._hypothesis(cells, int(ties[(len(ties) - 1) // 2]))

    def _scores(self, cells: Cells) -> NDArray[Any]:
        """Return the scores in the order of the class's list."""
        before = np.cumsum(cells.gain)
        total = before[-1] if len(before) else cells.gain.sum()
        above, below = self._sides()
        parts = [np.array([0], dtype=before.dtype)]
        if above:
            parts.append(total - before[:-1])
        if below:
            parts.append(before[:-1])
        if len(before):
            parts.append(np.array([total], dtype=before.dtype))
        return np.concatenate(parts) + cells.base

    def _hypothesis(self, cells: Cells, place: int) -> Threshold:
        """Return hypothesis number ``place`` of the class's list."""
        above, _ = self._sides()
        inner = max(0, len(cells) - 1)
        if place == 0:
            return Threshold(None, above=True)
        if above and place <= inner:
            return Threshold(cells.cut(place), above=True)
        place -= inner if above else 0
        if self.polarity != "above" and place <= inner:
            return Threshold(cells.cut(place), above=False)
        return Threshold(None, above=False)


def single_column(n_features: int) -> None:
    """Refuse more than one column."""
    if n_features != 1:
        raise InvalidParameter(f"n_features={n_features!r}: this class has one column; select it.")
