"""Columns of Arrow as numpy arrays, with types that never follow from cells."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.extras import needing, pa

# What types of Arrow can hold, by the names of its tests: is_string and so on.
HELD = {
    "text": ("string", "large_string", "string_view"),
    "dates": ("date", "timestamp"),
    "durations": ("duration", "time"),
    "bytes": ("binary", "large_binary", "binary_view", "fixed_size_binary"),
    "booleans": ("boolean",),
    "numbers": ("integer", "floating"),
}


def to_arrow(found: Any) -> Any:
    """Return a data frame or a column of narwhals as one of Arrow."""
    with needing("data frames that are not of pandas", "parquet"):
        importlib.import_module("pyarrow")  # narwhals would import it, but name no extra
    return found.to_arrow()


def type_from_arrow(field: Any) -> Any:
    """Return the type of the array that ``from_arrow`` makes of a column with this field."""
    return from_arrow(pa.chunked_array([], type=field.type), field).dtype


def from_arrow(column: Any, field: Any) -> NDArray[Any]:
    """Return a column of Arrow as an array; its type follows from the field, not from the cells."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    if pa.types.is_date(kind):
        return np.asarray(column.to_numpy().astype("datetime64[ms]"))
    if pa.types.is_floating(kind) or pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return np.array(column.to_numpy())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        # Left to pyarrow, one missing cell would turn the others into floats. It may be there even
        # if the field says that none can be: nobody checks a table in memory.
        cells = column.fill_null(pa.scalar(0).cast(kind)).to_numpy()
        if not field.nullable:
            return np.array(cells)
        cells = cells.astype(object)
        cells[column.is_null().to_numpy()] = np.nan
        return np.asarray(cells)
    try:
        values = column.to_pylist()
    except UnicodeDecodeError:  # one damaged text must not stop the others
        raw = column.cast(pa.large_binary()).to_pylist()
        values = [None if cell is None else cell.decode("utf-8", "replace") for cell in raw]
    filled = (np.nan if cell is None else cell for cell in values)
    return np.fromiter(filled, dtype=object, count=len(values))


def arrow_kind(kind: Any) -> str:
    """Return what a type of Arrow can hold; "" where the type does not say."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return next(
        (held for held, names in HELD.items() if any(_is(name, kind) for name in names)), ""
    )


def is_whole(kind: Any) -> bool:
    """Tell whether a type of Arrow holds whole numbers only."""
    return bool(pa.types.is_integer(kind))


def _is(name: str, kind: Any) -> bool:
    return bool(getattr(pa.types, f"is_{name}")(kind))
