"""Signatures are honest: type checkers and ``inspect`` see the parameters that are documented.

One run of mypy checks calls of every public method of ``cumae`` and ``cumae.concepts``. It takes
about ten seconds the first time, for numpy's and scipy's types, and less than one later: bodies of
functions are left out (``--follow-imports silent``), and pytest's cache keeps what mypy knows.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

import cumae
import cumae.concepts

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"

RIGHT = """
import numpy as np

import cumae
from cumae.concepts import Thresholds

X, y = np.zeros((9, 1)), np.zeros(9)
oracle = cumae.EverlastingPredictor(Thresholds(), 3.0, user_ids=True, late=0.1)
oracle.fit(X, y, users=list(range(9))).predict(X)
oracle.predict([[1.0]], users=[1], clients=["a"], query_ids=[7], request_id="b")
oracle.predict_calls([cumae.Call(X, users=[1]), cumae.Call([[1.0]], request_id=("a", 1))])
oracle.add_labels([7], [1]).add_labelled(X, y, users=None).rotate_key()
release = cumae.QueryRelease(Thresholds(), epsilon=1.0, max_queries=10).fit(X, y)
release.predict(X, request_id=("a", 1))
cumae.UniversalQueryRelease(Thresholds(), n_first=10).fit(X, y, X_public=X).predict(X=X)
cumae.GenericBBL(Thresholds(), fresh=True).fit(X, y).add_unlabelled(X).predict(X)
learner = cumae.PrivateKernelClassifier(1.0, columns=[(0, 1)], budget=cumae.Budget(1.0, 1e-6))
learner.fit(X, y, X_public=X).predict_proba(X)
cumae.PrivateClassifier(1.0).fit(X, y).private_score(X, y, 0.1, budget=None)
cumae.ActiveLearner(cumae.PrivateLearner(Thresholds()), n_labels=3, n_rows=9).select(X)
"""

WRONG = """
oracle.fit(nonsense=1)
oracle.fit(X, y, nonsense=1)
oracle.fit(X, y, [1])
oracle.predict(usres=[1])
oracle.predict(X, usres=[1])
oracle.predict(X, requests=[1])
oracle.predict(X, [1])
oracle.predict()
oracle.predict_calls([X])
cumae.Call(X, usres=[1])
oracle.add_labelled(X)
release.predict(bogus=2)
release.predict(X, users=[1])
cumae.PrivateKernelClassifier().fit(X, y, nonsense=1)
cumae.PrivateKernelClassifier().fit(X, y).predict(X, nonsense=1)
cumae.PrivateKernelClassifier(epsilom=1.0)
cumae.EverlastingPredictor(Thresholds(), epsilon="1")
cumae.PrivateLogisticRegression(1.0, bound=3)
cumae.PrivateClassifier(1.0).fit(X, y).private_score(X, y)
cumae.PrivateClassifier(1.0).fit(X, y).predict_proba(X, y)
cumae.Budget(1.0).save("account.json", keys=None)
cumae.Budget(1.0).save_to("account.db", key=None)
"""

# What type checkers take results for.
RESULTS = {
    "oracle.fit(X, y)": "EverlastingPredictor",
    "oracle.predict(X)": "ndarray",
    "oracle.predict_calls([cumae.Call(X)])": "list",
    "oracle.add_labelled(X, y)": "EverlastingPredictor",
    "oracle.to_arrays()": "dict",
    "release.fit(X, y)": "QueryRelease",
    "release.predict(X)": "ndarray",
    "release.noisy_votes(X)": "ndarray",
    "learner.fit(X, y)": "PrivateKernelClassifier",
    "learner.predict(X)": "ndarray",
    "cumae.PrivateClassifier(1.0).fit(X, y)": "PrivateClassifier",
    "cumae.PrivateClassifier(1.0).predict_proba(X)": "ndarray",
    "cumae.ActiveLearner(learner).select(X)": "ndarray",
    "cumae.ActiveLearner(learner).fit(X, y)": "ActiveLearner",
}

# Decorators of Python and others that keep the types of what they decorate.
KEEPING = {
    "abstractmethod",
    "app.callback",
    "cached_property",
    "classmethod",
    "contextlib.contextmanager",
    "contextmanager",
    "dataclass",
    "functools.cached_property",
    "functools.wraps",
    "np.errstate",
    "numba.njit",
    "overload",
    "property",
    "staticmethod",
}

Reports: TypeAlias = dict[tuple[str, int], str]  # of mypy, by file and line


class Named(NamedTuple):
    """A public function, method or class, and where its parameters may be documented."""

    name: str
    signature: inspect.Signature
    docstrings: list[str]


EXPORTED: dict[str, Any] = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (cumae, cumae.concepts)
    for name in module.__all__
}
FUNCTIONS = {name: one for name, one in EXPORTED.items() if inspect.isfunction(one)}
# Without errors, whose arguments are a message.
CLASSES: dict[str, type] = {
    name: one
    for name, one in EXPORTED.items()
    if inspect.isclass(one) and not issubclass(one, BaseException)
}


def public_methods(kind: type) -> Iterator[str]:
    """Yield the names of public methods that we wrote, those of our base classes included."""
    for name in dir(kind):
        if name.startswith("_") or isinstance(inspect.getattr_static(kind, name), property):
            continue
        method = getattr(kind, name)
        if inspect.isroutine(method) and _is_ours(method):
            yield name


def _is_ours(thing: Any) -> bool:
    return str(getattr(thing, "__module__", None)).startswith("cumae.")


# --- Type checkers ---


@functools.cache
def _calls_of_all() -> list[str]:
    """Return lines with a call of every public method, by a parameter that it does not have."""
    lines = ["import cumae", "import cumae.concepts"]
    for place, (name, kind) in enumerate(CLASSES.items()):
        lines.append(f"def check_{place}(one: {name}) -> None:")
        if not inspect.isabstract(kind):
            lines.append(f"    {name}(nonsense=1)")
        lines += [f"    one.{method}(nonsense=1)" for method in public_methods(kind)]
        lines += [f"    reveal_type({name}.{method})" for method in public_methods(kind)]
        lines.append("    return")
    return lines


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Reports:
    """Return what mypy says about all calls, with the configuration of this repository."""
    folder = tmp_path_factory.mktemp("snippets")
    revealed = "\n".join(f"reveal_type({one})" for one in RESULTS)
    snippets = {
        "right": RIGHT,
        "wrong": RIGHT + WRONG,
        "results": f"{RIGHT}\n{revealed}\n",
        "everything": "\n".join(_calls_of_all()) + "\n",
    }
    for name, text in snippets.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    assert request.config.cache is not None
    options = ["--follow-imports", "silent", "--no-pretty", "--no-error-summary"]
    cache = ["--cache-dir", str(request.config.cache.mkdir("mypy_of_signatures"))]
    files = [str(folder / f"{name}.py") for name in snippets]
    run = [sys.executable, "-m", "mypy", *options, *cache, *files]
    told = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert told.returncode in (0, 1), told.stdout + told.stderr
    found: Reports = defaultdict(str)
    for line in told.stdout.splitlines():
        match = re.fullmatch(r".*?(\w+)\.py:(\d+): (.*)", line)
        assert match is not None, line
        found[match[1], int(match[2])] += match[3] + "\n"
    return found


def line_of(text: str, line: str, after: int = 0) -> int:
    """Return the number of a line, from 1."""
    return text.splitlines().index(line, after) + 1


def test_right_calls_are_not_reported(reports: Reports) -> None:
    told = {line: report for (file, line), report in reports.items() if file == "right"}
    assert told == {}


@pytest.mark.parametrize("call", WRONG.strip().splitlines())
def test_wrong_calls_are_reported(reports: Reports, call: str) -> None:
    told = reports["wrong", line_of(RIGHT + WRONG, call)]
    assert "error: " in told
    assert "-defined]" not in told  # that would be a slip of this test
    for name in ("nonsense", "usres", "bogus", "epsilom"):
        if name in call:
            assert f'Unexpected keyword argument "{name}"' in told


def test_mypy_knows_what_was_meant(reports: Reports) -> None:
    told = reports["wrong", line_of(RIGHT + WRONG, "oracle.predict(X, usres=[1])")]
    assert 'did you mean "users"?' in told


@pytest.mark.parametrize(("call", "kind"), RESULTS.items())
def test_results_have_types(reports: Reports, call: str, kind: str) -> None:
    line = len(RIGHT.splitlines()) + 2 + list(RESULTS).index(call)
    (told,) = re.findall(r'Revealed type is "([\w.]+)', reports["results", line])
    assert told.rpartition(".")[2] == kind


@pytest.mark.parametrize("name", CLASSES)
def test_no_method_takes_everything(reports: Reports, name: str) -> None:
    lines = _calls_of_all()
    first = next(place for place, line in enumerate(lines) if f"(one: {name}) ->" in line)
    last = lines.index("    return", first)
    erased = []
    for place in range(first + 1, last):
        told = reports["everything", place + 1]
        wrong = "nonsense" in lines[place] and "error: " not in told
        revealed = re.search(r'Revealed type is "(.*)"', told)
        if wrong or (revealed and re.search(r"\*(\w+: )?Any|^Any$", revealed[1])):
            erased.append(lines[place].strip())
    assert erased == []


# --- Decorators ---


@functools.cache
def _trees() -> dict[str, ast.Module]:
    paths = sorted(SOURCE.rglob("*.py"))
    return {str(path): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def erasing_decorators(trees: dict[str, ast.Module]) -> list[str]:
    """Return the names of decorators after which a function takes anything, or returns anything.

    One of ours keeps types if it is written with type variables: neither what it takes nor what it
    returns is ``Any`` or a callable with parameters of any kind.
    """
    functions: dict[str, ast.FunctionDef] = {}
    used = set()
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                for decorator in node.decorator_list:
                    named = decorator.func if isinstance(decorator, ast.Call) else decorator
                    used.add(ast.unparse(named))
        functions |= {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    return sorted(name for name in used if _erases(name, functions))


def _erases(name: str, functions: dict[str, ast.FunctionDef]) -> bool:
    if name in KEEPING or name.endswith(".setter"):
        return False
    if name not in functions:
        return True
    node = functions[name]
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    annotations = [ast.unparse(one.annotation) for one in given if one.annotation]
    returned = "Any" if node.returns is None else ast.unparse(node.returns)
    return returned == "Any" or any("Callable[..." in one for one in [*annotations, returned])


def test_no_decorator_erases_a_type() -> None:
    assert erasing_decorators(_trees()) == []


def test_erasing_decorators_are_found() -> None:
    code = """
