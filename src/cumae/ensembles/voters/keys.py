"""Rules about ordered keys: each key is a row of numbers that are compared one after the other."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numba
import numpy as np

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts import KeyRuns
from cumae.ensembles.voters.base import StackedVoters, Voters, broken


@claim("KEYS", "SHARDS")
@dataclass(frozen=True, eq=False)
class KeyVoters(StackedVoters):
    """Rules that label 1 the keys in their runs [low, high).

    As with cuts of a column, a query is a search among the ends of all runs.

    Parameters
    ----------
    size, n_classes, width : int
        Numbers of rules, of classes, and of numbers of a key.
    base : int
        Rules that label 1 what lies below all ends.
    cuts : array of float of shape (ends, width)
        Distinct ends of runs, in order.
    ones : array of int
        How many rules label 1, after 0, 1, 2, ... of the ends.
    """

    kind: ClassVar[str] = "keys"
    quick: ClassVar[bool] = True
    model_axes: ClassVar[Mapping[str, int]] = {}

    size: int
    n_classes: int
    width: int
    base: int
    cuts: Floats
    ones: Integers

    def __post_init__(self) -> None:
        self._check(cuts=(np.float64, 2), ones=(np.int64, 1))
        if len(self.ones) != len(self.cuts) + 1 or self.cuts.shape[1] != self.width:
            raise broken(self.kind)

    def __len__(self) -> int:
        return self.size

    @functools.cached_property  # each answer asks
    def adder(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        return _look_up_keys, (self.cuts, self.ones, self.size)

    def parts(self, n: int) -> list[Voters]:
        """Return itself: more rules do not take more time."""
        del n
        return [self]


def key_ends(rule: KeyRuns) -> tuple[list[list[float]], list[list[float]]]:
    """Return the lower and the upper ends of a rule's runs; infinite in front where one is open."""
    lowest, highest = ((end,) + (0.0,) * (rule.width - 1) for end in (-math.inf, math.inf))
    lows = [list(lowest if low is None else low) for low, _ in rule.runs]
    return lows, [list(highest if high is None else high) for _, high in rule.runs]


def stack_key_runs(rules: Sequence[KeyRuns], n_classes: int) -> KeyVoters:
    """Stack rules about keys of one width."""
    ends = [key_ends(rule) for rule in rules]
    width = rules[0].width
    lows, highs = (
        np.array([end for rule in ends for end in rule[side]], dtype=np.float64).reshape(-1, width)
        for side in (0, 1)
    )
    return stack_keys(len(rules), n_classes, lows, highs)


@claim("KEYS", "SHARDS")
def stack_keys(size: int, n_classes: int, lows: Floats, highs: Floats) -> KeyVoters:
    """Stack so many rules, given the ends of the runs of all of them.

    Parameters
    ----------
    size, n_classes : int
        Numbers of rules and classes.
    lows, highs : array of float of shape (runs, width)
        The ends of runs, which do not overlap within a rule; infinite in front where one is open.
    """
    ends = np.vstack([lows, highs])
    steps = np.repeat([1, -1], len(lows))
    base = int(steps[ends[:, 0] == -math.inf].sum())
    inner = np.isfinite(ends[:, 0])
    ends, steps = ends[inner], steps[inner]
    order = np.lexsort(ends.T[::-1])
    ordered = ends[order]
    new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))[: len(ordered)]
    change = np.zeros(int(new.sum()) + 1, dtype=np.int64)
    np.add.at(change, np.cumsum(new), steps[order])
    change[0] = base
    cuts = np.ascontiguousarray(ordered[new])
    return KeyVoters(size, n_classes, lows.shape[1], base, cuts, np.cumsum(change))


@numba.njit(cache=True, nogil=True)
def _look_up_keys(rows: Floats, cuts: Floats, ones: Integers, size: int, votes: Integers) -> None:
    width = rows.shape[1]
    for row in range(len(rows)):
        low, high = 0, len(cuts)
        while low < high:  # how many ends are at most the key
            middle = (low + high) // 2
            above = False
            for word in range(width):
                if cuts[middle, word] != rows[row, word]:
                    above = cuts[middle, word] > rows[row, word]
                    break
            if above:
                high = middle
            else:
                low = middle + 1
        votes[row, 1] = ones[low]
        votes[row, 0] = size - ones[low]
