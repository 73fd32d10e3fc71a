"""A cipher that hides all but lengths, names that are drawn, and releases that are held fixed."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidTag

from cumae.checks.observables import Sight
from cumae.predictors.everlasting.prior import Prior
from cumae.predictors.ids import ID_BYTES, KEY_BYTES, HiddenIds
from cumae.predictors.release.offline import Offline
from cumae.randomness import SeededSource, SystemSource
from cumae.store import keys, opening, pieces, sealed, writer

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

TAG_BYTES = 16
# A short life sees what comes late: merged pieces, whole states, checkpoints, several parts.
SOONER: list[tuple[Any, str, int]] = [
    (writer, "MERGE", 4),
    (writer, "CHECKPOINT", 12),
    (opening, "MERGE", 1),
    (sealed, "CHUNK", 2_048),
    (pieces, "PIECE", 2_048),
    (pieces, "LEAST_PIECE_BYTES", 16),
    (writer, "SWEPT", 2),
]


class Coins:
    """Bytes that a seed decides; each call gives others."""

    def __init__(self, seed: int) -> None:
        self.seed, self.calls = seed, 0

    def __call__(self, count: int) -> bytes:
        self.calls += 1
        return hashlib.shake_256(f"{self.seed} {self.calls}".encode()).digest(count)


class Ideal:
    """What a life has instead of AES-GCM, HMAC and the operating system's generator.

    Parameters
    ----------
    seen : list of Sight
        Where lengths of what is encrypted are written down, in order.
    seed : int
        Of the coins of predictors, which are private.
    """

    def __init__(self, seen: list[Sight], seed: int) -> None:
        self.seen, self.noise = seen, SeededSource(seed)
        self.coins, self.others = Coins(1), Coins(2)
        self.contents: dict[bytes, tuple[bytes, bytes]] = {}
        self.plain: list[bytes] = []  # in the order of the sights, to explain a difference
        self.names: dict[tuple[int, bytes], bytes] = {}

    def apply(self, patch: pytest.MonkeyPatch, *, real_cipher: bool = False) -> None:
        """Let the store use it; or the real cipher, with the same coins for all else."""
        ideal, noise = self, self.noise

        class Cipher:
            def __init__(self, key: bytes) -> None:
                del key

            def encrypt(self, nonce: bytes, content: bytes, bound: bytes) -> bytes:
                return ideal.encrypt(nonce, content, bound)

            def decrypt(self, nonce: bytes, hidden: bytes, bound: bytes) -> bytes:
                known = ideal.contents.get(nonce + hidden)
                if known is None or known[0] != bound:
                    raise InvalidTag
                return known[1]

        if not real_cipher:
            patch.setattr(sealed, "aead", SimpleNamespace(AESGCM=Cipher))
        patch.setattr(sealed.Seal, "name_of", lambda seal, name: ideal.name(seal.epoch, name))
        patch.setattr(os, "urandom", self._for_the_store(os.urandom))
        patch.setattr(secrets, "token_hex", self._for_the_store(secrets.token_hex, hexed=True))
        patch.setattr(HiddenIds, "draw", classmethod(lambda cls, _: cls(Coins(4)(KEY_BYTES))))
        for module, name, small in SOONER:
            patch.setattr(module, name, small)
        patch.setattr(keys, "TRIES", 1)  # a lock that is taken stays so
        patch.setattr(SystemSource, "words", lambda _, count: noise.words(count))

    def _for_the_store(self, real: Any, *, hexed: bool = False) -> Any:
        """Return what gives coins to the store, and to others what they had before."""

        def given(count: int) -> Any:
            if not sys._getframe(1).f_globals["__name__"].startswith("cumae.store"):
                return real(count)
            found = self.coins(count)
            return found.hex() if hexed else found

        return given

    def encrypt(self, nonce: bytes, content: bytes, bound: bytes) -> bytes:
        """Return coins; how many tells the length, and nothing tells anything else."""
        hidden = self.others(len(content) + TAG_BYTES)
        self.contents[nonce + hidden] = (bound, bytes(content))
        self.seen.append(Sight(f"what is sealed as {bound.decode()}", len(hidden)))
        self.plain.append(bytes(content))
        return hidden

    def name(self, epoch: int, name: bytes) -> bytes:
        """Return a name for a request: coins, the same ones for the same request."""
        place = (epoch, name)
        if place not in self.names:
            self.names[place] = Coins(-1 - len(self.names))(ID_BYTES)
        return self.names[place]


class Published:
    """Releases that are the same in all worlds: those of the first one.

    The prior, the trust in votes and a hypothesis that answers everything are published. They
    follow from private rows, and pay for that; so their lengths may follow from them, too.
    """

    def __init__(self) -> None:
        self.released: list[Any] = []
        self.place = 0

    def again(self) -> None:
        """Begin another world."""
        self.place = 0

    def _fixed(self, made: Callable[[], Any]) -> Any:
        if self.place == len(self.released):
            self.released.append(made())
        self.place += 1
        return self.released[self.place - 1]

    def apply(self, patch: pytest.MonkeyPatch) -> None:
        """Hold releases of predictors fixed."""
        learn, trust, draw = Prior._fit, Prior.choose_trust, Offline.draw

        def learnt(prior: Any, table: Any, labels: Any, source: Any) -> None:
            def made() -> Any:
                learn(prior, table, labels, source)
                return prior.learner

            prior.learner = self._fixed(made)
            prior.n_rows = len(labels)

        patch.setattr(Prior, "_fit", learnt)
        patch.setattr(Prior, "choose_trust", lambda *given: self._fixed(lambda: trust(*given)))
        patch.setattr(Offline, "draw", lambda *given: self._fixed(lambda: draw(*given)))


def explained(one: list[bytes], other: list[bytes]) -> str:
    """Return which part of the first content that has another length differs, for people."""
    for here, there in zip(one, other, strict=False):
        if len(here) != len(there):
            lines = [content.partition(b"\n")[0] for content in (here, there)]
            try:
                return _part(*map(json.loads, lines)) or "of arrays of the same kinds"
            except ValueError:
                return "of contents that are no facts"
    return ""


def _part(one: Any, other: Any, name: str = "") -> str:
    """Return the first part of plain values that is written with another length."""
    if isinstance(one, dict) and isinstance(other, dict) and list(one) == list(other):
        pairs: Any = [(one[key], other[key], f"{name}/{key}") for key in one]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(*pair, f"{name}/{place}") for place, pair in enumerate(zip(one, other))]  # noqa: B905 - as long
    else:
        here, there = json.dumps(one), json.dumps(other)
        differ = len(here) != len(there) or ("$" in here + there and here != there)
        return (
            f"{name}: {here[:60]} and {there[:60]}" if differ or _shapes(one, other, name) else ""
        )
    return next(filter(None, (_part(*pair) for pair in pairs)), "")


def _shapes(one: Any, other: Any, name: str) -> bool:
    """Tell whether these are lengths of arrays, in which one digit matters."""
    return "$" in name and one != other
