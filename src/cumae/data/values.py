"""Single values that columns and hypotheses are made of."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cumae.data.cells import is_missing
from cumae.errors import InvalidParameter

WHOLE = (int, np.integer, np.bool_)
FLOAT = (float, np.float32, np.float16)
EXACT = 2**53  # floats hold all whole numbers up to here
LONG = 10**30  # longer integers are written in hex


def kind_of_type(kind: type) -> str | None:
    """Return the name of the values that this type can be compared with; None if it has no use."""
    # Numpy counts spans of time among the integers.
    if kind.__name__ != "timedelta64" and issubclass(kind, WHOLE):
        return "whole numbers"
    if issubclass(kind, FLOAT):
        return "numbers"
    if issubclass(kind, str):
        return "strings"
    if issubclass(kind, np.datetime64):
        return "datetime64"
    if kind is dt.date:
        return "dates"
    return "datetimes" if kind is dt.datetime else None


def fits_float(value: int) -> bool:
    """Tell whether a float can hold the integer without rounding."""
    bits = abs(value).bit_length()
    return bits <= 1024 and abs(value) % (1 << max(0, bits - 53)) == 0


def check_cell(value: object, name: str) -> None:
    """Refuse what no column can hold; None stands for no value."""
    kind = kind_of_type(type(value))
    zone = getattr(value, "tzinfo", None)
    if value is not None and (kind is None or is_missing(value) or zone is not None):
        raise InvalidParameter(
            f"{name} of type {type(value).__name__} is missing or cannot be compared; give a "
            "number, a string, a date or a datetime64."
        )


def check_number(value: Any, name: str, *, finite: bool = False) -> None:
    """Refuse what is no number that a float can hold."""
    number = isinstance(value, WHOLE + FLOAT) and not isinstance(value, bool | np.bool_)
    if number and isinstance(value, WHOLE):
        number = fits_float(int(value))
    if not number or is_missing(value) or (finite and math.isinf(value)):
        kind = "a finite number" if finite else "a number"
        raise InvalidParameter(f"{name} is not {kind}; give one that fits a float.")


def check_tuple(value: object, name: str) -> None:
    """Refuse what is no tuple: hypotheses can be compared and hashed."""
    if not isinstance(value, tuple):
        raise InvalidParameter(f"{name} of type {type(value).__name__} is no tuple; give one.")


def cell_to_json(value: Any) -> Any:
    """Return one cell as something JSON can hold.

    Examples
    --------
    >>> from cumae.data import cell_from_json, cell_to_json
    >>> cell_to_json(1.5), cell_to_json(float("inf"))
    (1.5, {'float': 'inf'})
    >>> cell_from_json({"float": "inf"})
    inf
    """
    if isinstance(value, np.datetime64):
        return {"datetime64": str(value)}
    if isinstance(value, dt.datetime | dt.date):
        return {type(value).__name__: value.isoformat()}
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, int) and abs(value) >= LONG:
        return {"int": hex(value)}
    return value


READERS: dict[str, Callable[[str], Any]] = {
    "date": dt.date.fromisoformat,
    "datetime": dt.datetime.fromisoformat,
    "datetime64": np.datetime64,
    "float": float,
    "int": lambda written: int(written, 16),
}


def cell_from_json(value: Any) -> Any:
    """Return what ``cell_to_json`` was given."""
    if not isinstance(value, dict):
        return value
    ((kind, written),) = value.items()
    return READERS[kind](written)
