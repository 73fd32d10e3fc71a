"""What ``fit`` wrote: a published model in a JSON file, or an oracle."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cumae.cli.files.tables import TableFile
from cumae.data import Column, Columns, RowSource
from cumae.errors import CumaeError, InvalidData, InvalidParameter

SQLITE = b"SQLite format 3\0"


def is_oracle(path: str) -> bool:
    """Tell whether a path names an oracle, by the first bytes of the file or by its address."""
    if "://" in path:
        return True
    try:
        with Path(path).open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except FileNotFoundError:
        raise InvalidData(f"there is no file {path}.") from None
    except OSError as error:
        raise InvalidData(f"{path} cannot be read: {error.strerror}.") from None


def load_model(path: str) -> Any:
    """Return the published model in a JSON file."""
    from cumae.learners import Learner  # noqa: PLC0415 - takes seconds to load

    try:
        plain = json.loads(Path(path).read_text(encoding="utf-8"))
        if isinstance(plain, dict) and plain.get("kind") == "PrivateClassifier":
            plain = plain.get("model")  # what it chose
        return Learner.from_dict(plain)
    except CumaeError as error:
        raise InvalidParameter(f"{path}: {error}") from None
    except (AttributeError, TypeError, ValueError):
        raise InvalidParameter(f"{path} is neither a model nor an oracle of cumae.") from None


@contextlib.contextmanager
def opened_fitted(path: str, keys: str | None) -> Iterator[Any]:
    """Return a model, or an oracle that is open until the end of the block.

    Parameters
    ----------
    path : str
        What ``fit`` wrote.
    keys : str, or None
        The command that keeps the keys of an oracle, if there is one.
    """
    if not is_oracle(path):
        yield load_model(path)
        return
    import cumae  # noqa: PLC0415 - what is used of it takes seconds to load

    found = cumae.open(path, keys=keys)
    if not hasattr(found, "predict"):
        raise InvalidParameter(f"{path} is an account, which answers nothing.")
    try:
        yield found
    finally:
        if hasattr(found, "close"):  # a published model in an oracle has nothing to close
            found.close()


def columns_of(fitted: Any) -> Columns:
    """Return how a model or an oracle reads its columns."""
    known = getattr(fitted, "columns_", None)
    if isinstance(known, Columns):
        return known
    names = getattr(fitted, "feature_names_in_", None)
    listed = None if names is None else [str(name) for name in names]
    return Columns(fitted.columns, listed, fitted.n_features_in_)


def features_for(table: TableFile, columns: Columns) -> RowSource:
    """Return the columns of a file that a model or an oracle wants, in its order.

    Others may be there, and are left alone. If the model knows no names, the order counts.
    """
    return table.features(_found_in(table, columns))


def _found_in(table: TableFile, columns: Columns) -> Sequence[Column]:
    if columns.original_names is not None:
        table.need(columns.original_names, "which the model was fitted with")
        return columns.columns
    if len(table.names) != len(columns.columns):
        raise InvalidData(
            f"{table.name} has {len(table.names)} columns, but the model was fitted with "
            f"{len(columns.columns)} columns without names."
        )
    return [
        replace(column, name=name)
        for column, name in zip(columns.columns, table.names, strict=True)
    ]
