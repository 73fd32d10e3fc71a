"""The demo's page in a real browser: no error, nothing from outside, readable for everybody."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

from tests.demonstrations import Demonstration

pytestmark = pytest.mark.debian("chromium")

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LOOKS = [("light", 1200), ("dark", 1200), ("light", 360), ("dark", 360)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = shutil.which("chromium")
    assert path is not None, "Debian's package chromium is not there"
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(params=LOOKS, ids=lambda look: f"{look[0]}-{look[1]}")
def page(
    browser: Any, demonstration: Demonstration, request: pytest.FixtureRequest
) -> Iterator[Page]:
    """Open the page; what goes wrong meanwhile fails the test."""
    scheme, width = request.param
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
    found = context.new_page()
    wrong: list[str] = []
    asked: list[str] = []
    found.on("console", lambda message: wrong.append(message.text))
    found.on("pageerror", lambda error: wrong.append(str(error)))
    found.on("request", lambda one: asked.append(one.url))
    address = (demonstration.folder / "index.html").as_uri()
    found.goto(address)
    yield found
    context.close()
    assert wrong == []
    assert [url for url in asked if not url.startswith("data:")] == [address]


def test_all_pictures_are_there_with_their_numbers_beside_them(page: Page) -> None:
    figures = page.locator("figure")
    assert figures.count() == 3
    for place in range(3):
        figure = figures.nth(place)
        box = figure.locator("svg").bounding_box()
        assert box is not None
        assert box["width"] > 250
        assert box["height"] > 150
        assert figure.locator("svg title").text_content()
        assert figure.locator("svg desc").text_content()
        assert figure.locator("svg polyline").count() >= 2
        assert figure.locator("tbody tr").count() >= 4


def test_nothing_is_cut_off_and_no_words_overlap(page: Page) -> None:
    """Every word of a picture lies inside of it, and beside the others."""
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    overlaps = page.evaluate(
        """() => [...document.querySelectorAll("svg")].flatMap(svg => {
          const edge = svg.getBoundingClientRect(), found = [];
          const boxes = [...svg.querySelectorAll("text")].map(
            one => [one.textContent, one.getBoundingClientRect()]);
          boxes.forEach(([text, a], i) => {
            if (a.left < edge.left - 1 || a.right > edge.right + 1) found.push(text);
            boxes.slice(i + 1).forEach(([other, b]) => {
              if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
                found.push(text + " / " + other);
            });
          });
          return found;
        })"""
    )
    assert overlaps == []


def test_it_is_accessible(page: Page) -> None:
    """By the rules of axe, among them contrast, names of pictures and heads of tables."""
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()


def test_the_promise_is_one_sentence(page: Page) -> None:
    promise = page.locator(".promise").text_content()
    assert promise is not None
    assert promise.count(". ") == 0
    assert "more than 2.72 times as likely" in promise
