"""``cumae plan``: which route to take and how accurate it will be, before anything is spent."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cumae.cli.models.goals import Aim, AnswerThreshold, ClassShares, Costs, Goal
from cumae.cli.options import (
    AsJson,
    Classes,
    Delta,
    Encoding,
    Epsilon,
    Force,
    Link,
    NumberRange,
    Public,
    Schema,
    Separator,
)
from cumae.errors import InvalidParameter

# What takes seconds to load is imported by the functions that use it: other commands start faster.
if TYPE_CHECKING:
    from cumae.cli.files.csv_text import CsvForm
    from cumae.cli.files.tables import TableFile
    from cumae.data import Columns
    from cumae.planning import Advice
    from cumae.planning.advice import Prospect

DataOrNone = Annotated[
    str | None,
    typer.Argument(
        metavar="DATA",
        help="The file of private rows: they are counted, and nothing else is looked at.",
    ),
]
RowCount = Annotated[
    int | None, typer.Option("--rows", min=0, help="How many private rows there are, without DATA.")
]
ColumnCount = Annotated[
    int | None,
    typer.Option(
        "--columns", min=1, help="How many columns of numbers there are, without --schema."
    ),
]
LabelOrNone = Annotated[
    str | None, typer.Option("--label", metavar="COLUMN", help="The column of the labels.")
]
Queries = Annotated[
    int | None,
    typer.Option("--max-queries", min=1, help="How many queries there will be, if that is known."),
]
Simulate = Annotated[
    bool,
    typer.Option(
        "--simulate",
        help="Try each route on made-up tables like the labelled rows of --public, to forecast "
        "accuracy itself; takes minutes.",
    ),
]
Why = Annotated[bool, typer.Option("--why", help="Also tell why other routes cannot run.")]
PlotFile = Annotated[
    str | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Draw it to .svg, .png or .pdf (cumae[plot]).",
    ),
]

BEHIND = (
    "So many points of accuracy a route is likely to be behind three models. usual: a usual model "
    "without privacy, such as gradient boosting. best: the best private route, on the mean over "
    "measured tables; routes are compared by this or, with --simulate, by their accuracy, and "
    "within half a point one that publishes comes first. itself: the same model without privacy. "
    "That does not tell how good it is: a model that is too simple, or knows nothing, loses little."
)
FIGURES = {"accuracy": "right answers about", "ranking": "AUC about", "cost": "cost of a row about"}
PARAMETERS = (
    "Reasons use the names of the Python library: n_labelled is the number of rows, X_public is "
    "--public, n_queries and max_queries are --max-queries, and columns is what --schema declares."
)
FITTED = {  # by whether a route publishes
    True: "-o model.json asks for one that publishes.",
    False: "-o oracle.db asks for one that answers.",
}


def plan(
    epsilon: Epsilon,
    delta: Delta,
    data: DataOrNone = None,
    rows: RowCount = None,
    columns: ColumnCount = None,
    label: LabelOrNone = None,
    classes: Classes = "0,1",
    number_range: NumberRange = None,
    link: Link = None,
    max_queries: Queries = None,
    goal: Goal = None,
    costs: Costs = None,
    threshold: AnswerThreshold = None,
    class_shares: ClassShares = None,
    schema: Schema = None,
    public: Public = None,
    simulate: Simulate = False,
    why: Why = False,
    plot: PlotFile = None,
    encoding: Encoding = None,
    separator: Separator = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Forecast which route to take, how good it will be by the goal, and how sure that is.

    Only public facts are used: how many rows there are, what the schema declares, epsilon and
    delta. Of a file of private rows nothing but their number counts. Nothing is spent. With --why,
    what cannot run is listed with the reason, and with the rows or the epsilon that it would need.

    For a rare outcome declare --class-shares, and --goal ranking or --costs: forecasts then come
    from made-up tables with such shares, and it says where no route can tell rows apart. With
    --range the label is a number: its learners are tried on made-up rows.

    Example: `cumae plan adult.csv --label income --schema schema.toml --epsilon 1 --delta 1e-6`
    """
    from cumae.cli.files.source import need_files  # noqa: PLC0415

    need_files(data, schema, public)
    from cumae.cli.files.checks import classes_of  # noqa: PLC0415
    from cumae.cli.files.csv_text import CsvForm  # noqa: PLC0415
    from cumae.cli.files.messages import messages_shown, say  # noqa: PLC0415
    from cumae.cli.models.pictures import draw_to  # noqa: PLC0415
    from cumae.estimators import warn_if_weak  # noqa: PLC0415

    if (data is None) == (rows is None):
        raise typer.BadParameter("give DATA, or --rows with the number of private rows.")
    if simulate and None in (public, label):
        raise typer.BadParameter("--simulate needs --public, with labels, and --label.")
    if number_range is not None:
        read = (data, rows, columns, label, schema, public, CsvForm(encoding, separator))
        _plan_number(read, number_range, link, epsilon, delta, as_json=as_json)
        return
    with messages_shown():
        names = classes_of(classes)
        aim = Aim.read(goal, costs, threshold, class_shares, classes)
        task = _Task.read(data, rows, columns, label, schema, public, CsvForm(encoding, separator))
        sample = task.sample(label or "", names) if simulate else None
        warn_if_weak(epsilon, delta, task.n_rows)
        say("Comparing routes; no private row is looked at ...")
        from cumae.planning import plan as plan_routes  # noqa: PLC0415 - takes seconds to load

        advice = plan_routes(
            task.n_rows,
            n_public=task.n_public,
            n_queries=max_queries,
            columns=task.columns,
            epsilon=epsilon,
            delta=delta,
            n_features=task.n_features,
            classes=names,
            public=sample,
            **vars(aim),
        )
        if plot is not None:
            draw_to(plot, advice.plot, force=force)
    _print(advice, why=why, as_json=as_json)


