"""Refusals: one table from what went wrong to a status, a code and a text, and one shape for all.

A refusal never holds a part of what was sent. Texts are fixed here, or they are those of cumae's
own errors about a call, which name a row and a column and never a value.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import NamedTuple

from cumae.claims import claim
from cumae.errors import (
    BudgetExhausted,
    InvalidData,
    InvalidParameter,
    LiveState,
    RequestIdReused,
    StoreFailed,
)

RETRY_SECONDS = 1  # when a queue is full: a group of calls takes a part of this


class Refused(Exception):
    """A request that gets no answer.

    Parameters
    ----------
    status : int
        The status of HTTP.
    code : str
        A name for programs, which never changes.
    text : str
        A sentence for people.
    retry_after : int, or None
        Seconds after which the same request may succeed.
    """

    def __init__(self, status: int, code: str, text: str, retry_after: int | None = None) -> None:
        super().__init__(text)
        self.status, self.code, self.text, self.retry_after = status, code, text, retry_after

    def body(self) -> bytes:
        """Return what is sent."""
        return error_body(self.text, self.code)

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Return the headers that belong to this refusal."""
        found: list[tuple[bytes, bytes]] = []
        if self.retry_after is not None:
            found.append((b"retry-after", str(self.retry_after).encode()))
        if self.status == HTTPStatus.UNAUTHORIZED:
            found.append((b"www-authenticate", b"Bearer"))
        return found


@claim("SERVE")
def error_body(text: str, code: str) -> bytes:
    """Return the one shape of all errors."""
    return json.dumps({"error": text, "code": code}).encode()


class _Row(NamedTuple):
    """A line of the table; an empty text stands for the text of the error."""

    kind: type[Exception]
    status: int
    code: str
    text: str = ""


# The first line that fits counts.
TABLE = (
    _Row(RequestIdReused, 409, "id_reused", "this id was used for another request before"),
    _Row(InvalidData, 400, "bad_request"),
    _Row(
        InvalidParameter,
        400,
        "bad_request",
        "the oracle does not take these ids: they are unknown here, or given twice",
    ),
    _Row(BudgetExhausted, 403, "budget_exhausted"),
    _Row(StoreFailed, 503, "unwell", "the oracle has to be opened again by its owner"),
    _Row(LiveState, 503, "unwell", "the oracle has to be opened again by its owner"),
)


@claim("SERVE")
def refusal_of(error: BaseException) -> Refused | None:
    """Return the reply to an error of cumae; None if it is an error inside the server."""
    if isinstance(error, Refused):
        return error
    for row in TABLE:
        if isinstance(error, row.kind):
            return Refused(row.status, row.code, row.text or " ".join(str(error).split()))
    return None


def is_unwell(error: BaseException) -> bool:
    """Tell whether an oracle can answer no more after this error."""
    return isinstance(error, StoreFailed | LiveState)


def bad(text: str) -> Refused:
    """Return a refusal of what the envelope of a request says; nothing was spent."""
    return Refused(400, "bad_request", text)


def unwell() -> Refused:
    """Return the refusal of a model that cannot answer, or whose server is about to end."""
    return Refused(503, "unwell", "this model cannot answer now")


def unknown() -> Refused:
    """Return the refusal of a path, a model or a version that is not there."""
    return Refused(404, "not_found", "there is nothing at this address")


def too_large(what: str) -> Refused:
    """Return the refusal of something that passes a limit."""
    return Refused(413, "too_large", what)


def unsupported(text: str) -> Refused:
    """Return the refusal of a form of content that is not read."""
    return Refused(415, "unsupported", text)


def busy() -> Refused:
    """Return the refusal of a request for which there is no room now."""
    return Refused(429, "busy", "too many requests wait; ask again", RETRY_SECONDS)
