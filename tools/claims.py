"""Tie every claim in the code to its proof and its tests.

A claim has an id. The code that it speaks about carries ``@claim("ID")``, ``proofs/ID.md`` states
and proves it, and at least one test carries ``@pytest.mark.claim("ID")``. Each proof lists the code
that it was read against, with a hash of that code, so that changed code asks for a second look. At
its end it lists the tests that support it::

    # ID: title
    Claim: One plain sentence that says what is promised.
    Status: proven
    Relation: replace one row
    Assumptions: none
    Code:
    - `cumae.module.name` sha256:0123456789abcdef
    ## Statement
    ## Proof
    ## Readings
    - 2026-11-19 (code 89abcdef): What was looked at.
    ## Tests
    - `tests/unit/test_module.py::test_name`

``check`` prints what does not fit together. ``look ID`` prints the code that changed since the
claim was last accepted, as a diff, beside the sentences of the proof that name it. ``accept ID
--read "line"`` prints the same, writes the hashes, and adds a line to the page with the date and
what was looked at::

    ## Readings
    - 2026-11-19 (code 89abcdef): Step 2 against `_cost`, which rounds upwards now as it did.

The digits stand for the list of code, so that a list which was written by hand or merged asks for
a reading as well. One call accepts one claim: proofs are read one by one. ``docs`` writes what
needs no reading: the lists of tests and the table of all claims, docs/claims.md. ``accept`` does
that, too.

The hash is taken over the syntax tree without docstrings: comments, layout, quotes, brackets,
marks of claims and the version of Python do not change it; an operator, a constant or a moved
statement does.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import hashlib
import re
import subprocess
import textwrap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FIELDS = ("Claim", "Status", "Relation", "Assumptions")
STATUSES = ("proven", "cited")
SECTIONS = ("Statement", "Proof")
CODE_LIST = re.compile(r"^Code:\n(?:- .*\n)*", re.MULTILINE)
CODE_ITEM = re.compile(r"- `([\w.]+)` sha256:([0-9a-f]{16})")
TEST_LIST = re.compile(r"\n*^## Tests\n(?:- .*\n)*", re.MULTILINE)
TEST_ITEM = re.compile(r"^- `(.+)`$", re.MULTILINE)
SENTENCE = re.compile(r"[A-Z`].*\.")
FENCED = re.compile(r"^```.*?^```\n", re.MULTILINE | re.DOTALL)
NO_PROSE = re.compile(
    r"\A.*?(?=^## )|^## (?:Readings|Tests)\n(?:- .*\n|  .*\n)*", re.MULTILINE | re.DOTALL
)
BREAK = re.compile(r"(?<=[.:;])\s+(?=[A-Z`*(0-9])|\n\s*\n|\n(?=[-#|]|\d+\. )")
READINGS = re.compile(r"^## Readings\n((?:[- ] .*\n)*)", re.MULTILINE)
READING = re.compile(r"- (\d{4}-\d\d-\d\d) \(code ([0-9a-f]{8})\): (.+)")
ACCEPT = "python tools/claims.py accept {} --read '...'"
READ_WORDS = 5  # a line of what was looked at has more words than "read again"

Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass
class Proof:
    """What a page in proofs/ says, and what is wrong with its form."""

    name: str
    title: str = ""
    fields: dict[str, str] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)
    tests: list[str] = field(default_factory=list)
    readings: list[tuple[str, str]] = field(default_factory=list)  # digits of the code, and a line
    problems: list[str] = field(default_factory=list)


# --- the code


def code_hash(node: ast.AST) -> str:
    """Return 16 hexadecimal digits that change when the meaning of the code may have changed."""
    return hashlib.sha256(_shape(node).encode()).hexdigest()[:16]


def _shape(value: object) -> str:
    # ast.dump is not used: what it prints depends on the version of Python.
    if isinstance(value, ast.JoinedStr):  # some versions put empty pieces into f-strings
        value.values = [part for part in value.values if getattr(part, "value", None) != ""]
    if isinstance(value, list):
        return "[" + ",".join(map(_shape, value)) + "]"
    if not isinstance(value, ast.AST):
        return ascii(value)
    parts = []
    for name, child in ast.iter_fields(value):
        content = _without_docstring(child) if name == "body" else child
        if name == "decorator_list":  # which claims it carries does not change what the code does
            content = [call for call in child if not _ids(call, "claim")]
        if content is not None and content != [] and name not in {"kind", "type_comment"}:
            parts.append(f"{name}={_shape(content)}")
    return f"{type(value).__name__}({','.join(parts)})"


def _without_docstring(body: object) -> object:
    match body:
        case [ast.Expr(value=ast.Constant(value=str())), *rest]:
            return rest
    return body


def marked_code(source_root: Path) -> dict[str, dict[str, str]]:
    """Return, for each claim id, the dotted names and hashes of the code marked with it."""
    claims: dict[str, dict[str, str]] = defaultdict(dict)
    for path in sorted(source_root.rglob("*.py")):
        parts = path.relative_to(source_root).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for name, node in _definitions(_parse(path)):
            for call in node.decorator_list:
                for claim in _ids(call, "claim"):
                    claims[claim][f"{module}.{name}"] = code_hash(node)
    return dict(claims)


def _definitions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Named]]:
    """Yield every function and class with its qualified name, nested ones included."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, Named):
            yield prefix + child.name, child
            inner = "." if isinstance(child, ast.ClassDef) else ".<locals>."
            yield from _definitions(child, prefix + child.name + inner)
        else:
            yield from _definitions(child, prefix)


