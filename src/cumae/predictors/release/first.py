"""The first stage of UniversalQueryRelease at work."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from cumae.arrays import Floats, Integers
from cumae.claims import claim
from cumae.errors import InvalidParameter
from cumae.mechanisms.base import check_left
from cumae.parameters import check_count
from cumae.predictors.release.students import Lesson
from cumae.predictors.release.voting import Voting
from cumae.predictors.stateful import Fitted


@claim("UNV")
class FirstStage:
    """Answers the first queries by votes, and remembers both: queries and answers are public.

    Parameters
    ----------
    voting : Voting, or None
        Shards and mechanism; they are dropped at the end of the stage.
    count : int
        Number of queries of this stage.
    n_classes : int
        Number of declared classes.
    nothing : array or DataFrame
        A table without rows, in the form in which queries come.
    """

    def __init__(self, voting: Voting | None, count: int, n_classes: int, nothing: Any) -> None:
        self.voting = voting
        self.count, self.asked = count, 0
        self.n_classes = n_classes
        self.lessons: list[Lesson] = []
        self._nothing = nothing

    @property
    def left(self) -> int:
        """Queries that this stage still takes."""
        return self.count - self.asked

    @property
    def lesson(self) -> Lesson:
        """All queries so far and what was answered to them."""
        if not self.lessons:
            return Lesson(self._nothing, np.zeros((0, self.n_classes)))
        return Lesson.joined(self.lessons)

    def answer(self, table: Any, *, abstain: bool) -> tuple[Integers, Floats]:
        """Answer queries, and return the shares of a ``Lesson``, too.

        Answers are places in the classes; unclear ones get -1 or a random class.
        """
        if self.voting is None or len(table) > self.left:
            raise AssertionError("the first stage takes no more queries")
        self.asked += len(table)  # before anything is drawn
        if self.voting.shows_counts:
            counts = self.voting.counts(table)
            labels = np.asarray(np.argmax(counts, axis=1), dtype=np.int64)
            return labels, Lesson.of_votes(table, counts).shares
        labels = self.voting.ask(table)
        shares = Lesson.of_labels(table, labels, self.n_classes).shares
        return labels if abstain else self.voting.guessed(labels), shares

    def close(self) -> None:
        """Drop the private models."""
        self.voting = None

    def to_facts(self) -> dict[str, Any]:
        """Return it for storing; what was drawn ahead is thrown away."""
        return {
            "voting": None if self.voting is None else self.voting.to_facts(),
            "count": self.count,
            "asked": self.asked,
            "queries": self.lesson.queries,
            "shares": self.lesson.shares,
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any], fitted: Fitted) -> Self:
        """Rebuild what ``to_facts`` returned."""
        voting = facts["voting"]
        count = check_count(facts["count"], "count", least=1)
        found = cls(
            None if voting is None else Voting.from_facts(voting, fitted),
            count,
            fitted.n_classes,
            fitted.reader.nothing(),
        )
        found.asked = check_left(facts["asked"], count, "asked")
        if len(facts["queries"]) != len(facts["shares"]) or (voting is None and found.left):
            raise InvalidParameter("a stored stage has parts that do not match.")
        if len(facts["queries"]):
            found.lessons.append(Lesson(facts["queries"], facts["shares"]))
        return found
