"""Who looks at pages: a signed cookie, and tokens that every form carries.

The cookie names a key, never its secret, and ends after some hours, with the server, or when the
key is revoked. Somebody without a key gets one as well: tokens of forms belong to a browser.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Callable
from typing import NamedTuple

from cumae.randomness import SYSTEM, Source
from cumae.serve.errors import Refused

SECONDS = 8 * 3_600  # of a session
WORDS = 4  # of 64 bits, of the secret of this process
COOKIE = re.compile(r"([0-9a-f]{12}|-)\.(\d{1,12})\.([0-9a-f]{32})\.([0-9a-f]{64})")
NOBODY = "-"
STALE = "this form is out of date, or was sent by another page; load it again and send it once more"
Headers = dict[bytes, bytes]


class Session(NamedTuple):
    """One browser.

    Parameters
    ----------
    key : str
        The public name of the key by which somebody signed in; ``NOBODY`` for none.
    until : int
        The second at which it ends.
    nonce : str
        What makes it different from all others.
    """

    key: str
    until: int
    nonce: str

    @property
    def is_signed_in(self) -> bool:
        """True if somebody gave a key."""
        return self.key != NOBODY


class Sessions:
    """Makes and checks cookies and tokens; nothing is kept but one secret.

    Parameters
    ----------
    source : Source
        Where random numbers come from.
    clock : callable
        Returns the time in seconds.
    """

    def __init__(self, source: Source = SYSTEM, clock: Callable[[], float] = time.time) -> None:
        self._source, self._clock = source, clock
        self._secret = source.words(WORDS).tobytes()
        self._ended: dict[str, int] = {}  # sessions that somebody ended before their time

    def read(self, headers: Headers, *, secure: bool) -> Session | None:
        """Return the session of a request; None if there is none that is valid.

        Parameters
        ----------
        headers : dict of bytes to bytes
            Headers of the request.
        secure : bool
            Whether it came by TLS.
        """
        name = _name(secure=secure)
        for pair in headers.get(b"cookie", b"").decode("latin-1").split(";"):
            here, _, value = pair.strip().partition("=")
            match = COOKIE.fullmatch(value) if here == name else None
            if match is None:
                continue
            found = Session(match[1], int(match[2]), match[3])
            if hmac.compare_digest(self._mac("cookie", found), match[4]):
                is_over = self._clock() >= found.until or found.nonce in self._ended
                return None if is_over else found
        return None

    def new(self, key: str = NOBODY) -> Session:
        """Return a new session."""
        return Session(key, int(self._clock()) + SECONDS, self.name())

    def end(self, session: Session) -> None:
        """End a session that was signed in, also for whoever has a copy of its cookie."""
        now = self._clock()
        self._ended = {nonce: until for nonce, until in self._ended.items() if until > now}
        self._ended[session.nonce] = session.until

    def name(self) -> str:
        """Return a name that nothing else has."""
        return self._source.words(2).tobytes().hex()

    def cookie(self, session: Session | None, *, secure: bool) -> tuple[bytes, bytes]:
        """Return the header that gives a browser a session, or takes it away.

        Parameters
        ----------
        session : Session, or None
            The session; None to end it.
        secure : bool
            Whether the request came by TLS.
        """
        value, age = "", 0
        if session is not None:
            mac = self._mac("cookie", session)
            value, age = f"{session.key}.{session.until}.{session.nonce}.{mac}", SECONDS
        more = "; Secure" if secure else ""
        cookie = f"{_name(secure=secure)}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict"
        return b"set-cookie", f"{cookie}{more}".encode()

    def token(self, session: Session) -> str:
        """Return what every form of a session carries."""
        return self._mac("form", session)

    def check(self, session: Session | None, headers: Headers, token: str) -> None:
        """Refuse a form that does not come from a page of this session.

        Parameters
        ----------
        session : Session, or None
            The session of the request.
        headers : dict of bytes to bytes
            Headers of the request.
        token : str
            What the form carried.
        """
        good = session is not None and hmac.compare_digest(
            self.token(session).encode(), token.encode()
        )
        if not good or not is_from_here(headers):
            raise Refused(403, "stale_form", STALE)

    def _mac(self, what: str, session: Session) -> str:
        content = f"{what}\0{session.key}\0{session.until}\0{session.nonce}".encode()
        return hmac.new(self._secret, content, hashlib.sha256).hexdigest()


def is_from_here(headers: Headers) -> bool:
    """Tell whether a request comes from a page of this server, or a browser says nothing of it."""
    if headers.get(b"sec-fetch-site", b"none") not in (b"same-origin", b"none"):
        return False
    origin = headers.get(b"origin")
    if origin is None:
        return True
    return _bare(origin.partition(b"://")[2]) == _bare(headers.get(b"host", b""))


def _bare(host: bytes) -> bytes:
    """Return a host without its port, which proxies leave out."""
    return re.sub(rb":\d+$", b"", host.lower())


def _name(*, secure: bool) -> str:
    return "__Host-cumae" if secure else "cumae"
