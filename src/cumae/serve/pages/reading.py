"""Pages that are read: the models, one of them, why so little is shown, proofs, and the door."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import parse_qs

from cumae.serve.access import SEE
from cumae.serve.app import Reply, Request
from cumae.serve.errors import Refused, unknown
from cumae.serve.models import Served
from cumae.serve.pages.desk import PageDesk, moved, wants_html
from cumae.serve.pages.facts import Facts, card, effects_of, page_facts, published_about
from cumae.serve.pages.pictures import audit_chart, effect_chart, score_chart
from cumae.serve.pages.proofs import parts, proof
from cumae.serve.pages.render import HEADERS, STATIC

PATH = re.compile(r"/(?!/)[A-Za-z0-9._/-]{0,200}")
MOST_CHARTS = 12
WHY = {
    "title": "Why these pages show so little",
    "never": [
        "Rows, questions, answers and labels of others: not one of them, and not in part.",
        (
            "Margins and counts of votes: how sure the models were of one answer tells about the "
            "rows that they learnt from."
        ),
        "Counts of answers or of labels by class: they are sums over private questions.",
        "Live accuracy: it compares answers with labels, and each label is private.",
        "Times of single requests: a slow answer can tell something about its question.",
    ],
    "shown": [
        "What was declared: columns, ranges, categories, and the promise.",
        "What anybody could count who sees the requests: how many rows were asked, and when.",
        (
            "What was published with the promise: a published model, its effects, its "
            "evaluation, and the audits of the code."
        ),
    ],
}


class ReadingPages:
    """Handlers of pages that change nothing.

    Parameters
    ----------
    desk : PageDesk
        What all pages share.
    """

    def __init__(self, desk: PageDesk) -> None:
        self._desk, self._server = desk, desk.server
        self._published = {
            name: published_about(served) for name, served in desk.server.house.models.items()
        }
        self._effects: dict[str, list[Facts]] = {}

    async def home(self, request: Request) -> Reply:
        """List the models that somebody may see; strangers' programs see that it is alive."""
        if wants_html(request) or request.scope["path"].endswith(".json"):
            request.who = self._desk.who(request)
        else:
            who = self._desk.looking(request)
            if who is None or not who.may(SEE):
                return self._desk.show(request, "home.html", {"status": "alive"})
            request.who = who
        facts = {"status": "alive", "models": [card(one) for one in self._server.seen(request)]}
        return self._desk.show(request, "home.html", facts)

    async def model(self, request: Request) -> Reply:
        """Tell what a model promises, how it stands, and what was published about it."""
        served = self._server.served(request)
        ledger = await self._desk.looks.at(served)
        published = {"effects": await self._effects_of(served), **self._published[served.name]}
        facts = page_facts(served, ledger, published)
        if not wants_html(request):
            return self._desk.show(request, "", facts)
        charts = [
            (effect_chart(place, one), one)
            for place, one in enumerate(facts["effects"][:MOST_CHARTS])
        ]
        audit = facts["audit"]
        chart = None if audit is None else audit_chart(audit["attacks"])
        found = facts["evaluation"]
        shown: dict[str, Any] = {"charts": charts, "audit_chart": chart}
        shown["score_chart"] = None if found is None else score_chart(found)
        return self._desk.show(request, "model.html", facts, **shown)

    async def _effects_of(self, served: Served) -> list[Facts]:
        if served.name not in self._effects:  # it takes a moment, and never changes
            self._effects[served.name] = await asyncio.to_thread(effects_of, served)
        return self._effects[served.name]

    async def why(self, request: Request) -> Reply:
        """Tell why nobody sees more."""
        return self._desk.show(request, "why.html", WHY)

    async def proof(self, request: Request) -> Reply:
        """Show the page of a claim."""
        name = request.params["id"]
        text = proof(name)
        if text is None:
            raise unknown()
        shown: dict[str, Any] = {"parts": parts(text)} if wants_html(request) else {}
        return self._desk.show(request, "proof.html", {"claim": name, "text": text}, **shown)

    async def static(self, request: Request) -> Reply:
        """Send the style or the script."""
        found = STATIC.get(request.params["file"])
        if found is None:
            raise unknown()
        return Reply(*found, headers=HEADERS)

    async def sign_in(self, request: Request) -> Reply:
        """Show the form that takes a key, or take one."""
        if request.scope["method"] != "POST":
            to = _next(request.scope["query_string"].decode("latin-1"))
            return self._desk.show(request, "sign_in.html", {"next": to, "wrong": False})
        given = await self._desk.form(request)
        to = _next(f"next={given.get('next')}")
        secure = self._desk.is_secure(request)
        try:
            key = f"Bearer {given.get('key').strip()}".encode()
            who = self._server.door.who({b"authorization": key}, None)
            if who.key is None:  # where there are no keys
                raise unknown()
        except Refused:
            facts = {"next": to, "wrong": True}
            return self._desk.show(request, "sign_in.html", facts, 403)
        session = self._desk.sessions.new(who.key.name)
        return moved(to, self._desk.sessions.cookie(session, secure=secure))

    async def sign_out(self, request: Request) -> Reply:
        """End a session."""
        await self._desk.form(request)
        secure, session = self._desk.is_secure(request), self._desk.session(request)
        if session is not None and session.is_signed_in:
            self._desk.sessions.end(session)
        return moved("/", self._desk.sessions.cookie(None, secure=secure))


def _next(query: str) -> str:
    """Return where to go from the form that takes a key: a path of this server alone."""
    (wanted, *_) = parse_qs(query).get("next", ["/"])
    return wanted if PATH.fullmatch(wanted) else "/"
