"""Pieces of a state: a whole one, and the events since, encrypted under the key of their epoch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from cumae.claims import claim
from cumae.codec import from_bytes, to_bytes
from cumae.errors import StoreFailed
from cumae.predictors.answering.events import EVENTS, Event, Whole
from cumae.predictors.state import State, broken_arrays, state_of
from cumae.store.homes.home import Blob
from cumae.store.sealed import Seal

WHOLE = "state"  # the kind of piece that holds a whole state; older ones have other names
AFTER, HEAD = "$after", "$head"  # the piece before it, and the hash of its ledger entry


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


@claim("STORE")
def sealed_piece(piece: Piece, head: bytes, seal: Seal) -> Blob:
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
    """
    event, number = piece.event, piece.number
    whole = isinstance(event, Whole)
    facts = event.to_facts()
    facts[AFTER] = 0 if whole else piece.before
    facts[HEAD] = np.frombuffer(head, dtype=np.uint8)
    kind = WHOLE if whole else str(event.number)
    return Blob(number, seal.epoch, kind, seal.close(to_bytes(facts), kind, number))


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
    blobs: list[Blob], kind: str, seal: Seal, estimator: Any, secret: bytes
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
    """
    first = blobs[0]
    facts = from_bytes(seal.open(first.parts, first.kind, first.number))
    head, pieces = facts.pop(HEAD).tobytes(), []
    with broken_arrays():
        state = state_of(kind, {**facts, "secret": secret}, estimator)
    for piece, own in opened_pieces(blobs[1:], first.number, seal):
        piece.event.apply(state)
        pieces.append(piece)
        head = own
    return state, pieces, head
