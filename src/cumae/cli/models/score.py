"""``cumae score``: how good a model is, with intervals, and with noise if the rows are private."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from cumae.cli.options import (
    AsJson,
    DryRun,
    Encoding,
    FittedPath,
    Force,
    Keys,
    Label,
    Separator,
    above_zero,
    below_one,
    checked,
)

RowsFile = Annotated[
    str,
    typer.Argument(metavar="DATA", help="Labelled test rows; - for standard input."),
]
EpsilonOrNone = Annotated[
    float | None,
    typer.Option("--epsilon", callback=above_zero, help="What the figures cost each private row."),
]
SmallDelta = Annotated[
    float,
    typer.Option(
        "--delta",
        callback=below_one,
        help="Chance that the promise fails; above 0 it may make the noise smaller.",
    ),
]
Exact = Annotated[
    bool, typer.Option("--exact", help="Without noise: for public rows only, and free.")
]
TrainedOn = Annotated[
    bool | None,
    typer.Option(
        "--trained-on/--new-rows",
        help="Whether the model learnt from any of these rows. Then it looks better than it is.",
    ),
]
Group = Annotated[
    str | None,
    typer.Option("--group", metavar="COLUMN", help="A column of DATA that names subgroups."),
]
GroupNames = Annotated[
    str | None,
    typer.Option(
        "--group-names",
        metavar="A,B",
        help="The subgroups that can occur; they are never read from the rows.",
    ),
]
PublicRows = Annotated[
    str | None,
    typer.Option(
        "--public",
        metavar="FILE",
        help="Public rows: bins of chances follow what the model gives them.",
    ),
]
Threshold = Annotated[
    float,
    typer.Option(
        "--threshold",
        callback=checked(lambda value: 0 < value < 1, "above 0 and below 1"),
        help="Of two classes, the second is the answer if its chance is above this.",
    ),
]
SpendAnswers = Annotated[
    bool,
    typer.Option(
        "--spend-answers", help="Ask an oracle: an answer is spent for each row; with --exact."
    ),
]
Plot = Annotated[
    str | None,
    typer.Option("--plot", metavar="FILE", help="Draw curves to a .svg, .png or .pdf file."),
]


def score(
    model: FittedPath,
    data: RowsFile,
    label: Label,
    trained_on: TrainedOn = None,
    epsilon: EpsilonOrNone = None,
    delta: SmallDelta = 0.0,
    exact: Exact = False,
    group: Group = None,
    group_names: GroupNames = None,
    public: PublicRows = None,
    threshold: Threshold = 0.5,
    spend_answers: SpendAnswers = False,
    plot: Plot = None,
    keys: Keys = None,
    encoding: Encoding = None,
    separator: Separator = None,
    dry_run: DryRun = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Tell how good a model is on test rows, each figure with an interval.

    Private rows are paid: each of them is charged --epsilon, on top of what it was charged before,
    and every further score is charged again. All figures together cost that, even if only some
    are printed or drawn. The number of rows is public. With --exact there is no noise: on private
    rows that would be a leak.

    Say whether the model learnt from any of these rows (--trained-on) or not (--new-rows). On rows
    that it knows every model looks better than it is, and no interval tells by how much.

    Example: `cumae score model.json test.csv --label income --epsilon 0.5 --new-rows`
    """
    from cumae.cli.files.csv_text import CsvForm  # noqa: PLC0415 - takes a while to load
    from cumae.cli.files.messages import messages_shown  # noqa: PLC0415
    from cumae.cli.files.source import need_files  # noqa: PLC0415

    if exact == (epsilon is not None):
        raise typer.BadParameter("give --epsilon for private rows, or --exact for public ones.")
    if trained_on is None:
        raise typer.BadParameter(
            "say --new-rows if the model learnt from none of these rows, or --trained-on if it did."
        )
    if (group is None) != (group_names is None):
        raise typer.BadParameter("--group and --group-names belong together.")
    form = CsvForm(encoding, separator)
    need_files(model, data, public)
    from cumae.cli.models.numbers.judging import is_of_numbers, score_numbers  # noqa: PLC0415

    with (
        messages_shown(),
        _picture(plot, force=force) as write,
        _fitted(model, keys, spend_answers and exact) as one,
    ):
        if is_of_numbers(one):
            how = {"exact": exact, "dry_run": dry_run, "as_json": as_json}
            score_numbers(one, data, label, form, **how)
            return
        given = _checked(one, data, label, form, (group, group_names), public)
        facts: dict[str, Any] = {"rows": len(given["y"]), "private": not exact, "dry_run": dry_run}
        facts |= {"epsilon": epsilon, "delta": delta}
        if dry_run:
            _print(facts, None, as_json=as_json, oracle=spend_answers)
            return
        given |= {"epsilon": epsilon, "delta": delta, "public": exact, "trained_on": trained_on}
        given |= {"threshold": threshold, "spend_answers": spend_answers}
        found = _evaluated(one, given)
        _print(facts, found, as_json=as_json, oracle=spend_answers)  # first: it was paid
        if write is not None:
            write(found.plot())


