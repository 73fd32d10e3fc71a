"""Two versions of a table, one for each world: where they differ, and what a world gets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.claims import claim
from cumae.errors import InvalidParameter

Mask = NDArray[np.bool_]


@claim("AUDIT")
class Versions:
    """A table as each of two worlds has it: arrays, lists of rows, or data frames.

    Parameters
    ----------
    zero, one : array, list or data frame
        Both of the same kind and length. Arrays have the same shape and type, frames the same index
        and columns. Rows of a list may be anything: to bring a strange one is a move.

    Examples
    --------
    >>> from cumae.audit.versions import Versions
    >>> both = Versions([0.5, 0.5], [0.5, [0.5]])
    >>> both.different.tolist(), both.of(1)
    ([False, True], [0.5, [0.5]])
    """

    def __init__(self, zero: Any, one: Any) -> None:
        pair = [_table(table) for table in (zero, one)]
        kinds = [_kind(table) for table in pair]
        if not _same(*kinds):
            raise InvalidParameter(
                f"shapes and types {kinds[0]} and {kinds[1]} of the two worlds differ; replace a "
                "row."
            )
        self.zero, self.one = pair
        self.different = _different(*pair)

    def __len__(self) -> int:
        return len(self.different)

    def of(self, world: int) -> Any:
        """Return a world's table: that of world 0, with nothing replaced but what differs."""
        places = np.arange(len(self)) + len(self) * (self.different & (world == 1))
        if isinstance(self.zero, pd.DataFrame):
            return pd.concat([self.zero, self.one]).iloc[places]
        if isinstance(self.zero, list):
            both = [*self.zero, *self.one]
            return [both[place] for place in places]
        return np.concatenate([self.zero, self.one])[places]


def _table(given: Any) -> Any:
    """Return a table that has rows: what is no frame and no list becomes an array."""
    if isinstance(given, pd.DataFrame):
        return given
    return list(given) if isinstance(given, list | tuple) else np.asarray(given)


def _kind(table: Any) -> list[Any]:
    """Return what both versions have in common."""
    if isinstance(table, pd.DataFrame):
        columns = [*map(str, table.columns), *map(str, table.dtypes)]
        return ["data frame", columns, table.index.tolist()]
    if isinstance(table, list):
        return ["list", len(table)]
    return ["array", table.shape, str(table.dtype)]


@claim("AUDIT")
def _different(zero: Any, one: Any) -> Mask:
    """Tell which rows are not the same to the last bit: 0.0 and -0.0 are two values."""
    if isinstance(zero, pd.DataFrame):
        columns = [
            _different(_cells(zero.iloc[:, place]), _cells(one.iloc[:, place]))
            for place in range(zero.shape[1])
        ]
        return np.asarray(np.any([np.zeros(len(zero), dtype=bool), *columns], axis=0))
    if isinstance(zero, list) or zero.dtype == object:
        return np.array([not _same(*rows) for rows in zip(zero, one, strict=True)], dtype=bool)
    first, second = (np.frombuffer(array.tobytes(), np.uint8) for array in (zero, one))
    different = first != second
    return np.asarray(different.reshape(len(zero), different.size // max(1, len(zero))).any(axis=1))


def _cells(column: Any) -> Any:
    """Return a column of a frame as an array or, if it has one of pandas' types, as a list."""
    return column.to_numpy() if isinstance(column.dtype, np.dtype) else column.tolist()


@claim("AUDIT")
def _same(zero: Any, one: Any) -> bool:
    """Tell whether two cells, rows or other things are the same, and of the same types."""
    if type(zero) is not type(one):
        return False
    if isinstance(zero, pd.Series):
        return _same(*([each.dtype, each.index.tolist(), each.tolist()] for each in (zero, one)))
    if isinstance(zero, np.ndarray):
        return _same(*([each.shape, each.dtype, _flat(each)] for each in (zero, one)))
    if isinstance(zero, list | tuple):
        return len(zero) == len(one) and all(map(_same, zero, one))
    return repr(zero) == repr(one)


def _flat(array: NDArray[Any]) -> list[Any] | bytes:
    return list(array.flat) if array.dtype == object else array.tobytes()
