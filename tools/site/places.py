"""Places of the repository's files in the site, and links between pages that follow them."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROOFS, PROJECT = "reference/proofs", "project"
TOP = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")
FOLDERS = {"proofs": "claims.md", "examples": "examples/README.md"}
# The README is the door of the repository, as index.md is that of the site.
README = {"README.md": "explanations/epsilon.md"}
COPIED = ("benchmarks/results/", "deploy/", "examples/", "proofs/")
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")


def place(path: str) -> str | None:
    """Return the place in the site of a file of the repository; None if it has none."""
    if path in README or path in FOLDERS:
        return (README | FOLDERS)[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.startswith("proofs/"):
        return f"{PROOFS}/{path.removeprefix('proofs/')}"
    if path in TOP or path in ("LICENSE", "CITATION.cff"):
        return f"{PROJECT}/{path}"
    return path if path.startswith(COPIED) else None


def place_of(path: str) -> str:
    """Return the place in the site of a file of the repository.

    Raises
    ------
    ValueError
        If it has none.
    """
    found = place(path)
    if found is None:
        raise ValueError(f"{path} has no place in the site.")
    return found


def _text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def pages() -> dict[str, str]:
    """Return the files outside of docs that are pages, and their text."""
    found = [name for name in TOP if (ROOT / name).exists()]
    found += sorted(f"proofs/{one.name}" for one in (ROOT / "proofs").glob("*.md"))
    found += ["examples/README.md", "benchmarks/results/audit.md"]
    return {path: _text(path) for path in found}


def linked_files(texts: dict[str, str]) -> set[str]:
    """Return the files outside of docs, other than pages, that pages link to."""
    found = set()
    for path, text in texts.items():
        for match in LINK.finditer(text):
            file = _target(path, match["target"])[0]
            if file and not file.startswith("docs/") and not file.endswith(".md"):
                found.add(file)
    return {file for file in found if (ROOT / file).is_file()}


def _target(page: str, link: str) -> tuple[str, str]:
    """Return the file in the repository that a page links to, or "", and the anchor."""
    if re.match(r"[a-z]+:|#|/", link):
        return "", ""
    file, _, anchor = link.partition("#")
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), file)), anchor


def moved(text: str, page: str) -> str:
    """Return a page whose links lead to the places of their files in the site.

    Parameters
    ----------
    text : str
        The page as Markdown.
    page : str
        Its path in the repository.
    """
    here = place(page) or page

    def led(match: re.Match[str]) -> str:
        file, anchor = _target(page, match["target"])
        if not file:
            return match[0]
        address = posixpath.relpath(place_of(file), posixpath.dirname(here) or ".")
        return f"]({address}{'#' if anchor else ''}{anchor})"

    return LINK.sub(led, text)
