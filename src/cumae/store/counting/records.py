"""How records are put together, and how a state is made of a snapshot and what was recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cumae.claims import claim
from cumae.errors import StoreFailed
from cumae.predictors.state import State
from cumae.predictors.waiting import joined
from cumae.store.counting.base import ANSWERED, Counting, Record
from cumae.store.counting.kinds import counting_of
from cumae.store.homes.home import Blob
from cumae.store.sealed import HEAD, Seal, arrays_from_bytes, from_bytes


@claim("STORE")
def answered_again(counting: Counting, record: Record) -> None:
    """Do again what a record of answers says."""
    counting.grow(record["grown"])
    if record["counts"]:
        counting.set_counts(record["counts"])
    counting.state.answered += record["count"]


def merged(records: Sequence[Record]) -> Record:
    """Return one record of answers that does what these do, one after the other."""
    if len(records) == 1:
        return records[0]
    grown: dict[str, Any] = {}
    for name in dict.fromkeys(name for record in records for name in record["grown"]):
        parts = [record["grown"][name] for record in records if name in record["grown"]]
        grown[name] = parts[0] if name == "at" else joined(parts)
    count = sum(record["count"] for record in records)
    counts = [record["counts"] for record in records if record["counts"]]
    return {"count": count, "counts": counts[-1] if counts else {}, "grown": grown}


@claim("STORE", "REPLICAS")
def rebuilt(seal: Seal, blobs: list[Blob], estimator: Any) -> Counting:
    """Return a state, with its counters, from all of its pieces.

    Parameters
    ----------
    seal : Seal
        Of their epoch.
    blobs : list of Blob
        A snapshot, and what was recorded since.
    estimator : object
        As in ``cumae.open``.
    """
    whole = arrays_from_bytes(seal.open(blobs[0].parts, blobs[0].kind, blobs[0].number))
    head = whole.pop(HEAD, None)
    counting = counting_of(State.from_arrays(whole, estimator))
    counting.head = None if head is None else head.tobytes()
    replay(counting, seal, blobs[1:], blobs[0].number)
    return counting


@claim("STORE", "REPLICAS")
def replay(
    counting: Counting, seal: Seal, blobs: list[Blob], before: int
) -> list[tuple[str, int, int, Record]]:
    """Apply to a state what was recorded after a piece of it; return the records.

    Parameters
    ----------
    counting : Counting
        Holds the state, and changes it.
    seal : Seal
        Of the epoch of these pieces.
    blobs : list of Blob
        The pieces, in order.
    before : int
        Number of the piece that they follow.

    Returns
    -------
    list of tuples
        For each piece its kind, the number of the one before it, its own number, and its record.
    """
    done = []
    for blob in blobs:
        record = from_bytes(seal.open(blob.parts, blob.kind, blob.number))
        if record.pop("after") != before:
            raise StoreFailed("a part of the file is missing; it was damaged or edited.")
        head = record.pop(HEAD, None)
        counting.head = None if head is None else head.tobytes()
        _apply(counting, blob.kind, record)
        done.append((blob.kind, before, blob.number, record))
        before = blob.number
    return done


def _apply(counting: Counting, kind: str, record: Record) -> None:
    state = counting.state
    if kind == ANSWERED:
        answered_again(counting, record)
    elif kind == "supplied":
        state.waiting.append(record["rows"])
    elif kind == "labelled":
        state.labelled.append((record["rows"], record["weights"]))
        state.admission.seen.update(record["users"].tolist() if "users" in record else [])
    else:
        state.label_requests(record["requests"].tolist(), record["weights"])