def _ids(call: ast.AST, function: str) -> list[str]:
    """Return the ids if this is a call such as ``claim("A", "B")``, else nothing."""
    if not isinstance(call, ast.Call):
        return []
    called = ast.unparse(call.func)
    if called != function and not called.endswith("." + function):
        return []
    ids = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    if len(ids) != len(call.args) or not ids or call.keywords:
        raise ValueError(f"line {call.lineno}: write the ids of a claim as plain strings")
    return [str(name) for name in ids]


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


# --- the tests


def tests_of_claims(tests_root: Path) -> dict[str, list[str]]:
    """Return, for each claim id, the tests marked with it (by function, class or module)."""
    tests: dict[str, list[str]] = defaultdict(list)
    for path in sorted(tests_root.rglob("test_*.py")):
        place = path.relative_to(tests_root.parent).as_posix()
        tree = _parse(path)
        everywhere = [
            name
            for statement in tree.body
            if isinstance(statement, ast.Assign)
            and ast.unparse(statement.targets[0]) == "pytestmark"
            for name in _marks([statement.value])
        ]
        for test, names in _marked_tests(tree, everywhere):
            for name in dict.fromkeys(names):
                tests[name].append(f"{place}::{test}")
    return dict(tests)


def _marked_tests(
    scope: ast.Module | ast.ClassDef, inherited: list[str], prefix: str = ""
) -> Iterator[tuple[str, list[str]]]:
    for node in scope.body:
        if not isinstance(node, Named):
            continue
        names = inherited + _marks(node.decorator_list)
        if isinstance(node, ast.ClassDef):
            yield from _marked_tests(node, names, f"{prefix}{node.name}::")
        elif node.name.startswith("test"):
            yield prefix + node.name, names


def _marks(expressions: Sequence[ast.AST]) -> list[str]:
    inside = [node for expression in expressions for node in ast.walk(expression)]
    return [name for node in inside for name in _ids(node, "mark.claim")]


# --- the proofs


def read_proof(path: Path) -> Proof:
    """Read a page and note everything that is missing from its form."""
    text = path.read_text(encoding="utf-8")
    proof = Proof(path.stem)
    heading = re.match(rf"# {re.escape(path.stem)}: (.+)\n", text)
    if heading:
        proof.title = heading[1]
    else:
        proof.problems.append(f"the first line must be '# {path.stem}: title'")
    _read_fields(proof, text.split("\n## ")[0])
    _read_code(proof, text)
    _read_tests(proof, text)
    _read_readings(proof, text)
    for section in SECTIONS:
        if not re.search(rf"^## {section}\n+(?!#)\S", text, re.MULTILINE):
            proof.problems.append(f"no text under '## {section}'")
    return proof


def _read_fields(proof: Proof, head: str) -> None:
    for name in FIELDS:
        # A field may run over several lines; it ends where the next one begins.
        found = re.search(rf"^{name}: ((?:.|\n)+?)(?=\n\n|\n[A-Z]\w+:|\Z)", head, re.MULTILINE)
        if found:
            proof.fields[name] = " ".join(found[1].split())
        else:
            proof.problems.append(f"no line '{name}: ...'")
    if "Claim" in proof.fields and not SENTENCE.fullmatch(proof.fields["Claim"]):
        proof.problems.append("the claim must be a sentence, with a full stop at its end")
    if proof.fields.get("Status", STATUSES[0]) not in STATUSES:
        proof.problems.append(f"the status must be one of {', '.join(STATUSES)}")


