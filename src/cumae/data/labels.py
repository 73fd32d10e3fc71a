"""Values beside the rows, one for each: labels, and ids of users, clients and queries.

Each label is read by itself as its place among the declared classes. Three functions read labels,
all in the same way (``codes_of``). They differ in what they do about a label that is none of the
classes: ``label_codes``, for predictors, marks it with -1, because an error would tell about a
private row. ``class_places``, for learners, and ``check_labels``, for concept classes, refuse it
before anything is paid, and name its row.

``check_ids`` is here, and not with the predictor that takes ids, because the audit reads the ids
of its users by the same function.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data.arrow import arrow_kind, from_arrow, to_arrow
from cumae.data.cells import bare, cells_at
from cumae.data.containers import RowSource
from cumae.data.kinds import column_kind
from cumae.data.parquet import ParquetRows
from cumae.data.readings import codes_of, is_missing, places_of
from cumae.errors import InvalidData, warn
from cumae.extras import pa

FEWEST_FITTING = 0.01  # of the cells that are there, in a column that is worth its price
UNLABELLED = -1  # marks a row without a label, for learners that can use such rows


def label_codes(rows: RowSource, y: Any, classes: Sequence[Any]) -> Integers:
    """Return for each row the place of its label in ``classes``; -1 if it is none of them.

    A missing or an undeclared label is -1 as well: no single label raises.

    Parameters
    ----------
    rows : RowSource
        The rows that the labels belong to.
    y : list, array, Series or str
        One label for each row; for ParquetRows, the name of a column will do.
    classes : sequence
        The labels that can occur, declared without looking at ``y``.

    Examples
    --------
    >>> from cumae.data import label_codes, row_source
    >>> label_codes(row_source([[1], [2], [3]]), [0, True, "a"], classes=(0, 1)).tolist()
    [0, 1, -1]
    """
    known = places_of(classes)
    if isinstance(y, str):
        if not isinstance(rows, ParquetRows):
            raise InvalidData("y is the name of a column, which needs ParquetRows; give labels.")
        _need_fitting(rows.kind_of(y), known)
        return np.concatenate([codes_of(part, known) for part in rows.parts(y)])
    cells, kind = _given_labels(y)
    check_rows(rows.n_rows, cells)
    _need_fitting(kind, known)
    return codes_of(cells, known)


def class_places(y: Any, classes: Sequence[Any], *, unlabelled: bool, first: int = 0) -> Integers:
    """Return for each label its place in ``classes``; refuse a label that is none of them.

    Parameters
    ----------
    y : list, array or Series
        The labels.
    classes : sequence
        The labels that can occur, declared without looking at ``y``.
    unlabelled : bool
        Whether -1 marks a row without a label. It is returned as it is.
    first : int
        The number of the first row, for messages.

    Examples
    --------
    >>> from cumae.data import class_places
    >>> class_places(["yes", -1, "no"], ("no", "yes"), unlabelled=True).tolist()
    [1, -1, 0]
    """
    known = places_of(classes)
    beyond = len(known)
    if unlabelled:
        known[UNLABELLED] = beyond
    codes = codes_of(_given_labels(y)[0], known)
    wrong = np.flatnonzero(codes < 0)
    if len(wrong):
        row = first + int(wrong[0])
        raise InvalidData(
            f"y has a label in row {row} that is none of classes={tuple(classes)!r}; "
            "declare the classes, which are never read from the rows. A missing label is none of "
            "them, text is not a number, and -1 is for learners that take rows without a label.",
            rows=[row],
        )
    return np.where(codes == beyond, UNLABELLED, codes)


def check_labels(y: ArrayLike, name: str = "y") -> Integers:
    """Return labels as integers; refuse those that are neither 0 nor 1."""
    cells, _ = _label_cells(y, name)
    if cells.dtype.kind in "iu" and len(cells) and cells.min() >= 0 and cells.max() <= 1:
        return cells.astype(np.int64, copy=False)  # the same as below, but faster
    codes = codes_of(cells, {0: 0, 1: 1})
    wrong = np.flatnonzero(codes < 0)
    if len(wrong):
        row = int(wrong[0])
        if is_missing(cells[row]):
            raise InvalidData(
                f"{name} has a missing value in row {row}; fill or drop it.", rows=[row]
            )
        raise InvalidData(f"{name} has a label in row {row} that is neither 0 nor 1.", rows=[row])
    return codes


def check_some_rows(labels: Integers) -> None:
    """Refuse a table without rows."""
    if not len(labels):
        raise InvalidData("X has no rows; give at least one.")


def class_names(classes: Any) -> NDArray[Any]:
    """Return declared classes as an array of one type if they have one, else of objects.

    Examples
    --------
    >>> from cumae.data import class_names
    >>> class_names(["no", "yes"]).dtype.kind, class_names([0, "yes"]).dtype.kind
    ('U', 'O')
    """
    found = np.array(classes)
    if found.tolist() == list(classes):
        return found
    return np.array([*classes, None], dtype=object)[:-1]


def check_rows(count: int, y: NDArray[Any]) -> None:
    """Refuse labels that do not match the rows."""
    if count != len(y):
        raise InvalidData(f"X has {count} rows but y has {len(y)}; give one label for each row.")


def _need_fitting(kind: str, known: dict[Any, int]) -> None:
    """Refuse labels whose type as a whole cannot hold a single one of the classes."""
    named = {str: "text", bool: "numbers", int: "numbers", float: "numbers", bytes: "bytes"}
    kinds = {named.get(type(label), "") for label in known}
    kind = "numbers" if kind == "booleans" else kind  # true and false are the labels 1 and 0
    if kind and "" not in kinds and kind not in kinds:
        raise InvalidData(
            f"y has a type for {kind}, but the declared classes are {' and '.join(sorted(kinds))}; "
            "declare the labels that can occur: classes=[...]."
        )


def _given_labels(y: Any) -> tuple[NDArray[Any], str]:
    """Return the labels given to ``fit``; warn, as scikit-learn does, if they are a table."""
    if y is None:
        raise InvalidData("y is missing; fit requires y to be passed, but the target y is None.")
    if isinstance(y, pd.DataFrame | np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning  # noqa: PLC0415 - takes a second

        warn(
            "A column-vector y was passed when a 1d array was expected; it is taken as one.",
            DataConversionWarning,
        )
    return _label_cells(y, "y")


def _label_cells(y: Any, name: str) -> tuple[NDArray[Any], str]:
    """Return the labels cell by cell, and what their type as a whole can hold."""
    if isinstance(y, pd.DataFrame) and y.shape[1] == 1:
        y = y.iloc[:, 0]
    column = _arrow_column(y)
    if column is not None:
        return from_arrow(column, pa.field(name, column.type)), arrow_kind(column.type)
    if isinstance(y, pd.Series):
        cells: Any = bare(y)
        return cells if isinstance(cells, np.ndarray) else cells_at(cells), column_kind(y.dtype)
    if isinstance(y, Sequence) and not isinstance(y, str | bytes):
        return np.fromiter(map(_only, y), dtype=object, count=len(y)), ""
    if hasattr(y, "__array__") and not isinstance(y, np.ndarray):
        y = np.asarray(y)
    if isinstance(y, np.ndarray) and not isinstance(y, np.ma.MaskedArray):
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if y.ndim == 1:
            return y, column_kind(y.dtype)
        raise InvalidData(
            f"{name} has shape {y.shape}; give one label for each row, in a flat list, array or "
            "Series."
        )
    raise InvalidData(
        f"{name} of type {type(y).__name__} cannot be used; give a flat list, array or Series with "
        "one label for each row."
    )


def _arrow_column(y: Any) -> Any:
    """Return labels of polars, pyarrow and the like as a column of Arrow; None for anything else.

    As an array of numpy they would have a type that a single missing label can change.
    """
    if isinstance(y, np.ndarray | pd.Series | pd.DataFrame | list | tuple):
        return None
    found = nw.from_native(y, allow_series=True, pass_through=True)
    if isinstance(found, nw.DataFrame) and len(found.columns) == 1:
        found = found.get_column(found.columns[0])
    if isinstance(found, nw.Series) and not found.implementation.is_pandas_like():
        found = to_arrow(found)
    if "pyarrow" not in sys.modules:  # then nobody can have a column of it
        return None
    if isinstance(found, pa.Array):
        return pa.chunked_array([found])
    return found if isinstance(found, pa.ChunkedArray) else None


def _only(cell: Any) -> Any:
    """Return the label in a list of one; a longer list stays as it is, and is no label."""
    # Not by isinstance, which asks the cell: it may be anything, and raise anything.
    return cell[0] if type(cell) is list and len(cell) == 1 else cell


# Ids of users, clients and queries

# For each kind of ids: the value of the parameter that turns them off, and one that turns them on.
SWITCHES = {
    "users": ("user_ids was False", "user_ids=True"),
    "clients": ("client_cap was None", "client_cap=0.01, say"),
}


@claim("USER")
def plain_id(one: Any) -> str | bytes | int | float | None:  # noqa: PLR0911 - one a kind of id
    """Return the only form of an id; None for what can be no id.

    Ids that Python calls equal, such as 1, 1.0, True and ``np.int8(1)``, have the same form: an
    ``int`` for whole numbers, else a ``float``, ``str`` or ``bytes``. All other types are refused,
    and so are NaN and fractions of numpy's types except ``float64``: for numpy,
    ``np.float32(0.1)`` equals 0.1, and does not equal ``np.float64(0.1)``.

    Examples
    --------
    >>> import numpy as np
    >>> from cumae.data import plain_id
    >>> plain_id(-0.0), plain_id(np.float64(0.5)), plain_id(np.str_("anna")), plain_id("1")
    (0, 0.5, 'anna', '1')
    """
    kind = type(one)
    if kind is str or kind is int or kind is bytes:
        return one  # type: ignore[no-any-return]
    # Methods of the base classes: a subclass may have others, which say something else.
    if issubclass(kind, str):
        return str.__str__(one)
    if issubclass(kind, bytes):
        return memoryview(one).tobytes()
    if issubclass(kind, int):
        return int.__int__(one)
    if kind is not np.timedelta64 and issubclass(kind, np.integer | np.bool_):  # a span is neither
        return int(one)
    if not issubclass(kind, float | np.floating):
        return None
    number = float.__float__(one) if issubclass(kind, float) else one
    if number.is_integer():
        return int(number)
    return number if type(number) is float and number == number else None  # noqa: PLR0124


@claim("USER")
def check_ids(ids: Any, wanted: bool, count: int, name: str) -> list[Any] | None:
    """Return ids of users, clients or queries, one for each row, each in its only form."""
    if not wanted:
        if ids is not None:
            raise InvalidData(
                f"{name} were given, but {SWITCHES[name][0]} at fit; leave them out, or fit anew "
                f"with {SWITCHES[name][1]}."
            )
        return None
    # A text would be read letter by letter, and a set has no order.
    flat = hasattr(ids, "__len__") and getattr(ids, "ndim", 1) == 1
    if ids is not None and (not flat or isinstance(ids, str | bytes | set | frozenset | dict)):
        raise InvalidData(
            f"{name} is a {type(ids).__name__}; give a list with one id for each row, such as "
            f'{name}=["anna"] for one.'
        )
    if ids is None or len(ids) != count:
        given = "none" if ids is None else len(ids)
        raise InvalidData(f"{name}: {given} for {count} rows; give one id for each row.")
    found = _listed(ids)
    if set(map(type, found)) <= {str, bytes, int}:
        return found
    plain = list(map(plain_id, found))
    if None in plain:
        raise InvalidData(
            f"{name} hold something that is no id; give texts, bytes or numbers, and no NaN. Of "
            "dates, decimals, tuples, UUIDs and the like, give the text: str(id). Of fractions in "
            "float32, give float64."
        )
    return plain


def _listed(ids: Any) -> list[Any]:
    """Return ids as a list; those of numpy's types without a Python type stay what they are."""
    if hasattr(ids, "to_pylist"):  # of pyarrow
        return list(ids.to_pylist())
    kind = getattr(ids, "dtype", None)
    if isinstance(kind, np.dtype) and kind.kind not in "biuUSO" and kind != np.float64:
        return list(ids if isinstance(ids, np.ndarray) else np.asarray(ids))
    return list(ids.tolist() if hasattr(ids, "tolist") else ids)


