"""Private rows that passed every check, with what was declared about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cumae.cli.files.checks import Inspection, LabelColumn, checked_rows, classes_of
from cumae.cli.files.csv_text import CsvForm
from cumae.cli.files.drafts import draft
from cumae.cli.files.guesses import guesses
from cumae.cli.files.messages import say
from cumae.cli.files.numbers import NumberColumn
from cumae.cli.files.schemas import SchemaFile, parse_schema, read_schema
from cumae.cli.files.source import refuse_private_as_public, refuse_twice, title
from cumae.cli.files.tables import BlockCheck, TableFile, TableHead, TextRows, read_table_file
from cumae.data import UNLABELLED, Columns, RowSource, class_names, row_source
from cumae.data.readings import numbers_in_text


@dataclass(frozen=True)
class PrivateTable:
    """Private rows and their labels, ready for ``fit``.

    Parameters
    ----------
    file : TableFile
        The file as it was read.
    rows : RowSource
        The columns that are learnt from.
    places : array
        The place of each row's label among the classes, or its number.
    columns : Columns
        What was declared about the columns.
    classes : list
        The declared classes; none if labels are numbers.
    public : RowSource, or None
        Public rows with the same columns.
    n_unlabelled : int
        How many of the rows, the last ones, have no label.
    """

    file: TableFile
    rows: RowSource
    places: NDArray[Any]
    columns: Columns
    classes: list[Any]
    public: RowSource | None = None
    n_unlabelled: int = 0

    @property
    def labels(self) -> NDArray[Any]:
        """The label of each row, and -1 for rows without one; or its number."""
        if not self.classes:
            return self.places
        known = np.asarray(class_names(self.classes)[self.places])
        if not self.n_unlabelled:
            return known
        rest = np.full(self.n_unlabelled, UNLABELLED, dtype=object)
        return np.concatenate([known.astype(object), rest])

    def frame(self, rows: RowSource) -> pd.DataFrame:
        """Return rows as a frame in which declared columns of numbers hold numbers.

        Parameters
        ----------
        rows : RowSource
            The private or the public rows.
        """
        frame: pd.DataFrame = rows.take(np.arange(rows.n_rows))
        for place, column in enumerate(self.columns.columns):
            if column.kind == "numbers" and column.categories is None:
                cells = frame.iloc[:, place].to_numpy()
                frame[frame.columns[place]] = numbers_in_text(cells, column.written)
        return frame

    @property
    def n_labelled(self) -> int:
        """Number of rows that have a label."""
        return self.rows.n_rows - self.n_unlabelled

    @property
    def declared(self) -> dict[str, Any]:
        """The declared columns, in the form that estimators take."""
        return {column.name: column for column in self.columns.columns}


def read_private(
    data: str,
    label: str,
    classes: str | None,
    schema: str | None,
    public: str | None,
    form: CsvForm,
    unlabelled: str | None = None,
) -> PrivateTable:
    """Read private rows, and check all that can be wrong with them.

    Parameters
    ----------
    data, label : str
        The file, and its column of labels.
    classes : str, or None
        The classes as they were given; None for labels that are numbers.
    schema, public : str, or None
        The files of declarations and of public rows.
    form : CsvForm
        How CSV is written.
    unlabelled : str, or None
        The file of private rows without labels.

    Raises
    ------
    InvalidData
        If a row or a cell is unusable.
    InvalidParameter
        If declarations are missing or do not fit.
    """
    refuse_private_as_public(data, public)
    refuse_private_as_public(unlabelled, public)
    refuse_twice(data, unlabelled)
    wanted = [] if classes is None else classes_of(classes)
    declared = None if schema is None else read_schema(schema)
    form = form if declared is None else declared.form(form)
    shown = None if public is None else read_table_file(public, form)
    say(f"Reading {title(data)} ...")
    watch = _Watch(label, wanted, declared, shown)
    table = read_table_file(data, form, watch=watch)
    rows, columns = watch.inspection.end(table), watch.columns
    public_rows = _public_rows(shown, columns)
    found = PrivateTable(table, rows, watch.labels.places, columns, wanted, public_rows)
    return found if unlabelled is None else _with_unlabelled(found, unlabelled, form)


def _with_unlabelled(table: PrivateTable, path: str, form: CsvForm) -> PrivateTable:
    """Return a table with rows of a second file behind its own; they need no column of labels."""
    say(f"Reading {title(path)} ...")
    watch = _Unlabelled(table.columns)
    found = read_table_file(path, form, watch=watch)
    more = watch.inspection.end(found)
    rows: RowSource
    if isinstance(table.rows, TextRows) and isinstance(more, TextRows):
        pairs = zip(table.rows.columns, more.columns, strict=True)
        rows = TextRows(list(table.rows.names), [np.concatenate(pair) for pair in pairs])
    else:
        frames = [one.take(np.arange(one.n_rows)) for one in (table.rows, more)]
        rows = row_source(pd.concat(frames, ignore_index=True))
    return replace(table, rows=rows, n_unlabelled=more.n_rows)


class _Unlabelled:
    """Looks at rows without labels as they are read."""

    def __init__(self, columns: Columns) -> None:
        self.inspection = Inspection(columns)

    def __call__(self, head: TableHead) -> BlockCheck:
        names = [column.name for column in self.inspection.columns.columns]
        head.need(names, "which the labelled rows have")
        return self.inspection.look


class _Watch:
    """Decides by the head of a table how its rows are read, and looks at them on the way."""

    def __init__(
        self, label: str, classes: list[Any], declared: SchemaFile | None, public: TableFile | None
    ) -> None:
        self._given = (label, classes)
        self._declared, self._public = declared, public

    def __call__(self, head: TableHead) -> BlockCheck:
        label, classes = self._given
        self.labels: Any = LabelColumn(head, label, classes) if classes else None
        self.labels = self.labels or NumberColumn(head, label)
        declared = self._declared or drafted(head, self._given[0], self._public)
        self.columns = declared.columns_for(head, self._given[0])
        self.inspection = Inspection(self.columns, self.labels)
        return self.inspection.look


def drafted(table: TableHead, label: str, public: TableFile | None) -> SchemaFile:
    """Return what public rows say about the columns, or nothing.

    Parameters
    ----------
    table : TableHead
        Names of the private rows' columns, and types that a file states.
    label : str
        The column of the labels.
    public : TableFile, or None
        The public rows.
    """
    if public is None:
        return SchemaFile()
    names = [name for name in table.names if name != label]
    text, _ = draft(table.name, names, table.kinds(names), public.name, guesses(public))
    return parse_schema(text, f"what {public.name} says, without --schema,")


def _public_rows(public: TableFile | None, columns: Columns) -> RowSource | None:
    if public is None:
        return None
    public.need([column.name for column in columns.columns], "which the private rows have")
    return checked_rows(public, columns)