@contextlib.contextmanager
def _fitted(path: str, keys: str | None, may_ask: bool) -> Iterator[Any]:
    """Return a model, or an oracle if its answers may be spent."""
    from cumae.cli.files.fitted import is_oracle, opened_fitted  # noqa: PLC0415
    from cumae.errors import InvalidParameter  # noqa: PLC0415

    if is_oracle(path) and not may_ask:
        raise InvalidParameter(
            f"{path} is an oracle: a score uses up an answer for each row, and the rows must be "
            "public. Give --exact and --spend-answers if that is wanted."
        )
    with opened_fitted(path, keys) as one:
        yield one


def _checked(
    fitted: Any,
    data: str,
    label: str,
    form: Any,
    groups: tuple[str | None, str | None],
    public: str | None,
) -> dict[str, Any]:
    """Return rows, labels, subgroups and public rows that passed every check."""
    from cumae.cli.files.checks import (  # noqa: PLC0415
        Inspection,
        LabelColumn,
        checked_rows,
        classes_of,
    )
    from cumae.cli.files.fitted import columns_in, columns_of, form_for  # noqa: PLC0415
    from cumae.cli.files.source import refuse_private_as_public  # noqa: PLC0415
    from cumae.cli.files.tables import read_table_file  # noqa: PLC0415

    refuse_private_as_public(data, public)
    columns = columns_of(fitted)
    form = form_for(columns, form)
    found: dict[str, Any] = {}
    if public is not None:
        shown = read_table_file(public, form)
        found["X_public"] = checked_rows(shown, columns_in(shown.head, columns))
    column, names = groups
    if column is not None and names is not None:
        found["group_names"] = classes_of(names, "--group-names")
    looking: list[Any] = []

    def watch(head: Any) -> Any:
        looking.append(LabelColumn(head, label, fitted.classes_.tolist()))
        if column is not None:
            more = (column, found["group_names"], "--group", "subgroup")
            looking.append(LabelColumn(head, *more))
        looking.append(Inspection(columns_in(head, columns), *looking))
        return looking[-1].look

    table = read_table_file(data, form, watch=watch)
    labels, *others, inspection = looking
    if others:
        found["groups"] = others[0].places
    return found | {"X": inspection.end(table), "y": fitted.classes_[labels.places]}


def _evaluated(fitted: Any, given: dict[str, Any]) -> Any:
    """Return the evaluation; an oracle gets its rows as a frame."""
    import numpy as np  # noqa: PLC0415

    from cumae.estimators import warn_if_weak  # noqa: PLC0415
    from cumae.evaluation import evaluate  # noqa: PLC0415
    from cumae.learners import Learner  # noqa: PLC0415

    rows = given["X"]
    if given["epsilon"] is not None:
        warn_if_weak(given["epsilon"], given["delta"], rows.n_rows)
    if not isinstance(fitted, Learner):
        given["X"] = rows.take(np.arange(rows.n_rows))
    if "groups" in given:
        names = given["group_names"]
        given["groups"] = [names[place] for place in given["groups"].tolist()]
    return evaluate(fitted, **given)


@contextlib.contextmanager
def _picture(path: str | None, *, force: bool) -> Iterator[Any]:
    """Return what writes a picture, or None; what cannot be written is refused before a payment."""
    from cumae.cli.models.pictures import picture_file  # noqa: PLC0415

    if path is None:
        yield None
        return
    with picture_file(path, force=force) as write:
        yield write


def _print(facts: dict[str, Any], found: Any, *, as_json: bool, oracle: bool) -> None:
    """Print figures and their price; without figures, what they would cost."""
    if as_json:
        if found is not None:
            facts |= {"accuracy": found.overall.accuracy.value, **found.to_dict()}
            facts["commonest"] = found.overall.commonest.value
        typer.echo(json.dumps(facts, indent=1, default=str))
        return
    if found is not None:
        whole = found.overall
        always = f"always saying {whole.commonest_class}"
        typer.echo(f"Accuracy: {whole.accuracy}; {always}: {whole.commonest}.")
        typer.echo(str(found))
    _say_price(facts, oracle=oracle)


def _say_price(facts: dict[str, Any], *, oracle: bool) -> None:
    """Say what was paid, or would be."""
    from cumae.cli.files.messages import paragraph, say  # noqa: PLC0415

    dry = facts["dry_run"]
    if facts["private"]:
        paid = "Would be paid" if dry else "Paid"
        text = (
            f"{paid}: epsilon = {facts['epsilon']:g} for each of these rows, on top of what they "
            "paid before."
        )
    elif oracle:
        text = f"{'Would spend' if dry else 'Spent'} {facts['rows']:,} answers of the oracle."
    else:
        text = "Exact, and free: only for public rows. On private rows it would be a leak."
    say(paragraph(text))
