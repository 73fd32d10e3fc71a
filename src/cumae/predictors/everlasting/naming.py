"""Ids that come with queries: of whom rows are admitted, and which query a later label is for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.errors import InvalidParameter, listed, shown
from cumae.predictors.answering.calls import Asked
from cumae.predictors.everlasting.state import EverlastingState
from cumae.predictors.ids import as_rows


@claim("LABELLED")
def check_new(hidden: Sequence[bytes | None], state: EverlastingState) -> None:
    """Refuse hidden ids of queries that name two of them; ids alone decide."""
    if not state.next_phase_rows.keeps_queries:
        raise InvalidParameter("query_ids have no meaning with fresh=True, which keeps no queries.")
    if len(set(hidden)) < len(hidden) or not state.query_places.keys().isdisjoint(hidden):
        raise InvalidParameter(
            "query_ids have an id that names another query, too, here or in an earlier call; give "
            "each its own."
        )


@claim("LABELLED")
def places_of(names: list[Any], state: EverlastingState) -> Integers:
    """Return the places of queries that wait, by their ids.

    Ids that name no such query, or one of them twice, are refused; ids and counts decide.
    """
    counts = Counter(names)
    strange = [shown(name) for name in counts if state.hide(name) not in state.query_places]
    twice = [shown(name) for name in counts if counts[name] > 1]
    if not strange and not twice:
        places = [state.query_places[state.hide(name)] for name in names]
        return np.array(places, dtype=np.int64)
    problems = [f"ids that no waiting query has: {listed(strange)}"] * bool(strange)
    problems += [f"ids that are given twice: {listed(twice)}"] * bool(twice)
    raise InvalidParameter(
        f"query_ids have {'; and '.join(problems)}. Nothing was changed. A query waits if it had "
        "an id, was kept, and has not become a row of the next phase yet."
    )


@claim("USER", "LABELLED")
def admitted_part(kept: dict[str, Any], part: Asked, state: EverlastingState) -> dict[str, Any]:
    """Return what an event keeps of queries: those rows that the ids admit, and the ids.

    Parameters
    ----------
    kept : dict
        What it would keep of all of them.
    part : Asked
        The queries, with who asks them.
    state : EverlastingState
        The state before them.
    """
    admitted = state.admission.decide(len(part.rows), part.users, part.clients)
    mask, at = admitted.kept, kept["at"]
    found = {"at": at, "rows": kept["rows"][mask], "weights": kept["weights"][mask]}
    if admitted.users is not None:
        found["users"] = as_rows(admitted.users)
    if admitted.offered is not None:
        found["clients"] = as_rows(admitted.offered)
        found["offered"] = np.array(list(admitted.offered.values()), dtype=np.int64)
    if part.query_ids is not None and part.usable is not None:
        given = enumerate(part.query_ids)
        named = {place: name for place, name in given if mask[place] and name is not None}
        numbers = np.array(list(named), dtype=np.int64)
        places = at + np.cumsum(mask)[numbers] - 1
        found["query_ids"] = as_rows(named.values())
        found["places"] = np.where(part.usable[numbers], places, ~places)
    return found
