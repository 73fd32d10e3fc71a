"""Every claim has code, a proof that was read against it, and a test; and this check bites."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import cumae
from cumae.claims import claims_of
from cumae.extras import LaterModule
from tools import claims

CODE = '''
from cumae.claims import claim


@claim("SUM")
def add(a, b):
    """Add."""
    return a + b  # the claim


class Box:
    @property
    @claim("SUM")
    def size(self):
        if self.full:
            print("full")
        return 1
'''

PROOF = """# SUM: sums are sums
Claim: A sum is a sum.
Status: proven
Relation: replace one row
Assumptions: a machine
  that adds
Code:
## Statement
It adds. `Box.size` is one.

## Proof
It does: `add` adds, as
machines do. An addition has no end.
"""
FIRST = "Both sentences of the proof against both functions."
AGAIN = "The proof of the sum, against the new operator in `add`."

TEST = """
import pytest

@pytest.mark.claim("SUM")
def test_sum():
    pass
"""


# --- this repository


def test_this_repository_has_no_problems() -> None:
    assert claims.problems() == []


# Classes that are marked whole; no further one above 220 lines may be. Mark functions instead.
WHOLE = {
    "ActiveLearner",
    "AgnosticQueryRelease",
    "Budget",
    "Counter",
    "DurableJournal",
    "EverlastingPredictor",
    "EverlastingRules",
    "EverlastingState",
    "GenericBBL",
    "IterLabelBoost",
    "PostgresHome",
    "Prior",
    "PrivateBooster",
    "QueryRelease",
    "Release",
    "SqliteFile",
    "Totals",
    "Trees",
    "UniversalQueryRelease",
    "Writer",
}


def marked_whole(code: str, lines: int) -> set[str]:
    """Return the names of the classes of a file that carry a claim and have more lines."""
    return {
        node.name
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ClassDef)
        and any(
            isinstance(one, ast.Call) and ast.unparse(one.func) == "claim"
            for one in node.decorator_list
        )
        and (node.end_lineno or 0) - node.lineno > lines
    }


def test_no_further_large_class_is_marked_whole() -> None:
    """Each change of any method of such a class asks for a reading of its proofs."""
    files = sorted(Path(cumae.__file__).parent.rglob("*.py"))
    found = set().union(*(marked_whole(path.read_text(encoding="utf-8"), 220) for path in files))
    assert found <= WHOLE
    assert marked_whole('@claim("SUM")\nclass Box:\n    size = 1\n    full = 2\n', 1) == {"Box"}
    assert marked_whole('class Box:\n    @claim("SUM")\n    def size(self): ...\n', 1) == set()


def test_the_marks_in_the_text_are_those_at_run_time() -> None:
    """The tool reads the source; Python, importing it, must have seen the same marks."""
    imported = defaultdict(set)
    for module in pkgutil.walk_packages(cumae.__path__, "cumae."):
        for name, target in _owned(importlib.import_module(module.name)):
            for claim in claims_of(target):
                imported[claim].add(name)
    marked = claims.marked_code(claims.ROOT / "src")
    assert dict(imported) == {name: set(code) for name, code in marked.items()}


def _owned(module: object) -> Iterator[tuple[str, object]]:
    """Yield the functions, classes and methods that the module defines, with their names."""
    todo = list(vars(module).values())
    while todo:
        target = todo.pop()
        if isinstance(target, LaterModule):  # its package may not be here
            continue
        for wrapped in ("fget", "__func__", "func"):  # property, class and static method, cached
            target = getattr(target, wrapped, None) or target
        if getattr(target, "__module__", None) != getattr(module, "__name__", ""):
            continue
        if inspect.isclass(target):
            todo += vars(target).values()
        if hasattr(target, "__qualname__") and hasattr(target, "__dict__"):
            yield f"{target.__module__}.{target.__qualname__}", target


# --- a small repository, to see the check bite


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository whose one claim is in order."""
    write(tmp_path / "src/cumae/sums.py", CODE)
    write(tmp_path / "proofs/SUM.md", PROOF)
    write(tmp_path / "tests/unit/test_sums.py", TEST)
    claims.accept(tmp_path, "SUM", FIRST)
    assert claims.problems(tmp_path) == []
    return tmp_path


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_mark_without_proof_is_a_problem(root: Path) -> None:
    edit(root / "src/cumae/sums.py", '@claim("SUM")\ndef', '@claim("SUM", "NEW")\ndef')
    assert "NEW: there is no proofs/NEW.md" in claims.problems(root)


def test_a_mark_on_a_nested_function_counts(root: Path) -> None:
    write(root / "src/cumae/nested.py", 'def outer():\n    @claim("NEW")\n    def inner(): ...\n')
    assert claims.marked_code(root / "src")["NEW"].keys() == {"cumae.nested.outer.<locals>.inner"}


