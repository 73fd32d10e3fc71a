"""``cumae backup``: copy the file of an oracle, or the tables at its address."""

from __future__ import annotations

from typing import Annotated

import typer

from cumae.cli.options import OraclePath

CopyPath = Annotated[
    str, typer.Argument(metavar="COPY", help="A file that does not exist yet, or an address.")
]


def backup(path: OraclePath, copy: CopyPath) -> None:
    """Copy the file of an oracle, also while it is in use; keys are not copied.

    To go back to a copy, stop the oracle, put the copy where its file was, and run `cumae
    restore`. It works until the phase ends; what may have been used since the copy is charged. An
    oracle at an address becomes a file here; to go back to it, copy the file to an empty schema.

    Example: `cumae backup oracle.db copy.db`
    """
    from cumae.cli.files.source import need_files  # noqa: PLC0415

    need_files(path)
    from cumae import store  # noqa: PLC0415 - takes seconds to load

    store.backup(path, copy)
    typer.echo(f"Copied to {store.place_of(copy).name}.")
    found = store.status(copy)
    if found.totals.releases:
        typer.echo(
            f"It is of use with the same keys until phase {found.totals.phase} ends. `cumae "
            "restore` goes on with it."
        )
