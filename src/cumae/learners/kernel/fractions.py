"""Noisy counts of fractions, which tell the columns that hold whole numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.data import Columns
from cumae.engines import cut
from cumae.learners.kernel.sums import COUNTED, noisy_sum
from cumae.randomness import Source

PUBLIC_TYPES = ("types of columns are public",)
FRACTIONS_PAY = 3.0  # how many times its noise a usual count of fractions must be


class Fractions:
    """Counts fractions in columns of numbers whose step nobody declared.

    A row adds 1 to the count of a column in which it has a fraction; with fractions in m columns,
    it adds the root of 1 / m to each. So a row moves all counts by 1 together, and where nearly all
    columns hold whole numbers, each of the others is counted in full.

    Parameters
    ----------
    columns : Columns
        All columns.
    """

    @claim("KERNEL")
    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        # Places among the columns, and among the encoded columns; and of marks of missing cells.
        self.asked: list[tuple[int, int]] = []
        self.gaps: list[int | None] = []
        place = 0
        for number, column in enumerate(columns.columns):
            bounds = columns.bounds[place]
            if column.kind == "numbers" and (bounds is None or len(bounds) == 2):
                self.asked.append((number, place))
                self.gaps.append(place + 1 if column.missing else None)
            place += len(column.encoded)

    @property
    @claim("KERNEL")
    def moves(self) -> float:
        """The distance by which a replaced row moves the counts: no count of a row is below 0."""
        return COUNTED * math.sqrt(min(len(self.asked), 2))

    def pays(self, strength: float) -> bool:
        """Tell whether columns of fractions would stand out, if all of them were such.

        Parameters
        ----------
        strength : float
            Number of rows, times the mu of these counts.
        """
        count = len(self.asked)
        return count > 0 and strength > FRACTIONS_PAY * math.sqrt(count * min(count, 2))

    @claim("KERNEL")
    @np.errstate(all="ignore")  # here, too: a thread does not know what its caller ignores
    def counts(self, table: Floats) -> Integers:
        """Return how many rows have a fraction in each column; a row adds a length of 1 at most."""
        cells = table[:, [place for _, place in self.asked]]
        broken = cells != np.rint(cells)
        for number, gap in enumerate(self.gaps):
            if gap is not None:  # what stands in for a missing cell tells nothing
                broken[:, number] &= table[:, gap] != 1
        each = np.floor(COUNTED / np.sqrt(np.maximum(broken.sum(axis=1), 1)))
        return np.asarray(each @ broken, dtype=np.int64)  # exact: far below 2^53

    @claim("KERNEL")
    def release(self, table: Any, rows: int, noise: float, source: Source) -> list[bool]:
        """Release the counts, and return which of all columns hold whole numbers.

        Parameters
        ----------
        table : array of float, or what has pieces
            Encoded private rows.
        rows : int
            Their number.
        noise : float
            Scale of the noise.
        source : Source
            Where coins come from.
        """
        found = noisy_sum(self.counts, cut(table), noise, source) / (COUNTED * rows)
        least, count = 0.0, len(found)
        for _ in range(count):  # the fewer columns hold fractions, the more each row tells
            least = 0.5 / math.sqrt(max(count, 1))
            if np.count_nonzero(found > least) == count:
                break
            count = int(np.count_nonzero(found > least))
        whole = [False] * len(self.columns.columns)
        for (number, _), share in zip(self.asked, found.tolist(), strict=True):
            whole[number] = share <= least
        return whole
