"""Ids of queries, by which labels that come later find them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.errors import InvalidParameter, listed, shown
from cumae.predictors.everlasting.state import EverlastingState


@claim("LABELLED")
def check_new(hidden: Sequence[bytes | None], state: EverlastingState) -> None:
    """Refuse hidden ids of queries that name two of them; ids alone decide."""
    if not state.rows_from.keeps_queries:
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
    told = [f"ids that no waiting query has: {listed(strange)}"] * bool(strange)
    told += [f"ids that are given twice: {listed(twice)}"] * bool(twice)
    raise InvalidParameter(
        f"query_ids have {'; and '.join(told)}. Nothing was changed. A query waits if it had an "
        "id, was kept, and has not become a row of the next phase yet."
    )
