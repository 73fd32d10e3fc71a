"""What ``cumae fit`` fits to a number, and what ``cumae plan`` says about it."""

from __future__ import annotations

from typing import Any

import typer

from cumae.cli.files.numbers import range_of

MODELS = {"kernel": "PrivateKernelRegressor", "linear": "PrivateLinearRegression"}


def refuse_beside(**given: object) -> None:
    """Refuse options that are about classes.

    Parameters
    ----------
    **given : object
        Options by their names, with underscores; None if they were not given.
    """
    for name, value in given.items():
        if value is not None:
            raise typer.BadParameter(
                "it is about classes; leave it out beside --range.",
                param_hint=f"--{name.replace('_', '-')}",
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
    return kind(target_range=range_of(numbers), link=link or "identity", **shared)