def _plan_number(
    read: tuple[Any, ...],
    number_range: str,
    link: str | None,
    epsilon: float,
    delta: float,
    *,
    as_json: bool,
) -> None:
    """Tell what learners of a number would do.

    Parameters
    ----------
    read : tuple
        What ``_Task.read`` takes.
    number_range, link, epsilon, delta, as_json : object
        As in the command.
    """
    from cumae.cli.files.messages import messages_shown  # noqa: PLC0415
    from cumae.cli.files.numbers import range_of  # noqa: PLC0415
    from cumae.cli.models.numbers.fitting import print_forecasts  # noqa: PLC0415

    with messages_shown():
        given = {"epsilon": epsilon, "delta": delta, "target_range": range_of(number_range)}
        print_forecasts(_Task.read(*read), as_json=as_json, link=link or "identity", **given)


def _print(advice: Advice, *, why: bool, as_json: bool) -> None:
    from cumae.cli.files.messages import paragraph  # noqa: PLC0415

    fitted, others = _split(advice)
    if as_json:
        found = fitted.to_dict() | {"python_only": [one.to_dict() for one in others]}
        typer.echo(json.dumps(found, indent=1))
        return
    for line in _lines(fitted, others, why=why):
        typer.echo(paragraph(line, hanging="  "))


def _split(advice: Advice) -> tuple[Advice, list[Prospect]]:
    """Return the advice for routes that ``cumae fit`` can take, and prospects of the others."""
    from cumae.cli.models.routes import ORACLE_ROUTES  # noqa: PLC0415

    ours: list[Prospect] = []
    others: list[Prospect] = []
    for found in advice.prospects:
        can_fit = found.route.publishes or found.route.name in ORACLE_ROUTES
        (ours if can_fit else others).append(found)
    return replace(advice, prospects=tuple(ours)), others


def _lines(advice: Advice, others: list[Prospect], *, why: bool) -> list[str]:
    """Return the advice, a line for each route that can run, and those that cannot."""
    runs = [found for found in advice.prospects if found.can_run]
    beside = [found for found in others if found.can_run]
    refused = [found for found in [*advice.prospects, *others] if not found.can_run]
    warned = runs[0].outlook.warnings if runs else ()
    lines = [advice.sentence, *(f"Careful: {caution}" for caution in (*advice.cautions, *warned))]
    lines += [f"{advice.hint} Ranges stand in the file of --schema."] if advice.hint else []
    lines += ["", _head(advice), *map(_line, runs)] if runs else []
    if beside:
        lines += ["", "From Python, but not by `cumae fit`:", *map(_line, beside)]
    if any(found.expected for found in runs):
        lines += ["", BEHIND]
    if advice.rests_on:
        lines += ["", *advice.rests_on]
    if refused:
        names = ", ".join(found.route.name for found in refused)
        lines += ["", f"Cannot run: {names}." + ("" if why else " --why tells the reasons.")]
    if why:
        lines += [f"  {found.route.name}: {' '.join(str(found).split())}" for found in refused]
        lines += ["", PARAMETERS]
    outputs = {found.route.publishes: FITTED[found.route.publishes] for found in runs}
    if outputs:
        lines += ["", f"`cumae fit` takes the best route by itself: {' '.join(outputs.values())}"]
    return lines


