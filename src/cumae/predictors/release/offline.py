"""All queries at once: one hypothesis, drawn among the labellings of the queries."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass, Hypothesis
from cumae.errors import BudgetExhausted, InvalidParameter
from cumae.parameters import check_count
from cumae.predictors.stateful import Fitted
from cumae.randomness import Source


@claim("QUERY", "SSPP")
class Offline:
    """Private rows that wait for the queries; answering publishes a hypothesis and drops them.

    Parameters
    ----------
    concept : ConceptClass
        Its labellings of the queries are the candidates.
    table, labels : arrays
        Private rows that are known to be usable, and their labels 0 or 1.
    epsilon : float
        Of the one draw.
    max_queries : int
        How many queries the batch may hold.
    source : Source
        Where random bits come from.
    """

    def __init__(
        self,
        concept: ConceptClass,
        table: Floats,
        labels: Integers,
        epsilon: float,
        max_queries: int,
        source: Source,
    ) -> None:
        self.concept, self.epsilon, self.source = concept, epsilon, source
        self.rows: tuple[Floats, Integers] | None = (table, labels)
        self.max_queries = max_queries
        self.hypothesis: Hypothesis | None = None

    @property
    def remaining(self) -> int:
        """Queries that the batch may hold; 0 after it."""
        return self.max_queries if self.rows is not None else 0

    def draw(self, points: Floats) -> Hypothesis:
        """Draw and publish the hypothesis; the private rows are gone before it is known."""
        if self.rows is None:
            raise BudgetExhausted(
                "0 answers remain: the one batch of queries was answered. Use hypothesis_ for "
                "further points; it is published."
            )
        (table, labels), self.rows = self.rows, None
        self.hypothesis = self.concept.choose(
            points, table, labels, self.epsilon, random_state=self.source
        )
        return self.hypothesis

    def ask(self, points: Floats) -> Integers:
        """Answer the batch; without queries nothing is drawn, and the rows stay."""
        if not len(points):
            return np.zeros(0, dtype=np.int64)
        if len(points) > self.max_queries and self.rows is not None:
            raise BudgetExhausted(
                f"{len(points)} queries were asked, but {self.remaining} remain; ask fewer."
            )
        return self.draw(points).predict(points)

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing."""
        return {
            "rows": None if self.rows is None else list(self.rows),
            "epsilon": self.epsilon,
            "max_queries": self.max_queries,
            "hypothesis": self.hypothesis,
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any], fitted: Fitted) -> Self:
        """Rebuild what ``to_facts`` returned."""
        table, labels = facts["rows"] or (np.zeros((0, 0)), np.zeros(0, dtype=np.int64))
        most = check_count(facts["max_queries"], "max_queries", least=1)
        found = cls(fitted.model, table, labels, facts["epsilon"], most, fitted.source)
        found.hypothesis = facts["hypothesis"]
        if facts["rows"] is None:
            found.rows = None
        elif len(table) != len(labels) or found.hypothesis is not None:
            raise InvalidParameter("stored rows have other labels, or were used already.")
        return found
