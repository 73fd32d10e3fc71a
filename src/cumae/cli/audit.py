"""``cumae audit``: attack the guarantees of the package, and see numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cumae.audit import catalogue, report
from cumae.audit.runs import Attack, Audit
from cumae.cli.app import ExitCode


def _in_a_folder(path: Path | None) -> Path | None:
    """Refuse a file that cannot be written before the work, not after it."""
    if path is not None and not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.parent}.")
    return path


def _file(name: str, text: str) -> Any:
    return typer.Option(name, dir_okay=False, writable=True, callback=_in_a_folder, help=text)


def audit(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="What to attack; everything if not given."),
    ] = None,
    epsilon: Annotated[float, typer.Option(help="The epsilon that is claimed.")] = 1.0,
    delta: Annotated[
        float,
        typer.Option(
            help="The delta that is claimed, where one is. With 1e-6 the claim is about events too "
            "rare to count, and epsilon comes out small; try 0.05."
        ),
    ] = 1e-6,
    runs: Annotated[
        int, typer.Option(min=20, help="Runs in each world of each attack, at most.")
    ] = 10_000,
    seconds: Annotated[
        float,
        typer.Option(help="Time for all attacks together; each plays a few runs in any case."),
    ] = 300.0,
    confidence: Annotated[
        float, typer.Option(help="Chance that all bounds together are right, at least.")
    ] = 0.95,
    jobs: Annotated[int, typer.Option(help="Processes to use; -1 for all cores.")] = 1,
    report_file: Annotated[
        Path | None, _file("--report", "Write a report in Markdown to this file.")
    ] = None,
    plot_file: Annotated[
        Path | None, _file("--plot", "Write all trade-off curves to this file, as SVG.")
    ] = None,
    json_file: Annotated[Path | None, _file("--json", "Write the results to this file.")] = None,
    list_only: Annotated[
        bool, typer.Option("--list", help="List what can be attacked, and stop.")
    ] = False,
) -> None:
    """Attack the privacy guarantees of this package, and see how much leaks.

    An attacker plays against the real code, many times, in two worlds that differ in one row or
    one query, and tries to tell which world it is in. How well it does proves a lower bound: the
    true epsilon is at least as large as measured. It is held against the claimed epsilon, which is
    proven to be at least as large as the true one.

    A measured value above the claim shows that the guarantee is false, and the exit code is 1. A
    value far below the claim is no sign that the claim is loose: a better attacker, or more runs,
    may show more. No audit proves privacy; the proofs do.
    """
    found = catalogue.everything(epsilon, delta)
    chosen = _chosen(names or list(found), found)
    if list_only:
        for attack in chosen:
            typer.echo(attack.name)
        return
    audits = catalogue.audit_all(
        chosen, runs=runs, seconds=seconds, confidence=confidence, n_jobs=jobs
    )
    typer.echo(report.table(audits))
    typer.echo(f"\n{report.plot(report.strongest(audits))}\n")
    typer.echo(report.certainty(audits))
    files = [(report_file, report.markdown), (plot_file, report.svg), (json_file, _json)]
    for path, write in files:
        if path is not None:
            path.write_text(write(audits), encoding="utf-8")
    if any(one.broken for one in audits):
        typer.secho(
            "BROKEN: a measured bound is above its claim, so that a guarantee does not hold. Play "
            "once more with --confidence 0.999999 to rule out bad luck, and report it privately, "
            "as SECURITY.md says.",
            fg=typer.colors.RED,
            err=True,
        )
        raise typer.Exit(ExitCode.CHECK_FAILED)


def _chosen(names: list[str], found: dict[str, list[Attack]]) -> list[Attack]:
    known = {name.lower(): attacks for name, attacks in found.items()}
    for name in names:
        if name.lower() not in known:
            raise typer.BadParameter(
                f"{name!r} is nothing that can be audited; there are: {', '.join(found)}."
            )
    # Whoever names something twice wants it once.
    return [attack for name in dict.fromkeys(map(str.lower, names)) for attack in known[name]]


def _json(audits: Sequence[Audit]) -> str:
    return json.dumps([one.to_dict() for one in audits], indent=1) + "\n"
