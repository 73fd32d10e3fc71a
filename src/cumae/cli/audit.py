"""``cumae audit``: attack the guarantees of the package, and see numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from cumae import __version__
from cumae.cli.app import ExitCode
from cumae.cli.options import above_zero, below_one, checked
from cumae.errors import InvalidParameter
from cumae.progress import plain_lines

# What takes seconds to load is imported by the functions that use it: other commands start faster.
if TYPE_CHECKING:
    from cumae.audit.catalogue import Sources
    from cumae.audit.results import Audit
    from cumae.audit.runs import Attack


def _in_a_folder(path: Path | None) -> Path | None:
    """Refuse a file that cannot be written before the work, not after it."""
    if path is not None and not path.parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.parent}.")
    return path


def _svg(path: Path | None) -> Path | None:
    if path is not None and path.suffix.lower() != ".svg":
        raise typer.BadParameter(f"curves are written as SVG; name the file {path.stem}.svg, say.")
    return _in_a_folder(path)


def _file(name: str, text: str, check: Callable[[Path | None], Path | None] = _in_a_folder) -> Any:
    return typer.Option(name, dir_okay=False, writable=True, callback=check, help=text)


Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME", help="What to attack, as --list has it; everything if not given."
    ),
]
Epsilon = Annotated[
    float,
    typer.Option(
        callback=above_zero,
        help="The epsilon to ask for. What is claimed may be a little less.",
    ),
]
Delta = Annotated[
    float,
    typer.Option(
        callback=below_one,
        help="The delta that is claimed, where one is. With 1e-6 the claim is about events too "
        "rare to count, and epsilon comes out small; try 0.05.",
    ),
]
Runs = Annotated[
    int,
    typer.Option(
        min=20, help="Runs in each world of each attack, at most; half of them are counted."
    ),
]
Seconds = Annotated[
    float,
    typer.Option(
        callback=checked(lambda given: given > 0, "above 0"),
        help="Time for all attacks together, the same for each target. An attack of which too few "
        "runs fit in is left out, and named.",
    ),
]
Confidence = Annotated[
    float,
    typer.Option(
        callback=checked(lambda given: 0 < given < 1, "between 0 and 1"),
        help="Chance that all bounds together are right, at least.",
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        callback=checked(lambda given: given >= 1 or given == -1, "1 or more, or -1"),
        help="Processes to use; -1 for all cores. Starting them takes a few seconds.",
    ),
]
ReportFile = Annotated[Path | None, _file("--report", "Write a report in Markdown to this file.")]
PlotFile = Annotated[
    Path | None, _file("--plot", "Write all trade-off curves to this SVG file.", _svg)
]
JsonFile = Annotated[Path | None, _file("--json", "Write the results to this file.")]
ListOnly = Annotated[bool, typer.Option("--list", help="List what can be attacked, and stop.")]


def audit(
    names: Names = None,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    runs: Runs = 100_000,
    seconds: Seconds = 300.0,
    confidence: Confidence = 0.95,
    jobs: Jobs = 1,
    report_file: ReportFile = None,
    plot_file: PlotFile = None,
    json_file: JsonFile = None,
    list_only: ListOnly = False,
) -> None:
    """Attack the privacy guarantees of this package, and see how much leaks.

    An attacker plays against the real code, many times, in two worlds that differ in one row or
    one query (or in all of one user, where users are protected), and tries to tell which world it
    is in. How well it does proves a lower bound: the true epsilon is at least as large as measured.
    It is held against the claimed epsilon, which is proven to be at least as large as the true one.

    A measured value above the claim shows that the guarantee is false, and the exit code is 1 (2
    and 3 mean, as for all commands, that an option is wrong or that what was named could not be
    played). "could be" is what so many runs would show of a leak of everything. "cannot tell" means
    that even this is not above the claim. The first attack on each target is also played against
    code with a planted bug, which it should catch. A value far below the claim is no sign that the
    claim is loose: a better attacker, or more runs, may show more. No audit proves privacy; the
    proofs do.

    Example: `cumae audit ExponentialMechanism --seconds 3`
    """
    from cumae.audit import catalogue, report  # noqa: PLC0415
    from cumae.store.driver.thefts import ATTACKS  # noqa: PLC0415

    sources = {**catalogue.SOURCES, **ATTACKS}
    if list_only and any([report_file, plot_file, json_file]):
        raise typer.BadParameter("--list plays nothing, so that there is nothing to write.")
    chosen, left_out = _chosen(names or list(sources), sources, epsilon, delta)
    if left_out and (names or not chosen):  # what was asked for by name is not left out
        raise InvalidParameter(left_out[0])
    for reason in left_out:
        typer.echo(f"Left out: {reason}", err=True)
    if list_only:
        typer.echo("\n".join(attack.name for attack in chosen))
        return
    with plain_lines():
        audits, too_slow = catalogue.audit_all(
            chosen, runs=runs, seconds=seconds, confidence=confidence, n_jobs=jobs
        )
    few = catalogue.reasons_for_few(audits, runs)
    _tell(audits, {"Few runs": few, "Left out": catalogue.in_short(too_slow)})
    left_out += [*few, *too_slow]
    settings = {
        "cumae": __version__,
        "date": datetime.now(UTC).date().isoformat(),
        "names": names or "all",
        "epsilon": epsilon,
        "delta": delta,
        "runs": runs,
        "seconds": seconds,
        "confidence": confidence,
        "jobs": jobs,
    }
    if report_file is not None:
        _write(report_file, report.markdown(audits, settings, left_out))
    if plot_file is not None:
        _write(plot_file, report.svg(audits))
    if json_file is not None:
        _write(json_file, _as_json(audits, settings, left_out))
    if any(one.broken for one in audits):
        _stop_as_broken()


def _tell(audits: Sequence[Audit], lists: Mapping[str, Sequence[str]]) -> None:
    """Print the table, the strongest attack beside its planted bug, and lists with their titles."""
    from cumae.audit import report  # noqa: PLC0415

    best = report.strongest(audits)
    typer.echo(f"{report.table(audits)}\n\n{report.plot(best, report.plant_of(best, audits))}\n")
    typer.echo("\n".join(filter(None, [report.certainty(audits), report.caught_bugs(audits)])))
    for title, entries in lists.items():
        if entries:
            typer.echo(f"\n{title}:\n" + "\n".join(f"- {line}" for line in entries))


def _as_json(audits: Sequence[Audit], settings: dict[str, Any], left_out: list[str]) -> str:
    plain = [one.to_dict() for one in audits]
    found = {"settings": settings, "audits": plain, "left_out": left_out}
    return json.dumps(found, indent=1) + "\n"


def _stop_as_broken() -> NoReturn:
    typer.secho(
        "BROKEN: a measured bound is above its claim, so that a guarantee does not hold. Play once "
        "more with --confidence 0.999999 to rule out bad luck, and report it privately, as "
        "SECURITY.md says.",
        fg=typer.colors.RED,
        err=True,
    )
    raise typer.Exit(ExitCode.CHECK_FAILED)


def _chosen(
    names: list[str], sources: Sources, epsilon: float, delta: float
) -> tuple[list[Attack], list[str]]:
    """Return the attacks of these names, each once, and why others cannot be made.

    A name is that of something to attack, or of one of the attacks on it.
    """
    from cumae.audit import catalogue  # noqa: PLC0415

    known = {name.lower(): name for name in sources}
    chosen: dict[str, Attack] = {}
    left_out = []
    for name in names:
        target = known.get(catalogue.audited(name).lower())
        if target is None:
            raise typer.BadParameter(_unknown(name, list(known.values())))
        found, reasons = catalogue.attacks_on(target, epsilon, delta, sources)
        left_out += reasons
        meant = [one for one in found if name.lower() in (target.lower(), one.name.lower())]
        if not meant and not reasons:
            raise typer.BadParameter(_unknown(name, [one.name for one in found]))
        chosen |= {one.name: one for one in meant}
    return list(chosen.values()), left_out


def _unknown(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known)
    listed = f"did you mean {close[0]!r}?" if close else f"there are: {'; '.join(known)}."
    return f"{name!r} is nothing that can be audited; {listed}"


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
