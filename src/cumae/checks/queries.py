"""Queries for laws about batches: usual ones, odd ones, and batches that differ in some of them."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

FEW = 12  # queries that laws about batches ask


def in_batches(queries: Any, cuts: Sequence[int]) -> list[Any]:
    """Cut queries into batches before the given places."""
    edges = [0, *cuts, len(queries)]
    return [queries[start:stop] for start, stop in itertools.pairwise(edges)]


def odd_queries(width: int) -> list[Any]:
    """Return queries that are not usual rows of ``width`` numbers."""
    usual = [0.5] * width
    cells: list[Any] = [
        math.nan, math.inf, -math.inf, 1e300, -1.7e308, 10**400, None, "text", b"bytes", True,
        1 + 2j, dt.date(2020, 2, 29), np.datetime64("2020-02-29"), np.float32(0.5), [0.5], {},
        object(),
    ]  # fmt: skip
    rows = [[cell, *usual[1:]] for cell in cells]
    containers = [tuple(usual), np.array(usual), pd.Series(usual), np.array(0.5), 0.5, "text", None]
    widths = [[], [*usual, 0.5], [usual], np.array([usual]), np.zeros((0,))]
    return [*rows, *containers, *widths]


# Batches that differ in some queries, and the places of the others, whose answers must not.
Family = tuple[list[Any], list[int]]


def families(queries: Any) -> Iterator[Family]:
    """Return families of batches in which every second query differs."""
    if hasattr(queries, "columns"):
        yield from _frame_families(queries)
        return
    table = np.asarray(queries, dtype=np.float64)
    odd = odd_queries(table.shape[1])
    shown = np.resize(table, (len(odd), table.shape[1])).tolist()
    listed = [[*itertools.chain(*zip(shown, hidden, strict=True))] for hidden in (shown, odd)]
    yield listed, list(range(0, 2 * len(odd), 2))
    arrays = [table]
    for cell in (math.nan, math.inf, -1.0, 1.7e308):
        array = table.copy()
        array[1::2] = cell
        arrays.append(array)
    yield arrays, list(range(0, len(table), 2))
    first = np.arange(table.shape[1]) == 0
    plus, minus = (np.where(first, zero, table) for zero in (0.0, -0.0))
    yield [_joined(hidden, plus) for hidden in (minus, table + 1.0)], _last(plus)


def _frame_families(frame: Any) -> Iterator[Family]:
    """Return the same for data frames: dates and numbers in columns of text, signs of zeros."""
    numeric = [name for name in frame.columns if frame[name].dtype.kind in "iuf"]
    for name in [name for name in frame.columns if name not in numeric]:
        dates = np.array([pd.Timestamp("2020-01-01")] * len(frame), dtype=object)
        batches = []
        for odd in (dates[0], frame[name].iloc[0], 7, None):
            cells = dates.copy()
            cells[0] = odd
            batches.append(frame.assign(**{name: pd.Series(cells, dtype=object)}))
        yield batches, list(range(1, len(frame)))
    if numeric:
        plus, minus = (frame.assign(**{numeric[0]: zero}) for zero in (0.0, -0.0))
        far = frame.assign(**{numeric[0]: frame[numeric[0]] + 1.0})
        yield [_joined(hidden, plus) for hidden in (minus, far)], _last(plus)


def _joined(first: Any, second: Any) -> Any:
    if hasattr(first, "columns"):
        return pd.concat([first, second], ignore_index=True)
    return np.concatenate([first, second])


def _last(table: Any) -> list[int]:
    return list(range(len(table), 2 * len(table)))


def few(queries: Any) -> Any:
    """Return the first queries, numbered from 0 in a data frame."""
    if hasattr(queries, "columns"):
        return queries[:FEW].reset_index(drop=True)
    return np.asarray(queries)[:FEW]


def with_missing_cell(queries: Any) -> Any:
    """Return queries of which the last one lacks its last cell."""
    missing = queries.astype(object) if hasattr(queries, "columns") else queries.astype(float)
    if hasattr(missing, "columns"):
        missing.iloc[-1, -1] = math.nan
    else:
        missing[-1, -1] = math.nan
    return missing
