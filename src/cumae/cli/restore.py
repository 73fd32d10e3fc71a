"""``cumae restore``: go on with an older copy of an oracle."""

from __future__ import annotations

from typing import Annotated

import typer

from cumae.cli.options import Keys, OraclePath

Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def restore(path: OraclePath, keys: Keys = None, yes: Yes = False) -> None:
    """Go on with an older copy of an oracle, which now has the name of its file.

    First stop the oracle, and put the copy where its file was, beside its keys. All answers that
    may have been given since the copy are charged, and the ledger says so. A copy from an earlier
    phase cannot go on: its keys are destroyed. In Python, `accept_rollback=True` does the same.

    Example: `cumae restore oracle.db --yes`
    """
    from cumae.cli.files.source import need_files  # noqa: PLC0415

    need_files(path)
    import cumae  # noqa: PLC0415 - what is used of it takes seconds to load

    if not yes:
        typer.confirm(
            f"Go on with {path} as it is? If it is an older copy, all answers that may have been "
            "given since are charged, and the newer file is of no use any more.",
            abort=True,
        )
    found = cumae.open(path, keys=keys, accept_rollback=True)
    if hasattr(found, "close"):
        found.close()
    typer.echo("Restored: the file can go on. `cumae status` shows what was charged.")
