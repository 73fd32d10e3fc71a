"""``cumae fit``: learn from private rows, once, and write a model or an oracle."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cumae.cli.models.algorithms import (
    AlgorithmName,
    ConceptName,
    NamedAlgorithm,
    has_public,
)
from cumae.cli.models.elsewhere.fitting import Elsewhere
from cumae.cli.models.goals import Aim, AnswerThreshold, ClassShares, Costs, Goal
from cumae.cli.models.numbers.fitting import need_one, refuse_classes, regressor
from cumae.cli.models.routes import (
    ORACLE_ENDS,
    RouteName,
    advice_on,
    asked,
    best_of,
    complete_model,
    names_oracle,
    published,
    route_for,
    situation_of,
)
from cumae.cli.options import (
    AsJson,
    ClassesOrNone,
    DataFile,
    Delta,
    DryRun,
    Encoding,
    Engine,
    Epsilon,
    Force,
    Full,
    Keys,
    Label,
    Link,
    MaxQueries,
    NumberRange,
    OutFile,
    Public,
    Schema,
    Separator,
    Settings,
    Unlabelled,
)
from cumae.errors import InvalidParameter

# What takes seconds to load is imported by the functions that use it: other commands start faster.
if TYPE_CHECKING:
    from cumae.cli.models.private import PrivateTable
    from cumae.planning.advice import Advice
    from cumae.planning.routes import Situation

RouteOption = Annotated[
    RouteName,
    typer.Option(
        "--route",
        help="auto: what the planner forecasts to be the best model or, if OUT ends in .db, the "
        "best oracle; publish: a model; release: an oracle for --max-queries public queries; "
        "everlasting: an oracle that answers for ever, and protects those who ask.",
    ),
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        autocompletion=complete_model,
        help="publish: kernel, logistic, curves, booster; of a number: kernel, linear; release and "
        "everlasting: tree, ridge; or thresholds, intervals, points for a single column, or for "
        "ordered ones.",
    ),
]
AlgorithmOption = Annotated[
    AlgorithmName | None,
    typer.Option(
        "--algorithm",
        help="One of the papers' algorithms by name, instead of --route and --model; "
        "docs/command_line.md describes them. query, agnostic, universal and bbl make "
        "an oracle, all others a model.",
    ),
]
ConceptOption = Annotated[
    ConceptName | None,
    typer.Option("--concept", help="The rules that --algorithm chooses from; trees of depth 2."),
]
MAX_QUERIES = 1_000


def fit(
    data: DataFile,
    label: Label,
    epsilon: Epsilon,
    delta: Delta,
    out: OutFile,
    classes: ClassesOrNone = None,
    number_range: NumberRange = None,
    link: Link = None,
    route: RouteOption = RouteName.AUTO,
    model: ModelName = None,
    max_queries: MaxQueries = None,
    goal: Goal = None,
    costs: Costs = None,
    threshold: AnswerThreshold = None,
    class_shares: ClassShares = None,
    algorithm: AlgorithmOption = None,
    concept: ConceptOption = None,
    settings: Settings = None,
    schema: Schema = None,
    public: Public = None,
    unlabelled: Unlabelled = None,
    engine: Engine = None,
    keys: Keys = None,
    encoding: Encoding = None,
    separator: Separator = None,
    dry_run: DryRun = False,
    force: Force = False,
    full: Full = False,
    as_json: AsJson = False,
) -> None:
    """Learn from private rows, pay once, and write a model or an oracle.

    A model is a JSON file that may be published: it holds nothing but noisy results. An oracle is a
    file that answers by `cumae predict`, counts what it spends, survives crashes, and must not be
    shown to anybody, nor the folder of its keys beside it.

    Everything that can fail is checked before anything is paid: the output, the schema, the
    columns, the labels and every cell. What this command says about rows is for their owner alone.
    If it is broken off, nothing was published, and you can start again. --dry-run shows what would
    be fitted, and which cells do not fit the schema.

    For a rare outcome declare --class-shares, and --goal ranking or --costs: then it says, before
    it pays, whether a model can tell rows apart, and whether all rows would get the same answer.

    Example: `cumae fit adult.csv --label income --classes '<=50K,>50K' --epsilon 1 --delta 1e-6
    --schema schema.toml -o model.json`, `cumae fit hours.csv --label hours --range 0,99 --epsilon 1
    --delta 1e-6 --schema hours.toml -o hours.json`, `cumae fit adult.csv --unlabelled queries.csv
    --algorithm generic --label income --classes '<=50K,>50K' --epsilon 1 --delta 0 --schema
    schema.toml -o rules.json`
    """
    from cumae.cli.files.csv_text import CsvForm  # noqa: PLC0415
    from cumae.cli.files.messages import messages_shown, say  # noqa: PLC0415
    from cumae.cli.files.output import Output, check_keys, check_new_oracle  # noqa: PLC0415
    from cumae.cli.files.source import need_files  # noqa: PLC0415

    need_one(classes, number_range, link)
    aims = (goal, costs, threshold, class_shares)
    if engine is not None:
        given = (label, schema, classes, number_range, link, model, epsilon, delta)
        asked = (None if route is RouteName.AUTO else route, algorithm, concept, settings or None)
        others = (unlabelled, public, max_queries, keys, encoding, separator, dry_run or None)
        refused = (*aims, *asked, *others)
        _fit_there(Elsewhere(engine, data, *given), refused, out, force, full, as_json)
        return
    named = NamedAlgorithm.read(algorithm, concept, settings or [], unlabelled, public)
    route = _route_of(named, route, model, max_queries, out, aims, numbers=number_range is not None)
    oracle = number_range is None and _is_oracle(named, route, out)
    _check_names(out, keys, oracle=oracle)
    need_files(data, schema, public, unlabelled)
    started = time.monotonic()
    with messages_shown(), contextlib.ExitStack() as stack:
        if oracle:
            check_new_oracle(out)
        output = None if oracle else stack.enter_context(Output(out, force=force))
        from cumae.cli.models.private import read_private  # noqa: PLC0415 - takes a second

        form = CsvForm(encoding, separator)
        table = read_private(data, label, classes, schema, public, form, unlabelled)
        if oracle:
            check_keys(out, keys)
        estimator: Any
        advice: Advice | None = None
        if number_range is not None:
            _refuse_ordered(table)
            shared = {"epsilon": epsilon, "delta": delta, "columns": table.declared}
            estimator = regressor(model, number_range, link, **shared)
        else:
            # After rows that may be refused: it takes seconds to load.
            aim = Aim.read(*aims, classes or "")
            situation = situation_of(table, epsilon, delta, max_queries, aim)
            if route is RouteName.AUTO and named is None:
                _refuse_ordered(table)
            estimator, advice = _chosen(named, table, route, model, situation, aim, out)
        if oracle and table.public is not None:
            say("Public rows are of no use for this route, and are left alone.")
        if dry_run:
            _describe(estimator, table, advice, full=full, as_json=as_json)
            return
        _learn(estimator, table)
        if output is None:
            estimator.save_to(out, keys=keys)
        else:
            output.write(_as_bytes(estimator))
    _report(estimator, table, out, time.monotonic() - started, full=full, as_json=as_json)


def _route_of(
    named: NamedAlgorithm | None,
    route: RouteName,
    model: str | None,
    max_queries: int | None,
    out: str,
    aims: tuple[Any, ...],
    *,
    numbers: bool,
) -> RouteName:
    """Return the route that is taken; refuse options that exclude each other.

    Parameters
    ----------
    named : NamedAlgorithm, or None
        An algorithm that was asked for by its name.
    route, model, max_queries, out : RouteName, str, int and str
        As in ``fit``.
    aims : tuple
        The goal, costs, the threshold and shares of classes.
    numbers : bool
        Whether labels are numbers.
    """
    if numbers:
        refuse_classes(named, route, max_queries, aims)
    elif named is None:
        return route_for(route, model, max_queries, out)
    else:
        _refuse_beside(route, model, *aims)
    return route


def _fit_there(
    there: Elsewhere, refused: Sequence[Any], out: str, force: bool, full: bool, as_json: bool
) -> None:
    """Fit to rows that stay on an engine, and write the model."""
    from cumae.cli.files.messages import messages_shown  # noqa: PLC0415
    from cumae.cli.files.output import Output  # noqa: PLC0415
    from cumae.cli.files.source import need_files  # noqa: PLC0415

    _check_names(out, None, oracle=False)
    need_files(there.data, there.schema)
    with messages_shown(), Output(out, force=force) as output:
        learner, table, seconds = there.fit(refused)
        output.write(_as_bytes(learner))
    _report(learner, table, out, seconds, full=full, as_json=as_json)


def _is_oracle(named: NamedAlgorithm | None, route: RouteName, out: str) -> bool:
    if named is not None:
        return named.oracle
    return names_oracle(out) if route is RouteName.AUTO else route is not RouteName.PUBLISH


def _chosen(
    named: NamedAlgorithm | None,
    table: PrivateTable,
    route: RouteName,
    model: str | None,
    situation: Situation,
    aim: Aim,
    out: str,
) -> tuple[Any, Advice | None]:
    """Return what will be fitted to classes, and what is forecast.

    Parameters
    ----------
    named : NamedAlgorithm, or None
        An algorithm that was asked for by its name.
    table : PrivateTable
        The rows.
    route, model : RouteName and str, or None
        What was asked for otherwise.
    situation, aim : Situation and Aim
        The public facts.
    out : str
        Where the result goes.
    """
    if named is not None:
        return named.build(table, situation), None
    return _estimator(route, model, situation, aim, out)


def _refuse_ordered(table: PrivateTable) -> None:
    """Refuse columns of ordered values, which the planner knows no route for."""
    if table.columns.ordered:
        raise InvalidParameter(
            "ordered columns can only be compared: give --model thresholds, intervals or points, "
            "and an oracle as output (-o oracle.db). A published rule would show a private value."
        )


def _refuse_beside(route: RouteName, model: str | None, *aims: object) -> None:
    """Refuse options of routes beside the name of an algorithm."""
    given = {"--route": route is not RouteName.AUTO, "--model": model is not None}
    names = ("--goal", "--costs", "--threshold", "--class-shares")
    given |= {name: aim is not None for name, aim in zip(names, aims, strict=True)}
    for option, is_given in given.items():
        if is_given:
            raise typer.BadParameter("leave it out beside --algorithm.", param_hint=option)


def _check_names(out: str, keys: str | None, *, oracle: bool) -> None:
    """Refuse keys of a model, and a name whose ending says something else than will be there."""
    if keys is not None and not oracle:
        raise typer.BadParameter("a published model has no keys.", param_hint="--keys")
    if names_oracle(out) and not oracle:
        raise typer.BadParameter(
            "a published model is JSON; name it model.json, say, or take --route everlasting.",
            param_hint="--out",
        )
    ends = ORACLE_ENDS if oracle else (".json",)
    if out == "-" or "://" in out or out.endswith((*ends, *ORACLE_ENDS)):
        return  # others say what is wrong with them, if anything is
    kind, name = ("an oracle", "oracle.db") if oracle else ("a model", "model.json")
    raise typer.BadParameter(
        f"{out} would be {kind}, and its name must end in {' or '.join(ends)}: {name}, say. "
        "A name that ends in .db asks for an oracle.",
        param_hint="--out",
    )


def _estimator(
    route: RouteName, model: str | None, situation: Situation, aim: Aim, out: str
) -> tuple[Any, Advice | None]:
    """Return what will be fitted, and what is forecast; say why, and what should be known."""
    from cumae.cli.files.messages import paragraph, say  # noqa: PLC0415

    advice: Advice | None
    if route is RouteName.AUTO:
        estimator, advice = best_of(situation, out)
        say(paragraph(advice.sentence))
    else:
        estimator, advice = _named(route, model, situation, aim), advice_on(situation, route, model)
    cautions = () if advice is None else advice.cautions
    if advice is not None and route is not RouteName.AUTO:  # then nothing rests on what is assumed
        cautions = tuple(line for line in cautions if line != advice.assumed)
    for line in cautions:
        say(paragraph(f"Careful: {line}"))
    return estimator, advice


def _named(route: RouteName, model: str | None, situation: Situation, aim: Aim) -> Any:
    """Return the estimator of a route that was asked for."""
    shared: dict[str, Any] = {"epsilon": situation.epsilon, "delta": situation.delta}
    shared |= {"columns": situation.columns, "classes": list(situation.classes)}
    if route is RouteName.PUBLISH:
        estimator = published(model, **shared)
    else:
        estimator = asked(route, model, situation.n_queries or MAX_QUERIES, **shared)
    known = estimator.get_params(deep=False)
    for name in ("costs", "threshold"):
        if name in aim.answers and name not in known:
            raise InvalidParameter(
                f"--{name} is given, and {type(estimator).__name__} cannot follow it: take --route "
                "publish, whose models have chances."
            )
    given = {name: value for name, value in aim.answers.items() if name in known}
    return estimator.set_params(**given)


def _learn(estimator: Any, table: PrivateTable) -> None:
    from cumae.cli.files.messages import say  # noqa: PLC0415
    from cumae.learners import Learner  # noqa: PLC0415

    say(f"Fitting {type(estimator).__name__} to {table.rows.n_rows:,} private rows ...")
    if not isinstance(estimator, Learner):
        estimator.fit(table.rows, table.labels)
    elif has_public(estimator):  # such an algorithm mixes both tables, as frames
        estimator.fit(table.frame(table.rows), table.labels)
    else:
        estimator.fit(table.rows, table.labels, table.public)


def _as_bytes(learner: Any) -> bytes:
    return json.dumps(learner.to_dict(), allow_nan=False).encode() + b"\n"


def _describe(
    estimator: Any, table: PrivateTable, advice: Advice | None, *, full: bool, as_json: bool
) -> None:
    """Say what would be fitted, and what the owner should know about the rows."""
    from cumae.cli.files.checks import fault_lines  # noqa: PLC0415
    from cumae.cli.files.messages import paragraph, say  # noqa: PLC0415
    from cumae.estimators import warn_if_weak  # noqa: PLC0415
    from cumae.learners import Learner  # noqa: PLC0415

    warn_if_weak(estimator.epsilon, getattr(estimator, "delta", 0.0), table.rows.n_rows)
    facts = _facts(estimator, table)
    counts: dict[str, int] = {}
    if isinstance(estimator, Learner):
        public = 0 if has_public(estimator) else facts["public_rows"]
        counts = {"n_public": public, "n_unlabelled": table.n_unlabelled}
    outlook = estimator.plan(table.n_labelled, facts["columns"], **counts)
    if not outlook.can_run:
        raise InvalidParameter(" ".join(outlook.reasons))
    if as_json:
        forecast = None if advice is None else advice.to_dict()
        facts |= {"outlook": outlook.to_dict(), "advice": forecast}
        typer.echo(json.dumps({"dry_run": True, **facts}, indent=1))
        return
    typer.echo(
        f"Would fit {facts['kind']} to {facts['rows']:,} private rows with {facts['columns']} "
        "columns."
    )
    for line in outlook.described(full=full).splitlines()[1:]:
        typer.echo(paragraph(line))
    typer.echo("Nothing was paid, and nothing was written.")
    lines = fault_lines(table.file, table.columns)
    if lines:
        say("For the owner of the rows alone, do not share: cells that do not fit the schema.")
        for line in lines:
            say(f"  {line}")


def _facts(estimator: Any, table: PrivateTable) -> dict[str, Any]:
    return {
        "kind": type(estimator).__name__,
        "rows": table.rows.n_rows,
        "columns": table.rows.n_features,
        "public_rows": 0 if table.public is None else table.public.n_rows,
        "classes": table.classes,
    }


def _report(
    estimator: Any, table: PrivateTable, out: str, seconds: float, *, full: bool, as_json: bool
) -> None:
    """Say what was written, and what was promised."""
    from cumae.cli.files.messages import paragraph, promise_lines, say  # noqa: PLC0415
    from cumae.cli.files.source import STANDARD  # noqa: PLC0415
    from cumae.learners import Learner  # noqa: PLC0415

    facts = {**_facts(estimator, table), "out": out, "guarantee": estimator.guarantee_.to_dict()}
    facts |= {"published": isinstance(estimator, Learner), "seconds": round(seconds, 2)}
    if out == STANDARD:  # where the model went
        say(promise_lines(estimator.guarantee_, full=full))
        return
    if as_json:
        typer.echo(json.dumps(facts, indent=1))
        return
    kind = f"{facts['kind']} of {facts['rows']:,} rows"
    may = "It may be published." if facts["published"] else _secret(out)
    typer.echo(paragraph(f"{out}: {kind}, in {seconds:.1f} s. {may}"))
    typer.echo(promise_lines(estimator.guarantee_, full=full))
    typer.echo(f"Next: cumae show {out}; cumae predict {out} QUERIES -o answers.csv")


def _secret(out: str) -> str:
    return f"Keep it and {out}.keys to yourself; only its answers may leave."
