"""The routes of all pages."""

from __future__ import annotations

from typing import Any

from starlette.routing import Route

from cumae.serve.access import SEE
from cumae.serve.app import ANY_METHOD, Handler, Server
from cumae.serve.pages.asking import AskingPages
from cumae.serve.pages.desk import BOTH, GET, POST, SIGN_IN, PageDesk, PageEndpoint
from cumae.serve.pages.operating import OperatingPages
from cumae.serve.pages.reading import ReadingPages


class Site:
    """Pages for people, beside the routes for programs.

    Parameters
    ----------
    server : Server
        The application.
    desk : PageDesk, or None
        What all pages share; None for one with coins and clock of the system.
    """

    def __init__(self, server: Server, desk: PageDesk | None = None) -> None:
        self._server, self._desk = server, desk or PageDesk(server)
        self._reading, self._asking = ReadingPages(self._desk), AskingPages(self._desk)
        self._operating = OperatingPages(self._desk)
        server.jobs.append(self._operating.watch)

    def app(self) -> Any:
        """Return the application with all pages."""
        routes = [
            Route(path, PageEndpoint(self._desk, path, handler, methods, role))
            for path, handler, methods, role in self._table()
        ]
        unknown = self._server.unknown_path
        elsewhere = PageEndpoint(self._desk, "elsewhere", unknown, ANY_METHOD, "")
        return self._server.app(routes, elsewhere)

    def _table(self) -> list[tuple[str, Handler, tuple[str, ...], str]]:
        """Return addresses, handlers, methods and roles; a twin stands beside its page."""
        reading, asking, operating = self._reading, self._asking, self._operating
        one = "/models/{name}"
        return [
            ("/", reading.home, GET, ""),
            ("/index.json", reading.home, GET, SEE),
            (f"{one}.json", reading.model, GET, SEE),
            (f"{one}/ask.json", asking.ask, GET, "ask"),
            (f"{one}/ask", asking.ask, BOTH, "ask"),
            (f"{one}/label.json", asking.label, GET, "label"),
            (f"{one}/label", asking.label, BOTH, "label"),
            (one, reading.model, GET, SEE),
            ("/why", reading.why, GET, ""),
            ("/why.json", reading.why, GET, ""),
            ("/proofs/{id}.json", reading.proof, GET, ""),
            ("/proofs/{id}", reading.proof, GET, ""),
            ("/static/{file}", reading.static, GET, ""),
            (SIGN_IN, reading.sign_in, BOTH, ""),
            ("/sign-out", reading.sign_out, POST, ""),
            ("/admin", operating.admin, GET, "look"),
            ("/admin.json", operating.admin, GET, "look"),
            ("/admin/verify", operating.verify, POST, "look"),
            ("/admin/backup", operating.backup, POST, "admin"),
            ("/admin/revoke", operating.revoke, POST, "admin"),
        ]