def _read_code(proof: Proof, text: str) -> None:
    listed = CODE_LIST.search(text)
    if listed is None:
        proof.problems.append("no list 'Code:'")
        return
    for line in listed[0].splitlines()[1:]:
        item = CODE_ITEM.fullmatch(line)
        if item:
            proof.code[item[1]] = item[2]
        else:
            proof.problems.append(f"not readable as code and hash: {line}")


def _read_tests(proof: Proof, text: str) -> None:
    listed = TEST_LIST.search(text)
    if listed is None:
        proof.problems.append("no list '## Tests'")
        return
    proof.tests = TEST_ITEM.findall(listed[0])


def _read_readings(proof: Proof, text: str) -> None:
    listed = READINGS.search(text)
    lines = listed[1].replace("\n  ", " ").splitlines() if listed else []
    for line in lines:
        item = READING.fullmatch(line)
        if item:
            proof.readings.append((item[2], item[3]))
        else:
            proof.problems.append(f"not readable as date, code and what was looked at: {line}")
    if not proof.readings:
        proof.problems.append("no list '## Readings'")


def code_digits(code: dict[str, str]) -> str:
    """Return 8 hexadecimal digits that stand for a list of code and hashes."""
    listed = "\n".join(f"{item} {digest}" for item, digest in sorted(code.items()))
    return hashlib.sha256(listed.encode()).hexdigest()[:8]


def read_proofs(root: Path) -> dict[str, Proof]:
    return {path.stem: read_proof(path) for path in sorted((root / "proofs").glob("*.md"))}


# --- what does not fit together


def problems(root: Path = ROOT) -> list[str]:
    """Return everything that is wrong with the claims below ``root``, in plain sentences."""
    code = marked_code(root / "src")
    tests = tests_of_claims(root / "tests")
    proofs = read_proofs(root)
    found = []
    for name in sorted(code.keys() | tests.keys() | proofs.keys()):
        if name not in proofs:
            found.append(f"{name}: there is no proofs/{name}.md")
        if name not in code:
            found.append(f'{name}: no code carries @claim("{name}")')
        if name not in tests:
            found.append(f'{name}: no test carries @pytest.mark.claim("{name}")')
        if name in proofs:
            found += [f"{name}: proofs/{name}.md: {problem}" for problem in proofs[name].problems]
            found += _code_problems(proofs[name], code.get(name, {}))
            found += _test_problems(proofs[name], tests.get(name, []))
    page = root / "docs" / "claims.md"
    if not page.exists() or page.read_text(encoding="utf-8") != claims_page(root):
        found.append("docs/claims.md is stale: run `python tools/claims.py docs`")
    return found


def _code_problems(proof: Proof, code: dict[str, str]) -> list[str]:
    found = []
    for item in sorted(proof.code.keys() | code.keys()):
        if item not in proof.code:
            found.append(f"{proof.name}: {item} is marked, but the proof does not list it")
        elif item not in code:
            found.append(f"{proof.name}: the proof lists {item}, which is not marked")
        elif proof.code[item] != code[item]:
            found.append(
                f"{proof.name}: {item} has changed; read proofs/{proof.name}.md against it, then "
                f"run `{ACCEPT.format(proof.name)}`"
            )
    if not found and proof.readings and proof.readings[-1][0] != code_digits(proof.code):
        found.append(
            f"{proof.name}: the list of code is not the one of the last reading: it was merged or "
            f"written by hand; run `{ACCEPT.format(proof.name)}`"
        )
    return found


def _test_problems(proof: Proof, tests: list[str]) -> list[str]:
    hint = "run `python tools/claims.py docs`"
    missing, gone = set(tests) - set(proof.tests), set(proof.tests) - set(tests)
    found = [f"{proof.name}: the proof does not list {test}; {hint}" for test in sorted(missing)]
    found += [f"{proof.name}: the proof lists {test}, not marked; {hint}" for test in sorted(gone)]
    if not found and proof.tests != tests:
        found.append(f"{proof.name}: the proof lists its tests in another order; {hint}")
    return found


