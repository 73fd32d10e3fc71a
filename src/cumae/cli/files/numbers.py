"""The column of a number that is to be predicted."""

from __future__ import annotations

import numpy as np

from cumae.arrays import Floats
from cumae.cli.files.tables import FileBlock, TableHead
from cumae.data.readings import missing_cells, numbers_in_text
from cumae.errors import InvalidData, InvalidParameter

FIND = "auto"  # a range that is found privately


def range_of(given: str, option: str = "--range") -> tuple[float, float] | None:
    """Return the range of ``--range LOW,HIGH``, or None for one that is to be found.

    Parameters
    ----------
    given : str
        What was given.
    option : str
        The option, for messages.

    Examples
    --------
    >>> from cumae.cli.files.numbers import range_of
    >>> range_of("0,99.5"), range_of("auto")
    ((0.0, 99.5), None)
    """
    if given.strip() == FIND:
        return None
    try:
        low, high = (float(text) for text in given.split(","))
    except ValueError:
        raise InvalidParameter(
            f"{option} {given!r} must have two numbers, such as {option} 0,100, or be {FIND}: then "
            "a range is found privately, and paid for."
        ) from None
    return low, high


class NumberColumn:
    """The column of a number, of which block after block is read.

    Parameters
    ----------
    head : TableHead
        Names and types of the table.
    label : str
        Name of the column.
    """

    def __init__(self, head: TableHead, label: str) -> None:
        head.need([label], "which --label names")
        self._label = label
        self._parts: list[Floats] = []

    def look(self, block: FileBlock) -> None:
        """Read the numbers of some rows; refuse a cell that is none."""
        cells = np.asarray(block.cells(self._label), dtype=object)
        numbers = np.asarray(numbers_in_text(cells), dtype=np.float64)
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if len(wrong):
            row = int(wrong[0])
            fault = "is missing" if missing_cells(cells, text=True)[row] else "is no number"
            raise InvalidData(
                f"{block.where(row)}, column {self._label}: the label {fault}; {len(wrong):,} of "
                f"the {len(cells):,} rows that were looked at with it are like this. Take these "
                "rows out, or name the classes with --classes if it is no number."
            )
        self._parts.append(numbers)

    @property
    def places(self) -> Floats:
        """The number of each row."""
        return np.concatenate(self._parts)
