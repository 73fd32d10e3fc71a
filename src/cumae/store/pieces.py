"""Pieces of a state: a whole one, and the events since, encrypted under the key of their epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from cumae.claims import claim
from cumae.codec import from_bytes, to_bytes
from cumae.errors import StoreFailed
from cumae.predictors.answering.events import EVENTS, Entered, Event, Whole
from cumae.predictors.state import State, broken_arrays, state_of
from cumae.store.homes.home import Blob
from cumae.store.sealed import PIECE, Seal

WHOLE = "state"  # the kind of piece that holds a whole state; older ones have other names
AFTER, HEAD = "$after", "$head"  # the piece before it, and the hash of its ledger entry
AHEAD = "ahead"  # the kind of what is written before the epoch that it belongs to
# The key of that epoch, instead of all that was written ahead; in files of format 5, instead of
# the models alone.
WRITTEN, MODELS_WRITTEN = "$written", "$ahead"
LEAST_PIECE_BYTES = 2**14  # bytes of a part that is written ahead


class Piece(NamedTuple):
    """An event, with its place in the chain of pieces.

    Parameters
    ----------
    before, number : int
        The number of the piece before it, and its own.
    event : Event
        What it holds.
    """

    before: int
    number: int
    event: Event


class AheadParts(NamedTuple):
    """Parts of what is written ahead.

    Parameters
    ----------
    first : int
        The place of the first of them.
    n_parts : int
        How many there are in all.
    size : int
        Bytes of each but the last.
    content : bytes
        What they hold.
    """

    first: int
    n_parts: int
    size: int
    content: bytes


@claim("STORE")
class Ahead:
    """All that grows with the rows of phases, which is written in parts beside the last answers.

    These are the models of the next phase, and what waited for later ones when it was frozen.

    Parameters
    ----------
    content : bytes
        All of it.
    left : int
        How many answers of the phase are left.
    """

    def __init__(self, content: bytes, left: int) -> None:
        wanted = max(1, min(left, -(-len(content) // LEAST_PIECE_BYTES)))
        self._content, self._size = content, -(-len(content) // wanted)
        self.count = -(-len(content) // self._size)
        self._given = 0  # how many are written, or handed over to be so

    def due(self, left: int) -> AheadParts | None:
        """Return those parts that must be written when so many answers are left; None for none.

        Each part is returned once.
        """
        first, stop = self._given, self.count - left
        if stop <= first:
            return None
        size, self._given = self._size, stop
        return AheadParts(first, self.count, size, self._content[first * size : stop * size])


def ahead_number(epoch: int, key: str) -> int:
    """Return the number of what is written ahead: one for each attempt to begin an epoch."""
    return -(epoch << 32 | int(key, 16)) if key else 0


@claim("STORE")
def sealed_ahead(ahead: AheadParts, key: str, seal: Seal) -> Blob:
    """Encrypt parts that are written ahead, under the key of the epoch that will begin.

    Parameters
    ----------
    ahead : AheadParts
        The parts.
    key : str
        The name of the key.
    seal : Seal
        Of that epoch.
    """
    first, count, size, content = ahead
    parts = seal.close(content, AHEAD, key, size=size, first=first, count=count)
    return Blob(ahead_number(seal.epoch, key), seal.epoch, AHEAD, parts, first)


@claim("STORE")
def sealed_piece(piece: Piece, head: bytes, seal: Seal, ahead: str = "") -> Blob:
    """Encrypt a piece.

    It names the piece before it, so that none can be lost, and the ledger entry that it was written
    with, so that no other ledger fits.

    Parameters
    ----------
    piece : Piece
        What is encrypted.
    head : bytes
        Hash of the last ledger entry.
    seal : Seal
        Of the epoch.
    ahead : str
        The name of the key under which most of it was written ahead, if it was.
    """
    event, number = piece.event, piece.number
    whole = isinstance(event, Whole)
    if ahead and isinstance(event, Entered):
        facts = {**event.short_facts(), WRITTEN: ahead}
    else:
        facts = event.to_facts()
    facts[AFTER] = 0 if whole else piece.before
    facts[HEAD] = np.frombuffer(head, dtype=np.uint8)
    kind = WHOLE if whole else str(event.number)
    return Blob(number, seal.epoch, kind, seal.close(to_bytes(facts), kind, number, size=PIECE))


@claim("STORE", "REPLICAS")
def of_epoch(blobs: Iterable[Blob], epoch: int) -> list[Blob]:
    """Return pieces of an epoch: those of others are old, and belong to no state."""
    return [blob for blob in blobs if blob.epoch == epoch]


@claim("STORE", "REPLICAS")
def opened_pieces(blobs: Iterable[Blob], before: int, seal: Seal) -> list[tuple[Piece, bytes]]:
    """Return the pieces that follow one, with the hash of the ledger entry that each names.

    Parameters
    ----------
    blobs : iterable of Blob
        Pieces of events, in order.
    before : int
        Number of the piece that they follow.
    seal : Seal
        Of their epoch.
    """
    found = []
    for blob in blobs:
        facts = from_bytes(seal.open(blob.parts, blob.kind, blob.number))
        if facts.pop(AFTER) != before:
            raise StoreFailed("a part of the file is missing; it was damaged or edited.")
        head = facts.pop(HEAD).tobytes()
        event = EVENTS[int(blob.kind)].from_facts(facts)
        found.append((Piece(before, blob.number, event), head))
        before = blob.number
    return found


@claim("STORE", "REPLICAS")
def rebuilt(
    blobs: list[Blob],
    kind: str,
    seal: Seal,
    estimator: Any,
    secret: bytes,
    parts: Callable[[int], list[bytes]],
) -> tuple[State, list[Piece], bytes]:
    """Return a state from all of its pieces, these pieces, and the ledger entry of the last one.

    Parameters
    ----------
    blobs : list of Blob
        A whole state, and the events since.
    kind : str
        Class of the predictor.
    seal : Seal
        Of their epoch.
    estimator : object
        As in ``cumae.open``.
    secret : bytes
        The key under which ids are hidden.
    parts : callable
        Returns all parts of a piece, given its number (``Home.parts``).
    """
    first = blobs[0]
    facts = from_bytes(seal.open(first.parts, first.kind, first.number))
    models, key = facts.pop(MODELS_WRITTEN, ""), facts.pop(WRITTEN, "")
    if models or key:
        content = seal.open(parts(ahead_number(seal.epoch, models or key)), AHEAD, models or key)
        written = {"phase": {"packed": np.frombuffer(content, dtype=np.uint8)}}
        facts |= written if models else from_bytes(content)
    head, pieces = facts.pop(HEAD).tobytes(), []
    with broken_arrays():
        state = state_of(kind, {**facts, "secret": secret}, estimator)
    for piece, own in opened_pieces(blobs[1:], first.number, seal):
        piece.event.apply(state)
        pieces.append(piece)
        head = own
    return state, pieces, head
