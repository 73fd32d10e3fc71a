"""Reading of private rows, labels and queries: each one by itself, by declared types.

First, names and types of every table are compared with what was declared. ``table_of`` (``rows``)
turns data frames of other libraries into rows of Arrow. ``Columns`` (``columns``) has a ``Column``
(``declared``) for each column of the table. ``kinds`` knows what a column can hold by its type, and
``Problems`` there puts all declarations that are lacking or do not fit into one error. No cell is
looked at for that.

The way of a training row of a predictor. ``row_source`` (``rows``, ``parquet``) wraps the table and
reads nothing but its size, names and types. ``label_codes`` (``labels``) reads the label. When a
shard asks for the row, ``RowSource.take`` copies it, and cells of unusual types become ordinary
values (``cells``). Then it becomes numbers, by what was declared about the columns: ``as_numbers``
for an estimator, or ``read_table`` where no cell may raise (both in ``lenient``). Where all rows
are needed at once, ``clean_table`` reads them, and replaces unusable ones by zeros.

The way of a query (``QueryReader`` in ``cumae.predictors.queries``). If queries are protected,
``read_one_by_one`` (``lenient``) makes one table of a list of queries. ``Columns.arrange`` brings
the columns into the order of fit, and refuses a table that has others. ``Columns.read`` makes
numbers of it; for models that take data frames, ``typed_frame`` gives it the types that were fixed
at fit. A query that cannot be read is unusable. That is no error: a made-up row takes its place,
and the others do not notice. If queries are public, ``Columns.encode`` reads them, and an unusable
one is refused.

Learners and concept classes read their rows as a whole before they pay, and refuse what they cannot
use: ``Columns.encode``, ``class_places``, ``check_table`` and ``check_column`` (``strict``). Some
learners leave rows of files where they are, and ``cumae.engines`` reads them in pieces.

What all of them share exists once: ``containers`` knows names, widths and lengths of tables,
``cells`` makes ordinary values of cells, and ``readings`` makes numbers of these. What one cell
holds never changes how another one is read.
"""

from cumae.codec import register_kind
from cumae.data.cells import answers_of, ordinary_cells
from cumae.data.columns import FLAT, Columns, Declared
from cumae.data.containers import (
    PIECE,
    RowSource,
    cells_of_columns,
    concatenated,
    frame_of,
    length_of,
    names_of,
    width_of,
)
from cumae.data.declared import INDICATOR, Bounds, Column
from cumae.data.kinds import undeclared_kinds
from cumae.data.labels import (
    UNLABELLED,
    check_ids,
    check_labels,
    check_rows,
    check_some_rows,
    class_names,
    class_places,
    label_codes,
    need_labels,
    plain_id,
)
from cumae.data.lenient import (
    as_numbers,
    bad_rows,
    clean_table,
    faults_of,
    need_contents,
    need_keys,
    plain_floats,
    read_one_by_one,
    read_table,
    typed_frame,
    usable_frame,
    usable_rows,
)
from cumae.data.parquet import ParquetRows
from cumae.data.readings import is_missing, numbers
from cumae.data.rows import (
    ArrayRows,
    EncodedRows,
    FrameRows,
    SomeRows,
    labelled_table,
    need_cells,
    row_source,
    table_of,
)
from cumae.data.strict import (
    EXACT,
    check_cell,
    check_column,
    check_number,
    check_table,
    check_tables,
    check_tuple,
    exact_weights,
    family,
    plain_value,
)
from cumae.data.texts import WORD_BYTES, Order, middle_keys, next_key

__all__ = [
    "EXACT",
    "FLAT",
    "INDICATOR",
    "PIECE",
    "UNLABELLED",
    "WORD_BYTES",
    "ArrayRows",
    "Bounds",
    "Column",
    "Columns",
    "Declared",
    "EncodedRows",
    "FrameRows",
    "Order",
    "ParquetRows",
    "RowSource",
    "SomeRows",
    "answers_of",
    "as_numbers",
    "bad_rows",
    "cells_of_columns",
    "check_cell",
    "check_column",
    "check_ids",
    "check_labels",
    "check_number",
    "check_rows",
    "check_some_rows",
    "check_table",
    "check_tables",
    "check_tuple",
    "class_names",
    "class_places",
    "clean_table",
    "concatenated",
    "exact_weights",
    "family",
    "faults_of",
    "frame_of",
    "is_missing",
    "label_codes",
    "labelled_table",
    "length_of",
    "middle_keys",
    "names_of",
    "need_cells",
    "need_contents",
    "need_keys",
    "need_labels",
    "next_key",
    "numbers",
    "ordinary_cells",
    "plain_floats",
    "plain_id",
    "plain_value",
    "read_one_by_one",
    "read_table",
    "row_source",
    "table_of",
    "typed_frame",
    "undeclared_kinds",
    "usable_frame",
    "usable_rows",
    "width_of",
]

register_kind("columns", Columns)
register_kind("column", Column)