def test_a_proof_without_mark_is_a_problem(root: Path) -> None:
    write(root / "proofs/OLD.md", PROOF.replace("SUM", "OLD"))
    assert 'OLD: no code carries @claim("OLD")' in claims.problems(root)


def test_a_claim_without_test_is_a_problem(root: Path) -> None:
    edit(root / "tests/unit/test_sums.py", '@pytest.mark.claim("SUM")\n', "")
    assert 'SUM: no test carries @pytest.mark.claim("SUM")' in claims.problems(root)


def test_a_mark_on_something_that_is_no_test_does_not_count(root: Path) -> None:
    edit(root / "tests/unit/test_sums.py", "test_sum", "helper")
    assert 'SUM: no test carries @pytest.mark.claim("SUM")' in claims.problems(root)


def test_the_list_of_tests_is_exact(root: Path) -> None:
    place, hint = "tests/unit/test_sums.py", "run `python tools/claims.py docs`"
    test = f"{place}::test_sum"
    page = (root / "proofs/SUM.md").read_text(encoding="utf-8")
    assert page.endswith(f"{FIRST}\n\n## Tests\n- `{test}`\n")
    edit(root / "tests/unit/test_sums.py", "test_sum", "test_add")
    assert claims.problems(root) == [
        f"SUM: the proof does not list {place}::test_add; {hint}",
        f"SUM: the proof lists {test}, not marked; {hint}",
    ]
    claims.write_docs(root)
    assert claims.problems(root) == []


def test_the_list_of_tests_has_one_order(root: Path) -> None:
    edit(root / "tests/unit/test_sums.py", TEST, TEST + TEST.replace("test_sum", "test_add"))
    claims.write_docs(root)
    tests = claims.read_proof(root / "proofs/SUM.md").tests
    first, second = (f"- `{test}`\n" for test in tests)
    edit(root / "proofs/SUM.md", first + second, second + first)
    (problem,) = claims.problems(root)
    assert problem.startswith("SUM: the proof lists its tests in another order")


def test_text_after_the_list_of_tests_is_kept(root: Path) -> None:
    proof = root / "proofs/SUM.md"
    write(proof, proof.read_text(encoding="utf-8") + "\n## Notes\nMore.\n")
    claims.write_docs(root)
    assert "## Notes\nMore.\n\n## Tests\n- `" in proof.read_text(encoding="utf-8")
    assert claims.problems(root) == []


def test_hashes_are_written_by_accept_only(root: Path) -> None:
    edit(root / "src/cumae/sums.py", "a + b", "a - b")
    claims.write_docs(root)
    (problem,) = claims.problems(root)
    assert "has changed; read proofs/SUM.md" in problem


def test_a_test_of_an_unknown_claim_is_a_problem(root: Path) -> None:
    edit(root / "tests/unit/test_sums.py", '"SUM"', '"SUM", "TYPO"')
    assert "TYPO: there is no proofs/TYPO.md" in claims.problems(root)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a + b", "a - b"),
        ("return 1", "return 2"),
        ("        return 1", "            return 1"),
        ("add(a, b)", "add(a, b=0)"),
        ("return a + b", "a + b"),
        ("    @property\n", ""),
    ],
)
def test_changed_code_asks_for_a_look_at_its_proof(root: Path, old: str, new: str) -> None:
    edit(root / "src/cumae/sums.py", old, new)
    (problem,) = claims.problems(root)
    assert "has changed; read proofs/SUM.md" in problem
    claims.accept(root, "SUM", AGAIN)
    assert claims.problems(root) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # the claim", ""),
        ('"""Add."""', '"""Add two numbers."""'),
        ('    """Add."""\n', ""),
        ("a + b", "(\n        a\n        + b\n    )"),
        ("add(a, b)", "add(\n    a,\n    b,\n)"),
        ('"full"', "'full'"),
        ('@claim("SUM")\ndef', "@cumae.claims.claim(\n    'SUM',\n)\ndef"),
    ],
)
def test_mere_layout_does_not(root: Path, old: str, new: str) -> None:
    edit(root / "src/cumae/sums.py", old, new)
    assert claims.problems(root) == []


