"""Rules of the house: sizes, names and types that a reader may count on everywhere in the package.

The lists of exceptions below give a reason for each entry. An entry that is no longer needed makes
the tests fail: remove it when the place is mended.
"""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"
MOST_MODULES = 12
MOST_LINES = 400  # without docstrings
MOST_LINES_OF_A_FUNCTION = 55  # without its signature and its docstring

EXCEPTIONS: dict[str, set[str]] = {
    "imports_by_string": {
        # Public names are imported when they are asked for. The table of their modules stands at
        # the top of the package, which may import every layer, and type checkers read it, too.
        "cumae:import_module(module)",
        # A package of others, whose name each LaterModule is given; the rule looks at these names.
        "cumae.extras:import_module(self._name)",
        # Estimators of scikit-learn, as a stored predictor names them.
        "cumae.codec.registry:import_module(module)",
    },
}

# Packages whose functions say what their parameters are, from this many parameters on.
DOCUMENTED = ("cumae.audit", "cumae.concepts", "cumae.sanitizers", "cumae.theorems")
SEVERAL = 3
MANY = 5  # in private functions

# What has one meaning is written down once: these numbers, and what is assigned to these names.
NUMBERS = (1.645,)
NAMES = ("GOOD_NOISE", "MUCH_NOISE", "Floats", "Integers", "Words")

Modules: TypeAlias = dict[str, ast.Module]
DEFINED = ast.FunctionDef | ast.AsyncFunctionDef
Found: TypeAlias = Iterator[tuple[str, str]]  # the module that breaks a rule, and how


@functools.cache  # and not while tests are collected, which every process does
def _modules() -> Modules:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


NAMED_TUPLE = {"_fields", "_replace", "_asdict"}  # public, in spite of their names


def private_names(modules: Modules) -> Found:
    """Private names that a module imports, or takes from what another module made."""
    for module, tree in modules.items():
        imported = dict(_imports(tree))
        for full in imported.values():
            if full.startswith("cumae") and any(map(_is_private, full.split("."))):
                yield module, full
        own = set(_defined(tree)) | NAMED_TUPLE
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and _is_private(node.attr):
                text = ast.unparse(node)
                home = imported.get(text.split(".")[0], "cumae")
                here = node.attr in own and text.split(".")[0] not in imported
                if not here and not text.startswith("super()") and home.startswith("cumae"):
                    yield module, text


def _defined(tree: ast.Module) -> Iterator[str]:
    """Yield the names that a module defines or sets, and those that its classes inherit."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | DEFINED):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in ("self", "cls"):
            yield node.attr


def _imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the name under which a module knows each thing that it imports, and its full name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.split(".")[0], alias.name


# Functions and classes that import the module whose name they are given first.
IMPORTERS = {
    *("__import__", "builtins.__import__", "importlib.__import__", "importlib.import_module"),
    *("pkgutil.resolve_name", "runpy.run_module", "cumae.extras.LaterModule"),
}


def imports_by_string(modules: Modules) -> Found:
    """Imports of own modules by a name in a string, or by a name that is computed.

    The contracts about layers cannot see them.
    """
    for module, tree in modules.items():
        imported = dict(_imports(tree))
        # Where an importer is not called, something else will call it with names of its own.
        named = {node.func: node.args[:1] for node in ast.walk(tree) if isinstance(node, ast.Call)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Name | ast.Attribute):
                continue
            first, dot, rest = ast.unparse(node).partition(".")
            if f"{imported.get(first, first)}{dot}{rest}" not in IMPORTERS:
                continue
            known = [one.value for one in named.get(node, []) if isinstance(one, ast.Constant)]
            if not known or str(known[0]).startswith(("cumae", ".")):
                given = ", ".join(map(ast.unparse, named.get(node, [])))
                yield module, f"{module}:{ast.unparse(node).rpartition('.')[2]}({given})"


def shared_class_names(modules: Modules) -> Found:
    """Classes that have the name of another class."""
    homes = defaultdict(list)
    for module, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(module)
    for name, where in homes.items():
        for module in where if len(where) > 1 else []:
            yield module, f"{name} in {' and '.join(where)}"


def crowded_packages(modules: Modules) -> Found:
    """Packages with too many modules side by side; the outermost one is left to the layout."""
    inside = defaultdict(list)
    for module in modules:
        inside[module.rpartition(".")[0]].append(module)
    for package, names in inside.items():
        beside = [name for name in names if name not in inside]  # packages inside do not count
        if package.startswith("cumae.") and len(beside) > MOST_MODULES:
            yield package, f"{len(beside)} modules"


def _docstring_lines(node: ast.Module | ast.ClassDef | DEFINED) -> int:
    if ast.get_docstring(node, clean=False) is None:
        return 0
    return (node.body[0].end_lineno or 0) - node.body[0].lineno + 1


def long_modules(modules: Modules) -> Found:
    for module, tree in modules.items():
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef | DEFINED)]
        last = max((node.end_lineno or 0 for node in tree.body), default=0)
        lines = last - sum(map(_docstring_lines, [tree, *nodes]))
        if lines > MOST_LINES:
            yield module, f"{module} has {lines} lines"


def long_functions(modules: Modules) -> Found:
    def below(name: str, node: ast.AST) -> Iterator[tuple[str, int]]:
        for child in ast.iter_child_nodes(node):
            inner = f"{name}.{child.name}" if isinstance(child, ast.ClassDef | DEFINED) else name
            if isinstance(child, DEFINED):
                # A command's signature is the list of its options, and may be long.
                lines = (child.end_lineno or 0) - child.body[0].lineno + 1
                yield inner, lines - _docstring_lines(child)
            yield from below(inner, child)

    for module, tree in modules.items():
        for name, lines in below(module, tree):
            if lines > MOST_LINES_OF_A_FUNCTION:
                yield module, f"{name} has {lines} lines"


def repeated_constants(modules: Modules) -> Found:
    """Numbers, names of numbers and aliases of arrays that are written down more than once."""
    homes: dict[float | str, list[str]] = defaultdict(list)
    for module, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and node.value in NUMBERS:
                homes[float(node.value)].append(module)  # type: ignore[arg-type]
            if isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in targets:
                    if isinstance(target, ast.Name) and target.id in NAMES:
                        homes[target.id].append(module)
    for what, where in homes.items():
        for module in where if len(where) > 1 else []:
            yield module, f"{what} in {' and '.join(where)}"


def untyped(docstring: str) -> list[str]:
    """Return the entries of a docstring's Parameters section that have no type."""
    section = r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n---|\Z)"
    match = re.search(section, docstring, re.MULTILINE | re.DOTALL)
    lines = match[1].splitlines() if match else []
    entries = [line for line in lines if line and not line.startswith(" ")]
    return [line for line in entries if not re.fullmatch(r"[\w*, ]+ : \S.*", line)]


