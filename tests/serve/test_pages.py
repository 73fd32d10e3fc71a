"""Pages without a browser: statuses, twins, forms, hostile names, sessions and what they refuse."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import pytest

import cumae
from cumae.concepts import Thresholds
from cumae.serve.app import Server
from cumae.serve.bodies import MOST_FIELDS, sent
from cumae.serve.errors import Refused
from cumae.serve.keys import KeyFile, new_key
from cumae.serve.models import House
from cumae.serve.pages.pictures import effect_chart
from cumae.serve.pages.proofs import PLACES, parts, proof
from cumae.serve.pages.site import Site
from cumae.serve.settings import ModelSettings, Settings
from tests.oracles import everlasting
from tests.serve.served import Got, InThread, ask

HOSTILE = '<script>alert("x")</script>&amp;=cmd|"\''
EVIL = "=HYPERLINK(evil)"
MARKED = 43.31


def columns() -> dict[str, Any]:
    return {
        "age": (18, 98, "missing"),
        "job": ["nurse", "baker", HOSTILE],
        "seen": (dt.date(2020, 1, 1), dt.date(2022, 12, 31)),
        HOSTILE: bool,
    }


def table(n_rows: int) -> pd.DataFrame:
    x = np.random.default_rng(0).random(n_rows)
    return pd.DataFrame(
        {
            "age": 18 + 80 * x,
            "job": np.where(x > 0.5, "nurse", "baker"),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta((x * 900).astype(int), unit="D"),
            HOSTILE: x > 0.3,
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with oracles and published models, and what was found out about one."""
    made = tmp_path_factory.mktemp("pages")
    everlasting().save_to(made / "oracle.db")
    everlasting(user_ids=True).save_to(made / "people.db")
    x = np.random.default_rng(0).random((2_000, 1))
    few = cumae.QueryRelease(Thresholds(), max_queries=5, epsilon=50.0, columns=[(0, 1)])
    few.fit(x, (x[:, 0] > 0.5).astype(int)).save_to(made / "few.db")
    rows = table(3_000)
    y = np.where(rows["job"] == "nurse", EVIL, "-1 healthy")
    model = cumae.PrivateBooster(30.0, columns=columns(), classes=("-1 healthy", EVIL))
    model.fit(rows, y).save(made / "model.json")
    curved = cumae.PrivateKernelClassifier(5.0, 1e-6, columns=columns(), classes=(0, 1))
    curved.fit(rows, (rows["job"] == "nurse").astype(int)).save(made / "curved.json")
    attack = cumae.audit.Audit(
        f"rows {HOSTILE}", cumae.audit.Claimed(1.0), 0.95, 1000, epsilon=0.7, rho=0.1, mu=0.6
    )
    told = {"settings": {"date": "2026-01-01"}, "audits": [attack.to_dict()], "left_out": []}
    (made / "audit.json").write_text(json.dumps(told))
    figure = {"value": 0.8, "low": 0.7, "high": 0.9}
    overall = {"accuracy": figure, "commonest": figure, "commonest_class": HOSTILE}
    score = {"rows": 9, "confidence": 0.95, "trained_on": False, "guarantee": None}
    (made / "score.json").write_text(json.dumps({**score, "overall": overall}))
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[InThread]:
    curved = ModelSettings(
        str(folder / "curved.json"),
        audit=str(folder / "audit.json"),
        evaluation=str(folder / "score.json"),
    )
    files = [folder / name for name in ("oracle.db", "people.db", "few.db", "model.json")]
    with InThread(*files, curved) as running:
        yield running


@pytest.fixture(scope="module")
def keys(folder: Path) -> dict[str, str]:
    file, found = KeyFile(folder / "access.json"), {}
    for name, roles in [("ask", ("ask",)), ("look", ("look",)), ("admin", ("admin",))]:
        key, found[name] = new_key(name, roles)
        file.add(key)
    return found


@pytest.fixture(scope="module")
def locked(folder: Path, keys: dict[str, str]) -> Iterator[InThread]:
    """Return a server with keys."""
    everlasting().save_to(folder / "locked.db")
    (folder / "backups").mkdir()
    access, backups = str(folder / "access.json"), str(folder / "backups")
    with InThread(folder / "locked.db", access=access, backups=backups) as running:
        yield running


