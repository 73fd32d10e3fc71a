"""Halfspaces that are asked at once, each as exactly as if it were asked alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numba
import numpy as np

from cumae.arrays import Floats, Integers
from cumae.concepts import Halfspace
from cumae.ensembles.voters.base import StackedVoters, broken

TILE = 512  # halfspaces that are looked at together, as for boxes
UNSURE = 2.0**-50  # more than the six roundings of a comparison, as in Halfspace
TINY = 2.0**-1000  # more than its underflows


@dataclass(frozen=True, eq=False)
class HalfspaceVoters(StackedVoters):
    """Halfspaces of the same columns, with floats as numbers, and label 1 inside.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    normals : array of float
        A row for each column, with a cell for each halfspace.
    offsets : array of float
        One for each halfspace.
    """

    kind: ClassVar[str] = "halfspaces"
    model_axes: ClassVar[Mapping[str, int]] = {"normals": 1, "offsets": 0}

    n_classes: int
    normals: Floats
    offsets: Floats

    def __post_init__(self) -> None:
        self._check(normals=(np.float64, 2), offsets=(np.float64, 1))
        if self.normals.shape[1] != len(self.offsets):
            raise broken(self.kind)

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def width(self) -> int:  # type: ignore[override]
        """Number of columns."""
        return int(self.normals.shape[0])

    @functools.cached_property  # each answer asks
    def adder(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        return _add, (self.normals, self.offsets)


def floats_of(rule: Halfspace) -> Halfspace | None:
    """Return a halfspace whose numbers are all floats; None for one with longer numbers."""
    return rule if all(type(each) is float for each in (*rule.normal, rule.offset)) else None


def stack_halfspaces(rules: Sequence[Halfspace], n_classes: int) -> HalfspaceVoters:
    """Stack halfspaces of the same columns, with floats as numbers."""
    normals = np.ascontiguousarray(np.array([rule.normal for rule in rules], dtype=np.float64).T)
    return HalfspaceVoters(n_classes, normals, np.array([rule.offset for rule in rules]))


def _add(rows: Floats, normals: Floats, offsets: Floats, votes: Integers) -> None:
    """Add the votes; where rounding might decide, the halfspace itself is asked."""
    ones = np.zeros(len(rows), dtype=np.int64)
    for row in np.flatnonzero(_sides(rows, normals, offsets, ones)):
        for model in _close(rows[row], normals, offsets):
            rule = Halfspace(tuple(normals[:, model].tolist()), float(offsets[model]))
            ones[row] += int(rule.labels(rows[row : row + 1])[0])
    votes[:, 1] += ones
    votes[:, 0] += len(offsets) - ones


@numba.njit(cache=True, nogil=True)
def _sides(rows: Floats, normals: Floats, offsets: Floats, ones: Integers) -> Any:
    """Count halfspaces that surely hold each row; return which rows are close to a boundary."""
    size = len(offsets)
    outside = np.zeros(len(rows), dtype=np.int64)
    gap, margin = np.empty(TILE), np.empty(TILE)
    for first in range(0, size, TILE):
        tile = min(TILE, size - first)
        offset = offsets[first : first + tile]
        for row in range(len(rows)):
            for i in range(tile):
                gap[i] = 0.0
                margin[i] = abs(offset[i])
            for column in range(rows.shape[1]):
                value, normal = rows[row, column], normals[column, first : first + tile]
                for i in range(tile):
                    product = value * normal[i]
                    gap[i] += product
                    margin[i] += abs(product)
            for i in range(tile):
                gap[i] -= offset[i]
                margin[i] = UNSURE * margin[i] + TINY
            held, missed = 0, 0
            for i in range(tile):
                held += int(gap[i] > margin[i])
                missed += int(-gap[i] > margin[i])
            ones[row] += held
            outside[row] += missed
    return ones + outside < size


@numba.njit(cache=True, nogil=True)
def _close(row: Floats, normals: Floats, offsets: Floats) -> Any:
    """Return which halfspaces have their boundary within rounding of a row."""
    found = np.zeros(len(offsets), dtype=np.bool_)
    for model in range(len(offsets)):
        value, size = 0.0, abs(offsets[model])
        for column in range(len(row)):
            product = row[column] * normals[column, model]
            value += product
            size += abs(product)
        margin, gap = UNSURE * size + TINY, value - offsets[model]
        found[model] = not (gap > margin or -gap > margin)
    return np.flatnonzero(found)