def untyped_parameters(modules: Modules) -> Found:
    for module, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | DEFINED) and not _is_private(node.name):
                for entry in untyped(ast.get_docstring(node) or ""):
                    yield module, f"{node.name}: {entry}"


def parameters_of(node: DEFINED) -> list[str]:
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [one.arg for one in given if one.arg not in ("self", "cls")]


def undocumented_parameters(modules: Modules) -> Found:
    """Functions with several parameters whose docstring does not say what each of them is.

    An override that takes over the docstring of its base has none of its own.
    """
    for module, tree in modules.items():
        if not module.startswith(DOCUMENTED):
            continue
        for node in ast.walk(tree):
            if not isinstance(node, DEFINED):
                continue
            names, docstring = parameters_of(node), ast.get_docstring(node)
            if docstring is None or len(names) < (MANY if _is_private(node.name) else SEVERAL):
                continue
            entries = re.findall(r"^([\w*, ]+) : ", docstring, re.MULTILINE)
            told = {name.strip("* ") for entry in entries for name in entry.split(",")}
            for name in sorted(set(names) - told):
                yield module, f"{module}.{node.name}: {name}"


RULES: list[Callable[[Modules], Found]] = [
    private_names,
    imports_by_string,
    shared_class_names,
    crowded_packages,
    long_modules,
    long_functions,
    repeated_constants,
    untyped_parameters,
    undocumented_parameters,
]


@pytest.mark.parametrize("rule", RULES)
def test_the_rule_is_kept(rule: Callable[[Modules], Found]) -> None:
    broken = [how for _, how in rule(_modules())]
    excepted = EXCEPTIONS.get(rule.__name__, set())
    assert [how for how in broken if how.split()[0] not in excepted] == []
    assert {how.split()[0] for how in broken} >= excepted, "an exception is not needed any more"


