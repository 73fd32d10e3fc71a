"""``cumae status``: what an oracle has promised, what it has given, and what is left."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import typer

from cumae.cli.options import AsJson, Full, Keys, OraclePath

# What takes seconds to load is imported by the functions that use it: other commands start faster.
if TYPE_CHECKING:
    from cumae.store import Status


def status(
    path: OraclePath, keys: Keys = None, full: Full = False, as_json: AsJson = False
) -> None:
    """Show the guarantee of an oracle, its phase, and the answers given and left.

    It may be in use meanwhile, and no key is needed. Its ledger is verified first. If that does
    not fit, the exit code is 3, and nobody should go on with the file. If the keys are at hand, and
    say that the file is an older copy, a line in capitals says so.

    Example: `cumae status oracle.db --json`, `cumae status postgresql://owner@host/oracles`
    """
    from cumae.cli.files.source import need_files  # noqa: PLC0415

    need_files(path)
    from cumae.store import status as status_of  # noqa: PLC0415

    found = status_of(path, keys=keys)
    typer.echo(json.dumps(found.to_dict(), indent=1) if as_json else described(found, full=full))


IGNORED = "0: the votes count nothing, and the published prior alone answers (docs/everlasting.md)"


def described(found: Status, *, full: bool = False) -> str:
    """Return lines about an oracle, for people."""
    from cumae.cli.files.messages import under  # noqa: PLC0415

    totals = found.totals
    spent = [
        ("phase", f"{totals.phase} (key {totals.epoch})"),
        ("answers", f"{totals.answers:,} recorded"),
        ("releases", _left(found)),
    ]
    if totals.kind == "Budget":
        spent = [("payments", f"{totals.payments:,}")]
    lines = [
        ("oracle", f"{totals.kind} in {found.path}"),
        ("promise", found.guarantee.full() if full else str(found.guarantee)),
        *spent,
        ("ledger", f"{found.last.number:,} entries, verified{_since(found)}"),
        ("disk", f"{found.n_bytes:,} bytes"),
        ("in use", _users(found)),
    ]
    if found.drift is not None:
        lines.insert(2, ("drift", str(found.drift)))
    if totals.weight == 0:
        lines.insert(2, ("trust", IGNORED))
    if totals.charged:
        lines.insert(5, ("charged", f"{totals.charged:,} without an answer, after restarts"))
    if totals.rollbacks:
        lines.insert(5, ("rollbacks", f"{totals.rollbacks} accepted by the owner"))
    if found.trouble:
        lines.insert(1, ("TROUBLE", found.trouble))
    return "\n".join(under(f"{name + ':':<11}", text) for name, text in lines)


def _since(found: Status) -> str:
    if not found.unconfirmed:
        return ""
    return f" from entry {found.unconfirmed:,} on; what came before needs the keys"


def _users(found: Status) -> str:
    several = f", by {found.n_replicas} replicas" if found.n_replicas > 1 else ""
    return f"yes{several}" if found.in_use else "no"


def _left(found: Status) -> str:
    totals = found.totals
    if not totals.releases:
        return "none are needed: what answers was published"
    left = totals.releases - totals.used
    text = f"{totals.used:,} of {totals.releases:,} of this phase are used, {left:,} are left"
    if totals.epsilon and math.isfinite(totals.epsilon):
        text += f"; their noise costs epsilon {totals.epsilon:.4g}"
    if totals.kind == "EverlastingPredictor":
        text += ". Then the next phase begins"
    return text
