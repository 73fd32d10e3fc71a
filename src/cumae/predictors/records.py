"""Rows of data frames as records of one size, for any cells.

Rows of numbers have one size by themselves. A frame may have columns of text, and a thief of a file
sees how long an encrypted text is. So each cell of such a column gets the same number of
bytes, the parameter ``text_bytes``, and a longer text is cut before anything else is done with it.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.codec import cell_from_json, cell_to_json, register_kind
from cumae.data import RowSource, frame_of, names_of, ordinary_cells
from cumae.errors import InvalidParameter
from cumae.quiet import HiddenFailures

TEXT_BYTES = 64  # of a cell of text, unless something else is asked for
LEAST_TEXT_BYTES = 48  # so that each number, date and time fits into a cell of text, too
CELLS = "cells"  # instead of the type of a column that holds text or mixed cells
HEAD_BYTES = 5  # of a cell: its kind, and four for its length
# Kinds of cells, by numbers that never change: stored files have them.
JSON, TEXT = "json", "text"
KINDS = (JSON, TEXT, "bytes", "date", "datetime", "datetime64", "float", "int")
MISSING = ("float", "nan")
FLOAT_BYTES = 8


@claim("STORE")
def short_text(cell: Any, text_bytes: int) -> Any:
    """Return a cell; a text that takes more bytes in UTF-8 is cut after a whole letter.

    Examples
    --------
    >>> from cumae.predictors.records import short_text
    >>> short_text("Grüße", 4), short_text("Grüße", 3), short_text(12, 1)
    ('Grü', 'Gr', 12)
    """
    if not isinstance(cell, str) or 4 * len(cell) <= text_bytes:
        return cell
    written = cell.encode("utf-8", "surrogatepass")
    if len(written) <= text_bytes:
        return cell
    end = text_bytes
    while end and written[end] & 0xC0 == 0x80:  # the middle of a letter
        end -= 1
    return written[:end].decode("utf-8", "surrogatepass")


def short_texts(frame: pd.DataFrame, text_bytes: int) -> pd.DataFrame:
    """Return a frame whose texts are cut."""
    columns = [frame.iloc[:, place].to_numpy() for place in range(frame.shape[1])]
    found = [
        np.fromiter((short_text(cell, text_bytes) for cell in cells), object, len(cells))
        if cells.dtype.kind == "O"
        else cells
        for cells in columns
    ]
    return frame_of(names_of(frame) or [], found)


class ShortTexts(RowSource):
    """Rows of frames with their texts cut.

    Parameters
    ----------
    rows : RowSource
        The rows as they came.
    text_bytes : int
        Bytes of a cell of text.
    """

    is_frame = True

    def __init__(self, rows: RowSource, text_bytes: int) -> None:
        self._source, self._text_bytes = rows, text_bytes
        self.n_rows, self.n_features = rows.n_rows, rows.n_features
        self.names, self.kinds = rows.names, rows.kinds

    def select(self, names: list[str]) -> ShortTexts:
        return ShortTexts(self._source.select(names), self._text_bytes)

    def take(self, places: Integers) -> Any:
        return short_texts(self._source.take(places), self._text_bytes)


@claim("STORE")
@dataclass(frozen=True)
class RowForm:
    """The form of the records of a frame; it follows from names and types of columns.

    Parameters
    ----------
    names : tuple of str
        The columns.
    types : tuple of str
        Their types, as numpy writes them, or ``"cells"`` for text and mixed cells.
    text_bytes : int
        Bytes of a cell of text.

    Examples
    --------
    >>> import pandas as pd
    >>> from cumae.predictors.records import RowForm
    >>> frame = pd.DataFrame({"age": [31.0, 47.0], "job": ["baker", "nurse"]}).astype(
    ...     {"job": object}
    ... )
    >>> form = RowForm.of(frame, 48)
    >>> form.pack(frame).shape, form.row_bytes
    ((2, 61), 61)
    >>> form.unpack(form.pack(frame)).values.tolist()
    [[31.0, 'baker'], [47.0, 'nurse']]
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    text_bytes: int

    @classmethod
    def of(cls, frame: pd.DataFrame, text_bytes: int) -> RowForm:
        """Return the form of a frame whose columns have types of numpy."""
        kinds = [np.dtype(kind) for kind in frame.dtypes]
        types = tuple(CELLS if kind.kind == "O" else kind.str for kind in kinds)
        return cls(tuple(names_of(frame) or ()), types, text_bytes)

    @property
    def row_bytes(self) -> int:
        """Size of a record."""
        return sum(map(self._width, self.types))

    def _width(self, kind: str) -> int:
        return HEAD_BYTES + self.text_bytes if kind == CELLS else np.dtype(kind).itemsize

    @claim("STORE")
    def pack(self, frame: pd.DataFrame) -> NDArray[np.uint8]:
        """Return the records of a frame: one row of bytes for each row."""
        parts = [np.zeros((len(frame), 0), dtype=np.uint8)]
        for place, kind in enumerate(self.types):
            cells = frame.iloc[:, place].to_numpy()
            if kind == CELLS:
                own = b"".join(_cell_bytes(cell, self.text_bytes) for cell in ordinary_cells(cells))
                part = np.frombuffer(own, dtype=np.uint8)
            else:
                part = np.ascontiguousarray(cells, dtype=kind).view(np.uint8)
            parts.append(part.reshape(len(frame), self._width(kind)))
        return np.hstack(parts)

    def unpack(self, records: NDArray[np.uint8]) -> pd.DataFrame:
        """Return the frame of records."""
        if records.dtype != np.uint8 or records.ndim != 2 or records.shape[1] != self.row_bytes:
            raise InvalidParameter("stored rows do not have the form that they should have.")
        columns, start = [], 0
        for kind in self.types:
            part = np.ascontiguousarray(records[:, start : start + self._width(kind)])
            start += self._width(kind)
            if kind == CELLS:
                cells = map(_cell_from_bytes, part)
                columns.append(np.fromiter(cells, dtype=object, count=len(part)))
            else:
                columns.append(part.view(kind).reshape(len(part)))
        return frame_of(self.names, columns)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "names": list(self.names),
            "types": list(self.types),
            "text_bytes": self.text_bytes,
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> RowForm:
        """Rebuild what ``to_dict`` returned."""
        return cls(tuple(plain["names"]), tuple(plain["types"]), plain["text_bytes"])