@claim("SHARDS")
def need_labels(codes: Integers, classes: Sequence[Any]) -> None:
    """Refuse labels of which (nearly) none is a declared class, before anything is paid.

    Parameters
    ----------
    codes : array of int
        The place of each label in the classes, or -1.
    classes : sequence
        The declared classes.

    Raises
    ------
    InvalidData
        If less than one label in a hundred is a class.
    """
    if fits_too_few(int(np.count_nonzero(codes >= 0)), len(codes)):
        raise InvalidData(
            f"hardly a label, or none, is one of classes={tuple(classes)!r}, so that nothing could "
            'be learnt; compare how they are written: "1" is not 1, and not "1.0".'
        )


def fits_too_few(fitting: int, present: int) -> bool:
    """Tell whether (nearly) no cell of those that are there fits a declaration."""
    return fitting < FEWEST_FITTING * present


def refuse_unfit(column: str, fitting: int, present: int, what: str) -> None:
    """Refuse a column of which (nearly) no cell fits its declaration, for its owner's eyes alone.

    Parameters
    ----------
    column : str
        How a message names it.
    fitting, present : int
        Cells that fit, and cells that are not missing.
    what : str
        What fits, for the message.
    """
    if fits_too_few(fitting, present):
        some = "hardly a cell" if fitting else "no cell"
        raise InvalidData(
            f"column {column} has {some} {what}, so that nothing could be learnt from it; compare "
            "how its cells are written, and in which unit, or leave it out.",
            columns=[column],
        )
