"""The models that ``cumae fit`` fits to a number, and what ``cumae plan`` says about them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import typer

ROUTES = ("auto", "publish")  # a model of a number is published
AIMS = ("--goal", "--costs", "--threshold", "--class-shares")
LINKS = ("identity", "log")
MODELS = {"kernel": "PrivateKernelRegressor", "linear": "PrivateLinearRegression"}


def need_one(classes: str | None, number_range: str | None, link: str | None) -> None:
    """Refuse labels that are neither classes nor a number, or both.

    Parameters
    ----------
    classes, number_range, link : str, or None
        As they were given.
    """
    if (classes is None) == (number_range is None):
        raise typer.BadParameter(
            "say what the label is: one of --classes, or a number with a --range.",
            param_hint="--classes",
        )
    if link is not None and (number_range is None or link not in LINKS):
        raise typer.BadParameter("give identity or log, beside --range.", param_hint="--link")


def refuse_classes(named: Any, route: str, max_queries: int | None, aims: Sequence[Any]) -> None:
    """Refuse options that are about classes or oracles beside a number.

    Parameters
    ----------
    named : NamedAlgorithm, or None
        An algorithm that was asked for.
    route : str
        The route that was asked for.
    max_queries : int, or None
        How many queries there will be.
    aims : sequence
        What the options in ``AIMS`` say, or None.
    """
    given = {"--algorithm": named, "--route": None if route in ROUTES else route}
    given |= {"--max-queries": max_queries, **dict(zip(AIMS, aims, strict=True))}
    for option, value in given.items():
        if value is not None:
            raise typer.BadParameter(
                "it is about classes; leave it out beside --range.", param_hint=option
            )


def regressor(name: str | None, numbers: str, link: str | None, **shared: Any) -> Any:
    """Return a learner of a number, unfitted.

    Parameters
    ----------
    name : str, or None
        One of ``MODELS``; None for the kernel.
    numbers : str
        The range as it was given.
    link : str, or None
        The link; None for the identity.
    **shared : object
        Parameters that all of them have.
    """
    import cumae  # noqa: PLC0415 - what is used of it takes seconds to load

    if name is not None and name not in MODELS:
        raise typer.BadParameter(
            f"{name!r} is no model of a number; there are {', '.join(MODELS)}.",
            param_hint="--model",
        )
    kind = getattr(cumae, MODELS[name or "kernel"])
    from cumae.cli.files.numbers import range_of  # noqa: PLC0415

    return kind(target_range=range_of(numbers), link=link or "identity", **shared)


def print_forecasts(task: Any, *, as_json: bool, **given: Any) -> None:
    """Print what learners of a number would do, and how good they are on made-up rows.

    Parameters
    ----------
    task : object
        Has the numbers of rows, columns and public rows, and what is declared.
    as_json : bool
        Whether a program reads it.
    **given : object
        Parameters of the learners.
    """
    from cumae.cli.files.messages import paragraph, say  # noqa: PLC0415
    from cumae.planning.numbers import forecast_numbers  # noqa: PLC0415 - takes seconds to load

    say("Trying learners of a number on made-up rows; no private row is looked at ...")
    found = forecast_numbers(
        task.n_rows, task.n_features, task.n_public, columns=task.columns, **given
    )
    if as_json:
        typer.echo(json.dumps([one.to_dict() for one in found], indent=1))
        return
    for one in found:
        for line in str(one.outlook).splitlines():
            typer.echo(paragraph(line, hanging="  "))
        if one.r2 is not None:
            typer.echo(
                paragraph(
                    f"On a made-up table of {one.rows:,} rows in which a perfect model explains "
                    f"half of the variance (R2 .50), it explains {max(one.r2, 0.0):.2f}; its 90 % "
                    f"intervals are {one.width:.2g} standard deviations wide. Your number may be "
                    "easier or harder.",
                    hanging="  ",
                )
            )
        typer.echo()