register_kind("row form", RowForm)


def rows_to_facts(rows: Any, text_bytes: int) -> dict[str, Any]:
    """Return a table for storing: as records with their form if it is a frame."""
    if not isinstance(rows, pd.DataFrame):
        return {"rows": rows, "form": None}
    form = RowForm.of(rows, text_bytes)
    return {"rows": form.pack(rows), "form": form}


def rows_from_facts(facts: dict[str, Any]) -> Any:
    """Rebuild what ``rows_to_facts`` was given."""
    form = facts["form"]
    return facts["rows"] if form is None else form.unpack(facts["rows"])


def row_bytes(rows: RowSource, text_bytes: int) -> int:
    """Return how many bytes a row of a source takes when it is stored."""
    if not rows.is_frame:
        return FLOAT_BYTES * rows.n_features
    return RowForm.of(rows.take(np.zeros(0, dtype=np.int64)), text_bytes).row_bytes


def _cell_bytes(cell: Any, text_bytes: int) -> bytes:
    """Return a cell as bytes of one length; a cell that does not fit is stored as missing."""
    kind, payload = MISSING[0], MISSING[1].encode()
    with HiddenFailures():  # a cell may be anything, and raise anything
        found_kind, text = _described(cell)
        written = text.encode("utf-8", "surrogatepass")
        if len(written) <= text_bytes:
            kind, payload = found_kind, written
    head = bytes([KINDS.index(kind)]) + len(payload).to_bytes(HEAD_BYTES - 1, "little")
    return head + payload.ljust(text_bytes, b"\0")


def _described(cell: Any) -> tuple[str, str]:
    """Return the kind of a cell, and how it is written."""
    plain = cell_to_json(cell)
    if isinstance(plain, str):
        return TEXT, plain
    if isinstance(plain, dict):
        ((kind, written),) = plain.items()
        return kind, written
    return JSON, json.dumps(plain)


def _cell_from_bytes(record: NDArray[np.uint8]) -> Any:
    content = record.tobytes()
    kind, length = KINDS[content[0]], int.from_bytes(content[1:HEAD_BYTES], "little")
    written = content[HEAD_BYTES : HEAD_BYTES + length].decode("utf-8", "surrogatepass")
    if kind == TEXT:
        return written
    if kind == JSON:
        return json.loads(written)
    return math.nan if (kind, written) == MISSING else cell_from_json({kind: written})
