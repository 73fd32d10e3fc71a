"""The number that is predicted: its range, its unit, and what a score stands for."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cumae.arrays import Floats
from cumae.codec import register_kind
from cumae.errors import InvalidData, InvalidParameter, shown
from cumae.learners.kernel.sums import powers
from cumae.parameters import check_real

LINKS = ("identity", "log")
HUGE = 1e150  # size of a number at most: its square is a float
FARTHEST = 12.0  # score of a mean at most, with a log link: its power of e is a float


@dataclass(frozen=True)
class NumberTarget:
    """The range of a number and the unit in which a model counts it.

    Parameters
    ----------
    low, high : float
        Its range: values beyond are moved to its ends.
    link : {"identity", "log"}
        Whether scores are means, or logarithms of means.
    centre, unit : float
        What 0 and 1 stand for; they are released, or follow from the range.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.learners.regression.target import NumberTarget
    >>> target = NumberTarget(0.0, 100.0, "identity", 40.0, 10.0)
    >>> target.standard(np.array([30.0, 200.0])).tolist()
    [-1.0, 6.0]
    >>> target.plain(np.array([-1.0, 9.0])).tolist()
    [30.0, 100.0]
    """

    low: float
    high: float
    link: str
    centre: float
    unit: float

    def standard(self, numbers: Floats) -> Floats:
        """Return numbers in units of the model, each by itself."""
        return (np.clip(numbers, self.low, self.high) - self.centre) / self.unit

    def plain(self, standard: Floats) -> Floats:
        """Return numbers of the range, from those in units of the model."""
        return np.clip(self.centre + self.unit * standard, self.low, self.high)

    def mean(self, scores: Floats) -> Floats:
        """Return the mean that a score stands for, in units of the model."""
        if self.link == "identity":
            return scores
        return np.asarray(powers(np.clip(scores, -FARTHEST, FARTHEST)))

    def steepness(self, scores: Floats) -> Floats:
        """Return by how much the mean follows its score."""
        return np.ones_like(scores) if self.link == "identity" else self.mean(scores)

    def size(self, scores: Floats) -> Floats:
        """Return how large errors are where a mean has such a score, against others.

        Errors of counts and durations grow with the root of their mean, as those of events do.
        """
        return np.ones_like(scores) if self.link == "identity" else np.sqrt(self.mean(scores))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> NumberTarget:
        """Rebuild what ``to_dict`` returned."""
        return cls(**plain)


def check_range(given: object, link: str) -> None:
    """Refuse what is no range of a number.

    Parameters
    ----------
    given : object
        What was declared.
    link : {"identity", "log"}
        With a log link, numbers are not below 0.
    """
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidParameter(
            f"target_range={shown(given)} is no range; give two numbers, such as (0, 100)."
        )
    low, high = (check_real(end, "target_range") for end in given)
    if not (math.isfinite(low) and math.isfinite(high) and low < high and high - low < HUGE):
        raise InvalidParameter(
            f"target_range={shown(given)}: give two finite numbers, the lower one first."
        )
    if link == "log" and low < 0:
        raise InvalidParameter(
            f'target_range={shown(given)} with link="log": numbers must not be below 0.'
        )


def numbers_of(y: Any, first: int | None = None) -> Floats:
    """Return the numbers that are to be learnt, one for each row; refuse what is none.

    Parameters
    ----------
    y : array-like
        The numbers.
    first : int, or None
        The number of the first row, if they are some of many; then a message names the row.

    Examples
    --------
    >>> from cumae.learners.regression.target import numbers_of
    >>> numbers_of([1, 2.5]).tolist()
    [1.0, 2.5]
    """
    try:
        found = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidData("y holds something that is no number; give numbers.") from None
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim != 1:
        raise InvalidData(f"y has {found.ndim} dimensions; give one number for each row.")
    odd = ~np.isfinite(found)
    if odd.any():
        rows = [] if first is None else [first + int(np.argmax(odd))]
        row = f" in row {rows[0]}" if rows else ""
        raise InvalidData(
            f"y has a missing or infinite number{row}; leave such rows out.", rows=rows
        )
    return np.clip(found, -HUGE, HUGE)


register_kind("regression target", NumberTarget)
