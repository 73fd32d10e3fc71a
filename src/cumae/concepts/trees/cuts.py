"""Cuts that trees are made of, and rows that were compared with them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cumae.concepts.columns import distinct_points, middle
from cumae.concepts.kernels import trees as kernel
from cumae.concepts.trees.hypothesis import Tree
from cumae.data import check_table
from cumae.errors import InvalidParameter
from cumae.parameters import check_count


def cuts_of(points: ArrayLike, max_cuts: int | None = None) -> list[tuple[int, float]]:
    """Return (column, value) for each cut in the middle between neighbouring points of a column.

    Parameters
    ----------
    points : array-like
        Public or sanitized rows.
    max_cuts : int of 1 or more, or None
        The largest number of cuts for a column; of more, this many are taken, evenly by rank.

    Examples
    --------
    >>> from cumae.concepts.trees import cuts_of
    >>> cuts_of([[1, 0], [2, 0], [4, 1]])
    [(0, 1.5), (0, 3.0), (1, 0.5)]
    >>> cuts_of([[1], [2], [3], [4]], max_cuts=1)
    [(0, 2.5)]
    """
    if max_cuts is not None:
        check_count(max_cuts, "max_cuts", least=1)
    found = []
    for number, column in enumerate(check_table(points, name="points").T):
        values = distinct_points(column)
        cuts = middle(values[:-1], values[1:])
        if max_cuts is not None and len(cuts) > max_cuts:
            # Split the gaps into ``max_cuts`` blocks of nearly equal size; take each middle.
            cuts = cuts[(2 * np.arange(max_cuts) + 1) * len(cuts) // (2 * max_cuts)]
        found += [(number, float(cut)) for cut in cuts]
    return found


class TreeCuts:
    """Cuts in order, ready to be used again and again: give it as ``points`` to ``Trees``.

    Parameters
    ----------
    pairs : iterable of pairs of int and float
        (column, value) of each cut, from public or sanitized data; repeated ones count once.
    n_features : int of 1 or more
        Number of columns of the table.

    Examples
    --------
    >>> from cumae.concepts.trees import TreeCuts, Trees
    >>> cuts = TreeCuts([(0, 2.5), (1, 0.5)], n_features=2)
    >>> rows = cuts.bin([[1, 0], [2, 1], [3, 0], [4, 1]])
    >>> tree = Trees(2).choose(cuts, rows, [0, 1, 1, 0], epsilon=1000.0)
    >>> tree.predict([[1, 0], [2, 1], [3, 0], [4, 1]]).tolist()
    [0, 1, 1, 0]
    """

    def __init__(self, pairs: Iterable[tuple[int, float]], n_features: int) -> None:
        self.n_features = check_count(n_features, "n_features", least=1)
        ordered = None
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            ordered = sorted({(int(column), float(value)) for column, value in pairs})
        if ordered is None:
            raise InvalidParameter("pairs are no pairs of numbers; give (column, value) of cuts.")
        self.column = np.array([column for column, _ in ordered], dtype=np.int64)
        self.value = np.array([value for _, value in ordered], dtype=np.float64)
        if np.any((self.column < 0) | (self.column >= n_features) | np.isnan(self.value)):
            raise InvalidParameter(
                f"pairs hold a value that is NaN or a column outside 0 to {n_features - 1}."
            )
        self.starts = np.searchsorted(self.column, np.arange(n_features + 1)).astype(np.int64)

    @classmethod
    def of(cls, points: ArrayLike, max_cuts: int | None = None) -> TreeCuts:
        """Take the cuts from public or sanitized points, as ``cuts_of`` does.

        Parameters
        ----------
        points : array-like
            Public or sanitized rows.
        max_cuts : int of 1 or more, or None
            The largest number of cuts for a column.
        """
        table = check_table(points, name="points")
        return cls(cuts_of(table, max_cuts), table.shape[1])

    def __len__(self) -> int:
        return len(self.value)

    def bin(self, X: ArrayLike) -> BinnedRows:
        """Compare rows with all cuts; the result stands for ``X`` in ``Trees.choose``.

        Parameters
        ----------
        X : array-like
            Rows with ``n_features`` columns.
        """
        table = check_table(X, self.n_features)
        return BinnedRows(self, kernel.codes_of(table, self.starts, self.value))


@dataclass(frozen=True, eq=False, repr=False)
class BinnedRows:
    """Rows of which only the number of cuts at or below each of their values is kept.

    Parameters
    ----------
    cuts : TreeCuts
        The cuts.
    codes : array of int
        For each column a line with the number of cuts at or below the value of each row.
    """

    cuts: TreeCuts
    codes: kernel.Codes  # a line for each column

    def __len__(self) -> int:
        return int(self.codes.shape[1])

    def __repr__(self) -> str:
        return f"BinnedRows({len(self)} rows, {len(self.cuts)} cuts)"

    def take(self, rows: Any) -> BinnedRows:
        """Return some of the rows.

        Parameters
        ----------
        rows : slice or array
            A slice, a mask or row numbers.
        """
        return BinnedRows(self.cuts, np.ascontiguousarray(self.codes[:, rows]))

    def above(self, cut: int) -> NDArray[np.bool_]:
        """Return for each row whether its value is at least that cut.

        Parameters
        ----------
        cut : int
            Number of the cut, from 0.
        """
        column = self.cuts.column[cut]
        return np.asarray(self.codes[column] > cut - self.cuts.starts[column])

    def holds(self) -> NDArray[np.bool_]:
        """Return ``above`` for all cuts: a line for each."""
        rank = np.arange(len(self.cuts)) - self.cuts.starts[self.cuts.column]
        return np.asarray(self.codes[self.cuts.column] > rank[:, None])


def tree_of(cuts: TreeCuts, chosen: Iterable[int], labels: Iterable[int]) -> Tree:
    """Return the tree with these cuts and these labels of the leaves.

    Parameters
    ----------
    cuts : TreeCuts
        All cuts.
    chosen : iterable of int
        The places of the tree's cuts among them, in the order of :class:`Tree`.
    labels : iterable of int
        The labels of its leaves, in the order of :class:`Tree`.
    """
    places = list(chosen)
    columns, values = cuts.column[places].tolist(), cuts.value[places].tolist()
    return Tree(tuple(columns), tuple(values), tuple(labels))
