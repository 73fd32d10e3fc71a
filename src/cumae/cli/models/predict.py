"""``cumae predict``: answers for a file of queries, from a model or an oracle."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from cumae.cli.options import (
    AsJson,
    DryRun,
    Encoding,
    FittedPath,
    Force,
    Keys,
    Separator,
    checked,
)

QueriesFile = Annotated[
    str,
    typer.Argument(
        metavar="QUERIES",
        help="CSV or Parquet with the columns of the model, and others that are copied; "
        "- for standard input.",
    ),
]
OutFile = Annotated[
    str,
    typer.Option(
        "-o",
        "--out",
        metavar="FILE",
        help="Where answers go: .csv, .csv.gz or .parquet; - for standard output.",
    ),
]
AnswerColumn = Annotated[
    str, typer.Option("--column", metavar="NAME", help="Name of the column of answers.")
]
Chances = Annotated[
    bool, typer.Option("--chances", help="Also write the chance of each class; models only.")
]
Interval = Annotated[
    float | None,
    typer.Option(
        "--interval",
        metavar="SHARE",
        callback=checked(lambda value: 0 < value < 1, "above 0 and below 1"),
        help="Also write intervals that hold such a share of the numbers, 0.9 say; models of a "
        "number only.",
    ),
]
Request = Annotated[
    str | None,
    typer.Option(
        "--request",
        metavar="NAME",
        help="A name for these queries: if an oracle's answers were lost on the way, the same name "
        "gets them again for free, until the phase ends. If a phase ends within the file, its "
        "answers are not kept.",
    ),
]


def predict(
    fitted: FittedPath,
    queries: QueriesFile,
    out: OutFile = "-",
    column: AnswerColumn = "answer",
    chances: Chances = False,
    interval: Interval = None,
    request: Request = None,
    keys: Keys = None,
    encoding: Encoding = None,
    separator: Separator = None,
    dry_run: DryRun = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Answer a file of queries, and write it with a column of answers.

    A model answers for free. An oracle counts its answers: what it gives is paid, and an oracle
    that protects queries learns from them. Give its answers to those who asked, and to nobody else.

    A query with a cell that cannot be read has an empty answer, and changes nothing for the others.
    In a file for an oracle that protects queries each line is one query. Cells that a spreadsheet
    would take for a formula are written with an apostrophe before them; numbers stay as they are.
    The file of answers holds the queries, too, and nobody except its owner may read it.

    Example: `cumae predict model.json queries.csv -o answers.csv`
    """
    from cumae.cli.files.csv_text import CsvForm  # noqa: PLC0415
    from cumae.cli.files.source import STANDARD, need_files  # noqa: PLC0415

    need_files(fitted, queries)
    from cumae.cli.files.fitted import opened_fitted  # noqa: PLC0415
    from cumae.cli.files.messages import messages_shown, say  # noqa: PLC0415
    from cumae.cli.files.output import Output  # noqa: PLC0415
    from cumae.cli.models.answers import CheckedQueries  # noqa: PLC0415
    from cumae.learners import Learner  # noqa: PLC0415

    form = CsvForm(encoding, separator)
    if as_json and out == STANDARD and not dry_run:
        raise typer.BadParameter("answers go to standard output; name a file with -o.")
    with (
        messages_shown(),
        Output(out, force=force, private=True) as output,
        opened_fitted(fitted, keys) as one,
    ):
        wanted: dict[str, Any] = {"column": column, "chances": chances, "coverage": interval}
        asking = CheckedQueries.of(one, queries, form, **wanted, request=request)
        found = None
        if not isinstance(one, Learner):  # what was answered is paid, and must not be lost
            with output.rehearsal() as stream:
                asking.rehearse(stream, out)
        if not dry_run:
            found = asking.answers(request)
            with output.stream() as stream:
                asking.write(stream, out, found)
        facts, lines = asking.facts(), list(asking.sentences(found))
    if as_json:
        typer.echo(json.dumps({"dry_run": dry_run, "out": out, **facts}, indent=1))
        return
    for line in lines:
        say(line)
