"""The form by which people ask, and the one by which they tell labels later."""

from __future__ import annotations

import csv
import io
from typing import Any

from cumae.serve.app import Reply, Request
from cumae.serve.bodies import Sent
from cumae.serve.errors import bad
from cumae.serve.models import Served
from cumae.serve.pages.desk import PageDesk, wants_html
from cumae.serve.pages.facts import Facts, card, entry, named
from cumae.serve.pages.forms import Checked, Field, fields_of, from_csv, one_question
from cumae.serve.pages.render import HEADERS, padded
from cumae.serve.protocol.replies import ABSTAINED
from cumae.serve.protocol.v2 import request_id

TIMES = 8  # as long as JSON of one size is a table read
MOST_SHOWN = 1_000  # answers on a page; more come as a file
UNANSWERED = "no answer"
NOTHING: list[Any] = []
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # with which a cell begins that a program may run


class AskingPages:
    """Handlers of forms that ask a model.

    Parameters
    ----------
    desk : PageDesk
        What all pages share.
    """

    def __init__(self, desk: PageDesk) -> None:
        self._desk, self._server = desk, desk.server

    async def ask(self, request: Request) -> Reply:
        """Show the form, or ask what it holds."""
        served = self._server.served(request)
        if request.scope["method"] != "POST":
            return self._form(request, served, Sent({}))
        given = await self._desk.form(request)
        many = given.get("many") == "yes"
        if many:
            text = given.file or given.get("table")
            most, bodies = self._server.settings.most_rows, self._server.bodies
            found = await bodies.work(TIMES * len(text), from_csv, served, text, most)
        else:
            found = one_question(served, given)
        if given.get("change") == "yes":  # from the page of an answer: nothing is asked
            return self._form(request, served, given)
        anyway = many and given.get("anyway") == "yes"
        if found.problems and not anyway:
            return self._form(request, served, given, found)
        name = request_id(given.get("request_id").strip() or given.get("once"))
        answers = await self._server.answers(served, found.question, request, name)
        values = answers.tolist()
        if given.get("as") == "file":
            return _file(served, values)
        return self._answered(request, served, given, values, name)

    def _form(
        self, request: Request, served: Served, given: Sent, found: Checked | None = None
    ) -> Reply:
        """Return the form, with what was filled in and what is wrong with it."""
        facts = self._facts(served)
        if not wants_html(request):
            return self._desk.show(request, "", facts)
        problems = [] if found is None else found.problems
        many = given.get("many") == "yes"
        shown: dict[str, Any] = {
            "fields": fields_of(served),
            "given": given,
            "table": given.file or given.get("table"),
            "problems": problems,
            "wrong": {one.field for one in problems},
            "n_wrong": 0 if found is None else found.n_wrong,
            "many": many,
            "request_id": given.get("request_id") if problems else "",
            "once": self._desk.sessions.name(),  # so that a reload is no second question
            "example": ",".join(served.form.titles),
        }
        return self._desk.show(request, "ask.html", facts, 422 if problems else 200, **shown)

    def _facts(self, served: Served) -> Facts:
        return {
            **card(served),
            "dictionary": [entry(column) for column in named(served)],
            "takes_labels": served.is_oracle and hasattr(served.model, "add_labels"),
            "takes_users": served.names_users,
            "takes_any_cell": served.takes_any_cell,
            "most_rows": self._server.settings.most_rows,
        }

    def _answered(
        self, request: Request, served: Served, given: Sent, values: list[Any], name: str
    ) -> Reply:
        """Return answers; the length of the page does not depend on them."""
        words = _words(served)
        same = padded(list(words.values()))
        facts = {
            **self._facts(served),
            "rows": len(values),
            "request_id": name,
            "answers": [words[one] for one in values],
        }
        shown: dict[str, Any] = {
            "words": [same[words[one]] for one in values[:MOST_SHOWN]],
            "most_shown": MOST_SHOWN,
            "asked": _asked(fields_of(served), given) if given.get("many") != "yes" else NOTHING,
            "query_id": given.get("query_ids").strip(),
            "again": [(field.name, given.get(field.name)) for field in fields_of(served)],
        }
        return self._desk.show(request, "answer.html", facts, **shown)

    async def label(self, request: Request) -> Reply:
        """Show the form for a label that comes later, or take it."""
        served = self._server.served(request)
        facts = self._facts(served)
        if not facts["takes_labels"]:
            raise bad("this model takes no labels")
        shown: dict[str, Any] = {"done": False, "classes": list(map(str, facts["classes"]))}
        if request.scope["method"] == "POST":
            given = await self._desk.form(request)
            place = given.get("label")
            if place not in {str(at) for at in range(len(facts["classes"]))}:
                raise bad("choose one of the classes")
            labelled = {
                "query_ids": [given.get("query_ids").strip()],
                "labels": [facts["classes"][int(place)]],
            }
            await served.label(request.who, labelled, 1)
            shown["done"] = True
        return self._desk.show(request, "label.html", facts, **shown)


def _words(served: Served) -> dict[Any, str]:
    """Return all answers that there can be, in words."""
    found = {one: str(one) for one in served.model.classes_.tolist()}
    return {ABSTAINED: UNANSWERED, **found}


def _asked(fields: list[Field], given: Sent) -> list[tuple[str, str]]:
    """Return what was asked, as the one who asked filled it in."""
    found = []
    for field in fields:
        text = given.get(field.name).strip()
        chosen = {one.place: one.text for one in field.options}
        found.append((field.title, chosen.get(text, text) or "missing"))
    return found


def _file(served: Served, values: list[Any]) -> Reply:
    """Return answers as CSV; empty lines at its end make it as long as any other answers would."""
    words = {one: _harmless(word) for one, word in _words(served).items()}
    lines = {one: _line([word]) for one, word in words.items()}
    longest = max(len(line.encode()) for line in lines.values())
    made = _line(["row", "answer"])
    short = 0
    for row, one in enumerate(values, start=1):
        made += f"{row},{lines[one]}"
        short += longest - len(lines[one].encode())
    named_so = f'attachment; filename="{served.name}-answers.csv"'.encode()
    headers = (*HEADERS, (b"content-disposition", named_so))
    return Reply(f"{made}{chr(10) * short}".encode(), b"text/csv; charset=utf-8", headers=headers)


def _line(cells: list[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()


def _harmless(word: str) -> str:
    """Return a text that no program for tables takes for a formula."""
    try:
        float(word)
    except ValueError:
        return f"'{word}" if word.startswith(FORMULA) else word
    return word
