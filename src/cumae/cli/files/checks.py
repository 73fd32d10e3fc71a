"""Checks of private rows before anything is paid.

The owner of the rows sees these messages, and nobody else. They name file, row and column, never a
value.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.cli.files.tables import FileBlock, TableFile, TableHead, TextRows, joined
from cumae.data import Column, Columns, RowSource, faults_of
from cumae.data.labels import refuse_unfit
from cumae.data.lenient import OUTSIDE, UNKNOWN, fault_marks
from cumae.data.readings import canonical, category_codes, is_missing, missing_cells, places_of
from cumae.errors import InvalidData, InvalidParameter
from cumae.progress import Progress

BLOCK_ROWS = 65_536  # that are looked at together
MISSING = "missing value"
UNFIT = (UNKNOWN, OUTSIDE)  # faults of cells that can be used, but say nothing


def classes_of(given: str, option: str = "--classes") -> list[Any]:
    """Return the classes of ``--classes A,B``: whole numbers if all of them are, else text.

    Parameters
    ----------
    given : str
        What was given.
    option : str
        The option, for messages.

    Examples
    --------
    >>> from cumae.cli.files.checks import classes_of
    >>> classes_of("0,1"), classes_of("<=50K, >50K")
    ([0, 1], ['<=50K', '>50K'])
    >>> classes_of('"yes, often",no')
    ['yes, often', 'no']
    """
    texts = [text.strip() for text in next(csv.reader([given], skipinitialspace=True), [])]
    if len(texts) < 2 or len(set(texts)) < len(texts) or not all(texts):
        raise InvalidParameter(
            f"{option} {given!r} must list at least two labels, all different, with commas in "
            f"between: {option} no,yes."
        )
    whole = [text.removeprefix("-") for text in texts]
    # Only numbers that are written in one way: 01 stays text.
    if all(text.isdecimal() and text.isascii() and str(int(text)) == text for text in whole):
        return [int(text) for text in texts]
    return list(texts)


class LabelColumn:
    """The column of labels, or of subgroups, of which block after block is read.

    Parameters
    ----------
    head : TableHead
        Names and types of the table.
    label : str
        Name of the column.
    classes : sequence
        The declared classes. In a column of text they are compared as text.
    option, what : str
        The option that names the column, and what its cells are, for messages.
    """

    def __init__(
        self,
        head: TableHead,
        label: str,
        classes: Sequence[Any],
        option: str = "--label",
        what: str = "label",
    ) -> None:
        head.need([label], f"which {option} names")
        (kind,) = head.kinds([label])
        self._label, self._classes, self._what = label, classes, what
        self._known = places_of(_as_held(classes, kind, head.name, label))
        self._parts: list[Integers] = []

    def look(self, block: FileBlock) -> None:
        """Read the labels of some rows; refuse one that is none of the classes."""
        cells = block.cells(self._label)
        codes = category_codes(cells, self._known)
        wrong = np.flatnonzero(codes < 0)
        if len(wrong):
            row = int(wrong[0])
            gone = is_missing(cells[row]) or not str(cells[row]).strip()
            fault = "is missing" if gone else "is none of the classes"
            names = ", ".join(map(str, self._classes))
            raise InvalidData(
                f"{block.where(row)}, column {self._label}: the {self._what} {fault} ({names}); "
                f"{len(wrong):,} of the {len(codes):,} rows that were looked at with it are like "
                "this. Declare all classes, or take these rows out."
            )
        self._parts.append(codes)

    @property
    def places(self) -> Integers:
        """The place of each row's label among the classes."""
        return np.concatenate(self._parts)


class Inspection:
    """Looks at private rows block by block; the first block with a fault is the last one.

    Parameters
    ----------
    columns : Columns
        What is declared about the columns that are learnt from, by the names of the file.
    labels : LabelColumn, or what looks at blocks as it does
        The columns of labels and of subgroups.
    """

    def __init__(self, columns: Columns, *labels: Any) -> None:
        self.columns, self._labels = columns, labels
        # Of each column: the cells that fit, and those that are there.
        self._counts = np.zeros((len(columns.columns), 2), dtype=np.int64)
        self._chunks: list[list[NDArray[Any]]] = []

    def look(self, block: FileBlock) -> None:
        """Look at some rows; refuse them if a label or a cell cannot be used."""
        for label in self._labels:
            label.look(block)
        cells = [block.feature(column) for column in self.columns.columns]
        first: dict[str, tuple[int, str]] = {}  # of each column, so that one message tells all
        for place, (column, some) in enumerate(zip(self.columns.columns, cells, strict=True)):
            plain = some.astype(object) if some.dtype.kind == "T" else some  # CSV is text
            marks = fault_marks(plain, column)
            bad = [
                (int(np.argmax(mark)), fault)
                for fault, mark in marks.items()
                if is_unusable(column, fault) and mark.any()
            ]
            if bad:
                first[column.name] = min(bad)
            unfit = sum(np.count_nonzero(marks[fault]) for fault in UNFIT if fault in marks)
            present = np.count_nonzero(~missing_cells(plain, text=column.declared))
            self._counts[place] += (present - unfit, present)
        if first:
            raise InvalidData(_unusable(block, first))
        if block.lines is not None:
            self._chunks.append(cells)

    def end(self, table: TableFile) -> RowSource:
        """Return the columns that are learnt from, unless (nearly) no cell of one fits."""
        for column, (fitting, present) in zip(self.columns.columns, self._counts, strict=True):
            what = "within its declared range"
            if column.categories is not None:
                what = "that is one of its declared categories"
            refuse_unfit(f"{column.name} of {table.name}", int(fitting), int(present), what)
        if not self._chunks:
            return table.features(self.columns.columns)
        names = [column.name for column in self.columns.columns]
        return TextRows(names, joined(self._chunks))