def test_the_list_of_code_is_exact(root: Path) -> None:
    edit(root / "src/cumae/sums.py", '    @property\n    @claim("SUM")\n', "    @property\n")
    assert claims.problems(root) == [
        "SUM: the proof lists cumae.sums.Box.size, which is not marked"
    ]
    claims.accept(root, "SUM", AGAIN)
    write(root / "src/cumae/__init__.py", '@claim("SUM")\nclass New: ...\n')
    assert claims.problems(root) == ["SUM: cumae.New is marked, but the proof does not list it"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("# SUM:", "# SAM:", "first line"),
        ("Claim: A sum is a sum.\n", "", "no line 'Claim"),
        ("A sum is a sum.", "sums", "the claim must be a sentence"),
        ("Status: proven\n", "", "no line 'Status"),
        ("Status: proven", "Status: hoped", "status must be one of proven, cited"),
        ("Relation: replace one row\n", "", "no line 'Relation"),
        ("Assumptions: a machine\n  that adds\n", "", "no line 'Assumptions"),
        ("Code:", "Codes:", "no list 'Code:'"),
        ("sums.add` sha256:", "sums.add` md5:", "not readable"),
        ("It adds. `Box.size` is one.\n", "", "no text under '## Statement'"),
        (PROOF[PROOF.index("It does") :], "", "no text under '## Proof'"),
        ("## Readings", "## Reading", "no list '## Readings'"),
        ("(code ", "(", "not readable as date, code and what"),
        ("## Tests", "## Test", "no list '## Tests'"),
    ],
)
def test_a_page_of_the_wrong_form_is_a_problem(
    root: Path, old: str, new: str, problem: str
) -> None:
    edit(root / "proofs/SUM.md", old, new)
    assert any(problem in line for line in claims.problems(root))


def test_the_table_is_generated_and_must_be_fresh(root: Path) -> None:
    page = root / "docs/claims.md"
    row = page.read_text(encoding="utf-8").splitlines()[-1]
    assert row == ("| [SUM](../proofs/SUM.md) | A sum is a sum. | proven | replace one row |")
    edit(page, "A sum is a sum", "A sum is a product")
    assert claims.problems(root) == ["docs/claims.md is stale: run `python tools/claims.py docs`"]
    claims.write_docs(root)
    assert claims.problems(root) == []


def test_fields_may_run_over_lines(root: Path) -> None:
    assert claims.read_proof(root / "proofs/SUM.md").fields["Assumptions"] == "a machine that adds"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('@pytest.mark.claim("A", "SUM")\ndef test_x(): ...', "test_x"),
        ('@pytest.mark.claim("SUM")\nclass TestX:\n    def test_y(self): ...', "TestX::test_y"),
        ('pytestmark = [pytest.mark.claim("SUM")]\ndef test_x(): ...', "test_x"),
        (
            '@parametrize("a", [pytest.param(1, marks=mark.claim("SUM"))])\ndef test_x(a): ...',
            "test_x",
        ),
    ],
)
def test_marks_of_functions_classes_modules_and_parameters_are_found(
    tmp_path: Path, source: str, name: str
) -> None:
    write(tmp_path / "tests/test_it.py", source)
    assert claims.tests_of_claims(tmp_path / "tests")["SUM"] == [f"tests/test_it.py::{name}"]


def test_ids_must_be_plain_strings(root: Path) -> None:
    edit(root / "src/cumae/sums.py", '@claim("SUM")\ndef', "@claim(NAME)\ndef")
    with pytest.raises(ValueError, match="line 5: write the ids"):
        claims.problems(root)


def test_the_hash_is_the_same_on_every_python() -> None:
    """A fixed function has a fixed hash, whatever this Python's own dump of it looks like."""
    source = """
        @claim("A")
        def f(x: float, *rest: int, key: str = "é") -> str:
            with open(key) as file, lock:
                y = [i for i in rest if i > 0.1][::2] or None
            return f"{x:>{len(rest)}} {y!r}" + (lambda: b"")()
    """
    (function,) = ast.parse(textwrap.dedent(source)).body
    assert claims.code_hash(function) == "71cd9b88d4195cb6"


# --- readings


def test_a_reading_is_one_line_of_the_page_with_its_date(root: Path) -> None:
    edit(root / "src/cumae/sums.py", "a + b", "a - b")
    claims.accept(root, "SUM", f"  {AGAIN}\n ")
    page = (root / "proofs/SUM.md").read_text(encoding="utf-8")
    readings = page.split("## Readings\n")[1].split("\n\n")[0]
    assert re.fullmatch(
        rf"- \d{{4}}-\d\d-\d\d \(code \w{{8}}\): {re.escape(FIRST)}\n"
        rf"- \d{{4}}-\d\d-\d\d \(code \w{{8}}\): {re.escape(AGAIN)}",
        readings,
    )


def test_a_long_reading_is_wrapped_and_read_as_one_line(root: Path) -> None:
    edit(root / "src/cumae/sums.py", "a + b", "a - b")
    line = " ".join(["Step", "by", "step."] * 20)
    claims.accept(root, "SUM", line)
    page = root / "proofs/SUM.md"
    assert max(map(len, page.read_text(encoding="utf-8").splitlines())) <= 100
    assert claims.read_proof(page).readings[-1][1] == line


