"""Who looks at a page, and how a page or its twin for programs is sent."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import orjson

from cumae.randomness import SYSTEM, Source
from cumae.serve.access import SEE, Who
from cumae.serve.app import Endpoint, Handler, Reply, Request, Server
from cumae.serve.bodies import Sent, sent
from cumae.serve.errors import Refused
from cumae.serve.pages.facts import Facts, Looks
from cumae.serve.pages.render import HEADERS, HTML, page
from cumae.serve.pages.sessions import Session, Sessions, is_from_here
from cumae.serve.protocol.replies import plain

SIGN_IN = "/sign-in"
GET, POST, BOTH = ("GET", "HEAD"), ("POST",), ("GET", "HEAD", "POST")


def wants_html(request: Request) -> bool:
    """Tell whether a program that shows pages asks; all others get JSON."""
    if request.scope["path"].endswith(".json"):
        return False
    return b"text/html" in request.headers.get(b"accept", b"")


class PageDesk:
    """The shared part of all pages.

    Parameters
    ----------
    server : Server
        The application whose models they show.
    source : Source
        Where names of sessions and requests come from.
    clock : callable
        Returns the time in seconds.
    """

    def __init__(
        self,
        server: Server,
        source: Source = SYSTEM,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.server, self.clock = server, clock
        self.sessions = Sessions(source, clock)
        self.looks = Looks(clock)

    # Who looks

    def who(self, request: Request) -> Who:
        """Return who asks: by a key, by a session, or by a proxy; refuse strangers."""
        door, headers = self.server.door, request.headers
        if b"authorization" in headers and door.keys is not None:
            return door.who(headers, request.scope.get("client"))
        session = self.session(request)
        if session is not None and session.is_signed_in:
            return door.holder(session.key)
        if is_from_here(headers):  # a form of this server says so, and carries a token
            headers = {name: value for name, value in headers.items() if name != b"origin"}
        return door.who(headers, request.scope.get("client"))

    def looking(self, request: Request) -> Who | None:
        """Return who asks; None for a stranger."""
        try:
            return self.who(request)
        except Refused:
            return None

    def session(self, request: Request) -> Session | None:
        """Return the session of a browser."""
        return self.sessions.read(request.headers, secure=self.is_secure(request))

    def is_secure(self, request: Request) -> bool:
        """Tell whether a browser came by TLS."""
        return request.scope.get("scheme") == "https" or self.server.settings.behind_proxy

    async def form(self, request: Request) -> Sent:
        """Return what a form sent; refuse one that is not of this browser."""
        body = await self.server.bodies.read(request.receive, request.headers)
        kind = request.headers.get(b"content-type", b"")
        given = await self.server.bodies.work(len(body), sent, body, kind)
        self.sessions.check(self.session(request), request.headers, given.get("token"))
        return given

    # What is sent

    def show(
        self, request: Request, template: str, facts: Facts, status: int = 200, **more: Any
    ) -> Reply:
        """Return a page, or its facts as JSON.

        Parameters
        ----------
        request : Request
            The request.
        template : str
            The template of the page.
        facts : dict
            All that the page says.
        status : int
            The status of HTTP.
        **more : object
            What the template needs beside the facts to show them.
        """
        if not wants_html(request):
            return Reply(plain(facts), status=status)
        session, headers = self.session(request), list(HEADERS)
        if session is None:
            session = self.sessions.new()
            headers.append(self.sessions.cookie(session, secure=self.is_secure(request)))
        who = self.looking(request)
        made = page(
            template,
            facts=facts,
            may=frozenset(
                role
                for role in (SEE, "ask", "label", "look", "admin")
                if who is not None and who.may(role)
            ),
            name=None if who is None else who.client,
            is_signed_in=session.is_signed_in,
            token=self.sessions.token(session),
            here=request.scope["path"],
            **more,
        )
        return Reply(made, HTML, status, tuple(headers))


class PageEndpoint(Endpoint):
    """One route of a page.

    Parameters
    ----------
    desk : PageDesk
        What knows who looks.
    route : str
        The pattern of its address.
    handler : callable
        Returns the reply to a request.
    methods : tuple of str
        Methods of HTTP.
    role : str
        What somebody must be allowed to do; empty if anybody may use it.
    """

    def __init__(
        self, desk: PageDesk, route: str, handler: Handler, methods: tuple[str, ...], role: str
    ) -> None:
        super().__init__(desk.server, route, handler, methods, role)
        self._desk = desk

    def who(self, request: Request) -> Who:
        """Return who asks, by a key, a session or a proxy."""
        return self._desk.who(request)

    def refused(self, request: Request | None, error: Exception) -> Reply:
        """Return the reply to an error, to people as a page."""
        refusal = super().refused(request, error)
        if request is None or not wants_html(request):
            return refusal
        here = request.scope["path"]
        if refusal.status == 401 and request.scope["method"] in GET:
            return moved(SIGN_IN if here == "/" else f"{SIGN_IN}?next={here}")
        facts = {"status": refusal.status, **orjson.loads(refusal.body)}
        shown = self._desk.show(request, "error.html", facts, refusal.status)
        return shown._replace(headers=(*refusal.headers, *shown.headers))


def moved(to: str, *more: tuple[bytes, bytes]) -> Reply:
    """Return a reply that leads to another page of this server.

    Parameters
    ----------
    to : str
        Its path.
    *more : pair of bytes
        More headers.
    """
    return Reply(b"", HTML, 303, ((b"location", to.encode()), *HEADERS, *more))
