"""All queries at once: one hypothesis, drawn among the labellings of the queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.concepts import ConceptClass, Hypothesis
from cumae.errors import BudgetExhausted, InvalidParameter
from cumae.parameters import check_count
from cumae.predictors.stateful import Fitted
from cumae.randomness import Source


@claim("QUERY", "SSPP")
@dataclass(frozen=True, repr=False)  # a message must not show rows
class Offline:
    """Private rows that wait for the queries; answering publishes a hypothesis and drops them.

    Parameters
    ----------
    concept : ConceptClass
        Its labellings of the queries are the candidates.
    rows : tuple of arrays, or None
        Private rows that are known to be usable, and their labels 0 or 1; None when they are used.
    epsilon : float
        Of the one draw.
    max_queries : int
        How many queries the batch may hold.
    hypothesis : Hypothesis, or None
        What was published.
    """

    concept: ConceptClass
    rows: tuple[Floats, Integers] | None
    epsilon: float
    max_queries: int
    hypothesis: Hypothesis | None = None

    @property
    def remaining(self) -> int:
        """Queries that the batch may hold; 0 after it."""
        return self.max_queries if self.rows is not None else 0

    def draw(self, points: Floats, rows: tuple[Floats, Integers], source: Source) -> Offline:
        """Draw the hypothesis from rows that are gone from here already; return what is left."""
        drawn = self.concept.choose(points, *rows, self.epsilon, random_state=source)
        return replace(self, rows=None, hypothesis=drawn)

    def need_rows(self) -> tuple[Floats, Integers]:
        """Return the rows; refuse if they were used."""
        if self.rows is None:
            raise BudgetExhausted(
                "0 answers remain: the one batch of queries was answered. Use hypothesis_ for "
                "further points; it is published.",
                remaining=0,
            )
        return self.rows

    def check(self, asked: int) -> None:
        """Refuse a batch that is too large, or comes too late."""
        if asked > self.max_queries and self.rows is not None:
            raise BudgetExhausted(
                f"{asked} queries were asked, but {self.remaining} remain; ask fewer.",
                remaining=self.remaining,
                asked=asked,
            )
        if asked:
            self.need_rows()

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
        rows = None if facts["rows"] is None else (facts["rows"][0], facts["rows"][1])
        most = check_count(facts["max_queries"], "max_queries", least=1)
        found = cls(fitted.model, rows, facts["epsilon"], most, facts["hypothesis"])
        if rows is not None and (len(rows[0]) != len(rows[1]) or found.hypothesis is not None):
            raise InvalidParameter("stored rows have other labels, or were used already.")
        return found
