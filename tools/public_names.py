"""Print the public names of cumae: classes, functions and values with their parameters.

``tests/public_names.txt`` holds what this prints, and a test compares the two. So no name and no
parameter disappears unseen (docs/stability.md says what may change in which version). After a
change that is allowed, `python tools/public_names.py > tests/public_names.txt` writes the list.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

MODULES = (
    *("cumae", "cumae.audit", "cumae.checks", "cumae.concepts", "cumae.data", "cumae.datasets"),
    *("cumae.evaluation", "cumae.learners", "cumae.mechanisms", "cumae.planning"),
    *("cumae.predictors", "cumae.privacy", "cumae.sanitizers", "cumae.theorems"),
)
PREFIX: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


def signature(function: Any) -> str:
    """Return the parameters of a function; a parameter that may be left out ends with ``=``.

    Examples
    --------
    >>> signature(lambda a, /, b, *, c=1, **more: None)
    '(a, /, b, *, c=, **more)'
    """
    parts: list[str] = []
    before = None
    for one in inspect.signature(function).parameters.values():
        if before is one.POSITIONAL_ONLY and one.kind is not before:
            parts.append("/")
        if one.kind is one.KEYWORD_ONLY and before not in (one.KEYWORD_ONLY, one.VAR_POSITIONAL):
            parts.append("*")
        optional = "" if one.default is one.empty else "="
        parts.append(f"{PREFIX.get(one.kind, '')}{one.name}{optional}")
        before = one.kind
    if before is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    return f"({', '.join(parts)})"


def members(kind: type) -> Iterator[str]:
    """Yield the public methods and properties of a class that cumae defines."""
    for name in sorted(set(dir(kind))):
        home = next((base for base in kind.__mro__ if name in vars(base)), kind)
        if name.startswith("_") or not home.__module__.startswith("cumae"):
            continue
        found = vars(home)[name]
        if isinstance(found, classmethod | staticmethod):
            yield f"{name}{signature(getattr(kind, name))}"
        elif inspect.isfunction(found):
            yield f"{name}{signature(found)}".replace("(self, ", "(").replace("(self)", "()")
        else:
            yield name


def described(path: str, found: Any) -> Iterator[str]:
    """Yield the lines about one public name."""
    if inspect.isclass(found):
        takes = "" if issubclass(found, BaseException) else signature(found)
        yield f"{path}{takes}"
        yield from (f"{path}.{member}" for member in members(found))
    elif inspect.isroutine(found):
        yield f"{path}{signature(found)}"
    else:
        yield path


def lines() -> Iterator[str]:
    """Yield all lines; a name that several modules export is described at the first of them."""
    homes: dict[int, str] = {}
    for module in map(importlib.import_module, MODULES):
        for name in sorted(module.__all__):
            found = getattr(module, name)
            path = f"{module.__name__}.{name}"
            if (inspect.isclass(found) or inspect.isroutine(found)) and id(found) in homes:
                yield f"{path} is {homes[id(found)]}"
                continue
            homes[id(found)] = path
            yield from described(path, found)


if __name__ == "__main__":
    print("\n".join(lines()))
