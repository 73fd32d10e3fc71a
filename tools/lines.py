"""Count the lines of code of a package, without blank lines, docstrings, comments and imports.

    python tools/lines.py [FOLDER] [--json FILE]

FOLDER is ``src/cumae`` if none is given. The lines of each package inside are those of all of its
modules, those of its own packages included. A statement counts with each line that it takes.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import tokenize
from collections import defaultdict
from pathlib import Path
from typing import TypeAlias

SOURCE = Path(__file__).resolve().parents[1] / "src" / "cumae"
NO_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

Span: TypeAlias = tuple[tuple[int, int], tuple[int, int]]  # line and column of both ends


def code_lines(text: str) -> set[int]:
    """Return the numbers of the lines of a module that hold code, from 1."""
    lines, left_out = text.splitlines(), _left_out(ast.parse(text))
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        skipped = any(start <= token.start < end for start, end in left_out)
        if token.type not in NO_CODE and not skipped:
            found.update(range(token.start[0], token.end[0] + 1))
    return {number for number in found if lines[number - 1].strip()}  # a text may have blank ones


def _left_out(tree: ast.Module) -> list[Span]:
    """Return where docstrings and imports stand."""
    nodes: list[ast.stmt] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            nodes.append(node)
        elif isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            nodes.append(node.body[0])
    return [
        ((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0))
        for node in nodes
    ]


def count(folder: Path) -> dict[str, int]:
    """Return the number of lines of code of a package, and of each package inside, by their names.

    Parameters
    ----------
    folder : Path
        Where the package stands.
    """
    found: dict[str, int] = defaultdict(int)
    for path in sorted(folder.rglob("*.py")):
        lines = len(code_lines(path.read_text(encoding="utf-8")))
        parts = path.relative_to(folder.parent).parts[:-1]
        for place in range(len(parts)):
            found[".".join(parts[: place + 1])] += lines
    return dict(sorted(found.items()))


def main() -> None:
    """Read the command line, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=SOURCE, metavar="FOLDER")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts as JSON, too")
    options = parser.parse_args()
    found = count(options.folder.resolve())
    for name, lines in found.items():
        depth = name.count(".")
        print(f"{'  ' * depth + name.rpartition('.')[2]:<30}{lines:>8,}")
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
