"""Reference pages: each exported name from its docstring."""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.site.places import ROOT

# The packages that are for users, the one that a name is imported from first.
PACKAGES = (
    *("cumae", "cumae.learners", "cumae.predictors", "cumae.concepts", "cumae.sanitizers"),
    *("cumae.mechanisms", "cumae.privacy", "cumae.planning", "cumae.evaluation", "cumae.audit"),
    *("cumae.checks", "cumae.theorems", "cumae.datasets", "cumae.store", "cumae.serve"),
)
SECTION = re.compile(r"^(?P<name>[A-Z][\w ]+)\n-{3,}\n", re.MULTILINE)
ENTRIES = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "Methods")
COMMENT = re.compile(r"^((?:#: .*\n)+)(\w+)", re.MULTILINE)
USED = re.compile(r"[\w\])]\.([a-z]\w*)|`([a-z]\w*)`")
ROLE = re.compile(r":(?:class|func|meth|mod|attr|obj):`~?([\w.]+)`")


@dataclass(frozen=True)
class Exported:
    """A name that users import.

    Parameters
    ----------
    package, name : str
        Where it is imported from.
    value : object
        What it stands for.
    """

    package: str
    name: str
    value: Any

    @property
    def address(self) -> str:
        return f"{self.package}.{self.name}"

    @property
    def page(self) -> str:
        return f"reference/names/{self.address}.md"

    @property
    def doc(self) -> str:
        """Return its docstring; constants have the comment that documents them."""
        if isinstance(self.value, type) or callable(self.value):
            return inspect.getdoc(self.value) or ""
        return constants(self.package).get(self.name, "")


def constants(package: str) -> dict[str, str]:
    """Return the comments of constants that a package takes from its modules."""
    found: dict[str, str] = {}
    folder = Path(str(importlib.import_module(package).__file__)).parent
    for module in sorted(folder.glob("*.py")):
        for said, name in COMMENT.findall(module.read_text(encoding="utf-8")):
            found[name] = re.sub(r"^#: ?", "", said, flags=re.MULTILINE).strip()
    return found


def exported() -> list[Exported]:
    """Return all names that users import, each from the first package that has it."""
    found: list[Exported] = []
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if not name.startswith("__") and not any(
                one.name == name and one.value is value for one in found
            ):
                found.append(Exported(package, name, value))
    return found


def sections(doc: str) -> dict[str, str]:
    """Return the sections of a docstring; the first one, without a head, is called ""."""
    parts = SECTION.split(doc)
    named = zip(parts[1::2], map(str.rstrip, parts[2::2]), strict=True)
    return {"": parts[0].strip(), **dict(named)}


def prose(text: str, pages: dict[str, str] | None = None) -> str:
    """Return text of a docstring as Markdown."""

    def linked(match: re.Match[str]) -> str:
        full = match[1]
        page = (pages or {}).get(full.rpartition(".")[2])
        shown = f"`{full.removeprefix('cumae.')}`"
        return f"[{shown}]({page})" if page else shown

    text = ROLE.sub(linked, text)
    text = re.sub(r"``([^`]+)``", r"`\1`", text)
    text = re.sub(r"::\n\n((?:    .*\n?|\n)+)", _literal, text)
    return re.sub(r"(?<![`\w])\*(?=[\w(])(?!\*)", r"\\*", text) if "**" in text else text


def _literal(match: re.Match[str]) -> str:
    return f":\n\n```text\n{textwrap.dedent(match[1]).rstrip()}\n```\n"


def entries(text: str, pages: dict[str, str]) -> str:
    """Return the entries of a section as a list of definitions."""
    found = []
    for head, body in re.findall(r"^(\S.*)\n((?:[ \t]+.*\n?|\n)*)", f"{text}\n", re.MULTILINE):
        name, colon, kind = head.partition(" : ")
        shown = f"`{name}`" + (f" : {prose(kind, pages)}" if colon else "")
        said = textwrap.indent(prose(textwrap.dedent(body).strip(), pages), "    ").lstrip()
        found.append(f"{shown}\n:   {said or '&nbsp;'}\n")
    return "\n".join(found)


def examples(text: str, pages: dict[str, str]) -> str:
    """Return a section of examples: code in blocks, and the text between."""
    shown = []
    for part in re.split(r"\n\s*\n", text.strip("\n")):
        plain = textwrap.dedent(part)
        shown.append(f"```pycon\n{plain}\n```" if plain.startswith(">>>") else prose(plain, pages))
    return "\n\n".join(shown)