def test_hashes_that_were_written_by_hand_ask_for_a_reading(root: Path) -> None:
    edit(root / "src/cumae/sums.py", "a + b", "a - b")
    old = claims.read_proof(root / "proofs/SUM.md").code["cumae.sums.add"]
    new = claims.marked_code(root / "src")["SUM"]["cumae.sums.add"]
    edit(root / "proofs/SUM.md", old, new)
    (problem,) = claims.problems(root)
    assert "the list of code is not the one of the last reading" in problem


@pytest.mark.parametrize("read", ["", "read", "I read it again", " \n"])
def test_a_reading_says_what_was_looked_at(root: Path, read: str) -> None:
    edit(root / "src/cumae/sums.py", "a + b", "a - b")
    with pytest.raises(ValueError, match="a sentence about what you looked at"):
        claims.accept(root, "SUM", read)


def test_one_line_is_about_one_proof(root: Path) -> None:
    write(root / "proofs/OLD.md", PROOF.replace("SUM", "OLD"))
    write(root / "src/cumae/old.py", CODE.replace("SUM", "OLD"))
    with pytest.raises(ValueError, match=r"proofs/SUM\.md has the same line"):
        claims.accept(root, "OLD", FIRST)


def test_there_is_nothing_to_read_where_nothing_changed(root: Path) -> None:
    with pytest.raises(ValueError, match="is as it was accepted"):
        claims.accept(root, "SUM", AGAIN)


def test_a_look_shows_the_change_beside_the_sentences_that_name_it(root: Path) -> None:
    for command in (["init"], ["add", "."], ["commit", "-m", "first"]):
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        subprocess.run(["git", *identity, *command], cwd=root, check=True, capture_output=True)
    edit(root / "src/cumae/sums.py", "a + b", "a - b")
    edit(root / "src/cumae/sums.py", "return 1", "return 2")
    seen = claims.look(root, "SUM")
    assert re.search(r"cumae\.sums\.add: changed since \w{7}", seen)
    assert "    -    return a + b  # the claim\n    +    return a - b  # the claim\n" in seen
    assert "  proofs/SUM.md: `add` adds, as machines do.\n" in seen
    assert "  proofs/SUM.md: `Box.size` is one.\n" in seen
    assert "An addition has no end" not in seen


def test_a_look_without_history_shows_the_whole_function(root: Path) -> None:
    edit(root / "src/cumae/sums.py", "a + b", "a - b")
    seen = claims.look(root, "SUM")
    assert "no commit has the code that was accepted" in seen
    assert "    +def add(a, b):\n" in seen


def test_a_look_names_what_no_sentence_names(root: Path) -> None:
    edit(root / "proofs/SUM.md", "`add` adds", "it adds")
    edit(root / "src/cumae/sums.py", "a + b", "a - b")
    assert "No sentence names it: read all of proofs/SUM.md." in claims.look(root, "SUM")


# --- the commands


def run(root: Path, *arguments: str) -> int:
    return claims.main(["--root", str(root), *arguments])


def test_the_commands(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(root, "check") == 0
    edit(root / "src/cumae/sums.py", "a + b", "a - b")
    assert run(root, "check") == 1
    assert "cumae.sums.add has changed" in capsys.readouterr().out
    assert run(root, "look", "SUM") == 0
    assert "return a - b" in capsys.readouterr().out
    assert run(root, "accept", "SUM", "--read", AGAIN) == 0
    assert "return a - b" in capsys.readouterr().out
    edit(root / "proofs/SUM.md", "A sum is a sum.", "Sums are sums.")
    assert run(root, "check") == 1
    assert run(root, "docs") == 0
    assert run(root, "check") == 0


@pytest.mark.parametrize(
    "arguments",
    [["accept", "--read", AGAIN], ["accept", "SUM"], ["accept", "SUM", "SAM", "--read", AGAIN]],
)
def test_no_command_accepts_without_a_line_or_several_at_once(
    root: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    edit(root / "src/cumae/sums.py", "a + b", "a - b")
    with pytest.raises(SystemExit):
        run(root, *arguments)
    assert "error:" in capsys.readouterr().err
    assert len(claims.problems(root)) == 1


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda root: (root / "proofs/SUM.md").unlink(), FileNotFoundError),
        (lambda root: edit(root / "proofs/SUM.md", "Code:", "Codes:"), ValueError),
    ],
)
def test_accept_refuses_what_it_cannot_write(
    root: Path, spoil: Callable[[Path], None], error: type[Exception]
) -> None:
    spoil(root)
    with pytest.raises(error, match=r"proofs/SUM\.md"):
        claims.accept(root, "SUM", AGAIN)
