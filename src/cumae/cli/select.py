"""``cumae select``: draw the rows whose labels should be bought."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cumae.cli.options import Encoding, Force, Separator

# What takes seconds to load is imported by the functions that use it: other commands start faster.
if TYPE_CHECKING:
    from collections.abc import Iterator

    from cumae.arrays import Integers
    from cumae.cli.files.output import Output
    from cumae.cli.files.tables import TableFile

DataFile = Annotated[
    str,
    typer.Argument(metavar="DATA", help="Private rows without labels: CSV or Parquet."),
]
LabelCount = Annotated[int, typer.Option("--labels", min=1, help="How many labels will be bought.")]
NewLabel = Annotated[
    str,
    typer.Option("--label", metavar="COLUMN", help="The column to add, which labels are put into."),
]
OutFile = Annotated[
    str, typer.Option("-o", "--out", metavar="FILE", help="Where the rows to label go, as CSV.")
]
RestFile = Annotated[
    str,
    typer.Option("--rest", metavar="FILE", help="Where all other rows go, as CSV."),
]
ROWS_AT_ONCE = 20_000


def select(
    data: DataFile,
    labels: LabelCount,
    label: NewLabel,
    out: OutFile,
    rest: RestFile,
    encoding: Encoding = None,
    separator: Separator = None,
    force: Force = False,
) -> None:
    """Draw at random the rows whose labels should be bought, and write the others apart.

    Which rows are drawn depends on their number alone, so it tells nothing about anybody, and it
    may get known who was asked for a label (Definition 5.4 of paper 1). Both files hold private
    rows: only their owner can read them, and nothing is protected yet. Put the labels into the
    column that was added. Then `cumae fit` with --unlabelled learns from all rows, and pays once.

    Example: `cumae select queries.csv --labels 20 --label income -o to_label.csv --rest others.csv`
    """
    from cumae.cli.files.messages import messages_shown  # noqa: PLC0415
    from cumae.cli.files.output import Output  # noqa: PLC0415
    from cumae.cli.files.source import need_files  # noqa: PLC0415

    need_files(data)
    if out == rest:
        raise typer.BadParameter("it is the file of -o as well; give another.", param_hint="--rest")
    with messages_shown(), contextlib.ExitStack() as stack:
        files = [
            stack.enter_context(Output(path, force=force, private=True)) for path in (out, rest)
        ]
        from cumae.cli.files.csv_text import CsvForm  # noqa: PLC0415 - takes a second
        from cumae.cli.files.tables import read_table_file  # noqa: PLC0415

        table = read_table_file(data, CsvForm(encoding, separator))
        drawn, others = _drawn(table, labels, label)
        _write(files[1], table, others, [])
        _write(files[0], table, drawn, [label])
    typer.echo(
        f"{out}: {len(drawn):,} rows to label, in the column {label}. {rest}: {len(others):,} "
        "other rows. Both are private."
    )


def _drawn(table: TableFile, count: int, label: str) -> tuple[Integers, Integers]:
    """Return the places of rows that were drawn, and of all others, both in their order."""
    import numpy as np  # noqa: PLC0415

    from cumae.errors import InvalidData, InvalidParameter  # noqa: PLC0415
    from cumae.randomness import sample, source_for  # noqa: PLC0415

    rows = table.rows.n_rows
    if label in table.names:
        raise InvalidParameter(f"{table.name} has a column {label} already; name a new one.")
    if count >= rows:
        raise InvalidData(
            f"{table.name} has {rows:,} rows, and {count:,} labels are to be bought: then buy all."
        )
    drawn = np.sort(sample(rows, count, source_for(None)))
    others = np.ones(rows, dtype=bool)
    others[drawn] = False
    return drawn, np.flatnonzero(others)


def _write(output: Output, table: TableFile, places: Integers, added: list[str]) -> None:
    """Write rows as they are, with empty cells in columns that are added."""
    import csv  # noqa: PLC0415
    import io  # noqa: PLC0415

    with output.stream() as stream:
        text = io.TextIOWrapper(stream, "utf-8", newline="", write_through=True)
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*table.names, *added])
        writer.writerows([*cells, *([""] * len(added))] for cells in _cells(table, places))
        text.flush()
        text.detach()  # the output closes its stream


def _cells(table: TableFile, places: Integers) -> Iterator[list[Any]]:
    """Yield the cells of some rows; nothing for a missing one."""
    for start in range(0, len(places), ROWS_AT_ONCE):
        taken = table.rows.take(places[start : start + ROWS_AT_ONCE])
        for row in taken.itertuples(index=False, name=None):
            yield ["" if cell is None or cell != cell else cell for cell in row]  # noqa: PLR0124
