"""Private rows that passed every check, with what was declared about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cumae.arrays import Integers
from cumae.cli.files.checks import check_cells, classes_of, label_places
from cumae.cli.files.csv_text import CsvForm
from cumae.cli.files.drafts import draft
from cumae.cli.files.guesses import guesses
from cumae.cli.files.messages import say
from cumae.cli.files.schemas import SchemaFile, parse_schema, read_schema
from cumae.cli.files.source import refuse_private_as_public, title
from cumae.cli.files.tables import TableFile, read_table_file
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
    shown = None if public is None else read_table_file(public, form)
    say(f"Reading {title(data)} ...")
    table = read_table_file(data, form)
    table.need([label], "which --label names")
    if declared is None:
        declared = drafted(table, label, shown)
    columns = declared.columns_for(table, label)
    places = label_places(table, label, wanted)
    rows = table.features(columns.columns)
    check_cells(table, columns, rows)
    return PrivateTable(table, rows, places, columns, wanted, _public_rows(shown, columns))


def drafted(table: TableFile, label: str, public: TableFile | None) -> SchemaFile:
    """Return what public rows say about the columns, or nothing.

    Parameters
    ----------
    table : TableFile
        The private rows, of which the names of columns are looked at, and types that a file states.
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
    rows = public.features(columns.columns)
    check_cells(public, columns, rows)
    return rows
