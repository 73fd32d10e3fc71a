"""Cells as ordered keys: bytes of one length that compare as the cells do.

A rule about one column only compares. So a text, a date, a number of any length or an id is carried
as a key whose bytes, read from the first on, have the order of what they stand for. Keys travel as
numbers: six bytes in each float, which floats hold exactly.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.arrays import Floats
from cumae.claims import claim
from cumae.errors import InvalidParameter
from cumae.quiet import HiddenFailures

MAX_BYTES = 64  # of a key of text or numbers, unless something else is declared
MOST_BYTES = 1_000
LEAST_BYTES = 8
TIME_BYTES = ID_BYTES = 16
WORD_BYTES = 6  # 48 bits, of the 53 that a float holds
LARGEST_WORD = 2.0 ** (8 * WORD_BYTES) - 1
PLACES = np.array([256.0**place for place in reversed(range(WORD_BYTES))])

EXPONENT_BYTES = 4
MIDDLE = 1 << (8 * EXPONENT_BYTES - 1)  # the exponent 0
NEGATIVE, ZERO, POSITIVE = b"\x00", b"\x01", b"\x02"
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
TOO_FINE = re.compile(r"[.,]\d{7}")  # Python would cut digits of a second behind the sixth

EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - times without a zone are compared as they are
IN_A_SECOND = 10**18
UNITS = {"W": 604_800, "D": 86_400, "h": 3_600, "m": 60, "s": 1}
UNITS = {unit: seconds * IN_A_SECOND for unit, seconds in UNITS.items()}
UNITS |= {"ms": 10**15, "us": 10**12, "ns": 10**9, "ps": 10**6, "fs": 10**3, "as": 1}
SHIFTED = bytes([*range(1, 256), 255])  # each byte plus one; in UTF-8 the last one never occurs

SHOWN = 20  # characters of a long text, and pairs of digits

NO_KEY: bytes | None = None


@claim("KEYS")
@dataclass(frozen=True)
class Order:
    """The kind of an ordered column, and how long its keys are.

    Parameters
    ----------
    kind : {"text", "numbers", "dates", "ids"}
        What cells are: texts, by their code points; integers and decimals of any length; dates and
        times, by the moment in UTC where they have a zone; UUIDs.
    max_bytes : int
        The longest key of a text or a number. A text has one byte for each byte of UTF-8, a number
        five, and one for each two digits.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.data.texts import Order
    >>> order = Order("numbers", 24)
    >>> low, high = order.words(np.array([10**30 + 1, "1000000000000000000000000000002"], object))
    >>> low.tolist() < high.tolist(), order.n_words
    (True, 4)
    """

    kind: str
    max_bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        if self.kind not in READERS:
            raise InvalidParameter(
                f"ordered={self.kind!r} is none of {', '.join(sorted(READERS))}; give one of them."
            )
        given: object = self.max_bytes
        whole = isinstance(given, int) and not isinstance(given, bool)
        if not whole or not LEAST_BYTES <= self.max_bytes <= MOST_BYTES:
            raise InvalidParameter(
                f"max_bytes={self.max_bytes!r} is no whole number from {LEAST_BYTES} to "
                f"{MOST_BYTES:,}; give one."
            )

    @property
    def key_bytes(self) -> int:
        """Bytes of a key."""
        fixed = {"dates": TIME_BYTES, "ids": ID_BYTES}
        return fixed.get(self.kind, self.max_bytes)

    @property
    def n_words(self) -> int:
        """Numbers that hold a key."""
        return -(-self.key_bytes // WORD_BYTES)

    @claim("KEYS", "EVER")
    def words(self, cells: NDArray[Any]) -> Floats:
        """Return the keys of cells as numbers, each read by itself; NaN for what has none.

        That is a missing cell, one of another kind, and one whose key would be too long.

        Parameters
        ----------
        cells : array
            The cells, as they came.
        """
        room = self.n_words * WORD_BYTES
        found = [self.key(cell) for cell in _each(cells)]
        there = np.array([key is not None for key in found], dtype=bool)
        joined = b"".join((key or b"").ljust(room, b"\0") for key in found)
        table = np.frombuffer(joined, dtype=np.uint8).reshape(len(found), self.n_words, WORD_BYTES)
        words = np.asarray(table @ PLACES)  # below 2^48, so that no sum is rounded
        words[~there] = np.nan
        return words

    @claim("KEYS", "EVER")
    def key(self, cell: Any) -> bytes | None:
        """Return the key of one cell, without zeros at its end; None if it has none.

        Parameters
        ----------
        cell : object
            Anything; nothing that it does is seen.
        """
        with HiddenFailures():  # a cell may be anything, and raise anything
            key = READERS[self.kind](cell, self.key_bytes)
            return key if key is not None and len(key) <= self.key_bytes else NO_KEY
        return NO_KEY

    def readable(self, words: Sequence[float]) -> str:
        """Return what a key stands for, as people read it: about that, if no cell has the key.

        Parameters
        ----------
        words : sequence of float
            The numbers of the key.

        Examples
        --------
        >>> import numpy as np
        >>> from cumae.data.texts import Order
        >>> for kind, cell in (
        ...     ("text", "Kowalski"),
        ...     ("numbers", -(10**30)),
        ...     ("dates", "2024-02-29"),
        ... ):
        ...     order = Order(kind)
        ...     print(order.readable(order.words(np.array([cell], object))[0]))
        'Kowalski'
        -1E+30
        2024-02-29 00:00:00
        """
        key = b"".join(int(word).to_bytes(WORD_BYTES, "big") for word in words)[: self.key_bytes]
        return TELLERS[self.kind](key)

    def made_up(self, spread: Floats) -> NDArray[Any]:
        """Return cells, in order, from numbers between 0 and 1.

        Parameters
        ----------
        spread : array of float
            Where each cell lies.
        """
        steps = (spread * 2**40).astype(np.int64)
        makers: dict[str, Callable[[int], Any]] = {
            "text": lambda step: f"{step:010x}"[: self.max_bytes],
            "numbers": int,
            "dates": lambda step: EPOCH + dt.timedelta(seconds=step >> 8),
            "ids": lambda step: uuid.UUID(int=step << 80),
        }
        make = makers[self.kind]
        return np.fromiter((make(step) for step in steps.tolist()), object, count=len(steps))


def _each(cells: NDArray[Any]) -> Any:
    """Return cells one by one; those of an array of numbers or texts as Python has them."""
    return cells.tolist() if cells.dtype.kind in "biufU" else cells


@claim("KEYS")
def _text_key(cell: Any, room: int) -> bytes | None:
    if not isinstance(cell, str) or not cell or len(cell) > room:
        return None
    return str(cell).encode("utf-8", "surrogatepass").translate(SHIFTED)


@claim("KEYS")
def _number_key(cell: Any, room: int) -> bytes | None:
    """Return sign, exponent and digits of a number; all but the sign turned over below zero."""
    number = _decimal(cell, 8 * room)
    if number is None or not number.is_finite():
        return None
    sign, digits, _ = number.as_tuple()
    if not any(digits):
        return ZERO
    shown = "".join(map(str, digits)).rstrip("0")
    exponent = number.adjusted() + MIDDLE  # of the first digit
    if not 0 <= exponent < 2 * MIDDLE:
        return None
    pairs = shown + "0" * (len(shown) % 2)
    size = bytes(int(pairs[place : place + 2]) + 1 for place in range(0, len(pairs), 2))
    body = exponent.to_bytes(EXPONENT_BYTES, "big") + size
    if 1 + len(body) > room:
        return None
    if not sign:
        return POSITIVE + body
    return NEGATIVE + bytes(255 - byte for byte in body.ljust(room - 1, b"\0"))


def _decimal(cell: Any, longest: int) -> Decimal | None:
    """Return what a number is exactly; a float is the shortest decimal that it is printed as."""
    if isinstance(cell, str):
        text = cell.strip() if len(cell) <= longest else ""
        return Decimal(text) if NUMBER.fullmatch(text) else None
    if isinstance(cell, np.timedelta64 | np.datetime64):
        return None
    if isinstance(cell, float | np.floating):
        return Decimal(repr(float(cell)))
    if isinstance(cell, int | np.integer | np.bool_):
        return Decimal(int(cell))
    return cell if isinstance(cell, Decimal) else None


@claim("KEYS")
def _time_key(cell: Any, room: int) -> bytes | None:
    """Return the moment of a date or a time, counted in units of 10^-18 seconds."""
    count = _moment(cell)
    if count is None:
        return None
    shifted = count + (1 << (8 * room - 1))
    return shifted.to_bytes(room, "big") if 0 <= shifted < 1 << (8 * room) else None


def _moment(cell: Any) -> int | None:  # noqa: PLR0911 - one line a kind of cell
    if isinstance(cell, str):
        text = cell.strip() if len(cell) <= MAX_BYTES else ""
        return None if TOO_FINE.search(text) else _moment(dt.datetime.fromisoformat(text))
    if isinstance(cell, pd.Timestamp):
        cell = cell.to_datetime64()  # in UTC, if it has a zone
    if isinstance(cell, np.datetime64):
        if np.isnat(cell):
            return None
        unit, step = np.datetime_data(cell.dtype)
        if unit in ("Y", "M"):
            return _moment(cell.astype("M8[D]"))
        return int(cell.astype(np.int64)) * step * UNITS[unit]
    if isinstance(cell, dt.datetime):
        moment = cell if cell.tzinfo is None else cell.astimezone(dt.UTC)
        past = moment.replace(tzinfo=None) - EPOCH
        return (past // dt.timedelta(microseconds=1)) * UNITS["us"]
    if isinstance(cell, dt.date):
        return (cell.toordinal() - EPOCH.toordinal()) * UNITS["D"]
    return None


@claim("KEYS")
def _id_key(cell: Any, room: int) -> bytes | None:
    del room
    if isinstance(cell, str):
        cell = uuid.UUID(cell.strip()) if len(cell) <= MAX_BYTES else None
    return cell.bytes if isinstance(cell, uuid.UUID) else None


def _readable_text(key: bytes) -> str:
    """Return the text of a key without what no text has, and without its end if it is long."""
    begin = bytes(byte - 1 for byte in key.partition(b"\0")[0])
    text = "".join(filter(str.isprintable, begin.decode("utf-8", "ignore")))
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")


def _readable_number(key: bytes) -> str:
    sign, body = key[:1], key[1:]
    if sign == ZERO or sign > POSITIVE:
        return "0" if sign == ZERO else "above all numbers"
    if sign == NEGATIVE:
        body = bytes(255 - byte for byte in body)
    exponent = int.from_bytes(body[:EXPONENT_BYTES], "big") - MIDDLE
    pairs = body[EXPONENT_BYTES:].partition(b"\0")[0][:SHOWN]
    digits = "".join(f"{min(max(byte - 1, 0), 99):02}" for byte in pairs).rstrip("0") or "0"
    number = Decimal((sign == NEGATIVE, tuple(map(int, digits)), 0))
    return str(number.scaleb(exponent - len(digits) + 1))


def _readable_time(key: bytes) -> str:
    seconds = (int.from_bytes(key, "big") - (1 << (8 * len(key) - 1))) // IN_A_SECOND
    try:
        return str(EPOCH + dt.timedelta(seconds=seconds))
    except OverflowError:
        return "before the year 1" if seconds < 0 else "after the year 9999"


def _readable_id(key: bytes) -> str:
    return str(uuid.UUID(bytes=key))


TELLERS: dict[str, Callable[[bytes], str]] = {
    "dates": _readable_time,
    "ids": _readable_id,
    "numbers": _readable_number,
    "text": _readable_text,
}
READERS: dict[str, Callable[[Any, int], bytes | None]] = {
    "dates": _time_key,
    "ids": _id_key,
    "numbers": _number_key,
    "text": _text_key,
}


@claim("KEYS")
def middle_keys(low: Floats, high: Floats) -> Floats:
    """Return the keys half-way between others, rounded up: above the low and up to the high ones.

    Parameters
    ----------
    low, high : array of float of shape (keys, words)
        Keys, each low one below its high one.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.data.texts import middle_keys
    >>> middle_keys(np.array([[1.0, 5.0]]), np.array([[2.0, 8.0]])).tolist()
    [[1.0, 140737488355335.0]]
    """
    base = int(LARGEST_WORD) + 1
    words = low.astype(np.int64) + high.astype(np.int64)
    words[:, -1] += 1
    for place in reversed(range(1, words.shape[1])):
        words[:, place - 1] += words[:, place] // base
        words[:, place] %= base
    left = np.zeros(len(words), dtype=np.int64)
    for place in range(words.shape[1]):
        words[:, place] += left * base
        left = words[:, place] % 2
        words[:, place] //= 2
    return words.astype(np.float64)


def next_key(words: tuple[float, ...]) -> tuple[float, ...]:
    """Return the key right above another one.

    Examples
    --------
    >>> from cumae.data.texts import next_key
    >>> next_key((7.0, 2.0**48 - 1))
    (8.0, 0.0)
    """
    found = list(words)
    for place in reversed(range(len(found))):
        if found[place] < LARGEST_WORD:
            found[place] += 1.0
            return tuple(found)
        found[place] = 0.0
    return (math.inf, *found[1:])  # above all keys