def documented(doc: str, pages: dict[str, str], level: int) -> Iterator[str]:
    """Yield the parts of a docstring as Markdown."""
    for name, text in sections(doc).items():
        if name:
            yield f"{'#' * level} {name}" if level < 4 else f"**{name}**"
        if name == "Examples":
            yield examples(text, pages)
        elif name in ENTRIES:
            yield entries(text, pages)
        else:
            yield prose(text, pages)


def signature(name: str, value: Any) -> str:
    """Return how something is called, a line for each parameter where there are many."""
    try:
        shown = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    given = [
        one.replace(annotation=inspect.Parameter.empty)
        for one in shown.parameters.values()
        if one.name not in ("self", "cls")
    ]
    short = f"{name}{inspect.Signature(given)}"
    if len(short) <= 74:
        return f"```python\n{short}\n```"
    inner = re.sub(r"^\(|\)$", "", str(inspect.Signature(given)))
    filled = textwrap.fill(inner, 74, initial_indent="    ", subsequent_indent="    ")
    return f"```python\n{name}(\n{filled}\n)\n```"


@functools.cache
def used() -> set[str]:
    """Return the names that pages of docs take from objects: what users call."""
    texts = [one.read_text(encoding="utf-8") for one in (ROOT / "docs").rglob("*.md")]
    return {name for text in texts for pair in USED.findall(text) for name in pair if name}


def methods(value: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties that cumae documents, in the order of their names."""
    for name, one in inspect.getmembers(value):
        inner = one.fget if isinstance(one, property) else one
        home = getattr(inner, "__module__", "") or ""
        if name.startswith("_") or not home.startswith("cumae") or isinstance(one, type):
            continue
        if inspect.isroutine(inner) and inspect.getdoc(inner):
            yield name, one


def by_example(one: Exported) -> str:
    """Return what a page of docs shows about a name whose docstring has no example."""
    error = isinstance(one.value, type) and issubclass(one.value, Exception)
    file, head = ("errors.md", one.name) if error else ("names_by_example.md", one.address)
    text = (ROOT / "docs" / file).read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(head)}\n\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    shown = found[1].replace("```python", "```pycon") if found else ""
    shown = re.sub(r"\]\((?!http)", "](../../", shown)
    source = f"From [{file.removesuffix('.md').replace('_', ' ')}](../../{file})."
    return f"## Examples\n\n{shown.strip()}\n\n{source}" if found else ""


def page(one: Exported, pages: dict[str, str]) -> str:
    """Return the page of an exported name."""
    home = f"[{one.package}](../index.md#{one.package.replace('.', '')})"
    parts = [f"# {one.name}", f"`from {one.package} import {one.name}` · {home}"]
    if callable(one.value):
        parts.append(signature(one.name, one.value))
    parts += documented(one.doc, pages, 2)
    if "Examples" not in sections(one.doc):
        parts.append(by_example(one))
    if isinstance(one.value, type):
        listed = dict(methods(one.value))
        usual = [name for name in listed if name in used()]
        for head, names in (("Methods", usual), ("Methods for those who extend it", listed)):
            shown = [name for name in names if (name in usual) == (names is usual)]
            parts += [f"## {head}"] * bool(shown)
            for name in shown:
                parts.append(f"### {name}")
                if not isinstance(listed[name], property):
                    parts.append(signature(name, listed[name]))
                parts += documented(inspect.getdoc(listed[name]) or "", pages, 4)
    return "\n\n".join(part for part in parts if part) + "\n"


def index(names: list[Exported]) -> str:
    """Return the list of all names, package by package."""
    parts = [HEAD]
    for package in PACKAGES:
        parts.append(f"## {package}")
        about = inspect.getdoc(importlib.import_module(package)) or ""
        parts.append(prose(sections(about)[""].split("\n\n")[0]))
        rows = []
        for one in names:
            if one.package == package:
                first = prose(" ".join(one.doc.split("\n\n")[0].split())).replace("|", "\\|")
                rows.append(f"| [`{one.name}`](names/{one.address}.md) | {first} |")
        if rows:
            parts.append("\n".join(["| name | |", "| --- | --- |", *rows]))
    return "\n\n".join(parts) + "\n"


HEAD = """\
# All names

Everything that users import, from its docstring. Each page has an example that the tests run.
Estimators are imported from `cumae`; what they are made of is in the packages below it.
[The command line](commands.md) and [the server](server.md) have pages of their own."""


def generated() -> dict[str, str]:
    """Return all reference pages of names."""
    names = exported()
    pages = {one.name: f"{one.address}.md" for one in names}
    found = {one.page: page(one, pages) for one in names}
    return {"reference/index.md": index(names), **found}
