"""Bodies of requests: their size, how they are packed, JSON, and forms of browsers."""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import orjson

from cumae.serve.errors import Refused, bad, busy, too_large, unsupported

Receive = Callable[[], Awaitable[dict[str, Any]]]
Result = TypeVar("Result")
ALL_BODIES = 16  # bodies of the largest size that may be held while they come
LARGE = 2**18  # bytes, from which on they are read in a thread
RATIO = 16  # of unpacked bytes to packed ones, of JSON
GZIP = 31  # zlib's number for the format with a header and a checksum
MOST_MEMBERS = 64  # of a packed body: each takes a copy of what is left
PACKED = "the body is larger than this server takes"
UNPACKED = "the unpacked body is larger than this server takes"
NO_JSON = "the body is no JSON"
MOST_FIELDS = 5_000
FORM, PARTS = "application/x-www-form-urlencoded", "multipart/form-data"
BOUNDARY = re.compile(rb'boundary=(?:"([^"\r\n]{1,200})"|([^\s;"]{1,200}))', re.IGNORECASE)
PART_NAME = re.compile(rb'[; ]name="([^"\r\n]*)"', re.IGNORECASE)
FILE_NAME = re.compile(rb"[; ]filename\*?=", re.IGNORECASE)


class BodyReader:
    """Reads bodies, and keeps to limits of one body and of all that are read at a time.

    Parameters
    ----------
    packed, unpacked : int
        Most bytes of a body as it comes, and after it was unpacked.
    seconds : float
        How long a client may take to send one.
    """

    def __init__(self, packed: int, unpacked: int, seconds: float) -> None:
        self._packed, self._unpacked, self._seconds = packed, unpacked, seconds
        self._held = 0  # bytes of all bodies of which more is to come
        self._room = asyncio.Semaphore(2)

    async def read(self, receive: Receive, headers: dict[bytes, bytes]) -> bytes:
        """Return a body, unpacked.

        Parameters
        ----------
        receive : callable
            Returns the next piece, as ASGI has it.
        headers : dict of bytes to bytes
            Headers of the request.
        """
        encoding = headers.get(b"content-encoding", b"identity").strip().lower()
        if encoding not in (b"identity", b"gzip", b""):
            raise unsupported("the content encoding must be gzip or identity")
        length = headers.get(b"content-length")
        if length is not None and (not length.isdigit() or int(length) > self._packed):
            raise too_large(PACKED)
        message = await _piece(receive, self._seconds)
        body = message.get("body", b"")
        if message.get("more_body"):
            body = await self._rest(receive, body)
        if len(body) > self._packed:
            raise too_large(PACKED)
        if encoding == b"gzip":
            return await self.work(len(body) * RATIO, unpack, body, self._unpacked)
        return bytes(body)

    async def work(self, size: int, read: Callable[..., Result], *given: Any) -> Result:
        """Read something; if it is large in a thread, two at a time, so that others go on.

        Parameters
        ----------
        size : int
            Bytes that are read.
        read : callable
            What reads them.
        *given : object
            Its arguments.
        """
        if size <= LARGE:
            return read(*given)
        async with self._room:
            return await asyncio.to_thread(read, *given)

    async def _rest(self, receive: Receive, first: bytes) -> bytes:
        """Return a body that comes in pieces."""
        pieces, size = [first], len(first)
        loop = asyncio.get_running_loop()
        until = loop.time() + self._seconds
        self._held += size
        try:
            while True:
                message = await _piece(receive, until - loop.time())
                piece = message.get("body", b"")
                pieces.append(piece)
                size += len(piece)
                self._held += len(piece)
                if size > self._packed:
                    raise too_large(PACKED)
                if self._held > ALL_BODIES * self._packed:
                    raise busy()
                if not message.get("more_body"):
                    return b"".join(pieces)
        finally:
            self._held -= size


async def _piece(receive: Receive, seconds: float) -> dict[str, Any]:
    try:
        async with asyncio.timeout(seconds):
            message = await receive()
    except TimeoutError:
        raise Refused(408, "too_slow", "the body did not come in time") from None
    if message["type"] == "http.disconnect":
        raise Refused(400, "bad_request", "the client has left")
    return message


def unpack(body: bytes, most: int) -> bytes:
    """Return what gzip packed; refuse more bytes than allowed before they are unpacked."""
    pieces: list[bytes] = []
    left = most
    while body or not pieces:
        if len(pieces) == MOST_MEMBERS:
            raise bad("the body is packed in too many parts")
        packed = zlib.decompressobj(GZIP)
        try:
            pieces.append(packed.decompress(body, left + 1))
        except zlib.error:
            raise bad("the body is not what gzip packs") from None
        left -= len(pieces[-1])
        if left < 0:
            raise too_large(UNPACKED)
        if not packed.eof:
            raise bad("the body is not what gzip packs")
        body = packed.unused_data
    return b"".join(pieces)


def read_json(body: bytes) -> Any:
    """Return what JSON holds, also with NaN and Infinity, which some clients write."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass  # which also stands for NaN, Infinity and 1e999
    try:
        return json.loads(body.decode("utf-8"), parse_int=_whole, parse_float=float)
    except (ValueError, RecursionError):
        raise bad(NO_JSON) from None


def _whole(text: str) -> int | float:
    """Return a whole number; one of very many digits is infinite, as a large float is."""
    return int(text) if len(text) < 1_000 else float(text)


class Sent(NamedTuple):
    """The fields of a form.

    Parameters
    ----------
    texts : dict of str to str
        What was filled in, by the names of fields.
    file : str
        The text of a file; empty if there is none.
    """

    texts: dict[str, str]
    file: str = ""

    def __repr__(self) -> str:
        return "<a form>"  # nothing of it belongs into a message

    def get(self, name: str) -> str:
        """Return what a field holds; empty if it is not there."""
        return self.texts.get(name, "")


def sent(body: bytes, content_type: bytes) -> Sent:
    """Return what a form sent.

    Parameters
    ----------
    body : bytes
        The body.
    content_type : bytes
        Its type, with the parameters that it has.
    """
    kind = content_type.decode("latin-1").partition(";")[0].strip().lower()
    try:
        if kind == FORM:
            pairs = parse_qsl(
                body.decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=MOST_FIELDS,
            )
            return Sent(dict(pairs))
        if kind == PARTS:
            return _from_parts(body, content_type)
    except (ValueError, LookupError):  # of encodings that are none
        raise bad("this form cannot be read; its texts and files must be UTF-8") from None
    raise unsupported("a form sends texts, or a file")


def _from_parts(body: bytes, content_type: bytes) -> Sent:
    """Return the fields of a form in parts, as browsers send them when there may be a file."""
    named = BOUNDARY.search(content_type)
    if named is None:
        raise bad("this form cannot be read")
    line = b"\r\n--" + (named[1] or named[2])
    _, *parts, last = (b"\r\n" + body).split(line, MOST_FIELDS + 1)
    if not last.startswith(b"--"):  # too many, or the end is missing
        raise bad("this form cannot be read")
    texts, file = {}, ""
    for part in parts:
        head, _, content = part.partition(b"\r\n\r\n")
        name = PART_NAME.search(head)
        if FILE_NAME.search(head):
            file = content.decode("utf-8-sig")
        elif name is not None:
            texts[name[1].decode()] = content.decode()
    return Sent(texts, file)
