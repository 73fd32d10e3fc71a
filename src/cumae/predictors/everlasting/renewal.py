"""Labels that come later: they join the shards, or train a better prior where there is one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data import label_codes, row_source
from cumae.errors import InvalidData, InvalidParameter, listed, shown
from cumae.predictors.everlasting.prior import Prior
from cumae.predictors.waiting import joined
from cumae.randomness import Source

if TYPE_CHECKING:
    from cumae.predictors.everlasting.state import EverlastingState

ENOUGH = 2  # rows with labels for each row of the prior, so that a new one is surely better


@claim("LABELLED", "PRIOR")
@dataclass(frozen=True, repr=False)  # a message must not show rows
class LabelledRows:
    """Rows with labels that train a prior, and nothing else.

    Parameters
    ----------
    rows : array or DataFrame, or None
        The rows, in the form in which queries come; None if there are none.
    labels : array of int
        Places of their labels in the classes.
    """

    rows: Any
    labels: Integers

    @classmethod
    def of(cls, parts: list[tuple[Any, Integers]]) -> Self:
        """Join tables of rows with their weights, the largest of which is the label's."""
        labels = [np.argmax(weights, axis=1) for _, weights in parts if len(weights)]
        rows = joined([rows for rows, weights in parts if len(weights)])
        return cls(rows, np.concatenate([np.zeros(0, dtype=np.int64), *labels]))

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.labels)

    def and_also(self, parts: list[tuple[Any, Integers]]) -> LabelledRows:
        """Return these rows and others."""
        others = LabelledRows.of(parts)
        tables = [rows for rows in (self.rows, others.rows) if rows is not None]
        return LabelledRows(joined(tables), np.concatenate([self.labels, others.labels]))

    def train(self, prior: Prior, source: Source) -> Prior:
        """Return a prior of the same kind that learnt from these rows alone.

        If it is broken off, it may be repeated: nobody has seen anything of it.
        """
        fitted = prior.unfitted_copy()
        fitted.learn(self.rows, self.labels, source)
        return fitted

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing."""
        return {"rows": self.rows, "labels": self.labels}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Self:
        """Rebuild what ``to_facts`` returned."""
        return cls(facts["rows"], facts["labels"])


NO_ROWS = LabelledRows(None, np.zeros(0, dtype=np.int64))


@claim("LABELLED", "PRIOR")
def with_labels(
    state: EverlastingState, rows: Any, weights: Integers
) -> tuple[Any, Integers, LabelledRows]:
    """Return rows and weights for the shards of the next phase, and the rows for a new prior.

    Without a prior that can be renewed, labelled rows join the shards. With one, each labelled row
    waits for the next prior. A labelled query leaves a stand-in without weight in its place then,
    so that what it holds is in one part only, and no count changes.

    Parameters
    ----------
    state : EverlastingState
        It has the labelled rows.
    rows : array or DataFrame
        Queries or supplied rows that become the rows of the next phase.
    weights : array of int
        Their weights.
    """
    if not state.renews:
        rows = joined([rows, *(more for more, _ in state.labelled.parts)])
        full = [more * state.full_weight for _, more in state.labelled.parts]
        return rows, np.concatenate([weights, *full]), NO_ROWS
    told = np.array(sorted(state.kept.told), dtype=np.int64)
    asked = (row_source(rows).take(told), weights[told])
    found = state.for_prior.and_also([asked, *state.labelled.parts])
    places, weights = np.arange(len(weights)), weights.copy()
    places[told], weights[told] = len(weights), 0
    rows = row_source(joined([rows, state.fitted.reader.stand_in])).take(places)
    return rows, weights, found


@claim("LABELLED", "PRIOR")
def enough(labelled: LabelledRows, prior: Prior | None) -> bool:
    """Tell whether labelled rows train a better prior than there is, by counts alone."""
    return prior is not None and 0 < ENOUGH * prior.n_rows <= len(labelled)


# Labels that people tell


@claim("LABELLED")
def check_new(names: list[Any], state: EverlastingState) -> None:
    """Refuse ids of queries that name two of them; ids alone decide."""
    if not state.rows_from.keeps_queries:
        raise InvalidParameter("query_ids have no meaning with fresh=True, which keeps no queries.")
    hidden = set(map(state.hide, names))
    if len(hidden) < len(names) or state.query_places.keys() & hidden:
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


@claim("LABELLED")
def declared_labels(y: ArrayLike, count: int, classes: Any) -> Integers:
    """Return places of labels in the declared classes; refuse the call if one is none of them."""
    codes = label_codes(row_source(np.zeros((count, 1))), y, classes)
    wrong = np.flatnonzero(codes < 0)
    if len(wrong):
        raise InvalidData(
            f"y has {len(wrong)} labels that are none of classes={tuple(classes)!r}, the first in "
            f"row {int(wrong[0])}; mend them, or leave their rows out. Nothing was kept."
        )
    return codes
