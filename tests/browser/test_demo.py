"""A short run of the demo: what it says, what it leaves, and its page in a real browser."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright
from typer.testing import CliRunner

import cumae
from cumae import EverlastingPredictor, PrivateClassifier
from cumae.cli import app
from cumae.cli.app import ExitCode

PAGE = Path(__file__).parents[2] / "docs" / "demo.md"
NEEDS_A_BROWSER = pytest.mark.debian("chromium")
# A quarter of the survey, and two phases: the same way, in a third of the time.
SHORT = ("--rows", "60000", "--questions", "20000", "--seconds", "1")

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


@dataclass(frozen=True)
class Demonstration:
    """What the demo printed, and the folder with its page."""

    said: str
    folder: Path


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> Demonstration:
    folder = tmp_path_factory.mktemp("demo")
    result = CliRunner().invoke(app, ["demo", *SHORT, "--output", str(folder)])
    assert result.exit_code == ExitCode.OK, result.output
    return Demonstration(result.stdout, folder)


def test_the_demo_publishes_a_model_and_answers_through_several_phases(
    demonstration: Demonstration,
) -> None:
    said = " ".join(demonstration.said.split())
    found = re.search(
        r"other people: ([\d.]+)%\. Always saying no: ([\d.]+)% "
        r"Gradient boosting without privacy: ([\d.]+)%",
        said,
    )
    assert found is not None
    private, guessing, best = map(float, found.groups())
    assert 56 < guessing < 59
    assert private > 71.5
    assert abs(private - best) < 1.5
    model, oracle = re.findall(r"Promise: (.*? for ever)\.", said)
    for promise in (model, oracle):
        epsilon, delta = re.findall(r"epsilon = ([\d.]+), delta = ([\de.-]+)", promise)[0]
        assert 0.8 < float(epsilon) <= 1
        assert float(delta) <= 1e-6
    assert "for one training row. It covers the published model" in model
    assert "for one training row or one query. It covers all answers" in oracle
    answered = re.search(r"Accuracy of 20,000 answers, up to phase (\d): ([\d.]+)%", said)
    assert answered is not None
    assert int(answered[1]) >= 2
    assert float(answered[2]) > 70
    assert max(map(len, demonstration.said.splitlines())) <= 100


def test_the_first_process_was_killed_and_another_one_went_on(demonstration: Demonstration) -> None:
    """What was charged is at most what the mark is ahead: 1/256 of a phase."""
    killed = re.search(r"killed after ([\d,]+) answers", demonstration.said)
    assert killed is not None
    assert 12_000 <= int(killed[1].replace(",", "")) < 20_000
    oracle = cumae.open(demonstration.folder / "oracle.db")
    try:
        assert isinstance(oracle, EverlastingPredictor)
        assert 20_000 <= oracle.answered_ < 21_500
        assert oracle.guarantee_.within(1.0, 1e-6)
    finally:
        oracle.close()


def test_attacks_say_what_they_could_have_proven_and_are_tried_on_a_planted_bug(
    demonstration: Demonstration,
) -> None:
    said = " ".join(demonstration.said.split("3. An attacker")[1].split())
    said = said.split("4. Both on a server")[0]
    lines = re.findall(
        r"claimed ([\d.]+), proven ([\d.]+) \(([\d,]+) runs could prove ([\d.]+)\)", said
    )
    assert len(lines) == 8  # of model and oracle, at two claims, and of planted bugs
    assert said.count("The same with half the noise, planted: ") == 4
    assert all(float(found) <= float(most) for _, found, _, most in lines)
    assert "BROKEN" not in said


def test_the_published_model_is_a_file_of_its_own(demonstration: Demonstration) -> None:
    model = PrivateClassifier.load(demonstration.folder / "model.json")
    assert model.guarantee_.within(1.0, 1e-6)
    text = (demonstration.folder / "model.json").read_text(encoding="utf-8")
    assert json.loads(text)


def test_the_docs_show_what_is_printed(demonstration: Demonstration) -> None:
    """Figures differ from run to run, and so may the route that is planned."""
    shown = PAGE.read_text(encoding="utf-8").split("prints:\n\n```text\n")[1].split("```")[0]
    assert _without_figures(shown) == _without_figures(demonstration.said)


def _without_figures(text: str) -> str:
    flat = re.sub(r"seconds: \S+", "seconds: page", " ".join(text.split()))
    flat = re.sub(r"[\d][\d.,]*", "#", flat)
    flat = re.sub(r": (not broken|cannot tell|caught|not caught)\.", ": verdict.", flat)
    flat = re.sub(r"Plan: .*? Promise:", "Plan: Promise:", flat)
    return re.sub(r"(Phase #: # models vote, and noise is added. )+", "Phases. ", flat)


def test_at_the_end_both_are_served_and_asked_and_the_pages_are_there(
    demonstration: Demonstration,
) -> None:
    said = " ".join(demonstration.said.split())
    model, oracle = re.findall(r"A client asks the \w+ about 10 people: ((?:[01] ){10})", said)
    assert sum(a == b for a, b in zip(model.split(), oracle.split(), strict=True)) >= 6
    assert "7 pages were loaded" in said
    assert said.endswith("The server has ended, and the oracle is closed.")


def test_a_second_demo_serves_what_is_there(demonstration: Demonstration) -> None:
    page = demonstration.folder / "index.html"
    written = page.stat().st_mtime_ns
    result = CliRunner().invoke(
        app, ["demo", *SHORT, "--no-serve", "--output", str(demonstration.folder)]
    )
    assert result.exit_code == ExitCode.OK, result.output
    said = " ".join(result.stdout.split())
    assert "The model and the oracle of an earlier demo are in" in said
    assert "7 pages were loaded" in said
    assert page.stat().st_mtime_ns == written


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


@NEEDS_A_BROWSER
def test_all_pictures_are_there_with_their_numbers_beside_them(page: Page) -> None:
    figures = page.locator("figure")
    assert figures.count() == 6  # three of them of columns
    for place in range(6):
        figure = figures.nth(place)
        box = figure.locator("svg").bounding_box()
        assert box is not None
        assert box["width"] > 250
        assert box["height"] > 150
        assert figure.locator("svg title").text_content()
        assert figure.locator("svg desc").text_content()
        assert figure.locator("svg .line").count() >= 1
        assert figure.locator("tbody tr").count() >= 2


@NEEDS_A_BROWSER
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


@NEEDS_A_BROWSER
def test_it_is_accessible(page: Page) -> None:
    """By the rules of axe, among them contrast, names of pictures and heads of tables."""
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()


@NEEDS_A_BROWSER
def test_the_promise_is_one_sentence(page: Page) -> None:
    promise = page.locator(".promise").text_content()
    assert promise is not None
    assert promise.count(". ") == 0
    assert "more than 2.72 times as likely" in promise
