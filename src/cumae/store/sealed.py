"""Arrays and plain values as bytes, and their encryption under the key of an epoch.

Bytes are a line of JSON and then arrays: as they lie in memory or, in snapshots and in records of
uncommon values, in NumPy's npy format. Nothing is pickled.
"""

from __future__ import annotations

import datetime as dt
import hmac
import io
import json
import math
import os
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any
from uuid import UUID

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.claims import claim
from cumae.data import RowSource, table_of
from cumae.errors import InvalidData, StoreFailed
from cumae.extras import STORE, LaterModule
from cumae.predictors.ids import ID_BYTES, derived
from cumae.predictors.state import ENCODER, PLAIN, Arrays, pack, unpack
from cumae.remembering import remembered

if TYPE_CHECKING:
    from cryptography import exceptions
    from cryptography.hazmat.primitives.ciphers import aead
else:
    aead = LaterModule("cryptography.hazmat.primitives.ciphers.aead", *STORE)
    exceptions = LaterModule("cryptography.exceptions", *STORE)

NONCE_BYTES = 12
ARRAY = "$array"  # what marks the type and shape of an array in a record
CHUNK = 2**26  # bytes that are encrypted at once; SQLite takes a gigabyte in one cell at most


def to_bytes(facts: Mapping[str, Any]) -> bytes:
    """Return facts, as ``cumae.predictors.state.pack`` takes them, as bytes.

    Most records are whole numbers, texts and arrays of numbers. They become a line of JSON in which
    an array is its type and shape, and then the bytes of the arrays. All other records, and those
    of format 1, are stored as ``pack`` returns them, which takes longer and about four times the
    bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.store.sealed import from_bytes, to_bytes
    >>> from_bytes(to_bytes({"count": 2, "grown": {"rows": np.ones((2, 1))}}))["grown"]["rows"]
    array([[1.],
           [1.]])
    """
    arrays: list[NDArray[Any]] = []
    try:
        line = _line(facts, arrays)
    except _NeedsPack:
        return arrays_to_bytes(pack(facts))
    return b"".join([line.encode(), b"\n", *[array.tobytes() for array in arrays]])


def from_bytes(content: bytes) -> Any:
    """Return what ``to_bytes`` was given."""
    if not content.startswith(b"{"):
        return unpack(arrays_from_bytes(content))
    line, _, rest = content.partition(b"\n")
    found, left = _with_arrays(json.loads(line), rest)
    if left:
        raise _wrong_length()
    return found


def _wrong_length() -> StoreFailed:
    return StoreFailed("a record is not as long as it says; the file was damaged or edited.")


class _NeedsPack(Exception):
    """Something in a record needs more than its type and shape to be written."""


def _line(facts: Mapping[str, Any], arrays: list[NDArray[Any]]) -> str:
    """Return facts as JSON, with types and shapes in the place of arrays, which are appended.

    Each value is looked at anyway, because lists, floats and the like need ``pack``; an encoder
    that looks at them once more takes longer.
    """
    if ARRAY in facts:
        raise _NeedsPack
    found = []
    for name, value in facts.items():
        kind = type(value)
        if type(name) is not str:
            raise _NeedsPack
        if kind is int:  # most of them; an encoder takes longer
            text = str(value)
        elif kind is dict:
            text = _line(value, arrays)
        elif kind is np.ndarray and value.dtype.kind in "biuf":
            arrays.append(value)
            text = _described(value.dtype.str, value.shape)
        elif kind in PLAIN:
            text = ENCODER.encode(value)
        else:
            raise _NeedsPack
        found.append(f"{encode_basestring_ascii(name)}: {text}")
    return f"{{{', '.join(found)}}}"


@remembered(1024)
def _described(kind: str, shape: tuple[int, ...]) -> str:
    """Return what stands in the place of an array; making it anew takes longer."""
    return ENCODER.encode({ARRAY: [kind, *shape]})


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


def arrays_to_bytes(arrays: Arrays) -> bytes:
    """Return named arrays as bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.store.sealed import arrays_from_bytes, arrays_to_bytes
    >>> arrays_from_bytes(arrays_to_bytes({"rows": np.ones(2)}))
    {'rows': array([1., 1.])}
    """
    parts = [_names(tuple(arrays))]
    for array in arrays.values():
        if array.dtype.hasobject:
            raise AssertionError("only plain arrays are stored")
        parts += [_npy_header(array.dtype.str, array.shape), array.tobytes()]
    return b"".join(parts)


@remembered(256)
def _names(names: tuple[str, ...]) -> bytes:
    """Return the first line: the names of the arrays that follow."""
    return json.dumps(names).encode() + b"\n"


@remembered(4096)
def _npy_header(kind: str, shape: tuple[int, ...]) -> bytes:
    """Return what stands before an array in the npy format; making it anew takes longest."""
    file = io.BytesIO()
    facts = {"descr": kind, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, facts)
    return file.getvalue()


def arrays_from_bytes(content: bytes) -> Arrays:
    """Return what ``arrays_to_bytes`` was given."""
    file = io.BytesIO(content)
    names = json.loads(file.readline())
    return {name: np.lib.format.read_array(file, allow_pickle=False) for name in names}


