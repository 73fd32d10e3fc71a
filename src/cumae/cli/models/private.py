"""Private rows that passed every check, with what was declared about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.cli.files.checks import Inspection, LabelColumn, checked_rows, classes_of
from cumae.cli.files.csv_text import CsvForm
from cumae.cli.files.drafts import draft
from cumae.cli.files.guesses import guesses
from cumae.cli.files.messages import say
from cumae.cli.files.schemas import SchemaFile, parse_schema, read_schema
from cumae.cli.files.source import refuse_private_as_public, title
from cumae.cli.files.tables import Look, TableFile, TableHead, read_table_file
from cumae.data import Columns, RowSource, class_names


@dataclass(frozen=True)
class PrivateTable:
    """Private rows and their labels, ready for ``fit``.

    Parameters
    ----------
    file : TableFile
        The file as it was read.
    rows : RowSource
        The columns that are learnt from.
    places : array of int
        The place of each row's label among the classes.
    columns : Columns
        What was declared about the columns.
    classes : list
        The declared classes.
    public : RowSource, or None
        Public rows with the same columns.
    """

    file: TableFile
    rows: RowSource
    places: Integers
    columns: Columns
    classes: list[Any]
    public: RowSource | None = None

    @property
    def labels(self) -> NDArray[Any]:
        """The label of each row."""
        return np.asarray(class_names(self.classes)[self.places])

    @property
    def declared(self) -> dict[str, Any]:
        """What was declared, in the form that estimators take."""
        return {column.name: column for column in self.columns.columns}


def read_private(
    data: str,
    label: str,
    classes: str,
    schema: str | None,
    public: str | None,
    form: CsvForm,
) -> PrivateTable:
    """Read private rows, and check all that can be wrong with them.

    Parameters
    ----------
    data, label, classes : str
        The file, its column of labels, and the classes as they were given.
    schema, public : str, or None
        The files of declarations and of public rows.
    form : CsvForm
        How CSV is written.

    Raises
    ------
    InvalidData
        If a row or a cell is unusable.
    InvalidParameter
        If declarations are missing or do not fit.
    """
    refuse_private_as_public(data, public)
    wanted = classes_of(classes)
    declared = None if schema is None else read_schema(schema)
    form = form if declared is None else declared.form(form)
    shown = None if public is None else read_table_file(public, form)
    say(f"Reading {title(data)} ...")
    watch = _Watch(label, wanted, declared, shown)
    table = read_table_file(data, form, watch=watch)
    rows, columns = watch.inspection.end(table), watch.columns
    public_rows = _public_rows(shown, columns)
    return PrivateTable(table, rows, watch.labels.places, columns, wanted, public_rows)


class _Watch:
    """Decides by the head of a table how its rows are read, and looks at them on the way."""

    def __init__(
        self, label: str, classes: list[Any], declared: SchemaFile | None, public: TableFile | None
    ) -> None:
        self._given = (label, classes)
        self._declared, self._public = declared, public

    def __call__(self, head: TableHead) -> Look:
        self.labels = LabelColumn(head, *self._given)
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
