"""Forms in which older versions stored states and records; they are read, and never written.

Formats 1 to 3 of an oracle stored a whole state as named arrays in NumPy's npy format. All that is
no array was JSON, in an array of bytes with the name ``"facts"``. Records of format 1 had the same
form. Later ones were a line of JSON and then arrays, unless they held something uncommon.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cumae.codec import TAG, cell_from_json, from_plain
from cumae.data import frame_of
from cumae.errors import CumaeError, InvalidParameter, StoreFailed

FACTS = "facts"
ARRAY = "$array"  # marked the type and shape of an array in a record
DAMAGE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def record_from_bytes(content: bytes) -> Any:
    """Return the facts of a record.

    Raises
    ------
    StoreFailed
        If it is not as long as it says, or is no record.
    InvalidParameter
        If what it holds is damaged.
    """
    if not content.startswith(b"{"):
        return unpack(arrays_from_bytes(content))
    line, _, rest = content.partition(b"\n")
    try:
        found, left = _with_arrays(json.loads(line), rest)
    except DAMAGE as error:
        raise _no_record() from error
    if left:
        raise _wrong_length()
    return found


def _with_arrays(value: Any, rest: bytes) -> tuple[Any, bytes]:
    """Return facts with their arrays, and what is left of the bytes."""
    if not isinstance(value, dict):
        return value, rest
    if ARRAY in value:
        kind, *shape = value[ARRAY]
        count = math.prod(shape) * np.dtype(kind).itemsize
        if len(rest) < count:
            raise _wrong_length()
        return np.frombuffer(rest[:count], dtype=kind).reshape(shape).copy(), rest[count:]
    found = {}
    for name, part in value.items():
        found[name], rest = _with_arrays(part, rest)
    return found, rest


def arrays_from_bytes(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the named arrays of a whole state, or of a record of uncommon values.

    Raises
    ------
    StoreFailed
        If the bytes are damaged.
    """
    file = io.BytesIO(content)
    try:
        names = json.loads(file.readline())
        found = {name: np.lib.format.read_array(file, allow_pickle=False) for name in names}
    except DAMAGE as error:
        raise _no_record() from error
    if file.read(1):
        raise _wrong_length()
    return found


def unpack(arrays: Mapping[str, Any]) -> Any:
    """Return the facts that named arrays stand for.

    Raises
    ------
    InvalidParameter
        If the arrays are damaged, or do not belong together.
    """
    used = {FACTS}
    try:
        found = _unpacked(_json_of(np.asarray(arrays[FACTS])), arrays, used)
    except CumaeError:
        raise
    except DAMAGE as error:
        raise _broken() from error
    if set(arrays) != used:
        raise _broken()
    return found


def _unpacked(value: Any, arrays: Mapping[str, Any], used: set[str]) -> Any:
    if isinstance(value, list):
        return [_unpacked(part, arrays, used) for part in value]
    if not isinstance(value, dict):
        return value
    tag = value.get(TAG)
    if tag is None:
        return {name: _unpacked(part, arrays, used) for name, part in value.items()}
    if tag == "frame":
        return frame_of(value["names"], _unpacked(value["columns"], arrays, used))
    if tag not in ("stored", "cells"):
        return from_plain(value)
    used.add(value["at"])
    array = np.asarray(arrays[value["at"]])
    if _check_of(array) != value["check"]:
        raise _broken()
    if tag == "cells":
        cells = [cell_from_json(one) for one in _json_of(array)]
        array = np.fromiter(cells, dtype=object, count=len(cells)).reshape(value["shape"])
    return array


def _check_of(array: NDArray[Any]) -> list[Any]:
    """Return type, shape and checksum of an array: a part of another state must not pass."""
    return [array.dtype.str, list(array.shape), crc32(array.tobytes())]


def _json_of(array: NDArray[Any]) -> Any:
    if array.dtype != np.uint8 or array.ndim != 1:
        raise _broken()
    return json.loads(array.tobytes())


def _broken() -> InvalidParameter:
    return InvalidParameter(
        "these arrays are no stored state of a predictor, or they are damaged; give what to_arrays "
        "returned."
    )


def _no_record() -> StoreFailed:
    return StoreFailed("a record is none of cumae's, or the file was damaged or edited.")


def _wrong_length() -> StoreFailed:
    return StoreFailed("a record is not as long as it says; the file was damaged or edited.")