def _head(advice: Advice) -> str:
    """Return the titles of columns."""
    shown = [found for found in advice.prospects if found.can_run]
    head = f"  {'route':<12}"
    if any(found.figure for found in shown):
        head += f"{FIGURES[advice.situation.compared]:<25}"
    if any(found.expected for found in shown):
        head += f"{'behind usual':<14}{'best':<7}{'itself':<27}"
    return f"{head}what it does"


def _line(found: Prospect) -> str:
    """Return a line about a route that can run."""
    line, figure, cost = f"  {found.route.name:<12}", found.figure, found.expected
    if figure is not None:
        value, low, high = (
            figure.formatted(one) for one in (figure.value, figure.low, figure.high)
        )
        unit = " %" if figure.goal == "accuracy" else ""
        line += f"{f'{value}{unit} ({low} to {high}{unit})':<25}"
    if cost is not None:
        line += f"{100 * cost.usual:<14.1f}{100 * cost.behind:<7.1f}{cost!s:<27}"
    if figure is None and cost is None:
        line += f"{'not known':<25}"
    line += found.route.title
    return f"{line}; answers every row alike" if found.constant else line


@dataclass(frozen=True)
class _Task:
    """The public facts of a task."""

    n_rows: int
    n_features: int
    columns: dict[str, Any] | None
    public: TableFile | None
    known: Columns | None

    @property
    def n_public(self) -> int:
        return 0 if self.public is None else self.public.rows.n_rows

    @classmethod
    def read(
        cls,
        data: str | None,
        rows: int | None,
        width: int | None,
        label: str | None,
        schema: str | None,
        public: str | None,
        form: CsvForm,
    ) -> _Task:
        """Read the header and the schema, and count rows."""
        from cumae.cli.files.schemas import SchemaFile, read_schema  # noqa: PLC0415
        from cumae.cli.files.source import refuse_private_as_public  # noqa: PLC0415
        from cumae.cli.files.tables import read_table_file  # noqa: PLC0415
        from cumae.cli.models.private import drafted  # noqa: PLC0415

        refuse_private_as_public(data, public)
        declared = SchemaFile() if schema is None else read_schema(schema)
        form = declared.form(form)
        shown = None if public is None else read_table_file(public, form)
        table = None if data is None else read_table_file(data, form)
        n_rows = rows or 0 if table is None else table.rows.n_rows
        if width is not None:
            return cls(n_rows, width, None, shown, None)
        if table is not None:
            if label is not None:
                table.need([label], "which --label names")
            if schema is None:
                declared = drafted(table.head, label or "", shown)
            found = declared.columns_for(table.head, label or "")
        elif declared.declared:
            found = declared.columns_alone()
        else:
            raise InvalidParameter("without DATA, give --schema, or --columns with their number.")
        columns = {column.name: column for column in found.columns}
        return cls(n_rows, len(columns), columns, shown, found)

    def sample(self, label: str, classes: list[Any]) -> tuple[Any, Any]:
        """Return public rows and their labels, to try routes on."""
        import numpy as np  # noqa: PLC0415

        from cumae.cli.files.checks import LabelColumn, checked_rows  # noqa: PLC0415
        from cumae.data import class_names  # noqa: PLC0415

        if self.public is None or self.known is None:
            raise InvalidParameter("--simulate needs --public and a schema.")
        self.public.need([column.name for column in self.known.columns], "which DATA has")
        labels = LabelColumn(self.public.head, label, classes)
        rows = checked_rows(self.public, self.known, labels)
        return rows.take(np.arange(rows.n_rows)), class_names(classes)[labels.places]
