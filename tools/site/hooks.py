"""Hooks of the builder: generated pages, files from outside of docs, and links that follow them."""

from __future__ import annotations

from typing import Any

from mkdocs.structure.files import File, Files

from tools.site import interfaces, markdown, places, reference

# Newcomers search more often than readers of proofs.
BOOSTS = {
    "tutorials/": 4.0,
    "explanations/": 4.0,
    "how_to/": 3.0,
    "reference/proofs/": 0.3,
    "errata.md": 0.3,
    "theorems.md": 0.5,
    "benchmarks.md": 0.5,
    "project/": 0.5,
}
_SOURCES: dict[str, str] = {}  # the place of a page in the site, and its path in the repository


def on_files(files: Files, config: Any) -> Files:
    """Add what does not lie in docs."""
    texts = {f"docs/{one.src_uri}": one.content_string for one in files.documentation_pages()}
    outside = places.pages()
    for path, text in outside.items():
        there = places.place_of(path)
        _SOURCES[there] = path
        made = markdown.proof(text) if path.startswith("proofs/") else text
        files.append(File.generated(config, there, content=made))
    for path in sorted(places.linked_files(texts | outside)):
        there = places.place_of(path)
        files.append(File.generated(config, there, abs_src_path=str(places.ROOT / path)))
    pages = reference.generated()
    pages["reference/commands.md"] = interfaces.commands()
    pages["reference/server.md"] = interfaces.server()
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(text: str, page: Any, **_: Any) -> str:
    """Lead links to their places, and fit lists to the builder; rank pages for the search."""
    uri = page.file.src_uri
    boost = next((more for start, more in BOOSTS.items() if uri.startswith(start)), 1.0)
    page.meta.setdefault("search", {"boost": boost})
    if page.file.generated_by and uri not in _SOURCES:
        return text
    return markdown.fitted(places.moved(text, _SOURCES.get(uri, f"docs/{uri}")))
