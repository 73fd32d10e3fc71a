"""Labels that come later: they join the shards, or train a better prior where there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data import label_codes, row_source
from cumae.errors import InvalidData
from cumae.predictors.everlasting.prior import Prior
from cumae.predictors.queries import QueryReader
from cumae.predictors.waiting import joined
from cumae.randomness import Source

ENOUGH = 2  # rows with labels for each row of the prior, so that a new one is surely better


@claim("LABELLED", "PRIOR")
@dataclass(frozen=True, repr=False)  # a message must not show rows
class LabelledRows:
    """Rows with labels that train a prior, and nothing else.

    Parameters
    ----------
    rows : array, or None
        The rows, as queries are kept; None if there are none.
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

    def train(self, prior: Prior, reader: QueryReader, source: Source) -> Prior:
        """Return a prior of the same kind that learnt from these rows alone.

        If it is broken off, it may be repeated: nobody has seen anything of it.
        """
        fitted = prior.unfitted_copy()
        fitted.learn(reader.unpacked(self.rows), self.labels, source)
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
def enough(labelled: LabelledRows, prior: Prior | None) -> bool:
    """Tell whether labelled rows train a better prior than there is, by counts alone."""
    return prior is not None and 0 < ENOUGH * prior.n_rows <= len(labelled)


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