# --- what changed since a proof was accepted


def look(root: Path, name: str) -> str:
    """Return the code of a claim that changed since it was accepted, and what the proof says."""
    path, proof = _page(root, name)
    code = marked_code(root / "src").get(name, {})
    changed = [
        item
        for item in sorted(proof.code.keys() | code.keys())
        if proof.code.get(item) != code.get(item)
    ]
    parts = []
    for item in changed:
        parts.append(_diff(root, name, item, proof.code.get(item), now=item in code))
        named = _sentences(path.read_text(encoding="utf-8"), item)
        parts += [f"  proofs/{name}.md: {sentence}" for sentence in named]
        if not named:
            parts.append(f"  No sentence names it: read all of proofs/{name}.md.")
        parts.append("")
    return "\n".join(parts) or f"The code of {name} is as it was accepted.\n"


def _diff(root: Path, claim: str, item: str, accepted: str | None, now: bool) -> str:
    """Return the diff of one function or class since its hash was written into the page.

    ``accepted`` is the hash in the page, None if the page does not list the item. ``now`` is false
    if nothing is marked there any more.
    """
    if not now:
        return f"{item}: no longer marked"
    commit = _commit_of(root, claim, f"`{item}` sha256:{accepted}") if accepted else None
    before = _source(root, item, commit) if commit else []
    after = _source(root, item, None)
    if accepted and not before:
        head = f"{item}: no commit has the code that was accepted; this is all of it"
    elif not accepted:
        head = f"{item}: newly marked"
    else:
        head = f"{item}: changed since {commit}"
    lines = list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]
    if not lines:
        lines = ["(the lines are the same)"]
    return "\n".join([head, *("    " + line for line in lines)])


def _commit_of(root: Path, claim: str, line: str) -> str | None:
    """Return the newest commit that wrote this line into the page of the claim."""
    found = _git(root, "log", "-1", "--format=%h", f"-S{line}", "--", f"proofs/{claim}.md")
    return found.strip() or None if found is not None else None


def _source(root: Path, item: str, commit: str | None) -> list[str]:
    """Return the lines of a function or class, in the files or in a commit; none if it is gone."""
    parts = item.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        module, name = "src/" + "/".join(parts[:cut]), ".".join(parts[cut:])
        for path in (f"{module}.py", f"{module}/__init__.py"):
            text = _text(root, path, commit)
            for found, node in _definitions(ast.parse(text)) if text else ():
                if found == name:
                    first = min([node.lineno, *(call.lineno for call in node.decorator_list)])
                    return text.splitlines()[first - 1 : node.end_lineno]
    return []


def _text(root: Path, path: str, commit: str | None) -> str:
    if commit:
        return _git(root, "show", f"{commit}:{path}") or ""
    return (root / path).read_text(encoding="utf-8") if (root / path).exists() else ""


