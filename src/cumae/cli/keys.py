"""``cumae keys``: access keys of a server's clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from cumae.cli.options import AsJson

keys = typer.Typer(
    name="keys",
    help="Make, list and revoke the access keys of a server's clients.\n\n"
    "Example: `cumae keys new access.json --client ward`, `cumae keys list access.json`",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
AccessFile = Annotated[
    str, typer.Argument(metavar="FILE", help="The file of keys, as `cumae serve --access` has it.")
]


def new(
    file: AccessFile,
    client: Annotated[
        str, typer.Option("--client", metavar="NAME", help="Who gets it; keys may share a client.")
    ] = "",
    roles: Annotated[
        str, typer.Option("--roles", metavar="A,B", help="Some of ask, label, look and admin.")
    ] = "ask",
    models: Annotated[
        str | None, typer.Option("--models", metavar="A,B", help="Only for these models.")
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="DAY", help="The day on which it ends: 2030-12-31."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", help="Rows a second that it may ask, on average.")
    ] = None,
    answers: Annotated[
        int | None, typer.Option("--answers", help="Rows that it may ask in all.")
    ] = None,
) -> None:
    """Make a key and print it: it is shown once, and the file keeps a hash of it.

    Example: `cumae keys new access.json --client ward --roles ask,look --rate 100`
    """
    from cumae.serve.keys import KeyFile, new_key  # noqa: PLC0415

    wanted = None if models is None else tuple(models.split(","))
    key, text = new_key(
        client,
        tuple(roles.split(",")),
        models=wanted,
        expires=expires,
        rate=rate,
        answers=answers,
    )
    KeyFile(Path(file)).add(key)
    typer.echo(text)


def show(file: AccessFile, as_json: AsJson = False) -> None:
    """List keys, without their secret parts.

    Example: `cumae keys list access.json`
    """
    from cumae.serve.keys import KeyFile  # noqa: PLC0415

    found = KeyFile(Path(file)).read()
    if as_json:
        facts = [{name: one for name, one in vars(key).items() if name != "hash"} for key in found]
        typer.echo(json.dumps(facts, indent=1))
        return
    for key in found:
        limits = [] if key.expires is None else [f"until {key.expires}"]
        limits += [] if key.rate is None else [f"{key.rate:g} rows a second"]
        limits += [] if key.answers is None else [f"{key.answers:,} rows"]
        limits += [] if key.models is None else [f"for {', '.join(key.models)}"]
        limits += ["revoked"] * key.revoked
        parts = [key.name, key.client, ",".join(key.roles), *limits]
        typer.echo("  ".join(parts))


def revoke(
    file: AccessFile,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The first part of the key.")],
) -> None:
    """Refuse a key from now on, also in servers that run.

    Example: `cumae keys revoke access.json 3f9c21aa51c0`
    """
    from cumae.serve.keys import KeyFile  # noqa: PLC0415

    KeyFile(Path(file)).revoke(name)


keys.command("new")(new)
keys.command("list")(show)
keys.command("revoke")(revoke)
