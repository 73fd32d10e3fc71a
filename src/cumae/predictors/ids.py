"""Ids of users, clients and queries as keyed hashes: all that is remembered of them."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.claims import claim
from cumae.data import plain_id
from cumae.randomness import Source

ID_BYTES = 16
KEY_BYTES = 32


@claim("STORE", "USER", "MEMO")
class HiddenIds:
    """Turns ids into HMACs, under a key that a predictor has for ever.

    Ids that Python calls equal, as 1 and 1.0, get the same one, by ``cumae.data.plain_id``.

    Parameters
    ----------
    key : bytes
        A secret of 32 bytes.

    Examples
    --------
    >>> from cumae.predictors.ids import HiddenIds
    >>> hidden = HiddenIds(bytes(32))
    >>> hidden("anna") == hidden("anna"), hidden(1) == hidden(1.0), hidden("1") == hidden(1)
    (True, True, False)
    """

    def __init__(self, key: bytes) -> None:
        self.key = key
        self._for_ids, self._for_rows = derived(key, "ids"), derived(key, "rows")

    @classmethod
    def draw(cls, source: Source) -> HiddenIds:
        """Draw a key."""
        return cls(source.words(KEY_BYTES // 8).tobytes())

    def __call__(self, one: Any) -> bytes:
        return self._hidden(_id_bytes(plain_id(one)))

    def known_as(self, one: Any) -> tuple[bytes, ...]:
        """Return the HMAC of an id, and then the one that earlier versions may have written.

        These took a fraction that was a ``np.float64`` for another id than the same ``float``.
        """
        number = plain_id(one)
        found = self._hidden(_id_bytes(number))
        if not isinstance(number, float):
            return (found,)
        return found, self._hidden(f"fnp.float64({number!r})".encode())

    def row(self, cells: bytes) -> bytes:
        """Return what stands for the cells of a row in a memo."""
        return hmac.digest(self._for_rows, cells, "sha256")[:ID_BYTES]

    def _hidden(self, id_bytes: bytes) -> bytes:
        return hmac.digest(self._for_ids, id_bytes, "sha256")[:ID_BYTES]


def derived(key: bytes, use: str) -> bytes:
    """Return a key for one use, from which neither the key nor those for other uses follow."""
    return hmac.digest(key, b"cumae " + use.encode(), hashlib.sha256)


def as_rows(hidden: Iterable[bytes]) -> NDArray[np.uint8]:
    """Return hidden ids as a table with one row for each: its size follows from their number.

    Examples
    --------
    >>> from cumae.predictors.ids import as_rows, from_rows
    >>> from_rows(as_rows([bytes(16)])) == [bytes(16)]
    True
    """
    return np.frombuffer(b"".join(hidden), dtype=np.uint8).reshape(-1, ID_BYTES)


def sorted_rows(hidden: Iterable[bytes]) -> NDArray[np.uint8]:
    """Return hidden ids as ``as_rows`` does, in the order of their bytes.

    Examples
    --------
    >>> from cumae.predictors.ids import from_rows, sorted_rows
    >>> from_rows(sorted_rows([b"b" * 16, b"a" * 16]))[0]
    b'aaaaaaaaaaaaaaaa'
    """
    table = as_rows(hidden)
    high, low = np.ascontiguousarray(table).view(">u8").T.astype(np.uint64)
    return np.ascontiguousarray(table[np.lexsort((low, high))])


def from_rows(table: NDArray[np.uint8]) -> list[bytes]:
    """Return what ``as_rows`` was given."""
    return [row.tobytes() for row in table]


def _id_bytes(one: Any) -> bytes:
    if isinstance(one, bytes):
        return b"b" + one
    if isinstance(one, str):
        return b"s" + one.encode("utf-8", "surrogatepass")
    if isinstance(one, float):
        return b"f" + repr(one).encode()
    if one is None:
        raise AssertionError("ids are checked before")
    return b"i" + hex(one).encode()