def _git(root: Path, *arguments: str) -> str | None:
    """Return what git prints, or None: there may be no git, no history, or no such file."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.decode() if done.returncode == 0 else None


def _sentences(page: str, item: str) -> list[str]:
    """Return the sentences of a proof's page that name this function or class.

    A name with an underscore or a capital is found anywhere, a plain word only between backticks.
    """
    text = NO_PROSE.sub("", FENCED.sub("\n\n", page))
    names = [part for part in item.split(".")[1:] if part != "<locals>"]
    names = [name for name in names if name.lower() != name] + names[-1:]
    marked = any(re.search("[_A-Z]", name) for name in names)
    patterns = [rf"`[^`]*\b{re.escape(name)}\b[^`]*`" for name in names]
    if marked:
        patterns += [rf"(?<!\w){re.escape(name)}\b" for name in names if re.search("[_A-Z]", name)]
    pattern = re.compile("|".join(patterns))
    found = [" ".join(part.split()) for part in BREAK.split(text)]
    return [part for part in found if pattern.search(part)]


# --- what is written


def accept(root: Path, name: str, read: str) -> None:
    """Write the current code of one claim into its proof, with a line of what was looked at."""
    path, proof = _page(root, name)
    read = " ".join(read.split())
    code = marked_code(root / "src").get(name, {})
    _check_reading(root, proof, code, read)
    items = [f"- `{item}` sha256:{digest}" for item, digest in sorted(code.items())]
    text = CODE_LIST.sub(
        lambda _: "\n".join(["Code:", *items]) + "\n", path.read_text(encoding="utf-8"), count=1
    )
    line = f"- {datetime.now(UTC).date()} (code {code_digits(code)}): {read}"
    line = "\n  ".join(textwrap.wrap(line, 98, break_long_words=False, break_on_hyphens=False))
    if not READINGS.search(text):
        text = TEST_LIST.sub("\n", text).rstrip("\n") + "\n\n## Readings\n"
    text = READINGS.sub(lambda found: found[0] + line + "\n", text)
    path.write_text(text, encoding="utf-8")
    write_docs(root)


def _page(root: Path, name: str) -> tuple[Path, Proof]:
    path = root / "proofs" / f"{name}.md"
    if not path.exists():
        raise FileNotFoundError(f"there is no proofs/{name}.md")
    if not CODE_LIST.search(path.read_text(encoding="utf-8")):
        raise ValueError(f"proofs/{name}.md has no list 'Code:'")
    return path, read_proof(path)


def _check_reading(root: Path, proof: Proof, code: dict[str, str], read: str) -> None:
    if proof.readings and proof.readings[-1][0] == code_digits(code) and proof.code == code:
        raise ValueError(
            f"the code of {proof.name} is as it was accepted; there is nothing to read"
        )
    if len(read.split()) < READ_WORDS:
        raise ValueError(
            "--read is a sentence about what you looked at: which step of the proof, against which "
            "change, and why it still holds"
        )
    for name, other in read_proofs(root).items():
        if any(read == line for _, line in other.readings):
            raise ValueError(f"proofs/{name}.md has the same line; each reading is about one proof")


def write_docs(root: Path = ROOT) -> None:
    """Write the list of tests at the end of each proof, and docs/claims.md."""
    tests = tests_of_claims(root / "tests")
    for path in sorted((root / "proofs").glob("*.md")):
        text = path.read_text(encoding="utf-8")
        items = [f"- `{test}`" for test in tests.get(path.stem, [])]
        proof = TEST_LIST.sub("\n", text).rstrip("\n")
        written = "\n".join([proof, "", "## Tests", *items]) + "\n"
        if written != text:
            path.write_text(written, encoding="utf-8")
    page = root / "docs" / "claims.md"
    page.parent.mkdir(exist_ok=True)
    page.write_text(claims_page(root), encoding="utf-8")


def claims_page(root: Path = ROOT) -> str:
    """Return docs/claims.md: one line for each proof."""
    lines = [
        "# Claims",
        "",
        "What cumae promises. Each id leads to a page with the exact statement, its proof, the",
        "code that it speaks about and the tests that support it.",
        "",
        "- The status is *proven* if the page has the whole proof, and *cited* if it names where",
        "  the proof stands.",
        "- The relation says which change of the data must stay hidden. Two data sets that differ",
        "  by such a change are called neighbours.",
        "",
        "`python tools/claims.py docs` writes this page; do not edit it.",
        "",
        "| id | claim | status | relation |",
        "| --- | --- | --- | --- |",
    ]
    for name, proof in read_proofs(root).items():
        cells = [
            f"[{name}](../proofs/{name}.md)",
            *(proof.fields.get(column, "") for column in ("Claim", "Status", "Relation")),
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Tie claims to their proofs and tests.")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("check", help="print what does not fit together")
    looking = commands.add_parser(
        "look", help="print what changed since a claim was accepted, and what its proof says of it"
    )
    looking.add_argument("id", help="the claim")
    accepting = commands.add_parser(
        "accept", help="one proof has been read against the code as it is now (see look)"
    )
    accepting.add_argument("id", help="the claim; one call accepts one")
    accepting.add_argument(
        "--read", required=True, metavar="LINE", help="what was looked at, and why it still holds"
    )
    commands.add_parser("docs", help="write docs/claims.md and the lists of tests")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except (FileNotFoundError, ValueError) as error:
        parser.error(str(error))


def _run(options: argparse.Namespace) -> int:
    if options.command in {"look", "accept"}:
        print(look(options.root, options.id))
    if options.command == "accept":
        accept(options.root, options.id, options.read)
    elif options.command == "docs":
        write_docs(options.root)
    found = problems(options.root) if options.command == "check" else []
    for problem in found:
        print(problem)
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
