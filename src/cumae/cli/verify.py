"""``cumae verify``: walk the ledger of an oracle, and recompute its guarantee."""

from __future__ import annotations

import math

import typer

from cumae.cli.app import ExitCode
from cumae.cli.options import OraclePath
from cumae.errors import StoreFailed


def verify(path: OraclePath) -> None:
    """Walk the ledger of an oracle from its last checkpoint, and recompute the guarantee from it.

    Each answer must have its debit, no phase may have spent more than its noise was calibrated for,
    and the noise of each phase may cost no more than was promised. No key is needed. If anything
    does not fit, the exit code is 1.

    Example: `cumae verify oracle.db`
    """
    import cumae  # noqa: PLC0415 - what is used of it takes seconds to load
    from cumae.store import status  # noqa: PLC0415

    try:
        found = status(path)
    except StoreFailed as error:
        typer.secho(f"NOT VERIFIED: {error}", fg=typer.colors.RED, err=True)
        raise typer.Exit(ExitCode.CHECK_FAILED) from None
    totals, promised = found.totals, found.guarantee
    typer.echo(f"{found.n_entries:,} entries fit, up to entry {found.last.number:,}.")
    typer.echo(f"Head of the chain: {found.last.hash.hex()}")
    if totals.kind == "Budget":
        cumae.open(path)  # which refuses payments beyond the cap
        typer.echo(f"{totals.payments:,} payments stay within the cap.")
    elif math.isnan(totals.epsilon):
        typer.echo(
            f"{totals.used:,} of {totals.releases:,} releases are used. An older version of cumae "
            "wrote the ledger, without what they cost, so that only their number is recomputed."
        )
    elif totals.epsilon:
        typer.echo(
            f"Recomputed: epsilon {totals.epsilon:.6g} at delta {promised.delta:g} for a row of "
            f"the most expensive phase; promised: epsilon {promised.epsilon:g}."
        )
        if totals.priors:
            told = "1 prior was" if totals.priors == 1 else f"{totals.priors} priors were"
            typer.echo(f"{told} published, each within the promise, from rows of its own.")
    else:
        typer.echo("What answers was published, and costs nothing.")