def _as_held(classes: Sequence[Any], kind: str, name: str, label: str) -> list[Any]:
    """Return the classes as a column of this kind holds them."""
    if kind not in ("numbers", "booleans"):
        return [str(canonical(one)) for one in classes]
    truth = {"true": True, "false": False}
    try:
        return [
            truth.get(str(one).lower(), one) if kind == "booleans" else float(one)
            for one in classes
        ]
    except ValueError:
        raise InvalidParameter(
            f"{name}: column {label} holds {kind} by its type, but --classes are text."
        ) from None


def cell_faults(
    table: TableFile, columns: Columns, rows: RowSource | None = None
) -> Iterator[tuple[int, Column, str]]:
    """Yield what is wrong with cells, in the order of blocks of rows: row, column and fault.

    Parameters
    ----------
    table : TableFile
        The rows.
    columns : Columns
        What is declared about the columns that are learnt from.
    rows : RowSource, or None
        The same rows with these columns alone, if they were chosen before.
    """
    chosen = table.features(columns.columns) if rows is None else rows
    shown = None if chosen.n_rows > BLOCK_ROWS else False  # small files are checked at once
    with Progress(f"checking {table.name}: rows", chosen.n_rows, shown) as bar:
        for start in range(0, chosen.n_rows, BLOCK_ROWS):
            taken = chosen.take(np.arange(start, min(start + BLOCK_ROWS, chosen.n_rows)))
            for place, column in enumerate(columns.columns):
                for row, fault in faults_of(taken.iloc[:, place].to_numpy(), column, most=None):
                    yield start + row, column, fault
            bar.advance(len(taken))


def is_unusable(column: Column, fault: str) -> bool:
    """Tell whether a cell cannot be used; in a column of categories it counts as unknown."""
    return column.categories is None and fault != OUTSIDE


def checked_rows(table: TableFile, columns: Columns, *labels: LabelColumn) -> RowSource:
    """Return the columns of a table that was read, once all of its rows passed the checks.

    Parameters
    ----------
    table : TableFile
        The rows.
    columns : Columns
        What is declared about the columns, by the names of the file.
    labels : LabelColumn
        The columns of labels and of subgroups.

    Raises
    ------
    InvalidData
        If a cell is unusable, or (nearly) no cell of a column fits its declaration.
    """
    inspection = Inspection(columns, *labels)
    for block in table.blocks(table.names):
        inspection.look(block)
    return inspection.end(table)


def _unusable(block: FileBlock, first: dict[str, tuple[int, str]]) -> str:
    text = "; ".join(
        f"{block.where(row)}, column {name}: {fault}" for name, (row, fault) in first.items()
    )
    more = "" if len(first) == 1 else " These are the first ones of each column."
    advice = "Mend such cells, or take their rows out."
    if any(fault == MISSING for _, fault in first.values()):
        advice = "Declare missing = true where cells may be missing, and mend others."
    if any(fault == "no number" for _, fault in first.values()):
        advice += ' Numbers are written as 1234.5, or as the schema says: decimal = ",", say.'
    if any(fault == "no date" for _, fault in first.values()):
        advice += ' Dates are written as 2024-12-31, or as the schema says: format = "%d.%m.%Y".'
    return f"{text}.{more} {advice}"


def fault_lines(table: TableFile, columns: Columns) -> list[str]:
    """Return lines for the owner of the rows about cells that do not fit what was declared."""
    found: dict[tuple[str, str], list[int]] = {}
    for row, column, fault in cell_faults(table, columns):
        found.setdefault((column.name, fault), []).append(row)
    return [
        f"column {name}: {fault} in {len(rows):,} rows, first in {table.where(min(rows))}"
        for (name, fault), rows in found.items()
    ]
