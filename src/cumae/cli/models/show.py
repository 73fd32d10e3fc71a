"""``cumae show``: a model as text and pictures, with its guarantee and what it cost."""

from __future__ import annotations

import datetime as dt
import json
from typing import Annotated, Any

import typer

from cumae.cli.options import AsJson, FittedPath, Force, Full, Keys
from cumae.cli.status import described

PlotFile = Annotated[
    str | None,
    typer.Option(
        "--plot", metavar="FILE", help="Draw curves and pairs to .svg, .png or .pdf (cumae[plot])."
    ),
]
BARS = " ▁▂▃▄▅▆▇█"
CURVES = 12  # columns that are drawn as text
POINTS = 32  # letters of a curve
WIDEST_NAME = 28


def show(
    fitted: FittedPath,
    plot: PlotFile = None,
    keys: Keys = None,
    force: Force = False,
    full: Full = False,
    as_json: AsJson = False,
) -> None:
    """Show what a model learnt, what is promised, and what it cost.

    Of a model: what each column and the strongest pairs of columns add to the log odds, as text, as
    small curves, and with --plot as a picture. All of it is computed from what was published, and
    costs nothing. Of an oracle: its guarantee, and the answers given and left; what it holds is
    never shown.

    Example: `cumae show model.json --plot model.svg`
    """
    from cumae.cli.files.source import need_files  # noqa: PLC0415

    need_files(fitted)
    from cumae.cli.files.fitted import is_oracle, load_model  # noqa: PLC0415 - takes seconds
    from cumae.cli.files.messages import messages_shown, paragraph, promise_lines  # noqa: PLC0415

    if is_oracle(fitted):
        _show_oracle(fitted, keys, plot, full=full, as_json=as_json)
        return
    with messages_shown():
        model = load_model(fitted)
        if plot is not None:
            _draw(model, plot, force=force)
    if as_json:
        typer.echo(json.dumps(_facts(model), indent=1))
        return
    typer.echo(f"{type(model).__name__} in {fitted}; {_predicted(model)}\n")
    typer.echo(promise_lines(model.guarantee_, full=full))
    typer.echo(paragraph(_cost(model)))
    for line in _answers(model):
        typer.echo(paragraph(line))
    typer.echo()
    for line in str(model).splitlines():
        typer.echo(paragraph(line, hanging="      "))
    for line in _curves(model):
        typer.echo(line)


def _predicted(model: Any) -> str:
    """Return what a model predicts."""
    if hasattr(model, "classes_"):
        return f"classes {_listed(model.classes_)}"
    return "a number from {:g} to {:g}".format(*model.target_range_)


def _listed(values: Any) -> str:
    return ", ".join(map(str, values.tolist()))


def _cost(model: Any) -> str:
    promise = model.guarantee_
    allowed = ""
    if promise.epsilon != model.epsilon or promise.delta != model.delta:
        allowed = f" (this model was allowed epsilon = {model.epsilon:g}, delta = {model.delta:g})"
    return (
        f"Cost: epsilon = {promise.epsilon:.4g} at delta = {promise.delta:g}, once{allowed}. Using "
        "and publishing the model costs nothing more."
    )


def _answers(model: Any) -> list[str]:
    """Return how chances become answers, if anything was declared about it."""
    costs = getattr(model, "costs", None) or getattr(model, "class_weight", None)
    threshold, goal = getattr(model, "threshold", None), getattr(model, "goal", "accuracy")
    lines = [] if goal == "accuracy" else [f"Goal: {goal}."]
    if costs is not None:
        costs_shown = ", ".join(f"{name}: {cost:g}" for name, cost in costs.items())
        lines.append(
            f"Answers: the class of least expected cost. Cost to miss a row: {costs_shown}."
        )
    if threshold is not None:
        second = model.classes_[1]
        lines.append(f"Answers: {second} if its chance is {threshold:g} or more.")
    return lines