class Fields(HTMLParser):
    """Reads the elements of a page, and what its forms would send."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))

    def value(self, name: str) -> str:
        return next(str(one["value"]) for tag, one in self.elements if one.get("name") == name)


class Browser:
    """A browser without scripts: it keeps a cookie, and fills in forms.

    Parameters
    ----------
    server : InThread
        Where it looks.
    """

    def __init__(self, server: InThread) -> None:
        self.server, self.cookie = server, ""

    def get(self, path: str, **headers: str) -> Got:
        return self._kept(ask(self.server.port, "GET", path, None, self._headers() | headers))

    def post(self, path: str, given: dict[str, str], form: str = "", **headers: str) -> Got:
        token = Fields(self.get(form or path).body.decode()).value("token")
        sent = urlencode({"token": token, **given}).encode()
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        origin = {"Origin": f"http://127.0.0.1:{self.server.port}"}
        more = self._headers() | kind | origin | headers
        return self._kept(ask(self.server.port, "POST", path, sent, more))

    def sign_in(self, key: str, to: str = "/") -> Got:
        return self.post("/sign-in", {"key": key, "next": to})

    def _headers(self) -> dict[str, str]:
        found = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
        return found | ({"Cookie": self.cookie} if self.cookie else {})

    def _kept(self, got: Got) -> Got:
        cookie = got.header("set-cookie")
        if cookie is not None:
            self.cookie = cookie.partition(";")[0]
        return got


PAGES = [
    "/",
    "/why",
    "/admin",
    "/proofs/PAGES",
    *(f"/models/{name}" for name in ("oracle", "model")),
]
PAGES += ["/models/curved", "/models/people/ask", "/models/model/ask", "/models/oracle/label"]


@pytest.mark.parametrize("path", [*PAGES, "/sign-in", "/nothing"])
def test_pages_bring_nothing_from_outside_and_no_scripts_of_names(
    server: InThread, path: str
) -> None:
    got = Browser(server).get(path)
    assert got.status == (404 if path == "/nothing" else 200)
    policy = str(got.header("content-security-policy"))
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert got.header("cache-control") == "no-store"
    elements = Fields(got.body.decode()).elements
    assert str(next(one["src"] for tag, one in elements if tag == "script"))[:8] == "/static/"
    assert sum(tag == "script" for tag, _ in elements) == 1
    for _, one in elements:
        assert not any(name == "style" or name.startswith("on") for name in one)
        for name in ("href", "src", "action"):
            assert re.match(r"(/|#|data:,|$)(?!/)", str(one.get(name, "")))
    for tag, one in elements:
        if tag in ("link", "script") and not str(one.get("href")).startswith("data:"):
            loaded = Browser(server).get(str(one.get("href") or one.get("src")))
            assert loaded.status == 200


@pytest.mark.parametrize("path", PAGES)
def test_every_page_has_a_twin_and_programs_get_it_without_asking(
    server: InThread, path: str
) -> None:
    twin = server.ask("GET", f"{'/index' if path == '/' else path}.json")
    assert twin.status == 200
    assert server.ask("GET", path).json.keys() == twin.json.keys()
    assert (
        f'href="{"/index" if path == "/" else path}.json"'
        in Browser(server).get(path).body.decode()
    )


def test_the_page_of_a_model_tells_the_promise_and_what_was_published(server: InThread) -> None:
    page = Browser(server).get("/models/curved").body.decode()
    facts = server.ask("GET", "/models/curved.json").json
    assert "is more than 148 times as likely as if your row had been another one" in page
    assert page.count('<svg class="chart"') == len(facts["effects"]) + 2 == 6
    assert facts["audit"]["attacks"][0]["could_have_proven"] > 1
    assert facts["evaluation"]["figures"][0]["value"] == 0.8
    for claim in facts["formal"]["claims"]:
        assert f'href="/proofs/{claim}"' in page
        assert proof(claim) is not None
    listed = (facts["formal"]["assumptions"], facts["not_covered"], facts["formal"]["claims"])
    assert page.count("<li>") == sum(map(len, listed[:2])) + len(listed[2])


def test_categories_that_are_numbers_are_written_as_people_write_them() -> None:
    for values, words in (([0.0, 1.0], ["0", "1"]), ([None, True], ["missing", "yes"])):
        effect = {"column": "a", "values": values, "log_odds": [-0.1, 0.2], "spread": [0.1, 0.1]}
        assert [text for _, text in effect_chart(0, effect).ticks] == words


def test_the_page_of_an_oracle_shows_its_ledger_and_no_effects(server: InThread) -> None:
    facts = server.ask("GET", "/models/oracle.json").json
    assert facts["ledger"]["verified"]
    assert facts["ledger"]["replicas"] == 1
    assert facts["effects"] == []
    assert "verified" in Browser(server).get("/models/oracle").body.decode()


def question(**more: str) -> dict[str, str]:
    return {"c0": str(MARKED), "c1": "0", "c2": "2021-02-03", "c3": "1", **more}


def test_a_question_is_answered_in_words_and_a_retry_is_free(server: InThread) -> None:
    browser = Browser(server)
    got = browser.post("/models/model/ask", question(request_id="one"))
    assert got.status == 200
    assert "=HYPERLINK(evil)" in got.body.decode()
    before = server.house.models["oracle"].model.answered_
    pages = [browser.post("/models/oracle/ask", {"c0": ".9", "request_id": "a"}) for _ in "ab"]
    assert pages[0].body == pages[1].body
    assert '<p class="answer" role="status">1' in pages[0].body.decode()
    assert server.house.models["oracle"].model.answered_ == before + 1
    other = browser.post("/models/oracle/ask", {"c0": ".8", "request_id": "a"})
    assert other.status == 409


@pytest.mark.parametrize(
    "wrong",
    [
        {"c0": "17"},
        {"c0": "old"},
        {"c0": "1e999"},
        {"c0": "nan"},
        {"c1": ""},
        {"c1": "3"},
        {"c1": "nurse"},
        {"c2": "2019-01-01"},
        {"c2": "3.2.2021"},
        {"c3": "2"},
    ],
)
def test_what_cannot_be_asked_is_sent_back_with_what_was_filled_in(
    server: InThread, wrong: dict[str, str]
) -> None:
    got = Browser(server).post("/models/model/ask", question(**wrong))
    page = got.body.decode()
    assert got.status == 422
    assert "Nothing was asked" in page
    (name,) = wrong
    assert f'href="#{name}"' in page
    assert page.count("aria-invalid") == 1
    if name != "c0":
        assert Fields(page).value("c0") == str(MARKED)


@pytest.mark.claim("PAGES")
def test_a_form_that_is_sent_back_never_reaches_the_oracle(server: InThread) -> None:
    oracle = server.house.models["oracle"].model
    before = oracle.answered_
    assert Browser(server).post("/models/oracle/ask", {"c0": "none"}).status == 422
    many = {"many": "yes", "table": "x0\n.1\nnone\n", "request_id": "t"}
    got = Browser(server).post("/models/oracle/ask", many)
    assert got.status == 422
    assert "Row 2: x0 must be a number" in got.body.decode()
    assert oracle.answered_ == before
    got = Browser(server).post("/models/oracle/ask", {**many, "anyway": "yes"})
    assert got.status == 200
    assert "<td>no answer</td>" in got.body.decode()
    assert oracle.answered_ == before + 2


def test_an_oracle_with_an_end_says_how_much_is_left_and_what_it_takes(server: InThread) -> None:
    """Its questions are public: what cannot be used is refused, and asking is not protected."""
    browser = Browser(server)
    for path in ("/", "/models/few"):
        assert "0 answers so far, 5 left" in " ".join(browser.get(path).body.decode().split())
    form = browser.get("/models/few/ask").body.decode()
    assert "It uses one of the answers that are left." in form
    got = browser.post("/models/few/ask", {"c0": ".9"}).body.decode()
    assert "no single row decides an answer" in got
    assert "No answer" not in got
    assert "is not charged again." in got
    many = {"many": "yes", "table": "x0\n.1\nnone\n"}
    wrong = browser.post("/models/few/ask", many)
    assert (wrong.status, "lets the model refuse the table" in wrong.body.decode()) == (422, True)
    assert browser.post("/models/few/ask", {**many, "anyway": "yes"}).status == 400
    facts = server.ask("GET", "/models/few.json").json
    assert (facts["answered"], facts["remaining"], facts["for_ever"]) == (1, 4, False)
    for _ in range(4):
        assert browser.post("/models/few/ask", {"c0": ".9"}).status == 200
    last = browser.post("/models/few/ask", {"c0": ".9"})
    assert (last.status, "budget_exhausted" in last.body.decode()) == (403, True)
    assert "5 answers so far, 0 left" in " ".join(browser.get("/").body.decode().split())


def test_people_are_named_where_the_oracle_asks_for_them(server: InThread) -> None:
    got = Browser(server).post("/models/people/ask", {"c0": ".9"})
    assert got.status == 422
    got = Browser(server).post("/models/people/ask", {"c0": ".9", "user_ids": "person 7"})
    assert got.status == 200
    many = {"many": "yes", "table": "user_ids;x0\n7;.1\n8;.9"}
    assert Browser(server).post("/models/people/ask", many).status == 200


SEPARATED = [(",", "\n"), (";", "\r\n"), ("\t", "\n")]


@pytest.mark.parametrize(("comma", "line"), SEPARATED)
def test_tables_come_in_any_order_and_with_other_separators(
    server: InThread, comma: str, line: str
) -> None:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=comma, lineterminator=line)
    writer.writerow(["seen", HOSTILE, "age", "job"])
    writer.writerows([["2021-01-01", "yes", "", "nurse"], ["2022-12-31", "no", "40", HOSTILE]])
    sent = {"many": "yes", "table": out.getvalue()}
    got = Browser(server).post("/models/model/ask", sent)
    assert (got.status, got.body.decode().count("<td>")) == (200, 2)
    wrong = {"many": "yes", "table": out.getvalue().replace("seen", "scene")}
    assert Browser(server).post("/models/model/ask", wrong).status == 400


def test_a_file_is_uploaded_and_answers_come_as_a_file_without_formulas(server: InThread) -> None:
    browser = Browser(server)
    token = Fields(browser.get("/models/model/ask").body.decode()).value("token")
    rows = table(40)
    fields = {"token": token, "many": "yes", "as": "file"}
    pieces = [
        f'--B\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n'
        for k, v in fields.items()
    ]
    head = 'Content-Disposition: form-data; name="file"; filename="a.csv"\r\nContent-Type: text/csv'
    body = "".join(pieces) + f"--B\r\n{head}\r\n\r\n\ufeff{rows.to_csv(index=False)}\r\n--B--\r\n"
    kind = {"Content-Type": "multipart/form-data; boundary=B", "Cookie": browser.cookie}
    got = ask(server.port, "POST", "/models/model/ask", body.encode(), kind)
    assert got.status == 200
    assert "attachment" in str(got.header("content-disposition"))
    found = list(csv.DictReader(io.StringIO(got.body.decode())))
    told = server.house.models["model"].model.predict(rows).tolist()
    assert [one["answer"].removeprefix("'") for one in found] == told
    assert all(not one["answer"].startswith(("=", "-")) for one in found)


def test_a_reload_and_a_change_ask_nothing_twice(server: InThread) -> None:
    """Also where no id was given; the page of an answer leads to the form as it was filled in."""
    browser, oracle = Browser(server), server.house.models["oracle"].model
    once = Fields(browser.get("/models/oracle/ask").body.decode()).value("once")
    before = oracle.answered_
    pages = [browser.post("/models/oracle/ask", {"c0": ".7", "once": once}) for _ in "ab"]
    assert pages[0].body == pages[1].body
    assert oracle.answered_ == before + 1
    assert once in pages[0].body.decode()
    form = browser.post("/models/oracle/ask", {"c0": ".7", "change": "yes"})
    assert form.status == 200
    found = Fields(form.body.decode())
    assert found.value("c0") == ".7"
    assert found.value("request_id") == ""
    assert found.value("once") != once
    for path in ("/models/oracle/ask?c0=.7", "/models/oracle/ask?c0=.7&token=x&once=y"):
        assert browser.get(path).status == 200
    assert oracle.answered_ == before + 1


def test_a_form_in_very_many_parts_is_refused_before_they_are_read(server: InThread) -> None:
    part = b'--B\r\nContent-Disposition: form-data; name="a"\r\n\r\nx\r\n'
    kind = {"Content-Type": "multipart/form-data; boundary=B", "Accept": "text/html"}
    for body in (part * (MOST_FIELDS + 1) + b"--B--\r\n", part, b"", b"--B--"):
        assert ask(server.port, "POST", "/sign-in", body, kind).status in (400, 403)
    with pytest.raises(Refused):
        sent(part * (MOST_FIELDS + 1) + b"--B--\r\n", b"multipart/form-data; boundary=B")
    assert sent(part + b"--B--\r\n", b'multipart/form-data; boundary="B"').texts == {"a": "x"}


@pytest.mark.claim("PAGES")
def test_the_length_of_a_page_or_a_file_does_not_depend_on_answers(server: InThread) -> None:
    browser = Browser(server)
    for how in ("page", "file"):
        sizes = set()
        for value in (".1", ".9", "no"):
            sent = {"many": "yes", "anyway": "yes", "as": how, "request_id": f"{how}{value:>3}"}
            got = browser.post("/models/oracle/ask", {**sent, "table": f"x0\n{value}\n{value}"})
            assert got.status == 200
            sizes.add(len(got.body))
        assert len(sizes) == 1


def test_labels_come_later_by_the_id_of_a_question(server: InThread) -> None:
    browser = Browser(server)
    browser.post("/models/oracle/ask", {"c0": ".9", "query_ids": "sample 1"})
    given = {"query_ids": "sample 1", "label": "1"}
    got = browser.post("/models/oracle/label", given)
    assert got.status == 200
    assert "It was taken" in got.body.decode()
    assert browser.post("/models/oracle/label", {**given, "query_ids": "unknown"}).status == 400
    assert browser.get("/models/curved/label").status == 400


def test_forms_of_other_pages_are_refused(server: InThread) -> None:
    browser, before = Browser(server), server.house.models["oracle"].model.answered_
    given = {"c0": ".9"}
    assert browser.post("/models/oracle/ask", {**given, "token": "0" * 64}).status == 403
    assert browser.post("/models/oracle/ask", given, Origin="http://evil.example").status == 403
    strange = {"Sec-Fetch-Site": "cross-site"}
    assert browser.post("/models/oracle/ask", given, **strange).status == 403
    token = Fields(browser.get("/models/oracle/ask").body.decode()).value("token")
    browser.cookie = ""
    assert browser.post("/models/oracle/ask", {**given, "token": token}).status == 403
    assert browser.get("/", Host="evil.example").status == 403
    assert server.house.models["oracle"].model.answered_ == before


def test_a_session_lasts_as_long_as_its_key(
    locked: InThread, keys: dict[str, str], folder: Path
) -> None:
    browser = Browser(locked)
    got = browser.get("/models/locked")
    assert (got.status, got.header("location")) == (303, "/sign-in?next=/models/locked")
    assert browser.sign_in("cumae_000000000000_" + "A" * 43).status == 403
    file = KeyFile(folder / "access.json")
    key, secret = new_key("short", ("ask",))
    file.add(key)
    time.sleep(1.1)  # the server reads keys again within a second
    got = browser.sign_in(secret, "//evil.example")
    assert (got.status, got.header("location")) == (303, "/")
    cookie = str(got.header("set-cookie"))
    assert "HttpOnly; SameSite=Strict" in cookie
    assert secret not in cookie
    assert browser.get("/models/locked").status == 200
    assert browser.get("/admin").status == 403
    forged = browser.cookie.replace(key.name, json.loads(file.path.read_text())["keys"][2]["name"])
    other = Browser(locked)
    other.cookie = forged
    assert other.get("/admin").status == 303
    file.revoke(key.name)
    time.sleep(1.1)
    assert browser.get("/models/locked").status == 303
    assert locked.ask("GET", "/").json == {"status": "alive"}
    assert locked.ask("GET", "/index.json").status == 401


def test_roles_decide_what_operators_see(locked: InThread, keys: dict[str, str]) -> None:
    looking, admin = Browser(locked), Browser(locked)
    assert looking.sign_in(keys["look"]).status == 303
    assert admin.sign_in(keys["admin"]).status == 303
    assert "Keys of clients" not in looking.get("/admin").body.decode()
    assert "Keys of clients" in admin.get("/admin").body.decode()
    order = {"model": "locked"}
    assert looking.post("/admin/verify", order, "/admin").header("location") == "/admin"
    assert "The ledger of locked fits." not in admin.get("/admin").body.decode()
    assert "The ledger of locked fits." in looking.get("/admin").body.decode()
    assert looking.post("/admin/backup", order, "/admin").status == 403
    assert looking.post("/admin/revoke", order, "/admin").status == 403
    assert looking.get("/models/locked/ask").status == 403
    copied = Browser(locked)
    copied.cookie = admin.cookie
    assert copied.get("/admin").status == 200
    assert admin.post("/sign-out", {}, "/admin").status == 303
    assert admin.get("/admin").status == 303
    assert copied.get("/admin").status == 303  # a copy of a cookie ends with the session


def test_a_key_for_one_model_sees_no_rows_of_another(folder: Path) -> None:
    everlasting().save_to(folder / "ours.db")
    file = KeyFile(folder / "some.json")
    one, ours = new_key("ours", ("admin",), models=("ours",))
    both, all_of_them = new_key("both", ("admin",))
    file.add(one)
    file.add(both)
    with InThread(folder / "ours.db", folder / "model.json", access=str(file.path)) as running:
        named = {"Authorization": f"Bearer {all_of_them}"}
        assert running.infer([[0.5]], "ours", headers=named).status == 200
        body = {"instances": [["40", "nurse", "2021-01-01", True]] * 3}
        path = "/v1/models/model:predict"
        assert ask(running.port, "POST", path, body, named).status == 200
        for secret, rows in ((ours, 1), (all_of_them, 4)):
            facts = running.ask("GET", "/admin.json", Authorization=f"Bearer {secret}").json
            assert sum(minute["rows"] for minute in facts["minutes"]) == rows
            assert sum(facts["rows"].values()) == rows
            assert (facts["keys"] is None) == (secret == ours)
        owner = Browser(running)
        owner.sign_in(ours)
        assert owner.post("/admin/revoke", {"key": both.name}, "/admin").status == 403
        assert running.ask("GET", "/admin.json", Authorization=named["Authorization"]).status == 200


def test_an_administrator_backs_up_and_revokes(
    locked: InThread, keys: dict[str, str], folder: Path
) -> None:
    admin = Browser(locked)
    admin.sign_in(keys["admin"])
    assert admin.post("/admin/backup", {"model": "locked"}, "/admin").status == 303
    (copy,) = (folder / "backups").iterdir()
    assert cumae.store.status(copy).totals.kind == "EverlastingPredictor"
    assert admin.post("/admin/revoke", {"key": "nothing"}, "/admin").status == 404
    facts = ask(
        locked.port, "GET", "/admin.json", None, {"Authorization": f"Bearer {keys['admin']}"}
    ).json
    assert facts["refusals"]
    assert {one["client"] for one in facts["keys"]} >= {"ask", "look", "admin"}
    assert not any("hash" in one for one in facts["keys"])
    name = next(one["name"] for one in facts["keys"] if one["client"] == "ask")
    assert admin.post("/admin/revoke", {"key": name}, "/admin").status == 303
    assert f"The key {name} is revoked" in admin.get("/admin").body.decode()


def test_cookies_are_secure_behind_tls(folder: Path) -> None:
    everlasting().save_to(folder / "secure.db")
    access = str(folder / "access.json")
    with InThread(folder / "secure.db", access=access, behind_proxy=True) as running:
        cookie = Browser(running).get("/sign-in").header("set-cookie")
    assert cookie is not None
    assert cookie.startswith("__Host-cumae=")
    assert cookie.endswith("; Secure")


def test_files_about_models_that_cannot_be_read_are_refused_at_the_start(folder: Path) -> None:
    (folder / "wrong.json").write_text('{"audits": 1}')
    for name in ("audit", "evaluation"):
        for path in ("wrong.json", "nothing.json"):
            more: dict[str, Any] = {name: str(folder / path)}
            settings = Settings((ModelSettings(str(folder / "curved.json"), "one", **more),))
            with pytest.raises(cumae.errors.InvalidParameter, match=path):
                Site(Server(settings, House(settings.models)))


def test_all_proofs_are_there_and_can_be_laid_out() -> None:
    names = [one.stem for one in PLACES[1].glob("*.md")]
    assert len(names) > 50
    for name in names:
        text = proof(name)
        assert text is not None
        found = parts(text)
        assert found[0].kind == "heading"
        flat = " ".join(" ".join(part.lines) for part in found).split()
        kept = [word for word in text.split() if word.strip("#-")]
        assert len([word for word in flat if word.strip("#-")]) == len(kept)
    assert proof("../README") is None
    assert proof("NOTHING") is None
