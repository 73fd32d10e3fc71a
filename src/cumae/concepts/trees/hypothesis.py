"""A decision tree as a hypothesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cumae.arrays import Integers
from cumae.codec import cell_from_json, cell_to_json
from cumae.concepts.base import Hypothesis, text
from cumae.data import Columns, check_number, check_table, check_tuple
from cumae.errors import InvalidData, InvalidParameter
from cumae.parameters import check_count


@dataclass(frozen=True)
class Tree(Hypothesis):
    """A complete binary tree: go above where a column is at least the cut, else below.

    Inner nodes are listed level by level, each level from below to above; then follow the labels
    of the leaves in the same order. A tree without inner nodes has a single label.

    Parameters
    ----------
    columns : tuple of int
        The column that each inner node looks at.
    cuts : tuple of float
        The cut of each inner node.
    labels : tuple of int
        The label of each leaf, 0 or 1.

    Examples
    --------
    >>> from cumae.concepts.trees import Tree
    >>> tree = Tree((0, 1, 1), (2.5, 10.0, 20.0), (0, 1, 0, 0))
    >>> tree.predict([[1, 15], [3, 15], [1, 5]]).tolist()
    [1, 0, 0]
    >>> print(tree)
    if column 0 >= 2.5:
        if column 1 >= 20.0: 0
        else: 0
    else:
        if column 1 >= 10.0: 1
        else: 0
    """

    columns: tuple[int, ...]
    cuts: tuple[float, ...]
    labels: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("columns", "cuts", "labels"):
            check_tuple(getattr(self, name), name)
        for column in self.columns:
            check_count(column, "a column")
        for cut in self.cuts:
            check_number(cut, "a cut")
        inner, leaves = len(self.columns), len(self.labels)
        whole = len(self.cuts) == inner == leaves - 1 and leaves & inner == 0
        if not whole or any(label not in (0, 1) for label in self.labels):
            raise InvalidParameter(
                f"{inner} columns, {len(self.cuts)} cuts and {leaves} labels are no tree; give "
                "2^depth - 1 columns and cuts, and 2^depth labels, each 0 or 1."
            )

    def predict(self, X: ArrayLike) -> Integers:
        table = check_table(X)
        if len(table) == 0:
            return np.zeros(0, dtype=np.int64)
        if max(self.columns, default=-1) >= table.shape[1]:
            raise InvalidData(
                f"X has {table.shape[1]} columns, but the tree looks at column "
                f"{max(self.columns)}; give the columns it was chosen from."
            )
        columns, cuts = np.array(self.columns, dtype=np.int64), np.array(self.cuts, dtype=float)
        rows, node = np.arange(len(table)), np.zeros(len(table), dtype=np.int64)
        for _ in range(self.depth):
            node = 2 * node + 1 + (table[rows, columns[node]] >= cuts[node])
        return np.array(self.labels, dtype=np.int64)[node - len(self.columns)]

    @property
    def depth(self) -> int:
        """Number of cuts on the way to a leaf."""
        return len(self.labels).bit_length() - 1

    def _fields(self) -> dict[str, Any]:
        return {
            "columns": [int(column) for column in self.columns],
            "cuts": [cell_to_json(cut) for cut in self.cuts],
            "labels": [int(label) for label in self.labels],
        }

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Tree:
        columns, cuts, labels = fields["columns"], fields["cuts"], fields["labels"]
        return cls(
            tuple(columns),
            tuple(float(cell_from_json(cut)) for cut in cuts),
            tuple(labels),
        )

    def __str__(self) -> str:
        return "\n".join(self._lines(0, _test, "01")).lstrip()

    def describe(self, columns: Columns, classes: Sequence[Any]) -> str:
        """Say what it does with the names of columns and classes; see ``Hypothesis.describe``.

        Cuts are shown with six digits, and cuts of dates as dates. Two leaves of one class are one.

        Parameters
        ----------
        columns : Columns
            The columns of the table that it reads.
        classes : sequence of two
            What labels 0 and 1 stand for.
        """
        return "\n".join(self._lines(0, columns.at_least, classes, joined=True)).lstrip()

    def _lines(
        self,
        node: int,
        test: Callable[[int, float], str],
        classes: Sequence[Any],
        *,
        joined: bool = False,
    ) -> list[str]:
        if node >= len(self.columns):
            return [f" {classes[self.labels[node - len(self.columns)]]}"]
        above, below = (
            self._lines(2 * node + side, test, classes, joined=joined) for side in (2, 1)
        )
        if joined and above == below:
            return above
        lines = []
        head = f"if {test(self.columns[node], self.cuts[node])}:"
        for start, body in ((head, above), ("else:", below)):
            # A leaf follows on the same line; anything else goes below, one step to the right.
            lines += [start + body[0]] if len(body) == 1 else [start, *("    " + b for b in body)]
        return lines


def _test(column: int, cut: float) -> str:
    return f"column {column} >= {text(cut)}"