def test_contributing_names_every_rule() -> None:
    page = (SOURCE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition("## Rules of the house")[2].partition("\n## ")[0]
    told = dict(re.findall(r"^- `(\w+)`: (.*(?:\n  .*)*)", section, re.MULTILINE))
    assert list(told) == [rule.__name__ for rule in RULES]
    numbers = {
        "crowded_packages": {MOST_MODULES},
        "long_modules": {MOST_LINES},
        "long_functions": {MOST_LINES_OF_A_FUNCTION},
        "undocumented_parameters": {SEVERAL, MANY},
    }
    for rule, words in told.items():
        assert set(map(int, re.findall(r"\d+", words))) == numbers.get(rule, set()), rule
    assert set(re.findall(r"`(cumae\.\w+)`", told["undocumented_parameters"])) == set(DOCUMENTED)


def test_every_package_lists_its_layers() -> None:
    """The contracts cover all packages and modules, and no import is ignored."""
    project = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    assert all(one["type"] == "layers" and one["exhaustive"] for one in contracts)
    assert not [one for one in contracts if "ignore_imports" in one or "exhaustive_ignores" in one]
    listed = [package for one in contracts for package in one["containers"]]
    inside = Counter(name.rpartition(".")[0] for name in _modules() if "." in name)
    several = {package for package, count in inside.items() if count > 1}
    assert sorted(listed) == sorted(several)


TYPED = 'def f(a, b):\n "F.\\n\\nParameters\\n---\\na : int\\n    A.\\nb : int\\n    B."'
BAD: list[tuple[Callable[[Modules], Found], dict[str, str]]] = [
    (private_names, {"cumae.a": "from cumae.b import _secret"}),
    (private_names, {"cumae.a": "from cumae import b\nb._secret"}),
    (private_names, {"cumae.a": "from cumae.b import Box\nBox.part._secret"}),
    (private_names, {"cumae.a": "import cumae.b\ncumae.b._secret"}),
    (private_names, {"cumae.a": "from cumae.b import make\nx = make()\nx._secret"}),
    (imports_by_string, {"cumae.a": "import importlib\nimportlib.import_module('cumae.b')"}),
    (imports_by_string, {"cumae.a": "import importlib as i\ni.import_module('.b', 'cumae')"}),
    (imports_by_string, {"cumae.a": "from importlib import import_module as f\nf('cumae')"}),
    (imports_by_string, {"cumae.a": "from importlib import import_module as f\nf('cu' + end)"}),
    (imports_by_string, {"cumae.a": "from importlib import import_module as f\nmap(f, names)"}),
    (imports_by_string, {"cumae.a": "from importlib import import_module as f\nf(name='os')"}),
    (imports_by_string, {"cumae.a": "__import__('cumae.b')"}),
    (
        imports_by_string,
        {"cumae.a": "from cumae.extras import LaterModule\nLaterModule('cumae.b')"},
    ),
    (shared_class_names, {"cumae.a": "class Phase: ...", "cumae.b": "class Phase: ..."}),
    (crowded_packages, {f"cumae.a.m{i}": "" for i in range(13)}),
    (long_functions, {"cumae.a": "class A:\n def f(self):\n" + "  x = 1\n" * 56}),
    (repeated_constants, {"cumae.a": "Floats = 1", "cumae.b": "Floats: int = 1"}),
    (repeated_constants, {"cumae.a": "x = 1.645 * 2", "cumae.b": "y = 1.645"}),
    (untyped_parameters, {"cumae.a": TYPED.replace("b : int", "b")}),
    (undocumented_parameters, {"cumae.audit.a": TYPED.replace("(a, b)", "(a, b, c)")}),
    (undocumented_parameters, {"cumae.audit.a": TYPED.replace("f(a, b)", "_f(a, b, c, *, d, e)")}),
]
GOOD: list[tuple[Callable[[Modules], Found], dict[str, str]]] = [
    (private_names, {"cumae.a": "import os\nos._exit\nfrom cumae.b import __version__"}),
    (private_names, {"cumae.a": "class A:\n def f(self):\n  self._own\nA()._own"}),
    (imports_by_string, {"cumae.a": "import importlib\nimportlib.import_module('pyarrow')"}),
    (imports_by_string, {"cumae.a": "def import_module(name): ...\nimport_module('cumae.b')"}),
    (shared_class_names, {"cumae.a": "class Phase: ...", "cumae.b": "class Step: ..."}),
    (crowded_packages, {f"cumae.a.m{i}": "" for i in range(12)}),
    (long_functions, {"cumae.a": "class A:\n def f(self):\n" + "  x = 1\n" * 55}),
    (repeated_constants, {"cumae.a": "Floats = 1.645", "cumae.b": "Integers = 2"}),
    (untyped_parameters, {"cumae.a": TYPED}),
    (undocumented_parameters, {"cumae.audit.a": 'def f(a, b):\n "F of both."'}),
    (undocumented_parameters, {"cumae.audit.a": "def f(a, b, c):\n return c"}),
    (undocumented_parameters, {"cumae.audit.a": 'def _f(a, b, c):\n "F of three."'}),
    (undocumented_parameters, {"cumae.audit.a": TYPED.replace("(a, b)", "(self, a, b)")}),
]


@pytest.mark.parametrize(("rule", "files"), BAD)
def test_what_breaks_a_rule_is_found(
    rule: Callable[[Modules], Found], files: dict[str, str]
) -> None:
    assert list(rule({name: ast.parse(text) for name, text in files.items()}))


@pytest.mark.parametrize(("rule", "files"), GOOD)
def test_what_keeps_a_rule_is_not(rule: Callable[[Modules], Found], files: dict[str, str]) -> None:
    assert not list(rule({name: ast.parse(text) for name, text in files.items()}))
