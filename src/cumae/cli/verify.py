"""``cumae verify``: walk the ledger of an oracle, and recompute its guarantee."""

from __future__ import annotations

import typer

from cumae.cli.app import ExitCode
from cumae.cli.options import Keys, OraclePath
from cumae.errors import StoreFailed


def verify(path: OraclePath, keys: Keys = None) -> None:
    """Walk the ledger of an oracle, and recompute the guarantee from it.

    Each answer must have its debit, no phase may have spent more than its noise was calibrated for,
    and the noise of each phase may cost no more than was promised. A long ledger begins with a
    checkpoint, which has a seal; only then are keys needed: those beside the file, or --keys. Where
    keys are at hand, the file must not be an older copy. If anything does not fit, the exit code
    is 1.

    Example: `cumae verify oracle.db`
    """
    from cumae.cli.files.source import need_files  # noqa: PLC0415

    need_files(path)
    from cumae.store import status  # noqa: PLC0415 - it takes long to load

    try:
        found = status(path, keys=keys)
        if found.unconfirmed:
            raise StoreFailed(
                f"the ledger begins with a checkpoint, entry {found.unconfirmed:,}. What follows "
                "fits, but what came before needs the keys, which can confirm the checkpoint; give "
                "--keys."
            )
        if found.trouble:
            raise StoreFailed(f"the ledger fits, but {found.trouble}")
    except StoreFailed as error:
        typer.secho(f"NOT VERIFIED: {error}", fg=typer.colors.RED, err=True)
        raise typer.Exit(ExitCode.CHECK_FAILED) from None
    totals, promised = found.totals, found.guarantee
    typer.echo(f"{found.n_entries:,} entries fit, up to entry {found.last.number:,}.")
    typer.echo(f"Head of the chain: {found.last.hash.hex()}")
    if totals.kind == "Budget":
        typer.echo(f"{totals.payments:,} payments stay within the cap.")
    elif totals.epsilon:
        typer.echo(
            f"Recomputed: epsilon {totals.epsilon:.6g} at delta {promised.delta:g} for a row of "
            f"the most expensive phase; promised: epsilon {promised.epsilon:g}."
        )
        if totals.priors:
            text = "1 prior was" if totals.priors == 1 else f"{totals.priors} priors were each"
            typer.echo(f"{text} published within the promise, from rows of its own.")
    else:
        typer.echo("What answers was published, and costs nothing.")
