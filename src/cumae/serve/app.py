"""Routes of the server, as one ASGI application.

Each route reads raw bodies, and every reply and every failure passes ``Endpoint``: the one place
that decides what leaves.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    MutableMapping,
    Sequence,
)
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

from starlette.routing import Route, Router

import cumae
from cumae.claims import claim
from cumae.serve import openapi
from cumae.serve.access import Door, Limits, Who, not_allowed
from cumae.serve.bodies import BodyReader, read_json
from cumae.serve.errors import Refused, bad, refusal_of, too_large, unknown, unsupported
from cumae.serve.metrics import Metrics
from cumae.serve.models import VERSION, House, Served
from cumae.serve.protocol import v1, v2
from cumae.serve.protocol.forms import RowsAsked
from cumae.serve.protocol.replies import plain, predictions, tensor_reply
from cumae.serve.quiet_log import log_internal
from cumae.serve.settings import Settings

Scope = MutableMapping[str, Any]
JSON, OCTETS, TEXT = b"application/json", b"application/octet-stream", b"text/plain; version=0.0.4"
SINGLE = frozenset(  # headers of which two would be read in two ways
    (b"authorization", b"content-encoding", b"content-length", b"content-type", b"host", b"origin")
) | {b"inference-header-content-length", b"idempotency-key", b"transfer-encoding"}
ANY_METHOD = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT")
ALWAYS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]


class Reply(NamedTuple):
    """The reply to a request.

    Parameters
    ----------
    body : bytes
        The body.
    kind : bytes
        Its content type.
    status : int
        The status of HTTP.
    headers : list of (bytes, bytes)
        More headers.
    """

    body: bytes
    kind: bytes = JSON
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Request:
    """One request.

    Parameters
    ----------
    scope : dict
        What ASGI says of it.
    receive : callable
        Returns the pieces of its body.
    """

    __slots__ = ("has_body", "headers", "params", "receive", "scope", "who")
    who: Who

    def __init__(self, scope: Scope, receive: Any, single: frozenset[bytes]) -> None:
        self.scope, self.receive = scope, receive
        if b"%" in scope["raw_path"]:  # a proxy in front might read it in another way
            raise unknown()
        self.params: dict[str, str] = scope.get("path_params", {})
        headers = self.headers = dict(scope["headers"])
        if len(headers) != len(scope["headers"]):
            names = [name for name, _ in scope["headers"]]
            if any(names.count(name) > 1 for name in single.intersection(headers)):
                raise bad("a header of which there must be one is there twice")
        coding = headers.get(b"transfer-encoding")
        if coding is not None and coding.strip().lower() != b"chunked":
            raise unsupported("a body comes whole or in chunks; pack it by Content-Encoding")
        self.has_body = coding is not None or headers.get(b"content-length", b"0") not in (
            b"0",
            b"",
        )


Handler = Callable[[Request], Awaitable[Reply]]


class Endpoint:
    """One route: who may use it, and what it does.

    Parameters
    ----------
    server : Server
        What it belongs to.
    route : str
        The pattern of its address, for counts.
    handler : callable
        Returns the reply to a request.
    methods : tuple of str
        Methods of HTTP.
    role : str
        What somebody must be allowed to do; empty if anybody may use it.
    """

    def __init__(
        self, server: Server, route: str, handler: Handler, methods: tuple[str, ...], role: str
    ) -> None:
        self._server, self._route, self._handler = server, route, handler
        self._methods, self._role = methods, role

    @claim("SERVE")
    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer a request; nothing is ever raised from here."""
        began = time.monotonic()
        request: Request | None = None
        try:
            request = Request(scope, receive, self._server.single)
            reply = await self._reply(request)
        except Exception as error:  # noqa: BLE001 - nothing of it may leave but what the table says
            reply = self.refused(request, error)
            if request is None or request.has_body:  # of which not all may have been read
                reply = reply._replace(headers=(*reply.headers, (b"connection", b"close")))
        self._server.metrics.request(self._route, reply.status, time.monotonic() - began)
        headers = [
            (b"content-type", reply.kind),
            (b"content-length", str(len(reply.body)).encode()),
            *ALWAYS,
            *reply.headers,
        ]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})

    @claim("SERVE")
    async def _reply(self, request: Request) -> Reply:
        if b"upgrade" in request.headers:
            raise bad("this server speaks HTTP/1.1 alone")
        if request.scope["method"] not in self._methods:
            raise MethodRefused(self._methods)
        if self._role:
            request.who = self.who(request)
            if not request.who.may(self._role):
                raise not_allowed()
        return await self._handler(request)

    def who(self, request: Request) -> Who:
        """Return who asks; refuse strangers."""
        return self._server.door.who(request.headers, request.scope.get("client"))

    def refused(self, _: Request | None, error: Exception) -> Reply:
        """Return the reply to an error."""
        return self._server.refused(error)


