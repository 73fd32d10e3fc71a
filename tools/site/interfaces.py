"""Reference pages of the command line, from its help, and of the server, from its description."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import typer.main

from cumae.cli import app
from cumae.serve.openapi import description

COMMANDS = """\
The text of `cumae COMMAND --help`. [The command line](../command_line.md) says which command is for
what."""
SERVER = """\
The description that a running server has at `/openapi.json`. [Serving](../serving.md) shows how to
ask."""


def _said(text: str | None) -> str:
    return " ".join(re.sub(r"\[/?[a-z ]+\]", "", text or "").replace("|", "\\|").split())


def _rows(command: Any) -> Iterator[str]:
    for one in command.params:
        if one.name == "help" or getattr(one, "hidden", False):
            continue
        argument = one.param_type_name == "argument"
        names = one.name.upper() if argument else ", ".join([*one.opts, *one.secondary_opts])
        default = "" if one.default in (None, False, ()) or callable(one.default) else one.default
        needed = "needed" if one.required else (f"`{default}`" if str(default) else "")
        yield f"| `{names}` | {needed} | {_said(one.help)} |"


def _command(name: str, command: Any) -> Iterator[str]:
    yield f"## {name}"
    for part in re.split(r"\n\s*\n", (command.help or "").replace("\f", "")):
        yield _said(part).replace("\\|", "|")
    if hasattr(command, "commands"):
        for inner, one in command.commands.items():
            yield from _command(f"{name} {inner}", one)
        return
    rows = list(_rows(command))
    if rows:
        yield "\n".join(["| option | default | |", "| --- | --- | --- |", *rows])


def commands() -> str:
    """Return the page of all commands with their options."""
    whole: Any = typer.main.get_command(app)
    parts = [
        "# Commands, option by option",
        COMMANDS,
    ]
    for name, command in whole.commands.items():
        parts += _command(f"cumae {name}", command)
    return "\n\n".join(part for part in parts if part) + "\n"


def _schema(content: dict[str, Any]) -> Iterator[str]:
    for kind, one in content.items():
        shown = json.dumps(one["schema"], indent=2)
        yield f'??? note "{kind}"\n\n' + "    " + f"```json\n{shown}\n```".replace("\n", "\n    ")


def server() -> str:
    """Return the page of all addresses of the server."""
    parts = [
        "# Addresses of the server",
        SERVER,
    ]
    for path, item in description()["paths"].items():
        for method, one in item.items():
            if method == "parameters":
                continue
            parts += [f"## {method.upper()} {path}", one["summary"]]
            if one.get("security"):
                parts.append("Needs a key where the server has keys.")
            if "requestBody" in one:
                parts.append("A request has a body of one of these forms:")
                parts += _schema(one["requestBody"]["content"])
            rows = [
                f"| {code} | {_said(reply['description'])} |"
                for code, reply in one["responses"].items()
            ]
            parts.append("\n".join(["| status | |", "| --- | --- |", *rows]))
    return "\n\n".join(parts) + "\n"
