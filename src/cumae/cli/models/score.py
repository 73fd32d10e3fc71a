"""``cumae score``: how often a model is right, with noise if the rows are private."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any

import typer

from cumae.cli.options import AsJson, DryRun, Encoding, Label, Separator, above_zero

ModelPath = Annotated[
    str, typer.Argument(metavar="MODEL", help="A published model that `cumae fit` wrote.")
]
RowsFile = Annotated[
    str,
    typer.Argument(
        metavar="DATA", help="Labelled rows that were not used to fit; - for standard input."
    ),
]
EpsilonOrNone = Annotated[
    float | None,
    typer.Option("--epsilon", callback=above_zero, help="What the score costs each row."),
]
Exact = Annotated[
    bool, typer.Option("--exact", help="Without noise: for public rows only, and free.")
]
RARE = 0.05  # chance that the noise is larger than the number that is printed


def score(
    model: ModelPath,
    data: RowsFile,
    label: Label,
    epsilon: EpsilonOrNone = None,
    exact: Exact = False,
    encoding: Encoding = None,
    separator: Separator = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Tell how often a published model is right, with noise that protects the rows.

    The score of private rows is paid: each of these rows is charged --epsilon, on top of what it
    was charged before, and every further score is charged again. Take rows that were not used to
    fit. The number of rows is public. With --exact the score has no noise: on private rows that
    would be a leak.

    Example: `cumae score model.json test.csv --label income --epsilon 0.5`
    """
    from cumae.cli.files.csv_text import CsvForm  # noqa: PLC0415 - takes a while to load
    from cumae.cli.files.messages import paragraph, say, told  # noqa: PLC0415

    if exact == (epsilon is not None):
        raise typer.BadParameter("give --epsilon for private rows, or --exact for public ones.")
    with told():
        learner, rows, labels = _checked(model, data, label, CsvForm(encoding, separator))
        facts: dict[str, Any] = {"rows": rows.n_rows, "epsilon": epsilon, "private": not exact}
        if epsilon is not None:
            facts["noise"] = math.log(1 / RARE) / epsilon / rows.n_rows
        if dry_run:
            facts["dry_run"] = True
        elif epsilon is None:
            facts["accuracy"] = learner.score(rows, labels)
        else:
            facts["accuracy"] = learner.private_score(rows, labels, epsilon)
    if as_json:
        typer.echo(json.dumps(facts, indent=1))
        return
    if not dry_run:
        typer.echo(f"Accuracy: {facts['accuracy']:.1%} of {rows.n_rows:,} rows")
    paid = "Would be paid" if dry_run else "Paid"
    say(
        "Exact, and free: only for public rows. On private rows it would be a leak."
        if epsilon is None
        else paragraph(
            f"{paid}: epsilon = {epsilon:g} for each of these rows, on top of what they paid "
            f"before. The noise is below {100 * facts['noise']:.1f} points in 95 of 100 cases."
        )
    )


def _checked(model: str, data: str, label: str, form: Any) -> tuple[Any, Any, Any]:
    """Return the model, rows and labels that passed every check."""
    from cumae.cli.files.checks import check_cells, label_places  # noqa: PLC0415
    from cumae.cli.files.fitted import (  # noqa: PLC0415
        columns_of,
        features_for,
        is_oracle,
        load_model,
    )
    from cumae.cli.files.tables import read_table_file  # noqa: PLC0415
    from cumae.errors import InvalidParameter  # noqa: PLC0415

    if is_oracle(model):
        raise InvalidParameter(
            f"{model} is an oracle: a score would use up its answers. Ask it with `cumae predict`."
        )
    learner = load_model(model)
    table = read_table_file(data, form)
    columns = columns_of(learner)
    rows = features_for(table, columns)
    places = label_places(table, label, learner.classes_.tolist())
    check_cells(table, columns, rows)
    return learner, rows, learner.classes_[places]
