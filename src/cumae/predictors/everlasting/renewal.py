"""Labels that come later: they join the shards, or train a better prior where there is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cumae.arrays import Integers
from cumae.claims import claim
from cumae.data import label_codes, row_source
from cumae.errors import InvalidData
from cumae.predictors.everlasting.prior import Prior
from cumae.predictors.queries import QueryReader
from cumae.predictors.waiting import KeptRows, joined
from cumae.randomness import Source

ENOUGH = 2  # rows with labels for each row of the prior, so that a new one is surely better


@claim("LABELLED", "PRIOR")
class LabelledRows:
    """Rows with labels that train a prior, and nothing else.

    Parameters
    ----------
    rows : array, or None
        The rows, as queries are kept; None if there are none.
    labels : array of int
        Places of their labels in the classes.
    """

    def __init__(self, rows: Any, labels: Integers) -> None:
        self._count, self._table = len(labels), (rows, labels)
        self._join: Callable[[], tuple[Any, Integers]] | None = None  # what makes the table

    def __len__(self) -> int:
        """Return how many rows there are."""
        return self._count

    @property
    def table(self) -> tuple[Any, Integers]:
        """The rows and their labels, which are joined by whoever asks first."""
        join = self._join
        if join is not None:
            self._table = join()
            self._join = None  # and with it all that is not needed any more
        return self._table

    def and_also(self, kept: KeptRows, labelled: KeptRows) -> LabelledRows:
        """Return these rows and others, which are not joined yet; nothing comes to them later.

        Parameters
        ----------
        kept : KeptRows
            Queries, of which some got a label.
        labelled : KeptRows
            Rows that came with a label.
        """

        def join() -> tuple[Any, Integers]:
            places = sorted(kept.labelled_places)
            parts = [kept.at(places)] * bool(places) + labelled.parts
            parts = [(rows, np.argmax(weights, axis=1)) for rows, weights in parts if len(weights)]
            known, labels = self.table
            tables = [known] * (known is not None) + [rows for rows, _ in parts]
            return joined(tables), np.concatenate([labels, *[own for _, own in parts]])

        found = LabelledRows(None, NO_LABELS)
        found._count = len(self) + len(kept.labelled_places) + labelled.n_rows
        found._join = join
        return found

    def train(self, prior: Prior, reader: QueryReader, source: Source) -> Prior:
        """Return a prior of the same kind that learnt from these rows alone.

        If it is broken off, it may be repeated: nobody has seen anything of it.
        """
        (rows, labels), fitted = self.table, prior.unfitted_copy()
        fitted.learn(reader.unpacked(rows), labels, source)
        return fitted

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing."""
        rows, labels = self.table
        return {"rows": rows, "labels": labels}

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Self:
        """Rebuild what ``to_facts`` returned."""
        return cls(facts["rows"], facts["labels"])


NO_LABELS = np.zeros(0, dtype=np.int64)
NO_ROWS = LabelledRows(None, NO_LABELS)


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
            f"row {int(wrong[0])}; mend them, or leave their rows out. Nothing was kept.",
            rows=[int(wrong[0])],
        )
    return codes
