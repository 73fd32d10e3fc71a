"""Rows that stay on an engine, as data frames of clusters, or in files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.data import Columns, RowSource, need_contents
from cumae.data.lenient import contents, refuse_without_contents
from cumae.engines.engine import RowEngine
from cumae.engines.pieces import Pieces, RawBlock
from cumae.errors import InvalidData, shown

Answers = Callable[..., NDArray[Any]]  # from cells, and the number of the first of them


class EngineRows(RowSource):
    """Rows that stay on an engine; learners by sums ask for sums over them.

    Parameters
    ----------
    engine : RowEngine
        Whoever works on them.
    table : object
        Pieces in the engine's own form, whose blocks are ``RawBlock``.
    sizes : sequence of int
        The number of rows of each piece.
    names : list of str
        Names of the columns.
    kinds : list of str
        What each column can hold by its type.
    whole : sequence of bool
        Whether the type of each column holds whole numbers only, and was fixed before rows were
        read.
    """

    is_frame = True

    def __init__(
        self,
        engine: RowEngine,
        table: Any,
        sizes: Sequence[int],
        names: list[str],
        kinds: list[str],
        whole: Sequence[bool] = (),
    ) -> None:
        self.engine, self.table, self.sizes = engine, table, tuple(sizes)
        self.names: list[str] = list(names)
        self.kinds = list(kinds)
        self.whole = list(whole) or [False] * len(self.names)
        self.n_rows, self.n_features = sum(self.sizes), len(self.names)
        if not self.n_rows:
            raise InvalidData("X has 0 rows; give rows to learn from.")

    def select(self, names: list[str]) -> EngineRows:
        places = [self._place(name) for name in names]
        kinds = [self.kinds[place] for place in places]
        whole = [self.whole[place] for place in places]
        return EngineRows(self.engine, self.table, self.sizes, list(names), kinds, whole)

    def without(self, label: str) -> EngineRows:
        """Return the same rows without the column of the labels.

        Parameters
        ----------
        label : str
            Name of the column.
        """
        self._place(label)
        return self.select([name for name in self.names if name != label])

    def _place(self, name: str) -> int:
        if self.names.count(name) != 1:
            raise InvalidData(
                f"X has no single column {shown(name)}; it has {self.names!r}.", columns=[name]
            )
        return self.names.index(name)

    def take(self, places: Integers) -> NoReturn:
        del places
        raise InvalidData(
            f"these rows stay on {self.engine.name}, and this needs them in this process. "
            "PrivateKernelClassifier, PrivateLogisticRegression, PrivateKernelRegressor, "
            "PrivateLinearRegression and Ranges learn from rows that stay there; for all others "
            "give the rows themselves."
        )

    def need_contents(self, columns: Columns) -> None:
        """Refuse columns of which (nearly) nothing is left once they are read.

        It is ``cumae.data.need_contents`` by counts. That numbers differ, but become the same
        float, is not looked for.

        Parameters
        ----------
        columns : Columns
            The columns, as far as they are known.
        """
        counts = self.raw.then(Chosen(tuple(self.names))).sum(partial(contents, columns=columns))
        refuse_without_contents(counts, columns)

    @property
    def raw(self) -> Pieces:
        """The rows as they came."""
        return Pieces(self.engine, self.table, self.sizes)

    def encoded(self, columns: Columns) -> Pieces:
        """Return the rows as a table of numbers.

        Parameters
        ----------
        columns : Columns
            How they are read.
        """
        return self.raw.then(Reader(columns, tuple(self.names)))


@dataclass(frozen=True)
class Chosen:
    """A step that leaves some columns of a block."""

    names: tuple[str, ...]

    def __call__(self, block: RawBlock) -> tuple[Any]:
        return (block.rows[list(self.names)],)


def need_contents_of(rows: Any, columns: Columns) -> None:
    """Refuse columns of which (nearly) nothing is left once they are read, before any payment.

    Parameters
    ----------
    rows : table
        All rows; they may stay on an engine.
    columns : Columns
        The columns, as far as they are known.
    """
    if isinstance(rows, EngineRows):
        rows.need_contents(columns)
    else:
        need_contents(rows, columns)


@dataclass(frozen=True)
class Label:
    """A step that reads the answers of a block.

    Parameters
    ----------
    name : str
        Name of the column.
    read : callable
        Returns numbers for cells, given them and the number of the first row.
    """

    name: str
    read: Answers

    def __call__(self, block: RawBlock) -> tuple[NDArray[Any]]:
        return (self.read(block.rows[self.name], first=block.first),)


@dataclass(frozen=True)
class Reader:
    """A step that makes numbers of the rows of a block, and reads their answers.

    Parameters
    ----------
    columns : Columns
        How rows are read; an error names a row and a column.
    names : tuple of str
        The columns that are read, of those that are there.
    label : callable, or None
        A step that reads answers, if there are some.
    """

    columns: Columns
    names: tuple[str, ...]
    label: Callable[[RawBlock], tuple[Any, ...]] | None = None

    def __call__(self, block: RawBlock) -> tuple[Any, ...]:
        table = self.columns.encode(block.rows[list(self.names)], block.first)
        return (table,) if self.label is None else (table, *self.label(block))
