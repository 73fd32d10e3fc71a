r"""Values with arrays as bytes, and back.

Bytes are one line of JSON, in which an array is its type and shape, and then the arrays as they lie
in memory, one after the other::

    {"count": 2, "rows": {"$": ["<f8", 2, 1]}}\n................

Nothing is pickled. The length follows from the names, the types and the shapes of arrays of numbers
and of text of a fixed width: numbers of private content belong into arrays. Texts and whole numbers
in the line are as long as they are printed, and so are cells of arrays of objects.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from json.encoder import encode_basestring_ascii
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.codec.cells import cell_from_json, cell_to_json
from cumae.codec.plain import LONGEST, TAG, PlainReader, PlainWriter
from cumae.codec.registry import cannot_be_stored
from cumae.errors import CumaeError, StoreFailed
from cumae.remembering import remembered

BYTES = "bytes"  # stands for the type where bytes are no array
CELLS = "cells"
KINDS = frozenset("biufcSUmM")  # of arrays that lie in memory as they are
BESIDE = ("cost", "frame")  # forms that are written here, and not by ``to_plain``
WORDS = {None: "null", True: "true", False: "false"}
ENCODER = json.JSONEncoder(allow_nan=False)  # json.dumps would make one for each call


def to_bytes(value: Any) -> bytes:
    r"""Return a value as bytes.

    Parameters
    ----------
    value : object
        What ``to_plain`` takes, bytes, data frames, costs, and arrays of objects that are cells.

    Raises
    ------
    InvalidParameter
        If something in it cannot be stored.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.codec import from_bytes, to_bytes
    >>> to_bytes({"count": 2, "rows": np.zeros((1, 1), dtype=np.int8)})
    b'{"count": 2, "rows": {"$": ["|i1", 1, 1]}}\n\x00'
    >>> from_bytes(to_bytes({"count": 2, "rows": np.ones((2, 1))}))["rows"]
    array([[1.],
           [1.]])
    """
    arrays: list[bytes] = []
    line = _line(value, arrays)
    return b"".join([line.encode(), b"\n", *arrays])


def from_bytes(content: bytes) -> Any:
    """Return what ``to_bytes`` was given.

    Raises
    ------
    StoreFailed
        If the bytes are damaged, or are none of ``to_bytes``.
    InvalidParameter
        If a tag or a class is unknown.
    """
    try:
        end = content.index(b"\n")
        reader = _BesideReader(content, end + 1)
        found = reader.value(DECODER.decode(str(content[:end], "ascii")))
    except CumaeError:
        raise
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise _damaged() from error
    if reader.place != len(content):
        raise _wrong_length()
    return found


def _line(value: Any, arrays: list[bytes]) -> str:
    """Return a value as JSON, with types and shapes of arrays, whose bytes are appended.

    Dicts of whole numbers and of arrays are most of what is written, with every answer. So they are
    put together here: an encoder that looks at all values once more takes longer.
    """
    if type(value) is not dict or TAG in value:
        return ENCODER.encode(_BesideWriter(arrays).plain(value))
    found, before = [], len(arrays)
    for name, part in value.items():
        kind = type(part)
        if type(name) is not str:
            del arrays[before:]
            return ENCODER.encode(_BesideWriter(arrays).mapping(value))
        if kind is int and -LONGEST < part < LONGEST:
            text = str(part)
        elif kind is np.ndarray and part.dtype.kind in KINDS:
            text = _described(part.dtype, part.shape)
            arrays.append(part.tobytes())
        elif kind is str:
            text = encode_basestring_ascii(part)
        elif kind is bool or part is None:
            text = WORDS[part]
        elif kind is float and math.isfinite(part):
            text = repr(part)
        elif kind is bytes:
            text = _described(BYTES, (len(part),))
            arrays.append(part)
        else:
            text = _line(part, arrays)
        found.append(f"{encode_basestring_ascii(name)}: {text}")
    return f"{{{', '.join(found)}}}"


def _facts(kind: np.dtype[Any] | str, shape: tuple[int, ...]) -> dict[str, Any]:
    """Return what stands in the line for an array, or for bytes."""
    return {TAG: [kind if isinstance(kind, str) else kind.str, *shape]}


@remembered(1024)
def _described(kind: np.dtype[Any] | str, shape: tuple[int, ...]) -> str:
    """Return the same as JSON; making it anew takes longer."""
    return ENCODER.encode(_facts(kind, shape))


class _BesideWriter(PlainWriter):
    """Turns values into plain ones, with the bytes of arrays beside them."""

    def __init__(self, arrays: list[bytes]) -> None:
        super().__init__(BESIDE)
        self.arrays = arrays

    def plain(self, value: Any) -> Any:
        if isinstance(value, bytes):
            self.arrays.append(value)
            return _facts(BYTES, (len(value),))
        return self.mapping(value) if isinstance(value, Mapping) else super().plain(value)

    def mapping(self, value: Mapping[Any, Any]) -> Any:
        if TAG in value or not all(isinstance(name, str) for name in value):
            return super().mapping(value)
        return {name: self.plain(part) for name, part in value.items()}

    def array(self, value: NDArray[Any]) -> Any:
        if isinstance(value, np.ma.MaskedArray):
            raise cannot_be_stored(type(value))
        if value.dtype.kind == "O":
            cells = ENCODER.encode([cell_to_json(cell) for cell in value.ravel().tolist()])
            return {TAG: CELLS, "shape": list(value.shape), "text": self.plain(cells.encode())}
        if value.dtype.kind not in KINDS:
            raise cannot_be_stored(type(value))
        self.arrays.append(value.tobytes())
        return _facts(value.dtype, value.shape)


class _BesideReader(PlainReader):
    """Turns plain values into those that a ``_BesideWriter`` was given.

    Parameters
    ----------
    content : bytes
        The line and the arrays.
    place : int
        Where the next array begins.
    """

    def __init__(self, content: bytes, place: int) -> None:
        super().__init__(BESIDE)
        self.content, self.place = content, place

    def value(self, plain: Any) -> Any:
        if isinstance(plain, dict) and TAG not in plain:
            return {
                name: self.value(part) if isinstance(part, dict | list) else part
                for name, part in plain.items()
            }
        return super().value(plain)

    def tagged(self, tag: Any, plain: dict[str, Any]) -> Any:
        if isinstance(tag, list):
            return self._beside(tag[0], tuple(tag[1:]))
        if tag == CELLS:
            return self._cells(plain)
        if tag == "array":  # all arrays are beside
            raise _damaged()
        return super().tagged(tag, plain)

    def _cells(self, plain: dict[str, Any]) -> NDArray[Any]:
        text = DECODER.decode(str(self.value(plain["text"]), "ascii"))
        cells = [cell_from_json(cell) for cell in text]
        found = np.fromiter(cells, dtype=object, count=len(cells)).reshape(plain["shape"])
        if list(found.shape) != plain["shape"]:  # numpy takes -1 for any length
            raise _damaged()
        return found

    def _beside(self, kind: Any, shape: tuple[Any, ...]) -> Any:
        """Return the next array, or bytes; nothing is made before it is known to be there."""
        own, length = _known(kind, shape)
        start, self.place = self.place, self.place + length
        if self.place > len(self.content):
            raise _wrong_length()
        if own is None:
            return self.content[start : self.place]
        return np.ndarray(shape, own, self.content, start).copy()


@remembered(1024)
def _known(kind: Any, shape: tuple[Any, ...]) -> tuple[np.dtype[Any] | None, int]:
    """Return the type of an array, None for bytes, and how many bytes it takes.

    Types that hold objects, fields or nothing are refused, and so are negative lengths.
    """
    if not all(type(length) is int and length >= 0 for length in shape):
        raise _damaged()
    if kind == BYTES:
        (length,) = shape
        return None, length
    own = np.dtype(kind)
    if own.kind not in KINDS or own.str != kind or own.itemsize == 0:
        raise _damaged()
    return own, math.prod(shape) * own.itemsize


def _refuse(_: str) -> Any:
    raise _damaged()


DECODER = json.JSONDecoder(parse_constant=_refuse)  # for NaN, which is written otherwise


def _wrong_length() -> StoreFailed:
    return StoreFailed("a record is not as long as it says; the file was damaged or edited.")


def _damaged() -> StoreFailed:
    return StoreFailed("a record is none of cumae's, or the file was damaged or edited.")
