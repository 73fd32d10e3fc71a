"""The site: built without a warning, nothing loaded from outside, links that lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

ROOT = Path(__file__).parents[2]
KINDS = ["Tutorials", "How-to guides", "Explanations", "Reference"]
LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
QUIET_LINKS = {"canonical", "next", "prev"}  # nothing is loaded from these


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site, with warnings as errors."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


class Reader(HTMLParser):
    """What a page links to, what it loads, and which anchors it has."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in LOADS and given.get("rel") not in QUIET_LINKS:
            self.loaded.append(given.get(LOADS[tag], ""))
        assert "srcset" not in given


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Reader]:
    return {page: Reader(page) for page in sorted(site.rglob("*.html"))}


def test_nothing_is_loaded_from_outside(site: Path, pages: dict[Path, Reader]) -> None:
    for page, read in pages.items():
        assert [one for one in read.loaded if re.match(r"(https?:)?//", one)] == [], page
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//[^)]*", text) == [], style
    assert not list(site.rglob("*.woff*"))


def test_every_link_and_anchor_leads_somewhere(site: Path, pages: dict[Path, Reader]) -> None:
    for page, read in pages.items():
        for link in [*read.links, *read.loaded]:
            path, _, anchor = unquote(link).partition("#")
            if re.match(r"[a-z]+:|$", path) and not anchor:
                continue
            if page.name == "404.html":  # its links begin at the root of the server
                path = path.lstrip("/")
            if re.match(r"[a-z]+:", path):
                continue
            there = (page.parent / path.partition("?")[0]).resolve() if path else page
            assert there.exists(), (page.relative_to(site), link)
            if anchor and there in pages:
                assert anchor in pages[there].anchors, (page.relative_to(site), link)


def test_each_page_of_docs_is_of_one_kind() -> None:
    """The parts of the list of pages are the four kinds, and no page stands in two of them."""

    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = yaml.safe_load(text[text.index("\nnav:") :])["nav"]

    def inside(part: Any) -> list[str]:
        if isinstance(part, str):
            return [part]
        several = part.values() if isinstance(part, dict) else part
        return [page for one in several for page in inside(one)]

    parts = {name: inside(part) for one in listed for name, part in one.items()}
    assert list(parts) == ["cumae", *KINDS]
    found = [page for part in parts.values() for page in part]
    assert len(found) == len(set(found))
    there = {one.relative_to(ROOT / "docs").as_posix() for one in (ROOT / "docs").rglob("*.md")}
    assert there <= set(found)