def _show_oracle(
    path: str, keys: str | None, plot: str | None, *, full: bool, as_json: bool
) -> None:
    from cumae.errors import InvalidParameter  # noqa: PLC0415
    from cumae.store import status  # noqa: PLC0415

    if plot is not None:
        raise InvalidParameter(f"{path} is an oracle, whose models are never shown.")
    found = status(path, keys=keys)
    typer.echo(json.dumps(found.to_dict(), indent=1) if as_json else described(found, full=full))


def _effects(model: Any) -> list[Any]:
    """Return what columns and pairs add; nothing for models that have no such parts."""
    from cumae.errors import CumaeError  # noqa: PLC0415

    try:
        return list(getattr(model, "effects_", []))
    except CumaeError:  # so few rows that trees were fitted
        return []


def _curves(model: Any) -> list[str]:
    """Return the effects of columns as small curves of letters."""
    import numpy as np  # noqa: PLC0415

    single = [one for one in _effects(model) if len(one.columns) == 1 and _is_curve(one)]
    if not single:
        return []
    most = max(float(np.abs(one.log_odds).max()) for one in single) or 1.0
    lines = [f"\nCurves, from the lowest value to the highest; the tallest bar is {most:+.2f}:"]
    for effect in single[:CURVES]:
        count = len([value for value in effect.values[0] if value is not None])
        places = np.unique(np.linspace(0, count - 1, min(count, POINTS)).round().astype(int))
        heights = (effect.log_odds[places] + most) / (2 * most) * (len(BARS) - 2) + 1
        drawn = "".join(BARS[int(height)] for height in heights.round())
        name = effect.columns[0]
        shown = name if len(name) <= WIDEST_NAME else f"{name[: WIDEST_NAME - 3]}..."
        low, high = float(effect.log_odds.min()), float(effect.log_odds.max())
        lines.append(f"  {shown:<{WIDEST_NAME}} {drawn:<{POINTS}} {low:+.2f} to {high:+.2f}")
    return lines


def _is_curve(effect: Any) -> bool:
    """Tell whether values have an order, and one score."""
    first = effect.values[0][0]
    return effect.log_odds.ndim == 1 and isinstance(first, float | dt.datetime)


def _draw(model: Any, plot: str, *, force: bool) -> None:
    from cumae.cli.models.pictures import draw_to  # noqa: PLC0415
    from cumae.errors import InvalidParameter  # noqa: PLC0415

    if not hasattr(model, "plot"):
        raise InvalidParameter(f"a {type(model).__name__} has no curves to draw.")
    draw_to(plot, model.plot, force=force)


def _facts(model: Any) -> dict[str, Any]:
    return {
        "kind": type(model).__name__,
        **_predicts(model),
        "columns": [column.to_dict() for column in model.columns_.columns],
        "guarantee": model.guarantee_.to_dict(),
        "asked": {"epsilon": model.epsilon, "delta": model.delta},
        "answers": {
            name: getattr(model, name, None)
            for name in ("goal", "costs", "class_weight", "threshold")
        },
        "effects": [
            {
                "columns": list(one.columns),
                "values": [[_plain(value) for value in values] for values in one.values],
                "log_odds": one.log_odds.tolist(),
                "spread": one.spread.tolist(),
                "strength": float(one.strength),
            }
            for one in _effects(model)
        ],
    }


def _predicts(model: Any) -> dict[str, Any]:
    """Return what a model predicts, for programs."""
    if hasattr(model, "classes_"):
        return {"classes": model.classes_.tolist()}
    found: dict[str, Any] = {"range": list(model.target_range_), "link": model.link}
    if hasattr(model, "coef_"):
        found["intercept"] = [model.intercept_, model.intercept_error_]
        slopes = zip(model.coef_.tolist(), model.standard_errors_.tolist(), strict=True)
        found["slopes"] = dict(zip(model.names_, map(list, slopes), strict=True))
    return found


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, int | float | str) else str(value)
