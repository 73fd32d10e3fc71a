"""States that older versions stored, in the form that they have now.

Formats 1 to 3 held live mechanisms where there are rules and counters now, ids of queries in clear,
and rows of a memo as they were. Their records were no events. Such a state is read once: opening it
writes it anew as a whole, under a new key. Those of format 4 are read here as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cumae.claims import claim
from cumae.codec import from_bytes
from cumae.errors import StoreFailed
from cumae.mechanisms import Spent
from cumae.predictors.answering.events import Answered, Event, Labelled, LabelsArrived, Supplied
from cumae.predictors.ids import HiddenIds, as_rows
from cumae.predictors.state import State, broken_arrays
from cumae.store.homes.home import Blob
from cumae.store.older.forms import arrays_from_bytes, record_from_bytes, unpack
from cumae.store.older.fourth import FOURTH_WHOLE, upgraded_event, upgraded_state
from cumae.store.pieces import HEAD, opened_pieces
from cumae.store.sealed import Seal

WHOLES = ("snapshot", FOURTH_WHOLE)  # what a whole state was called
NOTHING = np.zeros(0, dtype=np.int64)
Facts = dict[str, Any]


@claim("STORE", "REPLICAS")
def rebuilt(
    blobs: list[Blob], kind: str, seal: Seal, estimator: Any, secret: bytes
) -> tuple[State, bytes | None]:
    """Return a state that an older version stored, and the ledger entry that its last piece names.

    That is None for formats 1 and 2, which named none.

    Parameters
    ----------
    blobs : list of Blob
        A whole state, and the records since. Events may follow them, if the file was opened by this
        version, and that was broken off before it was written anew.
    kind : str
        Class of the predictor.
    seal : Seal
        Of their epoch.
    estimator : object
        As in ``cumae.open``.
    secret : bytes
        The key under which ids are hidden.
    """
    first, hide = blobs[0], HiddenIds(secret)
    content = seal.open(first.parts, first.kind, first.number)
    if first.kind == FOURTH_WHOLE:
        facts = from_bytes(content)
        head = facts.pop(HEAD)
    else:
        facts, head = _facts_before_4(content, hide)
    state = upgraded_state(kind, {**facts, "secret": secret}, estimator)
    before, last = first.number, None if head is None else head.tobytes()
    for blob in blobs[1:]:
        if blob.kind.isdigit():
            ((piece, last),) = opened_pieces([blob], before, seal)
            event: Event = piece.event
        else:
            record = record_from_bytes(seal.open(blob.parts, blob.kind, blob.number))
            if record.pop("after") != before:
                raise StoreFailed("a part of the file is missing; it was damaged or edited.")
            named = record.pop(HEAD, None)
            last = None if named is None else named.tobytes()
            with broken_arrays():
                event = _event(blob.kind, record, state, hide)
        upgraded_event(event, state).apply(state)
        before = blob.number
    return state, last


def _facts_before_4(content: bytes, hide: HiddenIds) -> tuple[Facts, Any]:
    """Return the facts of a state of formats 1 to 3 as format 4 has them, and its ledger entry."""
    arrays = arrays_from_bytes(content)
    head = arrays.pop(HEAD, None)
    facts = unpack(arrays)
    with broken_arrays():
        made = UPGRADES[facts["kind"]](facts["state"], hide)
        return {**facts["state"], **made}, head


def _event(kind: str, record: Facts, state: Any, hide: HiddenIds) -> Event:
    """Return what a record of an older version says, as an event."""
    if kind == "answered":
        return _answered(record, state, hide)
    if kind == "supplied":
        return Supplied(state.waiting.end, record["rows"])
    if kind == "labelled":
        users = as_rows(record["users"].tolist()) if "users" in record else None
        rows, weights = record["rows"], record["weights"]
        return Labelled(len(weights), state.labelled.n_rows, rows, weights, users)
    places = [state.query_places[hide(name)] for name in record["requests"].tolist()]
    return LabelsArrived(np.array(places, dtype=np.int64), record["weights"])


def _answered(record: Facts, state: Any, hide: HiddenIds) -> Answered:
    grown, spent = record["grown"], state.spent
    if record["counts"]:
        spent = _spent_of(record["counts"], state)
    kept: Facts = {name: grown[name] for name in ("rows", "weights") if name in grown}
    if "at" in grown:
        kept["at"] = grown["at"][0]
    elif "rows" in grown:
        kept["at"] = state.kept.n_rows
    for name in ("users", "clients"):
        if name in grown:
            kept[name] = as_rows(grown[name].tolist())
    if "offered" in grown:
        kept["offered"] = grown["offered"]
    if "names" in grown:
        kept["query_ids"] = as_rows(map(hide, grown["names"].tolist()))
        kept["places"] = grown["places"]
    if "asked" in grown:
        kept["keys"] = as_rows(map(hide.row, grown["asked"].tolist()))
        kept["noisy"] = grown["memo"]
    count = record["count"]
    return Answered(count, state.answered + count, spent, **kept)


def _spent_of(counts: Facts, state: Any) -> Spent:
    """Return the counters that a record of an older version says."""
    most = state.rule.max_queries
    if "remaining" in counts:
        spent = Spent(most - counts["remaining"])
    else:
        spent = _mechanism(counts["mechanism"], most)[1]
    for name in ("first", "asked"):  # where the predictor counted as well
        if name in counts:
            spent = spent._replace(asked=counts[name])
    return spent


# Whole states. Each returns the facts that are not as they were.


def _mechanism(facts: Facts, most: int = 0) -> tuple[Facts, Spent]:
    """Return a live mechanism of an older version as a rule and its counters.

    ``most`` is the number of answers, where the mechanism did not count them.
    """
    kind = facts["kind"]
    if kind == "NoisyMajority":
        rule = _named("Majority", facts, "noise", "n_classes", "max_queries")
        return rule, Spent(facts["max_queries"] - facts["remaining"])
    if kind == "StabilityTest":
        names = ("epsilon", "threshold", "max_queries", "max_unstable")
        rule = _named("Stability", facts, *names)
        asked = facts["max_queries"] - facts["queries_remaining"]
        unclear = facts["max_unstable"] - facts["unstable_remaining"]
        return rule, Spent(asked, unclear, facts["threshold_noise"])
    if kind == "BetweenAnswers":
        rule, spent = _mechanism(facts["sides"], facts["max_queries"])
        return rule, spent._replace(asked=facts["asked"])
    rule = _named("Between", facts, "lower", "upper", "epsilon", "max_between")
    spent = Spent(0, facts["max_between"] - facts["remaining"], facts["threshold_noise"])
    return {**rule, "max_queries": most}, spent


def _named(kind: str, facts: Facts, *names: str) -> Facts:
    return {"kind": kind, **{name: facts[name] for name in names}}


def _waiting(rows: Any) -> Facts:
    return {"first": 0, "rows": rows}


def _everlasting(facts: Facts, hide: HiddenIds) -> Facts:
    phase, admission = facts["phase"], facts["admission"]
    rule, spent = _mechanism(phase["majority"])
    return {
        "phase": {
            **phase,
            "majority": rule,
            "keys": as_rows(map(hide.row, phase["asked"].tolist())),
            "noisy": phase["memo"],
        },
        "spent": spent.to_array(),
        "admission": {
            "one_per_user": admission["one_per_user"],
            "cap": admission["cap"],
            "seen": as_rows(admission["seen"].tolist()),
            "clients": as_rows(admission["clients"].tolist()),
            "offered": admission["counts"],
        },
        "kept": {"rows": facts["kept"], "weights": facts["weights"], "told": facts["told"]},
        "waiting": _waiting(facts["waiting"]),
        "labelled": {"rows": facts["labelled"], "weights": facts["labels"], "told": NOTHING},
        "query_ids": as_rows(map(hide, facts["requests"].tolist())),
    }


def _bbl(facts: Facts, _: HiddenIds) -> Facts:
    phase = facts["phase"]
    rule, spent = _mechanism(phase["votes"], phase["sizes"]["answers"])
    return {
        "phase": {**phase, "votes": rule},
        "spent": spent._replace(asked=phase["asked"]).to_array(),
        "waiting": _waiting(facts["waiting"]),
    }


def _voting(voting: Facts | None) -> tuple[Facts | None, Spent]:
    if voting is None:
        return None, Spent()
    rule, spent = _mechanism(voting["answers"])
    return {**voting, "rule": rule}, spent


def _release(facts: Facts, _: HiddenIds) -> Facts:
    voting, spent = _voting(facts["voting"])
    return {"voting": voting, "spent": spent.to_array()}


def _universal(facts: Facts, _: HiddenIds) -> Facts:
    first = facts["first"]
    voting, spent = _voting(first["voting"])
    rows = first["queries"] if len(first["queries"]) else None
    shares = None if rows is None else first["shares"]
    return {
        "n_first": first["count"],
        "voting": voting,
        "kept": {"rows": rows, "weights": shares, "told": NOTHING},
        "spent": spent._replace(asked=first["asked"]).to_array(),
    }


UPGRADES = {
    "EverlastingPredictor": _everlasting,
    "GenericBBL": _bbl,
    "QueryRelease": _release,
    "AgnosticQueryRelease": _release,
    "UniversalQueryRelease": _universal,
}
