"""Values as JSON can hold them, and back.

A value that JSON does not have becomes a dict with a tag: ``{"$": "tuple", "items": [1, 2]}``.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.codec.registry import (
    StoredKind,
    cannot_be_stored,
    form_above,
    form_of,
    kind_of,
)
from cumae.errors import InvalidParameter

FORMAT = 6  # of oracles and accounts in a file or in a database
# Formats of models and accounts as text, which has been the same since the first.
TEXT_FORMATS = (1, 4, 5)
TEXT_FORMAT = TEXT_FORMATS[-1]
TAG = "$"  # marks a dict that stands for something that JSON does not have
LONGEST = 1 << 14_000  # integers beyond are written in hex: Python refuses to print them
TYPES = {"bool": bool, "int": int, "float": float}  # that declare a column


def to_plain(value: Any) -> Any:
    """Return plain values that JSON can hold for a value of a known kind, or for many of them.

    Parameters
    ----------
    value : object
        Numbers, texts, None, arrays, dates, values of registered classes, and lists, tuples and
        dicts of these.

    Raises
    ------
    InvalidParameter
        If something in it cannot be stored.

    Examples
    --------
    >>> from cumae.codec import from_plain, to_plain
    >>> to_plain((1, float("inf")))
    {'$': 'tuple', 'items': [1, {'$': 'float', 'value': 'inf'}]}
    >>> from_plain(to_plain((1, float("inf"))))
    (1, inf)
    """
    return PlainWriter().plain(value)


def from_plain(plain: Any) -> Any:
    """Return what ``to_plain`` was given.

    Raises
    ------
    InvalidParameter
        If a tag or a class is unknown.
    """
    return PlainReader().value(plain)


def read_file(path: str | Path) -> Any:
    """Return the plain values of a file of JSON; refuse one that is none."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError:
        raise InvalidParameter(
            f"{path} is no file of JSON; give one that save wrote. If it is an oracle or an "
            "account, cumae.load opens it."
        ) from None


class PlainWriter:
    """Turns values into plain ones.

    Parameters
    ----------
    asked : collection of str
        Forms of values that are written only where they are asked for.
    any_class : bool
        Whether classes that are not registered are written, too, under the names that they have
        in Python. The result can be compared, but not read.
    """

    def __init__(self, asked: Collection[str] = (), *, any_class: bool = False) -> None:
        self.asked, self.any_class = asked, any_class

    def plain(self, value: Any) -> Any:  # noqa: PLR0911, C901 - one line a kind of value
        """Return a value as JSON can hold it."""
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int):
            return value if -LONGEST < value < LONGEST else {TAG: "int", "value": hex(value)}
        if isinstance(value, float):
            return value if math.isfinite(value) else {TAG: "float", "value": repr(float(value))}
        if isinstance(value, list):
            return [self.plain(item) for item in value]
        if isinstance(value, tuple):
            return {TAG: "tuple", "items": [self.plain(item) for item in value]}
        if isinstance(value, dict):
            return self.mapping(value)
        if isinstance(value, np.generic):
            return self._scalar(value)
        if isinstance(value, np.ndarray):
            return self.array(value)
        if isinstance(value, dt.date):
            return {TAG: "day", "value": dt.datetime(*value.timetuple()[:6]).isoformat()}  # noqa: DTZ001
        if isinstance(value, type):
            return self._type(value)
        return self._registered(value)

    def mapping(self, value: Mapping[Any, Any]) -> Any:
        """Write a dict, whose keys may be of any type."""
        items = [[self.plain(key), self.plain(part)] for key, part in value.items()]
        return {TAG: "dict", "items": items}

    def array(self, value: NDArray[Any]) -> Any:
        """Write an array."""
        items = [self.plain(item) for item in value.ravel().tolist()]
        return {TAG: "array", "type": value.dtype.str, "shape": list(value.shape), "items": items}

    def _scalar(self, value: np.generic) -> Any:
        item = value.item()
        if isinstance(item, np.generic):  # a number that no number of Python's own can be
            raise cannot_be_stored(type(value))
        return self.plain(item)

    def _type(self, value: type) -> Any:
        if value in TYPES.values():  # before numpy's: one of those is called bool, too
            return {TAG: "type", "value": value.__name__}
        if issubclass(value, np.generic):
            return {TAG: "type", "name": value.__name__}
        raise cannot_be_stored(type(value))

    def _registered(self, value: Any) -> Any:
        kind = kind_of(type(value))
        form = None if kind is None else form_of(kind.form)
        if kind is None and self.any_class:
            form = form_above(type(value))
            kind = StoredKind(type(value).__name__, "")
        if kind is None or form is None or form.write is None or not form.is_for(self.asked):
            raise cannot_be_stored(type(value))
        return {TAG: form.tag, **form.write(value, kind.name, self.plain)}


class PlainReader:
    """Turns plain values into those that a ``PlainWriter`` was given.

    Parameters
    ----------
    asked : collection of str
        Forms of values that are read only where they are asked for.
    """

    def __init__(self, asked: Collection[str] = ()) -> None:
        self.asked = asked

    def value(self, plain: Any) -> Any:
        """Return what plain values stand for."""
        if isinstance(plain, list):
            return [self.value(item) for item in plain]
        return self.tagged(plain[TAG], plain) if isinstance(plain, dict) else plain

    def tagged(self, tag: Any, plain: dict[str, Any]) -> Any:
        """Return what a dict with a tag stands for."""
        if tag in TAGS:
            return TAGS[tag](plain, self.value)
        form = form_of(tag)
        if form is None or form.write is None or not form.is_for(self.asked):
            raise InvalidParameter(f"tag {tag!r} is unknown; give what to_dict returned.")
        return form.read(plain, self.value)


def _items(plain: dict[str, Any], part: Callable[[Any], Any]) -> list[Any]:
    return [part(item) for item in plain["items"]]


def _array(plain: dict[str, Any], part: Callable[[Any], Any]) -> NDArray[Any]:
    return np.array(_items(plain, part), dtype=plain["type"]).reshape(plain["shape"])


def _type(plain: dict[str, Any], _: Callable[[Any], Any]) -> Any:
    return np.dtype(plain["name"]).type if "name" in plain else TYPES[plain["value"]]


# How each tag that is no form is read.
TAGS: dict[str, Callable[[dict[str, Any], Callable[[Any], Any]], Any]] = {
    "array": _array,
    "day": lambda plain, _: dt.datetime.fromisoformat(plain["value"]),
    "dict": lambda plain, part: {part(key): part(value) for key, value in plain["items"]},
    "float": lambda plain, _: float(plain["value"]),
    "int": lambda plain, _: int(plain["value"], 16),
    "parts": lambda plain, part: tuple(_items(plain, part)),  # a tuple in older estimators
    "tuple": lambda plain, part: tuple(_items(plain, part)),
    "type": _type,
}
