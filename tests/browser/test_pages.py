"""The server's pages in a real browser: all of them, in several looks, and with keys alone.

One server and one browser serve all tests. Screenshots stay in ``.pytest_cache/d/screenshots``.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright
from typer.testing import CliRunner

import cumae
from cumae.cli import app
from cumae.serve.keys import KeyFile, new_key
from cumae.serve.settings import ModelSettings
from tests.browser.test_demo import FLAGS
from tests.oracles import everlasting
from tests.serve.served import InThread
from tests.serve.test_pages import columns, table

pytestmark = pytest.mark.debian("chromium")
DOCS = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")
LOOKS = [("light", 1200), ("dark", 1600), ("light", 390), ("dark", 390)]
PAGES = {
    "home": "/",
    "oracle": "/models/oracle",
    "model": "/models/model",
    "ask": "/models/model/ask",
    "ask-oracle": "/models/oracle/ask",
    "label": "/models/oracle/label",
    "admin": "/admin",
    "why": "/why",
    "proof": "/proofs/PAGES",
    "error": "/nothing",
}
OVERLAPS = """() => [...document.querySelectorAll("svg.chart")].flatMap(svg => {
  const edge = svg.getBoundingClientRect(), found = [];
  const boxes = [...svg.querySelectorAll("text")].map(
    one => [one.textContent, one.getBoundingClientRect()]);
  boxes.forEach(([text, a], i) => {
    if (a.left < edge.left - 1 || a.right > edge.right + 1) found.push(text);
    boxes.slice(i + 1).forEach(([other, b]) => {
      const beside = a.left + 1 >= b.right || b.left + 1 >= a.right;
      if (!beside && a.top + 1 < b.bottom && b.top + 1 < a.bottom)
        found.push(text + " / " + other);
    });
  });
  return found;
})"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    """Serve an oracle, and a published model with all kinds of columns; keys let people in."""
    folder = tmp_path_factory.mktemp("pages")
    everlasting().save_to(folder / "oracle.db")
    rows = table(2_000)
    y = (rows["job"] == "nurse").astype(int)
    model = cumae.PrivateKernelClassifier(5.0, 1e-6, columns=columns(), classes=(0, 1))
    model.fit(rows, y).save(folder / "model.json")
    attack = cumae.audit.Audit(
        "a row", cumae.audit.Claimed(1.0), 0.95, 1000, epsilon=0.7, rho=0.1, mu=0.6
    )
    given = {"settings": {"date": "2026-01-01"}, "audits": [attack.to_dict()], "left_out": []}
    (folder / "audit.json").write_text(json.dumps(given))
    figure = {"value": 0.8, "low": 0.7, "high": 0.9}
    overall = {"accuracy": figure, "commonest": figure, "commonest_class": "0"}
    score = {"rows": 9, "confidence": 0.95, "trained_on": False, "guarantee": None}
    groups = {"women": {"accuracy": figure}, "men": {"accuracy": figure}}
    (folder / "score.json").write_text(json.dumps({**score, "overall": overall, "groups": groups}))
    published = ModelSettings(
        str(folder / "model.json"),
        audit=str(folder / "audit.json"),
        evaluation=str(folder / "score.json"),
    )
    key, secret = new_key("ward", ("admin",))
    file = KeyFile(folder / "access.json")
    file.add(key)
    with InThread(folder / "oracle.db", published, access=str(file.path)) as running:
        running.secret = secret  # type: ignore[attr-defined]
        yield running


class Visit:
    """Somebody with a browser of their own, who signed in by the keyboard.

    Parameters
    ----------
    browser : Browser
        Chromium.
    server : InThread
        The server.
    **more : object
        Options of the context.
    """

    def __init__(self, browser: Any, server: InThread, **more: Any) -> None:
        self.base, self.wrong = f"http://127.0.0.1:{server.port}", list[str]()
        self.context = browser.new_context(**more)
        self.page: Page = self.context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("request", self._request)
        self.go("/sign-in")
        self.page.locator("#key").focus()
        self.page.keyboard.type(server.secret)  # type: ignore[attr-defined]
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(f"{self.base}/")

    def _console(self, message: Any) -> None:
        if "/nothing" not in message.location.get("url", ""):  # whose status is 404
            self.wrong.append(message.text)

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.base, "data:")):
            self.wrong.append(request.url)

    def go(self, path: str) -> Page:
        self.page.goto(self.base + path)
        return self.page

    def tab_to(self, name: str) -> None:
        """Press the tabulator key until the element with this selector has the focus."""
        for _ in range(80):
            if self.page.evaluate("name => document.activeElement.matches(name)", name):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"{name} is not reached by the keyboard")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = shutil.which("chromium")
    assert path is not None, "Debian's package chromium is not there"
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=path, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_all_pages_are_sound_in_all_looks(
    browser: Any, server: InThread, pytestconfig: pytest.Config, scheme: str, width: int
) -> None:
    """No console error, no request elsewhere, no violation of axe, and nothing cut off."""
    folder = Path(str(pytestconfig.cache.mkdir("screenshots")))
    size = {"width": width, "height": 800}
    visit = Visit(browser, server, color_scheme=scheme, viewport=size)
    for name, path in PAGES.items():
        page = visit.go(path)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
        assert page.evaluate(OVERLAPS) == [], name
        found = Axe().run(page)
        assert found.violations_count == 0, f"{name}: {found.generate_report()}"
        page.screenshot(path=folder / f"{name}-{scheme}-{width}.png", full_page=True)
    visit.context.close()
    assert visit.wrong == []


def test_a_question_is_asked_with_the_keyboard_alone(browser: Any, server: InThread) -> None:
    visit = Visit(browser, server)
    page = visit.page
    visit.tab_to("a[href='/models/model/ask']")
    page.keyboard.press("Enter")
    page.wait_for_url("**/models/model/ask")
    visit.tab_to("#c0")
    page.keyboard.type("40")
    visit.tab_to("#c1")
    page.keyboard.press("ArrowDown")
    visit.tab_to("#c2")
    page.keyboard.type("02032021")
    visit.tab_to("#c3")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    visit.tab_to("button:not(.quiet)")
    page.keyboard.press("Enter")
    page.wait_for_selector(".answer")
    assert page.locator("h1").text_content() == "The answer is"
    assert page.locator(".answer").text_content().strip() in ("0", "1")  # type: ignore[union-attr]
    assert Axe().run(page).violations_count == 0
    page.reload()
    visit.context.close()
    assert visit.wrong == []


def test_a_reload_and_a_double_click_ask_once(browser: Any, server: InThread) -> None:
    oracle = server.house.models["oracle"].model
    before = oracle.answered_
    visit = Visit(browser, server)
    page = visit.go("/models/oracle/ask")
    page.fill("#c0", "0.25")
    page.locator("button:has-text('Ask')").first.dblclick()
    page.wait_for_selector(".answer")
    page.reload()
    page.wait_for_selector(".answer")
    assert oracle.answered_ == before + 1
    page.click("text=Change this question")
    assert page.input_value("#c0") == "0.25"
    visit.context.close()
    assert oracle.answered_ == before + 1
    assert visit.wrong == []


def test_pages_and_forms_work_without_scripts(
    browser: Any, server: InThread, tmp_path: Path
) -> None:
    visit = Visit(browser, server, java_script_enabled=False)
    for path in PAGES.values():
        page = visit.go(path)
        assert page.locator("h1").count() == 1
    rows = table(30)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    visit.go("/models/model/ask")
    page.set_input_files("#file", tmp_path / "rows.csv")
    page.click("text=Ask all >> nth=0")
    page.wait_for_selector("h1:has-text('30 answers')")
    shown = page.locator("tbody td").all_inner_texts()
    given = server.house.models["model"].model.predict(rows)
    assert np.array_equal([int(one) for one in shown], given)
    visit.context.close()
    assert visit.wrong == []


def test_what_is_wrong_is_said_where_it_is_read_first(browser: Any, server: InThread) -> None:
    visit = Visit(browser, server)
    page = visit.go("/models/oracle/ask")
    page.fill("#table", "x0\n.1\nmany\n")
    page.click("text=Ask all >> nth=0")
    alert = page.locator("[role=alert]")
    assert "Nothing was asked, and nothing was spent" in alert.inner_text()
    assert "Row 2" in alert.inner_text()
    assert page.input_value("#table") == "x0\n.1\nmany\n"
    assert Axe().run(page).violations_count == 0
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    visit.context.close()
    visit.wrong = [one for one in visit.wrong if "422" not in one]
    assert visit.wrong == []


def test_four_steps_of_the_docs_lead_from_rows_to_an_answer(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps 1 and 2 run as the docs have them; 3 and 4 are taken in the browser."""
    steps = re.findall(r"```sh steps\n(.*?)```", DOCS, re.DOTALL)
    fit, serve = (shlex.split(one.replace("\\\n", " ")) for one in steps)
    (schema,) = re.findall(r"```toml schema.toml\n(.*?)```", DOCS, re.DOTALL)
    (tmp_path / "schema.toml").write_text(schema)
    age = np.arange(4_000) % 81 + 18
    smoker = np.arange(4_000) % 3 == 0
    rows = pd.DataFrame({"age": age, "smoker": np.where(smoker, "yes", "no")})
    rows["outcome"] = np.where(age + 20 * smoker > 65, "ill", "well")
    rows.to_csv(tmp_path / "ward.csv", index=False)
    monkeypatch.chdir(tmp_path)
    made = CliRunner().invoke(app, fit[1:])
    assert (fit[0], made.exit_code) == ("cumae", 0), made.output
    assert serve == ["cumae", "serve", "oracle.db"]
    with InThread(tmp_path / "oracle.db") as running:
        context = browser.new_context()
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{running.port}/")
        page.get_by_role("link", name="Ask oracle").click()
        page.get_by_label("age", exact=True).fill("80")
        page.get_by_label("smoker", exact=True).select_option("yes")
        page.get_by_role("button", name="Ask", exact=True).click()
        assert page.locator(".answer").inner_text().strip() in ("ill", "well")
        assert running.house.models["oracle"].model.answered_ == 1
        context.close()
