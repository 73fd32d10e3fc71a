"""The kinds of cells that a column can hold by its type, checked against its declaration.

Types of single cells play no part: only what the container says about a whole column.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from cumae.data.arrow import arrow_kind
from cumae.data.containers import RowSource, width_of
from cumae.data.declared import INDICATOR, Column, declared_column
from cumae.data.readings import canonical
from cumae.errors import InvalidParameter

NOUNS = {
    "numbers": "number",
    "dates": "date",
    "booleans": "boolean",
    "categories": "category",
    "ordered": "value of its declared order, or is too long for its max_bytes",
}
TO_FILL_IN = '["...", "..."]'  # refused as it is, because it names one category twice
# What to write about a column that must be declared, by what its type can hold; and why.
LINES = {
    "text": (TO_FILL_IN, "text: list what can occur; or (low, high), a day, bool or float"),
    "objects": (
        TO_FILL_IN,
        "of any type: list what can occur; or (low, high), a day, bool or float",
    ),
    "dates": ("datetime.date(2000, 1, 1)", "dates: give a day to count from"),
    "durations": ("None", "durations: give them as numbers, such as days"),
    "bytes": ("None", "bytes: give them as text or as numbers"),
}
# What a column may hold by its type, if it is declared to have an order.
ORDERED_BY = {
    "text": {"text", "objects", ""},
    "ids": {"text", "objects", ""},
    "dates": {"dates", "text", "objects", ""},
    "numbers": {"numbers", "booleans", "text", "objects", ""},
}
NOT_ORDERED = "{} by its type, but declared as ordered {}"
UNREADABLE = {"dates", "durations", "bytes"}  # by models that get a data frame as it is
# What the types of numpy and pandas can hold; those that are not listed hold numbers, or anything.
OF_NUMPY = {
    "b": "booleans",
    "U": "text",
    "S": "bytes",
    "M": "dates",
    "m": "durations",
    "O": "",
    "V": "",
}
OF_PANDAS = {pd.StringDtype: "text", pd.BooleanDtype: "booleans", pd.DatetimeTZDtype: "dates"}


def column_kind(dtype: Any) -> str:
    """Return what a column of this type can hold; "" where the type does not say.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.data.kinds import column_kind
    >>> column_kind(np.dtype(bool)), column_kind(np.dtype("M8[D]")), column_kind(np.dtype(object))
    ('booleans', 'dates', '')
    """
    if isinstance(dtype, pd.CategoricalDtype):
        return column_kind(dtype.categories.dtype)
    if isinstance(dtype, pd.ArrowDtype):
        return arrow_kind(dtype.pyarrow_dtype)
    if isinstance(dtype, np.dtype):
        return OF_NUMPY.get(dtype.kind, "numbers")
    return OF_PANDAS.get(type(dtype), "numbers" if pd.api.types.is_numeric_dtype(dtype) else "")


def frame_kinds(dtypes: Any) -> list[str]:
    """Return what the columns of a data frame can hold; objects may be anything."""
    kinds = [column_kind(dtype) for dtype in dtypes]
    return [
        "objects" if not kind and dtype == np.dtype(object) else kind
        for kind, dtype in zip(kinds, dtypes, strict=True)
    ]


def kinds_of(X: Any) -> list[str]:
    """Return what each column of a table can hold; of a list, nothing is known."""
    if isinstance(X, RowSource):
        return X.kinds
    if isinstance(X, pd.DataFrame):
        return frame_kinds(X.dtypes)
    return [column_kind(X.dtype) if isinstance(X, np.ndarray) else ""] * width_of(X)


def whole_types(X: Any) -> list[bool]:
    """Tell for each column whether its type holds whole numbers only, and was not read off cells.

    Types of Arrow, of Parquet files and of numpy arrays are fixed before rows are there. Those of
    data frames often were chosen by cells: one that is empty, or 0.5, makes floats of a column.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from cumae.data.kinds import whole_types
    >>> whole_types(np.array([[0, 1]])), whole_types(pd.DataFrame({"married": [0, 1]}))
    ([True, True], [False])
    """
    if isinstance(X, RowSource):
        return list(X.whole or [False] * X.n_features)
    whole = isinstance(X, np.ndarray) and X.dtype.kind in "iu"
    return [whole] * width_of(X)


def undeclared_kinds(kinds: Sequence[str]) -> list[str]:
    """Return what must be declared where models get data frames as they are: dates and the like.

    Text is left to the models there. But with a column that must be declared, all others must be,
    too: so one message names them all.
    """
    return list(kinds) if UNREADABLE & set(kinds) else [""] * len(kinds)


def key_of(name: str, unnamed: bool) -> str:
    """Return how a declaration names a column."""
    return name if unnamed else repr(name)


def missing_line(column: Column, key: str) -> str:
    """Return what to declare so that cells of a column without categories may be missing."""
    bounds = column.bounds or ()
    entries = [canonical(bound) for bound in bounds]
    if column.since is not None:
        entries = [repr(column.since + dt.timedelta(days=day)) for day in (0.0, *bounds[1:])]
    if column.truth is not None:
        yes, no = map(list, column.truth)
        form = f'{{"yes": {yes!r}, "no": {no!r}, "missing": True}}'
    elif column.boolean:
        form = '{"boolean": True, "missing": True}'
    elif entries:
        form = f'({", ".join(entries)}, "missing")'
    else:
        form = '{"missing": True}'
    return f"{key}: {form}"


class Problems:
    """Collects what is wrong with the declarations of a table, for one message.

    Parameters
    ----------
    unnamed : bool
        Whether the columns of the table have no names, so that declarations go by place.
    """

    def __init__(self, unnamed: bool) -> None:
        self._unnamed = unnamed
        self._wrong: list[str] = []
        self._lines: list[str] = []
        self._unread: set[str] = set()

    def read(self, name: str, given: Any) -> Column:
        """Return what a declaration says; one that cannot be read is noted."""
        try:
            return declared_column(name, given)
        except InvalidParameter as error:
            self._wrong.append(str(error))
            self._unread.add(name)
            return Column(name)

    def compare(self, column: Column, kind: str) -> Column:
        """Note a column whose declaration is lacking, or does not fit what its type can hold."""
        if column.name in self._unread:
            return column
        if not column.declared:
            if kind in LINES:
                self._note(column.name, *LINES[kind])
            if kind == "booleans" and column.bounds is None:
                return replace(column, bounds=INDICATOR, boolean=True)
        elif column.order is not None:
            if kind not in ORDERED_BY[column.order.kind]:
                given = NOT_ORDERED.format(kind, column.order.kind)
                self._note(column.name, '{"ordered": "..."}', given)
        elif column.categories is not None:
            self._compare_categories(column, kind)
        elif kind in ("durations", "bytes") or (kind == "dates" and column.since is None):
            self._note(column.name, *LINES[kind])
        elif column.since is not None and kind in ("numbers", "booleans"):
            self._note(column.name, "(low, high)", f"{kind} by its type, but declared as dates")
        return column

    def _compare_categories(self, column: Column, kind: str) -> None:
        categories = column.categories or ()
        texts = [isinstance(category, str) for category in categories]
        sort = "text" if all(texts) else "numbers" if not any(texts) else ""
        if sort == "numbers" and not all(isinstance(c, int | float) for c in categories):
            sort = ""
        if kind == "text" and sort == "numbers":
            written = [f'"{category}"' for category in categories[:3]]
            more = ", ..." if len(categories) > 3 else ""
            line = f"[{', '.join(written)}{more}]"
            if column.labels is not None:
                pairs = zip(written, column.labels[:3], strict=True)
                text = ", ".join(f'{code}: "{label}"' for code, label in pairs)
                line = f'{{"codes": {{{text}{more}}}}}'
            self._note(column.name, line, "text by its type, but its categories are numbers")
        if kind in ("numbers", "booleans", "dates") and sort == "text":
            line = "[0, 1]" if kind != "dates" else LINES["dates"][0]
            self._note(column.name, line, f"{kind} by its type, but its categories are text")

    def _note(self, name: str, line: str, why: str) -> None:
        self._lines.append(f"    {key_of(name, self._unnamed)}: {line},  # {why}")

    def refuse(self) -> None:
        """Raise one error that lists everything that was noted."""
        parts = list(self._wrong)
        if self._lines:
            plural = "a column" if len(self._lines) == 1 else f"{len(self._lines)} columns"
            lines = "\n".join(self._lines)
            ids = "Take columns of names or ids out of X. " if TO_FILL_IN in lines else ""
            parts.append(
                f"{plural} of X must be declared, or declared otherwise: what a column holds is "
                f"never read from its cells. {ids}Write these lines, with what is true of your "
                f"columns:\ncolumns={{\n{lines}\n}}"
            )
        if parts:
            raise InvalidParameter("\n".join(parts))