@claim("STORE")
class Seal:
    """Encrypts and decrypts what belongs to one epoch of one oracle.

    Every piece is bound to the oracle, the epoch, its place and its kind: one that was put in
    another's place, or into another file, does not open.

    Parameters
    ----------
    key : bytes
        The key of the epoch, of 32 bytes.
    oracle : str
        Id of the oracle.
    epoch : int
        Number of the epoch.
    """

    def __init__(self, key: bytes, oracle: str, epoch: int) -> None:
        self.oracle, self.epoch = oracle, epoch
        # Oracle and epoch; ``_bound`` adds the rest of the list.
        self._here = ENCODER.encode([oracle, epoch])[:-1]
        self._cipher = aead.AESGCM(derived(key, "blobs"))
        self._for_ids = derived(key, "requests")

    def _bound(self, kind: str, place: str | int, part: int, count: int) -> bytes:
        """Return what a part is bound to, as a list in JSON.

        It is put together here because an encoder takes longer. Kinds are words of this package,
        and places are numbers or hexadecimal: nothing needs a mark of its own in JSON, and no two
        lists look alike.
        """
        name = place if type(place) is int else f'"{place}"'
        return f'{self._here}, "{kind}", {name}, {part}, {count}]'.encode()

    def close(self, content: bytes, kind: str, place: str | int) -> list[bytes]:
        """Return encrypted parts; kind and place say what they are, and must be given again."""
        starts = range(0, max(1, len(content)), CHUNK)
        parts = []
        for part, start in enumerate(starts):
            nonce = os.urandom(NONCE_BYTES)
            bound = self._bound(kind, place, part, len(starts))
            piece = content[start : start + CHUNK]
            parts.append(nonce + self._cipher.encrypt(nonce, piece, bound))
        return parts

    def open(self, parts: list[bytes], kind: str, place: str | int) -> bytes:
        """Return what was encrypted; raise ``StoreFailed`` if anything was changed."""
        found = []
        try:
            for part, sealed in enumerate(parts):
                bound = self._bound(kind, place, part, len(parts))
                nonce, piece = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
                found.append(self._cipher.decrypt(nonce, piece, bound))
        except (exceptions.InvalidTag, ValueError) as error:
            raise StoreFailed(
                "a part of the file does not open with its key: it was damaged, or is not in its "
                "place. Put the right file back."
            ) from error
        return b"".join(found)

    def name_of(self, id_bytes: bytes) -> bytes:
        """Return a name for the id of a request, which tells nothing without the key."""
        return hmac.digest(self._for_ids, b"id" + id_bytes, "sha256")[:ID_BYTES]

    def digest_of(self, body_bytes: bytes) -> str:
        """Return a fingerprint of the body of a request: equal bodies have the same one."""
        return hmac.digest(self._for_ids, b"body" + body_bytes, "sha256").hex()


# What stands for itself in the comparison of two requests, by its type and how it is printed.
# Others may print the same and differ.
PRINTED = {
    *(bool, int, float, complex, str, bytes, range, type(None), type(pd.NA), type(pd.NaT)),
    *(dt.date, dt.timedelta, pd.Timedelta, Decimal, Fraction, UUID),
}
TIMES = (dt.datetime, dt.time, pd.Timestamp)
ZONES = ("datetime", "zoneinfo", "pytz", "dateutil")  # modules of zones that print what they are
NUMBERS = "biufcmMSU"  # kinds of arrays that hold their cells themselves


@claim("STORE")
def canonical(value: Any) -> bytes:  # noqa: PLR0911 - one line a kind of value
    """Return bytes that stand for a value: the same for the same value given in the same form.

    Everything that can change an answer is in them. What is not known, such as a tensor or an
    object of a class of the caller's own, raises ``InvalidData``: it may print the same and differ.
    """
    kind = type(value)
    if kind in PRINTED or kind in TIMES or (issubclass(kind, np.generic) and kind is not np.void):
        return b"v" + _printed(value).encode("utf-8", "surrogatepass")
    if isinstance(value, Mapping):
        return b"d" + _joined([canonical([name, value[name]]) for name in sorted(value)])
    if isinstance(value, pd.DataFrame):
        columns = [value.iloc[:, place].to_numpy() for place in range(value.shape[1])]
        return b"t" + _joined([canonical(list(value.columns)), *map(canonical, columns)])
    if isinstance(value, np.ma.MaskedArray):
        parts = (np.ma.getmaskarray(value), np.ma.getdata(value))
        return b"m" + _joined(list(map(canonical, parts)))
    if isinstance(value, np.ndarray):
        return _canonical_array(value)
    if isinstance(value, list | tuple):
        return b"l" + _joined([canonical(one) for one in value])
    if isinstance(value, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
        return b"n" + canonical(value.to_numpy())
    rows = table_of(value)
    if isinstance(rows, RowSource):
        return b"r" + _joined([canonical(rows.names), canonical(rows.take(np.arange(rows.n_rows)))])
    column = nw.from_native(value, series_only=True)  # of polars or pyarrow; refuses all else
    return b"c" + canonical(column.to_list())


def _canonical_array(value: NDArray[Any]) -> bytes:
    if value.dtype.kind in NUMBERS:
        facts = json.dumps([value.dtype.str, list(value.shape)]).encode()
        return b"a" + _joined([facts, np.ascontiguousarray(value).tobytes()])
    found = [canonical(list(value.shape)), canonical(value.ravel().tolist())]
    if value.dtype.kind == "V":  # names are part of what is asked
        found.append(canonical(repr(value.dtype)))
    return b"o" + _joined(found)


def _printed(value: Any) -> str:
    """Return the type of a value and how it is printed, if that says everything."""
    zone = value.tzinfo if isinstance(value, TIMES) else None
    if zone is not None and type(zone).__module__.partition(".")[0] not in ZONES:
        raise InvalidData("a time has a zone that cannot be compared.")
    return f"{type(value).__name__}:{value!r}"


def _joined(parts: list[bytes]) -> bytes:
    """Return parts as one, so that no other parts give the same."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)
