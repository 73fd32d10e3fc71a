"""``cumae schema``: draft the file that says what the columns hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cumae.cli.options import Encoding, Force, Public, Separator

if TYPE_CHECKING:
    from cumae.cli.files.csv_text import CsvForm

DataFile = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="The file of private rows. Only its header is read, and the types of Parquet columns.",
    ),
]
LabelOrNone = Annotated[
    str | None,
    typer.Option("--label", metavar="COLUMN", help="The column of the labels, to leave it out."),
]
OutFile = Annotated[
    str,
    typer.Option("-o", "--out", metavar="FILE", help="Where to write; - for standard output."),
]


def schema(
    data: DataFile,
    label: LabelOrNone = None,
    public: Public = None,
    out: OutFile = "-",
    encoding: Encoding = None,
    separator: Separator = None,
    force: Force = False,
) -> None:
    """Draft the file that says what each column holds, from the header and from public rows.

    Private rows are never looked at: what a column holds decides how all of its cells are read, so
    one person's cell would change what is learnt about everybody. Lines that you must complete have
    the word COMPLETE. With --public FILE, ranges and categories come from those rows, which must be
    no secret. The file is TOML, and its head explains the forms.

    Example: `cumae schema adult.csv --label income --public census.csv -o schema.toml`
    """
    from cumae.cli.files.csv_text import CsvForm  # noqa: PLC0415 - typer loads before it
    from cumae.cli.files.drafts import draft  # noqa: PLC0415
    from cumae.cli.files.headers import read_header  # noqa: PLC0415
    from cumae.cli.files.messages import messages_shown, say  # noqa: PLC0415
    from cumae.cli.files.output import Output  # noqa: PLC0415
    from cumae.cli.files.source import (  # noqa: PLC0415
        STANDARD,
        refuse_private_as_public,
        title,
    )
    from cumae.errors import InvalidData  # noqa: PLC0415

    form = CsvForm(encoding, separator)
    refuse_private_as_public(data, public)
    with messages_shown(), Output(out, force=force) as output:
        names, kinds = read_header(data, form)
        if label is not None and label not in names:
            raise InvalidData(
                f"{title(data)} has no column {label}, which --label names; it has "
                f"{', '.join(names)}."
            )
        kept = [place for place, name in enumerate(names) if name != label]
        columns = ([names[place] for place in kept], [kinds[place] for place in kept])
        guessed = None if public is None else _guessed(public, form)
        file = {"encoding": encoding, "separator": separator}
        text, waiting = draft(title(data), *columns, public, guessed, file)
        output.write(text.encode())
    where = "It" if out == STANDARD else out
    say(f"{where} declares {len(kept)} columns. No private row was read.")
    if waiting:
        say(f"Complete the {waiting} lines that have the word COMPLETE, then run `cumae plan`.")


def _guessed(public: str, form: CsvForm) -> dict[str, tuple[str, str]]:
    # Here, because the header alone needs nothing of it, and it takes a second to load.
    from cumae.cli.files.guesses import guesses  # noqa: PLC0415
    from cumae.cli.files.tables import read_table_file  # noqa: PLC0415

    return guesses(read_table_file(public, form))
