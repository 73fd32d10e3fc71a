"""Single cells as JSON: texts, numbers, dates, bytes, and None."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cumae.codec.registry import cannot_be_stored

LONG = 10**30  # longer integers are written in hex


def cell_to_json(value: Any) -> Any:  # noqa: PLR0911 - one line a kind of cell
    """Return one cell as something JSON can hold; refuse what is no cell.

    Examples
    --------
    >>> from cumae.codec import cell_from_json, cell_to_json
    >>> cell_to_json(1.5), cell_to_json(float("inf"))
    (1.5, {'float': 'inf'})
    >>> cell_from_json({"float": "inf"})
    inf
    """
    if isinstance(value, np.datetime64):
        unit = value.dtype.str[3:] if np.isnat(value) else ""  # of others their digits tell it
        return {"datetime64": f"{value}{unit}"}
    if isinstance(value, dt.date):  # also times, and those of pandas
        if value != value:  # noqa: PLR0124 - pandas' missing time
            return {"datetime64": "NaT"}
        return {"datetime" if isinstance(value, dt.datetime) else "date": value.isoformat()}
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(float(value))}
    if isinstance(value, int) and abs(value) >= LONG:
        return {"int": hex(value)}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise cannot_be_stored(type(value))


FROM_TEXT: dict[str, Callable[[str], Any]] = {
    "bytes": bytes.fromhex,
    "date": dt.date.fromisoformat,
    "datetime": dt.datetime.fromisoformat,
    "datetime64": lambda written: np.datetime64(*written.rstrip("]").split("[")),
    "float": float,
    "int": lambda written: int(written, 16),
}


def cell_from_json(value: Any) -> Any:
    """Return what ``cell_to_json`` was given."""
    if not isinstance(value, dict):
        return value
    ((kind, written),) = value.items()
    return FROM_TEXT[kind](written)
