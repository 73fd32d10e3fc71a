"""The files that ``fit`` wrote: a published model in JSON, or an oracle."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cumae.cli.files.csv_text import CsvForm
from cumae.cli.files.source import is_sqlite
from cumae.cli.files.tables import TableFile, TableHead
from cumae.data import Columns, RowSource
from cumae.errors import CumaeError, InvalidData, InvalidParameter


def is_oracle(path: str) -> bool:
    """Tell whether a path names an oracle, by the first bytes of the file or by its address."""
    if "://" in path:
        return True
    try:
        return is_sqlite(path)
    except FileNotFoundError:
        raise InvalidData(f"there is no file {path}.") from None
    except OSError as error:
        raise InvalidData(f"{path} cannot be read: {error.strerror}.") from None


def load_model(path: str) -> Any:
    """Return the published model in a JSON file."""
    try:
        plain = json.loads(Path(path).read_text(encoding="utf-8"))
        if plain["kind"] == "PrivateClassifier":  # it is the model that it chose
            plain = plain["model"]
        from cumae.learners import Learner  # noqa: PLC0415 - takes seconds to load

        return Learner.from_dict(plain)
    except CumaeError as error:
        raise InvalidParameter(f"{path}: {error}") from None
    except (AttributeError, LookupError, TypeError, ValueError):
        raise InvalidParameter(
            f"{path} is neither a model nor an oracle of cumae; give a file that `cumae fit` wrote."
        ) from None


@contextlib.contextmanager
def opened_fitted(path: str, keys: str | None) -> Iterator[Any]:
    """Return a model, or an oracle that is open until the end of the block.

    Parameters
    ----------
    path : str
        What ``fit`` wrote.
    keys : str, or None
        The command or folder that keeps the keys of an oracle, if they are not beside it.
    """
    if not is_oracle(path):
        yield load_model(path)
        return
    import cumae  # noqa: PLC0415 - what is used of it takes seconds to load

    found = cumae.open(path, keys=keys)
    if not hasattr(found, "predict"):
        raise InvalidParameter(
            f"{path} is an account, which answers nothing; `cumae status` shows what it has paid. "
            "Give the file of a model or of an oracle."
        )
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
    return table.features(columns_in(table.head, columns).columns)


def columns_in(head: TableHead, columns: Columns) -> Columns:
    """Return the columns of a model by the names that they have in a file.

    Parameters
    ----------
    head : TableHead
        The names of the file.
    columns : Columns
        Those of the model.
    """
    if columns.original_names is not None:
        head.need(columns.original_names, "which the model was fitted with")
        return columns
    if len(head.names) != len(columns.columns):
        raise InvalidData(
            f"{head.name} has {len(head.names)} columns, but the model was fitted with "
            f"{len(columns.columns)} columns without names."
        )
    return Columns(columns.columns, head.names, len(head.names))


def form_for(columns: Columns, given: CsvForm) -> CsvForm:
    """Return how CSV is written: what the command line says goes before the schema of fit.

    Parameters
    ----------
    columns : Columns
        Those of the model, which know what the schema said.
    given : CsvForm
        What the command line says.
    """
    written = columns.columns[0].written
    return given.filled(written.encoding, written.separator)
