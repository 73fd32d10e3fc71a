"""Options that several commands share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated

import typer


def checked(good: Callable[[float], bool], wanted: str) -> Callable[[float | None], float | None]:
    """Return a check of a number that was given on the command line."""

    def check(value: float | None) -> float | None:
        if value is not None and not good(value):
            raise typer.BadParameter(f"{value:g} is not {wanted}.")
        return value

    return check


above_zero = checked(lambda value: 0 < value < math.inf, "a finite number above 0")
below_one = checked(lambda value: 0 <= value < 1, "from 0 to less than 1")

DataFile = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Private rows: CSV or Parquet, packed by gzip or not; - for standard input.",
    ),
]
Label = Annotated[str, typer.Option("--label", metavar="COLUMN", help="The column of the labels.")]
Classes = Annotated[
    str,
    typer.Option(
        "--classes",
        metavar="A,B",
        help="The labels that can occur; they are never read from the rows. Of two, `show` tells "
        "the odds of the second: no,yes, say.",
    ),
]
ClassesOrNone = Annotated[
    str | None,
    typer.Option(
        "--classes",
        metavar="A,B",
        help="The labels that can occur; they are never read from the rows. Of two, `show` tells "
        "the odds of the second: no,yes, say. For a number give --range.",
    ),
]
NumberRange = Annotated[
    str | None,
    typer.Option(
        "--range",
        metavar="LOW,HIGH",
        help="The label is a number, and this is its range, known without the rows; auto: it is "
        "found privately, and paid for.",
    ),
]
Link = Annotated[
    str | None,
    typer.Option(
        "--link",
        metavar="NAME",
        help="Beside --range: log for counts, amounts and durations; identity if not given.",
    ),
]
Epsilon = Annotated[
    float,
    typer.Option(
        "--epsilon", callback=above_zero, help="Privacy budget: smaller protects more; 1 is usual."
    ),
]
Delta = Annotated[
    float,
    typer.Option(
        "--delta",
        callback=below_one,
        help="Chance that the promise fails: far below 1 divided by the number of rows; 1e-6, say.",
    ),
]
Schema = Annotated[
    str | None,
    typer.Option(
        "--schema", metavar="FILE", help="What the columns hold; `cumae schema` drafts it."
    ),
]
Public = Annotated[
    str | None,
    typer.Option(
        "--public",
        metavar="FILE",
        help="Public rows with the same columns; they are never protected, and need no labels.",
    ),
]
FittedPath = Annotated[
    str,
    typer.Argument(metavar="MODEL", help="What `cumae fit` wrote: a model or an oracle."),
]
OraclePath = Annotated[
    str, typer.Argument(metavar="ORACLE", help="The file of an oracle, or its address.")
]
Keys = Annotated[
    str | None,
    typer.Option(
        "--keys",
        metavar="COMMAND",
        help="A command that keeps the oracle's keys, or folder:PATH; else a folder beside it.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Full = Annotated[
    bool,
    typer.Option("--full", help="Print the promise with all its assumptions and claims."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A parameter of --algorithm, as its Python class names it: alpha=0.05, say. It may be "
        "given several times.",
    ),
]
Unlabelled = Annotated[
    str | None,
    typer.Option(
        "--unlabelled",
        metavar="FILE",
        help="Private rows without labels, with the same columns, of other people than DATA; for "
        "generic, label-boost and iter-label-boost.",
    ),
]
OutFile = Annotated[
    str,
    typer.Option(
        "-o",
        "--out",
        metavar="OUT",
        help="A model (model.json, may be published; - for standard output) or an oracle "
        "(oracle.db, must not be).",
    ),
]
MaxQueries = Annotated[
    int | None,
    typer.Option(
        "--max-queries", min=1, help="How many queries release answers; 1,000 if not given."
    ),
]
Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="ADDRESS",
        help="Where rows of Parquet files stay and sums over them are computed: dask://host:port, "
        "ray://host:port or spark://host:port; dask://local and so on start workers here, and "
        "processes://local uses the cores of this machine.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Check everything, spend nothing, and write nothing.")
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of CSV files that are not UTF-8: latin-1, for example.",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--separator",
        metavar="LETTER",
        help="Letter between cells of CSV files; found in the header if not given.",
    ),
]
