"""Importing the package is quick, and its types are seen by type checkers."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import cumae

ROOT = Path(__file__).parents[2]
# The time of an import differs from machine to machine, what is loaded does not.
HEAVY = {"numba", "pandas", "pyarrow", "rich", "sklearn", "typer"}
HEAVY |= {"scipy.fft", "scipy.optimize", "scipy.special", "scipy.stats"}


def loaded_after(code: str) -> set[str]:
    run = [sys.executable, "-c", f"import sys\n{code}\nprint('\\n'.join(sys.modules))"]
    found = subprocess.run(run, check=True, capture_output=True, text=True, cwd=ROOT)
    return set(found.stdout.split())


def test_the_import_loads_nothing_heavy() -> None:
    assert loaded_after("import cumae").isdisjoint(HEAVY | {"numpy"})


def test_an_account_needs_no_more_than_numpy() -> None:
    loaded = loaded_after("from cumae import Budget, Guarantee\nBudget(1.0)")
    assert "numpy" in loaded
    assert loaded.isdisjoint(HEAVY)


SAVED = {
    "account": "from cumae.privacy import Budget\nit = Budget(1.0)",
    "learner": "from cumae.learners import PrivateBooster\n"
    "it = PrivateBooster(1.0, columns=[(0, 1)]).fit([[0], [1]] * 50, [0, 1] * 50)",
    "predictor": "from cumae.predictors import QueryRelease\n"
    "it = QueryRelease(max_queries=5, epsilon=2.0).fit([[0], [1]] * 500, [0, 1] * 500)",
}


@pytest.mark.parametrize("kind", SAVED)
def test_whatever_is_imported_can_be_saved(kind: str, tmp_path: Path) -> None:
    """The store is found when it is needed, and not loaded before."""
    path = tmp_path / "oracle.db"
    before = "assert not [name for name in sys.modules if name.startswith('cumae.store')]"
    assert "cumae.store" in loaded_after(f"{SAVED[kind]}\n{before}\nit.save_to({str(path)!r})")
    cumae.open(path)


@pytest.mark.parametrize("name", cumae.__all__)
def test_every_name_can_be_imported(name: str) -> None:
    assert getattr(cumae, name) is not None


def test_unknown_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        cumae.Nonsense  # type: ignore[attr-defined]  # noqa: B018
    assert dir(cumae) == sorted(cumae.__all__)


def test_type_checkers_see_what_is_imported_later() -> None:
    """The names that they read are those that are imported, from the same modules."""
    tree = ast.parse(Path(str(cumae.__file__)).read_text(encoding="utf-8"))
    (guarded,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        str(node.module): tuple(alias.name for alias in node.names)
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
    }
    assert seen == cumae._HOMES


SNIPPET = """\
import cumae
from cumae import Budget, EverlastingPredictor, PrivateBooster

reveal_type(PrivateBooster(epsilon=1.0).fit([[0.0]], [0]))
reveal_type(Budget(1.0).remaining)
reveal_type(cumae.EverlastingPredictor)
Budget("much")
PrivateBooster(epsilom=1.0)
cumae.Nonsense
"""


def test_mypy_sees_types_and_finds_mistakes(tmp_path: Path) -> None:
    file = tmp_path / "snippet.py"
    file.write_text(SNIPPET, encoding="utf-8")
    run = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), str(file)]
    found = subprocess.run(run, check=False, capture_output=True, text=True, cwd=ROOT)
    said = found.stdout + found.stderr
    assert found.returncode == 1, said
    for wanted in (
        'snippet.py:4: note: Revealed type is "cumae.learners.boosting.PrivateBooster"',
        'snippet.py:5: note: Revealed type is "tuple[float, float]"',
        "snippet.py:6: note: Revealed type is",
        'snippet.py:7: error: Argument 1 to "Budget" has incompatible type "str"',
        'snippet.py:8: error: Unexpected keyword argument "epsilom"',
        'snippet.py:9: error: Module has no attribute "Nonsense"',
    ):
        assert wanted in said
    assert said.count("error:") == 3, said
