"""The values that a released point of an ordered column may have."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.errors import InvalidParameter

GRID_STEPS = 2**20  # of a column with bounds and no step
LARGEST_GRID = 2**31
LARGEST_KEY = int(np.array(np.finfo(np.float64).max).view(np.int64))  # magnitude of finite floats


class OrderedValues(ABC):
    """The values that a released point of a column may have, in order: its domain.

    Moving a row onto the domain looks at that row and at public numbers only, so neighbouring
    tables stay neighbours.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of values."""

    @abstractmethod
    def places(self, column: Floats) -> Integers:
        """Return the place of each row's value: 0 for the lowest."""

    @abstractmethod
    def values(self, places: Integers) -> Floats:
        """Return the values at these places."""


@claim("QUANT")
@dataclass(frozen=True)
class EvenSteps(OrderedValues):
    """low, low + step, low + 2 step, ...; a row goes to the next value above it."""

    low: float
    step: float
    steps: int

    @property
    def size(self) -> int:
        return self.steps + 1

    def places(self, column: Floats) -> Integers:
        inside = np.clip(column, self.low, self.low + self.steps * self.step)
        place = np.rint((inside - self.low) / self.step).astype(np.int64)
        place += self.low + place * self.step < inside
        return np.clip(place, 0, self.steps)

    def values(self, places: Integers) -> Floats:
        return np.asarray(self.low + places * self.step, dtype=np.float64)


@claim("QUANT")
@dataclass(frozen=True)
class AllFloats(OrderedValues):
    """All finite floats, in their own order, less as many last bits as numbering the rows needs."""

    rows: int  # of the table

    @property
    def _dropped(self) -> int:
        return self.rows.bit_length() + 2

    @property
    def size(self) -> int:
        return 2 * (LARGEST_KEY >> self._dropped) + 1

    def places(self, column: Floats) -> Integers:
        return signed_keys(column, self._dropped) + (LARGEST_KEY >> self._dropped)

    def values(self, places: Integers) -> Floats:
        return floats_of(places - (LARGEST_KEY >> self._dropped), self._dropped)


@claim("QUANT", "STABLE")
def signed_keys(column: Floats, dropped: int) -> Integers:
    """Return integers in the order of the floats, less their last bits; infinite ones are cut.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.sanitizers.ordered import floats_of, signed_keys
    >>> keys = signed_keys(np.array([-np.inf, -2.5, -0.0, 0.0, 1e-300, 7.0]), 18)
    >>> bool((np.diff(keys) >= 0).all()), floats_of(keys, 18)[[1, 5]].tolist()
    (True, [-2.5, 7.0])
    """
    most = np.finfo(np.float64).max
    finite = np.clip(column, -most, most)
    magnitude = np.abs(finite).view(np.int64) >> dropped
    return np.where(finite < 0, -magnitude, magnitude)


def floats_of(keys: Integers, dropped: int) -> Floats:
    """Return the floats of ``signed_keys``, towards zero; keys beyond all floats mean the last."""
    magnitude = (np.minimum(np.abs(keys), LARGEST_KEY >> dropped) << dropped).view(np.float64)
    return np.where(keys < 0, -magnitude, magnitude)


def values_within(bounds: Sequence[Any] | None) -> EvenSteps | list[EvenSteps | None] | None:
    """Return the values that bounds allow: of every column, or a list with those of each.

    None stands for all floats.
    """
    if bounds is None:
        return None
    if any(entry is None for entry in bounds):  # some columns are bounded, some are not
        parts = [values_within(None if entry is None else [entry]) for entry in bounds]
        return [part[0] if isinstance(part, list) else part for part in parts]
    try:
        table = [np.asarray(entry, dtype=np.float64) for entry in bounds]
    except (TypeError, ValueError) as error:
        raise InvalidParameter(
            "bounds are no numbers; give (low, high) or (low, high, step), or a list of these."
        ) from error
    if table and all(entry.ndim == 0 for entry in table):
        return _grid([float(entry) for entry in table])
    if not table or any(entry.ndim != 1 for entry in table):
        raise InvalidParameter(
            "bounds mix numbers and pairs, or are empty; give one pair, or one for each column."
        )
    return [_grid(entry.tolist()) for entry in table]


def _grid(entry: list[float]) -> EvenSteps:
    if len(entry) not in {2, 3} or not np.all(np.isfinite(entry)) or not entry[0] <= entry[1]:
        raise InvalidParameter(
            f"bounds={tuple(entry)!r}: give finite (low, high) or (low, high, step), low first."
        )
    low, high = entry[:2]
    width = high - low
    # Finer than this, floats could not tell neighbouring values of the grid apart.
    finest = 16 * float(np.spacing(max(abs(low), abs(high))))
    step = entry[2] if len(entry) == 3 else max(width / GRID_STEPS, finest)
    if not step >= finest or not width / step < LARGEST_GRID:
        raise InvalidParameter(
            f"bounds={tuple(entry)!r}: the step must be above {finest!r} and fit less than 2**31 "
            "times; give a larger step, or None for all floats."
        )
    return EvenSteps(low, step, math.floor(width / step * (1 + 1e-12)))
