"""The first part in which two values differ: of facts, of tables, or of whole states in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pandas as pd

from cumae.concepts import Hypothesis
from cumae.data import RowSource
from cumae.ensembles.ensemble import Ensemble
from cumae.predictors.fingerprints import is_estimator
from cumae.randomness import Source


def difference(one: Any, other: Any, name: str = "") -> str:  # noqa: PLR0911, C901 - a line a kind
    """Return the name of the first part in which two values differ; nothing if they are alike.

    Numbers that are none (NaN) are alike, and 0.0 and -0.0 differ. Types count, because models may
    tell them apart. Where random bits come from does not count: it is never stored.

    Parameters
    ----------
    one, other : object
        Facts as ``State.to_facts`` returns them, or parts of a state in memory.
    name : str
        What they are called.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.checks.differences import difference
    >>> difference({"rows": np.array([1.0, np.nan])}, {"rows": np.array([1.0, np.nan])})
    ''
    >>> difference({"kept": {"rows": np.zeros(2)}}, {"kept": {"rows": np.zeros(3)}})
    '/kept/rows'
    """
    if isinstance(one, Source) and isinstance(other, Source):
        return ""
    if type(one) is not type(other):
        return name or "type"
    if isinstance(one, np.ndarray):
        return "" if _same_array(one, other) else name or "array"
    if isinstance(one, pd.DataFrame):
        return _of_parts(_of_frame(one), _of_frame(other), name)
    if isinstance(one, Mapping):
        return "" if one is other else _of_parts(one, other, name)
    if hasattr(one, "_asdict"):
        return _of_parts(one._asdict(), other._asdict(), name)
    if isinstance(one, list | tuple):
        return _of_parts(dict(enumerate(one)), dict(enumerate(other)), name)
    if isinstance(one, float):
        return "" if repr(one) == repr(other) else name or "number"
    if isinstance(one, RowSource):
        every = np.arange(one.n_rows)
        return difference(one.n_rows, other.n_rows, name) or difference(
            one.take(every), other.take(every), name
        )
    if callable(one) and not hasattr(one, "predict"):
        return ""  # what is done with facts, and no fact
    parts = _parts(one)
    if parts is None:
        return "" if one == other else name or "value"
    return _of_parts(parts, _parts(other) or {}, name)


def _parts(value: Any) -> dict[str, Any] | None:
    """Return what an object holds; None for a plain value."""
    if isinstance(value, Hypothesis):
        return {"hypothesis": value.to_dict()}
    if is_dataclass(value):
        return {part.name: getattr(value, part.name) for part in fields(value)}
    if isinstance(value, Ensemble) and not value.has_arrays:  # their recipe is compared
        return {"n_shards": value.n_shards, "constant": value.constant}
    if hasattr(value, "to_facts"):
        found: dict[str, Any] = value.to_facts()
        return found
    if is_estimator(value):  # what it learnt follows from rows that are compared
        given: dict[str, Any] = value.get_params(deep=False)
        return given
    return vars(value) if hasattr(value, "__dict__") else None


def _of_parts(one: Mapping[Any, Any], other: Mapping[Any, Any], name: str) -> str:
    if list(one) != list(other):  # their order counts as well
        here, there = list(map(str, one)), list(map(str, other))
        alone = [part for part in [*here, *there] if (part in here) != (part in there)]
        return f"{name}/{alone[0] if alone else 'order'}"
    found = (difference(one[part], other[part], f"{name}/{part}") for part in one)
    return next(filter(None, found), "")


def _of_frame(frame: pd.DataFrame) -> dict[str, Any]:
    columns: Sequence[Any] = [frame.iloc[:, place] for place in range(frame.shape[1])]
    return {
        "names": list(frame.columns),
        "types": [str(column.dtype) for column in columns],
        "cells": [column.to_numpy() for column in columns],
    }


def _same_array(one: Any, other: Any) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.hasobject:
        pairs = zip(one.ravel().tolist(), other.ravel().tolist(), strict=True)
        return not any(difference(*pair) for pair in pairs)
    return bool(one.tobytes() == other.tobytes())
