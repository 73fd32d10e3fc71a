"""Encryption under the key of an epoch, and bytes by which two requests are compared."""

from __future__ import annotations

import datetime as dt
import hmac
import json
import os
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
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

if TYPE_CHECKING:
    from cryptography import exceptions
    from cryptography.hazmat.primitives.ciphers import aead
else:
    aead = LaterModule("cryptography.hazmat.primitives.ciphers.aead", *STORE)
    exceptions = LaterModule("cryptography.exceptions", *STORE)

NONCE_BYTES = 12
CHUNK = 2**26  # bytes that are encrypted at once; SQLite takes a gigabyte in one cell at most
PIECE = 2**17  # the same for pieces of a state, which are deleted part by part


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
        self._here = json.dumps([oracle, epoch])[:-1]
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

    def close(
        self,
        content: bytes,
        kind: str,
        place: str | int,
        *,
        size: int = 0,
        first: int = 0,
        count: int = 0,
    ) -> list[bytes]:
        """Return encrypted parts; kind and place say what they are, and must be given again.

        Parameters
        ----------
        content : bytes
            What is encrypted.
        kind, place : str, and str or int
            What it is.
        size : int
            Bytes of a part; 0 for ``CHUNK``.
        first, count : int
            The place of the first part, and how many there are in all, if there are others.
        """
        size = size or CHUNK
        starts = range(0, max(1, len(content)), size)
        parts = []
        for part, start in enumerate(starts, first):
            nonce = os.urandom(NONCE_BYTES)
            bound = self._bound(kind, place, part, count or len(starts))
            piece = content[start : start + size]
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
