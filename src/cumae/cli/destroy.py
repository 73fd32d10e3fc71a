"""``cumae destroy``: end an oracle for ever."""

from __future__ import annotations

from typing import Annotated

import typer

from cumae.cli.options import Keys, OraclePath

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def destroy(path: OraclePath, keys: Keys = None, yes: Yes = False) -> None:
    """Destroy an oracle: first its keys, so that no copy can be read any more, then its file.

    Example: `cumae destroy oracle.db --yes`
    """
    from cumae.cli.files.source import need_files  # noqa: PLC0415

    need_files(path)
    from cumae import store  # noqa: PLC0415 - takes seconds to load

    found = store.status(path, keys=keys)
    if not yes:
        typer.confirm(
            f"Destroy the {found.totals.kind} in {found.path}, with {found.totals.answers:,} "
            "answers recorded? Nothing brings it back.",
            abort=True,
        )
    store.destroy(path, keys=keys)
    typer.echo("Destroyed.")
