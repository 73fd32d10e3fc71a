"""The site: built without a warning, nothing loaded from outside, links that lead somewhere."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from playwright.sync_api import sync_playwright

from tools.site import pictures, reference

ROOT = Path(__file__).parents[2]
INNER = (
    *("cumae.cli", "cumae.codec", "cumae.counting", "cumae.data", "cumae.engines"),
    "cumae.ensembles",
)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
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


def test_every_exported_name_has_a_page_with_an_example(site: Path) -> None:
    """The example is in the docstring, or on a page of docs: both are run by the tests."""
    names = reference.exported()
    listed = {(package, name) for package in reference.PACKAGES for name in _all_of(package)}
    assert {name for _, name in listed} == {one.name for one in names}
    for one in names:
        page = site / Path(one.page).with_suffix(".html")
        assert "&gt;&gt;&gt;" in page.read_text(encoding="utf-8"), one.address


def _all_of(package: str) -> list[str]:
    listed = importlib.import_module(package).__all__
    return [name for name in listed if not name.startswith("__")]


def test_every_package_with_public_names_is_in_the_reference() -> None:
    """Packages beside it are not for users; their names are imported from those that are."""
    there = {f"cumae.{one.parent.name}" for one in (ROOT / "src/cumae").glob("*/__init__.py")}
    assert there - set(reference.PACKAGES) == set(INNER)


def test_examples_by_page_are_about_names_that_lack_one() -> None:
    names = reference.exported()
    lacking = {one.address for one in names if "Examples" not in reference.sections(one.doc)}
    page = (ROOT / "docs/names_by_example.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## (cumae\S+)$", page, re.MULTILINE)
    assert set(heads) <= lacking


def test_pictures_are_those_of_the_script() -> None:
    for file, text in pictures.pictures().items():
        same = file.read_text(encoding="utf-8") == text
        assert same, f"{file.name} is stale: run python -m tools.site.pictures"


@pytest.mark.debian("chromium")
def test_search_works_in_a_page_that_was_opened_as_a_file(site: Path) -> None:
    """There is no server and no network: the browser asks for files alone."""
    asked: list[str] = []
    failed: list[str] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.goto((site / "index.html").as_uri())
        page.keyboard.press("/")
        page.keyboard.type("everlasting", delay=5)
        first = page.locator(".md-search-result__link").first
        first.wait_for(timeout=60_000)
        assert "everlasting" in first.inner_text().lower()
        first.click()
        page.wait_for_url("**/*.html*", timeout=60_000)
        browser.close()
    assert failed == []
    assert [url for url in asked if not url.startswith(("file:", "about:", "data:"))] == []


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