class MethodRefused(Refused):
    """A method that an address does not have.

    Parameters
    ----------
    methods : tuple of str
        Those that it has.
    """

    def __init__(self, methods: tuple[str, ...]) -> None:
        super().__init__(405, "method", "this address does not have this method")
        self._methods = methods

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the methods that there are."""
        return [(b"allow", ", ".join(self._methods).encode())]


class Server:
    """The application.

    Parameters
    ----------
    settings : Settings
        Its settings, checked.
    house : House
        Its models, open.
    """

    def __init__(self, settings: Settings, house: House) -> None:
        self.settings, self.house = settings, house
        access = None if settings.access is None else Path(settings.access)
        self.door = Door(
            access,
            proxies=settings.proxies,
            people_header=settings.people_header,
            people_roles=settings.people_roles,
            behind_proxy=settings.behind_proxy,
        )
        self.single = SINGLE | {settings.people_header.lower().encode()}
        self.limits = Limits(None if access is None else access.with_name(f"{access.name}.used"))
        self.bodies = BodyReader(
            settings.most_packed, settings.most_unpacked, settings.body_seconds
        )
        self.metrics = Metrics()
        self.stopping = False
        self.jobs: list[Callable[[], Coroutine[Any, Any, None]]] = []  # beside all requests

    @claim("SERVE")
    def refused(self, error: Exception) -> Reply:
        """Return the reply to an error."""
        found = refusal_of(error)
        if found is None:
            self.metrics.internal_errors += 1
            number = log_internal(error)
            text = f"an error inside the server; its log has the number {number}"
            found = Refused(500, "internal", text)
        self.metrics.refusals[found.code] += 1
        return Reply(found.body(), JSON, found.status, tuple(found.headers()))

    # What is asked

    async def infer(self, request: Request) -> Reply:
        """Answer a request of the Open Inference Protocol."""
        served = self.served(request)
        length = v2.length_of_header(request.headers.get(b"inference-header-content-length"))
        body = await self.bodies.read(request.receive, request.headers)
        wish = await self.bodies.work(len(body), v2.decode, served.form, body, length, read_json)
        answers = await self.answers(served, wish.question, request, _one_id(wish.id, request))
        head = {"model_name": served.name, "model_version": VERSION}
        if wish.id:
            head["id"] = wish.id
        made, size = tensor_reply(served.labels, answers, head, binary=wish.binary)
        if not wish.binary:
            return Reply(made)
        named = (b"inference-header-content-length", f"{size:08d}".encode())
        return Reply(made, OCTETS, headers=(named,))

    async def predict(self, request: Request) -> Reply:
        """Answer a request of KServe's first protocol."""
        served = self.served(request)
        body = await self.bodies.read(request.receive, request.headers)
        question = await self.bodies.work(len(body), v1.decode_v1, served.form, body, read_json)
        answers = await self.answers(served, question, request, _key_of(request))
        return Reply(predictions(served.labels, answers))

    async def invocations(self, request: Request) -> Reply:
        """Answer a request to MLflow's scoring server."""
        served = self.served(request)
        kind = request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        body = await self.bodies.read(request.receive, request.headers)
        sizes = v1.UnpackLimits(self.settings.most_rows, self.settings.most_unpacked)
        given = (served.form, body, kind.decode("latin-1"), read_json, sizes)
        question = await self.bodies.work(len(body), v1.decode_mlflow, *given)
        answers = await self.answers(served, question, request, _key_of(request))
        return Reply(predictions(served.labels, answers))

    async def labels(self, request: Request) -> Reply:
        """Take labels of earlier queries, or new rows with labels."""
        served = self.served(request)
        body = await self.bodies.read(request.receive, request.headers)
        given = await self.bodies.work(len(body), read_json, body)
        if not isinstance(given, dict):
            raise bad("the body must be a JSON object with labels")
        count = await served.label(request.who, given, self.settings.most_rows)
        return Reply(plain({"labels": count}))

    def served(self, request: Request) -> Served:
        """Return the model that an address names, for those who may see it."""
        name = request.params.get("name", self.house.first)
        return self.house.find(name, request.params.get("version"), request.who)

    @claim("SERVE")
    async def answers(
        self, served: Served, question: RowsAsked, request: Request, request_id: str
    ) -> Any:
        """Return the answers to a question, within the limits of the server.

        Parameters
        ----------
        served : Served
            The model.
        question : RowsAsked
            The rows.
        request : Request
            The request, which says who asks.
        request_id : str
            Their name for it; empty if there is none.
        """
        if question.n_rows > self.settings.most_rows:
            raise too_large("more rows than this server takes in one request")
        found = await served.ask(question, request.who, request_id, self.limits)
        self.metrics.answered(served.name, question.n_rows)
        return found

    # What is looked at

    async def live(self, _: Request) -> Reply:
        """Tell whether the process answers."""
        return Reply(plain({"live": True}))

    async def ready(self, _: Request) -> Reply:
        """Tell whether all models can answer."""
        return _readiness({"ready": self.house.is_ready and not self.stopping})

    async def ping(self, request: Request) -> Reply:
        """Tell MLflow's clients whether all models can answer."""
        return await self.ready(request)

    async def version(self, _: Request) -> Reply:
        """Tell the version, as text."""
        return Reply(cumae.__version__.encode(), b"text/plain")

    async def about(self, _: Request) -> Reply:
        """Tell the name of the server and the extensions of the protocol that it has."""
        facts = {
            "name": "cumae",
            "version": cumae.__version__,
            "extensions": ["binary_tensor_data"],
        }
        return Reply(plain(facts))

    async def metadata(self, request: Request) -> Reply:
        """Tell the inputs and the output of a model."""
        served = self.served(request)
        datatype = served.labels.datatype
        return Reply(plain(v2.metadata(served.form, served.name, VERSION, datatype)))

    async def model_ready(self, request: Request) -> Reply:
        """Tell whether a model can answer."""
        served = self.served(request)
        return _readiness({"name": served.name, "ready": not served.unwell and not self.stopping})

    async def nothing(self, request: Request) -> Reply:
        """Refuse what there is not: configuration and statistics of Triton."""
        self.served(request)
        raise unknown()

    async def index(self, request: Request) -> Reply:
        """List the models that somebody may ask."""
        return Reply(
            plain(
                [
                    {
                        "name": one.name,
                        "version": VERSION,
                        "state": "UNAVAILABLE" if one.unwell else "READY",
                        "reason": "",
                    }
                    for one in self.seen(request)
                ]
            )
        )

    def seen(self, request: Request) -> list[Served]:
        """Return the models that somebody may see."""
        return [one for one in self.house.models.values() if request.who.sees(one.name)]

    async def models(self, request: Request) -> Reply:
        """Tell public facts of all models."""
        return Reply(plain({"models": [one.facts() for one in self.seen(request)]}))

    async def counts(self, request: Request) -> Reply:
        """Tell counts to Prometheus."""
        ready = {one.name: not one.unwell for one in self.seen(request)}
        return Reply(self.metrics.text(ready), TEXT)

    async def described(self, _: Request) -> Reply:
        """Tell the description of all routes."""
        return Reply(openapi.text())

    async def unknown_path(self, _: Request) -> Reply:
        """Refuse any other address."""
        raise unknown()

    def app(self, more: Sequence[Route] = (), elsewhere: Endpoint | None = None) -> Any:
        """Return the application.

        Parameters
        ----------
        more : sequence of Route
            Further routes: the pages for people.
        elsewhere : Endpoint, or None
            Refuses any other address; None for one that refuses as protocols do.
        """
        post, get = ("POST",), ("GET", "HEAD")
        one = "/v2/models/{name}"
        table: list[tuple[str, Handler, tuple[str, ...], str]] = [
            (f"{one}/infer", self.infer, post, "ask"),
            (f"{one}/versions/{{version}}/infer", self.infer, post, "ask"),
            ("/v1/models/{name}:predict", self.predict, post, "ask"),
            ("/invocations", self.invocations, post, "ask"),
            ("/models/{name}/invocations", self.invocations, post, "ask"),
            ("/models/{name}/labels", self.labels, post, "label"),
            ("/ping", self.ping, get, ""),
            ("/version", self.version, get, ""),
            ("/openapi.json", self.described, get, ""),
            ("/v2/health/live", self.live, get, ""),
            ("/v2/health/ready", self.ready, get, ""),
            ("/v2", self.about, get, ""),
            ("/v2/repository/index", self.index, post, "ask"),
            (f"{one}/ready", self.model_ready, get, "ask"),
            (f"{one}/versions/{{version}}/ready", self.model_ready, get, "ask"),
            (one, self.metadata, get, "ask"),
            (f"{one}/versions/{{version}}", self.metadata, get, "ask"),
            (f"{one}/config", self.nothing, get, "ask"),
            (f"{one}/stats", self.nothing, get, "ask"),
            ("/v1/models/{name}", self.model_ready, get, "ask"),
            ("/models", self.models, get, "look"),
            ("/metrics", self.counts, get, "look"),
        ]
        routes = [
            Route(path, Endpoint(self, path, handler, methods, role))
            for path, handler, methods, role in table
        ]
        default = elsewhere or Endpoint(self, "elsewhere", self.unknown_path, ANY_METHOD, "")
        routes += more
        return Router(routes, redirect_slashes=False, default=default, lifespan=self.lifespan)

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Any) -> AsyncIterator[None]:
        """Begin to answer; at the end answer what waits, and close all oracles."""
        self.house.start()
        jobs = [asyncio.create_task(job()) for job in self.jobs]
        try:
            yield
        finally:
            self.stopping = True
            for job in jobs:
                job.cancel()
            await asyncio.to_thread(self.house.close)
            self.limits.close()


def _key_of(request: Request) -> str:
    """Return the id of a request whose protocol has none, from its header."""
    return v2.request_id(request.headers.get(b"idempotency-key", b"").decode("latin-1"))


def _one_id(given: str, request: Request) -> str:
    """Return the id of a request, from its body or from its header; refuse two that differ."""
    if b"idempotency-key" not in request.headers:  # as mostly
        return given
    key = _key_of(request)
    if given and key and key != given:
        raise bad("id and Idempotency-Key differ")
    return given or key


def _readiness(facts: dict[str, Any]) -> Reply:
    if facts["ready"]:
        return Reply(plain(facts))
    status = HTTPStatus.SERVICE_UNAVAILABLE
    return Reply(plain({**facts, "error": "not ready", "code": "unwell"}), JSON, int(status))
