"""What is checked about private rows before anything is paid.

The owner of the rows sees these messages, and nobody else. They name file, row and column, never a
value.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from cumae.arrays import Integers
from cumae.cli.files.tables import TableFile
from cumae.data import Column, Columns, RowSource, faults_of, label_codes
from cumae.data.readings import canonical, is_missing, read_cells
from cumae.errors import InvalidData, InvalidParameter, warn
from cumae.progress import Progress

BLOCK_ROWS = 65_536  # that are looked at together
MISSING = "missing value"
LARGE_EPSILON = 10.0  # from here on a promise says little
OUTSIDE = "outside its declared bounds"


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


def warn_if_weak(epsilon: float, delta: float, n_rows: int) -> None:
    """Warn of an epsilon or a delta that hardly protects anybody; the number of rows is public."""
    if epsilon > LARGE_EPSILON:
        warn(
            f"epsilon = {epsilon:g} hardly protects anybody: one row may make an outcome "
            f"exp({epsilon:g}) times as likely. 1 is usual.",
        )
    if delta * n_rows >= 1:
        safe = 10.0 ** -math.ceil(math.log10(n_rows) + 1)  # a tenth of 1 / n_rows, or less
        warn(
            f"delta = {delta:g} is not below 1 divided by the number of rows ({n_rows:,}): so "
            f"large a delta would allow to show somebody's row as it is. Give {safe:.0e}, say.",
        )


def label_places(
    table: TableFile,
    label: str,
    classes: Sequence[Any],
    option: str = "--label",
    what: str = "label",
) -> Integers:
    """Return the place of each row's label among the classes; refuse a label that is none of them.

    Parameters
    ----------
    table : TableFile
        The rows.
    label : str
        Name of the column.
    classes : sequence
        The declared classes. In a column of text they are compared as text.
    option, what : str
        The option that names the column, and what its cells are, for messages.
    """
    table.need([label], f"which {option} names")
    (kind,) = table.kinds([label])
    cells = table.cells(label)
    codes = label_codes(table.rows, cells, _as_held(classes, kind, table.name, label))
    wrong = np.flatnonzero(codes < 0)
    if len(wrong):
        row = int(wrong[0])
        gone = is_missing(cells[row]) or not str(cells[row]).strip()
        fault = "is missing" if gone else "is none of the classes"
        names = ", ".join(map(str, classes))
        raise InvalidData(
            f"{table.where(row)}, column {label}: the {what} {fault} ({names}); {len(wrong):,} of "
            f"{len(codes):,} rows are like this. Declare all classes, or take these rows out."
        )
    return codes


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


def check_cells(table: TableFile, columns: Columns, rows: RowSource) -> None:
    """Refuse a table with a cell that is unusable, or with categories that never occur.

    Parameters
    ----------
    table : TableFile
        The rows.
    columns : Columns
        What is declared about the columns that are learnt from.
    rows : RowSource
        The same rows with these columns alone.
    """
    first: dict[str, tuple[int, str]] = {}  # of each column, so that one message tells all
    for row, column, fault in cell_faults(table, columns, rows):
        if is_unusable(column, fault):
            found = (row, fault)
            first[column.name] = min(first.get(column.name, found), found)
    if first:
        raise InvalidData(_unusable(table, first))
    for place, column in enumerate(columns.columns):
        if column.categories is not None and not _occurs(rows, place, column):
            raise InvalidData(
                f"{table.name}, column {column.name}: no cell is one of the declared categories; "
                "look at how they are written."
            )


def _unusable(table: TableFile, first: dict[str, tuple[int, str]]) -> str:
    told = "; ".join(
        f"{table.where(row)}, column {name}: {fault}" for name, (row, fault) in first.items()
    )
    more = "" if len(first) == 1 else " These are the first ones of each column."
    advice = "Mend such cells, or take their rows out."
    if any(fault == MISSING for _, fault in first.values()):
        advice = "Declare missing = true where cells may be missing, and mend others."
    if any(fault == "no number" for _, fault in first.values()):
        advice += " Numbers are written as 1234.5, without commas or units."
    if any(fault == "no date" for _, fault in first.values()):
        advice += " Dates are written as 2024-12-31."
    return f"{told}.{more} {advice}"


def _occurs(rows: RowSource, place: int, column: Column) -> bool:
    how = column.encoding._replace(marked=tuple(range(len(column.categories or ()))))
    for start in range(0, rows.n_rows, BLOCK_ROWS):
        taken = rows.take(np.arange(start, min(start + BLOCK_ROWS, rows.n_rows)))
        if read_cells(taken.iloc[:, place].to_numpy(), how).any():
            return True
    return False


def fault_lines(table: TableFile, columns: Columns) -> list[str]:
    """Return lines for the owner of the rows about cells that do not fit what was declared."""
    found: dict[tuple[str, str], list[int]] = {}
    for row, column, fault in cell_faults(table, columns):
        found.setdefault((column.name, fault), []).append(row)
    return [
        f"column {name}: {fault} in {len(rows):,} rows, first in {table.where(min(rows))}"
        for (name, fault), rows in found.items()
    ]
