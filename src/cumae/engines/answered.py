"""Rows with answers, which are arrays or in pieces on an engine."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from cumae.arrays import Integers
from cumae.data import Columns, ParquetRows
from cumae.engines.here import cut, raw_pieces
from cumae.engines.pieces import Filling, Pieces, RawBlock
from cumae.errors import InvalidData, InvalidParameter


@dataclass(frozen=True)
class AnsweredRows:
    """Encoded rows with their labels or numbers.

    Parameters
    ----------
    X : array, or Pieces
        The rows; in pieces, they may have their answers beside them.
    y : array, or Pieces
        The answers; ``Pieces`` if they stand beside the rows on their engine.
    """

    X: Any
    y: Any

    @property
    def both(self) -> Pieces:
        """The private rows in pieces, with their answers."""
        return self.X if isinstance(self.y, Pieces) else cut(self.X, self.y)

    @property
    def tables(self) -> Pieces:
        """The private rows in pieces, without their answers."""
        return self.X.only(0) if isinstance(self.y, Pieces) else cut(self.X)

    @property
    def answers(self) -> Pieces:
        """The answers of the private rows in pieces."""
        return cut(self.y)

    def filled(self, columns: Columns) -> Self:
        """Return rows whose missing numbers stand in the middle of ranges that were found since.

        Parameters
        ----------
        columns : Columns
            All columns, with these ranges.
        """
        if isinstance(self.X, Pieces):
            return replace(self, X=self.X.then(Filling(columns)))
        table = self.X.copy()
        columns.fill(table)
        return replace(self, X=table)


def refuse_elsewhere(rows: AnsweredRows, why: str) -> None:
    """Refuse rows that stay on an engine elsewhere, before anything is paid.

    Parameters
    ----------
    rows : AnsweredRows
        The rows.
    why : str
        What needs them here.
    """
    if isinstance(rows.y, Pieces) and not rows.y.engine.has_rows:
        raise InvalidParameter(
            f"{why}, which needs rows in this process, and they stay on {rows.y.engine.name}; give "
            "the rows themselves, or leave that out."
        )


@dataclass(frozen=True)
class RightAnswers:
    """The number of rows to which a published model gives their label.

    Parameters
    ----------
    model : learner
        The model.
    """

    model: Any

    def __call__(self, block: RawBlock, labels: Integers) -> int:
        try:
            found = self.model.predict(block.rows)
        except InvalidData:
            self.model.columns_.encode(block.rows, block.first)  # counts from the first of all rows
            raise
        return int(np.count_nonzero(found == self.model.classes_[labels]))


def right_answers(model: Any, X: Any, labels: Integers) -> int:
    """Return to how many rows a published model gives their label; those of files go in pieces.

    Parameters
    ----------
    model : learner
        The model.
    X : table
        Rows.
    labels : array of int
        The places of their labels among its classes.
    """
    if not isinstance(X, ParquetRows):
        return RightAnswers(model)(RawBlock(X, 0), labels)
    asked = copy(model)
    asked.budget = asked.random_state = None  # workers neither pay nor draw
    return int(raw_pieces(X, labels).sum(RightAnswers(asked)))
