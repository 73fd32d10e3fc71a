"""States of format 4, in the form that they have now.

Format 4 kept frames as they were, stored models in as many bytes as they took, and stored only
those queries of a GenericBBL that were drawn. Such a state is read once: opening it writes it anew,
under a new key. Models of a phase that had begun by then keep their arrays until the phase ends.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from cumae.claims import claim
from cumae.predictors.answering.events import Answered, Event, Labelled, Supplied
from cumae.predictors.queries import QueryReader
from cumae.predictors.records import TEXT_BYTES, short_texts
from cumae.predictors.state import State, broken_arrays, state_of

FOURTH_WHOLE = "whole"  # the kind of piece that held a whole state
TABLES = ("kept", "waiting", "labelled", "for_prior")  # parts of a state that hold rows
WITH_RECIPES = ("phase", "following", "voting")  # parts that may hold a recipe


@claim("STORE")
def upgraded_state(kind: str, facts: dict[str, Any], estimator: Any) -> State:
    """Return a state of format 4 or before, from its facts in the form of format 4."""
    with broken_arrays():
        reader = {**facts["fitted"]["reader"], "text_bytes": TEXT_BYTES}
        query_reader = QueryReader(**reader)

        def pack(rows: Any) -> Any:
            frame = isinstance(rows, pd.DataFrame)
            return query_reader.packed(short_texts(rows, TEXT_BYTES)) if frame else rows

        found = {**facts, "fitted": {**facts["fitted"], "reader": reader}}
        for name in TABLES:
            part = facts.get(name)
            if isinstance(part, dict):
                found[name] = {**part, "rows": pack(part["rows"])}
        for name in WITH_RECIPES:
            part = facts.get(name)
            if part is not None and part["recipe"] is not None:
                recipe = {**part["recipe"], "form": None, "text_bytes": TEXT_BYTES}
                if isinstance(recipe["rows"], pd.DataFrame):
                    recipe["rows"] = short_texts(recipe["rows"], TEXT_BYTES)
                found[name] = {**part, "recipe": recipe}
        following = facts.get("following")
        if following is not None and kind == "EverlastingPredictor":
            labelled = {**following["labelled"], "rows": pack(following["labelled"]["rows"])}
            given = {**following["recipe"], "rows": pack(following["recipe"]["rows"])}
            found["following"] = {**following, **given, "labelled": labelled}
        if "keys" in facts.get("phase", {}):
            found["memo"] = {name: facts["phase"][name] for name in ("keys", "noisy")}
        return state_of(kind, found, estimator)


@claim("STORE")
def upgraded_event(event: Event, state: Any) -> Event:
    """Return an event of format 4 or before, as it is now; ``state`` is the one before it."""
    if isinstance(event, Answered | Labelled | Supplied) and isinstance(event.rows, pd.DataFrame):
        rows = short_texts(event.rows, TEXT_BYTES)
        return replace(event, rows=state.fitted.reader.packed(rows))
    if isinstance(event, Answered) and state.kind == "GenericBBL" and event.rows is not None:
        return _placed(event, state)
    return event


def _placed(event: Answered, state: Any) -> Answered:
    """Put drawn queries at their places among all queries, with zeros at the others."""
    if event.spent is None:
        raise AssertionError("a phase of GenericBBL always counts")
    start, drawn = event.spent.asked - event.count, state.phase.kept.places
    rows = np.zeros((event.count, event.rows.shape[1]))
    rows[drawn[event.at : event.at + len(event.rows)] - start] = event.rows
    return replace(event, at=start, rows=rows)