def bad(method: Callable[..., T]) -> Callable[..., T]: ...
def worse(name: str) -> Any: ...
def good(method: Callable[Given, T]) -> Callable[Given, T]: ...
def better(name: str) -> Callable[[Function], Function]: ...
@bad
@worse("a")
@good
@better("b")
@functools.lru_cache(maxsize=3)
@property
def used(): ...
"""
    assert erasing_decorators({"": ast.parse(code)}) == ["bad", "functools.lru_cache", "worse"]


# --- Documentation ---


def documented(docstring: str) -> list[str]:
    """Return the names in the Parameters section of a docstring."""
    section = r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n---|\Z)"
    match = re.search(section, inspect.cleandoc(docstring), re.MULTILINE | re.DOTALL)
    lines = match[1].splitlines() if match else []
    entries = [line.partition(" : ")[0] for line in lines if line and not line.startswith(" ")]
    return [name.strip().lstrip("*") for entry in entries for name in entry.split(",")]


def parameters(named: Named) -> list[str]:
    return [name for name in named.signature.parameters if name not in ("self", "cls")]


def documented_by(named: Named) -> list[str]:
    """Return the parameters that are documented; an override may leave that to its base class."""
    return next(filter(None, map(documented, named.docstrings)), [])


def named_in(name: str, kind: type) -> Iterator[Named]:
    """Yield a class with the parameters of its constructor, and its public methods."""
    yield Named(name, inspect.signature(kind), [kind.__doc__ or ""])
    for method in public_methods(kind):
        homes = [home for home in kind.__mro__ if method in vars(home)]
        docstrings = [getattr(home, method).__doc__ or "" for home in homes]
        yield Named(f"{name}.{method}", inspect.signature(getattr(kind, method)), docstrings)


@pytest.mark.parametrize("name", CLASSES)
def test_parameters_of_public_classes_are_documented(name: str) -> None:
    wrong = {
        named.name: (parameters(named), documented_by(named))
        for named in named_in(name, CLASSES[name])
        if sorted(parameters(named)) != sorted(documented_by(named))
    }
    assert wrong == {}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_parameters_of_public_functions_are_documented(name: str) -> None:
    function = FUNCTIONS[name]
    assert list(inspect.signature(function).parameters) == documented(function.__doc__ or "")


def everything() -> Iterator[Named]:
    """Yield all public functions and classes of the package with their public methods."""
    for info in pkgutil.walk_packages(cumae.__path__, "cumae."):
        if info.name == "cumae.__main__":
            continue
        module: Any = importlib.import_module(info.name)
        for name, one in vars(module).items():
            if name.startswith("_") or getattr(one, "__module__", None) != info.name:
                continue
            full = f"{info.name}.{name}"
            if inspect.isfunction(one):
                yield Named(full, inspect.signature(one), [one.__doc__ or ""])
            elif inspect.isclass(one) and not issubclass(one, BaseException):
                yield from named_in(full, one)


def test_documented_parameters_exist() -> None:
    wrong = {
        named.name: missing
        for named in everything()
        if (missing := set(documented_by(named)) - set(parameters(named)))
        # What refuses every call may be called with anything.
        and named.signature.return_annotation != "NoReturn"
    }
    assert wrong == {}


def test_what_is_not_honest_is_found() -> None:
    def function(one: int, two: int) -> None:
        """Do something.

        Parameters
        ----------
        one, three : int
            Numbers.
        *four : int
            More of them.

        Returns
        -------
        five : int
            No parameter.
        """

    named = Named("function", inspect.signature(function), ["", function.__doc__ or ""])
    assert documented_by(named) == ["one", "three", "four"]
    assert parameters(named) == ["one", "two"]
